//! Sequences of keys, from the first key to the list of those that continue it.

use super::*;
use crate::config::keymap::Context;
use crate::ui::dialogs::HelpPage;
use crate::ui::view_state::WHICH_KEY_DELAY;

const CTRL: KeyModifiers = KeyModifiers::CONTROL;

fn started(stage: Stage) -> Rig {
    let mut rig = Rig::new(stage);
    assert_eq!(rig.key_with(KeyCode::Char('x'), CTRL), []);
    rig
}

fn last_line(rig: &Rig) -> &str {
    rig.shown.lines().last().unwrap()
}

#[test]
fn a_sequence_runs_its_action() {
    let mut rig = started(fixture::ready());
    assert_eq!(rig.key_with(KeyCode::Char('e'), CTRL), act(Action::EditDraft));
    assert_eq!(rig.key_with(KeyCode::Char('e'), CTRL), [], "alone it moves the cursor");
    assert_eq!(rig.key(KeyCode::Char('e')), [Event::Draft("e".into())]);
}

#[test]
fn the_started_sequence_is_shown_until_it_ends() {
    let mut rig = started(fixture::ready());
    rig.draw();
    assert!(last_line(&rig).starts_with(" Ctrl+X … ? keys · Esc cancel"), "{}", rig.shown);
    assert_eq!(rig.key(KeyCode::Esc), [], "only the sequence is cancelled");
    rig.draw();
    assert!(last_line(&rig).starts_with(" ready"), "{}", rig.shown);
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
}

#[test]
fn a_character_that_does_not_continue_a_sequence_is_typed() {
    let mut rig = started(fixture::ready());
    let message = || Event::Message("Ctrl+X ä is not bound.".into());
    assert_eq!(rig.key(KeyCode::Char('ä')), [message(), Event::Draft("ä".into())]);
    let mut rig = started(fixture::picker(""));
    assert_eq!(rig.key(KeyCode::Char('ä')), [message(), Event::Line(LineEdit::Insert("ä".into()))]);
}

#[test]
fn a_command_key_that_does_not_continue_a_sequence_has_no_effect() {
    let mut rig = started(fixture::ready());
    let message = Event::Message("Ctrl+X Ctrl+Q is not bound.".into());
    assert_eq!(rig.key_with(KeyCode::Char('q'), CTRL), [message]);
    assert_eq!(rig.key_with(KeyCode::Char('q'), CTRL), act(Action::Quit));
}

#[test]
fn clicks_and_pastes_end_a_sequence() {
    let mut rig = started(fixture::ready());
    let events = rig.send(&Terminal::Paste("m".into()));
    assert_eq!(events, [Event::Key(vec![Event::Draft("m".into())])]);
    assert_eq!(rig.key(KeyCode::Char('m')), [Event::Draft("mm".into())]);
    let mut rig = started(fixture::ready());
    rig.click_on("ready");
    assert_eq!(rig.key(KeyCode::Char('m')), [Event::Draft("m".into())]);
}

#[test]
fn a_change_of_focus_ends_a_sequence() {
    let mut rig = started(fixture::ready());
    rig.stage.layers.push(HelpPage { filter: crate::core::LineInput::default() });
    assert_eq!(rig.key(KeyCode::Char('m')), [Event::Line(LineEdit::Insert("m".into()))]);
}

#[test]
fn sequences_for_other_views_work_during_a_request() {
    let mut rig = started(fixture::permission());
    assert_eq!(rig.key(KeyCode::Char('l')), act(Action::OpenSessions));
    rig.key_with(KeyCode::Char('x'), CTRL);
    assert_eq!(rig.key(KeyCode::Char('u')), [], "not during a request");
    let mut rig = started(fixture::form());
    assert_eq!(rig.key(KeyCode::Char('m')), act(Action::OpenModels), "in a text field too");
}

#[test]
fn letters_start_sequences_while_browsing() {
    let mut stage = fixture::streaming();
    stage.user.is_browsing = true;
    let mut rig = Rig::new(stage);
    let paths = crate::config::Paths::find(Some("/c.toml".into()), Some("/tmp".into())).unwrap();
    let text = "[keys.browse]\n\"z a\" = \"toggle-fold\"\n";
    rig.keymap = crate::config::read(&paths, text, &crate::config::Surroundings::default()).0.keymap;
    assert_eq!(rig.key(KeyCode::Char('z')), []);
    assert_eq!(rig.key(KeyCode::Char('a')), act(Action::ToggleFold));
    rig.key(KeyCode::Char('z'));
    assert_eq!(rig.key(KeyCode::Char('j')), [Event::Message("z j is not bound.".into())]);
}

#[test]
fn continuing_keys_are_listed_after_a_delay() {
    let mut rig = started(fixture::ready());
    rig.draw();
    assert!(!rig.shown.contains("Select model"), "{}", rig.shown);
    assert_eq!(crate::ui::next_frame_in(&rig.stage.app, &rig.view), Some(WHICH_KEY_DELAY));
    rig.stage.now += WHICH_KEY_DELAY;
    rig.draw();
    assert!(rig.shown.contains("Select model"), "{}", rig.shown);
    assert_eq!(rig.shown.matches("Esc cancel").count(), 1, "not in the status line too: {}", rig.shown);
    assert_eq!(crate::ui::next_frame_in(&rig.stage.app, &rig.view), None, "nothing is animated");
    assert_eq!(rig.key(KeyCode::Char('m')), act(Action::OpenModels));
    rig.draw();
    assert!(!rig.shown.contains("Select model"), "{}", rig.shown);
}

#[test]
fn a_question_mark_lists_continuing_keys_at_once_in_pages() {
    for size in [(40, 12), (80, 24), (200, 60)] {
        let mut rig = started(fixture::ready());
        let mut missing: Vec<String> = rig
            .keymap
            .continuations(Context::EmptyPrompt, &rig.view.pending.clone().unwrap().keys)
            .into_iter()
            .map(|next| crate::config::keymap::actions::info(next.action.unwrap()).unwrap().text.to_owned())
            .collect();
        let pages = if size.0 == 40 { 7 } else { 3 };
        for _ in 0..pages {
            assert_eq!(rig.key(KeyCode::Char('?')), []);
            let buffer = rig.stage.draw(&mut rig.view, &fixture::theme("dark"), size);
            let shown = fixture::text(&buffer);
            assert!(shown.contains("Ctrl+X …"), "{shown}");
            missing.retain(|text| !shown.contains(text.split('…').next().unwrap().get(..16).unwrap_or(text)));
        }
        assert_eq!(missing, [""; 0], "{size:?}");
        assert_eq!(
            rig.key(KeyCode::Char('m')),
            act(Action::OpenModels),
            "the list does not end the sequence"
        );
    }
}

#[test]
fn keys_with_shift_select_text_in_the_prompt() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("one two".into()));
    rig.key_with(KeyCode::Left, CTRL | KeyModifiers::SHIFT);
    assert_eq!(rig.key(KeyCode::Backspace), [Event::Draft("one ".into())]);
}

#[test]
fn keys_of_the_prompt_can_be_rebound() {
    let mut rig = Rig::new(fixture::ready());
    let paths = crate::config::Paths::find(Some("/c.toml".into()), Some("/tmp".into())).unwrap();
    let text =
        "[keys.composer]\n\"ctrl+w\" = \"none\"\n\"f10\" = \"delete-word-before\"\n\"alt+f\" = \"undo\"\n";
    rig.keymap = crate::config::read(&paths, text, &crate::config::Surroundings::default()).0.keymap;
    rig.view.apply(crate::core::ViewCommand::SetDraft("one two".into()));
    assert_eq!(rig.key_with(KeyCode::Char('w'), CTRL), []);
    assert_eq!(rig.key(KeyCode::F(10)), [Event::Draft("one ".into())]);
    assert_eq!(rig.key_with(KeyCode::Char('f'), KeyModifiers::ALT), [Event::Draft("one two".into())]);
}
