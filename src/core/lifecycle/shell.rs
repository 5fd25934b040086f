//! Commands that the user types: starting and stopping them, typing into them, and their output in prompts.
//!
//! `host::terminals` runs them on this machine, also if the agent is on another one.
//! Invariants: a command is run only by [`run`], which is called with the text that the user has seen; the agent gets
//! its output only in a prompt that mentions it; the agent's roots do not depend on its folder.

use std::time::Duration;

use super::call;
use crate::core::session::access;
use crate::core::state::lookup;
use crate::core::{Cx, Effect, OutputRoom, Session, SessionPhase, State, TerminalView, TimerId, UiRequest};
use crate::model::{
    Access, AccessOutcome, AccessRecord, Action, AllowedBy, CommandAccess, CommandOutput, ItemId,
    LAST_OUTPUT, Mention, SessionKey, TerminalId, TerminalInput, TerminalJob, TerminalSize, mention_text,
    mentions, output_name, output_number,
};

/// The size of a terminal before that of the screen is known.
const SIZE: TerminalSize = TerminalSize { rows: 40, cols: 120 };

/// Bounds of the columns of a command, and the minimum if an agent reads its output.
const MIN_COLS: u16 = 20;
const MAX_COLS: u16 = 240;
const AGENT_COLS: u16 = 80;

/// Maximum number of the user's commands that run in a session.
const MAX_RUNNING: usize = 16;

/// How long keys must pause after the end of a command until they go to the prompt again: the rest of what was typed,
/// possibly a password, must not become a draft.
const PAUSE: Duration = Duration::from_millis(600);

/// Why no command can be run in a session.
pub fn obstacle(session: &Session) -> Option<&'static str> {
    match session.phase {
        _ if session.parent.is_some() => Some("Commands run in the parent session."),
        _ if session.read_only.is_some() => Some("The session is open read-only. Resume it to run commands."),
        SessionPhase::NoAgent => Some("No session is open. Select an agent first."),
        SessionPhase::Starting { .. } | SessionPhase::Opening { .. } => {
            Some("The session is not open yet. Run the command when it is.")
        }
        _ if session.shell.running.len() >= MAX_RUNNING => Some("Too many commands are running. Stop one."),
        _ => None,
    }
}

/// Runs a command line. `attaches`: its output goes into the next prompt, as a mention in the draft.
pub fn run(state: &mut State, key: SessionKey, line: String, attaches: bool, cx: &mut Cx) {
    let size = size_of(state.output_room, true, false);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let known = session.terminals.values().filter_map(|view| view.number).max();
    let number = known.unwrap_or(0).max(session.shell.last_number).saturating_add(1);
    session.shell.last_number = number;
    let folder = session.workspace.cwd.clone();
    cx.effects.push(Effect::Terminal(TerminalJob::Shell { session: key, number, line, folder, size }));
    if attaches {
        session.draft = mention_of(number);
        cx.requests.push(UiRequest::DraftChanged(key));
    }
}

/// The size of a terminal. `is_full`: its screen is shown as a whole, by the panel.
pub(super) fn size_of(room: Option<OutputRoom>, is_users: bool, is_full: bool) -> TerminalSize {
    let min = if is_users { MIN_COLS } else { AGENT_COLS };
    match room {
        None => SIZE,
        Some(room) if is_full => room.terminal,
        Some(room) => TerminalSize { cols: room.cols.clamp(min, MAX_COLS), ..room.terminal },
    }
}

/// Resizes all running terminals after the room for their output has changed.
pub fn fit_terminals(state: &mut State, room: OutputRoom, cx: &mut Cx) {
    state.output_room = Some(room);
    fit(state, cx);
}

/// Adapts all running terminals to the room for their output, and to how they are shown.
fn fit(state: &mut State, cx: &mut Cx) {
    let room = state.output_room;
    let mut changed = Vec::new();
    for (key, session) in state.sessions.iter() {
        let running = session.terminals.iter().filter(|(_, view)| view.is_ours && view.exit.is_none());
        for (id, view) in running {
            let is_full = view.modes.is_alternate || session.typing() == Some(id);
            let size = size_of(room, view.number.is_some(), is_full);
            if view.size != Some(size) {
                changed.push((*key, id.clone(), size));
            }
        }
    }
    for (key, id, size) in changed {
        let session = state.sessions.get_mut(&key);
        if let Some(view) = session.and_then(|session| session.terminals.get_mut(&id)) {
            view.size = Some(size);
        }
        cx.effects.push(Effect::Terminal(TerminalJob::Resize(id, size)));
    }
}

/// A command began or ended to use the whole screen, or to read the cursor keys as applications do (`before`: which of
/// both it did). A program that the user has just started gets the keys.
pub(super) fn on_switch(
    state: &mut State,
    key: SessionKey,
    id: &TerminalId,
    before: (bool, bool),
    cx: &mut Cx,
) {
    let last_input = state.last_input;
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(view) = session.terminals.get(id) else { return };
    let is_interactive = view.modes.is_alternate || view.modes.is_application_cursor;
    let is_awaited = view.number.is_some() && last_input.is_none_or(|last| last <= view.began);
    if is_interactive && before == (false, false) && is_awaited && session.shell.typing.is_none() {
        session.shell.returns_keys = view.modes.is_alternate;
        session.shell.typing = Some(id.clone());
    } else if before.0 && !view.modes.is_alternate && session.shell.typing.as_ref() == Some(id) {
        cx.effects.push(Effect::Timer(TimerId::TypedInto(key), PAUSE));
    }
    fit(state, cx);
}

/// A command began or ended to read a line without an echo. What is typed then is a password, which must not become a
/// prompt: the command gets the keys, unless a prompt is being written.
pub(in crate::core) fn on_echo(state: &mut State, id: &TerminalId, hides_input: bool, cx: &mut Cx) {
    let Some(session) = state.sessions.values_mut().find(|session| session.shell.running.contains(id)) else {
        return;
    };
    let Some(view) = session.terminals.get_mut(id) else { return };
    view.hides_input = hides_input;
    let has_draft = !is_mention_of(view.number, &session.draft);
    if hides_input && session.shell.typing.is_none() && !has_draft {
        session.shell.returns_keys = true;
        session.shell.typing = Some(id.clone());
    } else if !hides_input && session.shell.returns_keys && session.shell.typing.as_ref() == Some(id) {
        cx.effects.push(Effect::Timer(TimerId::TypedInto(session.key), PAUSE));
    }
    fit(state, cx);
}

/// Whether a draft contains at most the mention of a command.
fn is_mention_of(number: Option<u32>, draft: &str) -> bool {
    let draft = draft.trim_end();
    draft.is_empty() || number.is_some_and(|number| draft == mention_of(number).trim_end())
}

/// A mention of an output as it begins a draft.
fn mention_of(number: u32) -> String {
    format!("{} ", mention_text(&output_name(number)))
}

pub(in crate::core) fn on_started(
    state: &mut State,
    (key, number): (SessionKey, u32),
    command: CommandAccess,
    result: Result<TerminalId, String>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else {
        cx.effects.extend(result.ok().map(|id| Effect::Terminal(TerminalJob::Release(id))));
        return;
    };
    let (line, cwd) = (command.line.clone(), command.cwd.clone());
    let record = AccessRecord::new(Access::Run(command), AccessOutcome::Allowed(AllowedBy::Typed));
    match result {
        Ok(id) => {
            let view = TerminalView {
                command: Some(line),
                cwd: Some(cwd),
                number: Some(number),
                size: Some(size_of(state.output_room, true, false)),
                ..TerminalView::new(true, cx.now)
            };
            session.terminals.insert(id.clone(), view);
            session.shell.running.push(id.clone());
            access::add(session, AccessRecord { terminal: Some(id), ..record }, cx.now);
        }
        Err(error) => {
            access::add(session, AccessRecord { error: Some(error), ..record }, cx.now);
            // There is no output to send.
            if let Some(rest) = session.draft.strip_prefix(&mention_of(number)) {
                session.draft = rest.to_owned();
                cx.requests.push(UiRequest::DraftChanged(key));
            }
        }
    }
}

/// A command of the user or of an agent has ended.
pub(in crate::core) fn on_ended(session: &mut Session, id: &TerminalId, cx: &mut Cx) {
    let running = &mut session.shell.running;
    if let Some(at) = running.iter().position(|other| other == id) {
        running.remove(at);
        cx.effects.push(Effect::Terminal(TerminalJob::Release(id.clone())));
    }
    if session.shell.typing.as_ref() == Some(id) {
        if session.shell.returns_keys {
            // A full-screen program has no line of input that could be incomplete.
            session.shell.typing = None;
        } else {
            cx.effects.push(Effect::Timer(TimerId::TypedInto(session.key), PAUSE));
        }
    }
}

/// The keys return from a terminal whose command has ended, once they pause.
pub(in crate::core) fn on_pause(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let is_quiet = state.last_input.is_none_or(|last| cx.now.saturating_duration_since(last) >= PAUSE);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(id) = &session.shell.typing else { return };
    let keeps = |view: &TerminalView| {
        let has_own_end = view.modes.is_alternate || view.hides_input;
        view.exit.is_none() && (has_own_end || !session.shell.returns_keys)
    };
    if session.terminals.get(id).is_some_and(keeps) {
        return;
    }
    if is_quiet {
        session.shell.typing = None;
        fit(state, cx);
    } else {
        cx.effects.push(Effect::Timer(TimerId::TypedInto(key), PAUSE));
    }
}

/// Moves the keys to the terminal of the selected item, or of the only running command, or back from it.
pub fn toggle_typing(state: &mut State, key: SessionKey, selected: Option<ItemId>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.shell.returns_keys = false;
    if session.shell.typing.take().is_some() {
        fit(state, cx);
        return;
    }
    let marked = selected.and_then(|item| session.running_terminal(item));
    let Some(id) = marked.or_else(|| session.shell.running.last().cloned()) else {
        call::flash(state, "No running command accepts input.", cx);
        return;
    };
    if !session.is_users(&id) && !state.setup.policy.command_input {
        let message = "Commands of agents have no input. `command_input` in the configuration allows it.";
        call::flash(state, message, cx);
        return;
    }
    session.shell.typing = Some(id);
    fit(state, cx);
}

pub fn type_in(state: &State, key: SessionKey, input: TerminalInput, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    if let Some(id) = session.typing()
        && session.terminals.get(id).is_some_and(|view| view.exit.is_none())
    {
        cx.effects.push(Effect::Terminal(TerminalJob::Input(id.clone(), input)));
    }
}

/// Stops the command that Escape stops. Returns whether there is one.
pub fn stop(state: &mut State, key: SessionKey, cx: &mut Cx) -> bool {
    let key = lookup::root_of(state, key);
    let stopped = state.sessions.get(&key).and_then(Session::command_to_stop).map(|(id, _)| id.clone());
    cx.effects.extend(stopped.iter().cloned().map(|id| Effect::Terminal(TerminalJob::Kill(id))));
    stopped.is_some()
}

/// Stops the commands of a session that is being closed.
pub(in crate::core) fn close(session: &Session, cx: &mut Cx) {
    if session.shell.last_number > 0 {
        cx.effects.push(Effect::Terminal(TerminalJob::CloseShell(session.key)));
    }
}

/// Why no prompt can be submitted: a command waits for a password, which the prompt may be.
pub fn password_obstacle(state: &State, key: SessionKey) -> Option<String> {
    let session = state.sessions.get(&key)?;
    let mut running = session.shell.running.iter().filter_map(|id| session.terminals.get(id));
    let command = running.find(|view| view.hides_input)?.command.as_deref().unwrap_or_default();
    let how = state.setup.how_to(Action::TypeIntoTerminal);
    let how = how.map(|how| format!(" {how} types into it.")).unwrap_or_default();
    Some(format!("Not sent: {command} waits for hidden input, such as a password.{how}"))
}

/// Why a prompt cannot be sent yet: the output of a command that it contains is not complete.
pub(super) fn unfinished(state: &State, key: SessionKey, text: &str) -> Option<String> {
    let session = state.sessions.get(&key).filter(|_| text.contains("@!"))?;
    let known = mentions(text).into_iter().find_map(|(_, mention)| {
        let known = session.output_of(output_number(&mention.path)?)?;
        known.exit.is_none().then(|| known.command.to_owned())
    })?;
    Some(format!("Not sent: {known} is still running."))
}

/// The outputs that a prompt mentions. A template may mention the last one.
pub(super) fn outputs(session: &Session, text: &str, has_template: bool) -> Vec<CommandOutput> {
    let mut outputs: Vec<CommandOutput> = Vec::new();
    let of_template = has_template.then(|| Mention { path: LAST_OUTPUT.to_owned(), lines: None });
    for mention in mentions(text).into_iter().map(|(_, mention)| mention).chain(of_template) {
        if mention.lines.is_some() || outputs.iter().any(|known| known.name == mention.path) {
            continue;
        }
        let known = match output_number(&mention.path) {
            Some(number) => session.output_of(number),
            None if mention.path == LAST_OUTPUT => session.last_output(),
            None => continue,
        };
        outputs.extend(known.map(|known| CommandOutput {
            name: mention.path,
            command: known.command.to_owned(),
            cwd: known.cwd.cloned(),
            exit: known.exit,
            output: known.output.to_vec(),
            is_cut: known.is_cut,
        }));
    }
    outputs
}
