//! Allocations per text chunk, and live heap with the memory limit of a transcript; measured in a separate process.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

use std::time::Instant;

use dhat::HeapStats;
use parlor::acp::codec::Codec;
use parlor::app::lifecycle::operations;
use parlor::app::{Effect, Event, Setup, State, update};
use parlor::config::keymap::Keymap;
use parlor::model::{
    AgentCommand, AgentEvent, AgentSpec, ConnId, ContentBlock, DiffChange, FileDiff, MarkPosition, Note,
    Patch, Reply, Role, ServiceEvent, SessionKey, SessionReply, SessionUpdate, StoreNews, ToolCallPatch,
    ToolContent, ToolStatus,
};
use parlor::ui::theme::Theme;
use parlor::ui::{self, Canvas, ViewState};

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
fn chunks_need_few_allocations_and_long_sessions_bounded_heap() {
    let _profiler = dhat::Profiler::builder().testing().build();
    check_allocations_per_chunk();
    check_heap_with_the_memory_limit();
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

/// A session whose agent streams, with a fast disk and a screen.
struct Stream {
    state: State,
    view: ViewState,
    canvas: Canvas,
    now: Instant,
    count: u64,
    /// Number of events that were sent to the store.
    written: i64,
}

/// The memory limit, and the resulting page size.
const LIMIT: usize = 1 << 20;
const PAGE: usize = LIMIT / 8;

impl Stream {
    fn new() -> Self {
        let now = Instant::now();
        let spec = AgentSpec { name: "stream".into(), command: "stream".into(), ..AgentSpec::default() };
        let setup = Setup {
            folder: "/".into(),
            start_with: Some(spec),
            keeps_sessions: true,
            memory_bytes: LIMIT,
            ..Setup::default()
        };
        let (state, _) = parlor::app::start(setup, now);
        let view = ViewState::new(&Keymap::defaults(), now);
        let canvas = Canvas::new(100, 30);
        let mut stream = Self { state, view, canvas, now, count: 0, written: 0 };
        let opening = stream.play(Event::Agent(ConnId(1), AgentEvent::Ready(Box::default())));
        let call = opening.into_iter().find_map(|effect| match effect {
            Effect::Send(_, AgentCommand::Call(tag, _)) => Some(tag),
            _ => None,
        });
        let reply = SessionReply { id: Some("s".into()), ..SessionReply::default() };
        let opened = AgentEvent::Replied(call.expect("the session is opened"), Ok(Reply::Session(reply)));
        stream.play(Event::Agent(ConnId(1), opened));
        let mut fx = Vec::new();
        operations::submit(&mut stream.state, SessionKey(1), "go".into(), now, &mut fx);
        let uid = StoreNews::KeptAs { key: SessionKey(1), uid: "k".into() };
        stream.play(Event::Service(ServiceEvent::Store(Box::new(uid))));
        stream
    }

    /// Plays an event; its notes count as written immediately.
    fn play(&mut self, event: Event) -> Vec<Effect> {
        let mut fx = update(&mut self.state, event, self.now);
        let mut marks = Vec::new();
        for effect in &fx {
            let Effect::Keep { notes, .. } = effect else { continue };
            for note in notes {
                match note {
                    Note::Event { .. } => self.written += 1,
                    Note::Mark { mark, .. } => {
                        marks.push(MarkPosition { mark: *mark, seq: self.written, is_whole: true });
                    }
                    _ => {}
                }
            }
        }
        if let Some(upto) = marks.last().map(|mark| mark.mark) {
            let news = StoreNews::Written { key: SessionKey(1), upto, marks };
            fx.extend(self.play(Event::Service(ServiceEvent::Store(Box::new(news)))));
        }
        fx
    }

    /// Messages, thoughts, tool calls with output and with changes, in one turn.
    fn stream(&mut self, updates: u64) {
        for _ in 0..updates {
            let n = self.count;
            self.count += 1;
            let update = match n % 5 {
                0 => SessionUpdate::Chunk {
                    role: Role::Agent,
                    message: Some(format!("m{n}").as_str().into()),
                    text: format!("## Step {n}\n\nSome **text** with `code` in it.\n"),
                },
                1 => SessionUpdate::Chunk { role: Role::Thought, message: None, text: format!("so {n}") },
                2 | 3 => {
                    let mut patch = ToolCallPatch::new(format!("t{}", n - n % 5).as_str().into());
                    patch.is_announcement = n % 5 == 2;
                    patch.title = Patch::Set(format!("cargo test {n}"));
                    let is_over = n % 5 == 3;
                    let status = if is_over { ToolStatus::Completed } else { ToolStatus::InProgress };
                    patch.status = Patch::Set(status);
                    let output = ContentBlock::Text("ok, all of it\n".repeat(8));
                    patch.content = Patch::Set(vec![ToolContent::Block(output)]);
                    SessionUpdate::Tool(Box::new(patch))
                }
                _ => {
                    let mut patch = ToolCallPatch::new(format!("e{n}").as_str().into());
                    (patch.is_announcement, patch.status) = (true, Patch::Set(ToolStatus::Completed));
                    let new = format!("fn step_{n}() {{}}\n").repeat(4).into();
                    let change = DiffChange::Texts { old: None, new };
                    let diff = FileDiff { path: format!("/step_{n}.txt").into(), change };
                    patch.content = Patch::Set(vec![ToolContent::Diff(diff)]);
                    SessionUpdate::Tool(Box::new(patch))
                }
            };
            self.play(Event::Agent(ConnId(1), AgentEvent::Update("s".into(), update)));
            if n.is_multiple_of(20) {
                ui::draw_into(&self.state, &mut self.view, &Theme::plain(), &mut self.canvas);
            }
        }
    }

    /// Streams until pages were just removed, so that two lengths are compared at the same point.
    fn stream_until_pages_go(&mut self) {
        let mut before = self.items();
        loop {
            self.stream(5);
            let now = self.items();
            if now < before {
                return;
            }
            before = now;
        }
    }

    fn items(&self) -> usize {
        self.state.active_session().map_or(0, |session| session.transcript.items().len())
    }
}

/// Number of updates after the first measurement.
const MORE: u32 = 45_000;
/// Memory for an item that is only on the disk, so that an update finds it; at most one per update.
const THING_BYTES: usize = 16;

/// Compares the live heap after some updates and after four times as many.
fn check_heap_with_the_memory_limit() {
    let mut stream = Stream::new();
    stream.stream(15_000);
    stream.stream_until_pages_go();
    let (short, items) = (HeapStats::get().curr_bytes, stream.items());
    stream.stream(MORE.into());
    stream.stream_until_pages_go();
    let (long, now) = (HeapStats::get().curr_bytes, stream.items());
    println!("{short} bytes with {items} items, {long} bytes with {now} items");
    assert!(items.abs_diff(now) < 200, "{items} items, then {now}");
    assert!(long <= short + PAGE + MORE as usize * THING_BYTES, "{short} bytes, then {long}");
    assert!(long < 8 * LIMIT, "{long} bytes for a limit of {LIMIT}");
}
