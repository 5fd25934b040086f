mod links;
mod paste;
mod sequences;
mod typing;
mod vim;

use ratatui::crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::*;
use crate::model::ItemId;
use crate::ui::tests::fixture::{self, Stage};

/// A rendered screen that accepts input.
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

    /// Sets the prompt, in the composer and in the session.
    fn set_draft(&mut self, text: &str) {
        self.view.apply(crate::core::ViewCommand::SetDraft(text.into()));
        self.stage.session(|session| session.draft = text.into());
    }

    fn send(&mut self, event: &Terminal) -> Vec<Event> {
        route(event, &self.stage.app, &mut self.view, &self.keymap, self.stage.now)
    }

    fn key_with(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Event> {
        meaning(self.send(&Terminal::Key(KeyEvent::new(code, modifiers))))
    }

    fn key(&mut self, code: KeyCode) -> Vec<Event> {
        self.key_with(code, KeyModifiers::NONE)
    }

    fn click_on(&mut self, target: &str) -> Vec<Event> {
        let row = self.shown.lines().position(|line| line.contains(target)).expect(target);
        let line = self.shown.lines().nth(row).expect("a row");
        let before = &line[..line.find(target).expect(target)];
        let position = Position::new(
            u16::try_from(crate::ui::text::width(before)).unwrap(),
            u16::try_from(row).unwrap(),
        );
        let mouse = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: position.x,
            row: position.y,
            modifiers: KeyModifiers::NONE,
        };
        let mut events = meaning(self.send(&Terminal::Mouse(mouse)));
        let kind = MouseEventKind::Up(MouseButton::Left);
        events.extend(self.send(&Terminal::Mouse(MouseEvent { kind, ..mouse })));
        events
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> Vec<Event> {
        let events =
            self.send(&Terminal::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        self.draw();
        events
    }

    /// Drags from one text on the screen to the end of another.
    fn drag(&mut self, from: &str, to: &str) -> Vec<Event> {
        let position = |target: &str, is_end: bool| {
            let row = self.shown.lines().position(|line| line.contains(target)).expect(target);
            let line = self.shown.lines().nth(row).expect("a row");
            let at = line.find(target).expect(target) + if is_end { target.len() } else { 0 };
            let col = crate::ui::text::width(&line[..at]) - usize::from(is_end);
            (u16::try_from(col).unwrap(), u16::try_from(row).unwrap())
        };
        let (from, to) = (position(from, false), position(to, true));
        self.mouse(MouseEventKind::Down(MouseButton::Left), from.0, from.1);
        self.mouse(MouseEventKind::Drag(MouseButton::Left), to.0, to.1);
        self.mouse(MouseEventKind::Up(MouseButton::Left), to.0, to.1)
    }

    fn selected(&mut self) -> Option<String> {
        crate::ui::selected_text(&self.stage.app, &mut self.view, &fixture::theme("dark"))
    }
}

/// The events of a key, click or paste. Each input is one event for the grace period.
fn meaning(mut events: Vec<Event>) -> Vec<Event> {
    assert_eq!(events.len(), 1);
    match events.remove(0) {
        Event::Input => Vec::new(),
        Event::Key(events) => events,
        other => panic!("{other:?} does not restart the grace period"),
    }
}

fn act(action: Action) -> Vec<Event> {
    vec![Event::Act(action)]
}

#[test]
fn typed_letters_update_the_draft() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.key(KeyCode::Char('h')), [Event::Draft("h".into())]);
    assert_eq!(rig.key(KeyCode::Char('i')), [Event::Draft("hi".into())]);
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Submit));
    assert_eq!(rig.key_with(KeyCode::Char('j'), KeyModifiers::CONTROL), [Event::Draft("hi\n".into())]);
    assert_eq!(rig.key_with(KeyCode::Enter, KeyModifiers::ALT), [Event::Draft("hi\n\n".into())]);
}

#[test]
fn enter_after_a_backslash_inserts_a_line_break() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("one \\".into()));
    assert_eq!(rig.key(KeyCode::Enter), [Event::Draft("one \n".into())]);
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Submit));
    // A backslash elsewhere does not count.
    rig.view.apply(crate::core::ViewCommand::SetDraft("C:\\dir\\x".into()));
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Submit));
    rig.key(KeyCode::Left);
    assert_eq!(rig.key(KeyCode::Enter), [Event::Draft("C:\\dir\nx".into())]);
}

#[test]
fn a_command_runs_only_if_all_of_it_was_visible() {
    let mut rig = Rig::new(fixture::ready());
    rig.set_draft("!ls -l");
    assert!(matches!(rig.key(KeyCode::Enter).as_slice(), [Event::Message(_)]), "it was not drawn yet");
    rig.draw();
    assert_eq!(rig.key(KeyCode::Enter), [Event::RunCommand("!ls -l".into())]);
    rig.set_draft(&format!("!ls\n{}rm x", "\n".repeat(20)));
    rig.draw();
    assert!(matches!(rig.key(KeyCode::Enter).as_slice(), [Event::Message(_)]), "lines are hidden");
    rig.set_draft("!echo \u{202e}x");
    rig.draw();
    assert!(matches!(rig.key(KeyCode::Enter).as_slice(), [Event::Message(_)]), "a character is invisible");
    rig.set_draft(" !ls");
    rig.draw();
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Submit));
    rig.view.set_vim(true);
    rig.set_draft("!ls -l");
    rig.draw();
    assert_eq!(rig.key(KeyCode::Enter), [Event::RunCommand("!ls -l".into())]);
}

#[test]
fn keys_and_pastes_go_to_the_terminal_that_has_them() {
    let mut stage = fixture::ready();
    stage.session(|session| session.shell.typing = Some(crate::model::TerminalId::of_user("1", 1)));
    let mut rig = Rig::new(stage);
    assert!(rig.shown.contains("Focus: terminal · Ctrl+] to return"), "{}", rig.shown);
    let bytes = |text: &str| vec![Event::TypeIn(TerminalInput::Bytes(text.into()))];
    assert_eq!(rig.key(KeyCode::Char('q')), bytes("q"));
    assert_eq!(rig.key(KeyCode::Esc), bytes("\u{1b}"));
    assert_eq!(rig.key_with(KeyCode::Char('q'), KeyModifiers::CONTROL), bytes("\u{11}"));
    let paste = meaning(rig.send(&Terminal::Paste("a b".into())));
    assert_eq!(paste, [Event::TypeIn(TerminalInput::Paste("a b".into()))]);
    let leave = rig.key_with(KeyCode::Char(']'), KeyModifiers::CONTROL);
    assert_eq!(leave, act(Action::TypeIntoTerminal));
    assert_eq!(rig.view.composer.text(), "");
}

#[test]
fn word_keys_edit_text_and_act_only_in_an_empty_prompt() {
    let alt = KeyModifiers::ALT;
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.key_with(KeyCode::Char('d'), alt), act(Action::OpenChanges));
    assert_eq!(rig.key_with(KeyCode::Char('d'), KeyModifiers::CONTROL), act(Action::Quit));
    rig.view.apply(crate::core::ViewCommand::SetDraft("one two three".into()));
    assert_eq!(rig.key_with(KeyCode::Char('b'), alt), []);
    assert_eq!(rig.key_with(KeyCode::Char('d'), alt), [Event::Draft("one two ".into())]);
    assert_eq!(rig.key_with(KeyCode::Backspace, alt), [Event::Draft("one ".into())]);
    rig.key(KeyCode::Home);
    assert_eq!(rig.key_with(KeyCode::Char('f'), alt), []);
    assert_eq!(rig.key_with(KeyCode::Left, KeyModifiers::CONTROL), []);
    assert_eq!(rig.key_with(KeyCode::Right, KeyModifiers::CONTROL), []);
    assert_eq!(rig.key_with(KeyCode::Char('w'), KeyModifiers::CONTROL), [Event::Draft(String::new())]);
    rig.view.apply(crate::core::ViewCommand::SetDraft("x".into()));
    rig.key(KeyCode::Home);
    assert_eq!(rig.key_with(KeyCode::Char('d'), KeyModifiers::CONTROL), [Event::Draft(String::new())]);
}

#[test]
fn key_releases_have_no_action() {
    let mut rig = Rig::new(fixture::ready());
    let mut key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
    key.kind = KeyEventKind::Release;
    assert_eq!(rig.send(&Terminal::Key(key)), []);
}

#[test]
fn question_mark_opens_help_only_in_an_empty_prompt() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.key(KeyCode::Char('?')), act(Action::OpenHelp));
    rig.key(KeyCode::Char('a'));
    assert_eq!(rig.key(KeyCode::Char('?')), [Event::Draft("a?".into())]);
}

#[test]
fn arrows_move_in_the_text_before_the_history() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("one\ntwo".into()));
    assert_eq!(rig.key(KeyCode::Up), []);
    assert_eq!(rig.key(KeyCode::Up), act(Action::HistoryPrevious));
    assert_eq!(rig.key(KeyCode::Down), []);
    assert_eq!(rig.key(KeyCode::Down), act(Action::HistoryNext));
}

#[test]
fn tab_starts_the_completion_of_a_path_in_an_argument() {
    let mut rig = Rig::new(fixture::ready());
    rig.set_draft("/review é sr");
    let events = rig.key(KeyCode::Tab);
    assert_eq!(events, [Event::Argument(11..13, "sr".into())]);
    // Further letters narrow the list; a space ends it.
    rig.stage.user.mention = Some(crate::ui::dialogs::MentionList {
        session: rig.stage.state.active,
        is_argument: true,
        range: 11..13,
        query: "sr".into(),
        ..crate::ui::dialogs::MentionList::default()
    });
    let events = rig.key(KeyCode::Char('c'));
    assert!(events.contains(&Event::Argument(11..14, "src".into())), "{events:?}");
    for text in ["review sr", "/review"] {
        rig.stage.user.mention = None;
        rig.stage.user.dismissed = Some(text.into());
        rig.set_draft(text);
        assert_eq!(rig.key(KeyCode::Tab), [Event::Act(Action::Complete)], "{text}");
    }
}

#[test]
fn arrows_select_completions_while_they_are_shown() {
    let mut stage = fixture::ready();
    stage.session(|session| session.draft = "/co".into());
    let mut rig = Rig::new(stage);
    assert!(rig.shown.contains("/compact"), "{}", rig.shown);
    assert_eq!(rig.key(KeyCode::Down), act(Action::HistoryNext));
    assert_eq!(rig.key(KeyCode::Tab), act(Action::Complete));
    assert_eq!(rig.click_on("/cost"), [Event::Act(Action::Mark(1)), Event::Act(Action::Complete)]);
}

#[test]
fn a_paste_is_one_edit_with_line_breaks() {
    let mut rig = Rig::new(fixture::ready());
    let events = rig.send(&Terminal::Paste("one\r\ntwo\u{1b}".into()));
    assert_eq!(events, [Event::Key(vec![Event::Draft("one\ntwo".into())])]);
    let mut rig = Rig::new(fixture::picker(""));
    let events = rig.send(&Terminal::Paste("clau".into()));
    assert_eq!(events, [Event::Key(vec![Event::Line(LineEdit::Insert("clau".into()))])]);
    let mut rig = Rig::new(fixture::permission());
    let before = rig.view.draft();
    let events = rig.send(&Terminal::Paste("1".into()));
    assert_eq!(
        events,
        [Event::Key(vec![Event::Draft(format!("{before}1"))])],
        "a paste does not answer a request"
    );
}

#[test]
fn letters_at_a_question_go_to_it_whole() {
    let mut rig = Rig::new(fixture::permission());
    let character = |key, action| vec![Event::Character(key, action)];
    assert_eq!(rig.key(KeyCode::Char('1')), character('1', Some(Action::Choose(1))));
    assert_eq!(rig.key(KeyCode::Char('y')), character('y', Some(Action::Yes)));
    for key in "fsrjkz/ ".chars() {
        assert_eq!(rig.key(KeyCode::Char(key)), character(key, None), "it is text of the prompt");
    }
    assert_eq!(rig.key(KeyCode::Backspace), [Event::Backspace]);
    assert_eq!(rig.key(KeyCode::Enter), act(Action::Accept));
    assert_eq!(rig.key_with(KeyCode::Char('f'), KeyModifiers::ALT), act(Action::FullScreen));
    assert_eq!(rig.key_with(KeyCode::End, KeyModifiers::CONTROL), act(Action::ScrollEnd));
    assert_eq!(rig.key(KeyCode::F(10)), act(Action::AnswerRequest));
    assert_eq!(rig.key(KeyCode::Tab), act(Action::RejectWithReason));
    assert_eq!(rig.key_with(KeyCode::Char('d'), KeyModifiers::ALT), act(Action::OpenChanges));
}

#[test]
fn letters_beside_a_question_are_typed() {
    let mut stage = fixture::permission();
    stage.session(|session| session.draft = "see".to_owned());
    let mut rig = Rig::new(stage);
    let before = rig.view.draft();
    assert_eq!(rig.key(KeyCode::Char('1')), [Event::Draft(format!("{before}1"))]);
    assert_eq!(rig.click_on("Yes, this once"), [Event::Click(Some(Action::Choose(1)))]);
}

#[test]
fn keys_for_other_views_work_during_a_request() {
    for mut rig in [Rig::new(fixture::permission()), Rig::new(fixture::form())] {
        assert_eq!(rig.key(KeyCode::F(6)), act(Action::OpenSessions));
        assert_eq!(rig.key_with(KeyCode::Char('p'), KeyModifiers::CONTROL), act(Action::OpenPalette));
        let key = rig.key_with(KeyCode::Char('r'), KeyModifiers::ALT);
        assert!(!key.contains(&Event::Act(Action::RestartAgent)), "it would end the request");
    }
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.key(KeyCode::F(6)), [], "lists have only their own keys");
}

#[test]
fn clicking_an_option_chooses_it() {
    let mut rig = Rig::new(fixture::permission());
    assert_eq!(rig.click_on("Yes, this once"), [Event::Click(Some(Action::Choose(1)))]);
    assert_eq!(rig.click_on("don't ask again"), [Event::Click(Some(Action::Choose(2)))]);
    let mut rig = Rig::new(fixture::choice());
    assert_eq!(rig.click_on("End the agent"), act(Action::Choose(2)));
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.click_on("gemini"), [Event::Act(Action::Mark(3)), Event::Act(Action::Accept)]);
    assert_eq!(rig.click_on("type to filter"), [], "a dialog covers the content below");
}

#[test]
fn pickers_filter_by_letters_and_have_their_own_keys() {
    let mut rig = Rig::new(fixture::picker(""));
    assert_eq!(rig.key(KeyCode::Char('c')), [Event::Line(LineEdit::Insert("c".into()))]);
    assert_eq!(rig.key(KeyCode::Backspace), [Event::Line(LineEdit::Backspace)]);
    assert_eq!(rig.key(KeyCode::Down), act(Action::Down));
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
}

#[test]
fn space_and_arrows_edit_text_fields() {
    let mut rig = Rig::new(fixture::form());
    assert_eq!(rig.key(KeyCode::Char(' ')), [Event::Line(LineEdit::Insert(" ".into()))]);
    assert_eq!(rig.key(KeyCode::Left), [Event::Line(LineEdit::Left)]);
    assert_eq!(rig.key(KeyCode::Tab), act(Action::NextField));
    rig.stage.request_view.selected = 1;
    assert_eq!(rig.key(KeyCode::Char(' ')), act(Action::ToggleChoice));
    assert_eq!(rig.key(KeyCode::Left), act(Action::Left));
    assert_eq!(rig.key(KeyCode::Char('x')), []);
}

#[test]
fn wheel_scrolls_and_clicks_on_headers_fold() {
    let mut rig = Rig::new(fixture::streaming());
    let wheel = |kind| Terminal::Mouse(MouseEvent { kind, column: 5, row: 5, modifiers: KeyModifiers::NONE });
    assert_eq!(rig.send(&wheel(MouseEventKind::ScrollUp)), act(Action::Scroll(-3)));
    assert_eq!(rig.send(&wheel(MouseEventKind::ScrollDown)), act(Action::Scroll(3)));
    assert_eq!(rig.send(&wheel(MouseEventKind::Moved)), []);
    assert_eq!(rig.click_on("fix the failing"), act(Action::ToggleItem(ItemId(0))));
}

#[test]
fn clicking_names_in_the_title_opens_lists() {
    let mut rig = Rig::new(fixture::ready());
    assert_eq!(rig.click_on("Opus 5"), act(Action::OpenModels));
    assert_eq!(rig.click_on("default"), act(Action::OpenModes));
    assert_eq!(rig.click_on("claude"), act(Action::OpenConnection));
}

#[test]
fn clicking_moves_the_cursor() {
    let mut rig = Rig::new(fixture::ready());
    rig.view.apply(crate::core::ViewCommand::SetDraft("some words".into()));
    rig.draw();
    assert_eq!(rig.click_on("words"), []);
    assert_eq!(rig.key(KeyCode::Char('x')), [Event::Draft("some xwords".into())]);
}

#[test]
fn selection_omits_line_wraps_and_symbols() {
    let mut rig = Rig::new(fixture::streaming());
    let text = format!("A {} end of it.", "long sentence that wraps ".repeat(8));
    rig.stage.session(|session| {
        let message = session.transcript.items()[1].clone();
        session.transcript.push(1, message.body);
        session.transcript.edit(ItemId(3), |item| {
            if let crate::core::ItemBody::Message(message) = &mut item.body {
                message.parts = vec![crate::core::MessagePart::Text(text.clone().into())];
            }
        });
    });
    rig.draw();
    assert_eq!(rig.drag("off by", "end of it."), act(Action::CopySelection));
    assert_eq!(rig.selected(), Some(format!("off by the clock skew.\n\n{text}")));
    // Dragging upwards gives the same result.
    rig.drag("fix the failing", "I'll look");
    assert_eq!(rig.selected().as_deref(), Some("fix the failing test in src/auth.rs\n\nI'll look"));
}

#[test]
fn a_wrapped_url_is_copied_without_line_breaks_and_padding() {
    let mut rig = Rig::new(fixture::streaming());
    let url = format!("https://example.org/{}end", "part-of-a-path/".repeat(12));
    rig.stage.session(|session| {
        let body = session.transcript.items()[1].body.clone();
        let id = session.transcript.push(1, body);
        session.transcript.edit(id, |item| {
            if let crate::core::ItemBody::Message(message) = &mut item.body {
                message.parts = vec![crate::core::MessagePart::Text(url.clone().into())];
            }
        });
    });
    rig.draw();
    assert!(!rig.shown.contains(&url), "it is wrapped: {}", rig.shown);
    rig.drag("https://example.org", "/end");
    assert_eq!(rig.selected(), Some(url));
}

#[test]
fn typing_does_not_move_a_scrolled_view() {
    let mut rig = Rig::new(fixture::ready());
    rig.stage.session(|session| {
        for number in 0..60 {
            let text = format!("paragraph {number}");
            let message = fixture::message(crate::model::Role::Agent, &text, std::time::Instant::now());
            session.transcript.push(1, crate::core::ItemBody::Message(message));
        }
    });
    rig.draw();
    rig.view.apply(crate::core::ViewCommand::ScrollPages(-1));
    rig.draw();
    let above = |rig: &Rig| rig.shown.lines().skip(2).take(14).map(str::to_owned).collect::<Vec<_>>();
    let before = above(&rig);
    assert!(before.iter().any(|row| row.contains("paragraph")), "{before:#?}");
    for ch in "a few words".chars() {
        for event in rig.key(KeyCode::Char(ch)) {
            for effect in crate::ui::update(&mut rig.stage.app, event, rig.stage.now) {
                if let crate::core::Effect::View(command) = effect {
                    rig.view.apply(command);
                }
            }
        }
        rig.draw();
        assert_eq!(above(&rig), before, "after {ch:?}");
    }
    assert!(rig.shown.contains("a few words"), "{}", rig.shown);
}

#[test]
fn views_of_closed_sessions_are_not_retained() {
    let mut rig = Rig::new(fixture::streaming());
    let first = rig.stage.state.active;
    let second = rig.stage.state.add_session();
    rig.stage.state.active = second;
    rig.draw();
    assert_eq!(rig.view.transcripts.len(), 2);
    rig.stage.state.sessions.remove(&first);
    rig.draw();
    assert_eq!(rig.view.transcripts.keys().copied().collect::<Vec<_>>(), [second]);
}

#[test]
fn double_click_selects_a_word_and_triple_click_a_line() {
    let mut rig = Rig::new(fixture::streaming());
    let down = MouseEventKind::Down(MouseButton::Left);
    let up = MouseEventKind::Up(MouseButton::Left);
    let row =
        u16::try_from(rig.shown.lines().position(|line| line.contains("src/auth.rs")).unwrap()).unwrap();
    let mut taken = Vec::new();
    for _ in 0..4 {
        rig.mouse(down, 32, row);
        rig.mouse(up, 32, row);
        taken.push(rig.selected());
    }
    let line = Some("fix the failing test in src/auth.rs".to_owned());
    assert_eq!(taken, [None, Some("src/auth.rs".to_owned()), line, None]);
    rig.mouse(down, 32, row);
    rig.mouse(MouseEventKind::Drag(MouseButton::Left), 20, row);
    assert_eq!(
        rig.selected().as_deref(),
        Some("test in src/auth.rs"),
        "dragging extends the selection by words"
    );
}

#[test]
fn escape_clears_the_selection_first() {
    let mut rig = Rig::new(fixture::streaming());
    rig.drag("off by", "clock");
    assert!(rig.selected().is_some());
    assert_eq!(rig.key(KeyCode::Esc), []);
    assert_eq!(rig.selected(), None);
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
}

#[test]
fn letters_copy_only_if_copy_on_select_is_off() {
    let mut rig = Rig::new(fixture::streaming());
    let draft = rig.view.draft();
    rig.drag("off by", "clock");
    assert_eq!(rig.key(KeyCode::Char('y')), [Event::Draft(format!("{draft}y"))]);
    assert_eq!(rig.selected(), None);
    rig.drag("off by", "clock");
    assert_eq!(rig.key_with(KeyCode::Char('c'), KeyModifiers::CONTROL), [], "it was copied");
    assert_eq!(rig.key_with(KeyCode::Char('c'), KeyModifiers::CONTROL), act(Action::ClearOrQuit));
    rig.view.copies_on_select = false;
    assert_eq!(rig.drag("off by", "clock"), []);
    assert_eq!(rig.key(KeyCode::Char('y')), act(Action::CopySelection));
    assert!(rig.selected().is_some(), "the event loop reads it before it is cleared");
}

#[test]
fn dragging_beyond_the_edge_scrolls() {
    let mut rig = Rig::new(fixture::streaming());
    rig.stage.session(|session| {
        let body = session.transcript.items()[1].body.clone();
        for number in 0..60 {
            let id = session.transcript.push(1, body.clone());
            session.transcript.edit(id, |item| {
                if let crate::core::ItemBody::Message(message) = &mut item.body {
                    message.parts =
                        vec![crate::core::MessagePart::Text(format!("paragraph {number}").into())];
                }
            });
        }
    });
    rig.draw();
    rig.mouse(MouseEventKind::Down(MouseButton::Left), 60, 10);
    rig.mouse(MouseEventKind::Drag(MouseButton::Left), 3, 0);
    let mut frames = 0;
    while let Some(step) = crate::ui::next_frame_in(&rig.stage.app, &rig.view)
        && step == crate::ui::transcript::EDGE_STEP
    {
        rig.stage.now += step;
        rig.draw();
        frames += 1;
        assert!(frames < 500, "scrolling stops at the start");
    }
    rig.mouse(MouseEventKind::Up(MouseButton::Left), 3, 0);
    let taken = rig.selected().unwrap();
    assert!(taken.starts_with("fix the failing"), "{taken}");
    assert!(taken.contains("paragraph 7\n\nparagraph 8\n\nparagraph 9"), "{taken}");
}

#[test]
fn selection_follows_its_text_when_output_arrives() {
    let mut rig = Rig::new(fixture::streaming());
    rig.drag("off by", "clock");
    for _ in 0..30 {
        rig.stage.session(|session| {
            let body = session.transcript.items()[1].body.clone();
            session.transcript.push(1, body);
        });
        rig.draw();
    }
    assert!(!rig.shown.contains("off by the clock"), "it was scrolled out of view");
    assert_eq!(rig.selected().as_deref(), Some("off by the clock"));
}

#[test]
fn keys_are_captured_with_what_they_are_bound_to() {
    let mut rig = Rig::new(fixture::ready());
    let binding = rig.keymap.binding_rows().into_iter().find(|row| row.action == "open-log").unwrap();
    let capture = |pressed: &[&str]| crate::ui::dialogs::KeyCapture {
        binding: binding.clone(),
        keeps: Vec::new(),
        pressed: pressed.iter().map(|key| (*key).to_owned()).collect(),
    };
    let captured = |keys: &str, label: &str, taken: Option<(&str, &str)>| {
        let taken = taken.map(|(keys, meaning)| (keys.to_owned(), meaning.to_owned()));
        vec![Event::Captured { keys: keys.into(), label: label.into(), taken }]
    };
    for (pressed, expected) in [
        (&["f11"][..], captured("f11", "F11", None)),
        (&["f9"], captured("f9", "F9", Some(("F9", "Select theme")))),
        (&["f9", "g"], captured("f9 g", "F9 g", Some(("F9", "Select theme")))),
        (&["ctrl+x"], captured("ctrl+x", "Ctrl+X", Some(("Ctrl+X", "sequences that start with Ctrl+X")))),
        (&["ctrl+x", "f11"], captured("ctrl+x f11", "Ctrl+X F11", None)),
        (&["enter"], captured("enter", "Enter", Some(("Enter", "Send, or queue during a turn")))),
    ] {
        rig.stage.layers = capture(pressed).into();
        assert_eq!(rig.key(KeyCode::Enter), expected, "{pressed:?}");
    }
    assert_eq!(rig.key(KeyCode::F(11)), [Event::Capturing("f11".into())]);
    assert_eq!(rig.key(KeyCode::Esc), act(Action::Escape));
    rig.stage.layers = capture(&[]).into();
    assert_eq!(rig.key(KeyCode::Enter), [Event::Capturing("enter".into())]);
    rig.stage.layers = capture(&["g"; 4]).into();
    assert_eq!(rig.key(KeyCode::F(11)), [], "the limit");
}
