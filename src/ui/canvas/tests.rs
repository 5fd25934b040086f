use std::num::NonZero;
use std::time::Duration;

use proptest::prelude::*;
use ratatui::buffer::CellWidth;
use ratatui::layout::Position;

use super::*;
use crate::core::{self, Effect, ItemBody, LineInput, Message, MessagePart, TimerId, Turn, ViewCommand};
use crate::model::{
    Action, AgentEvent, ConnId, DiffChange, FileDiff, ItemId, Patch, Plan, PlanBody, PlanEntry, PlanPriority,
    PlanStatus, Role, SessionUpdate, ToolCallPatch, ToolContent, ToolStatus, Usage,
};
use crate::runtime::paint::Painter;
use crate::ui::Event;
use crate::ui::dialogs::HelpPage;
use crate::ui::highlight;
use crate::ui::tests::fixture::{self, Stage, ready, theme};
use crate::ui::update;
use crate::ui::{ViewState, draw_into};

/// An event between two frames.
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
    /// Text of a running turn, or any other event.
    Happen(Event),
    Turn(bool),
    Wait(u64),
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
        1 => prop_oneof![30..70_u16, 160..180_u16]
            .prop_flat_map(|cols| (8..24_u16).prop_map(move |rows| Step::Resize(cols, rows))),
        1 => ((0..60_u16), (0..20_u16)).prop_map(|(x, y)| Step::Press(x, y)),
        1 => ((0..60_u16), (0..20_u16)).prop_map(|(x, y)| Step::Drag(x, y)),
        8 => happening().prop_map(Step::Happen),
        2 => any::<bool>().prop_map(Step::Turn),
        3 => (0..40_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Nothing),
    ]
}

fn happening() -> impl Strategy<Value = Event> {
    let update =
        |update| -> Event { core::Event::Agent(ConnId(1), AgentEvent::Update("s-1".into(), update)).into() };
    let chunk = |role| move |text| SessionUpdate::Chunk { role, message: None, text };
    let usage = |used| SessionUpdate::Usage(Usage { used_tokens: used, size_tokens: 90, cost: None });
    let edit = |name: String| {
        let change = DiffChange::Texts { old: None, new: name.as_str().into() };
        let mut patch = ToolCallPatch::new(name.as_str().into());
        patch.status = Patch::Set(ToolStatus::Completed);
        patch.content = Patch::Set(vec![ToolContent::Diff(FileDiff { path: name.into(), change })]);
        SessionUpdate::Tool(Box::new(patch))
    };
    let action = |action| Just(Event::Act(action));
    let step = |content| PlanEntry { content, priority: PlanPriority::High, status: PlanStatus::Pending };
    let plan =
        move |content| SessionUpdate::Plan(Plan { id: None, body: PlanBody::Entries(vec![step(content)]) });
    prop_oneof![
        6 => "[a-z *`\n]{1,60}".prop_map(chunk(Role::Agent)).prop_map(update),
        1 => "[a-z ]{1,60}".prop_map(chunk(Role::Thought)).prop_map(update),
        1 => "[a-z ]{1,60}".prop_map(chunk(Role::User)).prop_map(update),
        1 => (0..99_u64).prop_map(usage).prop_map(update),
        1 => "[a-z]{1,3}\\.txt".prop_map(edit).prop_map(update),
        1 => "[a-z ]{1,9}".prop_map(plan).prop_map(update),
        1 => prop_oneof![Just("d"), Just("p")].prop_map(|id| SessionUpdate::Mode(id.into())).prop_map(update),
        1 => "[a-z ]{1,9}".prop_map(|title| SessionUpdate::Info {
            title: Patch::Set(title),
            updated_at: Patch::Keep,
        })
        .prop_map(update),
        1 => prop_oneof![action(Action::Browse), action(Action::ToggleMouse), action(Action::Escape)],
        1 => prop_oneof![action(Action::OpenSearch), action(Action::NewTab), action(Action::NextTab)],
        1 => Just(core::Event::Timer(TimerId::Flash).into()),
    ]
}

/// Appends to the last message, or adds a message.
fn say(stage: &mut Stage, role: Role, text: &str) {
    let began = stage.now;
    stage.session(|session| {
        let transcript = &mut session.transcript;
        let open = transcript
            .items()
            .last()
            .filter(|item| matches!(&item.body, ItemBody::Message(message) if message.role == role));
        let Some(id) = open.map(|item| item.id) else {
            let message = Message { is_open: true, ..fixture::message(role, text, began) };
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

/// The cells shown by the terminal, as text.
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

/// The cells of a buffer, as text.
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

    /// A frame drawn over the previous one has the cells of a frame drawn from scratch, and the terminal shows them.
    #[test]
    fn a_frame_over_the_previous_one_equals_a_full_frame(steps in prop::collection::vec(step(), 1..40)) {
        let epoch = highlight::epoch();
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
                Step::Mark(id) => stage.shown_mut().selected = Some(ItemId(*id)),
                Step::Dialog(true) => stage.layers.push(HelpPage { filter: LineInput::default() }),
                Step::Dialog(false) => stage.layers.clear(),
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
                Step::Happen(event) => {
                    for effect in update(&mut stage.app, event.clone(), stage.now) {
                        if let Effect::View(command) = effect {
                            for view in &mut views {
                                view.apply(command.clone());
                            }
                        }
                    }
                }
                Step::Turn(runs) => {
                    let now = stage.now;
                    let turn = if *runs { Turn::Running { since: now, last_news: now } } else { Turn::Idle };
                    stage.session(|session| session.turn = turn);
                    stage.state.chrome_changes += 1;
                }
                Step::Wait(millis) => stage.now += Duration::from_millis(*millis),
                Step::Nothing => {}
            }
            for view in &mut views {
                view.set_now(stage.now);
            }
            let theme = theme(name);
            let [view, other] = &mut views;
            let mut fresh = Canvas::new(size.0, size.1);
            let wanted_cursor = draw_into(&stage, other, &theme, &mut fresh);
            painter.resize(size.0, size.1);
            let cursor = draw_into(&stage, view, &theme, painter.canvas());
            // A language that other tests made ready in between changes the layout.
            prop_assume!(highlight::epoch() == epoch);
            prop_assert_eq!(&**painter.canvas(), &*fresh);
            prop_assert_eq!(cursor, wanted_cursor);
            prop_assert_eq!(&view.hits, &other.hits);
            let bytes = painter.finish(cursor).to_vec();
            terminal.process(&bytes);
            prop_assert_eq!(shown(&terminal, size), wanted(&fresh));
        }
    }
}

/// Draws some frames of a growing message; returns the number of rows drawn by the last one.
fn drawn_rows(chunks: &[&str]) -> (usize, Option<Scroll>) {
    let mut stage = ready();
    for n in 0..30 {
        say(&mut stage, if n % 2 == 0 { Role::User } else { Role::Agent }, &format!("number {n}"));
    }
    let (mut view, theme, mut canvas) = (stage.view(), theme("dark"), Canvas::new(80, 24));
    for chunk in chunks {
        say(&mut stage, Role::Agent, chunk);
        draw_into(&stage, &mut view, &theme, &mut canvas);
        canvas.set_shown();
    }
    ((0..24).filter(|y| !canvas.is_saved(*y)).count(), canvas.scroll())
}

#[test]
fn a_frame_draws_only_the_rows_that_differ() {
    assert_eq!(drawn_rows(&["one "]), (24, None));
    assert_eq!(drawn_rows(&["one ", ""]), (0, None));
    assert_eq!(drawn_rows(&["one ", "two "]), (1, None));
    let (drawn, scroll) = drawn_rows(&["one ", &"two ".repeat(20)]);
    assert_eq!(scroll.map(|scroll| scroll.up), Some(1));
    assert!(drawn <= 4, "the line that grew, the new one and the ends of the scroll bar: {drawn}");
}

/// Number of rows around the transcript drawn after an event of a running turn, `millis` milliseconds later.
fn drawn_chrome(update_of: SessionUpdate, millis: u64) -> usize {
    let mut stage = ready();
    let now = stage.now;
    stage.session(|session| session.turn = Turn::Running { since: now, last_news: now });
    say(&mut stage, Role::Agent, "one");
    let (mut view, theme, mut canvas) = (stage.view(), theme("dark"), Canvas::new(80, 24));
    draw_into(&stage, &mut view, &theme, &mut canvas);
    canvas.set_shown();
    let event = core::Event::Agent(ConnId(1), AgentEvent::Update("s-1".into(), update_of));
    update(&mut stage, event, now);
    view.set_now(now + Duration::from_millis(millis));
    draw_into(&stage, &mut view, &theme, &mut canvas);
    [0, 1, 20, 21, 22, 23].into_iter().filter(|y| !canvas.is_saved(*y)).count()
}

#[test]
fn text_of_a_turn_does_not_redraw_the_chrome_until_a_shown_time_changes() {
    let chunk = || SessionUpdate::Chunk { role: Role::Agent, message: None, text: "two".into() };
    assert_eq!(drawn_chrome(chunk(), 90), 0);
    assert_eq!(drawn_chrome(chunk(), 110), 6, "the spinner");
    assert_eq!(drawn_chrome(SessionUpdate::Mode("p".into()), 0), 6);
}
