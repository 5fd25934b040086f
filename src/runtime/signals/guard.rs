//! Ends the process if the loop does not.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::Signal;
use crate::host::os::{process, signals as os};
use crate::lock::lock;
use crate::runtime::tty;

/// Maximum time for the loop to receive a signal.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// Maximum time to end after that: agents and commands are stopped in steps, the store writes its last page.
const ENDED_WITHIN: Duration = Duration::from_secs(15);

/// Maximum time to restore the terminal when parlor ends without the loop.
const RESTORED_WITHIN: Duration = Duration::from_millis(500);

/// How often the process was continued.
static CONTINUED: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

/// Has the process stopped, and returns after it was continued. Where nothing can continue it, the system does not stop it,
/// and this returns after `within`.
pub fn until_continued(stop: impl FnOnce(), within: Duration) {
    let (count, changed) = &CONTINUED;
    let before = *lock(count);
    stop();
    // Another thread may get the signal, so this one may still run for a moment.
    let count = lock(count);
    let _ = changed.wait_timeout_while(count, within, |count| *count == before);
}

/// A signal that may end parlor.
#[derive(Debug)]
pub struct Ending {
    pub signal: Signal,
    /// Receives whether the loop ends parlor because of it.
    pub reply: oneshot::Sender<bool>,
}

/// Starts the thread. Fails if the system refuses.
pub fn start() -> std::io::Result<mpsc::Receiver<Ending>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        os::listen(&[os::Signal::Terminate, os::Signal::HangUp, os::Signal::Interrupt, os::Signal::Continue])?
    };
    let (sender, endings) = mpsc::channel(1);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let signal = runtime.block_on(guard(async || next(&mut signals).await, sleep_for, &sender));
        tty::restore_within(RESTORED_WITHIN);
        process::kill_groups();
        std::process::exit(signal.exit_code());
    })?;
    Ok(endings)
}

async fn sleep_for(time: Duration) {
    sleep(time).await;
}

/// The next signal that may end parlor.
async fn next(signals: &mut os::Signals) -> os::Signal {
    loop {
        match signals.next().await {
            os::Signal::Continue => {
                *lock(&CONTINUED.0) += 1;
                CONTINUED.1.notify_all();
            }
            signal => return signal,
        }
    }
}

/// Passes signals to the loop; returns the one after which the loop has not ended parlor in time.
async fn guard(
    mut next: impl AsyncFnMut() -> os::Signal,
    wait: impl AsyncFn(Duration),
    endings: &mpsc::Sender<Ending>,
) -> os::Signal {
    loop {
        let received = next().await;
        let signal = match received {
            os::Signal::Interrupt => Signal::Interrupt,
            _ => Signal::Terminate,
        };
        let (reply, answer) = oneshot::channel();
        // There is room: the loop has received the previous signal, or has ended.
        let _ = endings.try_send(Ending { signal, reply });
        let ends = tokio::select! {
            biased;
            ends = answer => ends,
            () = wait(HEARD_WITHIN) => return received,
        };
        // A loop that drops the sender without a response is about to end.
        if ends != Ok(false) {
            wait(ENDED_WITHIN).await;
            return received;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::*;

    const TERM: os::Signal = os::Signal::Terminate;
    const INTERRUPT: os::Signal = os::Signal::Interrupt;

    /// Runs the guard for these signals against a loop with this response; returns the guard's result and the waiting
    /// times.
    fn guarded(signals: &[os::Signal], answer: impl Fn(Ending)) -> (Option<os::Signal>, Vec<Duration>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let waited = RefCell::new(Vec::new());
        let number = runtime.block_on(async {
            let (sender, mut endings) = mpsc::channel(1);
            let mut signals: VecDeque<os::Signal> = signals.iter().copied().collect();
            let wait = async |time: Duration| {
                // The loop runs before the time is over.
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                waited.borrow_mut().push(time);
            };
            let (is_out, out) = oneshot::channel();
            let mut is_out = Some(is_out);
            let next = async || {
                if let Some(received) = signals.pop_front() {
                    return received;
                }
                let _ = is_out.take().map(|out| out.send(()));
                std::future::pending().await
            };
            let answers = async {
                while let Some(ending) = endings.recv().await {
                    answer(ending);
                }
                std::future::pending::<os::Signal>().await
            };
            tokio::select! {
                number = guard(next, wait, &sender) => Some(number),
                _ = answers => None,
                _ = out => None,
            }
        });
        (number, waited.into_inner())
    }

    #[test]
    fn a_blocked_loop_is_ended() {
        let unanswered = RefCell::new(Vec::new());
        let busy = |ending| unanswered.borrow_mut().push(ending);
        assert_eq!(guarded(&[TERM], busy), (Some(TERM), vec![HEARD_WITHIN]));
        assert_eq!(guarded(&[INTERRUPT], busy), (Some(INTERRUPT), vec![HEARD_WITHIN]));
    }

    #[test]
    fn a_responding_loop_has_limited_time_to_end() {
        let ends = |ending: Ending| ending.reply.send(true).unwrap();
        assert_eq!(guarded(&[TERM], ends), (Some(TERM), vec![ENDED_WITHIN]));
    }

    #[test]
    fn an_interrupt_for_another_program_ends_nothing() {
        let ignores = |ending: Ending| ending.reply.send(ending.signal != Signal::Interrupt).unwrap();
        assert_eq!(guarded(&[INTERRUPT, INTERRUPT], ignores), (None, vec![]));
        assert_eq!(guarded(&[INTERRUPT, TERM], ignores), (Some(TERM), vec![ENDED_WITHIN]));
    }
}
