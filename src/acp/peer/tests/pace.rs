//! Who takes updates at its own pace is called for what cannot wait.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, BufReader, split};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Agent, App, PATIENCE, chunk, options, permission, session};
use crate::acp::peer::{EVENT_BATCHES, Limits};
use crate::acp::spawn;
use crate::acp::tap::Tap;
use crate::acp::transport::memory;
use crate::model::{AgentCommand, AgentEvent};

async fn ready() -> (App, Agent, Arc<Notify>) {
    let (transport, stream) = memory::pair(4 << 10);
    let bell = Arc::new(Notify::new());
    let connection =
        spawn(Box::new(transport), options(Tap::default()), Limits::default(), Arc::clone(&bell));
    let (input, output) = split(stream);
    let mut agent = Agent { lines: BufReader::new(input).lines(), output };
    let mut app = App { connection, events: VecDeque::new() };
    agent.answer_initialize().await;
    app.ready().await;
    // That it is ready was worth a call.
    timeout(PATIENCE, bell.notified()).await.unwrap();
    assert_eq!(bell.notified().now_or_never(), None);
    (app, agent, bell)
}

async fn is_called(bell: &Notify) {
    timeout(PATIENCE, bell.notified()).await.unwrap();
}

/// Waits until so many batches wait for the app.
async fn until_waiting(app: &App, count: usize) {
    timeout(PATIENCE, async {
        while app.connection.events.len() < count {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn updates_call_nobody_and_a_request_does() {
    let (mut app, mut agent, bell) = ready().await;
    agent.say(chunk("hello")).await;
    until_waiting(&app, 1).await;
    assert_eq!(bell.notified().now_or_never(), None, "an update waits for the next frame");
    agent.say(permission(&"p1".into())).await;
    is_called(&bell).await;
    // The call comes behind its batch, so who looks finds it.
    assert_eq!(app.chunks(5).now_or_never(), Some("hello".to_owned()));
    assert!(matches!(app.next().now_or_never(), Some(AgentEvent::Request(..))));
}

#[tokio::test]
async fn an_agent_that_has_to_wait_calls() {
    let (app, mut agent, bell) = ready().await;
    for sent in 1..=EVENT_BATCHES {
        assert_eq!(bell.notified().now_or_never(), None, "{sent}");
        agent.say(chunk("x")).await;
        until_waiting(&app, sent).await;
    }
    is_called(&bell).await;
    // Nobody takes them, so the agent's pipe fills up: that is how it has to wait.
    let flood = format!("{}\n", chunk("x")).repeat(2000);
    let write = tokio::spawn(async move {
        agent.write(&flood).await;
        agent
    });
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    assert!(!write.is_finished());
    assert_eq!(app.connection.events.len(), EVENT_BATCHES);
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
        heard = hear => assert_eq!(heard["method"], "session/cancel"),
    }
}

#[tokio::test]
async fn the_end_calls() {
    let (mut app, agent, bell) = ready().await;
    drop(agent);
    is_called(&bell).await;
    app.rest().await;
}
