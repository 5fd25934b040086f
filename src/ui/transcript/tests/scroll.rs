//! Following the end, staying in place, and the cost of layout.

#![allow(clippy::format_push_string, clippy::format_collect, reason = "shorter code is preferred in tests")]

use super::*;

/// Numbered items of several kinds without groups.
fn long_session(count: usize) -> Viewed {
    let mut session = session();
    for n in 0..count {
        match n % 3 {
            0 => push(&mut session, message(Role::User, &format!("question {n}"))),
            1 => push(&mut session, message(Role::Agent, &format!("answer {n}\n\nwith **two** paragraphs"))),
            _ => push_tool(
                &mut session,
                tool(ToolKind::Fetch, ToolStatus::Completed, &format!("http://e/{n}")),
            ),
        };
    }
    session
}

fn text(buf: &Buffer) -> String {
    rows_of(buf).join("\n")
}

#[test]
fn the_end_is_followed_and_only_the_screen_is_laid_out() {
    let mut session = long_session(10_000);
    let mut view = TranscriptView::default();
    let rows = 30;
    let buf = render(&session, &mut view, 80, rows);
    assert!(text(&buf).contains("answer 9999") || text(&buf).contains("question 9999"));
    let shown = rows_of(&buf).iter().filter(|row| !row.trim().is_empty()).count();
    assert!(view.layouts_last_frame() <= shown + 2, "{} for {shown}", view.layouts_last_frame());
    render(&session, &mut view, 80, rows);
    assert_eq!(view.layouts_last_frame(), 0);
    let last = push(&mut session, message(Role::User, "the newest"));
    let buf = render(&session, &mut view, 80, rows);
    assert!(rows_of(&buf).last().unwrap().contains("the newest"));
    assert_eq!(view.layouts_last_frame(), 1);
    assert_eq!(view.item_at(rows - 1), Some(last));
}

#[test]
fn scrolling_anywhere_lays_out_one_screen() {
    let session = long_session(10_000);
    let mut view = TranscriptView::default();
    render(&session, &mut view, 80, 30);
    for step in 0..200 {
        match step % 5 {
            0 => view.show(ItemId(step * 49)),
            1 => view.scroll_pages(-1),
            2 => view.scroll_pages(2),
            3 => view.scroll_lines(-3),
            _ => view.scroll_top(),
        }
        render(&session, &mut view, if step % 7 == 0 { 50 } else { 80 }, 30);
        assert!(view.layouts_last_frame() <= 30 + 45, "{}", view.layouts_last_frame());
        assert!(view.cached_lines() <= 30 * 12, "{}", view.cached_lines());
    }
}

/// Lines drawn for the first frame, for new text in the open block, for an idle frame, and for scrolling up.
fn lines_made(session: &mut Viewed) -> [usize; 4] {
    let open = push(session, open_message(Role::Agent, "A paragraph\n\nAnother one\n\nA third"));
    let mut view = TranscriptView::default();
    let made = |session: &Viewed, view: &mut TranscriptView| {
        render(session, view, 80, 30);
        view.lines_last_frame()
    };
    let first = made(session, &mut view);
    session.transcript.edit(open, |item| {
        if let ItemBody::Message(message) = &mut item.body
            && let Some(MessagePart::Text(text)) = message.parts.last_mut()
        {
            text.push_str(" word");
        }
    });
    let chunk = made(session, &mut view);
    let rest = made(session, &mut view);
    view.scroll_pages(-1);
    [first, chunk, rest, made(session, &mut view)]
}

#[test]
fn drawn_lines_do_not_depend_on_the_transcript_length() {
    let short = lines_made(&mut long_session(120));
    let [first, chunk, rest, page] = short;
    assert!((10..=60).contains(&first), "{first}");
    assert!((1..=4).contains(&chunk), "only the open block: {chunk}");
    assert_eq!(rest, 0);
    assert!((10..=60).contains(&page), "{page}");
    assert_eq!(lines_made(&mut long_session(12_000)), short);

    // One message may be the entire transcript.
    let of_message = |blocks: usize| {
        let mut session = session();
        let text: String = (0..blocks).map(|n| format!("paragraph {n} of it\n\n")).collect();
        push(&mut session, message(Role::Agent, &text));
        lines_made(&mut session)
    };
    let few = of_message(100);
    assert!(few.iter().sum::<usize>() > 20, "{few:?}");
    assert_eq!(of_message(10_000), few);
}

#[test]
fn scrolled_view_does_not_move_while_text_streams() {
    let mut session = long_session(60);
    let open = push(&mut session, open_message(Role::Agent, "begin"));
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 20);
    view.scroll_lines(-7);
    let before = rows_text_without_bar(&render(&session, &mut view, 60, 20));
    assert!(!view.is_following());
    for n in 0..40 {
        session.transcript.edit(open, |item| {
            if let ItemBody::Message(message) = &mut item.body
                && let Some(MessagePart::Text(text)) = message.parts.last_mut()
            {
                text.push_str(&format!("\n\nmore {n}"));
            }
        });
        push(&mut session, message(Role::User, "and more"));
        let now = rows_text_without_bar(&render(&session, &mut view, 60, 20));
        assert_eq!(now[..12], before[..12]);
    }
    assert_eq!(view.news(), (40, 80));
    view.scroll_end();
    let buf = render(&session, &mut view, 60, 20);
    assert!(view.is_following() && view.news() == (0, 0));
    assert!(rows_of(&buf).last().unwrap().contains("and more"));
}

fn rows_text_without_bar(buf: &Buffer) -> Vec<String> {
    rows_of(buf)
        .into_iter()
        .map(|row| row.chars().take(58).collect::<String>().trim_end().to_owned())
        .collect()
}

#[test]
fn scrolling_down_to_the_end_follows_again() {
    let session = long_session(100);
    let mut view = TranscriptView::default();
    let end = text(&render(&session, &mut view, 60, 20));
    view.scroll_pages(-3);
    render(&session, &mut view, 60, 20);
    assert!(!view.is_following());
    view.scroll_pages(3);
    assert_eq!(text(&render(&session, &mut view, 60, 20)), end);
    assert!(view.is_following());
    view.scroll_top();
    let buf = render(&session, &mut view, 60, 20);
    assert!(rows_of(&buf)[0].contains("question 0"));
    view.scroll_lines(i32::MIN);
    assert_eq!(text(&render(&session, &mut view, 60, 20)), text(&buf));
}

#[test]
fn scrolling_one_line_moves_one_row() {
    let session = long_session(50);
    let mut view = TranscriptView::default();
    view.scroll_top();
    let mut before = rows_text_without_bar(&render(&session, &mut view, 60, 15));
    for _ in 0..40 {
        view.scroll_lines(1);
        let now = rows_text_without_bar(&render(&session, &mut view, 60, 15));
        assert_eq!(now[..14], before[1..]);
        before = now;
    }
    for _ in 0..40 {
        view.scroll_lines(-1);
        let now = rows_text_without_bar(&render(&session, &mut view, 60, 15));
        assert_eq!(now[1..], before[..14]);
        before = now;
    }
}

#[test]
fn items_can_be_scrolled_into_view() {
    let session = long_session(300);
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 20);
    view.show(ItemId(150));
    let buf = render(&session, &mut view, 60, 20);
    assert!(text(&buf).contains("question 150"));
    view.show(ItemId(152));
    assert_eq!(text(&render(&session, &mut view, 60, 20)), text(&buf));
}

#[test]
fn one_long_message_lays_out_one_screen() {
    let mut session = session();
    let source: String = (0..20_000).map(|n| format!("para {n}\n\n")).collect();
    push(&mut session, message(Role::Agent, &source));
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 20);
    assert!(view.cached_lines() < 60);
    view.scroll_pages(-100);
    render(&session, &mut view, 60, 20);
    assert!(view.cached_lines() < 120, "{}", view.cached_lines());
}

#[test]
fn cleared_transcript_shows_the_new_items() {
    let mut session = session();
    push(&mut session, message(Role::Agent, "old text here"));
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 20);
    session.transcript.clear();
    let ItemBody::Message(mut new) = message(Role::Agent, "new text that is longer") else { unreachable!() };
    new.began += Duration::from_millis(1);
    push(&mut session, ItemBody::Message(new));
    assert!(text(&render(&session, &mut view, 60, 20)).contains("new text that is longer"));
}

#[test]
fn resizes_show_the_same_item() {
    let session = long_session(300);
    let mut view = TranscriptView::default();
    render(&session, &mut view, 80, 20);
    view.show(ItemId(150));
    render(&session, &mut view, 80, 20);
    for cols in [40, 120, 36, 9, 3, 80] {
        let buf = render(&session, &mut view, cols, 20);
        assert!(cols < 30 || text(&buf).contains("question 150"), "{cols}");
    }
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn cells_contain_no_unsafe_characters(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "\u{1b}[31m", "\u{202e}", "\u{200b}", "\r", "\t", "日本", "👩‍👩‍👧‍👦", "a b", "\u{0}", "\u{9b}2J", "```\n", "\n", "| a |\n|---|\n",
                "\u{1b}]0;x\u{7}", "1️⃣", "e\u{301}\u{301}", "- ", "> ", "\u{fe0f}", "\u{200d}",
            ]), 0..30),
            cols in 9_u16..70,
        ) {
            let text = pieces.concat();
            let mut session = session();
            for role in [Role::User, Role::Agent, Role::Thought] {
                push(&mut session, message(role, &text));
            }
            let mut call = tool(ToolKind::Edit, ToolStatus::Failed, &text);
            call.content = vec![
                ToolContent::Block(ContentBlock::Text(text.clone().into())),
                ToolContent::Diff(FileDiff {
                    path: text.clone().into(),
                    change: DiffChange::Texts { old: Some("x\ny".into()), new: text.as_str().into() },
                }),
                ToolContent::Unknown(Raw(text.as_str().into())),
            ];
            call.output_text = Some(text.clone().into());
            push_tool(&mut session, call);
            let mut run = tool(ToolKind::Execute, ToolStatus::Completed, &text);
            run.output_text = Some(text.clone().into());
            push_tool(&mut session, run);
            let detail = Some(text.clone());
            push(&mut session, ItemBody::notice(Severity::Error, text.clone(), detail));
            push(&mut session, ItemBody::Answered { question: text.clone(), answer: text.clone(), by: crate::model::Decider::User });
            push(&mut session, ItemBody::Raw { name: text.clone(), raw: Raw(text.as_str().into()) });
            let ids: Vec<ItemId> = session.transcript.items().iter().map(|item| item.id).collect();
            for id in ids.into_iter().step_by(2) {
                session.view.set_open(id, Some(true));
            }
            let mut view = TranscriptView::default();
            let buf = render(&session, &mut view, cols, 120);
            for cell in buf.content() {
                let symbol = cell.symbol();
                prop_assert!(!symbol.chars().any(char::is_control), "{:?}", symbol);
                prop_assert!(!symbol.contains(['\u{202e}', '\u{200b}']), "{:?}", symbol);
            }
        }
    }
}

#[test]
fn expanded_large_changes_lay_out_one_screen() {
    let mut session = session();
    let lines = |word: &str| (0..10_000).map(|at| format!("{word} {at}\n")).collect::<Vec<_>>().concat();
    let mut edit = tool(ToolKind::Edit, ToolStatus::Completed, "");
    let change = DiffChange::Texts { old: Some(lines("old").into()), new: lines("new").into() };
    edit.content = vec![ToolContent::Diff(FileDiff { path: "a.txt".into(), change })];
    let item = push_tool(&mut session, edit);
    session.view.set_open(item, Some(true));
    let mut view = TranscriptView::default();
    let cached = |view: &mut TranscriptView| {
        render(&session, view, 100, 30);
        view.cached_lines()
    };
    cached(&mut view);
    assert_eq!(crate::ui::diff::cache::work_off(), 1, "the frame does not wait for the diff");
    // Groups of 48 rows: the visible ones, and one at each edge.
    assert!(cached(&mut view) <= 4 * 48, "at its end: {}", view.cached_lines());
    // Groups that were scrolled past may remain cached, up to the limit of the view.
    for pages in [-1, -50, -100, 30] {
        view.scroll_pages(pages);
        assert!(cached(&mut view) <= (3 * 30 + 16) * 48, "{pages}: {}", view.cached_lines());
    }
    view.scroll_top();
    cached(&mut view);
    assert!(rows_of(&render(&session, &mut view, 100, 30))[1].trim().starts_with("− old 0 "));
}

/// First row and length of the scroll bar's thumb.
fn thumb(buf: &Buffer) -> (u16, u16) {
    let x = buf.area.right() - 1;
    let rows: Vec<u16> = (0..buf.area.height).filter(|y| buf[(x, *y)].symbol() == "▐").collect();
    (rows.first().copied().unwrap_or(u16::MAX), u16::try_from(rows.len()).unwrap())
}

#[test]
fn scroll_bar_is_proportional_to_rows() {
    let mut session = session();
    for n in 0..5 {
        push(&mut session, message(Role::User, &format!("question {n}")));
    }
    let long: String = (0..400).map(|n| format!("paragraph {n} with some words in it\n\n")).collect();
    push(&mut session, message(Role::Agent, &long));
    push(&mut session, message(Role::User, "the last one"));
    let mut view = TranscriptView::default();
    let buf = render(&session, &mut view, 60, 20);
    assert_eq!(thumb(&buf), (19, 1), "20 of about 800 rows, at the end");
    // Within the long item, which is one of seven.
    view.scroll_lines(-400);
    let (first, rows) = thumb(&render(&session, &mut view, 60, 20));
    assert!((8..=11).contains(&first) && rows == 1, "{first}");
    let mut last = first;
    for _ in 0..20 {
        view.scroll_pages(-1);
        let (first, _) = thumb(&render(&session, &mut view, 60, 20));
        assert!(first <= last, "the thumb moves monotonically: {first} after {last}");
        last = first;
    }
    assert!((1..=2).contains(&last), "{last}");
    view.scroll_top();
    assert_eq!(thumb(&render(&session, &mut view, 60, 20)).0, 0);
}

#[test]
fn clicking_a_gap_expands_it() {
    use ratatui::layout::Position;
    let numbered: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let new = numbered.replace("line 20\n", "line twenty\n").replace("line 50\n", "line fifty\n");
    let mut call = tool(ToolKind::Edit, ToolStatus::Completed, "Edit a.txt");
    let change = DiffChange::Texts { old: Some(numbered.into()), new: new.into() };
    call.content = vec![ToolContent::Diff(FileDiff { path: "a.txt".into(), change })];
    let mut session = session();
    let id = push_tool(&mut session, call);
    let mut view = TranscriptView::default();
    let buf = render(&session, &mut view, 60, 40);
    let rows = rows_of(&buf);
    let at = rows.iter().position(|row| row.contains("… 23 unchanged lines")).expect("a gap between");
    let at = Position::new(9, u16::try_from(at).unwrap());
    view.press(at, start());
    let released = view.release();
    let gap = Gap { change: 0, line: 23 };
    assert_eq!(released, Released::Gap(id, gap));
    assert_eq!(view.gap_on_screen(Some(id)), Some((id, Gap { change: 0, line: 0 })), "the first visible gap");
    assert_eq!(view.gap_on_screen(Some(ItemId(9))), None);
    session.view.edit(id, |item| (item.open_gaps, item.is_open) = (vec![gap], Some(true)));
    let shown = rows_of(&render(&session, &mut view, 60, 60)).join("\n");
    assert!(shown.contains("line 30") && shown.contains("… 16 unchanged lines"), "{shown}");
    assert!(!shown.contains("line 10\n"));
}

#[test]
fn wide_tables_scroll_together_up_to_a_limit() {
    let mut session = session();
    let head: String = (0..12).map(|n| format!("| column {n} ")).collect();
    let cells: String = (0..12).map(|n| format!("| value {n} ")).collect();
    let table = format!("{head}|\n{}|\n{cells}|\n", "|---".repeat(12));
    push(&mut session, message(Role::Agent, &table));
    let mut view = TranscriptView::default();
    let shown = |view: &mut TranscriptView| rows_of(&render(&session, view, 50, 12)).join("\n");
    let first = shown(&mut view);
    assert!(first.contains("column 0") && first.contains("more columns >"), "{first}");
    view.scroll_sideways(2);
    let second = shown(&mut view);
    assert!(second.contains("column 0") && second.contains("< 2 more columns"), "{second}");
    assert!(!second.contains("column 1 "), "{second}");
    view.scroll_sideways(99);
    let last = shown(&mut view);
    assert!(last.contains("value 11") && !last.contains('>'), "{last}");
    view.scroll_sideways(-99);
    assert_eq!(shown(&mut view), first);
}

#[test]
fn new_lines_of_an_open_message_are_counted() {
    let mut session = session();
    let text: String = (0..80).map(|n| format!("line {n}\n\n")).collect();
    let id = push(&mut session, open_message(Role::Agent, &text));
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 20);
    view.scroll_pages(-1);
    render(&session, &mut view, 60, 20);
    assert_eq!(view.news(), (0, 0));
    for times in 1..=3 {
        session.transcript.edit(id, |item| {
            if let ItemBody::Message(message) = &mut item.body
                && let Some(MessagePart::Text(text)) = message.parts.last_mut()
            {
                text.push_str("one\ntwo\nthree\n");
            }
        });
        render(&session, &mut view, 60, 20);
        assert_eq!(view.news(), (0, 3 * times));
    }
    view.scroll_end();
    render(&session, &mut view, 60, 20);
    assert_eq!(view.news(), (0, 0));
}

#[test]
fn removing_a_filter_restores_the_scroll_position() {
    use crate::core::state::outline::Only;
    let mut session = long_session(3000);
    let mut failed = tool(ToolKind::Fetch, ToolStatus::Failed, "http://broken");
    failed.id = "broken".into();
    let id = push_tool(&mut session, failed);
    for n in 0..300 {
        push(&mut session, message(Role::Agent, &format!("later {n}")));
    }
    let mut view = TranscriptView::default();
    render(&session, &mut view, 60, 20);
    view.scroll_lines(-333);
    let before = rows_of(&render(&session, &mut view, 60, 20));
    session.view.only = Some(Only::Failures);
    let shown = rows_of(&render(&session, &mut view, 60, 20));
    let rows: Vec<&String> = shown.iter().filter(|row| !row.trim().is_empty()).collect();
    assert_eq!(rows.len(), 1, "{shown:?}");
    assert!(rows[0].contains("http://broken"));
    // A new failure is added, and an existing item fails.
    push_tool(&mut session, tool(ToolKind::Execute, ToolStatus::Failed, "make"));
    push(&mut session, message(Role::Agent, "no failure"));
    let text = rows_of(&render(&session, &mut view, 60, 20)).join("\n");
    assert!(text.contains("make") && !text.contains("no failure"), "{text}");
    session.view.only = Some(Only::Prompts);
    let text = rows_of(&render(&session, &mut view, 60, 20)).join("\n");
    assert!(text.contains("question") && !text.contains("answer"), "{text}");
    assert!(view.layouts_last_frame() <= 22, "{}", view.layouts_last_frame());
    view.scroll_top();
    assert!(rows_of(&render(&session, &mut view, 60, 20)).join("\n").contains("question 0"));
    session.view.only = None;
    assert_eq!(rows_of(&render(&session, &mut view, 60, 20)), before);
    // Scrolling from the filtered view does not restore the position.
    session.view.only = Some(Only::Failures);
    render(&session, &mut view, 60, 20);
    session.view.only = None;
    view.show_at_top(id);
    let rows = rows_of(&render(&session, &mut view, 60, 20));
    assert!(rows.iter().take(2).any(|row| row.contains("http://broken")), "{rows:?}");
}

#[test]
fn long_outputs_that_were_sent_with_a_prompt_are_folded() {
    let output: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    let mut session = session();
    let mut body = message(Role::User, "see @!1");
    if let ItemBody::Message(message) = &mut body {
        message.parts.push(MessagePart::Block(ContentBlock::Text(output.into())));
    }
    let id = push(&mut session, body);
    let mut view = TranscriptView::default();
    let shown = rows_of(&render(&session, &mut view, 60, 40)).join("\n");
    assert!(shown.contains("see @!1") && shown.contains("line 12") && shown.contains("line 500"), "{shown}");
    assert!(shown.contains("… 484 lines") && !shown.contains("line 300"), "{shown}");
    session.view.set_open(id, Some(true));
    let shown = rows_of(&render(&session, &mut view, 60, 520)).join("\n");
    assert!(shown.contains("see @!1") && shown.contains("line 300"), "{shown}");
}

#[test]
fn long_prompts_are_folded_in_the_middle() {
    use ratatui::layout::Position;
    let text: String = (1..=2000).map(|n| format!("pasted {n}\n")).collect();
    let mut session = session();
    let id = push(&mut session, message(Role::User, &text));
    let mut view = TranscriptView::default();
    let rows = rows_of(&render(&session, &mut view, 60, 40));
    let shown: Vec<&str> =
        rows.iter().map(|row| row.trim_start_matches([' ', '▌'])).filter(|row| !row.is_empty()).collect();
    assert_eq!(shown.len(), 17, "{shown:?}");
    assert_eq!(
        (shown[0], shown[11], shown[12], shown[13], shown[16]),
        ("pasted 1", "pasted 12", "… 1,984 lines", "pasted 1997", "pasted 2000")
    );
    // A click on the omitted part expands it.
    let at = rows.iter().position(|row| row.contains("1,984")).unwrap();
    view.press(Position::new(6, u16::try_from(at).unwrap()), start());
    assert_eq!(view.release(), Released::Click(id));
    session.view.set_open(id, Some(true));
    render(&session, &mut view, 60, 40);
    view.scroll_top();
    let mut seen = Vec::new();
    for _ in 0..60 {
        let rows = rows_of(&render(&session, &mut view, 60, 40));
        seen.extend(
            rows.iter().filter_map(|row| {
                row.split("pasted ").nth(1)?.split_whitespace().next()?.parse::<u32>().ok()
            }),
        );
        view.scroll_pages(1);
    }
    seen.dedup();
    let mut all = seen.clone();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2000, "each line is shown");
    // The same for one very long line.
    let id = push(&mut session, message(Role::User, &"wörd ".repeat(20_000)));
    view.scroll_end();
    let rows = rows_of(&render(&session, &mut view, 60, 200));
    assert!(rows.iter().any(|row| row.contains("KiB more")), "{rows:?}");
    session.view.set_open(id, Some(true));
    let rows = rows_of(&render(&session, &mut view, 60, 40));
    assert!(rows.iter().all(|row| !row.contains("KiB more")));
}

#[test]
fn slightly_long_output_is_shown_completely() {
    let shown = |count: usize| {
        let mut session = session();
        let mut call = tool(ToolKind::Execute, ToolStatus::Completed, "make");
        call.output_text = Some((1..=count).map(|n| format!("out {n}\n")).collect::<String>().into());
        push_tool(&mut session, call);
        let rows = rows_of(&render(&session, &mut TranscriptView::default(), 60, 14));
        rows.iter().map(|row| row.trim().to_owned()).filter(|row| !row.is_empty()).skip(1).collect::<Vec<_>>()
    };
    assert_eq!(shown(11), (1..=11).map(|n| format!("out {n}")).collect::<Vec<_>>());
    let last =
        ["out 1", "out 2", "out 3", "out 4", "out 5", "… 3 lines", "out 9", "out 10", "out 11", "out 12"];
    assert_eq!(shown(12), last);
}
