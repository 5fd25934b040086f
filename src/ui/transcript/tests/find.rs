//! Search matches on the screen: highlighted cells, position of the current match, cost.

#![allow(clippy::format_push_string, reason = "shorter code is preferred in tests")]

use ratatui::style::Modifier;

use super::*;
use crate::core::LineInput;
use crate::ui::session_view::search::{STEP_BYTES, Search};

const WIDTHS: [u16; 3] = [36, 76, 130];

fn search(session: &mut Viewed, query: &str, is_regex: bool) {
    let mut search = Search::new(None);
    search.is_regex = is_regex;
    search.input = LineInput::new(query);
    search.restart();
    while search.is_pending() {
        search.step(session);
    }
    session.view.search = Some(Box::new(search));
}

fn total(session: &Viewed) -> usize {
    session.view.search.as_ref().map_or(0, |search| search.total())
}

fn step(session: &mut Viewed) {
    session.view.search.as_mut().expect("a search is open").next();
}

/// The highlighted runs of the screen, with the current match in brackets. A match that spans rows has two
/// runs.
fn marks(buf: &Buffer) -> Vec<String> {
    let bg = dark().style(crate::ui::theme::Role::Selection).bg;
    let kind = |x: u16, y: u16| {
        let style = buf[(x, y)].style();
        let is_bold = style.add_modifier.contains(Modifier::BOLD);
        match style.add_modifier {
            modifier if is_bold && modifier.contains(Modifier::REVERSED) => 2,
            modifier if is_bold && modifier.contains(Modifier::UNDERLINED) && style.bg == bg => 1,
            _ => 0,
        }
    };
    let mut out: Vec<String> = Vec::new();
    for y in 0..buf.area.height {
        let mut before = 0;
        for x in 0..buf.area.width - 1 {
            let now = kind(x, y);
            if now != 0 && now != before {
                out.push(if now == 2 { "[".to_owned() } else { String::new() });
            }
            if now != before && before == 2 {
                let at = out.len() - 1 - usize::from(now != 0);
                out[at].push(']');
            }
            if now != 0 {
                out.last_mut().expect("one is open").push_str(buf[(x, y)].symbol());
            }
            before = now;
        }
    }
    out
}

fn shown(session: &Viewed, view: &mut TranscriptView, cols: u16, rows: u16) -> Vec<String> {
    view.show_hit();
    marks(&render(session, view, cols, rows))
}

#[test]
fn all_matches_are_highlighted_and_the_current_one_differs() {
    let mut session = session();
    push(&mut session, message(Role::User, "Where is the needle?"));
    push(
        &mut session,
        message(
            Role::Agent,
            "# The needle\n\n- **Needle** one\n- a `needle` and a [needle](https://needle.org)\n\n| a | needle |\n|---|---|\n| needle | b |\n\n```rust\nlet needle = 1;\n```\n",
        ),
    );
    for cols in WIDTHS {
        search(&mut session, "needle", false);
        assert_eq!(total(&session), 9);
        let mut view = TranscriptView::default();
        let all = shown(&session, &mut view, cols, 30);
        let wanted =
            ["[needle]", "needle", "Needle", "needle", "needle", "needle", "needle", "needle", "needle"];
        assert_eq!(all, wanted, "{cols}");
        for nth in 1..9 {
            step(&mut session);
            let now = shown(&session, &mut view, cols, 30);
            let at = now.iter().position(|run| run.starts_with('['));
            assert_eq!((now.len(), at), (9, Some(nth)), "{cols}");
        }
    }
}

#[test]
fn matches_can_span_rows() {
    let mut session = session();
    let padding = "word ".repeat(30);
    push(&mut session, message(Role::Agent, &format!("{padding}the *needle* in `the` hay {padding}")));
    let output = format!("{}needle{}\n", "x".repeat(70), "y".repeat(120));
    let mut call = tool(ToolKind::Execute, ToolStatus::Completed, "make");
    call.output_text = Some(output.into());
    let id = push_tool(&mut session, call);
    session.view.set_open(id, Some(true));
    for cols in 20..110 {
        search(&mut session, "the needle in the hay", false);
        let mut view = TranscriptView::default();
        let all = shown(&session, &mut view, cols, 60).join("");
        let all = all.replace(['[', ']'], "").replace(' ', "");
        assert_eq!(all, "theneedleinthehay", "{cols}");
        search(&mut session, "xneedley", false);
        let all = shown(&session, &mut TranscriptView::default(), cols, 60).join("");
        assert_eq!(all.replace(['[', ']'], ""), "xneedley", "{cols}");
    }
}

#[test]
fn matches_in_calls_are_visited_in_order() {
    let mut session = session();
    let mut call = tool(ToolKind::Execute, ToolStatus::Failed, "make");
    call.input.command = Some("make needle".to_owned());
    let lines: Vec<String> = (0..40).map(|line| format!("{line}: needle and needle")).collect();
    call.output_text = Some(lines.join("\n").into());
    let command = push_tool(&mut session, call);
    let mut call = tool(ToolKind::Edit, ToolStatus::Completed, "edit");
    let old = "fn a() {\n    needle(1);\n    keep(needle);\n}\n";
    let change = DiffChange::Texts { old: Some(old.into()), new: old.replace("(1)", "(2)").into() };
    call.content = vec![ToolContent::Diff(FileDiff { path: "/home/ada/shop/a.rs".into(), change })];
    let edit = push_tool(&mut session, call);
    for id in [command, edit] {
        session.view.set_open(id, Some(true));
    }
    for cols in WIDTHS {
        search(&mut session, "needle", false);
        assert_eq!(total(&session), 81 + 3);
        let mut view = TranscriptView::default();
        let mut before = None;
        for _ in 0..84 {
            let current = shown(&session, &mut view, cols, 12);
            let count = current.iter().filter(|run| run.starts_with('[')).count();
            assert_eq!(count, 1, "{cols}: {current:?}");
            let spot = view.spot.map(|spot| spot.order());
            assert!(spot > before, "{cols}: {spot:?} after {before:?}");
            before = spot;
            step(&mut session);
        }
    }
}

#[test]
fn matches_in_invisible_source_scroll_to_their_block() {
    let mut session = session();
    let text = format!("{}[link](https://hidden.example \"a secret title\") end\n", "para\n\n".repeat(50));
    push(&mut session, message(Role::Agent, &text));
    search(&mut session, "secret title", false);
    assert_eq!(total(&session), 1);
    let mut view = TranscriptView::default();
    view.scroll_top();
    view.show_hit();
    let buf = render(&session, &mut view, 60, 10);
    assert_eq!(marks(&buf), Vec::<String>::new());
    assert!(rows_of(&buf).join("\n").contains("link"), "{}", rows_of(&buf).join("\n"));
}

#[test]
fn finding_a_match_lays_out_one_screen() {
    let mut session = session();
    for item in 0..10_000 {
        let text = if item % 1_000 == 0 { "a needle here" } else { "some hay there" };
        push(&mut session, message(Role::Agent, &format!("{text}, {item}\n\nand more\n")));
    }
    search(&mut session, "needle", false);
    assert_eq!(total(&session), 10);
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 24);
    for _ in 0..10 {
        step(&mut session);
        assert_eq!(shown(&session, &mut view, 60, 24).len(), 1);
        assert!(view.layouts_last_frame() <= 24, "{}", view.layouts_last_frame());
        render(&session, &mut view, 60, 24);
        assert_eq!(view.layouts_last_frame(), 0);
    }
    assert_eq!(STEP_BYTES, 1 << 20);
}

#[test]
fn long_messages_are_drawn_only_around_the_match() {
    let mut session = session();
    let mut text = String::new();
    for line in 0..20_000 {
        text.push_str(&format!("paragraph {line}{}\n\n", if line == 15_000 { " needle" } else { "" }));
    }
    push(&mut session, message(Role::Agent, &text));
    search(&mut session, "needle", false);
    let mut view = TranscriptView::default();
    assert_eq!(shown(&session, &mut view, 60, 24), ["[needle]"]);
    assert!(view.cached_lines() < 400, "{}", view.cached_lines());
}

#[test]
fn the_current_match_is_found_at_a_new_width() {
    let mut session = session();
    push(&mut session, message(Role::Agent, &format!("{} needle", "word ".repeat(200))));
    search(&mut session, "needle", false);
    let mut view = TranscriptView::default();
    for cols in [80, 40, 120] {
        assert_eq!(marks(&render(&session, &mut view, cols, 60)), ["[needle]"], "{cols}");
    }
}

#[test]
fn labels_of_parlor_are_not_matched() {
    let mut session = session();
    let mut call = tool(ToolKind::Execute, ToolStatus::Completed, "make");
    call.input.command = Some("run thought".to_owned());
    push_tool(&mut session, call);
    push(&mut session, message(Role::Thought, "run"));
    for (query, count) in [("run", 1), ("thought", 1)] {
        search(&mut session, query, false);
        let all = marks(&render(&session, &mut TranscriptView::default(), 60, 10));
        assert_eq!(all.len(), count, "{query}: {all:?}");
    }
}
