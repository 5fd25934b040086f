//! Terminals as they are shown: those run by parlor, and those reported by an agent.
//!
//! Retains their output and marks the items that show them as changed. Commands are run in `host`, responses are
//! sent in `callbacks`.
//! Invariants: at most [`TERMINAL_VIEW_BYTES`] are retained, truncated at the start at a character boundary; appending
//! has amortized linear cost.

use std::time::Instant;

use crate::model::{AgentTerminal, ExitInfo, Growing, ItemId, Record, ScreenPart, TerminalId, TerminalModes};

use super::access;
use crate::core::{Session, TERMINAL_VIEW_BYTES, TerminalView};

impl TerminalView {
    /// A terminal without output.
    pub fn new(is_ours: bool, now: Instant) -> Self {
        Self {
            command: None,
            cwd: None,
            output: Growing::default(),
            dropped_bytes: 0,
            modes: TerminalModes::default(),
            hides_input: false,
            alternate: Vec::new(),
            alternate_dropped_bytes: 0,
            size: None,
            exit: None,
            is_ours,
            number: None,
            began: now,
            took: None,
        }
    }

    /// Appends output to that of the screen that it is written to.
    pub fn append(&mut self, bytes: &[u8]) {
        let mut modes = std::mem::take(&mut self.modes);
        modes.read(bytes, |part| match part {
            ScreenPart::Main(bytes) => {
                self.output.edit(|output| push(output, &mut self.dropped_bytes, bytes));
            }
            ScreenPart::Alternate(bytes) => {
                push(&mut self.alternate, &mut self.alternate_dropped_bytes, bytes);
            }
            ScreenPart::Entered => {
                self.clear_alternate();
                self.alternate.extend_from_slice(CLEAR);
            }
        });
        self.modes = modes;
        if !self.modes.is_alternate {
            self.clear_alternate();
        }
    }

    fn clear_alternate(&mut self) {
        self.alternate_dropped_bytes += self.alternate.len() as u64;
        self.alternate = Vec::new();
    }

    fn end(&mut self, exit: ExitInfo, now: Instant) {
        if self.exit.is_none() {
            self.took = Some(now.saturating_duration_since(self.began));
        }
        self.exit = Some(exit);
        self.modes = TerminalModes::default();
        self.clear_alternate();
    }
}

/// Clears the alternate screen for a new program.
const CLEAR: &[u8] = b"\x1b[?1049h\x1b[m";

/// Appends output. Above the limit a quarter is dropped at once, so that not every write moves the remaining output.
fn push(output: &mut Vec<u8>, dropped_bytes: &mut u64, bytes: &[u8]) {
    let skipped = bytes.len().saturating_sub(TERMINAL_VIEW_BYTES);
    output.extend_from_slice(bytes.get(skipped..).unwrap_or_default());
    let mut cut = 0;
    if output.len() > TERMINAL_VIEW_BYTES {
        cut = output.len() - TERMINAL_VIEW_BYTES / 4 * 3;
    }
    if skipped > 0 || cut > 0 {
        // A byte of the form 10xxxxxx continues a character.
        while output.get(cut).is_some_and(|byte| byte & 0xC0 == 0x80) {
            cut += 1;
        }
        output.drain(..cut.min(output.len()));
        *dropped_bytes += (skipped + cut) as u64;
    }
}

/// An update of an agent's terminal that is reported with the tool call of this item.
pub(in crate::core) fn on_news(session: &mut Session, item: ItemId, news: AgentTerminal, now: Instant) {
    if session.is_users(news.id()) {
        return;
    }
    session.index.add_terminal(news.id().clone(), item);
    on_agent_terminal(session, news, now);
}

/// An update of an agent's terminal that is reported separately. Source: ACP v2 `terminal_update`.
pub(in crate::core) fn on_agent_terminal(session: &mut Session, news: AgentTerminal, now: Instant) {
    let id = news.id().clone();
    // The agent reports nothing about the user's commands.
    if session.is_users(&id) {
        return;
    }
    let view = session.terminals.entry(id.clone()).or_insert_with(|| TerminalView::new(false, now));
    match news {
        AgentTerminal::Info { cwd, .. } => {
            // Reported again after its end: a replay, or a reused id.
            if view.exit.is_some() && !view.is_ours {
                *view = TerminalView::new(false, now);
            }
            view.cwd = cwd.or(view.cwd.take());
        }
        AgentTerminal::About { command, cwd, .. } => {
            view.command = command.or(view.command.take());
            view.cwd = cwd.or(view.cwd.take());
        }
        AgentTerminal::Bytes { bytes, is_whole, .. } => {
            if is_whole {
                (view.output, view.dropped_bytes) = (Growing::default(), 0);
                view.modes = TerminalModes::default();
            }
            view.append(&bytes);
        }
        AgentTerminal::Output { data, .. } => view.append(data.as_bytes()),
        AgentTerminal::Exit { status, .. } => view.end(status, now),
    }
    touch(session, &id);
}

/// A command run by parlor wrote output.
pub(in crate::core) fn on_output(session: &mut Session, id: &TerminalId, bytes: &[u8]) {
    if let Some(view) = session.terminals.get_mut(id) {
        session.grown_bytes += bytes.len();
        view.append(bytes);
        touch(session, id);
    }
}

/// A command run by parlor ended.
pub(in crate::core) fn on_ended(session: &mut Session, id: &TerminalId, exit: &ExitInfo, now: Instant) {
    if let Some(view) = session.terminals.get_mut(id) {
        view.end(exit.clone(), now);
        touch(session, id);
        access::on_command_ended(session, id, exit, now);
    }
}

/// A command was killed and released; if its exit is still reported, that replaces this one.
pub(in crate::core) fn end_if_running(session: &mut Session, id: &TerminalId, exit: &ExitInfo, now: Instant) {
    if session.terminals.get(id).is_some_and(|view| view.exit.is_none()) {
        on_ended(session, id, exit, now);
    }
}

/// The record of a command run by parlor, with its output in memory.
pub(in crate::core) fn record(id: &TerminalId, view: &TerminalView, exit: &ExitInfo) -> Record {
    Record::Command {
        terminal: id.clone(),
        command: view.command.clone(),
        cwd: view.cwd.clone(),
        output: String::from_utf8_lossy(&view.output).into_owned(),
        dropped_bytes: view.dropped_bytes,
        exit: exit.clone(),
    }
}

/// Marks the item that shows the terminal as changed.
fn touch(session: &mut Session, id: &TerminalId) {
    if let Some(item) = session.index.terminal(id) {
        session.transcript.edit(item, |_| {});
    }
}
