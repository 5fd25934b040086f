//! Frames of the transcript: at rest, streaming, scrolling, resizing, a large diff.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use parlor::config::keymap::Keymap;
use parlor::core::{ItemBody, MessagePart, Session, Setup, ToolCall};
use parlor::model::{
    DiffChange, FileDiff, Role, SessionKey, SessionWorkspace, ToolContent, ToolKind, ToolStatus,
};
use parlor::runtime::paint::Painter;
use parlor::ui::theme::Theme;
use parlor::ui::{self, Canvas, ViewState};
use ratatui::layout::Rect;

#[path = "support/rig.rs"]
mod rig;

use rig::{Rig, message};

const AREA: Rect = Rect { x: 0, y: 0, width: 120, height: 40 };

fn session(items: usize) -> Session {
    let workspace = SessionWorkspace { cwd: "/".into(), ..SessionWorkspace::default() };
    let mut session = Session::new(SessionKey(1), workspace);
    for n in 0..items {
        let body = match n % 3 {
            0 => message(Role::User, "and now the next one, please"),
            1 => message(Role::Agent, &format!("Answer {n} with **some** words.\n\n- a list\n- of `two`\n")),
            _ => {
                let mut tool = ToolCall::new(format!("call-{n}").as_str().into(), Instant::now());
                (tool.kind, tool.status, tool.title) =
                    (ToolKind::Read, ToolStatus::Completed, format!("src/file_{n}.rs"));
                ItemBody::Tool(Box::new(tool))
            }
        };
        session.transcript.push(1, body);
    }
    session
}

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame 120x40");
    for items in [300, 100_000] {
        let session = session(items);
        let mut rig = Rig::new(AREA);
        group.bench_function(format!("at rest, {items} items"), |b| b.iter(|| rig.frame(&session, AREA)));
        group.bench_function(format!("page up, {items} items"), |b| b.iter(|| rig.page_up(&session, AREA)));
        rig.view.scroll_end();
        let mut width = 0;
        group.bench_function(format!("resize, {items} items"), |b| {
            b.iter(|| {
                width = (width + 1) % 40;
                rig.frame(&session, Rect { width: 80 + width, ..AREA });
            });
        });
    }
    group.finish();
}

fn streaming(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame with a chunk of 24 bytes");
    for kilobytes in [10, 1000] {
        let mut session = session(30);
        let text = "Some **text** of a long answer, with `code` in it.\n\n".repeat(kilobytes * 20);
        let id = session.transcript.push(1, message(Role::Agent, &text));
        session.transcript.edit(id, |item| {
            if let ItemBody::Message(message) = &mut item.body {
                message.is_open = true;
            }
        });
        let mut rig = Rig::new(AREA);
        rig.frame(&session, AREA);
        let mut count = 0;
        group.bench_function(format!("message of {kilobytes} kB"), |b| {
            b.iter(|| {
                count += 1;
                session.transcript.edit(id, |item| {
                    if let ItemBody::Message(message) = &mut item.body
                        && let Some(MessagePart::Text(text)) = message.parts.last_mut()
                    {
                        text.push_str("some more words follow, ");
                        if count % 10 == 0 {
                            text.push_str("\n\n");
                        }
                    }
                });
                rig.frame(&session, AREA);
            });
        });
    }
    group.finish();
}

/// The whole screen with its terminal output, with and without the previous frame.
fn screens(c: &mut Criterion) {
    let mut group = c.benchmark_group("screen 120x40 with a chunk of 24 bytes");
    for (name, is_saved) in [("over the last one", true), ("on nothing", false)] {
        let now = Instant::now();
        let (mut app, _) = parlor::ui::start(Setup::default(), now);
        app.layers.clear();
        let mut talk = session(30);
        let text = "Some **text** of a long answer, with `code` in it. ".repeat(8);
        let id = talk.transcript.push(1, message(Role::Agent, &text));
        if let Some(front) = app.state.sessions.get_mut(&app.state.active) {
            front.transcript = talk.transcript;
        }
        let mut view = ViewState::new(&Keymap::defaults(), now);
        let (theme, mut painter) = (Theme::plain(), Painter::new(AREA.width, AREA.height));
        let mut count = 0_u64;
        group.bench_function(name, |b| {
            b.iter(|| {
                count += 1;
                if let Some(front) = app.state.sessions.get_mut(&app.state.active) {
                    front.transcript.edit(id, |item| {
                        if let ItemBody::Message(message) = &mut item.body
                            && let Some(MessagePart::Text(text)) = message.parts.last_mut()
                        {
                            text.push_str(if count.is_multiple_of(20) {
                                "\n\n"
                            } else {
                                "some more words follow, "
                            });
                        }
                    });
                }
                if !is_saved {
                    *painter.canvas() = Canvas::new(AREA.width, AREA.height);
                }
                let cursor = ui::draw_into(&app, &mut view, &theme, painter.canvas());
                black_box(painter.finish(cursor));
            });
        });
    }
    group.finish();
}

fn diffs(c: &mut Criterion) {
    let mut old = String::new();
    let mut new = String::new();
    for n in 0..10_000 {
        let _ = writeln!(old, "    let value_{n} = compute({n});");
        let _ = writeln!(new, "    let value_{n} = compute({});", n + n % 7 / 6);
    }
    let mut session = session(3);
    let mut tool = ToolCall::new("edit".into(), Instant::now());
    (tool.kind, tool.status) = (ToolKind::Edit, ToolStatus::Completed);
    let change = DiffChange::Texts { old: Some(old.into()), new: new.into() };
    tool.content = vec![ToolContent::Diff(FileDiff { path: "big.txt".into(), change })];
    let id = session.transcript.push(1, ItemBody::Tool(Box::new(tool)));
    let open = || {
        let mut rig = Rig::new(AREA);
        rig.shown.set_open(id, Some(true));
        rig
    };
    let mut group = c.benchmark_group("diff of 10,000 lines");
    group.bench_function("open", |b| b.iter(|| open().frame(&session, AREA)));
    let mut rig = open();
    rig.frame(&session, AREA);
    group.bench_function("page up", |b| {
        b.iter(|| {
            rig.view.scroll_pages(-1);
            rig.frame(&session, AREA);
        });
    });
    group.finish();
}

criterion_group!(benches, frames, streaming, screens, diffs);
criterion_main!(benches);
