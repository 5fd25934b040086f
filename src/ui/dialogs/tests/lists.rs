//! Tests of the queue, pages to read, and renaming.

use crate::config::keymap::Context;
use crate::core::{Consequence, Effect, OutputRoom, Question, ViewCommand};
use crate::model::{Action, AgentCommand, Call, Plan, PlanBody, TerminalSize};
use crate::ui::Event;
use crate::ui::dialogs::focus;
use crate::ui::dialogs::testkit::{CONN, Rig, has_cancel, views};
use crate::ui::dialogs::{LogPage, QueueDialog};
use crate::ui::screen::{DiffLayout, DiffRoom, Screen};
use crate::ui::update;

fn rig_with_queue(prompts: &[&str]) -> Rig {
    let mut rig = Rig::new();
    rig.run_turn();
    for text in prompts {
        rig.session().outbox.enqueue((*text).to_owned());
    }
    rig.act(Action::OpenQueue);
    rig
}

fn remove_first(rig: &mut Rig) {
    let first = rig.session().outbox.queued(0).unwrap().id;
    rig.session().outbox.remove(first);
}

fn marked(rig: &Rig) -> usize {
    rig.layers.top::<QueueDialog>().expect("the queue is on top").selected
}

#[test]
fn an_empty_queue_is_not_opened() {
    let rig = rig_with_queue(&[]);
    assert!(rig.layers.is_empty());
    assert_eq!(rig.state.flash.as_deref(), Some("No queued prompts."));
}

#[test]
fn prompts_are_removed_and_the_last_one_closes_the_dialog() {
    let mut rig = rig_with_queue(&["a", "b", "c"]);
    rig.act(Action::Last);
    rig.act(Action::Remove);
    assert_eq!(rig.queue(), ["a", "b"]);
    assert_eq!(marked(&rig), 1);
    rig.act(Action::Up);
    rig.act(Action::Remove);
    rig.act(Action::Remove);
    assert!(rig.queue().is_empty());
    assert_eq!(focus(&rig), Context::Main);
}

#[test]
fn moved_prompts_stay_selected() {
    let mut rig = rig_with_queue(&["a", "b", "c"]);
    rig.act(Action::MoveDown);
    assert_eq!(rig.queue(), ["b", "a", "c"]);
    rig.act(Action::MoveDown);
    rig.act(Action::MoveDown);
    assert_eq!(rig.queue(), ["b", "c", "a"]);
    assert_eq!(marked(&rig), 2);
    rig.act(Action::MoveUp);
    assert_eq!(rig.queue(), ["b", "a", "c"]);
}

#[test]
fn a_prompt_is_edited_in_the_composer_and_keeps_its_place() {
    let mut rig = rig_with_queue(&["a", "b\nc", "d"]);
    rig.run_turn().session().draft = "half a thought".to_owned();
    rig.act(Action::Down);
    assert_eq!(views(&rig.act(Action::Edit)), [ViewCommand::SetDraft("b\nc".to_owned())]);
    assert_eq!((focus(&rig), rig.edited()), (Context::Main, Some(1)));
    rig.type_draft("better");
    let fx = rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["a", "better", "d"]);
    let shown = ViewCommand::SetDraft("half a thought".to_owned());
    assert_eq!(views(&fx), [shown], "the draft is restored");
    assert_eq!(rig.session().draft, "half a thought");
    assert_eq!(rig.edited(), None);
}

#[test]
fn an_edit_finds_its_prompt_after_the_queue_advanced() {
    let mut rig = rig_with_queue(&["a", "b"]);
    rig.run_turn().act(Action::Down);
    rig.act(Action::Edit);
    remove_first(&mut rig);
    rig.type_draft("better");
    rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["better"]);
}

#[test]
fn an_edited_prompt_that_left_the_queue_is_queued_again() {
    let mut rig = rig_with_queue(&["a", "b"]);
    rig.run_turn().act(Action::Edit);
    remove_first(&mut rig);
    rig.type_draft("a, better");
    rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["b", "a, better"]);
}

#[test]
fn escape_and_ctrl_c_discard_an_edit_but_keep_its_text_in_the_history() {
    for action in [Action::Escape, Action::ClearOrQuit] {
        let mut rig = rig_with_queue(&["a"]);
        rig.run_turn().act(Action::Edit);
        rig.type_draft("a, worse");
        rig.act(action);
        assert_eq!(rig.queue(), ["a"]);
        assert_eq!(rig.session().draft, "");
        assert_eq!(rig.session().history, ["a, worse"]);
        assert!(!rig.is_cancelling(), "{action:?} had its effect");
    }
}

#[test]
fn escape_beside_a_request_discards_the_edit_and_rejects_nothing() {
    let mut rig = rig_with_queue(&["a"]);
    rig.act(Action::Edit);
    rig.ask_permission(1, &[crate::model::PermissionKind::RejectOnce]);
    rig.act(Action::Escape);
    assert_eq!((rig.edited(), rig.open_requests()), (None, vec![1]));
    rig.act(Action::Escape);
    assert_eq!(rig.open_requests(), [0; 0]);
}

#[test]
fn an_empty_edit_removes_the_prompt() {
    let mut rig = rig_with_queue(&["a", "b"]);
    rig.run_turn().act(Action::Edit);
    rig.type_draft(" ");
    rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["b"]);
}

#[test]
fn up_in_an_empty_prompt_edits_the_queued_prompts_from_the_last_on() {
    let mut rig = rig_with_queue(&["a", "b"]);
    rig.session().history = vec!["sent".to_owned(), "a".to_owned(), "b".to_owned()];
    rig.run_turn().act(Action::Escape);
    rig.act(Action::HistoryPrevious);
    assert_eq!((rig.session().draft.clone(), rig.edited()), ("b".to_owned(), Some(1)));
    rig.act(Action::HistoryPrevious);
    assert_eq!((rig.session().draft.clone(), rig.edited()), ("a".to_owned(), Some(0)));
    rig.act(Action::HistoryNext);
    assert_eq!(rig.edited(), Some(1));
    rig.type_draft("b, better");
    rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["a", "b, better"]);
}

#[test]
fn a_queued_prompt_is_sent_now_from_the_dialog() {
    let mut rig = rig_with_queue(&["a", "b", "c"]);
    rig.run_turn().act(Action::Last);
    let fx = rig.act(Action::SendNow);
    assert!(has_cancel(&fx) && rig.is_cancelling());
    assert_eq!((rig.queue(), focus(&rig)), (["c", "a", "b"].map(String::from).into(), Context::Main));
}

#[test]
fn send_now_in_the_composer_takes_the_draft_the_edited_or_the_last_prompt() {
    let mut rig = rig_with_queue(&["a", "b"]);
    rig.run_turn().act(Action::Escape);
    rig.type_draft("c");
    assert!(has_cancel(&rig.act(Action::SendNow)));
    assert_eq!((rig.queue(), rig.session().draft.as_str()), (["c", "a", "b"].map(String::from).into(), ""));

    let mut rig = rig_with_queue(&["a", "b"]);
    rig.run_turn().act(Action::Escape);
    rig.act(Action::SendNow);
    assert_eq!(rig.queue(), ["b", "a"]);

    let mut rig = rig_with_queue(&["a", "b", "c"]);
    rig.run_turn().act(Action::Down);
    rig.act(Action::Edit);
    rig.type_draft("better");
    rig.act(Action::SendNow);
    assert_eq!(rig.queue(), ["better", "a", "c"]);
}

#[test]
fn send_now_without_a_turn_or_a_prompt_is_only_a_send() {
    let mut rig = Rig::new();
    assert!(!has_cancel(&rig.act(Action::SendNow)));
    assert_eq!(rig.state.flash.as_deref(), Some("The prompt is empty."));
    rig.type_draft("go");
    let fx = rig.act(Action::SendNow);
    assert!(rig.session().turn.is_running() && rig.queue().is_empty() && !has_cancel(&fx));
}

#[test]
fn a_prompt_is_sent_into_a_turn_only_if_the_agent_supports_it() {
    let mut rig = rig_with_queue(&["a"]);
    rig.run_turn().act(Action::Steer);
    let why = "The agent does not accept prompts during a turn. Queue the prompt instead.";
    assert_eq!(rig.state.flash.as_deref(), Some(why));
    rig.state.conns.get_mut(&CONN).and_then(|conn| conn.info.as_mut()).unwrap().capabilities.can_steer = true;
    rig.act(Action::Steer);
    assert!(rig.session().outbox.queued(0).unwrap().is_steering());
    assert_eq!(rig.queue(), ["a"], "it stays queued until the agent has accepted it");
}

#[test]
fn a_prompt_for_a_turn_that_has_just_ended_is_sent() {
    let mut rig = Rig::new();
    rig.type_draft("also this");
    let fx = rig.act(Action::Steer);
    assert!(rig.session().turn.is_running() && rig.queue().is_empty() && !has_cancel(&fx));
    assert!(rig.session().draft.is_empty());
}

#[test]
fn the_selection_is_valid_after_the_queue_shrank() {
    let mut rig = rig_with_queue(&["a", "b", "c"]);
    rig.act(Action::Last);
    remove_first(&mut rig);
    remove_first(&mut rig);
    rig.act(Action::Down);
    assert_eq!(marked(&rig), 0);
    rig.session().outbox.take_queue();
    for action in [Action::Remove, Action::Edit, Action::MoveUp, Action::Down] {
        rig.act(action);
    }
    assert!(rig.queue().is_empty());
}

#[test]
fn pages_open_close_by_their_own_key_and_are_filtered() {
    let mut rig = Rig::new();
    for (action, top) in [
        (Action::OpenLog, "Protocol log"),
        (Action::OpenHelp, "Key bindings"),
        (Action::OpenConnection, "Connection"),
    ] {
        rig.act(action);
        assert_eq!(rig.layers.last().map(|page| page.title(&rig.state)).as_deref(), Some(top));
        rig.act(action);
        assert_eq!(focus(&rig), Context::Main);
    }
    rig.act(Action::OpenLog);
    rig.type_line("prompt");
    rig.act(Action::Choose(2));
    assert_eq!(rig.layers.top::<LogPage>().unwrap().filter.text, "prompt2");
    assert_eq!(views(&rig.act(Action::Down)), [ViewCommand::ScrollDialog(1)]);
    assert_eq!(views(&rig.act(Action::PageUp)), [ViewCommand::ScrollDialogPages(-1)]);
    // A log that was open below is moved to the top; it is not open twice.
    rig.act(Action::OpenHelp);
    rig.act(Action::OpenLog);
    assert!(rig.layers.len() == 2 && rig.layers.top::<LogPage>().is_some());
}

#[test]
fn a_session_is_renamed() {
    let mut rig = Rig::new();
    rig.session().title = Some("Old".to_owned());
    rig.act(Action::RenameSession);
    rig.act(Action::First);
    rig.type_line("Very ");
    let fx = rig.act(Action::Accept);
    let sent = fx.iter().any(|effect| {
        matches!(effect, Effect::Send(_, AgentCommand::Call(_, Call::SetTitle(_, title))) if title == "Very Old")
    });
    assert!(sent, "{fx:?}");
    assert!(rig.layers.is_empty());
}

fn rig_with_answers(answers: [(&str, Consequence); 4]) -> Rig {
    let mut rig = Rig::new();
    rig.run_turn();
    let question = Question::new("The agent does not answer", Vec::new(), answers);
    rig.app.state.ask(rig.state.active, question.asked_at(rig.now));
    super::super::refresh(&mut rig);
    rig
}

#[test]
fn choices_are_selected_by_digit() {
    let all = |rig: &Rig| {
        [
            ("Wait", Consequence::Close),
            ("Force-stop", Consequence::ForceStop(CONN)),
            ("Restart", Consequence::Restart(rig.state.active)),
            ("Quit", Consequence::Quit),
        ]
    };
    let answers = all(&Rig::new());
    let mut rig = rig_with_answers(answers.clone());
    assert_eq!(rig.act(Action::Choose(1)), Vec::new());
    assert!(rig.layers.is_empty());
    let mut rig = rig_with_answers(answers.clone());
    let fx = rig.act(Action::Choose(2));
    assert!(fx.contains(&Effect::Disconnect { conn: CONN, force: true }), "{fx:?}");
    let mut rig = rig_with_answers(answers.clone());
    let fx = rig.act(Action::Choose(3));
    assert!(fx.iter().any(|effect| matches!(effect, Effect::Connect { .. })), "{fx:?}");
    let mut rig = rig_with_answers(answers.clone());
    // "Yes" is not an answer if there are several choices.
    for action in [Action::Choose(6), Action::Yes] {
        rig.wait(1_001).act_now(action);
        assert_eq!((focus(&rig), rig.session().draft.len()), (Context::Choice, 1), "it is text");
        rig.type_draft("");
    }
    for action in [Action::Last, Action::Up, Action::Down, Action::Down] {
        rig.act(action);
    }
    assert!(rig.act(Action::Accept).contains(&Effect::Quit));
}

#[test]
fn display_options_are_toggled_from_anywhere() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[]);
    rig.act(Action::ToggleThoughts);
    assert!(rig.shows_thoughts);
    let layouts: Vec<_> = (0..2)
        .map(|_| {
            rig.act(Action::ToggleDiffLayout);
            rig.diff_layout
        })
        .collect();
    assert_eq!(layouts, [DiffLayout::SideBySide, DiffLayout::Unified]);
    rig.session().plans.push(Plan { id: None, body: PlanBody::Markdown("one".to_owned()) });
    rig.act(Action::TogglePlan);
    assert!(rig.app.shown().is_plan_folded(rig.state.active_session().unwrap()));
    assert_eq!(rig.open_requests(), [1]);
    assert_eq!(rig.act(Action::Suspend), [Effect::Suspend]);
}

#[test]
fn the_diff_layout_is_the_opposite_of_what_is_shown_and_then_stays() {
    let screen = |diffs| Screen {
        diffs,
        output: OutputRoom { cols: 80, terminal: TerminalSize { rows: 20, cols: 80 } },
        fits_plan: true,
        shows_steps: false,
    };
    let mut rig = Rig::new();
    rig.screen = Some(screen(DiffRoom::Wide));
    rig.act(Action::ToggleDiffLayout);
    assert_eq!(rig.diff_layout, DiffLayout::Unified, "diffs were side by side");
    rig.act(Action::ToggleDiffLayout);
    assert_eq!(rig.diff_layout, DiffLayout::SideBySide);
    let now = rig.now;
    update(&mut rig, Event::Screen(screen(DiffRoom::OneColumn)), now);
    assert_eq!(rig.diff_layout, DiffLayout::SideBySide, "a narrow window does not change the choice");
    rig.diff_layout = DiffLayout::Auto;
    rig.act(Action::ToggleDiffLayout);
    let said = rig.state.flash.clone().unwrap_or_default();
    assert!(said.contains("once the window is wider"), "{said}");
}

#[test]
fn the_plan_is_toggled_by_what_is_shown() {
    let mut rig = Rig::new();
    rig.session().plans.push(Plan { id: None, body: PlanBody::Markdown("one".to_owned()) });
    let screen = |fits_plan| {
        Some(Screen {
            diffs: DiffRoom::Wide,
            output: OutputRoom { cols: 80, terminal: TerminalSize { rows: 20, cols: 80 } },
            fits_plan,
            shows_steps: false,
        })
    };
    rig.screen = screen(true);
    rig.act(Action::TogglePlan);
    assert_eq!(rig.shown_mut().plan_fold, Some(false), "a low screen showed one line");
    rig.screen = screen(false);
    rig.act(Action::TogglePlan);
    assert_eq!(rig.shown_mut().plan_fold, Some(false));
    let said = rig.state.flash.clone().unwrap_or_default();
    assert!(said.contains("needs more rows"), "{said}");
}

#[test]
fn no_order_of_keys_panics() {
    let all = [
        Action::Submit,
        Action::Escape,
        Action::ClearOrQuit,
        Action::HistoryPrevious,
        Action::HistoryNext,
        Action::Complete,
        Action::Scroll(-3),
        Action::SelectPrevious,
        Action::ToggleFold,
        Action::OpenPalette,
        Action::OpenHelp,
        Action::OpenLog,
        Action::OpenConnection,
        Action::OpenAgents,
        Action::OpenSessions,
        Action::OpenModes,
        Action::NextMode,
        Action::OpenModels,
        Action::OpenOptions,
        Action::OpenThemes,
        Action::OpenSignIn,
        Action::OpenQueue,
        Action::RenameSession,
        Action::Up,
        Action::Down,
        Action::Left,
        Action::Right,
        Action::PageUp,
        Action::PageDown,
        Action::First,
        Action::Last,
        Action::Accept,
        Action::Choose(0),
        Action::Choose(9),
        Action::ToggleChoice,
        Action::NextField,
        Action::PreviousField,
        Action::Decline,
        Action::FullScreen,
        Action::Remove,
        Action::Edit,
        Action::MoveUp,
        Action::MoveDown,
        Action::Mark(u16::MAX),
        Action::Yes,
        Action::No,
        Action::ToggleAllFolds,
        Action::KillCommand,
    ];
    let mut rig = Rig::new();
    rig.run_turn();
    rig.session().outbox.enqueue("waits".to_owned());
    rig.ask_permission(1, &[]);
    // A deterministic walk through pairs of all actions.
    let mut at = 0usize;
    for step in 0..4000usize {
        at = (at * 31 + step * 7 + 11) % all.len();
        rig.wait(if step % 5 == 0 { 1600 } else { 30 }).act_now(all[at]);
        rig.type_line("x");
        if rig.state.is_quitting {
            rig = Rig::new();
            rig.run_turn();
        }
    }
    assert!(rig.layers.len() < 20);
}

#[test]
fn plans_that_are_done_or_abandoned_are_not_shown() {
    use crate::core::session::apply::on_plan;
    use crate::model::{PlanEntry, PlanPriority, PlanStatus};
    let plan = |status| {
        let entry = PlanEntry { content: "one".to_owned(), priority: PlanPriority::Medium, status };
        Plan { id: None, body: PlanBody::Entries(vec![entry]) }
    };
    let mut rig = Rig::new();
    on_plan(rig.session(), plan(PlanStatus::InProgress));
    assert!(rig.app.shown().is_plan_shown(rig.state.active_session().unwrap()), "steps are open");
    rig.type_draft("something else");
    rig.act(Action::Submit);
    assert!(
        !rig.app.shown().is_plan_shown(rig.state.active_session().unwrap()),
        "the turn has not taken it up"
    );
    on_plan(rig.session(), plan(PlanStatus::Completed));
    assert!(rig.app.shown().is_plan_shown(rig.state.active_session().unwrap()), "the turn runs");
    rig.session().turn = crate::core::Turn::Idle;
    assert!(!rig.app.shown().is_plan_shown(rig.state.active_session().unwrap()), "done");
    rig.act(Action::TogglePlan);
    assert!(rig.app.shown().is_plan_shown(rig.state.active_session().unwrap()), "opened by the user");
}
