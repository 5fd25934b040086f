//! Tests of commands that the user types: how they begin, who gets the keys, and what becomes of their output.

use super::bench::TestApp;
use crate::config::keymap::Context;
use crate::core;
use crate::core::tests::shell::{ended, hides_input, started, wrote};
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;
use crate::ui::dialogs;

fn run(app: &mut TestApp, text: &str) {
    app.draft(text);
    app.play(Event::RunCommand(text.to_owned()));
}

/// A command with output that has ended, without unread effects.
fn with_output(attaches: bool) -> (TestApp, TerminalId) {
    let mut app = TestApp::talked();
    run(&mut app, if attaches { "!!make" } else { "!make" });
    let id = started(&mut app, 1, "make");
    wrote(&mut app, &id, "\x1b[31mfailed\x1b[0m\r\n");
    ended(&mut app, &id, 2);
    app.fx.clear();
    (app, id)
}

#[test]
fn only_the_event_of_the_key_runs_a_command() {
    let mut app = TestApp::ready();
    app.submit("!rm x").end_turn(StopReason::EndTurn);
    app.expect_sent("call prompt \"!rm x\"");
    app.draft("!rm x").act(Action::Submit);
    app.expect_sent("draft \"\"\ncall prompt \"!rm x\"");
    let mut app = TestApp::running();
    app.submit("!rm x").end_turn(StopReason::EndTurn);
    app.expect_sent("call prompt \"!rm x\"");
    let mut app = TestApp::running();
    app.submit("go on").act(Action::HistoryPrevious);
    assert!(app.session().outbox.edited().is_some());
    run(&mut app, "!rm x");
    app.end_turn(StopReason::EndTurn);
    assert!(app.sent().contains("call prompt \"!rm x\""), "an edited queued prompt");
}

#[test]
fn without_a_session_the_command_stays_in_the_prompt() {
    let mut app = TestApp::started();
    app.fx.clear();
    run(&mut app, "!ls");
    app.expect_sent("");
    assert_eq!(app.session().draft, "!ls");
    assert!(app.state.flash.as_ref().unwrap().contains("not open yet"));
    let mut app = TestApp::ready();
    run(&mut app, "! ");
    app.expect_sent("");
    assert_eq!(app.session().draft, "! ");
}

#[test]
fn an_output_goes_into_one_prompt_only() {
    let (mut app, id) = with_output(true);
    assert_eq!(app.session().draft, "@!1 ");
    app.draft("@!1 fix it").act(Action::Submit);
    let jobs = app.prompt_jobs();
    let [PromptJob { outputs, text, .. }] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(text, "@!1 fix it");
    let [CommandOutput { name, command, exit, output, .. }] = outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    assert_eq!((name.as_str(), command.as_str()), ("!1", "make"));
    assert_eq!(exit.as_ref().unwrap().code, Some(2));
    assert_eq!(output[..], app.session().terminals[&id].output[..]);
    assert_eq!(app.session().draft, "");
    let (mut app, _) = with_output(false);
    assert_eq!(app.session().draft, "");
    app.submit("fix it");
    assert_eq!(app.prompt_jobs(), Vec::<&PromptJob>::new());
}

#[test]
fn a_prompt_waits_for_the_attached_output() {
    let mut app = TestApp::talked();
    run(&mut app, "!!make");
    let id = started(&mut app, 1, "make");
    app.fx.clear();
    app.draft("@!1 fix it").act(Action::Submit);
    assert_eq!(app.prompt_jobs(), Vec::<&PromptJob>::new());
    assert_eq!(app.session().draft, "@!1 fix it");
    assert!(app.state.flash.as_ref().unwrap().contains("make is still running"));
    app.submit("see @last");
    assert_eq!(app.prompt_jobs()[0].outputs[0].exit, None, "the output so far was asked for");
    ended(&mut app, &id, 0);
}

#[test]
fn escape_and_ctrl_c_stop_what_was_started_last() {
    for action in [Action::Escape, Action::ClearOrQuit] {
        let mut app = TestApp::running();
        app.wait(1);
        run(&mut app, "!sleep 9");
        let id = started(&mut app, 1, "sleep 9");
        app.fx.clear();
        app.act(action);
        app.expect_sent(&format!("terminal kill {id}"));
        ended(&mut app, &id, 143);
        app.wait(2);
        app.fx.clear();
        app.act(action);
        app.expect_sent("cancel s");
        let mut app = TestApp::talked();
        run(&mut app, "!serve");
        let id = started(&mut app, 1, "serve");
        app.wait(1).submit("go");
        app.fx.clear();
        app.act(action);
        app.expect_sent("cancel s");
        app.end_turn(StopReason::Cancelled);
        app.wait(2);
        app.fx.clear();
        app.act(action);
        app.expect_sent(&format!("terminal kill {id}"));
    }
}

#[test]
fn keys_go_to_a_command_until_the_user_leaves_it_or_pauses_after_its_end() {
    let mut app = TestApp::talked();
    run(&mut app, "!cat");
    let id = started(&mut app, 1, "cat");
    app.fx.clear();
    app.act(Action::TypeIntoTerminal);
    assert_eq!(dialogs::base_focus(&app), Context::Terminal);
    let key = |text: &str| Event::Key(vec![Event::TypeIn(TerminalInput::Bytes(text.into()))]);
    app.play(key("a"));
    app.expect_sent(&format!("terminal type \"a\" into {id}"));
    app.act(Action::TypeIntoTerminal);
    assert_eq!(dialogs::base_focus(&app), Context::Main);
    app.act(Action::TypeIntoTerminal);
    ended(&mut app, &id, 0);
    app.fx.clear();
    app.play(key("geheim"));
    app.expect_sent("");
    app.play(core::Event::Timer(TimerId::TypedInto(KEY)));
    assert_eq!(dialogs::base_focus(&app), Context::Terminal, "the user is still typing");
    app.wait(1).play(core::Event::Timer(TimerId::TypedInto(KEY)));
    assert_eq!(dialogs::base_focus(&app), Context::Main);
    assert_eq!(app.session().draft, "");
    app.act(Action::TypeIntoTerminal);
    assert_eq!(dialogs::base_focus(&app), Context::Main, "nothing runs");
}

#[test]
fn a_request_does_not_take_the_keys_from_a_terminal() {
    let mut app = TestApp::running();
    run(&mut app, "!cat");
    started(&mut app, 1, "cat");
    app.act(Action::TypeIntoTerminal);
    app.ask(1, run_line("rm x"));
    app.wait(9);
    assert!(dialogs::is_beside_draft(&app) && !dialogs::takes_input(&app));
    assert_eq!(dialogs::base_focus(&app), Context::Terminal);
}

#[test]
fn a_command_that_reads_hidden_input_gets_the_keys_until_it_has_read() {
    for line in ["!sudo make", "!!sudo make"] {
        let mut app = TestApp::talked();
        run(&mut app, line);
        let id = started(&mut app, 1, "sudo make");
        let draft = app.session().draft.clone();
        hides_input(&mut app, &id, true);
        assert_eq!(dialogs::base_focus(&app), Context::Terminal);
        app.wait(9);
        app.play(core::Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(dialogs::base_focus(&app), Context::Terminal, "as long as it waits");
        hides_input(&mut app, &id, false);
        assert_eq!(dialogs::base_focus(&app), Context::Terminal, "until the keys pause");
        app.wait(1);
        app.play(core::Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(dialogs::base_focus(&app), Context::Main);
        assert_eq!(app.session().draft, draft);
    }
}

#[test]
fn no_prompt_is_sent_while_a_command_reads_hidden_input() {
    let mut app = TestApp::talked();
    run(&mut app, "!sudo make");
    let id = started(&mut app, 1, "sudo make");
    app.draft("fix");
    hides_input(&mut app, &id, true);
    assert_eq!(dialogs::base_focus(&app), Context::Main, "the prompt keeps the keys");
    app.fx.clear();
    app.draft("hunter2").act(Action::Submit);
    assert!(app.state.flash.as_ref().unwrap().contains("sudo make waits for hidden input"));
    assert_eq!((app.session().draft.as_str(), app.queue().len()), ("hunter2", 0));
    assert!(!app.fx.iter().any(|effect| matches!(effect, Effect::SavePrompt { .. })), "{:?}", app.fx);
    ended(&mut app, &id, 1);
    app.act(Action::Submit);
    assert_eq!(app.session().draft, "");
}

#[test]
fn commands_of_agents_have_input_only_if_enabled() {
    for is_enabled in [false, true] {
        let mut app = TestApp::running();
        app.state.setup.policy.command_input = is_enabled;
        app.ask(1, run_line("cat")).choose(Some(0));
        let has_input = app
            .fx
            .iter()
            .any(|effect| matches!(effect, Effect::Terminal(TerminalJob::Create { has_input: true, .. })));
        assert_eq!(has_input, is_enabled);
        app.terminal_started(1, "x", "cat");
        let is_command = |item: &&Item| matches!(item.body, ItemBody::Tool(_));
        let item = app.session().transcript.items().iter().rev().find(is_command).map(|item| item.id);
        app.act(Action::TypeIntoTerminal);
        assert_eq!(app.session().typing(), None, "it was not selected");
        app.views.get_mut(KEY).selected = item;
        app.act(Action::TypeIntoTerminal);
        assert_eq!(app.session().typing().is_some(), is_enabled);
    }
}

#[test]
fn outputs_and_changes_are_listed_with_a_description() {
    let (mut app, _) = with_output(false);
    app.session_mut().git = Some(GitInfo { branch: "main".into(), is_dirty: true });
    let mut list = |query: &str, found: &[&str]| {
        app.play(Event::Draft(format!("@{query}")));
        app.play(Event::Mention(Some((0..query.len() + 1, query.to_owned()))));
        let files = found.iter().map(|path| FoundFile { path: (*path).to_owned() }).collect();
        let (session, query) = (KEY, query.to_owned());
        app.service(ServiceEvent::FilesFound { session, query, files, is_complete: true });
        let offered = dialogs::completions(&app);
        offered.into_iter().map(|offer| format!("{} {}", offer.name, offer.description)).collect::<Vec<_>>()
    };
    let (last, diff) = ("last output of make (17 B)", "diff changes since the last commit");
    assert_eq!(list("", &["a", "b", "c", "d"]), ["a ", "b ", "c ", last, diff, "d "]);
    assert_eq!(list("la", &["last", "lab"]), [last, "./last ", "lab "]);
    assert_eq!(list("!", &[]), ["!1 output of make (17 B)"]);
    app.act(Action::Complete);
    assert_eq!(app.session().draft, "@!1 ");
}

#[test]
fn a_full_screen_program_does_not_take_the_keys_from_a_typing_user() {
    let mut app = TestApp::talked();
    run(&mut app, "!vim");
    let id = started(&mut app, 1, "vim");
    app.wait(1).play(Event::Key(vec![Event::Draft("next".into())]));
    wrote(&mut app, &id, "\x1b[?1049h\x1b[Htext");
    assert_eq!(app.session().typing(), None);
}
