//! The cost of updates in the reducer.
//!
//! `chunks` is one message; the time of a chunk must not grow with the message, so both sizes should have the same
//! throughput. `mixed` resembles a typical turn: thoughts, text, tool calls with output, usage.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use parlor::core::{Cx, Effect, Event, Setup};
use parlor::model::{
    AgentCommand, AgentEvent, AgentSpec, AgentTerminal, CallTag, ConnId, Patch, Reply, Role, SessionId,
    SessionKey, SessionReply, SessionUpdate, ToolCallPatch, ToolStatus, Usage,
};
use parlor::ui::{App, update};

/// A session in the middle of a turn.
struct Bench {
    app: App,
    conn: ConnId,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let spec = AgentSpec { name: "bench".into(), command: "bench".into(), ..AgentSpec::default() };
        let folder = PathBuf::from("/");
        let (app, _) = parlor::ui::start(Setup { folder, start_with: Some(spec), ..Setup::default() }, now);
        let mut bench = Self { app, conn: ConnId(1), now };
        let opening = bench.play(AgentEvent::Ready(Box::default()));
        if let Some(tag) = call_of(&opening) {
            let reply = SessionReply { id: Some("s".into()), ..SessionReply::default() };
            bench.play(AgentEvent::Replied(tag, Ok(Reply::Session(reply))));
        }
        let mut cx = Cx::new(now);
        parlor::core::lifecycle::operations::submit(
            &mut bench.app.state,
            SessionKey(1),
            "go".into(),
            &mut cx,
        );
        assert!(call_of(&cx.effects).is_some(), "the turn is running");
        bench
    }

    fn play(&mut self, event: AgentEvent) -> Vec<Effect> {
        update(&mut self.app, Event::Agent(self.conn, event), self.now)
    }
}

fn call_of(fx: &[Effect]) -> Option<CallTag> {
    fx.iter().find_map(|effect| match effect {
        Effect::Send(_, AgentCommand::Call(tag, _)) => Some(tag.clone()),
        _ => None,
    })
}

fn chunk(role: Role, text: &str) -> SessionUpdate {
    SessionUpdate::Chunk { role, message: None, text: text.into() }
}

fn chunks(count: usize) -> Vec<SessionUpdate> {
    (0..count).map(|_| chunk(Role::Agent, "a few words more ")).collect()
}

/// Rounds of a typical turn, with ten updates each.
fn mixed(rounds: usize) -> Vec<SessionUpdate> {
    let mut updates = Vec::with_capacity(rounds * 10);
    for round in 0..rounds {
        let id = format!("call_{round}");
        let tool = |status: ToolStatus, news: Vec<AgentTerminal>| {
            let mut patch = ToolCallPatch::new(id.as_str().into());
            patch.status = Patch::Set(status);
            patch.terminals = news;
            SessionUpdate::Tool(Box::new(patch))
        };
        let output = |data: &str| AgentTerminal::Output { id: id.as_str().into(), data: data.into() };
        updates.extend([
            chunk(Role::Thought, "let me see "),
            chunk(Role::Thought, "what is there"),
            chunk(Role::Agent, "I look at it: "),
            chunk(Role::Agent, "a moment."),
            tool(ToolStatus::Pending, Vec::new()),
            tool(ToolStatus::InProgress, vec![output("running 12 tests\n")]),
            tool(ToolStatus::InProgress, vec![output("test auth ... ok\n")]),
            tool(ToolStatus::Completed, Vec::new()),
            SessionUpdate::Usage(Usage { used_tokens: round as u64, size_tokens: 200_000, cost: None }),
            chunk(Role::Agent, "Done."),
        ]);
    }
    updates
}

fn measure(criterion: &mut Criterion, name: &str, updates: &[SessionUpdate]) {
    let session = SessionId::from("s");
    let mut group = criterion.benchmark_group("reducer");
    group.throughput(Throughput::Elements(updates.len() as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_batched(
            || (Bench::new(), updates.to_vec()),
            |(mut bench, updates)| {
                for update in updates {
                    black_box(bench.play(AgentEvent::Update(session.clone(), update)));
                }
                bench
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn reducer(criterion: &mut Criterion) {
    measure(criterion, "chunks/2k", &chunks(2_000));
    measure(criterion, "chunks/20k", &chunks(20_000));
    measure(criterion, "mixed/10k", &mixed(1_000));
}

criterion_group!(benches, reducer);
criterion_main!(benches);
