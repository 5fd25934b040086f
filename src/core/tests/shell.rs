//! Tests of the user's own commands.

use super::support::*;
use crate::core::lifecycle::{handover, operations};
use crate::core::*;
use crate::model::*;

fn run(app: &mut TestCore, line: &str, attaches: bool) {
    app.flow(|state, cx| operations::run_command(state, KEY, line.to_owned(), attaches, cx));
}

pub fn started<D: Driven>(app: &mut Bench<D>, number: u32, line: &str) -> TerminalId {
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

pub fn wrote<D: Driven>(app: &mut Bench<D>, id: &TerminalId, text: &str) {
    app.service(ServiceEvent::TerminalOutput { terminal: id.clone(), bytes: text.into() });
}

pub fn ended<D: Driven>(app: &mut Bench<D>, id: &TerminalId, code: i32) {
    let exit = ExitInfo { code: Some(code), signal: None };
    app.service(ServiceEvent::TerminalEnded { terminal: id.clone(), exit });
}

/// A command with output that has ended, without unread effects.
fn with_output(attaches: bool) -> (TestCore, TerminalId) {
    let mut app = TestCore::talked();
    run(&mut app, "make", attaches);
    let id = started(&mut app, 1, "make");
    wrote(&mut app, &id, "\x1b[31mfailed\x1b[0m\r\n");
    ended(&mut app, &id, 2);
    app.fx.clear();
    (app, id)
}

#[test]
fn a_command_is_an_item_of_the_user_and_is_not_sent_to_the_agent() {
    let mut app = TestCore::talked();
    run(&mut app, "make test", false);
    app.expect_sent("terminal shell 1 \"make test\" in /code/shop");
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
fn a_command_that_cannot_be_started_has_no_output() {
    let mut app = TestCore::talked();
    run(&mut app, "make", true);
    app.draft("@!1 why");
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
fn an_agent_cannot_change_or_claim_a_command_of_the_user() {
    let mut app = TestCore::running();
    run(&mut app, "make", false);
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
    let mut app = TestCore::running();
    app.update(chunk("```\none\n"));
    run(&mut app, "ls", false);
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
    let mut events = app.recorded();
    for event in &mut events {
        let json = serde_json::to_string(&event.record).unwrap();
        event.record = serde_json::from_str(&json).unwrap();
    }
    let mut again = TestCore::ready();
    let now = again.now;
    let session = again.session_mut();
    crate::core::session::play::play(session, events, now);
    let call = session.transcript.items().iter().find_map(|item| session.tool_call(item.id)).unwrap();
    assert!(call.is_typed() && call.exit_code == Some(2));
    assert!(session.is_users(&id), "its number continues");
    assert_eq!(session.output_of(1).unwrap().command, "make");
    assert_eq!(handover::offer(&again.state, KEY), None);
    let text = handover::document(&again.state, KEY, None).unwrap();
    assert!(text.contains("hello") && !text.contains("make"), "{text}");
    again.fx.clear();
    run(&mut again, "ls", false);
    again.expect_sent("terminal shell 2 \"ls\" in /code/shop");
}

pub fn hides_input<D: Driven>(app: &mut Bench<D>, id: &TerminalId, hides_input: bool) {
    app.service(ServiceEvent::TerminalHidesInput { terminal: id.clone(), hides_input });
}

#[test]
fn a_closed_session_ends_its_commands() {
    let (mut app, _) = with_output(false);
    app.state.add_session();
    app.flow(|state, cx| operations::close_session(state, KEY, cx));
    assert!(app.fx.contains(&Effect::Terminal(TerminalJob::CloseShell(KEY))), "{:?}", app.fx);
}

#[test]
fn a_template_may_mention_the_last_output() {
    let (mut app, _) = with_output(false);
    app.session_mut().templates.is_loaded = false;
    app.wait(3).submit("/fix it");
    let [job] = app.prompt_jobs()[..] else { panic!("{:?}", app.fx) };
    assert_eq!(job.template.as_ref().map(|call| call.name.as_str()), Some("fix"));
    assert_eq!(job.outputs.iter().map(|output| output.name.as_str()).collect::<Vec<_>>(), ["last"]);
}

/// The window has this size.
fn resize(app: &mut TestCore, rows: u16, cols: u16) {
    let terminal = TerminalSize { rows, cols };
    let room = OutputRoom { cols: cols - 6, terminal };
    app.flow(|state, cx| operations::fit_terminals(state, room, cx));
}

#[test]
fn a_full_screen_program_that_was_just_started_gets_the_keys_until_it_ends() {
    for has_typed in [false, true] {
        let mut app = TestCore::talked();
        resize(&mut app, 20, 80);
        run(&mut app, "vim; cat", false);
        let id = started(&mut app, 1, "vim; cat");
        app.wait(1);
        if has_typed {
            app.state.last_input = Some(app.now);
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
        app.flow(|state, cx| operations::toggle_typing(state, KEY, None, cx));
        app.play(Event::Timer(TimerId::TypedInto(KEY)));
        assert_eq!(app.session().typing(), Some(&id), "the user has chosen it");
        ended(&mut app, &id, 0);
    }
}

#[test]
fn the_end_of_a_full_screen_program_returns_the_keys_at_once() {
    let mut app = TestCore::talked();
    run(&mut app, "vim", false);
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
    let mut app = TestCore::running();
    app.state.setup.policy.command_input = true;
    app.ask(1, run_line("vim")).choose(Some(0));
    app.terminal_started(1, "x", "vim");
    wrote(&mut app, &"x".into(), "\x1b[?1049h\x1b[?1htext");
    assert_eq!(app.session().typing(), None);
    assert_eq!(app.session().terminals[&"x".into()].output[..], *b"");
}

#[test]
fn running_commands_follow_the_size_of_the_screen() {
    let mut app = TestCore::talked();
    resize(&mut app, 20, 80);
    run(&mut app, "cat", false);
    let id = started(&mut app, 1, "cat");
    run(&mut app, "true", false);
    let done = started(&mut app, 2, "true");
    ended(&mut app, &done, 0);
    app.fx.clear();
    resize(&mut app, 20, 80);
    app.expect_sent("");
    resize(&mut app, 40, 120);
    app.expect_sent(&format!("terminal resize {id} to 114x40"));
    app.flow(|state, cx| operations::toggle_typing(state, KEY, None, cx));
    app.expect_sent(&format!("terminal resize {id} to 120x40"));
    app.flow(|state, cx| operations::toggle_typing(state, KEY, None, cx));
    resize(&mut app, 9, 40);
    app.expect_sent(&format!("terminal resize {id} to 114x40\nterminal resize {id} to 34x9"));
}
