use std::num::NonZero;

use proptest::prelude::*;
use ratatui::buffer::CellWidth;
use ratatui::layout::Position;

use super::*;
use crate::app::{ItemBody, LineInput, Message, MessagePart, Modal, ViewCommand};
use crate::model::{ItemId, Role};
use crate::runtime::paint::Painter;
use crate::ui::tests::fixture::{Stage, ready, theme};
use crate::ui::{ViewState, draw_into};

/// What happens between two frames.
#[derive(Debug, Clone)]
enum Step {
    Say(Role, String),
    Mark(i64),
    Dialog(bool),
    Theme(&'static str),
    Resize(u16, u16),
    View(ViewCommand),
    Press(u16, u16),
    Drag(u16, u16),
    Nothing,
}

fn step() -> impl Strategy<Value = Step> {
    let say = |role| move |text| Step::Say(role, text);
    prop_oneof![
        8 => "[a-z *`\n]{1,60}".prop_map(say(Role::Agent)),
        2 => "[a-z日👩 ]{1,90}".prop_map(say(Role::User)),
        3 => (-9..9_i32).prop_map(|lines| Step::View(ViewCommand::ScrollLines(lines))),
        1 => Just(Step::View(ViewCommand::ScrollEnd)),
        1 => "[a-z\n]{0,9}".prop_map(|text| Step::View(ViewCommand::SetDraft(text))),
        1 => (0..6_i64).prop_map(Step::Mark),
        1 => any::<bool>().prop_map(Step::Dialog),
        1 => prop_oneof![Just("dark"), Just("light")].prop_map(Step::Theme),
        1 => ((30..70_u16), (8..24_u16)).prop_map(|(cols, rows)| Step::Resize(cols, rows)),
        1 => ((0..60_u16), (0..20_u16)).prop_map(|(x, y)| Step::Press(x, y)),
        1 => ((0..60_u16), (0..20_u16)).prop_map(|(x, y)| Step::Drag(x, y)),
        1 => Just(Step::Nothing),
    ]
}

/// Adds to the last message, or a message.
fn say(stage: &mut Stage, role: Role, text: &str) {
    let began = stage.now;
    stage.session(|session| {
        let transcript = &mut session.transcript;
        let open = transcript
            .items()
            .last()
            .filter(|item| matches!(&item.body, ItemBody::Message(message) if message.role == role));
        let Some(id) = open.map(|item| item.id) else {
            let parts = vec![MessagePart::Text(text.to_owned())];
            let message =
                Message { role, message: None, parts, is_open: true, began, took: None, is_local: false };
            transcript.push(1, ItemBody::Message(message));
            return;
        };
        transcript.edit(id, |item| {
            if let ItemBody::Message(message) = &mut item.body
                && let Some(MessagePart::Text(open)) = message.parts.last_mut()
            {
                open.push_str(text);
            }
        });
    });
}

/// What the terminal shows.
fn shown(terminal: &vt100::Parser, (cols, rows): (u16, u16)) -> Vec<String> {
    let text = |y: u16| {
        let (mut text, mut x) = (String::new(), 0);
        while x < cols {
            let cell = terminal.screen().cell(y, x).unwrap();
            text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            x += if cell.is_wide() { 2 } else { 1 };
        }
        text
    };
    (0..rows).map(text).collect()
}

/// What a buffer is to show.
fn wanted(buf: &Buffer) -> Vec<String> {
    let text = |y: u16| {
        let (mut text, mut x) = (String::new(), 0);
        while x < buf.area.width {
            text.push_str(buf[(x, y)].symbol());
            x += buf[(x, y)].cell_width().max(1);
        }
        text
    };
    (0..buf.area.height).map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever happens, a frame over the last one has the cells of a frame on nothing, and the terminal shows them.
    #[test]
    fn a_frame_over_the_last_one_is_the_frame(steps in prop::collection::vec(step(), 1..40)) {
        let mut stage = ready();
        let (mut size, mut name) = ((60, 20), "dark");
        let mut views = [stage.view(), stage.view()];
        let mut painter = Painter::new(size.0, size.1);
        let emulator = |(cols, rows): (u16, u16)| {
            vt100::Parser::new(NonZero::new(rows).unwrap(), NonZero::new(cols).unwrap(), 0)
        };
        let mut terminal = emulator(size);
        for step in steps {
            match &step {
                Step::Say(role, text) => say(&mut stage, *role, text),
                Step::Mark(id) => stage.session(|session| session.selected = Some(ItemId(*id))),
                Step::Dialog(true) => stage.state.modals.push(Modal::Help { filter: LineInput::default() }),
                Step::Dialog(false) => stage.state.modals.clear(),
                Step::Theme(other) => name = other,
                Step::Resize(cols, rows) => {
                    size = (*cols, *rows);
                    terminal = emulator(size);
                    painter.clear();
                }
                Step::View(command) => views.iter_mut().for_each(|view| view.apply(command.clone())),
                Step::Press(x, y) | Step::Drag(x, y) => {
                    let is_press = matches!(step, Step::Press(..));
                    for transcript in views.iter_mut().filter_map(ViewState::transcript_mut) {
                        let at = Position { x: *x, y: *y };
                        if is_press { transcript.press(at, stage.now) } else { transcript.drag(at, stage.now) }
                    }
                }
                Step::Nothing => {}
            }
            let theme = theme(name);
            let [view, other] = &mut views;
            let mut fresh = Buffer::empty(Rect::new(0, 0, size.0, size.1));
            draw_into(&stage.state, other, &theme, &mut fresh, false);
            painter.resize(size.0, size.1);
            let (buf, is_old) = painter.begin();
            let cursor = draw_into(&stage.state, view, &theme, buf, is_old);
            prop_assert_eq!(&*buf, &fresh);
            let bytes = painter.finish(cursor, view.rows()).to_vec();
            terminal.process(&bytes);
            prop_assert_eq!(shown(&terminal, size), wanted(&fresh));
        }
    }
}

/// Draws some frames of a message that grows; how many rows the last one drew.
fn drawn_rows(chunks: &[&str]) -> (usize, Option<Moved>) {
    let mut stage = ready();
    for n in 0..30 {
        say(&mut stage, if n % 2 == 0 { Role::User } else { Role::Agent }, &format!("number {n}"));
    }
    let (mut view, theme) = (stage.view(), theme("dark"));
    let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
    let mut is_old = false;
    for chunk in chunks {
        say(&mut stage, Role::Agent, chunk);
        draw_into(&stage.state, &mut view, &theme, &mut buf, is_old);
        is_old = true;
    }
    ((0..24).filter(|y| !view.rows().is_kept(*y)).count(), view.rows().moved())
}

#[test]
fn a_frame_draws_what_is_not_of_the_transcript_and_the_rows_that_differ() {
    let (chrome, moved) = drawn_rows(&["one ", ""]);
    assert_eq!(moved, None);
    assert!(chrome <= 7, "{chrome} rows of 24 are not of the transcript");
    assert_eq!(drawn_rows(&["one ", "two "]), (chrome + 1, None));
    let (drawn, moved) = drawn_rows(&["one ", &"two ".repeat(20)]);
    assert_eq!(moved.map(|moved| moved.up), Some(1));
    assert!(drawn <= chrome + 4, "the line that grew, the new one and the ends of the scroll bar: {drawn}");
}

#[test]
fn what_moved_is_found() {
    let rows: Vec<u64> = (0..40).collect();
    assert_eq!(find_move(&rows, &rows), 0);
    let later: Vec<u64> = (3..43).collect();
    assert_eq!(find_move(&rows, &later), 3);
    assert_eq!(find_move(&later, &rows), -3);
    let other: Vec<u64> = (100..140).collect();
    assert_eq!(find_move(&rows, &other), 0);
    // Blank rows look alike wherever they are.
    assert_eq!(find_move(&[7; 40], &[7; 40]), 0);
}
