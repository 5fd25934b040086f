//! Only updates are delayed until the gate opens.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, BufReader, split};
use tokio::time::{Instant, sleep, timeout};

use super::{Agent, App, PATIENCE, chunk, options, permission, session};
use crate::acp::connect_with;
use crate::acp::gate::{Gate, GateKeeper};
use crate::acp::peer::{EVENT_BATCHES, Limits};
use crate::acp::tap::Tap;
use crate::acp::transport::memory;
use crate::model::{AgentCommand, AgentEvent};

async fn ready(gate: Gate) -> (App, Agent) {
    let (transport, stream) = memory::pair(4 << 10);
    let connection = connect_with(Box::new(transport), options(Tap::default()), Limits::default(), gate);
    let (input, output) = split(stream);
    let mut agent = Agent { lines: BufReader::new(input).lines(), output };
    let mut app = App { connection, events: VecDeque::new() };
    agent.answer_initialize().await;
    app.ready().await;
    (app, agent)
}

/// Runs all tasks until they wait for a timer or for input.
async fn run_tasks() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn updates_are_sent_in_one_batch_when_the_gate_opens() {
    let (keeper, gate) = GateKeeper::new();
    let (mut app, mut agent) = ready(gate).await;
    keeper.open_at(Instant::now() + Duration::from_secs(600));
    // The first updates are sent immediately, until a stream is detected. More than one update per millisecond may be a
    // flood, which is never delayed.
    timeout(PATIENCE, async {
        loop {
            agent.say(chunk("a")).await;
            sleep(Duration::from_millis(1)).await;
            run_tasks().await;
            if app.chunks(1).now_or_never().is_none() {
                break;
            }
        }
    })
    .await
    .unwrap();
    agent.say(chunk("b")).await;
    run_tasks().await;
    assert_eq!(app.connection.events.len(), 0, "updates are delayed");
    // A cancellation is not delayed.
    app.send(AgentCommand::Cancel(session()));
    assert_eq!(agent.hear().await["method"], "session/cancel");
    keeper.open_at(Instant::now());
    run_tasks().await;
    assert_eq!(app.connection.events.len(), 1, "one batch");
    assert_eq!(app.chunks(2).now_or_never().as_deref(), Some("ab"));
    // A request ends the stream, so the messages after it are not delayed.
    agent.say(permission(&"p1".into())).await;
    run_tasks().await;
    assert!(matches!(app.next().now_or_never(), Some(AgentEvent::Request(..))));
    keeper.open_at(Instant::now() + Duration::from_secs(600));
    agent.say(chunk("c")).await;
    run_tasks().await;
    assert_eq!(app.chunks(1).now_or_never().as_deref(), Some("c"));
}

#[tokio::test]
async fn an_agent_blocks_while_the_app_receives_nothing() {
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
    // A cancellation is written nevertheless.
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
