//! Tests of going back to an earlier prompt.

use crate::core::session::play;
use crate::core::{Consequence, Effect, ItemBody, RestoreOf, RewindWay, ToolCall, TurnChanges, ViewCommand};
use crate::model::snapshot::{Span, UndoRules};
use crate::model::{
    Action, AgentCommand, Attachment, Call, DiffChange, FileDiff, ItemId, ToolContent, ToolKind, ToolStatus,
};
use crate::ui::dialogs::testkit::*;
use crate::ui::dialogs::{Picker, Rewind};

/// A session with three prompts; the second turn changes a file.
fn rig() -> (Rig, Vec<ItemId>) {
    let mut rig = Rig::new();
    let now = rig.now;
    let session = rig.session();
    let mut prompts = Vec::new();
    for (turn, text) in (1..).zip(["first", "second\nwith more", "third"]) {
        session.turn_count = turn;
        prompts.push(session.transcript.push(turn, play::user_message(text, &[], Vec::new(), now)));
        if turn == 2 {
            let change = DiffChange::Texts { old: Some("a".into()), new: "b".into() };
            let diff = FileDiff { path: "src/a.rs".into(), change };
            let call = ToolCall {
                kind: ToolKind::Edit,
                status: ToolStatus::Completed,
                content: vec![ToolContent::Diff(diff)],
                ..ToolCall::new("t".into(), now)
            };
            session.transcript.push(turn, ItemBody::Tool(Box::new(call)));
        }
    }
    (rig, prompts)
}

fn ways(rig: &Rig) -> Vec<RewindWay> {
    let Some(dialog) = rig.state.questions.last() else { panic!("a question is open") };
    let way = |consequence: &Consequence| match consequence {
        Consequence::Rewind(_, _, way) => *way,
        other => panic!("{other:?}"),
    };
    dialog.answers.iter().map(|choice| way(&choice.consequence)).collect()
}

fn body(rig: &Rig) -> String {
    let Some(dialog) = rig.state.questions.last() else { panic!("a question is open") };
    dialog.body.join("\n")
}

fn labels(rig: &Rig) -> Vec<String> {
    let Some(dialog) = rig.state.questions.last() else { panic!("a question is open") };
    dialog.answers.iter().map(|choice| choice.label.clone()).collect()
}

fn open(rig: &mut Rig) {
    rig.act(Action::Escape);
    rig.act_now(Action::Escape);
}

#[test]
fn escape_twice_lists_the_prompts_and_one_is_edited_here() {
    let (mut rig, ids) = rig();
    // The visible items of an earlier jump do not matter.
    rig.shown_mut().reading = Some((ids[0], ids[0]));
    open(&mut rig);
    assert!(rig.layers.top::<Picker<Rewind>>().is_some());
    assert_eq!((rig.shown(), rig.marked()), (vec!["first", "second", "third"], "third"));
    rig.act(Action::Up);
    rig.act(Action::Accept);
    assert_eq!(labels(&rig)[0], "Edit it here\nSends a new prompt. The agent keeps its context.");
    assert_eq!(labels(&rig).last().map(String::as_str), Some("Show it in the transcript"));
    assert!(
        body(&rig).contains("Files that were changed since then are not reverted: src/a.rs."),
        "{}",
        body(&rig)
    );
    let fx = rig.act(Action::Accept);
    assert_eq!(views(&fx), [ViewCommand::SetDraft("second\nwith more".to_owned())]);
    assert_eq!(rig.session().transcript.items().len(), 4, "the session is not changed");
}

#[test]
fn a_prompt_with_a_pasted_text_is_edited_with_its_label() {
    let (mut rig, _) = rig();
    let now = rig.now;
    let text = "see one\ntwo\nthree.";
    let body = play::user_message(text, &[], std::iter::once(4..17).collect(), now);
    rig.session().transcript.push(4, body);
    open(&mut rig);
    assert_eq!(rig.marked(), "see [Pasted text: 3 lines].", "as in the transcript");
    rig.act(Action::Accept);
    let effects = rig.act(Action::Accept);
    let pasted = Attachment::of_text("one\ntwo\nthree");
    assert_eq!(rig.session().draft, format!("see {}.", pasted.label()));
    assert!(effects.contains(&Effect::SaveAttachment(pasted)), "{effects:?}");
}

#[test]
fn files_changed_before_the_prompt_are_not_named() {
    let (mut rig, _) = rig();
    open(&mut rig);
    rig.act(Action::Accept);
    assert!(body(&rig).ends_with("Files that were changed since then are not reverted."), "{}", body(&rig));
}

#[test]
fn only_forks_that_the_agent_can_make_are_offered() {
    let (mut rig, _) = rig();
    open(&mut rig);
    rig.act(Action::Accept);
    let whole = [RewindWay::Edit, RewindWay::Fork(None), RewindWay::HandOver, RewindWay::Show];
    assert_eq!(ways(&rig), whole);
    assert!(labels(&rig)[1].ends_with("The agent cannot copy only a part."));
    rig.act(Action::Escape);

    let can = |rig: &mut Rig, fork, at_turn| {
        let info = rig.state.conns.get_mut(&CONN).and_then(|conn| conn.info.as_mut()).unwrap();
        (info.capabilities.can_fork, info.capabilities.can_fork_at_turn) = (fork, at_turn);
    };
    can(&mut rig, true, true);
    open(&mut rig);
    rig.act(Action::Accept);
    assert_eq!(ways(&rig)[1], RewindWay::Fork(Some(2)), "up to the turn before the prompt");
    rig.act(Action::Escape);

    can(&mut rig, false, false);
    open(&mut rig);
    rig.act(Action::Accept);
    assert_eq!(ways(&rig), [RewindWay::Edit, RewindWay::HandOver, RewindWay::Show]);
}

#[test]
fn a_fork_gets_the_prompt_as_its_draft_and_the_session_stays() {
    let (mut rig, _) = rig();
    let source = rig.state.active;
    open(&mut rig);
    rig.act(Action::Accept);
    rig.act(Action::Choose(2));
    assert_ne!(rig.state.active, source);
    assert_eq!(rig.session().draft, "third");
    assert_eq!(rig.state.sessions[&source].transcript.items().len(), 4);
    assert_eq!(rig.state.sessions[&source].draft, "");
}

#[test]
fn a_new_session_gets_the_conversation_before_the_prompt() {
    let (mut rig, _) = rig();
    let source = rig.state.active;
    open(&mut rig);
    rig.act(Action::Up);
    rig.act(Action::Accept);
    let fx = rig.act(Action::Choose(3));
    assert_ne!(rig.state.active, source);
    assert_eq!(rig.session().draft, "second\nwith more");
    let handover = rig.session().resume.handover().unwrap().text.clone();
    assert!(handover.contains("first") && !handover.contains("second") && !handover.contains("third"));
    let prompts =
        fx.iter().filter(|it| matches!(it, Effect::Send(_, AgentCommand::Call(_, Call::Prompt(..)))));
    assert_eq!(prompts.count(), 0, "nothing is sent before the user sends it");
    assert_eq!(rig.state.sessions[&source].transcript.items().len(), 4);
}

#[test]
fn before_the_first_prompt_there_is_no_conversation_to_hand_over() {
    let (mut rig, prompts) = rig();
    open(&mut rig);
    rig.act(Action::First);
    rig.act(Action::Accept);
    assert!(labels(&rig).iter().any(|label| label.ends_with("The agent starts with an empty context.")));
    rig.act(Action::Choose(3));
    assert!(rig.session().resume.handover().is_none());
    assert_eq!(rig.session().draft, "first");
    assert_eq!(prompts.len(), 3);
}

#[test]
fn the_files_of_one_turn_are_undone_alone() {
    let (mut rig, _) = rig();
    rig.state.setup.undo = UndoRules { is_on: true, ..UndoRules::default() };
    rig.session().undo.turns = (1..=3).map(turn_changes).collect();
    open(&mut rig);
    rig.act(Action::Mark(0));
    rig.act(Action::Accept);
    let way = ways(&rig).iter().position(|way| *way == RewindWay::FilesOfTurn).unwrap();
    rig.act(Action::Mark(u16::try_from(way).unwrap()));
    rig.act(Action::Accept);
    let offer = rig.session().undo.offer.clone().unwrap();
    assert_eq!(offer.what, RestoreOf::Turns(vec![1]));
    // The last turn has no later ones.
    rig.session().undo.offer = None;
    open(&mut rig);
    rig.act(Action::Mark(2));
    rig.act(Action::Accept);
    assert!(ways(&rig).contains(&RewindWay::Files) && !ways(&rig).contains(&RewindWay::FilesOfTurn));
}

fn turn_changes(turn: u32) -> TurnChanges {
    let id = |number: u8| crate::model::snapshot::SnapshotId::of_digest(&[number; 20]);
    let span = Span { before: id(1), after: id(2) };
    TurnChanges { turn, span, files: Some(1), is_late: false, is_applied: false, undone_at: None }
}
