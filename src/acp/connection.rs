//! A connection, as its user sees it: its options, events and commands.

use std::path::PathBuf;

use tokio::sync::mpsc;

use super::tap;
use crate::model::{AgentCommand, AgentSpec, Batch};

#[derive(Debug, Clone)]
pub struct ConnectOptions {
    pub spec: AgentSpec,
    /// The session's folder: that of parlor's process, unless the spec names another.
    pub cwd: PathBuf,
    pub tap: tap::Tap,
    /// The file that the agent's stderr is written to; `None`: memory only.
    pub stderr_log: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Connection {
    /// Batches of events in wire order; ends after `Closed`.
    pub events: mpsc::Receiver<Batch>,
    pub commands: Commands,
}

/// Sends commands. It never blocks or fails: those to a closed connection are dropped, as `Closed` was reported.
#[derive(Debug, Clone)]
pub struct Commands {
    pub(super) sender: mpsc::UnboundedSender<Command>,
}

#[derive(Debug)]
pub enum Command {
    Agent(AgentCommand),
    /// Stops the agent's process group: close stdin, TERM after 2 s, KILL after another 3 s.
    Stop {
        /// Sends KILL immediately.
        force: bool,
    },
    /// Ends the delay before the next attempt to restore an interrupted connection.
    RetryNow,
}

impl Commands {
    pub fn send(&self, command: AgentCommand) {
        let _ = self.sender.send(Command::Agent(command));
    }

    pub fn retry_now(&self) {
        let _ = self.sender.send(Command::RetryNow);
    }

    pub fn stop(&self, force: bool) {
        let _ = self.sender.send(Command::Stop { force });
    }
}
