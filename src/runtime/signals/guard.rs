//! Ends the process if the loop does not.

use std::future::poll_fn;
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::Signal;
use crate::acp;
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
    let before = *count.lock().unwrap_or_else(PoisonError::into_inner);
    stop();
    // Another thread may get the signal, so this one may still run for a moment.
    let count = count.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = changed.wait_timeout_while(count, within, |count| *count == before);
}

/// A signal that may end parlor.
#[derive(Debug)]
pub struct Ending {
    pub signal: Signal,
    /// Receives whether the loop ends parlor because of it.
    pub heard: oneshot::Sender<bool>,
}

/// Starts the thread. Fails if the system refuses.
pub fn start() -> std::io::Result<mpsc::Receiver<Ending>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut streams = {
        let _inside = runtime.enter();
        [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::from_raw(super::CONT),
        ]
        .map(signal)
    };
    for stream in &mut streams {
        if let Err(error) = stream {
            return Err(std::mem::replace(error, std::io::ErrorKind::Other.into()));
        }
    }
    let mut streams = streams.map(Result::ok);
    let (sender, endings) = mpsc::channel(1);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let number = runtime.block_on(guard(async || next(&mut streams).await, sleep_for, &sender));
        tty::restore_within(RESTORED_WITHIN);
        acp::kill_all();
        // The exit code of a process that a signal ended, as shells report it.
        std::process::exit(128 + number);
    })?;
    Ok(endings)
}

async fn sleep_for(time: Duration) {
    sleep(time).await;
}

async fn next(streams: &mut [Option<Stream>; 4]) -> i32 {
    poll_fn(|cx| {
        for (stream, kind) in streams.iter_mut().zip(NUMBERS) {
            while stream.as_mut().is_some_and(|stream| stream.poll_recv(cx).is_ready()) {
                if kind != super::CONT {
                    return Poll::Ready(kind);
                }
                *CONTINUED.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                CONTINUED.1.notify_all();
            }
        }
        Poll::Pending
    })
    .await
}

const INTERRUPT: i32 = rustix::process::Signal::INT.as_raw();

/// In the order of the streams.
const NUMBERS: [i32; 4] =
    [rustix::process::Signal::TERM.as_raw(), rustix::process::Signal::HUP.as_raw(), INTERRUPT, super::CONT];

/// Passes signals to the loop; returns the number of one after which the loop has not ended parlor in time.
async fn guard(
    mut next: impl AsyncFnMut() -> i32,
    wait: impl AsyncFn(Duration),
    endings: &mpsc::Sender<Ending>,
) -> i32 {
    loop {
        let number = next().await;
        let signal = if number == INTERRUPT { Signal::Interrupt } else { Signal::Terminate };
        let (heard, answer) = oneshot::channel();
        // There is room: the loop has received the previous signal, or has ended.
        let _ = endings.try_send(Ending { signal, heard });
        let ends = tokio::select! {
            biased;
            ends = answer => ends,
            () = wait(HEARD_WITHIN) => return number,
        };
        // A loop that drops the sender without a response is about to end.
        if ends != Ok(false) {
            wait(ENDED_WITHIN).await;
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::*;

    const TERM: i32 = rustix::process::Signal::TERM.as_raw();

    /// Runs the guard for these signals against a loop with this response; returns the guard's result and the waiting
    /// times.
    fn guarded(signals: &[i32], answer: impl Fn(Ending)) -> (Option<i32>, Vec<Duration>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let waited = RefCell::new(Vec::new());
        let number = runtime.block_on(async {
            let (sender, mut endings) = mpsc::channel(1);
            let mut signals: VecDeque<i32> = signals.iter().copied().collect();
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
                if let Some(number) = signals.pop_front() {
                    return number;
                }
                let _ = is_out.take().map(|out| out.send(()));
                std::future::pending().await
            };
            let answers = async {
                while let Some(ending) = endings.recv().await {
                    answer(ending);
                }
                std::future::pending::<i32>().await
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
        let unheard = RefCell::new(Vec::new());
        let busy = |ending| unheard.borrow_mut().push(ending);
        assert_eq!(guarded(&[TERM], busy), (Some(TERM), vec![HEARD_WITHIN]));
        assert_eq!(guarded(&[INTERRUPT], busy), (Some(INTERRUPT), vec![HEARD_WITHIN]));
    }

    #[test]
    fn a_responding_loop_has_limited_time_to_end() {
        let ends = |ending: Ending| ending.heard.send(true).unwrap();
        assert_eq!(guarded(&[TERM], ends), (Some(TERM), vec![ENDED_WITHIN]));
    }

    #[test]
    fn an_interrupt_for_another_program_ends_nothing() {
        let ignores = |ending: Ending| ending.heard.send(ending.signal != Signal::Interrupt).unwrap();
        assert_eq!(guarded(&[INTERRUPT, INTERRUPT], ignores), (None, vec![]));
        assert_eq!(guarded(&[INTERRUPT, TERM], ignores), (Some(TERM), vec![ENDED_WITHIN]));
    }
}
