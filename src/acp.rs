//! The Agent Client Protocol (ACP). JSON-RPC and the names of the protocol are used in this folder only.
//!
//! [`AgentEvent`]s go to the app in wire order through a bounded channel; [`AgentCommand`]s come through an unbounded
//! channel and are written immediately. `core` decides about events; `host` executes requests.
//! Invariants: every request of the agent gets exactly one response, even when the connection ends; invalid input
//! becomes an anomaly and neither panics nor ends the connection.

pub mod codec;
mod dialects;
mod envelope;
pub mod frame;
pub mod gate;
pub mod log;
pub mod peer;
pub mod replay;
pub mod tap;
pub mod transport;

use std::path::PathBuf;

use tokio::sync::mpsc;

use crate::model::{AgentCommand, AgentEvent, AgentSpec, Batch, CloseReason};

use gate::Gate;
pub use peer::Limits;

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
    sender: mpsc::UnboundedSender<Command>,
}

/// `Stop` closes stdin, sends TERM to the process group after 2 s and KILL after another 3 s, or with `force` immediately.
/// `RetryNow` ends the delay before the next attempt to restore an interrupted connection.
#[derive(Debug)]
pub enum Command {
    Agent(AgentCommand),
    Stop { force: bool },
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

/// Starts an agent and connects to it. Errors are reported as events; `Closed` is always the last one. Must be called
/// on a tokio runtime; the connection's tasks run there. The gate can delay session updates.
pub fn connect(options: ConnectOptions, gate: Gate) -> Connection {
    let transport: Box<dyn transport::Transport> = match &options.spec.remote {
        Some(remote) => {
            let agent = transport::remote::RemoteAgent::new(remote.clone(), options.spec.wire.profile);
            Box::new(agent)
        }
        None => Box::new(transport::stdio::Stdio::new(options.spec.clone(), options.cwd.clone())),
    };
    connect_with(transport, options, Limits::default(), gate)
}

/// Connects over the given transport. Dropping the [`Connection`] or all its [`Commands`] stops the agent.
pub fn connect_with(
    transport: Box<dyn transport::Transport>,
    options: ConnectOptions,
    limits: Limits,
    gate: Gate,
) -> Connection {
    let (event_sender, events) = mpsc::channel(peer::EVENT_BATCHES);
    let (sender, commands) = mpsc::unbounded_channel();
    let app = peer::App { events: event_sender.clone(), gate, commands };
    let peer = tokio::spawn(peer::run(transport, options, limits, app));
    tokio::spawn(async move {
        // `Closed` is promised also if the peer panics.
        if peer.await.is_err_and(|error| error.is_panic()) {
            let error = "The connection ended because of a bug in parlor. Please report it.".to_owned();
            let events = vec![AgentEvent::Closed(CloseReason::Lost { error })];
            let _ = event_sender.send(events).await;
        }
    });
    Connection { events, commands: Commands { sender } }
}
