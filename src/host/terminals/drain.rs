//! Discards the output of background processes whose terminals were released, so that they do not block on a full
//! terminal.
//!
//! Invariant: one thread and [`MAX_TERMINALS`] descriptors at most, however many processes are running; neither is left
//! once they have ended.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use super::output::read;
use crate::host::os::pty;
use crate::lock::lock;

/// Maximum number of terminals that are read. The oldest one is closed for another: its processes can no longer write.
pub(super) const MAX_TERMINALS: usize = 8;

/// Reads released terminals.
#[derive(Debug, Default)]
pub(super) struct Drain {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Terminals that the thread has not taken yet.
    added: Vec<File>,
    /// Wakes the thread; `None`: there is none.
    wake: Option<PipeWriter>,
}

impl Drain {
    /// Reads a terminal from now on, until no process holds it open.
    pub(super) fn add(self: &Arc<Self>, terminal: File) {
        let mut state = self.state();
        state.added.push(terminal);
        if let Some(wake) = &mut state.wake {
            let _ = wake.write_all(&[0]);
            return;
        }
        let here = Arc::clone(self);
        let started = std::io::pipe().and_then(|(woken, wake)| {
            thread::Builder::new().name("terminal drain".to_owned()).spawn(move || here.run(woken))?;
            Ok(wake)
        });
        match started {
            Ok(wake) => state.wake = Some(wake),
            Err(_) => state.added.clear(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn run(&self, mut woken: PipeReader) {
        let mut terminals: Vec<File> = Vec::new();
        let mut buffer = vec![0; 32 << 10];
        loop {
            {
                let mut state = self.state();
                terminals.append(&mut state.added);
                if terminals.is_empty() {
                    state.wake = None;
                    return;
                }
            }
            terminals.drain(..terminals.len().saturating_sub(MAX_TERMINALS));
            let Ok((is_woken, ready)) = pty::wait_readable(&woken, &terminals) else {
                terminals.clear();
                continue;
            };
            if is_woken {
                let _ = woken.read(&mut buffer);
            }
            let mut ready = ready.into_iter();
            terminals
                .retain_mut(|terminal| ready.next() != Some(true) || read(terminal, &mut buffer).is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use portable_pty::{PtySize, native_pty_system};

    use super::super::output::Output;
    use super::*;

    /// A terminal, and what a background process holds of it.
    fn terminal() -> (File, File) {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let held = pty::open_raw(&pair.master.tty_name().unwrap()).unwrap();
        (Output::of(&*pair.master).unwrap().0.into_terminal(), held)
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn released_terminals_are_read_up_to_a_limit() {
        let drain = Arc::new(Drain::default());
        let (terminals, held): (Vec<_>, Vec<_>) = (0..=MAX_TERMINALS).map(|_| terminal()).unzip();
        for terminal in terminals {
            drain.add(terminal);
        }
        for mut held in held.iter().skip(1) {
            // More than a terminal holds.
            held.write_all(&vec![b'x'; 200_000]).unwrap();
        }
        wait_until("the oldest one is closed", || (&held[0]).write_all(b"x").is_err());
        drop(held);
        wait_until("the thread ends", || drain.state().wake.is_none());
    }
}
