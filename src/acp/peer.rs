//! JSON-RPC between one agent and the app.
//!
//! One task per connection owns all its state, and sends one batch of events to the app per read.
//! Invariants: the task never waits only for the app or only for the agent, so a cancellation is written while
//! events are pending; reading waits for the app, so a flood blocks the agent's pipe; commands are checked between
//! any two messages; `Closed` is the last event, after every call has ended.

mod calls;
mod core;
pub(super) mod frame_writer;
mod requests;
#[cfg(test)]
mod tests;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::dialects::openoxide::workspace::Workspace;
use super::frame::InboundFrame;
use super::gate::{Gate, Stream};
use super::log::{Start, end_line};
use super::transport::{In, Link, Setup, Transport};
use super::{Command, ConnectOptions};
use crate::model::{AgentEvent, Batch, CloseReason};

pub(super) use self::core::Peer;
pub use calls::Limits;
pub(super) use calls::Pending;

/// Maximum number of batches that wait for the app: about 8 MiB, as one has at most 256 KiB or a single long frame.
pub const EVENT_BATCHES: usize = 32;

/// Why an agent on another machine is not started.
const NO_SANDBOX: &str = "A sandbox is required, but the agent is on another machine. \
    Set `sandbox = \"off\"` for it, or start with `--sandbox=off`.";

/// The peer's side of the app.
#[derive(Debug)]
pub struct App {
    pub events: mpsc::Sender<Batch>,
    pub gate: Gate,
    pub commands: mpsc::UnboundedReceiver<Command>,
}

/// Runs a connection from start to end. Events are sent to the app in batches; updates wait for the gate.
pub async fn run(transport: Box<dyn Transport>, options: ConnectOptions, limits: Limits, mut app: App) {
    let mut peer = Peer::new(&options.spec, options.tap.clone(), limits);
    let own = options.spec.cwd.clone().filter(|_| !options.spec.is_elsewhere());
    let folder = own.unwrap_or_else(|| options.cwd.clone());
    options.tap.mark("start", || serde_json::to_string(&Start::of(&options.spec)).unwrap_or_default());
    let setup = Setup {
        max_frame_bytes: limits.max_frame_bytes,
        tap: options.tap.clone(),
        stderr_log: options.stderr_log,
    };
    let is_refused = options.spec.is_elsewhere() && options.spec.bounds.is_some();
    let reason = match Workspace::enter(&options.spec, &folder).await {
        Ok(_) if is_refused => CloseReason::not_started(NO_SANDBOX.to_owned()),
        Ok(workspace) => {
            peer.last_session = workspace.last_session().await;
            match start(transport, setup).await {
                Ok(link) => drive(&mut peer, link, &workspace, &mut app).await,
                Err(reason) => reason,
            }
        }
        Err(reason) => reason,
    };
    app.commands.close();
    while let Ok(command) = app.commands.try_recv() {
        peer.on_command(command, Instant::now());
    }
    options.tap.mark("end", || end_line(&reason));
    peer.close(reason);
    options.tap.flush();
    let _ = app.events.send(peer.take_events()).await;
}

async fn drive(peer: &mut Peer, link: Link, workspace: &Workspace, app: &mut App) -> CloseReason {
    let App { events, gate, commands } = app;
    let Link { pid, sandbox, mut incoming, outgoing, stopper } = link;
    peer.start(pid, outgoing, stopper, Instant::now());
    peer.events.extend(sandbox.map(AgentEvent::Sandboxed));
    let (mut has_commander, mut has_listener) = (true, true);
    let mut stream = Stream::new(Instant::now());
    let mut is_waiting = false;
    loop {
        if !has_listener {
            peer.take_events();
        }
        let has_events = !peer.events.is_empty();
        let is_full = peer.writer.is_full();
        let deadline = peer.next_deadline();
        let may_read = !has_events && !is_full && !is_waiting;
        tokio::select! {
            biased;
            command = commands.recv(), if has_commander => {
                if let Some(command) = command {
                    peer.on_command(command, Instant::now());
                } else {
                    // Without a sender, requests of the agent cannot be answered.
                    has_commander = false;
                    peer.stop(false);
                }
            }
            permit = events.reserve(), if has_events => match permit {
                Ok(permit) => permit.send(peer.take_events()),
                // Handled by the next branch.
                Err(_) => { peer.take_events(); }
            },
            () = events.closed(), if has_listener => {
                has_listener = false;
                peer.stop(false);
            }
            message = incoming.recv(), if may_read => match message {
                Some(In::Pieces(pieces)) => {
                    let bytes = pieces.iter().map(InboundFrame::len_bytes).sum();
                    for piece in pieces {
                        peer.on_piece(piece, Instant::now());
                        // A cancellation must not wait for a batch.
                        while let Ok(command) = commands.try_recv() {
                            peer.on_command(command, Instant::now());
                        }
                    }
                    let only_updates = peer.events.iter().all(|event| matches!(event, AgentEvent::Update(..)));
                    is_waiting = stream.may_wait(bytes, only_updates, Instant::now());
                }
                Some(In::Note(text)) => peer.on_report(None, text),
                Some(In::Undelivered { session, text }) => peer.on_report(session, text),
                Some(In::Interrupted(is_interrupted)) => peer.events.push(AgentEvent::Interrupted(is_interrupted)),
                Some(In::Closed(end)) => return peer.close_reason(end),
                None => return peer.close_reason(CloseReason::Lost { error: "The connection was lost.".to_owned() }),
            },
            () = peer.writer.drained(), if is_full => {}
            () = next_poll(events, gate), if is_waiting && !has_events => is_waiting = false,
            // Not while events are pending: the response may already be in the pipe if the app is late.
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && !has_events => {
                peer.on_deadline(Instant::now());
            }
        }
        peer.finish_batch();
        if let Some(session) = peer.opened.take() {
            workspace.keep(&session);
        }
    }
}

/// Starts the transport on a blocking thread, because spawning a program blocks until it runs.
async fn start(transport: Box<dyn Transport>, setup: Setup) -> Result<Link, CloseReason> {
    let started = tokio::task::spawn_blocking(move || transport.start(setup)).await;
    started.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(fault) => std::panic::resume_unwind(fault),
        Err(error) => Err(CloseReason::not_started(error.to_string())),
    })
}

/// Waits until the app has received all events, and then for the gate, which the app sets after handling them.
async fn next_poll(events: &mpsc::Sender<Batch>, gate: &mut Gate) {
    let _ = events.reserve_many(events.max_capacity()).await;
    gate.open().await;
}
