//! What there is to see, as values that can be serialised: for a front end in another process, or for a recording.
//!
//! [`Seen::changes`] returns what is new since its last call. Points in time are left out, because only this process knows
//! its clock. Serialising fails if an item has a path that is not UTF-8.
//! Invariant: applying all changes in order gives the same as reading everything at once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Write as _};
use std::hash::{DefaultHasher, Hasher as _};

use serde::Serialize;

use super::conn::{Conn, ConnPhase};
use super::question::{Question, QuestionId};
use super::session::{OpenRequest, OpenRequestKind, Session, SessionPhase, Turn};
use super::transcript::{Item, ItemBody, Mark, MessagePart, TerminalView, ToolCall};
use super::{State, texts};
use crate::model::{
    ConfigOption, ConnId, ElicitationMode, ExitInfo, ItemId, Models, Modes, Plan, SessionId, SessionKey,
    SlashCommand, TerminalId, TurnUsage, Usage,
};

/// What a reader has seen so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    overview: u64,
    sessions: BTreeMap<SessionKey, SeenSession>,
}

#[derive(Debug, Clone, Default)]
struct SeenSession {
    summary: u64,
    mark: Option<Mark>,
    /// The last item, if it is an open message: the number of its parts and the length of the last one in bytes.
    open: Option<(ItemId, usize, usize)>,
    /// Output of terminals in bytes, and whether they have ended.
    outputs: BTreeMap<TerminalId, (u64, bool)>,
}

/// What is new.
#[derive(Debug, Serialize)]
pub struct Changes<'a> {
    /// `None`: as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overview: Option<Overview<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionChanges<'a>>,
}

/// Everything except the contents of sessions.
#[derive(Debug, Serialize)]
pub struct Overview<'a> {
    pub active: SessionKey,
    /// The open sessions; all others are closed.
    pub sessions: Vec<SessionKey>,
    pub agents: Vec<AgentSummary<'a>>,
    /// The open questions of parlor and of agents.
    pub questions: Vec<QuestionSummary<'a>>,
    /// The message in the status line.
    pub message: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub struct AgentSummary<'a> {
    pub conn: ConnId,
    pub name: &'a str,
    pub version: Option<&'a str>,
    /// `starting`, `ready`, `stopping` or `closed`.
    pub phase: &'static str,
}

/// An open question. It is answered with its id.
#[derive(Debug, Serialize)]
pub struct QuestionSummary<'a> {
    pub id: QuestionId,
    pub session: SessionKey,
    pub title: Cow<'a, str>,
    pub details: &'a [String],
    /// The answers by position; a form has none.
    pub answers: Vec<Cow<'a, str>>,
    /// The tool call in the transcript that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The tool call that it is about, if that is not in the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<&'a ToolCall>,
    /// The form or the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<&'a ElicitationMode>,
}

/// What is new in a session.
#[derive(Debug, Serialize)]
pub struct SessionChanges<'a> {
    pub session: SessionKey,
    /// `None`: as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary<'a>>,
    /// Whether `items` are all items. Otherwise each replaces the one with its id, or follows the last.
    pub has_all_items: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<&'a Item>,
    /// Text at the end of an item's last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_text: Option<(ItemId, &'a str)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputChange<'a>>,
}

/// A session without its items.
#[derive(Debug, Serialize)]
pub struct SessionSummary<'a> {
    pub id: Option<&'a SessionId>,
    pub conn: Option<ConnId>,
    pub parent: Option<SessionKey>,
    pub folder: Cow<'a, str>,
    pub title: Option<&'a str>,
    /// `no_agent`, `starting`, `opening`, `needs_sign_in`, `ready`, `failed` or `ended`.
    pub phase: &'static str,
    /// Why it failed or ended.
    pub cause: Option<Cow<'a, str>>,
    pub is_read_only: bool,
    /// `idle`, `running` or `cancelling`.
    pub turn: &'static str,
    /// The number of the running or last turn.
    pub turn_count: u32,
    pub plans: &'a [Plan],
    pub modes: Option<&'a Modes>,
    pub models: Option<&'a Models>,
    pub options: &'a [ConfigOption],
    pub commands: &'a [SlashCommand],
    pub usage: Option<&'a Usage>,
    pub turn_usage: Option<&'a TurnUsage>,
    /// The texts of the queued prompts, the next one first.
    pub queue: Vec<&'a str>,
}

/// New output of a command.
#[derive(Debug, Serialize)]
pub struct OutputChange<'a> {
    pub terminal: &'a TerminalId,
    pub command: Option<&'a str>,
    /// Whether `text` replaces the output so far.
    pub is_all: bool,
    /// With escape sequences. Bytes that are not UTF-8 are shown as replacement characters.
    pub text: Cow<'a, str>,
    pub exit: Option<&'a ExitInfo>,
}

impl Changes<'_> {
    pub fn is_empty(&self) -> bool {
        self.overview.is_none() && self.sessions.is_empty()
    }
}

impl Seen {
    /// What is new since the last call; everything at the first one.
    pub fn changes<'a>(&mut self, state: &'a State) -> Changes<'a> {
        self.sessions.retain(|key, _| state.sessions.contains_key(key));
        let changes = state
            .sessions
            .values()
            .filter_map(|session| self.sessions.entry(session.key).or_default().changes(session));
        let sessions = changes.collect();
        Changes { overview: if_new(overview(state), &mut self.overview), sessions }
    }
}

impl SeenSession {
    fn changes<'a>(&mut self, session: &'a Session) -> Option<SessionChanges<'a>> {
        let transcript = &session.transcript;
        let changed = self.mark.replace(transcript.mark()).and_then(|mark| transcript.changed_since(mark));
        let has_all_items = changed.is_none();
        let mut items: Vec<&Item> = match changed {
            Some(changed) => {
                let changed: BTreeSet<ItemId> = changed.collect();
                changed.into_iter().filter_map(|id| transcript.get(id)).collect()
            }
            None => transcript.items().iter().collect(),
        };
        let open = transcript.items().last().and_then(open_text);
        let former = std::mem::replace(&mut self.open, open.map(|(id, parts, text)| (id, parts, text.len())));
        let mut more_text = None;
        if let (Some((id, parts, text)), Some((former_id, former_parts, len))) = (open, former)
            && (id, parts) == (former_id, former_parts)
            && !has_all_items
            && let Some(more) = text.get(len..)
        {
            items.retain(|item| item.id != id);
            more_text = Some((id, more)).filter(|(_, more)| !more.is_empty());
        }
        self.outputs.retain(|id, _| session.terminals.contains_key(id));
        let outputs = session.terminals.iter().filter_map(|(id, view)| {
            let seen = self.outputs.entry(id.clone()).or_default();
            output(id, view, seen)
        });
        let outputs: Vec<_> = outputs.collect();
        let summary = if_new(summary(session), &mut self.summary);
        let is_new = summary.is_some() || !items.is_empty() || more_text.is_some() || !outputs.is_empty();
        (is_new || has_all_items).then_some(SessionChanges {
            session: session.key,
            summary,
            has_all_items,
            items,
            more_text,
            outputs,
        })
    }
}

/// Returns the value if its hash is not the known one, and updates that.
fn if_new<T: Debug>(value: T, known: &mut u64) -> Option<T> {
    struct Text(DefaultHasher);
    impl fmt::Write for Text {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut text = Text(DefaultHasher::new());
    // `Usage` contains floats, which do not implement `Hash`.
    let _ = write!(text, "{value:?}");
    let hash = text.0.finish();
    (std::mem::replace(known, hash) != hash).then_some(value)
}

/// The last part of an open message, if it is text, with the number of parts.
fn open_text(item: &Item) -> Option<(ItemId, usize, &str)> {
    let ItemBody::Message(message) = &item.body else { return None };
    let Some(MessagePart::Text(text)) = message.parts.last() else { return None };
    message.is_open.then_some((item.id, message.parts.len(), text.as_str()))
}

/// The output after the bytes that were seen. An incomplete character at the end is held back until the rest arrives.
fn output<'a>(
    id: &'a TerminalId,
    view: &'a TerminalView,
    seen: &mut (u64, bool),
) -> Option<OutputChange<'a>> {
    let (bytes, ended) = *seen;
    let start = bytes.checked_sub(view.dropped_bytes).and_then(|start| usize::try_from(start).ok());
    let fresh = start.filter(|_| bytes > 0).and_then(|start| view.output.get(start..));
    let rest = fresh.unwrap_or(&view.output);
    let is_over = view.exit.is_some();
    let whole = match std::str::from_utf8(rest) {
        Err(error) if error.error_len().is_none() && !is_over => &rest[..error.valid_up_to()],
        _ => rest,
    };
    let held = rest.len() - whole.len();
    *seen = (view.dropped_bytes + (view.output.len() - held) as u64, is_over);
    (*seen != (bytes, ended)).then(|| OutputChange {
        terminal: id,
        command: view.command.as_deref(),
        is_all: fresh.is_none(),
        text: String::from_utf8_lossy(whole),
        exit: view.exit.as_ref(),
    })
}

fn overview(state: &State) -> Overview<'_> {
    Overview {
        active: state.active,
        sessions: state.sessions.keys().copied().collect(),
        agents: state.conns.values().map(agent).collect(),
        questions: questions(state).collect(),
        message: state.flash.as_deref(),
    }
}

fn agent(conn: &Conn) -> AgentSummary<'_> {
    let info = conn.info.as_ref();
    AgentSummary {
        conn: conn.id,
        name: info.and_then(|info| info.title.as_deref().or(info.name.as_deref())).unwrap_or(&conn.spec.name),
        version: info.and_then(|info| info.version.as_deref()),
        phase: match conn.phase {
            ConnPhase::Starting { .. } => "starting",
            ConnPhase::Ready => "ready",
            ConnPhase::Stopping => "stopping",
            ConnPhase::Closed(_) => "closed",
        },
    }
}

/// All open questions: those of parlor, then those of agents.
pub fn questions(state: &State) -> impl Iterator<Item = QuestionSummary<'_>> {
    let of_agents = state
        .sessions
        .values()
        .flat_map(|session| session.requests.iter().map(move |open| agent_question(session, open)));
    state.questions.iter().map(own_question).chain(of_agents)
}

fn own_question(question: &Question) -> QuestionSummary<'_> {
    QuestionSummary {
        id: question.id,
        session: question.session,
        title: question.title.as_str().into(),
        details: &question.body,
        answers: question.answers.iter().map(|answer| answer.label.as_str().into()).collect(),
        item: None,
        call: None,
        form: None,
    }
}

fn agent_question<'a>(session: &'a Session, open: &'a OpenRequest) -> QuestionSummary<'a> {
    let mut question = QuestionSummary {
        id: QuestionId::Agent(open.request_id),
        session: session.key,
        title: Cow::Borrowed(""),
        details: &[],
        answers: open.kind.answers().into_iter().map(Cow::Owned).collect(),
        item: None,
        call: None,
        form: None,
    };
    match &open.kind {
        OpenRequestKind::Permission { tool, .. } => {
            question.title = session.tool_call(*tool).map_or("", ToolCall::label).into();
            question.item = Some(*tool);
        }
        OpenRequestKind::Access(request) => {
            question.title = request.why.heading(&request.access).into();
            question.call = Some(&request.call);
        }
        OpenRequestKind::Elicitation(request) => {
            question.title = request.message.as_str().into();
            question.form = Some(&request.mode);
        }
    }
    question
}

fn summary(session: &Session) -> SessionSummary<'_> {
    let (phase, cause) = match &session.phase {
        SessionPhase::NoAgent => ("no_agent", None),
        SessionPhase::Starting { .. } => ("starting", None),
        SessionPhase::Opening { .. } => ("opening", None),
        SessionPhase::NeedsSignIn => ("needs_sign_in", None),
        SessionPhase::Ready => ("ready", None),
        SessionPhase::Failed(error) => ("failed", Some(Cow::Owned(texts::error_text(error)))),
        SessionPhase::Ended { cause } => ("ended", Some(cause.as_str().into())),
    };
    SessionSummary {
        id: session.id.as_ref(),
        conn: session.conn,
        parent: session.parent,
        folder: session.workspace.cwd.to_string_lossy(),
        title: session.title.as_deref(),
        phase,
        cause,
        is_read_only: session.read_only.is_some(),
        turn: match session.turn {
            Turn::Idle => "idle",
            Turn::Running { .. } => "running",
            Turn::Cancelling { .. } => "cancelling",
        },
        turn_count: session.turn_count,
        plans: &session.plans,
        modes: session.modes.as_ref(),
        models: session.models.as_ref(),
        options: &session.options,
        commands: &session.commands,
        usage: session.usage.as_ref(),
        turn_usage: session.turn_usage.as_ref(),
        queue: session.outbox.queue().map(|prompt| prompt.text.as_str()).collect(),
    }
}
