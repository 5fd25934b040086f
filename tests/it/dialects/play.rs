//! Plays the script of an agent and the actions of the user, and checks the state after each step.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use parlor::acp::log::Log;
use parlor::acp::tap::Direction;
use parlor::config::keymap::Keymap;
use parlor::core::State;
use parlor::core::lifecycle::operations;
use parlor::model::{Action, AgentSpec, Callbacks, ConfigKind, ConfigValue, PlanBody, Remote, TokenSource};
use parlor::runtime::replay::Replay;

use super::writers::{Can, Reopen, ScriptWriter, refuse};
use crate::it::bridge::{Bridge, Shape};
use crate::it::nonstandard::scripted_agent;
use crate::it::rig::{Rig, agent, digest};

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// A child process.
    Stdio,
    /// A server.
    Behind(Shape),
    /// A server whose transport is detected, from a URL without a path.
    Found(Shape),
}

impl Line {
    /// Whether the agent reads nothing during a turn.
    pub fn is_deaf(self) -> bool {
        self == Self::Behind(Shape::DeafSocket)
    }

    /// Whether connections last only for a request.
    pub fn is_post(self) -> bool {
        matches!(self, Self::Behind(Shape::Post) | Self::Found(Shape::Post))
    }
}

/// A feature of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    Initialize,
    NewSession,
    StreamedText,
    Thoughts,
    ToolOutput,
    Diff,
    Plan,
    Allow,
    Deny,
    CancelPermission,
    CancelTurn,
    NextPrompt,
    Commands,
    Modes,
    Models,
    Options,
    List,
    Reopen,
    Choices,
    Fork,
    Shutdown,
}

/// The result of a play.
#[derive(Debug)]
pub struct Played {
    /// The complete state that the user sees.
    pub summary: String,
    /// The relevant part of it, so that golden files do not change with every field of the model.
    pub screen: String,
    /// All messages to the agent.
    pub sent: String,
    /// The detected quirks.
    pub quirks: Vec<String>,
    /// The features that worked, and how if there are several ways.
    pub seen: BTreeMap<Ability, &'static str>,
}

/// The servers require this token if they can; cargo sets the variable for every test.
const TOKEN_VARIABLE: &str = "CARGO_PKG_NAME";

/// The first text. One agent splits it here, after at least 64 characters.
const GREETING: [&str; 2] =
    ["Hello to all who read this line, which is so long that it is cut,", " and to you."];

/// The steps of the agent.
pub fn script(writer: &dyn ScriptWriter, line: Line) -> String {
    let can = writer.can();
    let mut script = format!(". 1\n{}{}", writer.initialize(), writer.new_session());
    script += &writer.prompt("one");
    if can.thinks {
        script += &writer.think("hm");
    }
    script += &writer.say(&GREETING);
    if can.tools {
        script += &writer.tool_begin("t1");
        script += &writer.tool_end("t1", "out");
        script += &writer.diff("src/a.rs");
    }
    if can.plans {
        script += &writer.plan();
    }
    // parlor offers callbacks only to local agents.
    if line == Line::Stdio {
        script += &writer.callbacks();
    }
    if can.tools {
        script += &writer.say(&["Done."]);
    }
    script += &writer.end("end_turn");
    script += &asking(writer, line);
    script += &cancelled(writer, line);
    script += &writer.prompt("four");
    script += &writer.say(&["Here again."]);
    script += &writer.end("end_turn");
    script += &choices(writer);
    if can.lists {
        script += &writer.list();
    }
    script += &writer.prompt("five");
    if can.streams {
        script += &writer.say(&["Half a"]);
    }
    script += "! 3\n. 2\n";
    if line.is_post() {
        // Without a connection, parlor does not detect the restart.
        script += &(writer.prompt("six") + &refuse(-32000, "unknown session: s1"));
        if can.reopens == Reopen::Resumes {
            script += &writer.reopen_refused();
        }
        script += &writer.new_session();
    } else {
        // The response does not contain the settings, so they are restored before any prompt.
        script += &(writer.initialize() + &writer.reopen() + &choices(writer));
    }
    script += &writer.prompt("six");
    script += &writer.say(&["After the crash."]);
    script += &writer.end("end_turn");
    if can.forks {
        script += &writer.fork("s2");
        let copy = writer.prompt("seven") + &writer.say(&["In the copy."]) + &writer.end("end_turn");
        script += &copy.replace("\"s1\"", "\"s2\"");
    }
    // parlor does not shut down servers.
    if line == Line::Stdio {
        script += &writer.shutdown();
    }
    // Headers are used on pipes only.
    if line == Line::Stdio { script } else { script.replace("~\n", "") }
}

/// Selects the second value of each setting.
fn choices(writer: &dyn ScriptWriter) -> String {
    let can = writer.can();
    let mut script = can.modes.get(1).map(|(mode, ..)| writer.mode(mode)).unwrap_or_default();
    if can.models {
        script += &writer.model("big");
    }
    if can.options {
        script += &writer.option();
    }
    script
}

/// The turn with two questions. An agent that reads nothing during a turn assumes that they were declined.
fn asking(writer: &dyn ScriptWriter, line: Line) -> String {
    if !writer.can().requests {
        return String::new();
    }
    let mut script = writer.prompt("two") + &writer.ask(7, "t2");
    let [(yes, _), (no, _)] = writer.can().choices;
    if line.is_deaf() {
        script += "@ answered\n";
        script += &writer.say(&["Nobody answered."]);
        script += &writer.end("end_turn");
        script += &writer.answered(yes);
    } else {
        script += &writer.answered(yes);
        script += &writer.say(&["It was allowed."]);
        script += &writer.ask(7, "t3");
        script += &writer.answered(no);
        script += &writer.say(&["It was rejected."]);
        script += &writer.end("end_turn");
    }
    script
}

/// The turn that the user cancels.
fn cancelled(writer: &dyn ScriptWriter, line: Line) -> String {
    let mut script = writer.prompt("three");
    if !writer.can().streams {
        // The output is sent at once, after the cancellation.
        return script + &writer.cancel() + &writer.say(&["Working"]) + &writer.end("cancelled");
    }
    script += &writer.say(&["Working"]);
    if writer.can().requests {
        script += &writer.ask(8, "t4");
    }
    if line.is_deaf() {
        script += "@ cancelled\n";
        script += &writer.end("end_turn");
        script += &writer.cancel();
    } else {
        script += &writer.cancel();
        script += &writer.end("cancelled");
    }
    script + &writer.after_cancel()
}

/// Starts the agent on a transport; the server ends when the second value is dropped.
fn reach(writer: &dyn ScriptWriter, line: Line, file: &Path) -> (AgentSpec, Option<Bridge>) {
    let file = file.to_str().unwrap();
    let (mut spec, bridge) = match line {
        Line::Stdio => (agent(scripted_agent(), &[file]), None),
        Line::Behind(shape) | Line::Found(shape) => {
            let command: Vec<OsString> = vec![scripted_agent().into(), file.into()];
            let token = std::env::var(TOKEN_VARIABLE).unwrap();
            let token = (shape == Shape::Post).then_some(token);
            let bridge = Bridge::start(shape, command, token.as_deref());
            let url = match line {
                Line::Found(_) => bridge.url().replace("/acp/rpc", ""),
                _ => bridge.url(),
            };
            let carrier = match (line, shape) {
                (Line::Behind(_), Shape::PostSse | Shape::NamedEvents) => {
                    Some(parlor::model::Carrier::PostSse)
                }
                _ => None,
            };
            let token = token.map(|_| TokenSource::Env(TOKEN_VARIABLE.to_owned()));
            let remote = Remote { url, carrier, token, ..Remote::default() };
            let spec = AgentSpec {
                name: "test".to_owned(),
                remote: Some(remote),
                callbacks: Callbacks::NONE,
                ..AgentSpec::default()
            };
            (spec, Some(bridge))
        }
    };
    spec.wire.profile = writer.profile();
    spec.wire.protocol = writer.protocol();
    (spec, bridge)
}

/// Plays a form over a transport, and returns the result.
pub fn play(writer: &dyn ScriptWriter, line: Line) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let file = root.join("script");
    fs::write(&file, script(writer, line).replace("/folder", &root.to_string_lossy())).unwrap();
    let (spec, bridge) = reach(writer, line, &file);
    let can = writer.can();
    let log = root.join("log");
    let mut rig = Rig::start_logged(&root, spec, &log);
    let mut seen = BTreeMap::new();
    rig.wait_ready();
    seen.insert(Ability::Initialize, "yes");
    seen.insert(Ability::NewSession, "yes");
    rig.ask_and_allow("one");
    look_at_the_first_turn(&rig, can, &mut seen);
    if can.requests {
        answer_questions(&mut rig, line, &root, &mut seen);
    }
    rig.prompt("three");
    if can.streams {
        rig.wait_text("Working");
    } else {
        rig.wait("the turn to begin", |state| state.sessions[&state.active].turn.is_running());
    }
    if can.requests {
        rig.wait_ask();
    }
    rig.act(Action::ClearOrQuit);
    if line.is_deaf() {
        assert!(rig.session().turn.is_running(), "the turn is running");
        fs::write(root.join("cancelled"), "").unwrap();
    }
    rig.wait_idle();
    assert!(rig.text().contains("agent: Working"), "{}", rig.text());
    assert!(rig.session().requests.is_empty());
    seen.insert(Ability::CancelTurn, if line.is_deaf() { "at the end of the turn" } else { "yes" });
    if can.requests {
        seen.insert(Ability::CancelPermission, "yes");
    }
    rig.wait_ready();
    rig.prompt("four");
    rig.wait_text_past_offers("Here again.");
    rig.wait_idle();
    seen.insert(Ability::NextPrompt, "yes");
    choose(&mut rig, can, &mut seen);
    if let Some(bridge) = &bridge {
        assert_eq!(bridge.connections(), 1, "a single connection");
    }
    let former = rig.session().conn;
    rig.prompt("five");
    if line.is_post() {
        rig.wait_text("failed: ");
        rig.wait_idle();
    } else {
        rig.wait("another life", |state| state.sessions[&state.active].conn != former);
        rig.wait_ready();
    }
    rig.prompt("six");
    rig.wait_text_past_offers("After the crash.");
    rig.wait_idle();
    let how = match can.reopens {
        // The agent was restarted and has lost its sessions.
        _ if line.is_post() => "a new session, and says so",
        Reopen::Resumes => "resumed",
        Reopen::Loads => "loaded",
        Reopen::Not => "a new session, and says so",
    };
    seen.insert(Ability::Reopen, how);
    // The agent responds to no prompt before all settings are restored.
    if !choices(writer).is_empty() {
        seen.insert(Ability::Choices, "yes");
    }
    if can.forks {
        rig.act(Action::ForkSession);
        rig.wait("the copy", |state| state.sessions.len() == 2);
        rig.wait_ready();
        rig.ask("seven");
        rig.wait_text("In the copy.");
        seen.insert(Ability::Fork, "yes");
    }
    let replayed = summary(&replayed(&log)).replace(&*root.to_string_lossy(), "/folder");
    let summary = summary(&rig.state).replace(&*root.to_string_lossy(), "/folder");
    assert_eq!(replayed, summary, "the log of a session gives the same session");
    let screen = screen(&rig.state).replace(&*root.to_string_lossy(), "/folder");
    let conn = rig.state.conns.values().next_back().unwrap();
    let quirks = conn.info.as_ref().unwrap().quirks.clone();
    assert!(conn.open_calls.is_empty(), "{:?}", conn.open_calls);
    rig.quit();
    seen.insert(Ability::Shutdown, "yes");
    if line != Line::Stdio {
        assert!(!check_wire(&rig).contains("\"shutdown\""), "others may use the server");
    }
    let sent = check_wire(&rig).replace(&*root.to_string_lossy(), "/folder");
    let sent = sent.replace(concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\""), "\"version\":\"…\"");
    if let Some(bridge) = &bridge
        && matches!(line, Line::Behind(Shape::Socket | Shape::OneStream))
    {
        assert!(bridge.is_closed_by_client(), "{line:?}");
    }
    Played { summary, screen, sent, quirks, seen }
}

fn look_at_the_first_turn(rig: &Rig, can: Can, seen: &mut BTreeMap<Ability, &'static str>) {
    let text = rig.text();
    let session = rig.session();
    let mut saw = |ability, is_able: bool, holds: bool| {
        assert_eq!(holds, is_able, "{ability:?}\n{text}");
        if is_able {
            seen.insert(ability, "yes");
        }
    };
    saw(Ability::StreamedText, true, text.contains(&format!("agent: {}", GREETING.concat())));
    saw(Ability::Thoughts, can.thinks, text.contains("thought: hm"));
    saw(Ability::ToolOutput, can.tools, text.contains("[Execute Completed] bash\n  out"));
    saw(Ability::Diff, can.tools, text.contains("  diff ") && text.contains("src/a.rs"));
    saw(Ability::Plan, can.plans, format!("{:?}", session.plans).contains("\"Change\""));
    saw(Ability::Commands, can.commands, session.commands.iter().any(|it| it.name == "review"));
}

fn answer_questions(rig: &mut Rig, line: Line, root: &Path, seen: &mut BTreeMap<Ability, &'static str>) {
    rig.prompt("two");
    rig.wait_ask();
    rig.act(Action::Choose(1));
    if line.is_deaf() {
        fs::write(root.join("answered"), "").unwrap();
        rig.wait_text("Nobody answered.");
        rig.wait_idle();
        seen.insert(Ability::Allow, "too late for the agent");
        return;
    }
    rig.wait_text("It was allowed.");
    seen.insert(Ability::Allow, "yes");
    rig.wait_ask();
    rig.act(Action::Choose(2));
    rig.wait_text("It was rejected.");
    rig.wait_idle();
    seen.insert(Ability::Deny, "yes");
}

/// Selects modes, models, options and the list, if supported.
fn choose(rig: &mut Rig, can: Can, seen: &mut BTreeMap<Ability, &'static str>) {
    let key = rig.state.active;
    if let Some((mode, ..)) = can.modes.get(1) {
        rig.act(Action::NextMode);
        rig.wait("the mode", |state| {
            state.sessions[&state.active].modes.as_ref().is_some_and(|modes| modes.current.as_str() == *mode)
        });
        seen.insert(Ability::Modes, "yes");
    }
    if can.models {
        rig.operate(|state, cx| operations::set_model(state, key, "big".into(), cx));
        rig.wait("the model", |state| {
            state.sessions[&state.active].models.as_ref().is_some_and(|it| it.current.as_str() == "big")
        });
        seen.insert(Ability::Models, "yes");
    }
    if can.options {
        let value = ConfigValue::Text("b".to_owned());
        rig.operate(|state, cx| operations::set_option(state, key, "route".to_owned(), value, cx));
        rig.wait("the option", |state| {
            format!("{:?}", state.sessions[&state.active].options).contains("\"b\", choices")
        });
        seen.insert(Ability::Options, "yes");
    }
    if can.lists {
        rig.act(Action::OpenSessions);
        rig.wait("the list", |state| state.listed().len() == 1);
        rig.act(Action::Escape);
        seen.insert(Ability::List, "yes");
    }
}

/// The state that the user sees, without the agent's ids.
fn summary(state: &State) -> String {
    let mut summary = String::new();
    for session in state.sessions.values() {
        let mut is_own = false;
        for line in digest(session).lines() {
            // Items of parlor are not part of the comparison.
            is_own = line.starts_with("tool parlor:") || is_own && line.starts_with("  ");
            if is_own {
                continue;
            }
            match line.strip_prefix("tool ").and_then(|rest| rest.split_once(" [")) {
                Some((_, rest)) => writeln!(summary, "tool [{rest}").unwrap(),
                None => writeln!(summary, "{}", without_port(line)).unwrap(),
            }
        }
        writeln!(summary, "modes {:?}", session.modes).unwrap();
        writeln!(summary, "models {:?}", session.models).unwrap();
        writeln!(summary, "options {:?}", session.options).unwrap();
        let plans: Vec<_> = session.plans.iter().map(|plan| &plan.body).collect();
        writeln!(summary, "plans {plans:?}").unwrap();
        writeln!(summary, "commands {:?}", session.commands).unwrap();
        writeln!(summary, "{:?} {:?} asks {}", session.phase, session.turn, session.requests.len()).unwrap();
    }
    writeln!(summary, "listed {:?}", state.listed()).unwrap();
    summary
}

/// The state after replaying a log.
fn replayed(log: &Path) -> State {
    let log = Log::read(fs::File::open(log).unwrap(), None).unwrap();
    assert_eq!(log.broken, 0, "{:?}", log.reported);
    let mut replay = Replay::new(log, &Keymap::defaults());
    while replay.step().is_some() {}
    replay.state().clone()
}

/// The relevant part of the state.
fn screen(state: &State) -> String {
    let mut summary = String::new();
    for session in state.sessions.values() {
        writeln!(summary, "{}", digest(session)).unwrap();
        if let Some(modes) = &session.modes {
            writeln!(summary, "mode {}", modes.current.as_str()).unwrap();
        }
        if let Some(models) = &session.models {
            writeln!(summary, "model {}", models.current.as_str()).unwrap();
        }
        for option in &session.options {
            let ConfigKind::Select { current, .. } = &option.kind else { continue };
            writeln!(summary, "option {} {current}", option.id).unwrap();
        }
        for plan in &session.plans {
            let PlanBody::Entries(entries) = &plan.body else { continue };
            for entry in entries {
                writeln!(summary, "step {} {:?} {:?}", entry.content, entry.status, entry.priority).unwrap();
            }
        }
        for command in &session.commands {
            writeln!(summary, "command {} {}", command.name, command.description).unwrap();
        }
    }
    for listed in state.listed() {
        writeln!(summary, "listed {} {}", listed.id.as_str(), listed.title.as_deref().unwrap_or_default())
            .unwrap();
    }
    summary
}

/// A line without the port of the server.
fn without_port(line: &str) -> String {
    let mut parts = line.split("127.0.0.1:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("the server");
        out.push_str(part.trim_start_matches(|ch: char| ch.is_ascii_digit()));
    }
    out
}

/// A response without the id of its terminal.
fn without_terminal(line: &str) -> String {
    let mark = "\"terminalId\":\"";
    match line.split_once(mark).and_then(|(head, rest)| Some((head, rest.split_once('"')?.1))) {
        Some((head, rest)) => format!("{head}{mark}…\"{rest}"),
        None => line.to_owned(),
    }
}

/// Checks that every request of the agent got exactly one response; returns the messages to the agent.
fn check_wire(rig: &Rig) -> String {
    let lines = rig.tap.snapshot(None, usize::MAX);
    let mut open: Vec<serde_json::Value> = Vec::new();
    let mut sent = String::new();
    for line in lines {
        let message: serde_json::Value = serde_json::from_str(&line.text).unwrap_or_default();
        let has_method = message.get("method").is_some();
        match (line.direction, has_method, message.get("id")) {
            (Direction::FromAgent, true, Some(id)) => open.push(id.clone()),
            (Direction::ToAgent, false, Some(id)) => {
                let at = open.iter().position(|asked| asked == id);
                assert!(at.is_some(), "a response without a request: {}", line.text);
                open.remove(at.unwrap());
            }
            _ => {}
        }
        if line.direction == Direction::ToAgent {
            writeln!(sent, "{}", without_terminal(&line.text)).unwrap();
        }
    }
    assert!(open.is_empty(), "without a response: {open:?}");
    sent
}
