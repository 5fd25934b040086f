//! Escape, Ctrl+C, Ctrl+Q.

use crate::config::keymap::Context;
use crate::core::{Effect, Turn, ViewCommand};
use crate::model::PermissionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
use crate::model::{Action, ItemId, Response, SlashCommand};
use crate::ui::dialogs::testkit::{Rig, answers, has_cancel, outside_file, selected, views};
use crate::ui::dialogs::{completions, focus};
use crate::ui::tests::fixture;

#[test]
fn escape_closes_only_the_top_dialog() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.act(Action::OpenHelp);
    rig.act(Action::OpenThemes);
    assert!(!has_cancel(&rig.act(Action::Escape)));
    assert_eq!(focus(&rig), Context::Text);
    assert!(!has_cancel(&rig.act(Action::Escape)));
    assert_eq!(focus(&rig), Context::Main);
    assert!(!rig.is_cancelling());
    assert!(has_cancel(&rig.act(Action::Escape)));
    assert!(rig.is_cancelling());
}

#[test]
fn escape_rejects_with_the_agents_own_words_and_never_cancels_the_turn_with_it() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[AllowOnce, RejectAlways, RejectOnce]);
    let fx = rig.act(Action::Escape);
    assert_eq!(answers(&fx), [(1, selected("option-2"))]);
    assert!(!has_cancel(&fx) && !rig.is_cancelling());
}

#[test]
fn escape_without_a_reject_once_cancels_that_request_only() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[AllowAlways, AllowOnce, RejectAlways]);
    let fx = rig.act(Action::Escape);
    assert_eq!(answers(&fx), [(1, Response::PermissionCancelled)]);
    assert!(!has_cancel(&fx) && !rig.is_cancelling());
}

#[test]
fn a_second_escape_cancels_the_turn() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.act(Action::Escape);
    assert!(has_cancel(&rig.wait(50).act_now(Action::Escape)));
    assert!(rig.is_cancelling());
}

#[test]
fn a_second_escape_soon_after_cancels_even_when_another_request_came_to_the_front() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.ask_permission(2, &[AllowOnce, RejectOnce]);
    assert_eq!(answers(&rig.act(Action::Escape)), [(1, selected("option-1"))]);
    let fx = rig.wait(300).act_now(Action::Escape);
    assert!(has_cancel(&fx));
    assert_eq!(answers(&fx), [(2, Response::PermissionCancelled)]);
}

#[test]
fn escapes_with_a_pause_between_reject_one_request_each() {
    let mut rig = Rig::new();
    rig.run_turn();
    for number in 1..=3 {
        rig.ask_permission(number, &[AllowOnce, RejectOnce]);
    }
    for number in 1..=3 {
        let fx = rig.act(Action::Escape);
        assert_eq!(answers(&fx), [(number, selected("option-1"))]);
    }
    assert!(!rig.is_cancelling());
    assert!(has_cancel(&rig.act(Action::Escape)));
}

#[test]
fn escape_takes_back_a_question_and_a_file_outside() {
    let mut rig = Rig::new();
    rig.ask_url("https://example.org/");
    assert_eq!(answers(&rig.act(Action::Escape)), [(1, Response::ElicitationCancelled)]);
    rig.request_form(Vec::new());
    assert_eq!(answers(&rig.act(Action::Escape)), [(1, Response::ElicitationCancelled)]);
    rig.ask(9, outside_file(9));
    let sent = answers(&rig.act(Action::Escape));
    assert!(matches!(sent.as_slice(), [(9, Response::Error(_))]), "{sent:?}");
}

#[test]
fn escape_that_closes_the_completions_does_not_cancel() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.session().commands =
        vec![SlashCommand { name: "plan".to_owned(), description: String::new(), hint: None }];
    rig.type_draft("/p");
    assert_eq!(completions(&rig).len(), 1);
    assert!(!has_cancel(&rig.act(Action::Escape)));
    assert!(completions(&rig).is_empty());
    assert!(has_cancel(&rig.act(Action::Escape)));
}

#[test]
fn escape_at_rest_leaves_the_selection_and_keeps_the_draft() {
    let mut rig = Rig::new();
    rig.type_draft("keep me");
    rig.shown_mut().selected = Some(ItemId(0));
    assert_eq!(rig.act(Action::Escape), Vec::new());
    assert_eq!(rig.shown_mut().selected, None);
    assert_eq!(rig.session().draft, "keep me");
}

#[test]
fn escape_sends_a_cancel_only_once() {
    let mut rig = Rig::new();
    rig.run_turn();
    assert!(has_cancel(&rig.act(Action::Escape)));
    assert!(!has_cancel(&rig.act(Action::Escape)));
    assert!(rig.state.flash.is_some());
}

#[test]
fn escape_offers_the_ways_out_again_to_who_chose_to_wait() {
    for key in [Action::Escape, Action::ClearOrQuit] {
        let mut rig = Rig::new();
        let now = rig.now;
        rig.session().turn = Turn::Cancelling { since: now, cancelled_at: now, is_overdue: true };
        let fx = rig.act(key);
        assert!(!has_cancel(&fx), "the agent was told already");
        assert_eq!(focus(&rig), Context::Choice);
        rig.act(Action::Choose(1));
        assert_eq!(focus(&rig), Context::Main);
        rig.act(Action::Escape);
        assert_eq!(focus(&rig), Context::Choice);
    }
}

#[test]
fn ctrl_c_clears_the_prompt_first() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.type_draft("half");
    let fx = rig.act(Action::ClearOrQuit);
    assert_eq!(views(&fx), [ViewCommand::ClearDraft]);
    assert_eq!(rig.session().draft, "");
    assert!(!rig.is_cancelling());
    assert!(has_cancel(&rig.act(Action::ClearOrQuit)));
    assert_eq!(rig.state.flash.as_deref(), Some("Press again to quit"));
}

#[test]
fn ctrl_c_twice_within_a_second_quits() {
    let mut rig = Rig::new();
    rig.act(Action::ClearOrQuit);
    assert!(!rig.state.is_quitting);
    assert!(rig.wait(1000).act_now(Action::ClearOrQuit).contains(&Effect::Quit));
    assert!(rig.state.is_quitting);
}

#[test]
fn ctrl_c_twice_with_more_than_a_second_between_does_not_quit() {
    let mut rig = Rig::new();
    rig.act(Action::ClearOrQuit);
    rig.wait(1001).act_now(Action::ClearOrQuit);
    assert!(!rig.state.is_quitting);
}

#[test]
fn ctrl_c_with_typing_between_does_not_quit() {
    let mut rig = Rig::new();
    rig.act(Action::ClearOrQuit);
    rig.wait(300).type_draft("a");
    rig.wait(300).act_now(Action::ClearOrQuit);
    assert_eq!(rig.session().draft, "");
    assert!(!rig.state.is_quitting);
}

#[test]
fn ctrl_c_quits_from_the_first_picker_by_two_presses() {
    let mut rig = Rig::new();
    rig.act(Action::OpenAgents);
    rig.act(Action::ClearOrQuit);
    assert!(rig.layers.is_empty());
    rig.wait(200).act_now(Action::ClearOrQuit);
    assert!(rig.state.is_quitting);
}

#[test]
fn ctrl_c_on_a_request_cancels_the_turn_and_allows_nothing() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    let fx = rig.act(Action::ClearOrQuit);
    assert!(has_cancel(&fx));
    assert_eq!(answers(&fx), [(1, Response::PermissionCancelled)]);
}

#[test]
fn ctrl_c_just_when_a_request_appears_still_clears_the_prompt() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.type_draft("half");
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    let fx = rig.wait(50).act_now(Action::ClearOrQuit);
    assert_eq!(views(&fx), [ViewCommand::ClearDraft]);
    assert!(answers(&fx).is_empty() && !rig.is_cancelling());
}

#[test]
fn ctrl_q_at_rest_quits_at_once() {
    let mut rig = Rig::new();
    rig.type_draft("half");
    assert!(rig.act(Action::Quit).contains(&Effect::Quit));
}

#[test]
fn ctrl_q_asks_once_while_a_turn_runs_and_the_second_means_yes() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.act(Action::Quit);
    assert!(!rig.state.is_quitting);
    assert!(matches!(rig.state.questions.last(), Some(dialog) if dialog.title == "A turn is running. Quit?"
            && dialog.answers.iter().map(|choice| &choice.label).eq(["Quit", "Keep working"])));
    rig.wait(20).act_now(Action::Quit);
    assert!(rig.state.is_quitting);
}

#[test]
fn the_question_of_ctrl_q_takes_y_n_digits_and_escape() {
    for (action, is_quitting) in [
        (Action::Yes, true),
        (Action::Choose(1), true),
        (Action::No, false),
        (Action::Choose(2), false),
        (Action::Escape, false),
        (Action::Accept, false),
    ] {
        let mut rig = Rig::new();
        rig.run_turn();
        rig.act(Action::Quit);
        rig.act(action);
        assert_eq!(rig.state.is_quitting, is_quitting, "{action:?}");
        assert!(rig.layers.is_empty() || is_quitting, "{action:?}");
        assert!(is_quitting || matches!(rig.session().turn, Turn::Running { .. }), "{action:?}");
    }
}

#[test]
fn the_question_of_ctrl_q_stays_true_when_the_turn_ends_by_itself() {
    let question = |rig: &Rig| match rig.state.questions.last() {
        Some(dialog) => (dialog.title.clone(), dialog.body.join(" ")),
        other => panic!("a question is on top, not {other:?}"),
    };
    let mut rig = Rig::new();
    rig.run_turn();
    rig.act(Action::Quit);
    rig.session().turn = Turn::Idle;
    rig.act(Action::Redraw);
    let idle = "No turn is running. Quitting stops the agent.";
    assert_eq!(question(&rig), ("Quit parlor?".to_owned(), idle.to_owned()));
    // The queue's next prompt begins a turn.
    rig.run_turn();
    rig.act(Action::Redraw);
    assert_eq!(question(&rig).0, "A turn is running. Quit?");
    rig.session().turn = Turn::Idle;
    rig.act(Action::Quit);
    assert!(rig.state.is_quitting, "the second press still means yes");
}

#[test]
fn ctrl_q_asks_also_above_a_request() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask_permission(1, &[AllowOnce]);
    rig.wait(10).act_now(Action::Quit);
    assert_eq!(focus(&rig), Context::Choice);
    assert_eq!(rig.open_requests(), [1]);
}

#[test]
fn nothing_but_a_repaint_is_taken_while_leaving() {
    let mut rig = Rig::new();
    rig.act(Action::Quit);
    assert_eq!(rig.act(Action::OpenHelp), Vec::new());
    assert!(rig.layers.is_empty());
    assert_eq!(views(&rig.act(Action::Redraw)), [ViewCommand::Redraw]);
}

#[test]
fn escape_twice_on_an_empty_prompt_lists_the_prompts() {
    let mut rig = Rig::new();
    rig.session().turn_count = 1;
    for role in [crate::model::Role::User, crate::model::Role::Agent, crate::model::Role::User] {
        let message = fixture::message(role, &format!("{role:?}"), std::time::Instant::now());
        rig.session().transcript.push(1, crate::core::ItemBody::Message(message));
    }
    rig.act(Action::Escape);
    assert_eq!(rig.state.flash.as_deref(), Some("Press again to go back to an earlier prompt"));
    rig.act(Action::Escape);
    assert!(rig.layers.is_empty(), "it was more than a second ago");
    rig.wait(300).act_now(Action::Escape);
    assert_eq!(rig.shown(), ["User", "User"]);
    rig.act(Action::Escape);
    assert!(rig.layers.is_empty());
    // With a draft, or while a turn runs, it does not.
    rig.type_draft("a thought");
    rig.act(Action::Escape);
    rig.wait(300).act_now(Action::Escape);
    assert!(rig.layers.is_empty());
    rig.type_draft("");
    rig.run_turn();
    rig.act(Action::Escape);
    rig.wait(300).act_now(Action::Escape);
    assert!(rig.layers.is_empty() && rig.is_cancelling());
}
