//! Keys, clicks and changes of size: a thread that waits for them.
//!
//! Not crossterm's own stream: each look at that takes the reader's lock from its thread or spins for it, and a
//! loop that is woken by an agent a thousand times a second looks as often.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, EventStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long the thread waits at a time: once a day it looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// What the terminal tells, until this is dropped.
pub struct Keys {
    events: UnboundedReceiver<io::Result<Event>>,
    is_over: Arc<AtomicBool>,
    /// Never read: dropping it wakes the thread, for which there is no other way.
    waker: Option<EventStream>,
}

impl Keys {
    /// Begins to listen. Fails if the system has no thread to give.
    pub fn listen() -> io::Result<Self> {
        let (sender, events) = unbounded_channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let waker = Some(EventStream::new());
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || read(&sender, &flag))?;
        Ok(Self { events, is_over, waker })
    }

    /// The next event; `None`: the terminal is gone.
    pub async fn next(&mut self) -> Option<io::Result<Event>> {
        self.events.recv().await
    }

    /// The next event, if one is there.
    pub fn try_next(&mut self) -> Option<io::Result<Event>> {
        self.events.try_recv().ok()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(self.waker.take());
    }
}

fn read(sender: &UnboundedSender<io::Result<Event>>, is_over: &AtomicBool) {
    loop {
        let found = event::poll(PATIENCE);
        // What is there now is for whoever listens next.
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let read = match found {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let is_broken = read.is_err();
        if sender.send(read).is_err() || is_broken {
            return;
        }
    }
}
