use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::*;
use crate::model::ItemId;
use crate::ui::tests::fixture::{self, Stage};

/// A drawn screen that can be typed and clicked at.
struct Rig {
    stage: Stage,
    view: ViewState,
    keymap: Keymap,
    shown: String,
}

impl Rig {
    fn new(stage: Stage) -> Self {
        let view = stage.view();
        let mut rig = Self { stage, view, keymap: Keymap::defaults(), shown: String::new() };
        rig.draw();
        rig
    }

    fn draw(&mut self) {
        let buffer = self.stage.draw(&mut self.view, &fixture::theme("dark"), (80, 24));
        self.shown = fixture::text(&buffer);
    }

    fn send(&mut self, event: &Terminal) -> Vec<Event> {
        route(event, &self.stage.state, &mut self.view, &self.keymap, self.stage.now)
    }

    fn key_with(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Event> {
        let mut events = self.send(&Terminal::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(events.remove(0), Event::Input, "each key counts for the grace period");
        events
    }

    fn key(&mut self, code: KeyCode) -> Vec<Event> {
        self.key_with(code, KeyModifiers::NONE)
    }

    fn click_on(&mut self, words: &str) -> Vec<Event> {
        let row = self.shown.lines().position(|line| line.contains(words)).expect(words);
        let line = self.shown.lines().nth(row).expect("a row");
        let before = &line[..line.find(words).expect(words)];
        let place = Position::new(
            u16::try_from(crate::ui::text::width(before)).unwrap(),
            u16::try_from(row).unwrap(),
        );
        let mouse = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: place.x,
            row: place.y,
            modifiers: KeyModifiers::NONE,
        };
        let mut events = self.send(&Terminal::Mouse(mouse));
        assert_eq!(events.remove(0), Event::Input);
        events
    }
}

fn act(action: Action) -> Vec<Event> {
    vec![Event::Act(action)]
}

#[test]
fn letters_go_to_the_prompt_and_come_back_as_the_draft() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.key(KeyCode::Char('h')), [Event::Draft("h".into())]);
    assert_eq!(rig.key(KeyCode::Char('i')), [Event::Draft("hi".into())]);
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Submit));
    assert_eq!(rig.key_with(KeyCode::Char('j'), KeyModifiers::CONTROL), [Event::Draft("hi\n".into())]);
    assert_eq!(rig.key_with(KeyCode::Enter, KeyModifiers::ALT), [Event::Draft("hi\n\n".into())]);
}

#[test]
fn releases_do_nothing() {
    let mut rig = Rig::new(fixture::ready());
    let mut key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
    key.kind = KeyEventKind::Release;
    assert_eq!(rig.send(&Terminal::Key(key)), []);
}

#[test]
fn a_question_mark_helps_only_in_an_empty_prompt() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.key(KeyCode::Char('?')), act(Action::OpenHelp));
    rig.key(KeyCode::Char('a'));
    assert_eq!(rig.key(KeyCode::Char('?')), [Event::Draft("a?".into())]);
}

#[test]
fn the_arrows_walk_the_text_before_the_history() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::app::ViewCommand::SetDraft("one\ntwo".into()));
    assert_eq!(rig.key(KeyCode::Up), []);
    assert_eq!(rig.key(KeyCode::Up), act(Action::HistoryPrevious));
    assert_eq!(rig.key(KeyCode::Down), []);
    assert_eq!(rig.key(KeyCode::Down), act(Action::HistoryNext));
}

#[test]
fn the_arrows_belong_to_the_completions_while_there_are_any() {
    let mut stage = fixture::ready();
    stage.session(|session| session.draft = "/co".into());
    let mut rig = Rig::new(stage);
    assert!(rig.shown.contains("/compact"), "{}", rig.shown);
    assert_eq!(rig.key(KeyCode::Down), act(Action::HistoryNext));
    assert_eq!(rig.key(KeyCode::Tab), act(Action::Complete));
    assert_eq!(rig.click_on("/cost"), [Event::Act(Action::Mark(1)), Event::Act(Action::Complete)]);
}

#[test]
fn a_paste_is_one_edit_with_its_lines() {
    let mut rig = Rig::new(fixture::ready());
    let events = rig.send(&Terminal::Paste("one\r\ntwo\u{1b}".into()));
    assert_eq!(events, [Event::Input, Event::Draft("one\ntwo".into())]);
    let mut rig = Rig::new(fixture::picker(""));
    let events = rig.send(&Terminal::Paste("clau".into()));
    assert_eq!(events, [Event::Input, Event::Line(LineEdit::Insert("clau".into()))]);
    let mut rig = Rig::new(fixture::permission());
    assert_eq!(rig.send(&Terminal::Paste("1".into())), [Event::Input], "a paste answers nothing");
}

#[test]
fn a_digit_answers_only_after_the_grace_period() {
    let mut stage = fixture::permission();
    let shown = stage.now.checked_sub(Duration::from_millis(100)).unwrap();
    stage.state.ask_view.shown_at = Some(shown);
    stage.state.last_input = stage.now.checked_sub(Duration::from_millis(50));
    let mut rig = Rig::new(stage);
    let before = rig.view.draft();
    assert_eq!(rig.key(KeyCode::Char('1')), [Event::Draft(format!("{before}1"))]);
    assert_eq!(rig.click_on("Yes, this once"), [], "a click was meant for what lay there before");
    rig.stage.now += Duration::from_secs(2);
    assert_eq!(rig.key(KeyCode::Char('1')), act(Action::Choose(1)));
    assert_eq!(rig.key(KeyCode::Char('3')), act(Action::Choose(3)));
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Accept));
    assert_eq!(rig.key(KeyCode::Char('f')), act(Action::FullScreen));
    assert_eq!(rig.key(KeyCode::Char('z')), [], "nothing is typed into a dialog without text");
    assert_eq!(rig.view.draft(), format!("{before}1"));
}

#[test]
fn beside_a_request_the_keys_that_lead_elsewhere_do_so() {
    for mut rig in [Rig::new(fixture::permission()), Rig::new(fixture::form())] {
        assert_eq!(rig.key(KeyCode::F(6)), act(Action::OpenSessions));
        assert_eq!(rig.key_with(KeyCode::Char('p'), KeyModifiers::CONTROL), act(Action::OpenPalette));
        assert_eq!(rig.key_with(KeyCode::Char('r'), KeyModifiers::ALT), [], "it would end the request");
    }
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.key(KeyCode::F(6)), [], "a list that the user opened has its own keys only");
}

#[test]
fn a_click_on_a_choice_chooses_it() {
    let mut rig = Rig::new(fixture::permission());
    assert_eq!(rig.click_on("Yes, this once"), act(Action::Choose(1)));
    assert_eq!(rig.click_on("don't ask again"), act(Action::Choose(2)));
    let mut rig = Rig::new(fixture::choice());
    assert_eq!(rig.click_on("End the agent"), act(Action::Choose(2)));
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.click_on("gemini"), [Event::Act(Action::Mark(3)), Event::Act(Action::Accept)]);
    assert_eq!(rig.click_on("type to filter"), [], "a dialog hides what is below");
}

#[test]
fn pickers_take_letters_for_the_filter_and_keep_their_keys() {
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.key(KeyCode::Char('c')), [Event::Line(LineEdit::Insert("c".into()))]);
    assert_eq!(rig.key(KeyCode::Backspace), [Event::Line(LineEdit::Backspace)]);
    assert_eq!(rig.key(KeyCode::Down), act(Action::Down));
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
}

#[test]
fn in_a_form_blanks_and_arrows_belong_to_text() {
    let mut rig = Rig::new(fixture::form());
    assert_eq!(rig.key(KeyCode::Char(' ')), [Event::Line(LineEdit::Insert(" ".into()))]);
    assert_eq!(rig.key(KeyCode::Left), [Event::Line(LineEdit::Left)]);
    assert_eq!(rig.key(KeyCode::Tab), act(Action::NextField));
    rig.stage.state.ask_view.selected = 1;
    assert_eq!(rig.key(KeyCode::Char(' ')), act(Action::ToggleChoice));
    assert_eq!(rig.key(KeyCode::Left), act(Action::Left));
    assert_eq!(rig.key(KeyCode::Char('x')), []);
}

#[test]
fn the_wheel_scrolls_and_the_heads_of_items_fold() {
    let mut rig = Rig::new(fixture::streaming());
    let wheel = |kind| Terminal::Mouse(MouseEvent { kind, column: 5, row: 5, modifiers: KeyModifiers::NONE });
    assert_eq!(rig.send(&wheel(MouseEventKind::ScrollUp)), act(Action::Scroll(-3)));
    assert_eq!(rig.send(&wheel(MouseEventKind::ScrollDown)), act(Action::Scroll(3)));
    assert_eq!(rig.send(&wheel(MouseEventKind::Moved)), []);
    assert_eq!(rig.click_on("fix the failing"), act(Action::ToggleItem(ItemId(0))));
}

#[test]
fn names_in_the_title_open_their_lists() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.click_on("Opus 5"), act(Action::OpenModels));
    assert_eq!(rig.click_on("default"), act(Action::OpenModes));
    assert_eq!(rig.click_on("claude"), act(Action::OpenConnection));
}

#[test]
fn a_click_sets_the_cursor() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::app::ViewCommand::SetDraft("some words".into()));
    rig.draw();
    assert_eq!(rig.click_on("words"), []);
    assert_eq!(rig.key(KeyCode::Char('x')), [Event::Draft("some xwords".into())]);
}
