//! Draft, history, completion, sending.

use crate::config::keymap::Context;
use crate::core::{self, Effect, ItemBody, SessionPhase, ViewCommand};
use crate::model::{Action, ItemId, Limit, ServiceEvent, Severity, SlashCommand};
use crate::ui::dialogs::testkit::{Rig, views};
use crate::ui::dialogs::{completions, focus, selected_completion};
use crate::ui::tests::fixture;

pub(super) fn command(name: &str, description: &str, hint: Option<&str>) -> SlashCommand {
    SlashCommand { name: name.to_owned(), description: description.to_owned(), hint: hint.map(str::to_owned) }
}

pub(super) fn rig_with_commands() -> Rig {
    let mut rig = Rig::new();
    rig.session().commands = vec![
        command("compact", "Shorten the context", None),
        command("plan", "Make a plan", Some("what for")),
        command("plan-review", "Look at the plan", None),
    ];
    rig
}

pub(super) fn names(rig: &Rig) -> Vec<String> {
    completions(rig).into_iter().map(|completion| completion.name).collect()
}

fn rig_with_history() -> Rig {
    let mut rig = Rig::new();
    rig.session().history = ["first", "second", "third"].map(str::to_owned).to_vec();
    rig
}

pub(super) fn set(text: &str) -> Vec<ViewCommand> {
    vec![ViewCommand::SetDraft(text.to_owned())]
}

#[test]
fn typing_moves_nothing_on_the_screen() {
    let mut rig = Rig::new();
    assert_eq!(rig.type_draft("a"), Vec::new());
    assert_eq!(rig.session().draft, "a");
}

#[test]
fn enter_sends_empties_the_prompt_and_follows_the_end() {
    let mut rig = Rig::new();
    rig.type_draft("do it");
    let reported = views(&rig.act(Action::Submit));
    assert!(reported.contains(&ViewCommand::SetDraft(String::new())), "{reported:?}");
    assert!(reported.contains(&ViewCommand::ScrollEnd), "{reported:?}");
    assert_eq!(rig.session().draft, "");
    assert_eq!(rig.session().history.last().map(String::as_str), Some("do it"));
    assert!(rig.session().turn.is_running());
}

/// The effects of an editor that was opened with the text `before`.
fn edited(rig: &mut Rig, before: &str, edited: Result<Option<&str>, &str>) -> Vec<ViewCommand> {
    let session = rig.state.active;
    let edited = edited.map(|text| text.map(str::to_owned)).map_err(str::to_owned);
    let done = ServiceEvent::DraftEdited { session, before: before.to_owned(), edited };
    views(&crate::ui::update(&mut rig.app, core::Event::Service(done), rig.now))
}

#[test]
fn the_editor_gets_the_draft_and_returns_a_new_one() {
    let mut rig = Rig::new();
    rig.type_draft("one");
    let session = rig.state.active;
    let effect = Effect::EditDraft { session, text: "one".to_owned(), folder: "/home/u/shop".into() };
    assert_eq!(rig.act(Action::EditDraft), [effect]);
    assert_eq!(edited(&mut rig, "one", Ok(Some("two"))), [ViewCommand::SetDraft("two".to_owned())]);
    assert_eq!(rig.session().draft, "two");
    assert_eq!(edited(&mut rig, "two", Ok(None)), []);
    assert_eq!(rig.session().history, [""; 0]);
}

#[test]
fn text_typed_while_the_editor_is_open_is_added_to_the_history() {
    let mut rig = Rig::new();
    rig.type_draft("one");
    rig.act(Action::EditDraft);
    rig.type_draft("one more");
    edited(&mut rig, "one", Ok(Some("two")));
    assert_eq!(rig.session().draft, "two");
    assert_eq!(rig.session().history, ["one more"]);
}

#[test]
fn a_failed_editor_leaves_the_draft_unchanged() {
    let mut rig = Rig::new();
    rig.type_draft("one");
    assert_eq!(edited(&mut rig, "one", Err("vi exited with exit status: 1.")), []);
    assert_eq!(rig.session().draft, "one");
    assert_eq!(rig.state.flash.as_deref(), Some("vi exited with exit status: 1. The prompt is unchanged."));
}

#[test]
fn a_stashed_draft_is_restored_after_the_next_prompt() {
    let mut rig = Rig::new();
    rig.type_draft("for later");
    assert_eq!(views(&rig.act(Action::StashDraft)), set(""));
    assert_eq!(rig.session().draft, "");
    assert_eq!(rig.session().stash, ["for later"]);
    rig.type_draft("first this");
    let reported = views(&rig.act(Action::Submit));
    assert!(reported.contains(&ViewCommand::SetDraft("for later".to_owned())), "{reported:?}");
    assert_eq!(rig.session().draft, "for later");
    assert!(rig.session().turn.is_running());
    assert_eq!(rig.session().stash, [""; 0]);
}

#[test]
fn stashed_drafts_are_restored_last_first() {
    let mut rig = Rig::new();
    for text in ["one", "two"] {
        rig.type_draft(text);
        rig.act(Action::StashDraft);
    }
    assert_eq!(rig.session().history, ["one", "two"], "they survive the end of parlor");
    assert_eq!(views(&rig.act(Action::StashDraft)), set("two"));
    assert_eq!(rig.state.flash.as_deref(), Some("Prompt restored."));
    rig.type_draft("");
    assert_eq!(views(&rig.act(Action::StashDraft)), set("one"));
    rig.type_draft("");
    assert_eq!(views(&rig.act(Action::StashDraft)), []);
    assert_eq!(rig.state.flash.as_deref(), Some("No stashed prompts."));
}

#[test]
fn each_session_has_its_stash() {
    let mut rig = Rig::new();
    rig.type_draft("for the first");
    rig.act(Action::StashDraft);
    rig.act(Action::NewSession);
    assert_eq!(views(&rig.act(Action::StashDraft)), []);
    assert_eq!(rig.session().draft, "");
}

#[test]
fn enter_queues_while_a_turn_runs() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.type_draft("and then");
    rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["and then"]);
}

#[test]
fn enter_on_blanks_sends_nothing() {
    let mut rig = Rig::new();
    rig.type_draft(" \n ");
    assert_eq!(rig.act(Action::Submit), Vec::new());
    assert_eq!(rig.session().draft, " \n ");
}

#[test]
fn enter_on_an_empty_prompt_sends_what_waits() {
    let mut rig = Rig::new();
    rig.session().outbox.enqueue("left over".to_owned());
    rig.act(Action::Submit);
    assert!(rig.queue().is_empty());
    assert!(rig.session().turn.is_running());
}

#[test]
fn enter_on_an_empty_prompt_asks_about_a_paused_turn() {
    let mut rig = Rig::new();
    rig.type_draft("go");
    rig.act(Action::Submit);
    rig.session().budget.paused = Some(Limit::parse("turn 1 call").unwrap());
    rig.act(Action::Submit);
    assert_eq!(rig.state.questions[0].title, "Limit of 1 tool call for a turn reached");
}

#[test]
fn a_new_session_has_a_draft_of_its_own() {
    let mut rig = Rig::new();
    let first = rig.state.active;
    rig.type_draft("for the first");
    let reported = views(&rig.act(Action::NewSession));
    assert_ne!(rig.state.active, first);
    assert!(reported.contains(&ViewCommand::ShowDraft(rig.state.active, String::new())), "{reported:?}");
    assert_eq!(rig.session().draft, "");
    assert_eq!(rig.state.sessions[&first].draft, "for the first");
}

#[test]
fn without_an_agent_the_prompt_waits_and_agents_are_offered() {
    let mut rig = Rig::new();
    rig.session().phase = SessionPhase::NoAgent;
    rig.type_draft("do it");
    rig.act(Action::Submit);
    assert_eq!(focus(&rig), Context::List);
    assert_eq!(rig.queue(), ["do it"]);
    let mut rig = Rig::new();
    rig.session().phase = SessionPhase::Ended { cause: "It ended.".to_owned() };
    rig.type_draft("do it");
    rig.act(Action::Submit);
    assert_eq!(rig.queue(), ["do it"]);
    assert!(rig.state.flash.is_some());
}

#[test]
fn history_goes_back_and_forth_and_gives_the_draft_back() {
    let mut rig = rig_with_history();
    rig.type_draft("mine");
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("third"));
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("second"));
    // The view tells the text back; that is no typing.
    rig.type_draft("second");
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("first"));
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), []);
    assert_eq!(views(&rig.act(Action::HistoryNext)), set("second"));
    assert_eq!(views(&rig.act(Action::HistoryNext)), set("third"));
    assert_eq!(views(&rig.act(Action::HistoryNext)), set("mine"));
    assert_eq!(views(&rig.act(Action::HistoryNext)), []);
    assert_eq!(rig.session().draft, "mine");
}

#[test]
fn typing_leaves_the_history() {
    let mut rig = rig_with_history();
    rig.act(Action::HistoryPrevious);
    rig.act(Action::HistoryPrevious);
    rig.type_draft("second, changed");
    assert_eq!(rig.shown_mut().history_index, None);
    assert_eq!(views(&rig.act(Action::HistoryNext)), []);
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("third"));
    assert_eq!(views(&rig.act(Action::HistoryNext)), set("second, changed"));
}

#[test]
fn history_skips_what_stands_in_the_prompt_already() {
    let mut rig = Rig::new();
    rig.session().history = ["a", "b", "b", "b"].map(str::to_owned).to_vec();
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("b"));
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("a"));
    assert_eq!(views(&rig.act(Action::HistoryNext)), set("b"));
    assert_eq!(views(&rig.act(Action::HistoryNext)), set(""));
}

#[test]
fn history_without_prompts_does_nothing() {
    let mut rig = Rig::new();
    rig.type_draft("mine");
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), []);
    assert_eq!(rig.session().draft, "mine");
}

#[test]
fn a_slash_offers_all_commands_and_letters_narrow_them() {
    let mut rig = rig_with_commands();
    rig.type_draft("/");
    assert_eq!(names(&rig), ["compact", "plan", "plan-review"]);
    rig.type_draft("/pl");
    assert_eq!(names(&rig), ["plan", "plan-review"]);
    rig.type_draft("/xyz");
    assert!(names(&rig).is_empty());
    for text in ["", "plan", " /plan", "/plan ", "/plan x", "/plan\n"] {
        rig.type_draft(text);
        assert!(names(&rig).is_empty(), "{text:?}");
    }
}

#[test]
fn what_is_typed_out_in_full_comes_first() {
    let mut rig = rig_with_commands();
    rig.session().commands.reverse();
    rig.type_draft("/plan");
    assert_eq!(names(&rig), ["plan", "plan-review"]);
}

#[test]
fn arrows_walk_the_completions_and_tab_takes_one() {
    let mut rig = rig_with_commands();
    rig.session().history = vec!["old".to_owned()];
    rig.type_draft("/");
    assert_eq!(rig.act(Action::HistoryNext), Vec::new());
    assert_eq!(selected_completion(&rig), 1);
    assert_eq!(rig.act(Action::Up), Vec::new());
    assert_eq!(rig.act(Action::HistoryPrevious), Vec::new());
    assert_eq!(selected_completion(&rig), 0);
    rig.act(Action::Mark(1));
    assert_eq!(selected_completion(&rig), 1);
    assert_eq!(views(&rig.act(Action::Complete)), set("/plan "));
    assert!(names(&rig).is_empty());
}

#[test]
fn the_mark_begins_anew_with_each_letter() {
    let mut rig = rig_with_commands();
    rig.type_draft("/");
    rig.act(Action::HistoryNext);
    rig.type_draft("/c");
    assert_eq!(selected_completion(&rig), 0);
}

#[test]
fn enter_completes_what_is_typed_in_part_and_sends_what_is_whole() {
    let mut rig = rig_with_commands();
    rig.type_draft("/comp");
    assert_eq!(views(&rig.act(Action::Submit)), set("/compact"));
    assert!(!rig.session().turn.is_running());
    rig.type_draft("/compact");
    rig.act(Action::Submit);
    assert!(rig.session().turn.is_running());
    assert_eq!(rig.session().draft, "");
}

#[test]
fn enter_sends_a_slash_text_that_is_no_command() {
    let mut rig = rig_with_commands();
    rig.type_draft("/nothing-like-it");
    rig.act(Action::Submit);
    assert!(rig.session().turn.is_running());
}

#[test]
fn a_command_from_the_history_does_not_catch_the_arrow_keys() {
    let mut rig = rig_with_commands();
    rig.session().history = vec!["older".to_owned(), "/plan".to_owned()];
    rig.act(Action::HistoryPrevious);
    assert_eq!(rig.session().draft, "/plan");
    assert!(names(&rig).is_empty());
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("older"));
}

#[test]
fn completions_of_thousands_of_commands_are_ranked() {
    let mut rig = Rig::new();
    rig.session().commands = (0..5000).map(|n| command(&format!("cmd-{n}"), "", None)).collect();
    rig.type_draft("/");
    assert_eq!(names(&rig).len(), 200);
    rig.type_draft("/cmd-4999");
    assert_eq!(names(&rig).first().map(String::as_str), Some("cmd-4999"));
}

#[test]
fn the_mark_steps_over_what_is_not_seen() {
    let mut rig = Rig::new();
    let notice = |title: &str| ItemBody::notice(Severity::Info, title.to_owned(), None);
    let gone = || {
        let mut call = crate::core::ToolCall::new("call".into(), std::time::Instant::now());
        call.from_ask_only = true;
        call.decision = Some(crate::core::Decision::Cancelled(crate::model::Decider::User));
        ItemBody::Tool(Box::new(call))
    };
    for body in [gone(), notice("one"), gone(), notice("two"), gone()] {
        rig.session().transcript.push(0, body);
    }
    let mut marks = Vec::new();
    for action in [Action::SelectPrevious, Action::SelectPrevious, Action::SelectPrevious, Action::SelectNext]
    {
        rig.act(action);
        marks.extend(rig.shown_mut().selected.map(|id| id.0));
    }
    assert_eq!(marks, [3, 1, 1, 3]);
}

#[test]
fn items_are_marked_from_the_end_and_opened() {
    let mut rig = Rig::new();
    for name in ["one", "two"] {
        let raw = crate::model::Raw("{}".into());
        rig.session().transcript.push(0, ItemBody::Raw { name: name.to_owned(), raw });
    }
    assert_eq!(views(&rig.act(Action::SelectPrevious)), [ViewCommand::ShowSelected]);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(1)));
    rig.act(Action::SelectPrevious);
    rig.act(Action::SelectPrevious);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(0)));
    rig.act(Action::ToggleFold);
    assert_eq!(rig.app.shown().item(ItemId(0)).is_open, Some(true));
    rig.act(Action::ToggleItem(ItemId(0)));
    assert_eq!(rig.app.shown().item(ItemId(0)).is_open, Some(false));
    rig.act(Action::SelectNext);
    rig.act(Action::SelectNext);
    assert_eq!(rig.shown_mut().selected, Some(ItemId(1)));
    rig.act(Action::ToggleItem(ItemId(77)));
}

#[test]
fn without_a_selection_the_last_foldable_item_opens() {
    let mut rig = Rig::new();
    rig.act(Action::ToggleFold);
    assert_eq!(rig.state.flash.as_deref(), Some("Nothing to expand."));
    for name in ["one", "two"] {
        let raw = crate::model::Raw("{}".into());
        rig.session().transcript.push(0, ItemBody::Raw { name: name.to_owned(), raw });
    }
    rig.session().transcript.push(0, ItemBody::notice(Severity::Info, "done".to_owned(), None));
    rig.act(Action::ToggleFold);
    let open = [0, 1, 2].map(|id| rig.app.shown().item(ItemId(id)).is_open);
    assert_eq!(open, [None, Some(true), None]);
}

#[test]
fn thoughts_can_be_toggled_after_all_items_were() {
    let mut rig = Rig::new();
    let thought = fixture::message(crate::model::Role::Thought, "hm", rig.now);
    rig.session().transcript.push(1, ItemBody::Message(thought));
    let is_open = |rig: &mut Rig| {
        let shows_thoughts = rig.shows_thoughts;
        let session = rig.state.active_session().unwrap();
        crate::ui::dialogs::is_item_open(
            &session.transcript.items()[0],
            rig.app.shown(),
            session,
            shows_thoughts,
        )
    };
    assert!(!is_open(&mut rig));
    rig.act(Action::ToggleAllFolds);
    rig.act(Action::ToggleAllFolds);
    assert!(!is_open(&mut rig));
    rig.act(Action::ToggleThoughts);
    assert!(is_open(&mut rig));
    rig.act(Action::ToggleAllFolds);
    rig.act(Action::ToggleAllFolds);
    rig.act(Action::ToggleThoughts);
    assert!(!is_open(&mut rig), "they were shown");
}

#[test]
fn all_items_fold_and_open_together() {
    let mut rig = Rig::new();
    for name in ["a", "b"] {
        let raw = crate::model::Raw("{}".into());
        rig.session().transcript.push(0, ItemBody::Raw { name: name.to_owned(), raw });
    }
    rig.act(Action::ToggleItem(ItemId(1)));
    rig.act(Action::ToggleAllFolds);
    let open = |rig: &mut Rig| [0, 1].map(|id| rig.app.shown().item(ItemId(id)).is_open);
    assert_eq!(open(&mut rig), [Some(false), Some(false)]);
    rig.act(Action::ToggleAllFolds);
    assert_eq!(open(&mut rig), [Some(true), Some(true)]);
}

#[test]
fn the_unchanged_lines_of_the_marked_or_last_change_open() {
    use crate::model::{DiffChange, FileDiff, ToolContent, ToolKind};
    let mut rig = Rig::new();
    assert!(
        rig.act(Action::ToggleContext).iter().any(|fx| matches!(fx, crate::core::Effect::Timer(..))),
        "it says why not"
    );
    for _ in 0..2 {
        let mut call = crate::core::ToolCall::new("t".into(), rig.now);
        call.kind = ToolKind::Edit;
        let change = DiffChange::Texts { old: Some("a".into()), new: "b".into() };
        call.content = vec![ToolContent::Diff(FileDiff { path: "a".into(), change })];
        rig.session().transcript.push(0, ItemBody::Tool(Box::new(call)));
    }
    let shown = |rig: &mut Rig| [0, 1].map(|id| rig.app.shown().item(ItemId(id)).shows_context);
    rig.act(Action::ToggleContext);
    assert_eq!(shown(&mut rig), [false, true]);
    rig.shown_mut().selected = Some(ItemId(0));
    rig.act(Action::ToggleContext);
    assert_eq!(shown(&mut rig), [true, true]);
    // A preview opens before it closes.
    rig.act(Action::ToggleContext);
    let one = |rig: &mut Rig| rig.app.shown().item(ItemId(1)).is_open;
    rig.shown_mut().set_open(ItemId(1), None);
    rig.act(Action::ToggleItem(ItemId(1)));
    assert_eq!(one(&mut rig), Some(true));
    rig.act(Action::ToggleItem(ItemId(1)));
    assert_eq!(one(&mut rig), Some(false));
}

#[test]
fn scrolling_is_the_views() {
    let mut rig = Rig::new();
    for (action, command) in [
        (Action::ScrollLineUp, ViewCommand::ScrollLines(-1)),
        (Action::ScrollLineDown, ViewCommand::ScrollLines(1)),
        (Action::ScrollPageUp, ViewCommand::ScrollPages(-1)),
        (Action::ScrollPageDown, ViewCommand::ScrollPages(1)),
        (Action::ScrollTop, ViewCommand::ScrollTop),
        (Action::ScrollEnd, ViewCommand::ScrollEnd),
        (Action::Scroll(-3), ViewCommand::ScrollLines(-3)),
    ] {
        assert_eq!(views(&rig.act(action)), [command], "{action:?}");
    }
}

#[test]
fn enter_sends_a_command_that_the_agent_did_not_tell() {
    let mut rig = rig_with_commands();
    // Its letters lie scattered in "Shorten the context".
    rig.type_draft("/next");
    assert_eq!(names(&rig), [""; 0]);
    rig.act(Action::Submit);
    assert_eq!(rig.session().history.last().map(String::as_str), Some("/next"));
    rig.type_draft("/context");
    assert_eq!(names(&rig), ["compact"], "whole words of a description still find it");
}

#[test]
fn a_cleared_draft_is_in_the_history_and_can_be_undone() {
    let mut rig = rig_with_history();
    rig.type_draft("a long thought");
    let fx = rig.act(Action::ClearOrQuit);
    assert_eq!(views(&fx), [ViewCommand::ClearDraft], "the view does it as an edit that can be undone");
    let is_saved =
        |effect: &Effect| matches!(effect, Effect::SavePrompt { text, .. } if text == "a long thought");
    assert!(fx.iter().any(is_saved), "{fx:?}");
    assert_eq!(rig.session().draft, "");
    assert_eq!(views(&rig.act(Action::HistoryPrevious)), set("a long thought"));
    // Blanks are worth nothing.
    let mut rig = rig_with_history();
    rig.type_draft("  ");
    rig.act(Action::ClearOrQuit);
    assert_eq!(rig.session().history.last().map(String::as_str), Some("third"));
}

#[test]
fn a_draft_that_waits_behind_the_history_is_never_lost() {
    let leave: [fn(&mut Rig); 3] = [
        |rig| drop(rig.act(Action::ClearOrQuit)),
        |rig| drop(rig.act(Action::Submit)),
        |rig| drop(rig.type_draft("third, changed")),
    ];
    for leave in leave {
        let mut rig = rig_with_history();
        rig.type_draft("half a thought");
        rig.act(Action::HistoryPrevious);
        leave(&mut rig);
        assert!(
            rig.session().history.iter().any(|text| text == "half a thought"),
            "{:?}",
            rig.session().history
        );
    }
}
