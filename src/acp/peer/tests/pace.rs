//! Updates wait for the next look of the app, and nothing else does.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, BufReader, split};
use tokio::time::{Instant, sleep, timeout};

use super::{Agent, App, PATIENCE, chunk, options, permission, session};
use crate::acp::gate::{Gate, GateKeeper};
use crate::acp::peer::{EVENT_BATCHES, Limits};
use crate::acp::spawn;
use crate::acp::tap::Tap;
use crate::acp::transport::memory;
use crate::model::{AgentCommand, AgentEvent};

async fn ready(gate: Gate) -> (App, Agent) {
    let (transport, stream) = memory::pair(4 << 10);
    let connection = spawn(Box::new(transport), options(Tap::default()), Limits::default(), gate);
    let (input, output) = split(stream);
    let mut agent = Agent { lines: BufReader::new(input).lines(), output };
    let mut app = App { connection, events: VecDeque::new() };
    agent.answer_initialize().await;
    app.ready().await;
    (app, agent)
}

/// Lets all tasks do what they can without a timer.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn updates_of_a_stream_come_together_when_the_gate_opens() {
    let (keeper, gate) = GateKeeper::new();
    let (mut app, mut agent) = ready(gate).await;
    keeper.open_at(Instant::now() + Duration::from_secs(600));
    // Until it is known that this is a stream, each update comes at once. More than an update per millisecond may be a
    // flood, which never waits.
    timeout(PATIENCE, async {
        loop {
            agent.say(chunk("a")).await;
            sleep(Duration::from_millis(1)).await;
            settle().await;
            if app.chunks(1).now_or_never().is_none() {
                break;
            }
        }
    })
    .await
    .unwrap();
    agent.say(chunk("b")).await;
    settle().await;
    assert_eq!(app.connection.events.len(), 0, "they wait");
    // A cancel does not.
    app.send(AgentCommand::Cancel(session()));
    assert_eq!(agent.hear().await["method"], "session/cancel");
    keeper.open_at(Instant::now());
    settle().await;
    assert_eq!(app.connection.events.len(), 1, "one batch");
    assert_eq!(app.chunks(2).now_or_never().as_deref(), Some("ab"));
    // A request ends the stream: what follows it is not held up.
    agent.say(permission(&"p1".into())).await;
    settle().await;
    assert!(matches!(app.next().now_or_never(), Some(AgentEvent::Request(..))));
    keeper.open_at(Instant::now() + Duration::from_secs(600));
    agent.say(chunk("c")).await;
    settle().await;
    assert_eq!(app.chunks(1).now_or_never().as_deref(), Some("c"));
}

#[tokio::test]
async fn an_agent_waits_for_an_app_that_takes_nothing() {
    let (app, mut agent) = ready(Gate::default()).await;
    let flood = format!("{}\n", chunk("x")).repeat(2000);
    let write = tokio::spawn(async move {
        agent.write(&flood).await;
        agent
    });
    for _ in 0..2000 {
        tokio::task::yield_now().await;
    }
    assert!(!write.is_finished());
    assert!(app.connection.events.len() <= EVENT_BATCHES);
    // A cancel is written all the same.
    app.send(AgentCommand::Cancel(session()));
    let App { mut connection, .. } = app;
    let drain = async { while connection.events.recv().await.is_some() {} };
    let hear = async {
        let mut agent = write.await.unwrap();
        agent.hear().await
    };
    tokio::select! {
        () = drain => panic!("the connection ended"),
        heard = timeout(PATIENCE, hear) => assert_eq!(heard.unwrap()["method"], "session/cancel"),
    }
}
