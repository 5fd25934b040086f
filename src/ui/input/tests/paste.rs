//! Pastes: long texts, images, and dropped files.

use super::*;
use crate::model::AttachmentContent;

fn paste(rig: &mut Rig, text: &str) -> Vec<Event> {
    meaning(rig.send(&Terminal::Paste(text.to_owned())))
}

fn lines(count: usize) -> String {
    (1..=count).fold(String::new(), |all, n| all + &format!("line {n}\n"))
}

#[test]
fn a_long_paste_becomes_a_label_and_a_second_one_expands_it() {
    let mut rig = Rig::new(fixture::ready());
    rig.key(KeyCode::Char('a'));
    let text = lines(120);
    let attachment = Attachment::new(AttachmentContent::Text(text.as_str().into()));
    let label = attachment.label();
    assert!(label.ends_with(": 120 lines]"), "{label}");
    let with_label = format!("a{label}");
    assert_eq!(paste(&mut rig, &text), [Event::Pasted(attachment), Event::Draft(with_label.clone())]);
    assert_eq!(paste(&mut rig, &text), [Event::Draft(format!("a{text}"))]);
    rig.view.apply(crate::core::ViewCommand::SetDraft(with_label.clone()));
    assert_eq!(rig.key(KeyCode::Backspace), [Event::Draft("a".into())]);
    assert_eq!(rig.key_with(KeyCode::Char('_'), KeyModifiers::CONTROL), [Event::Draft(with_label)]);
}

#[test]
fn a_command_contains_pasted_text_and_no_labels() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("!cat ".into()));
    assert_eq!(paste(&mut rig, &lines(12)), [Event::Draft(format!("!cat {}", lines(12)))]);
    let label = Attachment::of_text(&lines(12)).label();
    rig.view.apply(crate::core::ViewCommand::SetDraft(format!("!cat {label}")));
    rig.stage.draw(&mut rig.view, &fixture::theme("dark"), (60, 24));
    let events = rig.key(KeyCode::Enter);
    let [Event::Message(why)] = events.as_slice() else { panic!("{events:?}") };
    assert!(why.starts_with("Not run: the command contains the label"), "{why}");
    assert_eq!(paste(&mut rig, &lines(12)), [Event::Draft(format!("!cat {}", lines(12)))], "it is inserted");
}

#[test]
fn the_text_of_the_clipboard_is_a_paste() {
    let mut rig = Rig::new(fixture::ready());
    let mut insert = |text, is_register| super::super::insert_clipboard(text, is_register, &mut rig.view);
    assert_eq!(insert(Some("one\r\ntwo"), false), [Event::Draft("one\ntwo".into())]);
    assert_eq!(insert(None, false), []);
    assert_eq!(insert(Some("one"), true), [], "no command waits for it");
}

#[test]
fn the_length_of_a_paste_that_becomes_a_label_is_configured() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(paste(&mut rig, &lines(10)), [Event::Draft(lines(10))]);
    rig.view.apply(crate::core::ViewCommand::SetDraft(String::new()));
    rig.view.paste_lines = 0;
    assert_eq!(paste(&mut rig, &lines(120)), [Event::Draft(lines(120))]);
}

#[test]
fn control_characters_are_removed_from_attachments() {
    let mut rig = Rig::new(fixture::ready());
    let events = paste(&mut rig, &"\u{1b}[31mred\r\n".repeat(20));
    let [Event::Pasted(attachment), _] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(attachment.bytes(), "[31mred\n".repeat(20).as_bytes());
}

#[test]
fn an_empty_paste_and_a_key_paste_an_image_at_the_cursor() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("é x".into()));
    rig.key(KeyCode::Left);
    let expected = [Event::Cursor(3), Event::Act(Action::PasteImage)];
    assert_eq!(paste(&mut rig, ""), expected);
    assert_eq!(rig.key_with(KeyCode::Char('v'), KeyModifiers::CONTROL), expected);
}

#[test]
fn dropped_paths_are_reported_with_their_place() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("see ".into()));
    let text = "'/a/my file.png' ".to_owned();
    let readings = vec![vec!["/a/my file.png".into()]];
    assert_eq!(
        paste(&mut rig, &text),
        [Event::Draft(format!("see {text}")), Event::Dropped { text: text.clone(), at: 4, readings }]
    );
}

#[test]
fn labels_and_mentions_are_styled() {
    let mut stage = fixture::ready();
    let label = "[Pasted text #7dd3e5fd25: 2 lines]";
    stage.session(|session| session.draft = format!("see {label} and @src/a.rs, word"));
    let mut rig = Rig::new(stage);
    let buffer = rig.stage.draw(&mut rig.view, &fixture::theme("dark"), (60, 24));
    let accent = fixture::theme("dark").style(crate::ui::theme::Role::Accent).fg;
    let styled: String = buffer
        .content()
        .chunks(60)
        .filter(|row| {
            row.iter().any(|cell| cell.symbol() == "@") || row.iter().any(|cell| cell.symbol() == "#")
        })
        .flat_map(|row| row.iter().skip(3).filter(|cell| Some(cell.fg) == accent))
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(styled, "[Pasted text #1: 2 lines]@src/a.rs");
}

#[test]
fn a_quote_is_a_label_on_its_own_line_so_that_its_mentions_are_not_read() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("see".into()));
    let events = super::super::quote("fn main() {\u{1b}[31m\n\n  @/etc/passwd", &mut rig.view);
    let [Event::Pasted(attachment), Event::Draft(draft)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(attachment.bytes(), b"> fn main() {[31m\n>\n>   @/etc/passwd\n");
    assert_eq!(*draft, format!("see\n{}\n", attachment.label()));
    super::super::quote("one", &mut rig.view);
    assert_eq!(rig.view.composer.text().lines().count(), 3, "the next quote is on the next line");
}
