//! Signals of the system, as far as a terminal program meets them. Unix only; elsewhere none ever comes.

#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// TERM or HUP: end in order.
    Terminate,
    /// INT, which no key on a screen in raw mode sends: the same, unless it was meant for a command that had the
    /// terminal.
    Interrupt,
    /// CONT: we were stopped and the screen is not ours any more.
    Continue,
    /// WINCH: the terminal has another size.
    Resize,
}

/// Waits for signals.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    streams: [Stream; 5],
}

impl Signals {
    /// Installs the handlers. Fails if the system refuses.
    #[cfg(unix)]
    pub fn new() -> std::io::Result<Self> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::from_raw(CONT),
            SignalKind::window_change(),
        ];
        let [term, hup, int, cont, winch] = kinds;
        Ok(Self { streams: [signal(term)?, signal(hup)?, signal(int)?, signal(cont)?, signal(winch)?] })
    }

    /// Installs nothing.
    #[cfg(not(unix))]
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// The next signal.
    #[cfg(unix)]
    pub async fn next(&mut self) -> Signal {
        let [term, hup, int, cont, winch] = &mut self.streams;
        tokio::select! {
            _ = term.recv() => Signal::Terminate,
            _ = hup.recv() => Signal::Terminate,
            _ = int.recv() => Signal::Interrupt,
            _ = cont.recv() => Signal::Continue,
            _ = winch.recv() => Signal::Resize,
        }
    }

    /// Never comes.
    #[cfg(not(unix))]
    pub async fn next(&mut self) -> Signal {
        std::future::pending().await
    }
}

#[cfg(unix)]
const CONT: i32 = rustix::process::Signal::CONT.as_raw();

/// Stops this process as a job of the shell, and returns when the shell lets it go on.
pub fn suspend() {
    #[cfg(unix)]
    {
        // The whole group, as Ctrl+Z does it; agents have groups of their own and go on.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    }
}
