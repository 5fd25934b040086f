//! Allocations per text chunk, and the heap of a long session; measured in a separate process.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

use std::time::Instant;

use dhat::HeapStats;
use parlor::acp::codec::Codec;
use parlor::core::lifecycle::operations;
use parlor::core::{Cx, Effect, Event, Setup};
use parlor::model::{
    AgentCommand, AgentEvent, AgentSpec, ConnId, Reply, Role, SessionKey, SessionReply, SessionUpdate,
};
use parlor::ui::{App, update};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const CHUNKS: u64 = 500;

fn allocations(params: impl Fn(u64) -> String) -> f64 {
    let messages: Vec<String> = (0..CHUNKS).map(params).collect();
    let mut codec = Codec::new(&AgentSpec::default());
    let mut out = Vec::new();
    let before = HeapStats::get().total_blocks;
    for message in &messages {
        assert!(codec.notification("session/update", Some(message), &mut out));
    }
    let blocks = HeapStats::get().total_blocks - before;
    assert!(!out.is_empty());
    #[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
    let per_chunk = blocks as f64 / CHUNKS as f64;
    per_chunk
}

fn chunk(message: u64, text: &str) -> String {
    format!(
        r#"{{"sessionId":"d931ce22-bc2c","update":{{"sessionUpdate":"agent_message_chunk","messageId":"m{message}","content":{{"type":"text","text":"{text}"}}}}}}"#
    )
}

// One test, because the counters are global.
#[test]
fn chunks_need_few_allocations_and_long_sessions_little_more_than_their_text() {
    let _profiler = dhat::Profiler::builder().testing().build();
    check_allocations_per_chunk();
    check_heap_of_a_long_session();
}

fn check_allocations_per_chunk() {
    let apart = allocations(|at| chunk(at, "forty bytes of text, more or less, plain"));
    // The JSON reader unescapes into a buffer that grows by doubling.
    let escaped = allocations(|_| chunk(1, r#"a line\nand a \"quote\" that must be unescaped"#));
    let joined = allocations(|_| chunk(1, "forty bytes of text, more or less, plain"));
    println!("apart {apart}, escaped {escaped}, joined {joined}");
    assert!(apart <= 4.0, "{apart} allocations per chunk of a new message");
    assert!(escaped <= 6.0, "{escaped} allocations per chunk with escapes");
    assert!(joined <= 0.5, "{joined} allocations per joined chunk");
}

/// A session whose agent streams.
struct Stream {
    app: App,
    now: Instant,
}

impl Stream {
    fn new() -> Self {
        let now = Instant::now();
        let spec = AgentSpec { name: "stream".into(), command: "stream".into(), ..AgentSpec::default() };
        let setup =
            Setup { folder: "/".into(), start_with: Some(spec), saves_sessions: true, ..Setup::default() };
        let (app, _) = parlor::ui::start(setup, now);
        let mut stream = Self { app, now };
        let opening = stream.play(Event::Agent(ConnId(1), AgentEvent::Ready(Box::default())));
        let call = opening.into_iter().find_map(|effect| match effect {
            Effect::Send(_, AgentCommand::Call(tag, _)) => Some(tag),
            _ => None,
        });
        let reply = SessionReply { id: Some("s".into()), ..SessionReply::default() };
        let opened = AgentEvent::Replied(call.expect("the session is opened"), Ok(Reply::Session(reply)));
        stream.play(Event::Agent(ConnId(1), opened));
        let mut cx = Cx::new(now);
        operations::submit(&mut stream.app.state, SessionKey(1), "go".into(), &mut cx);
        stream
    }

    fn play(&mut self, event: Event) -> Vec<Effect> {
        update(&mut self.app, event, self.now)
    }

    /// Streams messages of a thousand chunks, as they come from an agent. Returns the bytes of their text.
    fn stream(&mut self, chunks: usize) -> usize {
        for n in 0..chunks {
            let update = SessionUpdate::Chunk {
                role: Role::Agent,
                message: Some(format!("m{}", n / 1_000).as_str().into()),
                text: TEXT.into(),
            };
            self.play(Event::Agent(ConnId(1), AgentEvent::Update("s".into(), update)));
        }
        chunks * TEXT.len()
    }
}

/// The text of a chunk: 24 bytes.
const TEXT: &str = "some words of a message\n";

/// The heap grows by at most one and a half times the text that is received.
fn check_heap_of_a_long_session() {
    let mut stream = Stream::new();
    let before = HeapStats::get().curr_bytes;
    let text = stream.stream(200_000);
    let grown = HeapStats::get().curr_bytes - before;
    println!("{grown} bytes for {text} bytes of text");
    assert!(2 * grown <= 3 * text, "{grown} bytes for {text} bytes of text");
}
