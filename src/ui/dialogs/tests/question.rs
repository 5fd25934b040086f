//! A dialog that opened by itself is not answered by a key meant for the prompt.

use std::time::Duration;

use crate::config::keymap::Context;
use crate::core::{Consequence, ItemBody, Question, ViewCommand};
use crate::model::PermissionKind::{AllowAlways, AllowOnce, RejectOnce};
use crate::model::{Action, AuthKind, AuthMethod};
use crate::ui::dialogs::InspectPage;
use crate::ui::dialogs::palette::Palette;
use crate::ui::dialogs::picker::Picker;
use crate::ui::dialogs::sign_in;
use crate::ui::dialogs::testkit::{Rig, answers, commands, selected, views};
use crate::ui::dialogs::{focus, refresh, takes_answers_from};

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.run_turn();
    rig
}

/// A rig with a permission request that has just appeared.
fn asked() -> Rig {
    let mut rig = rig();
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig
}

#[test]
fn early_keys_answer_nothing() {
    for action in [Action::Choose(1), Action::Accept, Action::Submit, Action::Escape, Action::Down] {
        let mut rig = asked();
        rig.wait(60);
        assert!(!rig.takes_answers());
        let before = rig.request_view.clone();
        assert_eq!(answers(&rig.act_now(action)), [], "{action:?}");
        assert_eq!(rig.request_view, before, "{action:?}");
        assert_eq!(rig.open_requests(), [1], "{action:?}");
        assert!(!rig.is_cancelling());
    }
}

#[test]
fn it_takes_keys_500_ms_after_it_appeared() {
    let mut rig = asked();
    assert!(!rig.wait(499).takes_answers());
    assert!(rig.wait(1).takes_answers());
    assert_eq!(answers(&rig.answer_now(1)), [(1, selected("option-0"))]);
}

#[test]
fn typing_that_goes_on_keeps_it_closed_until_it_pauses() {
    let mut rig = asked();
    for letters in ["y", "ye", "yes"] {
        rig.wait(300).type_draft(letters);
    }
    assert_eq!(rig.session().draft, "yes");
    rig.type_draft("");
    assert!(!rig.wait(499).takes_answers());
    assert!(answers(&rig.answer_now(1)).is_empty());
    assert_eq!(answers(&rig.wait(500).answer_now(1)), [(1, selected("option-0"))]);
}

#[test]
fn typing_after_a_pause_closes_it_again() {
    let mut rig = asked();
    rig.wait(500).act_now(Action::Down);
    rig.wait(2_000).type_draft("t");
    for action in [Action::Accept, Action::Choose(1)] {
        assert!(answers(&rig.wait(100).act_now(action)).is_empty(), "{action:?}");
    }
    rig.type_draft("");
    assert_eq!(answers(&rig.wait(500).answer_now(1)), [(1, selected("option-0"))]);
}

#[test]
fn the_time_from_which_answers_count_is_known() {
    let mut rig = rig();
    assert_eq!(takes_answers_from(&rig), None, "nothing is asked");
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.wait(0);
    for wait in [0, 250, 390, 390, 390] {
        rig.wait(wait).type_draft("y");
        rig.type_draft("");
        let left = takes_answers_from(&rig).expect("it waits").duration_since(rig.now);
        let now = rig.now;
        rig.now = now + left.saturating_sub(Duration::from_millis(1));
        assert!(!rig.takes_answers());
        rig.now = now + left;
        assert!(rig.takes_answers());
        rig.now = now;
    }
    rig.wait(500).act_now(Action::Down);
    assert!(rig.takes_answers());
    assert!(takes_answers_from(&rig).is_none_or(|at| at <= rig.now), "answers still count");
}

#[test]
fn continued_typing_answers_nothing() {
    let mut rig = asked();
    for _ in 0..100 {
        rig.wait(120).type_draft("x");
        assert!(!rig.takes_answers());
        assert!(answers(&rig.wait(120).act_now(Action::Accept)).is_empty());
    }
    rig.type_draft("");
    assert!(rig.wait(500).takes_answers());
    assert_eq!(answers(&rig.answer_now(2)), [(1, selected("option-1"))]);
}

/// A call that is asked about, as it stands in the transcript.
fn ask_about_a_call(rig: &mut Rig) -> crate::model::ItemId {
    let now = rig.now;
    let call = crate::core::ToolCall::new("call".into(), now);
    let item = rig.session().transcript.push(1, ItemBody::Tool(Box::new(call)));
    rig.ask_permission(1, &[AllowOnce, AllowAlways, RejectOnce]);
    item
}

fn edit_call(rig: &mut Rig, item: crate::model::ItemId, change: impl FnOnce(&mut crate::core::ToolCall)) {
    rig.session().transcript.edit(item, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            change(call);
        }
    });
    refresh(&mut rig.app);
}

#[test]
fn a_change_of_the_call_begins_the_quiet_time_anew_and_is_marked() {
    let mut rig = rig();
    let item = ask_about_a_call(&mut rig);
    rig.wait(600).act_now(Action::Down);
    assert!(rig.takes_answers() && !rig.request_view.has_changed);
    rig.wait(300);
    edit_call(&mut rig, item, |call| call.input.command = Some("rm -rf ~".to_owned()));
    assert!(rig.request_view.has_changed);
    assert_eq!(rig.request_view.selected, 0, "the mark is where it was at first");
    assert!(answers(&rig.wait(300).act_now(Action::Accept)).is_empty());
    assert!(answers(&rig.wait(300).answer_now(1)).is_empty(), "each key begins it anew");
    assert_eq!(answers(&rig.wait(500).answer_now(3)), [(1, selected("option-2"))]);
    assert!(!rig.request_view.has_changed, "the next request has a view of its own");
}

#[test]
fn every_part_of_a_call_that_is_judged_counts_as_a_change_and_its_progress_does_not() {
    let content = || vec![crate::model::ToolContent::Unknown(crate::model::Raw("{}".into()))];
    let raw = || Some(crate::model::Raw("{}".into()));
    let changes: [fn(&mut crate::core::ToolCall); 5] = [
        |call| call.title = "Other".to_owned(),
        |call| call.kind = crate::model::ToolKind::Execute,
        |call| call.name = Some("other".to_owned()),
        |call| call.input.path = Some("/etc/hosts".into()),
        |call| call.input.description = Some("why".to_owned()),
    ];
    for change in changes {
        let mut rig = rig();
        let item = ask_about_a_call(&mut rig);
        rig.wait(600);
        edit_call(&mut rig, item, change);
        assert!(!rig.takes_answers());
    }
    for (is_content, number) in [(true, 1), (false, 2)] {
        let mut rig = rig();
        let item = ask_about_a_call(&mut rig);
        rig.wait(600);
        edit_call(
            &mut rig,
            item,
            |call| if is_content { call.content = content() } else { call.raw_input = raw() },
        );
        assert!(!rig.takes_answers(), "{number}");
    }
    let mut rig = rig();
    let item = ask_about_a_call(&mut rig);
    rig.wait(600);
    edit_call(&mut rig, item, |call| call.status = crate::model::ToolStatus::InProgress);
    edit_call(&mut rig, item, |call| call.output_text = Some("half".into()));
    assert!(rig.takes_answers() && !rig.request_view.has_changed);
}

#[test]
fn an_option_whose_id_is_not_its_own_is_never_sent() {
    let mut rig = rig();
    rig.ask_permission(1, &[AllowAlways, AllowOnce, RejectOnce]);
    for open in &mut rig.session().requests {
        if let crate::core::OpenRequestKind::Permission { request, .. } = &mut open.kind {
            request.options[2].id = request.options[1].id.clone();
        }
    }
    rig.request_view = crate::ui::RequestView::default();
    refresh(&mut rig);
    assert_eq!(rig.request_view.selected, 3, "nothing is marked");
    for position in [2, 3] {
        assert!(answers(&rig.act(Action::Choose(position))).is_empty());
        assert!(rig.state.flash.as_deref().is_some_and(|text| text.contains("duplicate id")));
    }
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert_eq!(answers(&rig.act(Action::Escape)), [(1, crate::model::Response::PermissionCancelled)]);
}

#[test]
fn the_whole_input_opens_above_the_request_which_then_begins_anew() {
    let mut rig = rig();
    let item = ask_about_a_call(&mut rig);
    rig.act(Action::InspectItem);
    assert_eq!(
        (rig.layers.len(), rig.layers.top()),
        (1, Some(&InspectPage { session: rig.state.active, item }))
    );
    rig.act(Action::Escape);
    assert_eq!(focus(&rig), Context::Permission);
    assert!(answers(&rig.wait(100).answer_now(1)).is_empty());
    assert_eq!(answers(&rig.wait(500).answer_now(1)).len(), 1);
}

#[test]
fn silence_before_it_appeared_does_not_count() {
    let mut rig = rig();
    rig.type_draft("half a sen");
    rig.wait(5000).ask_permission(1, &[AllowOnce]);
    assert!(answers(&rig.wait(10).answer_now(1)).is_empty());
}

#[test]
fn once_open_to_keys_it_stays_open_however_fast_they_come() {
    let mut rig = rig();
    rig.ask_permission(1, &[AllowOnce, RejectOnce, RejectOnce]);
    rig.wait(500).act_now(Action::Down);
    rig.wait(20).act_now(Action::Down);
    assert_eq!(rig.request_view.selected, 2);
    assert!(rig.takes_answers());
    assert_eq!(answers(&rig.wait(20).act_now(Action::Accept)), [(1, selected("option-2"))]);
}

#[test]
fn the_next_request_has_a_quiet_time_of_its_own() {
    let mut rig = rig();
    rig.ask_permission(1, &[AllowOnce]);
    rig.ask_permission(2, &[AllowOnce]);
    assert_eq!(answers(&rig.wait(500).answer_now(1)).len(), 1);
    assert!(answers(&rig.wait(100).answer_now(1)).is_empty());
    assert_eq!(rig.open_requests(), [2]);
    assert_eq!(answers(&rig.wait(500).answer_now(1)), [(2, selected("option-0"))]);
}

#[test]
fn a_request_that_a_dialog_had_covered_appears_anew_when_that_closes() {
    let mut rig = rig();
    rig.act(Action::OpenHelp);
    rig.wait(5000).ask_permission(1, &[AllowOnce]);
    rig.act(Action::Escape);
    assert_eq!(focus(&rig), Context::Permission);
    assert!(answers(&rig.wait(100).answer_now(1)).is_empty());
    assert_eq!(answers(&rig.wait(500).answer_now(1)).len(), 1);
}

#[test]
fn the_wheel_scrolls_at_any_time() {
    let mut rig = rig();
    rig.ask_permission(1, &[AllowOnce]);
    assert_eq!(views(&rig.act_now(Action::Scroll(3))), [ViewCommand::ScrollDialog(3)]);
}

#[test]
fn a_question_of_parlors_own_waits_too_and_one_that_the_user_opened_does_not() {
    let mut rig = rig();
    let question = || Question::new("The agent does not answer", Vec::new(), [("Wait", Consequence::Close)]);
    rig.app.state.ask(rig.state.active, question().asked_at(rig.now));
    rig.wait(100).act_now(Action::Escape);
    assert_eq!(rig.layers.len(), 1);
    rig.wait(500).act_now(Action::Escape);
    assert_eq!(rig.layers.len(), 0);
    rig.app.state.ask(rig.state.active, question());
    rig.act_now(Action::Escape);
    assert_eq!(rig.layers.len(), 0);
}

#[test]
fn a_sign_in_that_the_agent_wants_waits_too() {
    let mut rig = Rig::new();
    let conn = rig.session().conn.expect("a connection");
    let info = rig.state.conns.get_mut(&conn).and_then(|conn| conn.info.as_mut()).expect("info");
    info.auth_methods = vec![AuthMethod {
        id: "browser".to_owned(),
        name: "Browser".to_owned(),
        description: None,
        kind: AuthKind::Agent,
    }];
    sign_in::open_unasked(&mut rig, None, conn);
    refresh(&mut rig);
    rig.wait(50).act_now(Action::Accept);
    assert_eq!(rig.marked(), "Browser");
    rig.wait(500).act_now(Action::Accept);
    assert!(rig.layers.is_empty());
}

#[test]
fn a_command_from_the_list_is_obeyed_although_the_list_hid_a_request() {
    let mut rig = rig();
    rig.state.setup.palette = commands(&[(Action::OpenThemes, "Themes"), (Action::OpenHelp, "Help")]);
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    for (typed, expected) in [("themes", Context::List), ("help", Context::Text)] {
        rig.act(Action::OpenPalette);
        rig.type_line(typed);
        rig.act(Action::Accept);
        assert_eq!(focus(&rig), expected, "{typed}");
        assert!(!rig.layers.has::<Picker<Palette>>(), "{typed}: the list has gone");
        assert_eq!(rig.open_requests(), [1], "{typed}: nothing was answered");
        rig.act(Action::Escape);
        assert_eq!(focus(&rig), Context::Permission);
    }
}

#[test]
fn a_draft_keeps_the_keys_until_the_user_moves_them_to_the_request() {
    let mut rig = rig();
    rig.type_draft("see step 1");
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    for _ in 0..3 {
        assert!(!rig.wait(10_000).takes_answers());
        assert!(answers(&rig.act_now(Action::Choose(1))).is_empty());
    }
    rig.act_now(Action::AnswerRequest);
    assert!(rig.wait(500).takes_answers());
    assert_eq!(answers(&rig.answer_now(1)), [(1, selected("option-0"))]);
    assert_eq!(rig.session().draft, "see step 1");
}

#[test]
fn a_key_moves_focus_between_question_and_prompt() {
    let mut rig = asked();
    assert!(rig.wait(1_000).takes_answers());
    rig.act_now(Action::AnswerRequest);
    assert!(!rig.wait(10_000).takes_answers(), "the prompt is empty, but has the keys");
    assert!(answers(&rig.act_now(Action::Accept)).is_empty());
    rig.act_now(Action::AnswerRequest);
    assert!(rig.wait(500).takes_answers());
    assert_eq!(answers(&rig.answer_now(1)), [(1, selected("option-0"))]);
    rig.ask_permission(2, &[AllowOnce, RejectOnce]);
    assert!(rig.wait(1_000).takes_answers(), "the next request has the keys again");
}

#[test]
fn tab_never_moves_the_focus_to_a_question() {
    let mut rig = rig();
    rig.type_draft("look at src/ma");
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    for action in [Action::Complete, Action::Browse, Action::NextField] {
        rig.wait(1_000).act_now(action);
        assert!(!rig.wait(1_000).takes_answers(), "{action:?}");
    }
}

#[test]
fn typing_returns_the_keys_to_the_draft() {
    let mut rig = rig();
    rig.type_draft("see");
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.wait(1_000).act_now(Action::AnswerRequest);
    rig.wait(1_000).type_draft("see 1");
    assert!(!rig.wait(10_000).takes_answers());
}

#[test]
fn enter_beside_a_request_queues_the_draft_and_answers_nothing() {
    let mut rig = asked();
    rig.type_draft("then run 1 test");
    let fx = rig.wait(2_000).act_now(Action::Submit);
    assert!(answers(&fx).is_empty());
    assert_eq!((rig.queue().len(), rig.open_requests()), (1, vec![1]));
    assert!(!rig.wait(499).takes_answers() && rig.wait(1).takes_answers());
}

#[test]
fn escape_beside_a_draft_rejects_after_a_pause_and_keeps_the_draft() {
    let mut rig = asked();
    rig.type_draft("wait");
    assert!(answers(&rig.wait(100).act_now(Action::Escape)).is_empty());
    assert_eq!(answers(&rig.wait(500).act_now(Action::Escape)), [(1, selected("option-1"))]);
    assert_eq!(rig.session().draft, "wait");
    assert!(!rig.is_cancelling());
}

#[test]
fn y_allows_once_and_n_rejects() {
    for (kinds, action, expected) in [
        (&[AllowAlways, AllowOnce, RejectOnce][..], Action::Yes, "option-1"),
        (&[AllowAlways, AllowOnce, RejectOnce], Action::No, "option-2"),
    ] {
        let mut rig = rig();
        rig.ask_permission(1, kinds);
        assert_eq!(answers(&rig.act(action)), [(1, selected(expected))]);
    }
    let mut rig = rig();
    rig.ask_permission(1, &[AllowAlways, RejectOnce]);
    rig.wait(600).act_now(Action::Yes);
    assert_eq!(rig.session().draft, "y", "no option allows this once");
}

#[test]
fn reason_of_rejection_is_the_next_prompt() {
    let mut rig = rig();
    rig.session().outbox.enqueue("later".to_owned());
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.wait(100).act_now(Action::RejectWithReason);
    assert_eq!(rig.layers.len(), 0, "too early");

    rig.wait(600).act_now(Action::RejectWithReason);
    rig.type_line("Use the other file");
    let fx = rig.act(Action::Accept);
    assert_eq!(answers(&fx), [(1, selected("option-1"))]);
    assert_eq!(rig.queue(), ["Use the other file", "later"]);
    assert_eq!(rig.layers.len(), 0);
}

#[test]
fn a_rejection_leaves_no_mark_in_the_prompt() {
    for action in [Action::Escape, Action::RejectWithReason] {
        let mut rig = asked();
        rig.wait(600).act_now(Action::Choose(2));
        rig.act_now(action);
        if action == Action::RejectWithReason {
            rig.act(Action::Accept);
        }
        assert_eq!(rig.open_requests(), [0; 0], "{action:?}");
        assert_eq!(rig.session().draft, "", "{action:?}");
    }
}

#[test]
fn escape_beside_a_request_leaves_what_has_the_keys() {
    let mut rig = rig();
    let raw = crate::model::Raw("{}".into());
    rig.session().transcript.push(1, ItemBody::Raw { name: "news".to_owned(), raw });
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.act(Action::OpenSearch);
    assert!(rig.shown_mut().search.is_some());
    assert_eq!(answers(&rig.act(Action::Escape)), []);
    assert!(rig.shown_mut().search.is_none());
    rig.act(Action::Browse);
    rig.shown_mut().only = Some(crate::core::state::outline::Only::Commands);
    assert_eq!(answers(&rig.act(Action::Escape)), []);
    assert_eq!((rig.shown_mut().only, rig.user.is_browsing), (None, true));
    assert_eq!(answers(&rig.act(Action::Escape)), []);
    assert!(!rig.user.is_browsing);
    assert_eq!(rig.open_requests(), [1]);
    assert_eq!(answers(&rig.act(Action::Escape)), [(1, selected("option-1"))]);
}

#[test]
fn items_can_be_opened_and_copied_while_a_request_has_the_keys() {
    let mut rig = rig();
    let raw = crate::model::Raw("{}".into());
    rig.session().transcript.push(1, ItemBody::Raw { name: "news".to_owned(), raw });
    rig.ask_permission(1, &[AllowOnce, RejectOnce]);
    rig.act(Action::ToggleFold);
    assert_eq!(rig.app.shown().item(crate::model::ItemId(0)).is_open, Some(true));
    rig.act(Action::OpenCopy);
    assert_eq!(rig.state.flash.as_deref(), Some("Nothing to copy yet."), "it is not ignored");
    assert_eq!(rig.open_requests(), [1]);
}

#[test]
fn empty_reason_only_rejects() {
    let mut rig = asked();
    rig.wait(600).act_now(Action::RejectWithReason);
    assert_eq!(answers(&rig.act(Action::Accept)), [(1, selected("option-1"))]);
    assert!(rig.queue().is_empty());
}

#[test]
fn leaving_the_reason_returns_to_the_request() {
    let mut rig = asked();
    rig.wait(600).act_now(Action::RejectWithReason);
    rig.type_line("no");
    assert_eq!(answers(&rig.act(Action::Escape)), []);
    assert_eq!(rig.open_requests(), [1]);
}

#[test]
fn a_request_to_read_on_ends_at_the_end_of_the_question() {
    let mut rig = asked();
    let now = rig.now;
    rig.guard.returned();
    crate::ui::dialogs::on_frame(&mut rig.app, false, now);
    rig.now += std::time::Duration::from_millis(600);
    rig.act_now(Action::Accept);
    assert_eq!(rig.state.flash.as_deref(), Some("Not answered: scroll to the end of the question first."));
    let now = rig.now;
    crate::ui::dialogs::on_frame(&mut rig.app, false, now);
    assert!(rig.state.flash.is_some());
    crate::ui::dialogs::on_frame(&mut rig.app, true, now);
    assert_eq!(rig.state.flash, None);
}
