//! Other views: tool calls, all changes, output, images, lists, search, selection, themes, lines.

use std::fmt::Write;
use std::hint::black_box;
use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use criterion::{Criterion, criterion_group, criterion_main};
use parlor::config::keymap::Keymap;
use parlor::core::{ItemBody, LineInput, MessagePart, Session, Setup, TerminalView, ToolCall, ViewCommand};
use parlor::host;
use parlor::model::{
    ContentBlock, DiffChange, FileDiff, Role, SessionKey, SessionWorkspace, ToolContent, ToolKind, ToolStatus,
};
use parlor::ui::App;
use parlor::ui::picture::{self, Drawn, Facts, Grid};
use parlor::ui::plain::PlainOutput;
use parlor::ui::render_context::Glyphs;
use parlor::ui::session_view::search::Search;
use parlor::ui::terminal::{self, Screen};
use parlor::ui::text::Line;
use parlor::ui::theme::{ColorSupport, Theme, ThemeSet};
use parlor::ui::transcript;
use parlor::ui::{self, Canvas, ViewState};
use ratatui::layout::{Position, Rect};

#[path = "support/rig.rs"]
mod rig;

use parlor::ui::dialogs::ChangesDialog;
use rig::{Rig, message, render};

/// Wide enough for side-by-side diffs.
const AREA: Rect = Rect { x: 0, y: 0, width: 160, height: 40 };

fn session() -> Session {
    Session::new(SessionKey(1), SessionWorkspace { cwd: "/".into(), ..SessionWorkspace::default() })
}

fn call(id: usize, kind: ToolKind) -> ToolCall {
    let mut tool = ToolCall::new(format!("call-{id}").as_str().into(), Instant::now());
    (tool.kind, tool.status, tool.title) = (kind, ToolStatus::Completed, format!("src/file_{id}.rs"));
    tool
}

fn edit(id: usize, lines: usize) -> ToolCall {
    let text = |word: &str| {
        (0..lines).fold(String::new(), |mut all, line| {
            let word = if line % 20 == 7 { word } else { "same" };
            let _ = writeln!(all, "    let {word}_{line} = compute({line});");
            all
        })
    };
    let change = DiffChange::Texts { old: Some(text("old").into()), new: text("new").into() };
    let mut tool = call(id, ToolKind::Edit);
    tool.content = vec![ToolContent::Diff(FileDiff { path: format!("src/file_{id}.rs").into(), change })];
    tool
}

/// A screen with this session in the active tab.
fn stage(session: Session) -> (App, ViewState) {
    let now = Instant::now();
    let (mut app, _) = parlor::ui::start(Setup::default(), now);
    app.layers.clear();
    if let Some(front) = app.state.sessions.get_mut(&app.state.active) {
        front.transcript = session.transcript;
    }
    (app, ViewState::new(&Keymap::defaults(), now))
}

fn tool_calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("page up over 2,000 tool calls");
    for (name, is_open) in [("folded", Some(false)), ("by rule", None), ("open", Some(true))] {
        let mut session = session();
        let mut rig = Rig::new(AREA);
        for n in 0..2000 {
            let tool = match n % 4 {
                0 => edit(n, 60),
                1 => {
                    let mut run = call(n, ToolKind::Execute);
                    run.input.command = Some("cargo test".into());
                    let output = "test case ... \u{1b}[32mok\u{1b}[0m\n".repeat(40);
                    run.content = vec![ToolContent::Block(ContentBlock::Text(output.into()))];
                    run
                }
                _ => call(n, ToolKind::Read),
            };
            let id = session.transcript.push(1, ItemBody::Tool(Box::new(tool)));
            rig.shown.set_open(id, is_open);
        }
        rig.frame(&session, AREA);
        group.bench_function(name, |b| b.iter(|| rig.page_up(&session, AREA)));
    }
    group.finish();
}

fn side_by_side(c: &mut Criterion) {
    let mut session = session();
    let id = session.transcript.push(1, ItemBody::Tool(Box::new(edit(0, 10_000))));
    let mut rig = Rig::new(AREA);
    rig.shown.set_open(id, Some(true));
    rig.frame(&session, AREA);
    c.bench_function("page up in a diff of 10,000 lines, side by side", |b| {
        b.iter(|| {
            rig.view.scroll_pages(-1);
            rig.frame(&session, AREA);
        });
    });
}

fn all_changes(c: &mut Criterion) {
    let mut group = c.benchmark_group("all changes");
    for files in [10, 500] {
        let mut session = session();
        for n in 0..files {
            session.transcript.push(1, ItemBody::Tool(Box::new(edit(n, 60))));
        }
        let (mut app, mut view) = stage(session);
        app.layers.push(ChangesDialog::default());
        let (theme, mut canvas, mut at) = (Theme::plain(), Canvas::new(AREA.width, AREA.height), 0);
        group.bench_function(format!("the next of {files} files"), |b| {
            b.iter(|| {
                at = (at + 1) % files;
                if let Some(dialog) = app.layers.top_mut::<ChangesDialog>() {
                    dialog.selected = at;
                }
                black_box(ui::draw_into(&app, &mut view, &theme, &mut canvas));
            });
        });
        group.bench_function(format!("scroll, {files} files"), |b| {
            b.iter(|| {
                view.apply(ViewCommand::ScrollDialog(1));
                black_box(ui::draw_into(&app, &mut view, &theme, &mut canvas));
            });
        });
    }
    group.finish();
}

fn output(c: &mut Criterion) {
    let mut group = c.benchmark_group("terminal output");
    for kilobytes in [10, 1000] {
        let text = "\u{1b}[32mok\u{1b}[0m a line of what a command says\r\n".repeat(kilobytes * 20);
        let mut view = TerminalView::new(true, Instant::now());
        view.output = text.into_bytes().into();
        let mut screen = Screen::default();
        screen.update(&view);
        group.bench_function(format!("a line more after {kilobytes} kB"), |b| {
            b.iter(|| {
                view.output.edit(|output| output.extend_from_slice(b"\rprogress 10%\rprogress 20%\r\n"));
                screen.update(&view);
                black_box(screen.tail(8));
            });
        });
        group.bench_function(format!("the end of {kilobytes} kB"), |b| {
            b.iter(|| black_box(terminal::tail_of(&view.output, true, 8)));
        });
    }
    group.finish();
}

fn pictures(c: &mut Criterion) {
    picture::show(Some(Grid { cell: (1, 2), max_pixels: u32::MAX }));
    let mut session = session();
    let data: Arc<str> = "AAAA".repeat(300_000).into();
    for _ in 0..20 {
        let ItemBody::Message(mut with_picture) = message(Role::Agent, "Look:") else { return };
        let image =
            ContentBlock::Image { data: Arc::clone(&data).into(), mime_type: "image/png".into(), uri: None };
        with_picture.parts.push(MessagePart::Block(image));
        session.transcript.push(1, ItemBody::Message(with_picture));
    }
    let mut rig = Rig::new(AREA);
    rig.frame(&session, AREA);
    while let Some(wanted) = picture::take_wanted() {
        let facts = Facts { pixels: (160, 80), format: "png", bytes: 900_000 };
        let rows = picture::PictureRows::Text(vec![Line::raw("▀".repeat(80)); 20]);
        picture::put(wanted.key, Ok(Drawn { facts, rows, saved_as: None, weight: 1600 }));
        rig.frame(&session, AREA);
    }
    c.bench_function("page up over 20 pictures of 900 kB", |b| b.iter(|| rig.page_up(&session, AREA)));
    picture::show(None);
}

/// Decoding of an image, which happens on a separate thread.
fn decoding(c: &mut Criterion) {
    let (width, height) = (1600, 1000);
    let pixel = |x: u32, y: u32| image::Rgb([x, y, x ^ y].map(|part| part.to_le_bytes()[0]));
    let picture = image::DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, pixel));
    let mut group = c.benchmark_group("picture of 1600x1000");
    for (name, format) in [("png", image::ImageFormat::Png), ("jpeg", image::ImageFormat::Jpeg)] {
        let mut bytes = Cursor::new(Vec::new());
        if picture.write_to(&mut bytes, format).is_err() {
            continue;
        }
        let text = BASE64_STANDARD.encode(bytes.into_inner());
        group.bench_function(format!("decode {name}"), |b| {
            b.iter(|| black_box(host::picture::read(&text)));
        });
    }
    group.finish();
}

/// A long transcript of prose.
fn talk(items: usize) -> Session {
    let mut session = session();
    for n in 0..items {
        let needle = if n % 100 == 0 { "needle" } else { "straw" };
        session
            .transcript
            .push(1, message(Role::Agent, &format!("Answer {n} with **{needle}** in it, and some words.")));
    }
    session
}

fn search(c: &mut Criterion) {
    let session = talk(100_000);
    let mut group = c.benchmark_group("search in 100,000 items");
    for (name, query, is_regex) in [("words", "needle", false), ("regex", "nee(dle|d)\\b", true)] {
        group.bench_function(format!("all of it, {name}"), |b| {
            b.iter(|| {
                let mut search = Search::new(None);
                (search.input, search.is_regex) = (LineInput::new(query), is_regex);
                search.restart();
                while search.is_pending() {
                    search.step(&session);
                }
                assert_eq!(search.total(), 1000);
            });
        });
    }
    let session = talk(100_000);
    let mut search = Search::new(None);
    search.input = LineInput::new("a");
    search.restart();
    while search.is_pending() {
        search.step(&session);
    }
    let mut rig = Rig::new(AREA);
    rig.shown.search = Some(Box::new(search));
    rig.frame(&session, AREA);
    group.bench_function("a frame full of hits", |b| b.iter(|| rig.page_up(&session, AREA)));
    group.finish();
}

fn selection(c: &mut Criterion) {
    let session = talk(10_000);
    let mut rig = Rig::new(AREA);
    rig.frame(&session, AREA);
    let mut now = Instant::now();
    c.bench_function("select a screen and take its text", |b| {
        b.iter(|| {
            now += Duration::from_secs(2);
            rig.view.press(Position::new(4, 1), now);
            rig.view.drag(Position::new(100, 38), now);
            rig.view.release();
            rig.frame(&session, AREA);
            let text = transcript::selected_text(&session, &rig.shown, &mut rig.view, &render(&rig.theme));
            assert!(text.is_some());
        });
    });
}

fn themes(c: &mut Criterion) {
    let set = ThemeSet::built_in();
    let mut group = c.benchmark_group("theme");
    for name in ["dark", "colour-blind-light"] {
        group.bench_function(name, |b| b.iter(|| black_box(set.load(name, ColorSupport::TrueColor))));
    }
    group.finish();
}

fn lines(c: &mut Criterion) {
    let mut group = c.benchmark_group("linear, a line more");
    for items in [100, 10_000] {
        let (mut app, _) = stage(talk(items));
        let mut linear = PlainOutput::new(Glyphs::plain());
        linear.advance(&app, Instant::now());
        let id = app
            .state
            .sessions
            .get_mut(&app.state.active)
            .map(|front| front.transcript.push(1, message(Role::Agent, "")));
        group.bench_function(format!("after {items} items"), |b| {
            b.iter(|| {
                if let (Some(id), Some(front)) = (id, app.state.sessions.get_mut(&app.state.active)) {
                    front.transcript.edit(id, |item| {
                        if let ItemBody::Message(message) = &mut item.body
                            && let Some(MessagePart::Text(text)) = message.parts.last_mut()
                        {
                            text.push_str("one more line of it\n");
                        }
                    });
                }
                black_box(linear.advance(&app, Instant::now()));
            });
        });
    }
    group.finish();
}

criterion_group!(
    benches,
    tool_calls,
    side_by_side,
    all_changes,
    output,
    pictures,
    decoding,
    search,
    selection,
    themes,
    lines
);
criterion_main!(benches);
