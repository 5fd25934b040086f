//! Links under the mouse.

use ratatui::layout::Position;

use super::*;

#[test]
fn text_under_the_mouse_resolves_to_its_target() {
    let mut session = session();
    push(&mut session, message(Role::Agent, "Look at `src/auth.rs:12`, or at [the page](https://a.org)."));
    let mut call = tool(ToolKind::Read, ToolStatus::Failed, "read");
    let path: std::path::PathBuf = format!("/home/ada/shop/{}/b.rs", "deep/".repeat(20)).into();
    call.locations = vec![Location { path: path.clone(), line: Some(7) }];
    push_tool(&mut session, call);
    let mut view = TranscriptView::default();
    let buf = render(&session, &mut view, 50, 10);
    let rows = rows_of(&buf);
    let at = |view: &TranscriptView, target: &str| {
        let y = rows.iter().position(|row| row.contains(target)).expect(target);
        let x = width(&rows[y][..rows[y].find(target).expect(target)]);
        view.target_at(Position::new(u16::try_from(x).unwrap(), u16::try_from(y).unwrap()))
    };
    let file = |path: &str, line| Some(Target::File(Location { path: path.into(), line }));
    assert_eq!(at(&view, "src/auth"), file("/home/ada/shop/src/auth.rs", Some(12)));
    assert_eq!(at(&view, "the page"), Some(Target::Url("https://a.org".to_owned())));
    assert_eq!(at(&view, "Look"), None);
    assert_eq!(at(&view, "b.rs:7"), file(&path.display().to_string(), Some(7)));
    assert_eq!(view.target_at(Position::new(0, 0)), None);
    assert_eq!(view.target_at(Position::new(49, 9)), None);
}

#[test]
fn a_wrapped_url_is_opened_and_copied_as_a_whole() {
    let url = format!("https://example.org/{}end", "part-of-a-path/".repeat(10));
    let mut session = session();
    push(&mut session, message(Role::Agent, &url));
    let mut view = TranscriptView::default();
    let rows = rows_of(&render(&session, &mut view, 50, 12));
    let shown: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].contains("part-of")).collect();
    assert!(shown.len() > 2, "{rows:#?}");
    for y in &shown {
        let position = Position::new(8, u16::try_from(*y).unwrap());
        assert_eq!(view.target_at(position), Some(Target::Url(url.clone())), "row {y}: {rows:#?}");
    }
}
