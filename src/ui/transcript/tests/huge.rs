//! Texts that are much larger than a screen.

use super::*;

fn text(buf: &Buffer) -> String {
    rows_of(buf).join("\n")
}

#[test]
fn reading_position_is_preserved_when_the_width_changes() {
    let mut session = session();
    let words = (0..6000).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    push(&mut session, message(Role::Agent, &words));
    push(&mut session, message(Role::User, "end"));
    let mut view = TranscriptView::default();
    let first_word = |view: &mut TranscriptView, cols: u16| -> (usize, usize) {
        let shown = text(&render(&session, view, cols, 30));
        let words: Vec<usize> =
            shown.split_whitespace().filter_map(|word| word.strip_prefix('w')?.parse().ok()).collect();
        let row = shown.lines().find(|row| row.contains('w')).unwrap();
        (words[0], row.split_whitespace().filter(|word| word.starts_with('w')).count())
    };
    first_word(&mut view, 110);
    for pages in [-2, -3] {
        view.scroll_pages(pages);
        let (began, _) = first_word(&mut view, 110);
        for cols in [60, 40, 110, 200, 33, 110] {
            let (first, in_row) = first_word(&mut view, cols);
            assert!((first..first + in_row).contains(&began), "{began} at {cols}: {first} and {in_row}");
        }
        assert_eq!(first_word(&mut view, 110).0, began, "back at the original position");
    }
}

/// Lines drawn for the first frame, and the maximum for scrolling elsewhere.
fn max_lines_made(session: &Viewed) -> usize {
    let mut view = TranscriptView::default();
    render(session, &mut view, 80, 30);
    let mut max = view.lines_last_frame();
    for step in [-1, -1, -30, 3, 1] {
        view.scroll_pages(step);
        render(session, &mut view, 80, 30);
        max = max.max(view.lines_last_frame() / usize::try_from(step.unsigned_abs()).unwrap());
    }
    max
}

#[test]
fn huge_texts_are_laid_out_only_where_visible() {
    const BYTES: usize = 2 << 20;
    let texts = ["x".repeat(BYTES), "word ".repeat(BYTES / 5), "a line of text\n".repeat(BYTES / 15)];
    for text in &texts {
        for kind in [ToolKind::Execute, ToolKind::Read, ToolKind::Fetch] {
            for status in [ToolStatus::Completed, ToolStatus::Failed] {
                let mut call = tool(kind, status, "call");
                call.output_text = Some(text.clone().into());
                let mut session = session();
                let item = push_tool(&mut session, call);
                session.view.set_open(item, Some(true));
                let made = max_lines_made(&session);
                assert!(made <= 600, "{kind:?} {status:?}: {made}");
            }
        }
        for (name, body) in ["agent", "user", "open", "code", "list", "notice"].into_iter().zip([
            message(Role::Agent, text),
            message(Role::User, text),
            open_message(Role::Agent, text),
            message(Role::Agent, &format!("```\n{text}\n```\n")),
            message(Role::Agent, &format!("- {text}")),
            ItemBody::notice(Severity::Error, text.clone(), Some(text.clone())),
        ]) {
            let mut session = session();
            let item = push(&mut session, body);
            session.view.set_open(item, Some(true));
            let made = max_lines_made(&session);
            assert!(made <= 2000, "{name} {:?}: {made}", &text[..9]);
        }
    }
}

#[test]
fn single_line_output_is_selected_as_one_line() {
    let line = (0..9000).fold(String::new(), |line, n| format!("{line}{n}\t"));
    let mut call = tool(ToolKind::Execute, ToolStatus::Completed, "call");
    call.output_text = Some(format!("{line}|\nnext\n").into());
    let mut session = session();
    let item = push_tool(&mut session, call);
    session.view.set_open(item, Some(true));
    let mut view = TranscriptView::default();
    let theme = dark();
    render(&session, &mut view, 80, 30);
    let now = start();
    view.press(ratatui::layout::Position { x: 3, y: 10 }, now);
    view.scroll_top();
    render(&session, &mut view, 80, 30);
    view.drag(ratatui::layout::Position { x: 0, y: 0 }, now);
    let copied = selected_text(&session, &session.view, &mut view, &context(&theme)).unwrap();
    assert!(copied.contains(&line[..40_000]), "{}", &copied[..200]);
}
