//! Reads terminal input on systems other than Unix, with crossterm.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, EventStream};
use tokio::sync::mpsc::Sender;

use super::TtyEvent;

/// Timeout of a poll: the thread checks once a day whether it should end.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// Stops the thread when dropped.
pub struct Waker {
    is_over: Arc<AtomicBool>,
    /// Never read: dropping it is the only way to wake the thread.
    stream: Option<EventStream>,
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(self.stream.take());
    }
}

pub fn listen(sender: Sender<io::Result<TtyEvent>>) -> io::Result<Waker> {
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_over);
    let stream = Some(EventStream::new());
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || read(&sender, &flag))?;
    Ok(Waker { is_over, stream })
}

fn read(sender: &Sender<io::Result<TtyEvent>>, is_over: &AtomicBool) {
    loop {
        let found = event::poll(PATIENCE);
        // Pending input is left for the next reader.
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let read = match found {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let is_broken = read.is_err();
        if sender.blocking_send(read.map(TtyEvent::Input)).is_err() || is_broken {
            return;
        }
    }
}
