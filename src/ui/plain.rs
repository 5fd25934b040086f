//! The session as append-only text, for screen readers, dumb terminals and logs.
//!
//! [`PlainOutput`] returns what has changed in the state since the last call: text by complete lines, tool
//! calls when they complete, questions with numbered answers (`plain::ask`). `runtime::plain` reads and
//! writes the lines.
//!
//! Invariants: the output contains no escape sequences, and only sanitised text of an agent; nothing is
//! printed twice or changed afterwards; the cost of a call depends on new and open items only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use crate::core::lifecycle::operations;
use crate::core::{Item, ItemBody, Message, MessagePart, Session, SessionPhase, State, Turn, TurnEnd};
use crate::model::{
    ItemId, PlanBody, PlanStatus, Role, SessionKey, SessionWorkspace, StopReason, ToolKind, ToolStatus,
};
use crate::ui::App;
use crate::ui::screen::DiffLayout;
use crate::ui::session_view::SessionView;

use super::cells::layout::{Context, Layout, LineRun, Screens, Source};
use super::cells::{block_lines, kind_word, title};
use super::render_context::{Glyphs, RenderContext, duration};
use super::text::{counted, one_line, sanitize};
use super::theme::Theme;

pub mod question;

/// Width of the layout of items; text lines are not wrapped.
const COLS: u16 = 160;

/// The output so far.
pub struct PlainOutput {
    sessions: BTreeMap<SessionKey, PrintedSession>,
    active: Option<SessionKey>,
    question: Option<question::Question>,
    flash: Option<String>,
    /// The reason why nothing can be saved, as printed.
    unsaved: Option<String>,
    /// Whether the offer to resume the last session was printed.
    has_offered: bool,
    notes: Vec<String>,
    /// Whether the last line is a prompt that waits for input.
    is_prompting: bool,
    /// The text that the user typed after a prompt, which is visible already.
    typed: Option<String>,
    /// How much of a tool call is printed.
    view: SessionView,
    theme: Theme,
    glyphs: Glyphs,
}

/// The output of a session so far.
#[derive(Default)]
struct PrintedSession {
    failed: usize,
    /// The first item that is not completed.
    first_open: Option<ItemId>,
    /// Items after it that were partly printed.
    begun: BTreeMap<ItemId, Said>,
    history: u64,
    phase: String,
    plan: String,
    running: Option<(u32, Instant)>,
    queued: usize,
    held: usize,
}

/// How much of an item was printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Start,
    /// The text up to this byte of this part.
    Text {
        part: usize,
        bytes: usize,
    },
    All,
}

impl PlainOutput {
    pub fn failed_turns(&self) -> usize {
        self.sessions.values().map(|printed| printed.failed).sum()
    }

    /// An output that has not printed anything.
    pub fn new(glyphs: Glyphs) -> Self {
        Self {
            sessions: BTreeMap::new(),
            active: None,
            question: None,
            flash: None,
            unsaved: None,
            has_offered: false,
            notes: Vec::new(),
            is_prompting: false,
            typed: None,
            view: SessionView::default(),
            theme: Theme::plain(),
            glyphs,
        }
    }

    /// The new output; ends with a newline, or is empty.
    pub fn advance(&mut self, app: &App, now: Instant) -> String {
        let state = &app.state;
        self.view.folds = state.setup.folds;
        let mut out = String::new();
        let Some(session) = state.active_session() else { return out };
        if self.active != Some(state.active) {
            if self.active.is_some() {
                let title = session.title.as_deref().map(one_line).unwrap_or_default();
                let _ = writeln!(out, "\n--- {}", if title.is_empty() { "Session changed" } else { &title });
            }
            self.active = Some(state.active);
        }
        self.sessions.retain(|key, _| state.sessions.contains_key(key));
        let mut printed = self.sessions.remove(&state.active).unwrap_or_default();
        self.say_items(state, session, &mut printed, now, &mut out);
        say_turn(session, &mut printed, now, &mut out);
        say_plan(session, &mut printed, &mut out);
        say_queue(session, &mut printed, &mut out);
        say_phase(state, session, &mut printed, &mut out);
        self.sessions.insert(state.active, printed);
        if self.flash != state.flash {
            self.flash.clone_from(&state.flash);
            if let Some(flash) = &state.flash {
                let _ = writeln!(out, "({})", one_line(flash));
            }
        }
        let unsaved = state.unsaved.as_ref().map(|unsaved| &unsaved.why);
        if self.unsaved.as_ref() != unsaved {
            self.unsaved = unsaved.cloned();
            let _ = match unsaved {
                Some(why) => writeln!(out, "(Not saved: {})", one_line(why)),
                None => writeln!(out, "(Saved again.)"),
            };
        }
        if !self.has_offered
            && let Some(row) = operations::last_session(state)
        {
            self.has_offered = true;
            let (name, when) = (one_line(row.name()), &row.when);
            let _ = writeln!(
                out,
                "(Last session in this folder, {when}: {name}. Type :continue-last to \
                    resume it.)"
            );
        }
        for note in self.notes.drain(..) {
            let _ = writeln!(out, "{note}");
        }
        let question = question::question(app, &self.render(session, now));
        if question != self.question {
            if let Some(question) = &question {
                let _ = writeln!(out, "\n{}", question.text.trim_end());
            }
            self.question = question;
        }
        if self.is_prompting && !out.is_empty() {
            // Ends the incomplete line of the prompt.
            out.insert(0, '\n');
            self.is_prompting = false;
        }
        out
    }

    /// The prompt for a terminal, with the cursor after it. Empty if one is shown already.
    pub fn prompt(&mut self, session: &Session) -> String {
        if self.is_prompting {
            return String::new();
        }
        self.is_prompting = true;
        format!("\n[{}] You: ", session.turn_count + 1)
    }

    /// Queues a line that does not depend on the state.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Prints the current question again.
    pub fn ask_again(&mut self) {
        self.question = None;
    }

    /// Records a line that the user typed.
    pub fn note_typed(&mut self, text: &str) {
        if std::mem::take(&mut self.is_prompting) {
            self.typed = Some(text.to_owned());
        }
    }

    fn render<'a>(&'a self, session: &'a Session, now: Instant) -> RenderContext<'a> {
        RenderContext {
            glyphs: self.glyphs,
            diff_layout: DiffLayout::Unified,
            ..RenderContext::new(&self.theme, session.workspace.folder(), now)
        }
    }

    fn say_items(
        &mut self,
        state: &State,
        session: &Session,
        printed: &mut PrintedSession,
        now: Instant,
        out: &mut String,
    ) {
        let transcript = &session.transcript;
        if std::mem::replace(&mut printed.history, transcript.history()) != transcript.history() {
            // The history was loaded again.
            (printed.first_open, printed.begun) = (None, BTreeMap::new());
        }
        let items = transcript.items();
        let mut first_open = printed.first_open.map_or(0, |first| transcript.index_from(first));
        for item in items.iter().skip(first_open) {
            let before = printed.begun.get(&item.id).copied();
            if before == Some(Said::All) {
                continue;
            }
            // A queued prompt may start the next turn without an idle state.
            let is_prompt = matches!(&item.body, ItemBody::Message(message) if message.role == Role::User);
            if is_prompt && printed.running.is_some_and(|(turn, _)| item.turn > turn) {
                say_over(session, printed, now, out);
            }
            if let Some(said) = self.say_item(state, session, item, before, now, out) {
                printed.begun.insert(item.id, said);
            }
        }
        while let Some(item) = items.get(first_open)
            && printed.begun.get(&item.id) == Some(&Said::All)
        {
            printed.begun.remove(&item.id);
            first_open += 1;
        }
        printed.first_open = Some(items.get(first_open).map_or(transcript.next_id(), |item| item.id));
    }

    fn say_item(
        &mut self,
        state: &State,
        session: &Session,
        item: &Item,
        before: Option<Said>,
        now: Instant,
        out: &mut String,
    ) -> Option<Said> {
        let is_over = match &item.body {
            ItemBody::Message(message) if message.role == Role::Agent => {
                let render = self.render(session, now);
                return say_text(state, message, before, &render, out);
            }
            ItemBody::Message(message) if message.role == Role::User => {
                self.say_prompt(item.turn, message, out);
                return Some(Said::All);
            }
            ItemBody::Message(message) => !message.is_open,
            ItemBody::Tool(tool) if item.is_hidden() => tool.status.is_final(),
            ItemBody::Tool(tool) => {
                // A call of the agent may later show the access itself.
                let is_begun =
                    !tool.is_own && tool.kind == ToolKind::Execute && tool.status == ToolStatus::InProgress;
                if is_begun && before.is_none() {
                    let render = self.render(session, now);
                    let _ = writeln!(
                        out,
                        "... {} {}",
                        kind_word(tool.kind),
                        title(tool, &render, usize::from(COLS))
                    );
                    return Some(Said::Start);
                }
                tool.status.is_final()
            }
            ItemBody::Compaction { status, .. } => status != "in_progress",
            _ => true,
        };
        if is_over && !item.is_hidden() {
            out.push_str(&self.draw(session, item, now));
        }
        is_over.then_some(Said::All)
    }

    /// Prints a prompt, unless the user has just typed it.
    fn say_prompt(&mut self, turn: u32, message: &Message, out: &mut String) {
        let text: Vec<&str> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Text(text) => Some(text.as_str()),
                MessagePart::Block(_) => None,
            })
            .collect();
        let text = text.join("\n");
        if self.typed.take().is_some_and(|typed| typed.trim() == text.trim()) {
            return;
        }
        let _ = writeln!(out, "\n[{turn}] You: {}", sanitize(text.trim_end()));
    }

    /// An item as on the screen, without colours, borders and wraps.
    fn draw(&self, session: &Session, item: &Item, now: Instant) -> String {
        let render = self.render(session, now);
        let mut screens = Screens::new();
        let mut context =
            Context { session, view: &self.view, render: &render, cols: COLS, screens: &mut screens };
        let mut layout = Layout::default();
        layout.update(item, false, &mut context);
        let mut out = String::new();
        // A change was shown when the user was asked; if it failed, the reason precedes it.
        let known = match &item.body {
            ItemBody::Tool(tool) if tool.decision.is_some() && tool.diffs().next().is_some() => {
                Some(tool.status)
            }
            _ => None,
        };
        let is_change = |piece: &LineRun| matches!(piece.source, Source::Diff { .. });
        let pieces = match known {
            Some(ToolStatus::Completed) => 1,
            Some(_) => layout.pieces.iter().position(is_change).unwrap_or(layout.pieces.len()),
            None => layout.pieces.len(),
        };
        for index in 0..pieces {
            layout.draw(index, item, &mut context);
            let Some(piece) = layout.pieces.get(index) else { break };
            let indent = usize::from(layout.indent + piece.indent);
            for line in piece.lines.iter().flatten() {
                let line = format!("{:indent$}{line}", "");
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
        out
    }
}

/// Prints new complete lines of a message; the rest when it is complete.
fn say_text(
    state: &State,
    message: &Message,
    before: Option<Said>,
    render: &RenderContext<'_>,
    out: &mut String,
) -> Option<Said> {
    let (mut part, mut bytes) = match before {
        Some(Said::Text { part, bytes }) => (part, bytes),
        _ => (0, 0),
    };
    let mut said = String::new();
    while let Some(piece) = message.parts.get(part) {
        let is_last = part + 1 == message.parts.len();
        match piece {
            MessagePart::Text(text) => {
                let rest = text.get(bytes..).unwrap_or_default();
                let is_whole = !is_last || !message.is_open;
                let end = if is_whole { rest.len() } else { rest.rfind('\n').map_or(0, |at| at + 1) };
                // Blank lines are printed with the next text.
                let lines = rest.get(..end).unwrap_or_default().trim_end_matches(['\n', '\r']);
                said.push_str(&sanitize(lines));
                bytes += lines.len();
                if !lines.is_empty() {
                    said.push('\n');
                    bytes += rest.get(lines.len()..).and_then(|rest| rest.find('\n')).map_or(0, |at| at + 1);
                }
                if !is_whole {
                    break;
                }
            }
            MessagePart::Block(block) => {
                for line in block_lines(block, render, COLS) {
                    let _ = writeln!(said, "{}", line.to_string().trim_end());
                }
            }
        }
        (part, bytes) = (part + 1, 0);
    }
    if before.is_none() {
        said = said.trim_start_matches('\n').to_owned();
    }
    if !said.is_empty() {
        if before.is_none() {
            let _ = writeln!(out, "\n{}:", agent_name(state));
        }
        out.push_str(&said);
    }
    match (message.is_open, before.is_none() && said.is_empty()) {
        (false, _) => Some(Said::All),
        // The name is not printed yet either.
        (true, true) => None,
        (true, false) => Some(Said::Text { part, bytes }),
    }
}

fn say_turn(session: &Session, printed: &mut PrintedSession, now: Instant, out: &mut String) {
    match &session.turn {
        Turn::Running { since, .. } => {
            if printed.running.is_some_and(|(turn, _)| turn != session.turn_count) {
                say_over(session, printed, now, out);
            }
            printed.running = Some((session.turn_count, *since));
        }
        Turn::Cancelling { .. } => {}
        Turn::Idle => say_over(session, printed, now, out),
    }
}

/// Prints that the last turn is over, and its time without that of the user's answers.
fn say_over(session: &Session, printed: &mut PrintedSession, now: Instant, out: &mut String) {
    if let Some((turn, since)) = printed.running.take() {
        let took = now.saturating_duration_since(since).saturating_sub(session.wait.total(now));
        let took = if took.as_secs() > 0 { format!(" after {}", duration(took)) } else { String::new() };
        let end = end_of(session, turn);
        printed.failed += usize::from(matches!(end, "Failed" | "Refused"));
        let _ = writeln!(out, "[{turn}] {end}{took}.");
    }
}

fn end_of(session: &Session, turn: u32) -> &'static str {
    let items = session.transcript.items().iter().rev();
    let end = items.take_while(|item| item.turn >= turn).find_map(|item| match &item.body {
        ItemBody::TurnEnd(end) if item.turn == turn => Some(end),
        _ => None,
    });
    match end {
        Some(TurnEnd::Failed { .. } | TurnEnd::AgentDied { .. }) => "Failed",
        Some(TurnEnd::Stopped { reason: StopReason::Refusal, .. }) => "Refused",
        Some(TurnEnd::Stopped { reason: StopReason::Cancelled, .. }) => "Cancelled",
        Some(TurnEnd::Stopped { reason: StopReason::EndTurn, .. }) | None => "Finished",
        Some(TurnEnd::Stopped { .. }) => "Stopped",
    }
}

fn say_queue(session: &Session, printed: &mut PrintedSession, out: &mut String) {
    let count = session.outbox.queue_len();
    if count > printed.queued {
        let _ = writeln!(out, "({} queued.)", counted(count, "prompt", "prompts"));
    }
    printed.queued = count;
    let held = session.held.files.len();
    if held > printed.held {
        let count = counted(held, "file is", "files are");
        let _ = writeln!(out, "({count} held and not on the disk. :review-held applies or discards.)");
    }
    printed.held = held;
}

fn say_plan(session: &Session, printed: &mut PrintedSession, out: &mut String) {
    let steps: Vec<_> = session
        .plans
        .iter()
        .filter_map(|plan| match &plan.body {
            PlanBody::Entries(entries) => Some(entries),
            PlanBody::Markdown(_) | PlanBody::File(_) => None,
        })
        .flatten()
        .collect();
    if steps.is_empty() {
        return;
    }
    let done = steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
    let now = steps.iter().find(|step| step.status == PlanStatus::InProgress);
    let now = now.map(|step| format!(", now: {}", one_line(&step.content))).unwrap_or_default();
    let message = format!("Plan: {done} of {} steps done{now}", steps.len());
    if message != printed.plan {
        let _ = writeln!(out, "{message}");
        printed.plan = message;
    }
}

fn say_phase(state: &State, session: &Session, printed: &mut PrintedSession, out: &mut String) {
    let agent = agent_name(state);
    let message = match &session.phase {
        SessionPhase::NoAgent => String::new(),
        SessionPhase::Starting { .. } => format!("Starting {agent}…"),
        SessionPhase::Opening { is_replay: true, .. } => "Loading history…".to_owned(),
        SessionPhase::Opening { .. } => printed.phase.clone(),
        SessionPhase::NeedsSignIn => format!(
            "{agent} requires sign-in. Type :open-sign-in to list the \
            methods."
        ),
        SessionPhase::Ready => {
            let folder = show_folder(&session.workspace);
            format!("{agent} is ready in {folder}. Type a prompt and press Enter, or :help for commands.")
        }
        SessionPhase::Failed(_) => {
            format!(
                "The session could not be opened. Type :restart-agent to retry, :quit to quit \
                {agent}."
            )
        }
        SessionPhase::Ended { .. } if session.is_archived => {
            "Session archived. Type :restart-agent to unarchive it.".to_owned()
        }
        SessionPhase::Ended { cause }
            if state.conn_of(session.key).is_some_and(|conn| conn.spec.remote.is_some()) =>
        {
            format!("{agent} disconnected: {} Type :restart-agent to reconnect.", one_line(cause))
        }
        SessionPhase::Ended { cause } => {
            format!("{agent} exited: {} Type :restart-agent to restart.", one_line(cause))
        }
    };
    if message != printed.phase {
        if !message.is_empty() {
            let _ = writeln!(out, "{message}");
        }
        printed.phase = message;
    }
}

fn show_folder(position: &SessionWorkspace) -> String {
    match &position.remote {
        Some(remote) => one_line(&format!("{}:{}", remote.host, remote.folder.display())),
        None => one_line(&position.cwd.to_string_lossy()),
    }
}

fn agent_name(state: &State) -> String {
    state
        .conn_of(state.active)
        .map_or_else(|| "The agent".to_owned(), |conn| one_line(conn.spec.shown_name()))
}

#[cfg(test)]
mod tests;
