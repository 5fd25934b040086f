use std::time::Duration;

use super::question::{Reply, reply};
use super::*;
use crate::core::{self, Consequence, Decision, Question, QuestionId, Setup, TimerId, ToolCall, UserAnswer};
use crate::model::{
    Action, AgentEvent, ConnId, ContentBlock, DiffChange, DiffPosition, FaultKind, FileDiff, ItemId,
    LineEdit, LocatedDiff, Raw, SessionUpdate, ToolContent, ToolKind, ToolStatus,
};
use crate::ui::Event;
use crate::ui::dialogs;
use crate::ui::dialogs::QuestionDialog;
use crate::ui::dialogs::QueueDialog;
use crate::ui::tests::fixture::{self, Stage};
use crate::ui::{App, update};

/// The output for a state from the start.
fn output(stage: &Stage) -> String {
    PlainOutput::new(Glyphs::plain()).advance(stage, stage.now)
}

/// An output that has printed the state.
fn started(stage: &Stage) -> PlainOutput {
    let mut plain = PlainOutput::new(Glyphs::plain());
    plain.advance(stage, stage.now);
    plain
}

fn push_message(stage: &mut Stage, role: Role, text: &str, is_open: bool) -> ItemId {
    let began = stage.now;
    let mut id = ItemId(0);
    stage.session(|session| {
        let message = Message { is_open, ..fixture::message(role, text, began) };
        id = session.transcript.push(2, ItemBody::Message(message));
    });
    id
}

fn edit_text(stage: &mut Stage, id: ItemId, text: &str, open: bool) {
    stage.session(|session| {
        session.transcript.edit(id, |item| {
            if let ItemBody::Message(message) = &mut item.body {
                (message.parts, message.is_open) = (vec![MessagePart::Text(text.to_owned().into())], open);
            }
        });
    });
}

#[test]
fn text_is_printed_once_by_complete_lines() {
    let mut stage = fixture::ready();
    let mut plain = started(&stage);
    let id = push_message(&mut stage, Role::Agent, "One line", true);
    assert_eq!(plain.advance(&stage, stage.now), "");
    edit_text(&mut stage, id, "One line.\n\nTwo", true);
    assert_eq!(plain.advance(&stage, stage.now), "\nclaude:\nOne line.\n");
    edit_text(&mut stage, id, "One line.\n\nTwo lines.\n\n", true);
    assert_eq!(plain.advance(&stage, stage.now), "\nTwo lines.\n");
    assert_eq!(plain.advance(&stage, stage.now), "");
    edit_text(&mut stage, id, "One line.\n\nTwo lines.\n\nThe \u{1b}[31mend\u{7}", false);
    assert_eq!(plain.advance(&stage, stage.now), "\nThe end\u{2407}\n");
    assert_eq!(plain.advance(&stage, stage.now), "");
}

#[test]
fn prompts_are_numbered_and_typed_ones_not_repeated() {
    let mut stage = fixture::ready();
    let mut plain = started(&stage);
    let session = stage.state.active_session().unwrap().clone();
    let number = session.turn_count + 1;
    assert_eq!(plain.prompt(&session), format!("\n[{number}] You: "));
    assert_eq!(plain.prompt(&session), "", "it is shown already");
    plain.note_typed("hello");
    push_message(&mut stage, Role::User, "hello", false);
    assert_eq!(plain.advance(&stage, stage.now), "");
    push_message(&mut stage, Role::User, "from the queue", false);
    assert_eq!(plain.advance(&stage, stage.now), "\n[2] You: from the queue\n");
}

#[test]
fn output_ends_an_open_prompt_line() {
    let mut stage = fixture::ready();
    let mut plain = started(&stage);
    plain.prompt(&stage.state.active_session().unwrap().clone());
    push_message(&mut stage, Role::Agent, "By the way.", false);
    assert_eq!(plain.advance(&stage, stage.now), "\n\nclaude:\nBy the way.\n");
    assert!(
        plain.prompt(&stage.state.active_session().unwrap().clone()).contains("You: "),
        "the prompt is shown again"
    );
}

#[test]
fn calls_are_printed_when_completed_and_commands_when_started() {
    let mut stage = fixture::ready();
    let mut plain = started(&stage);
    let mut tool = ToolCall::new("t".into(), stage.now);
    (tool.kind, tool.status) = (ToolKind::Execute, ToolStatus::InProgress);
    tool.input.command = Some("make test".into());
    let mut id = ItemId(0);
    stage.session(|session| id = session.transcript.push(1, ItemBody::Tool(Box::new(tool))));
    assert_eq!(plain.advance(&stage, stage.now), "... run make test\n");
    assert_eq!(plain.advance(&stage, stage.now), "");
    stage.session(|session| {
        session.transcript.edit(id, |item| {
            if let ItemBody::Tool(tool) = &mut item.body {
                tool.status = ToolStatus::Completed;
                tool.content = vec![ToolContent::Block(ContentBlock::Text("all \u{1b}[32mwell\n".into()))];
            }
        });
    });
    assert_eq!(plain.advance(&stage, stage.now), "+ run     make test\n  all well\n");
}

#[test]
fn changes_are_printed_line_by_line() {
    let mut stage = fixture::ready();
    let mut tool = ToolCall::new("t".into(), stage.now);
    (tool.kind, tool.status) = (ToolKind::Edit, ToolStatus::Completed);
    let texts = DiffChange::Texts { old: Some("a\nb\n".into()), new: "a\nc\n".into() };
    tool.content = vec![ToolContent::Diff(FileDiff { path: "x.txt".into(), change: texts })];
    stage.session(|session| {
        session.transcript.push(1, ItemBody::Tool(Box::new(tool)));
    });
    let text = output(&stage);
    assert!(text.contains("+ edit    x.txt  +1 -1\n    a\n  - b\n  + c\n"), "{text}");
}

#[test]
fn rejected_changes_show_only_the_reason() {
    let mut stage = fixture::ready();
    let mut tool = ToolCall::new("t".into(), stage.now);
    (tool.kind, tool.status) = (ToolKind::Edit, ToolStatus::Failed);
    tool.decision = Some(Decision::Chosen { name: "No".to_owned(), kind: None, is_allow: false, rule: None });
    let texts = DiffChange::Texts { old: Some("a\nb\n".into()), new: "a\nc\n".into() };
    tool.content = vec![
        ToolContent::Block(ContentBlock::Text("The file is generated.".into())),
        ToolContent::Diff(FileDiff { path: "x.txt".into(), change: texts }),
    ];
    stage.session(|session| {
        session.transcript.push(1, ItemBody::Tool(Box::new(tool)));
    });
    let text = output(&stage);
    assert!(
        text.contains("edit    x.txt  +1 -1  rejected\n  The file is generated.\nclaude is ready"),
        "{text}"
    );
}

#[test]
fn permission_requests_are_numbered_questions() {
    let stage = fixture::permission();
    let text = output(&stage);
    assert!(text.contains("claude asks: Allow this edit? edit src/auth/token.rs\n"), "{text}");
    assert!(text.contains("+     let line_20 = 20 + SKEW"), "{text}");
    assert!(text.contains("\n1. Yes, this once\n2. "), "{text}");
    assert!(text.ends_with("Type a number and press Enter, or :cancel.\n"), "{text}");
    assert!(!text.contains('\u{1b}'));
    let (_, open) = stage.app.shown_request().unwrap();
    let id = QuestionId::Agent(open.request_id);
    assert_eq!(reply(&stage, "1"), Reply::Do(vec![core::Event::Answer(id, UserAnswer::Option(0)).into()]));
    for wrong in ["", "0", "99", "yes please", "-1"] {
        assert!(matches!(reply(&stage, wrong), Reply::Say(_)), "{wrong}");
    }
    assert_eq!(reply(&stage, ":cancel"), Reply::Do(vec![Event::Act(Action::Escape)]));
}

/// Hands the core to another front end.
fn hand(from: &mut App, to: &mut App) {
    std::mem::swap(&mut from.state, &mut to.state);
    dialogs::refresh(to);
}

#[test]
fn the_first_answer_of_two_front_ends_counts() {
    let mut screen = fixture::permission();
    let now = screen.now;
    screen.app.layers.push(QueueDialog::default());
    let has_queue_only = |app: &App| app.layers.len() == 1 && app.layers.top::<QueueDialog>().is_some();
    let ids: Vec<_> =
        screen.state.active_session().unwrap().requests.iter().map(|open| open.request_id).collect();
    let mut lines = App::new(State::new(Setup::default()));

    hand(&mut screen.app, &mut lines);
    let Reply::Do(events) = reply(&lines, "1") else { panic!("the first request has this answer") };
    for event in events {
        update(&mut lines, event, now);
    }
    assert_eq!(lines.shown_request().map(|(_, open)| open.request_id), Some(ids[1]));

    hand(&mut lines, &mut screen.app);
    assert!(has_queue_only(&screen), "each front end has dialogs of its own");
    update(&mut screen, core::Event::Answer(QuestionId::Agent(ids[0]), UserAnswer::Option(2)), now);
    assert_eq!(screen.state.flash.as_deref(), Some("The question is closed: it was answered or withdrawn."));
    assert_eq!(screen.state.active_session().unwrap().requests.len(), 1, "the other one is still open");

    let answers = [("Not now", Consequence::Close), ("Quit", Consequence::Quit)];
    let active = screen.state.active;
    screen.app.state.ask(active, Question::new("Quit?", Vec::new(), answers));
    dialogs::refresh(&mut screen.app);
    let asked = screen.layers.top::<QuestionDialog>().expect("the screen shows it").id;
    hand(&mut screen.app, &mut lines);
    assert_eq!(lines.layers.top(), Some(&QuestionDialog { id: asked, marked: 0 }));
    update(&mut lines, core::Event::Answer(asked, UserAnswer::Dismiss), now);
    hand(&mut lines, &mut screen.app);
    assert!(has_queue_only(&screen), "it closes where it was not answered");
    assert!(!screen.state.is_quitting);
}

#[test]
fn each_front_end_has_its_own_view_of_a_session() {
    let mut first = fixture::streaming();
    let now = first.now;
    let mut second = App::new(State::new(Setup::default()));
    for event in [Event::Act(Action::OpenSearch), Event::Line(LineEdit::Insert("zebra".into()))] {
        update(&mut first, event, now);
    }
    let key = first.state.active;
    let raw = ItemBody::Raw { name: "news".to_owned(), raw: Raw("{}".into()) };
    let news = first.app.state.sessions.get_mut(&key).unwrap().transcript.push(1, raw);
    for action in [Action::NextField, Action::SelectPrevious, Action::ToggleItem(news)] {
        update(&mut first, Event::Act(action), now);
    }
    let seen =
        |app: &App| (app.shown().selected, app.shown().item(news).is_open, app.shown().search.is_some());
    let chosen = seen(&first);
    assert!(chosen.0.is_some() && chosen.1.is_some() && chosen.2);

    hand(&mut first.app, &mut second);
    assert_eq!(seen(&second), (None, None, false));
    let chunk = SessionUpdate::Chunk { role: Role::Agent, message: None, text: "\n\nA zebra.".into() };
    let id = second.state.active_session().unwrap().id.clone().unwrap();
    update(&mut second, core::Event::Agent(ConnId(1), AgentEvent::Update(id, chunk)), now);

    hand(&mut second, &mut first.app);
    assert_eq!(seen(&first), chosen);
    update(&mut first, core::Event::Timer(TimerId::Search(key)), now);
    let search = first.shown().search.as_ref().expect("the search is still open");
    assert_eq!(search.total(), 1, "it finds what came while the other one had the core");
}

#[test]
fn questions_are_not_repeated_when_line_numbers_become_known() {
    let mut stage = fixture::permission();
    let mut plain = PlainOutput::new(Glyphs::plain());
    let first = plain.advance(&stage, stage.now);
    assert!(first.contains("asks: Allow this edit?"), "{first}");
    let before = first.matches("SKEW").count();
    stage.session(|session| {
        let last = session.transcript.items().last().map(|item| item.id).unwrap();
        session.transcript.edit(last, |item| {
            let ItemBody::Tool(tool) = &mut item.body else { panic!("no call") };
            let diff = tool.diffs().next().cloned().unwrap();
            tool.positions.push(LocatedDiff { diff, position: DiffPosition::Whole, is_done: false });
        });
    });
    let numbered = output(&stage);
    assert!(numbered.contains("20 + "), "the line numbers are known now: {numbered}");
    assert_eq!(numbered.matches("SKEW").count(), before);
    assert_eq!(plain.advance(&stage, stage.now), "");
    // The next request has the same text but is a new question.
    stage.session(|session| {
        session.requests.pop_front();
    });
    let second = plain.advance(&stage, stage.now);
    assert!(second.contains("asks: Allow this edit?"), "{second}");
}

#[test]
fn ends_of_turns_and_queued_prompts_are_printed() {
    let mut stage = fixture::ready();
    let mut plain = started(&stage);
    let (now, since) = (stage.now, fixture::ago(stage.now, 5));
    stage.session(|session| {
        session.turn_count = 1;
        session.turn = Turn::Running { since, last_news: now };
    });
    assert_eq!(plain.advance(&stage, now), "");
    stage.session(|session| {
        session.outbox.enqueue("then this".into());
    });
    assert_eq!(plain.advance(&stage, now), "(1 prompt queued.)\n");
    stage.session(|session| {
        drop(session.outbox.take_queue());
        session.turn_count = 2;
        session.turn = Turn::Running { since: now, last_news: now };
    });
    push_message(&mut stage, Role::User, "then this", false);
    assert_eq!(plain.advance(&stage, now), "[1] Finished after 5 s.\n\n[2] You: then this\n");
    stage.session(|session| session.turn = Turn::Idle);
    assert_eq!(plain.advance(&stage, now), "[2] Finished.\n");
    assert_eq!(plain.failed_turns(), 0);
    for (turn, end, said) in [
        (3, TurnEnd::Failed { error: "overloaded".into(), fault: FaultKind::Agent }, "Failed"),
        (4, TurnEnd::Stopped { reason: StopReason::Refusal, usage: None, took: Duration::ZERO }, "Refused"),
    ] {
        stage.session(|session| {
            session.turn_count = turn;
            session.turn = Turn::Running { since: now, last_news: now };
        });
        plain.advance(&stage, now);
        stage.session(|session| {
            session.transcript.push(turn, ItemBody::TurnEnd(end));
            session.turn = Turn::Idle;
        });
        let text = plain.advance(&stage, now);
        assert!(text.contains(&format!("[{turn}] {said}.")), "{text}");
    }
    assert_eq!(plain.failed_turns(), 2);
}

#[test]
fn lists_accept_numbers_and_filter_text() {
    let stage = fixture::picker("");
    let text = output(&stage);
    assert!(text.contains("\n1. ") && text.contains("text to filter"), "{text}");
    let picked = vec![Event::Act(Action::Mark(1)), Event::Act(Action::Accept)];
    assert_eq!(reply(&stage, "2"), Reply::Do(picked));
    let filtered = vec![Event::Line(LineEdit::Clear), Event::Line(LineEdit::Insert("gem".into()))];
    assert_eq!(reply(&stage, "gem"), Reply::Do(filtered));
}

#[test]
fn forms_are_asked_field_by_field() {
    let mut stage = fixture::form();
    crate::ui::dialogs::refresh(&mut stage);
    let first = output(&stage);
    assert!(first.contains("Enter alone leaves the field unchanged."), "{first}");
    let typed = reply(&stage, "some text");
    let Reply::Do(events) = typed else { panic!("{typed:?}") };
    assert_eq!(events.first(), Some(&Event::Line(LineEdit::Clear)));
    assert_eq!(events.last(), Some(&Event::Act(Action::Accept)));
    assert_eq!(reply(&stage, ""), Reply::Do(vec![Event::Act(Action::Accept)]));
}

#[test]
fn lines_are_prompts_and_commands_start_with_a_colon() {
    let stage = fixture::ready();
    let prompt = vec![Event::Draft("do it".into()), Event::Act(Action::Submit)];
    assert_eq!(reply(&stage, "do it"), Reply::Do(prompt));
    assert_eq!(reply(&stage, ":open-models"), Reply::Do(vec![Event::Act(Action::OpenModels)]));
    for wrong in [":nonsense", ":scroll-top", ":copy-reply"] {
        assert!(matches!(reply(&stage, wrong), Reply::Say(_)), "{wrong}");
    }
    let Reply::Say(help) = reply(&stage, ":help") else { panic!("no help") };
    assert!(help.contains(":cancel"), "{help}");
}

#[test]
fn cost_depends_on_open_items() {
    let mut stage = fixture::ready();
    let mut plain = PlainOutput::new(Glyphs::plain());
    for number in 0..5000 {
        push_message(&mut stage, Role::Agent, &format!("answer {number}"), false);
    }
    let all = plain.advance(&stage, stage.now);
    assert_eq!(all.matches("answer").count(), 5000);
    let printed = &plain.sessions[&stage.state.active];
    assert_eq!((printed.first_open, printed.begun.len()), (Some(ItemId(5000)), 0));
}
