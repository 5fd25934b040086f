//! Connects to an agent at a URL.
//!
//! `core` reconnects and reopens sessions, as after a crash. A connection runs on a thread of its own, so that its
//! messages are received and split while the previous ones are decoded and drawn.
//! Invariants: those of every transport; the token and the headers are sent only to the agent's origin and never
//! logged.

mod client;
pub mod envelope;
mod events;
mod http_context;
mod http_error;
mod outbox;
mod route;
mod server;
mod socket;
pub mod sse;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::client::Client;
use self::http_context::{HttpContext, Reports, Timeouts};
use self::route::Route;
use super::{Ends, In, Link, OutgoingFrames, Setup, Sink, StopSignal, Transport};
use crate::acp::tap::Tap;
use crate::model::{Carrier, CloseReason, Profile, Remote};

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
        let (link, Ends { sink, frames, signal }) = Link::new();
        let inlet = (sink.clone(), setup.tap, setup.max_frame_bytes);
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
            return Ok(link);
        }
        on_own_thread(connection).map_err(|error| {
            CloseReason::not_started(format!("Could not start a thread for the connection: {error}."))
        })?;
        Ok(link)
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
async fn run(
    agent: RemoteAgent,
    inlet: (Sink, Tap, usize),
    frames: OutgoingFrames,
    mut signal: StopSignal,
) -> CloseReason {
    let RemoteAgent { remote, profile, timeouts, .. } = agent;
    let is_upgrade = route::carrier_of(&remote) == Some(Carrier::WebSocket);
    let opening = Client::open(&remote, is_upgrade);
    #[cfg_attr(not(test), expect(unused_mut, reason = "set by tests"))]
    let mut client = tokio::select! {
        biased;
        client = opening => match client {
            Ok(client) => client,
            Err(trouble) => return trouble.into(),
        },
        () = signal.wanted() => return CloseReason::Stopped,
    };
    #[cfg(test)]
    if let Some(client) = Arc::get_mut(&mut client) {
        client.simulation = agent.simulation;
    }
    let (context, reports) = HttpContext::new(client, inlet, timeouts, Arc::clone(&signal.retry));
    let mut stopped = signal.clone();
    let end = tokio::select! {
        biased;
        route = Route::open(Arc::clone(&context), &remote, profile) => match route {
            Ok(route) => carry(route, frames, reports, signal, timeouts).await,
            Err(trouble) => trouble.into(),
        },
        () = stopped.wanted() => CloseReason::Stopped,
    };
    context.close().await;
    end
}

async fn carry(
    mut route: Route,
    mut frames: OutgoingFrames,
    mut reports: Reports,
    signal: StopSignal,
    timeouts: Timeouts,
) -> CloseReason {
    let (mut polite, mut forced) = (signal.clone(), signal);
    let stopped = async {
        polite.wanted().await;
        sleep(timeouts.drain).await;
    };
    tokio::pin!(stopped);
    let work = async {
        let sent = tokio::select! {
            biased;
            Some(end) = reports.ended.recv() => return end,
            sent = send_all(&mut route, &mut frames, &mut reports.created, timeouts) => sent,
            () = &mut stopped => Ok(()),
        };
        if let Err(end) = sent {
            return end;
        }
        tokio::select! {
            biased;
            () = route.drained() => {}
            () = &mut stopped => {}
        }
        let _ = timeout(timeouts.farewell, route.farewell()).await;
        CloseReason::Stopped
    };
    tokio::select! {
        biased;
        () = forced.forced() => CloseReason::Stopped,
        end = work => end,
    }
}

async fn send_all(
    route: &mut Route,
    frames: &mut OutgoingFrames,
    created: &mut mpsc::UnboundedReceiver<String>,
    timeouts: Timeouts,
) -> Result<(), CloseReason> {
    let mut batch = Vec::new();
    let mut next_ping = Instant::now() + timeouts.ping;
    loop {
        tokio::select! {
            biased;
            Some(session) = created.recv() => route.open_session(&session),
            count = frames.take(&mut batch) => {
                if count == 0 {
                    return Ok(());
                }
                for frame in batch.drain(..) {
                    route.send(&frame).await?;
                    while let Ok(session) = created.try_recv() {
                        route.open_session(&session);
                    }
                    frames.written(&frame);
                }
            }
            () = sleep_until(next_ping), if matches!(route, Route::Socket(_)) => {
                next_ping = Instant::now() + timeouts.ping;
                if let Route::Socket(socket) = route {
                    socket.ping().await?;
                }
            }
        }
    }
}
