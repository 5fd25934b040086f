//! Signals to parlor itself, and the names of all signals.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal as Raw;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that parlor handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    /// The terminal was closed.
    HangUp,
    Interrupt,
    /// The process was stopped, and continues.
    Continue,
    /// The terminal was resized.
    Resize,
}

impl Signal {
    const fn raw(self) -> Raw {
        match self {
            Self::Terminate => Raw::TERM,
            Self::HangUp => Raw::HUP,
            Self::Interrupt => Raw::INT,
            Self::Continue => Raw::CONT,
            Self::Resize => Raw::WINCH,
        }
    }

    /// The exit code of a process that the signal ended, as shells report it.
    pub fn exit_code(self) -> i32 {
        128 + self.raw().as_raw()
    }
}

/// Receives signals.
#[derive(Debug)]
pub struct Signals(Vec<(Signal, Stream)>);

/// Handles these signals on the current runtime. Fails if the system refuses.
pub fn listen(signals: &[Signal]) -> io::Result<Signals> {
    let stream = |one: &Signal| Ok((*one, signal(SignalKind::from_raw(one.raw().as_raw()))?));
    signals.iter().map(stream).collect::<io::Result<_>>().map(Signals)
}

impl Signals {
    pub async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let ready = self
                .0
                .iter_mut()
                .find_map(|(signal, stream)| stream.poll_recv(cx).is_ready().then_some(*signal));
            ready.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Sends a stop signal (job control) to the process group of parlor, like Ctrl+Z in a shell.
pub fn stop_own_group() {
    let _ = rustix::process::kill_current_process_group(Raw::TSTP);
}

/// The name of a signal, `SIG…`; `SIG` and the number for others.
pub fn name(number: i32) -> String {
    const NAMES: &[(Raw, &str)] = &[
        (Raw::HUP, "SIGHUP"),
        (Raw::INT, "SIGINT"),
        (Raw::QUIT, "SIGQUIT"),
        (Raw::ILL, "SIGILL"),
        (Raw::TRAP, "SIGTRAP"),
        (Raw::ABORT, "SIGABRT"),
        (Raw::BUS, "SIGBUS"),
        (Raw::FPE, "SIGFPE"),
        (Raw::KILL, "SIGKILL"),
        (Raw::USR1, "SIGUSR1"),
        (Raw::SEGV, "SIGSEGV"),
        (Raw::USR2, "SIGUSR2"),
        (Raw::PIPE, "SIGPIPE"),
        (Raw::ALARM, "SIGALRM"),
        (Raw::TERM, "SIGTERM"),
        (Raw::STOP, "SIGSTOP"),
        (Raw::XCPU, "SIGXCPU"),
        (Raw::XFSZ, "SIGXFSZ"),
        (Raw::SYS, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(|| format!("SIG{number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        // Messages prefix them with "signal".
        assert_eq!([9, 34].map(name), ["SIGKILL", "SIG34"]);
    }
}
