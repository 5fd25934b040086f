//! Connects to an agent at a URL.
//!
//! `route` has the five transports that servers use, and detects which one it is if neither the user nor the URL
//! says so. `app` reconnects and reopens sessions, as after a crash. A connection runs on a thread of its own, so that its messages are
//! received and split while the previous ones are decoded and drawn.
//! Invariants: those of every transport; the token and the headers are sent only to the agent's origin and never
//! logged.

mod backoff;
mod client;
pub mod envelope;
mod events;
mod http;
mod http_context;
mod http_error;
mod outbox;
mod post;
mod requests;
mod route;
mod socket;
pub mod sse;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::http_context::{HttpContext, Inlet, TaskEvent};
use self::route::Route;
use super::link::StopSignal;
use super::queue::{OutgoingFrames, queue};
use super::{In, Link, LinkEnd, OutboundFrame, Setup, Stopper, Transport};
use crate::model::{CloseReason, Profile, Remote};

use http_context::Timeouts;

/// How long an idle thread for blocking work is kept.
const KEEP_ALIVE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct RemoteAgent {
    remote: Remote,
    profile: Option<Profile>,
    timeouts: Timeouts,
    #[cfg(test)]
    simulation: Option<tests::Simulation>,
}

impl RemoteAgent {
    pub fn new(remote: Remote, profile: Option<Profile>) -> Self {
        Self {
            remote,
            profile,
            timeouts: Timeouts::default(),
            #[cfg(test)]
            simulation: None,
        }
    }
}

impl Transport for RemoteAgent {
    fn start(self: Box<Self>, setup: Setup) -> Result<Link, CloseReason> {
        let (sink, incoming) = super::inbound::incoming();
        let (outgoing, frames) = queue();
        let (stopper, signal) = Stopper::new();
        let inlet = Inlet { sink: sink.clone(), tap: setup.tap, max_bytes: setup.max_frame_bytes };
        #[cfg(test)]
        let is_simulated = self.simulation.is_some();
        let connection = async move {
            let end = Box::pin(run(*self, inlet, frames, signal)).await;
            let _ = sink.send(In::Closed(end)).await;
        };
        #[cfg(test)]
        if is_simulated {
            // On the runtime of the test, whose time is virtual.
            tokio::spawn(connection);
            return Ok(Link { pid: None, incoming, outgoing, stopper });
        }
        on_own_thread(connection).map_err(|error| {
            let error = format!("Could not start a thread for the connection: {error}.");
            CloseReason::NotStarted { error, is_missing: false }
        })?;
        Ok(Link { pid: None, incoming, outgoing, stopper })
    }
}

fn on_own_thread(connection: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().thread_keep_alive(KEEP_ALIVE).enable_all().build()?;
    thread::Builder::new().name("remote".to_owned()).spawn(move || {
        runtime.block_on(connection);
        // A file with a token may be on an unreachable network drive.
        runtime.shutdown_background();
    })?;
    Ok(())
}

/// Runs the connection until its end; all of its tasks have ended when this returns.
async fn run(agent: RemoteAgent, inlet: Inlet, frames: OutgoingFrames, mut signal: StopSignal) -> LinkEnd {
    let RemoteAgent { remote, profile, timeouts, .. } = agent;
    let opening = route::client_for(&remote);
    #[cfg_attr(not(test), expect(unused_mut, reason = "set by tests"))]
    let mut client = tokio::select! {
        biased;
        client = opening => match client {
            Ok(client) => client,
            Err(trouble) => return trouble.into(),
        },
        () = signal.wanted() => return LinkEnd::Eof,
    };
    #[cfg(test)]
    if let Some(client) = Arc::get_mut(&mut client) {
        client.simulation = agent.simulation;
    }
    let (reported, mut news) = mpsc::unbounded_channel();
    let context = HttpContext::new(client, inlet, timeouts, reported, Arc::clone(&signal.retry));
    let mut stopped = signal.clone();
    let end = tokio::select! {
        biased;
        route = Route::open(context.clone(), &remote, profile) => match route {
            Ok(route) => carry(route, frames, &mut news, &mut signal, timeouts).await,
            Err(trouble) => trouble.into(),
        },
        () = stopped.wanted() => LinkEnd::Eof,
    };
    context.close().await;
    end
}

/// Sends and receives messages until the end, and closes the connection if parlor ends it.
async fn carry(
    mut route: Route,
    mut frames: OutgoingFrames,
    news: &mut mpsc::UnboundedReceiver<TaskEvent>,
    signal: &mut StopSignal,
    timeouts: Timeouts,
) -> LinkEnd {
    let (mut polite, mut forced) = (signal.clone(), signal.clone());
    let end = tokio::select! {
        biased;
        () = forced.forced() => return LinkEnd::Eof,
        end = send_all(&mut route, &mut frames, news, timeouts) => end,
        () = async { polite.wanted().await; sleep(timeouts.drain).await } => LinkEnd::Eof,
    };
    if end == LinkEnd::Eof {
        tokio::select! {
            biased;
            () = forced.forced() => {}
            _ = timeout(timeouts.farewell, route.farewell()) => {}
        }
    }
    end
}

/// Sends queued messages until the queue or the connection ends.
async fn send_all(
    route: &mut Route,
    frames: &mut OutgoingFrames,
    news: &mut mpsc::UnboundedReceiver<TaskEvent>,
    timeouts: Timeouts,
) -> LinkEnd {
    let mut batch: Vec<OutboundFrame> = Vec::new();
    let mut next_ping = Instant::now() + timeouts.ping;
    loop {
        tokio::select! {
            biased;
            reported = news.recv() => match reported {
                Some(TaskEvent::Session(session)) => route.open_session(&session),
                Some(TaskEvent::End(end)) => return end,
                None => return LinkEnd::Eof,
            },
            count = frames.take(&mut batch) => {
                if count == 0 {
                    route.drained().await;
                    return LinkEnd::Eof;
                }
                for frame in batch.drain(..) {
                    match write(route.send(&frame), news).await {
                        Ok(sessions) => sessions.iter().for_each(|session| route.open_session(session)),
                        Err(end) => return end,
                    }
                    frames.written(1);
                }
            }
            () = sleep_until(next_ping), if route.is_socket() => {
                next_ping = Instant::now() + timeouts.ping;
                if let Err(end) = write(route.ping(), news).await {
                    return end;
                }
            }
        }
    }
}

/// Writes a message, unless the connection ends first. Returns the sessions that were opened meanwhile.
async fn write(
    work: impl Future<Output = Result<(), LinkEnd>>,
    news: &mut mpsc::UnboundedReceiver<TaskEvent>,
) -> Result<Vec<String>, LinkEnd> {
    let mut sessions = Vec::new();
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            reported = news.recv() => match reported {
                Some(TaskEvent::Session(session)) => sessions.push(session),
                Some(TaskEvent::End(end)) => return Err(end),
                None => return Err(LinkEnd::Eof),
            },
            written = &mut work => {
                written?;
                return Ok(sessions);
            }
        }
    }
}
