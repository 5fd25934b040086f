//! Tests of the user's own commands.

use super::support::*;
use crate::config::keymap::Context;
use crate::core::lifecycle::{handover, operations};
use crate::core::*;
use crate::model::*;
use crate::ui::dialogs::{self};

fn run(app: &mut TestApp, text: &str) {
    app.play(Event::Draft(text.to_owned()));
    app.play(Event::RunCommand(text.to_owned()));
}

fn started(app: &mut TestApp, number: u32, line: &str) -> TerminalId {
    let id = TerminalId::of_user("1-1", number);
    app.service(ServiceEvent::ShellStarted {
        session: KEY,
        number,
        line: line.into(),
        folder: "/code/shop".into(),
        result: Ok(id.clone()),
    });
    id
}

fn wrote(app: &mut TestApp, id: &TerminalId, text: &str) {
    app.service(ServiceEvent::TerminalOutput { terminal: id.clone(), bytes: text.into() });
}

fn ended(app: &mut TestApp, id: &TerminalId, code: i32) {
    let exit = ExitInfo { code: Some(code), signal: None };
    app.service(ServiceEvent::TerminalEnded { terminal: id.clone(), exit });
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

fn prepared(app: &TestApp) -> Vec<&PromptJob> {
    let jobs = app.fx.iter().filter_map(|effect| match effect {
        Effect::PreparePrompt(job) => Some(job),
        _ => None,
    });
    jobs.collect()
}

#[test]
fn a_command_is_an_item_of_the_user_and_is_not_sent_to_the_agent() {
    let mut app = TestApp::talked();
    run(&mut app, "!make test");
    app.expect_sent("draft \"\"\nterminal shell 1 \"make test\" in /code/shop");
    let id = started(&mut app, 1, "make test");
    let item = app.session().transcript.items().last().unwrap();
    let call = app.session().tool_call(item.id).unwrap();
    assert!(call.is_typed() && call.status == ToolStatus::InProgress);
    wrote(&mut app, &id, "ok\r\n");
    app.wait(3);
    ended(&mut app, &id, 0);
    app.expect_sent(&format!("terminal release {id}"));
    let item = app.session().transcript.items().last().unwrap();
    let call = app.session().tool_call(item.id).unwrap();
    assert_eq!((call.status, call.exit_code), (ToolStatus::Completed, Some(0)));
    assert_eq!(call.took, Some(std::time::Duration::from_secs(3)));
    app.submit("and now?");
    app.expect_sent("call prompt \"and now?\"");
}

#[test]
fn only_the_event_of_the_key_runs_a_command() {
    let mut app = TestApp::ready();
    app.submit("!rm x").end_turn(StopReason::EndTurn);
    app.expect_sent("call prompt \"!rm x\"");
    app.play(Event::Draft("!rm x".into())).play(Event::Act(Action::Submit));
    app.expect_sent("draft \"\"\ncall prompt \"!rm x\"");
    let mut app = TestApp::running();
    app.submit("!rm x").end_turn(StopReason::EndTurn);
    app.expect_sent("call prompt \"!rm x\"");
    let mut app = TestApp::running();
    app.submit("go on").play(Event::Act(Action::HistoryPrevious));
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
    app.play(Event::Draft("@!1 fix it".into())).play(Event::Act(Action::Submit));
    let jobs = prepared(&app);
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
    assert_eq!(prepared(&app), Vec::<&PromptJob>::new());
}

#[test]
fn a_prompt_waits_for_the_attached_output() {
    let mut app = TestApp::talked();
    run(&mut app, "!!make");
    let id = started(&mut app, 1, "make");
    app.fx.clear();
    app.play(Event::Draft("@!1 fix it".into())).play(Event::Act(Action::Submit));
    assert_eq!(prepared(&app), Vec::<&PromptJob>::new());
    assert_eq!(app.session().draft, "@!1 fix it");
    assert!(app.state.flash.as_ref().unwrap().contains("make is still running"));
    app.submit("see @last");
    assert_eq!(prepared(&app)[0].outputs[0].exit, None, "the output so far was asked for");
    ended(&mut app, &id, 0);
}

#[test]
fn a_command_that_cannot_be_started_has_no_output() {
    let mut app = TestApp::talked();
    run(&mut app, "!!make");
    app.play(Event::Draft("@!1 why".into()));
    app.service(ServiceEvent::ShellStarted {
        session: KEY,
        number: 1,
        line: "make".into(),
        folder: "/gone".into(),
        result: Err("The folder /gone does not exist.".into()),
    });
    assert_eq!(app.session().draft, "why");
    let item = app.session().transcript.items().last().unwrap();
    assert_eq!(app.session().tool_call(item.id).unwrap().status, ToolStatus::Failed);
}

#[test]
fn escape_and_ctrl_c_stop_what_was_started_last() {
    for action in [Action::Escape, Action::ClearOrQuit] {
        let mut app = TestApp::running();
        app.wait(1);
        run(&mut app, "!sleep 9");
        let id = started(&mut app, 1, "sleep 9");
        app.fx.clear();
        app.play(Event::Act(action));
        app.expect_sent(&format!("terminal kill {id}"));
        ended(&mut app, &id, 143);
        app.wait(2);
        app.fx.clear();
        app.play(Event::Act(action));
        app.expect_sent("cancel s");
        let mut app = TestApp::talked();
        run(&mut app, "!serve");
        let id = started(&mut app, 1, "serve");
        app.wait(1).submit("go");
        app.fx.clear();
        app.play(Event::Act(action));
        app.expect_sent("cancel s");
        app.end_turn(StopReason::Cancelled);
        app.wait(2);
        app.fx.clear();
        app.play(Event::Act(action));
        app.expect_sent(&format!("terminal kill {id}"));
    }
}

#[test]
fn keys_go_to_a_command_until_the_user_leaves_it_or_pauses_after_its_end() {
    let mut app = TestApp::talked();
    run(&mut app, "!cat");
    let id = started(&mut app, 1, "cat");
    app.fx.clear();
    app.play(Event::Act(Action::TypeIntoTerminal));
    assert_eq!(dialogs::base_focus(&app), Context::Terminal);
    let key = |text: &str| Event::Key(vec![Event::TypeIn(TerminalInput::Bytes(text.into()))]);
    app.play(key("a"));
    app.expect_sent(&format!("terminal type \"a\" into {id}"));
    app.play(Event::Act(Action::TypeIntoTerminal));
    assert_eq!(dialogs::base_focus(&app), Context::Main);
    app.play(Event::Act(Action::TypeIntoTerminal));
    ended(&mut app, &id, 0);
    app.fx.clear();
    app.play(key("geheim"));
    app.expect_sent("");
    app.play(Event::Timer(TimerId::TypedInto(KEY)));
    assert_eq!(dialogs::base_focus(&app), Context::Terminal, "the user is still typing");
    app.wait(1).play(Event::Timer(TimerId::TypedInto(KEY)));
    assert_eq!(dialogs::base_focus(&app), Context::Main);
    assert_eq!(app.session().draft, "");
    app.play(Event::Act(Action::TypeIntoTerminal));
    assert_eq!(dialogs::base_focus(&app), Context::Main, "nothing runs");
}

#[test]
fn a_request_does_not_take_the_keys_from_a_terminal() {
    let mut app = TestApp::running();
    run(&mut app, "!cat");
    started(&mut app, 1, "cat");
    app.play(Event::Act(Action::TypeIntoTerminal));
    app.ask(
        1,
        AgentRequest::TerminalCreate {
            session: Some(ID.into()),
            command: TerminalCommand { command: "rm x".into(), ..TerminalCommand::default() },
        },
    );
    app.wait(9);
    assert!(dialogs::is_beside_draft(&app) && !dialogs::takes_input(&app));
    assert_eq!(dialogs::base_focus(&app), Context::Terminal);
}

#[test]
fn an_agent_cannot_change_or_claim_a_command_of_the_user() {
    let mut app = TestApp::running();
    run(&mut app, "!make");
    let id = started(&mut app, 1, "make");
    let item = app.session().transcript.items().last().unwrap().id;
    let mut patch = ToolCallPatch::new("t".into());
    patch.kind = Patch::Set(ToolKind::Execute);
    patch.content = Patch::Set(vec![ToolContent::Terminal(id.clone())]);
    patch.terminals = vec![AgentTerminal::Output { id: id.clone(), data: "forged".into() }];
    app.update(SessionUpdate::Tool(Box::new(patch)));
    app.update(SessionUpdate::Terminal(AgentTerminal::Output { id: id.clone(), data: "forged".into() }));
    app.fx.clear();
    app.ask(1, AgentRequest::TerminalOutput(id.clone()));
    app.ask(2, AgentRequest::TerminalKill(id.clone()));
    app.expect_sent("answer 1: error -32002\nanswer 2: error -32002");
    assert_eq!(app.session().terminals[&id].output[..], *b"");
    assert_eq!(app.session().index.terminal(&id), Some(item));
    wrote(&mut app, &id, "real");
    ended(&mut app, &id, 0);
    assert_eq!(app.session().tool_call(item).unwrap().status, ToolStatus::Completed);
}

#[test]
fn a_message_of_the_agent_continues_after_a_command() {
    let chunk = |text: &str| SessionUpdate::Chunk { role: Role::Agent, message: None, text: text.into() };
    let mut app = TestApp::running();
    app.update(chunk("```\none\n"));
    run(&mut app, "!ls");
    let id = started(&mut app, 1, "ls");
    app.update(chunk("two\n```"));
    ended(&mut app, &id, 0);
    let messages: Vec<String> = app
        .session()
        .transcript
        .items()
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Message(message) if message.role == Role::Agent => Some(format!("{:?}", message.parts)),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["[Text(\"```\\none\\ntwo\\n```\")]"]);
}

#[test]
fn the_folder_is_that_of_the_next_command_and_no_root() {
    let (mut app, _) = with_output(false);
    let roots = app.session().workspace.roots();
    app.service(ServiceEvent::ShellFolder(KEY, "/etc".into()));
    assert_eq!(app.session().shell.folder, Some("/etc".into()));
    assert_eq!(app.session().workspace.roots(), roots);
    app.service(ServiceEvent::ShellFolder(KEY, "/code/shop".into()));
    assert_eq!(app.session().shell.folder, None);
}

#[test]
fn a_restored_command_is_the_users_and_stays_out_of_a_handover() {
    let (app, id) = with_output(false);
    let events: Vec<RecordedEvent> = app
        .saved
        .iter()
        .filter_map(|note| match note {
            Note::Event { turn, record } => {
                let json = serde_json::to_string(record).unwrap();
                Some(RecordedEvent { at_ms: 0, turn: *turn, record: serde_json::from_str(&json).unwrap() })
            }
            _ => None,
        })
        .collect();
    let mut again = TestApp::ready();
    let session = again.app.state.sessions.get_mut(&KEY).unwrap();
    crate::core::session::play::play(session, events, again.now);
    let call = session.transcript.items().iter().find_map(|item| session.tool_call(item.id)).unwrap();
    assert!(call.is_typed() && call.exit_code == Some(2));
    assert!(session.is_users(&id), "its number continues");
    assert_eq!(session.output_of(1).unwrap().command, "make");
    assert_eq!(handover::offer(&again.state, KEY), None);
    let text = handover::document(&again.state, KEY, None).unwrap();
    assert!(text.contains("hello") && !text.contains("make"), "{text}");
    again.fx.clear();
    run(&mut again, "!ls");
    again.expect_sent("draft \"\"\nterminal shell 2 \"ls\" in /code/shop");
}

fn hides_input(app: &mut TestApp, id: &TerminalId, hides_input: bool) {
    app.service(ServiceEvent::TerminalHidesInput { terminal: id.clone(), hides_input });
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
        app.play(Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(dialogs::base_focus(&app), Context::Terminal, "as long as it waits");
        hides_input(&mut app, &id, false);
        assert_eq!(dialogs::base_focus(&app), Context::Terminal, "until the keys pause");
        app.wait(1);
        app.play(Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(dialogs::base_focus(&app), Context::Main);
        assert_eq!(app.session().draft, draft);
    }
}

#[test]
fn no_prompt_is_sent_while_a_command_reads_hidden_input() {
    let mut app = TestApp::talked();
    run(&mut app, "!sudo make");
    let id = started(&mut app, 1, "sudo make");
    app.play(Event::Draft("fix".to_owned()));
    hides_input(&mut app, &id, true);
    assert_eq!(dialogs::base_focus(&app), Context::Main, "the prompt keeps the keys");
    app.fx.clear();
    app.play(Event::Draft("hunter2".to_owned())).play(Event::Act(Action::Submit));
    assert!(app.state.flash.as_ref().unwrap().contains("sudo make waits for hidden input"));
    assert_eq!((app.session().draft.as_str(), app.queue().len()), ("hunter2", 0));
    assert!(!app.fx.iter().any(|effect| matches!(effect, Effect::SavePrompt { .. })), "{:?}", app.fx);
    ended(&mut app, &id, 1);
    app.play(Event::Act(Action::Submit));
    assert_eq!(app.session().draft, "");
}

#[test]
fn a_closed_session_ends_its_commands() {
    let (mut app, _) = with_output(false);
    app.state.add_session();
    app.flow(|state, cx| operations::close_session(state, KEY, cx));
    assert!(app.fx.contains(&Effect::Terminal(TerminalJob::CloseShell(KEY))), "{:?}", app.fx);
}

#[test]
fn commands_of_agents_have_input_only_if_enabled() {
    for is_enabled in [false, true] {
        let mut app = TestApp::running();
        app.state.setup.policy.command_input = is_enabled;
        let command = TerminalCommand { command: "cat".into(), ..TerminalCommand::default() };
        app.ask(1, AgentRequest::TerminalCreate { session: Some(ID.into()), command });
        app.choose(Some(0));
        let has_input = app
            .fx
            .iter()
            .any(|effect| matches!(effect, Effect::Terminal(TerminalJob::Create { has_input: true, .. })));
        assert_eq!(has_input, is_enabled);
        app.terminal_started(1, "x", "cat");
        let item = app.session().index.terminal(&"x".into());
        app.play(Event::Act(Action::TypeIntoTerminal));
        assert_eq!(app.session().typing(), None, "it was not selected");
        app.views.get_mut(KEY).selected = item;
        app.play(Event::Act(Action::TypeIntoTerminal));
        assert_eq!(app.session().typing().is_some(), is_enabled);
    }
}

#[test]
fn a_template_may_mention_the_last_output() {
    let (mut app, _) = with_output(false);
    app.state.sessions.get_mut(&KEY).unwrap().templates.is_loaded = false;
    app.wait(3).submit("/fix it");
    let [job] = prepared(&app)[..] else { panic!("{:?}", app.fx) };
    assert_eq!(job.template.as_ref().map(|call| call.name.as_str()), Some("fix"));
    assert_eq!(job.outputs.iter().map(|output| output.name.as_str()).collect::<Vec<_>>(), ["last"]);
}

#[test]
fn outputs_and_changes_are_listed_with_a_description() {
    let (mut app, _) = with_output(false);
    app.state.sessions.get_mut(&KEY).unwrap().git = Some(GitInfo { branch: "main".into(), is_dirty: true });
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
    app.play(Event::Act(Action::Complete));
    assert_eq!(app.session().draft, "@!1 ");
}

fn screen(rows: u16, cols: u16) -> Event {
    let terminal = TerminalSize { rows, cols };
    let (diffs, output_cols) = (DiffRoom::OneColumn, cols - 6);
    Event::Screen(Screen { diffs, output_cols, terminal, fits_plan: true, shows_steps: false })
}

#[test]
fn a_full_screen_program_that_was_just_started_gets_the_keys_until_it_ends() {
    for has_typed in [false, true] {
        let mut app = TestApp::talked();
        app.play(screen(20, 80));
        run(&mut app, "!vim; cat");
        let id = started(&mut app, 1, "vim; cat");
        app.wait(1);
        if has_typed {
            app.play(Event::Key(vec![Event::Draft("next".into())]));
        }
        app.fx.clear();
        wrote(&mut app, &id, "one\r\n\x1b[?1049h\x1b[Htext");
        assert_eq!(app.session().typing().is_some(), !has_typed);
        app.expect_sent(&format!("terminal resize {id} to 80x20"));
        assert_eq!(app.session().terminals[&id].output[..], *b"one\r\n");
        wrote(&mut app, &id, "\x1b[?1049ltwo\r\n");
        assert_eq!(app.session().terminals[&id].output[..], *b"one\r\ntwo\r\n");
        app.wait(1).play(Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(app.session().typing(), None, "the prompt has the keys again");
        app.play(Event::Act(Action::TypeIntoTerminal));
        app.play(Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(app.session().typing(), Some(&id), "the user has chosen it");
        ended(&mut app, &id, 0);
    }
}

#[test]
fn the_end_of_a_full_screen_program_returns_the_keys_at_once() {
    let mut app = TestApp::talked();
    run(&mut app, "!vim");
    let id = started(&mut app, 1, "vim");
    app.wait(1);
    wrote(&mut app, &id, "\x1b[?1049h\x1b[Htext");
    assert_eq!(app.session().typing(), Some(&id));
    wrote(&mut app, &id, "\x1b[?1049l");
    assert_eq!(app.session().typing(), Some(&id), "git starts an editor more than once");
    ended(&mut app, &id, 0);
    assert_eq!(app.session().typing(), None);
}

#[test]
fn a_program_of_an_agent_does_not_take_the_keys() {
    let mut app = TestApp::running();
    app.state.setup.policy.command_input = true;
    let command = TerminalCommand { command: "vim".into(), ..TerminalCommand::default() };
    app.ask(1, AgentRequest::TerminalCreate { session: Some(ID.into()), command });
    app.choose(Some(0));
    app.terminal_started(1, "x", "vim");
    wrote(&mut app, &"x".into(), "\x1b[?1049h\x1b[?1htext");
    assert_eq!(app.session().typing(), None);
    assert_eq!(app.session().terminals[&"x".into()].output[..], *b"");
}

#[test]
fn running_commands_follow_the_size_of_the_screen() {
    let mut app = TestApp::talked();
    app.play(screen(20, 80));
    run(&mut app, "!cat");
    let id = started(&mut app, 1, "cat");
    run(&mut app, "!true");
    let done = started(&mut app, 2, "true");
    ended(&mut app, &done, 0);
    app.fx.clear();
    app.play(screen(20, 80));
    app.expect_sent("");
    app.play(screen(40, 120));
    app.expect_sent(&format!("terminal resize {id} to 114x40"));
    app.play(Event::Act(Action::TypeIntoTerminal));
    app.expect_sent(&format!("terminal resize {id} to 120x40"));
    app.play(Event::Act(Action::TypeIntoTerminal));
    app.play(screen(9, 40));
    app.expect_sent(&format!("terminal resize {id} to 114x40\nterminal resize {id} to 34x9"));
}
