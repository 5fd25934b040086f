//! Keys of vim editing, of inserted deletions and of the full-screen composer.

use super::*;
use crate::core::ViewCommand;

const CTRL: KeyModifiers = KeyModifiers::CONTROL;

/// A screen with vim keys and this draft, in normal mode.
fn normal_mode(draft: &str) -> Rig {
    let mut rig = Rig::new(fixture::ready());
    rig.view.set_vim(true);
    rig.view.apply(ViewCommand::SetDraft(draft.into()));
    assert_eq!(rig.key(KeyCode::Esc), [Event::Draft(draft.into())]);
    rig
}

fn typed(rig: &mut Rig, keys: &str) -> Vec<Event> {
    keys.chars().map(|ch| rig.key(KeyCode::Char(ch))).last().unwrap()
}

#[test]
fn escape_leaves_insert_mode_before_it_reaches_the_turn() {
    let mut rig = normal_mode("one two");
    assert_eq!(typed(&mut rig, "dd"), [Event::Draft(String::new())]);
    assert_eq!(typed(&mut rig, "2d"), [Event::Draft(String::new())]);
    assert_eq!(rig.key(KeyCode::Esc), [Event::Draft(String::new())], "it cancels the command");
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
}

#[test]
fn escape_in_insert_mode_closes_the_completions_too() {
    let mut stage = fixture::ready();
    stage.session(|session| session.draft = "/co".into());
    let mut rig = Rig::new(stage);
    rig.view.set_vim(true);
    assert_eq!(rig.key(KeyCode::Esc), [Event::Draft("/co".into()), Event::Act(Action::Escape)]);
}

#[test]
fn stashing_a_prompt_starts_insert_mode() {
    let mut rig = normal_mode("one");
    assert_eq!(rig.key_with(KeyCode::Char('s'), CTRL), act(Action::StashDraft));
    assert_eq!(rig.key_with(KeyCode::Char('r'), CTRL), act(Action::OpenHistory), "in normal mode it is redo");
}

#[test]
fn enter_in_normal_mode_sends_and_starts_insert_mode() {
    let mut rig = normal_mode("one");
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Submit));
    assert_eq!(typed(&mut rig, "x"), [Event::Draft("onxe".into())]);
}

#[test]
fn enter_after_a_backslash_inserts_a_line_break_in_insert_mode() {
    let mut rig = normal_mode("one");
    assert_eq!(typed(&mut rig, "A\\"), [Event::Draft("one\\".into())]);
    assert_eq!(rig.key(KeyCode::Enter), [Event::Draft("one\n".into())]);
    assert_eq!(typed(&mut rig, "two"), [Event::Draft("one\ntwo".into())]);
}

#[test]
fn vertical_motions_continue_in_the_history() {
    let mut rig = normal_mode("one\ntwo");
    assert_eq!(typed(&mut rig, "j"), act(Action::HistoryNext));
    assert_eq!(typed(&mut rig, "k"), [Event::Draft("one\ntwo".into())]);
    assert_eq!(typed(&mut rig, "k"), act(Action::HistoryPrevious));
    assert_eq!(typed(&mut rig, "dk"), [Event::Draft("one\ntwo".into())], "an operator does not");
}

#[test]
fn keys_that_vim_does_not_use_have_their_actions() {
    let mut rig = normal_mode("one");
    let expected = [Event::Cursor(2), Event::Act(Action::OpenPalette)];
    assert_eq!(rig.key_with(KeyCode::Char('p'), CTRL), expected);
    assert_eq!(rig.key_with(KeyCode::Char('o'), CTRL), act(Action::ToggleFold));
    typed(&mut rig, "xu");
    assert_eq!(rig.key_with(KeyCode::Char('r'), CTRL), [Event::Draft("on".into())], "redo");
    typed(&mut rig, "i");
    assert_eq!(rig.key_with(KeyCode::Char('r'), CTRL), act(Action::OpenHistory));
}

#[test]
fn searches_start_only_in_a_draft() {
    let mut rig = normal_mode("");
    assert_eq!(typed(&mut rig, "?"), act(Action::OpenHelp));
    assert_eq!(typed(&mut rig, "/x"), [Event::Draft("/x".into())], "a command");
    let mut rig = normal_mode("one two one");
    typed(&mut rig, "?two");
    assert_eq!(rig.key(KeyCode::Enter), [Event::Draft("one two one".into())]);
    assert_eq!(typed(&mut rig, "D"), [Event::Draft("one ".into())]);
}

#[test]
fn the_clipboard_register_is_copied() {
    let mut rig = normal_mode("one two");
    assert_eq!(typed(&mut rig, "\"+yy"), [Event::Draft("one two".into()), Event::Copy("one two\n".into())]);
}

#[test]
fn enter_runs_a_command_that_was_shown() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.set_vim(true);
    rig.view.apply(ViewCommand::SetDraft("!ls -l".into()));
    rig.stage.draw(&mut rig.view, &fixture::theme("dark"), (60, 24));
    assert_eq!(rig.key(KeyCode::Enter), [Event::RunCommand("!ls -l".into())]);
}

#[test]
fn the_clipboard_register_is_read() {
    let mut rig = normal_mode("one two");
    assert_eq!(typed(&mut rig, "\"+p"), [Event::Draft("one two".into()), Event::ReadClipboard]);
    let mut insert = |text: &str| super::super::insert_clipboard(Some(text), true, &mut rig.view);
    assert_eq!(insert("\u{1b}x"), [Event::Draft("one twox".into())]);
    let long = Attachment::of_text(&"line\n".repeat(20));
    assert_eq!(insert("late"), [], "nothing waits");
    typed(&mut rig, "\"+P");
    let events = super::super::insert_clipboard(Some(&"line\n".repeat(20)), true, &mut rig.view);
    assert_eq!(events, [Event::Pasted(long.clone()), Event::Draft(format!("one two{}x", long.label()))]);
}

#[test]
fn vim_keys_do_not_apply_to_questions() {
    let mut rig = Rig::new(fixture::permission());
    rig.view.set_vim(true);
    assert_eq!(typed(&mut rig, "x"), [Event::Character('x', None)]);
}

#[test]
fn an_inserted_deletion_can_be_replaced_by_an_earlier_one() {
    let alt_y = (KeyCode::Char('y'), KeyModifiers::ALT);
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(ViewCommand::SetDraft("one two".into()));
    assert_eq!(rig.key_with(alt_y.0, alt_y.1), act(Action::CopyItem));
    rig.key_with(KeyCode::Char('w'), CTRL);
    rig.key(KeyCode::End);
    rig.key_with(KeyCode::Char('w'), CTRL);
    assert_eq!(rig.key_with(KeyCode::Char('y'), CTRL), [Event::Draft("one ".into())]);
    assert_eq!(rig.key_with(alt_y.0, alt_y.1), [Event::Draft("two".into())]);
    rig.key_with(KeyCode::Char('x'), CTRL);
    assert_eq!(rig.key(KeyCode::Char('y')), [Event::Draft("one ".into())]);
    rig.key(KeyCode::Home);
    assert_eq!(rig.key_with(alt_y.0, alt_y.1), act(Action::CopyItem));
}

#[test]
fn escape_and_sending_end_the_full_screen_composer() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(ViewCommand::SetDraft("one".into()));
    for key in [KeyCode::Esc, KeyCode::Enter] {
        rig.view.apply(ViewCommand::ToggleFullComposer);
        rig.draw();
        assert_eq!(rig.shown.lines().position(|row| row.contains("› one")), Some(2), "{}", rig.shown);
        rig.key(key);
        rig.draw();
        assert_ne!(rig.shown.lines().position(|row| row.contains("› one")), Some(2), "{}", rig.shown);
    }
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
}
