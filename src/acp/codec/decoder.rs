//! The decoder of a connection: its state between messages, and the events that it has decoded.
//!
//! It shares ids instead of allocating them for each message, and knows the open sessions, for messages that name none.

use std::collections::{BTreeSet, VecDeque};

use crate::model::{
    AgentEvent, AgentSpec, Anomaly, AnomalyKind, CallError, MessageId, Reply, Role, SessionId, SessionUpdate,
};

use super::quirks::{Quirk, Quirks};

#[derive(Debug)]
pub(crate) enum TurnNews {
    Went(SessionId),
    /// The turn ended; equivalent to a response to the prompt.
    Ended(SessionId, Result<Reply, CallError>),
}

#[derive(Debug, Default)]
pub struct Decoder {
    pub quirks: Quirks,
    pub out: Vec<AgentEvent>,
    session: Option<SessionId>,
    message: Option<MessageId>,
    pub opened: BTreeSet<SessionId>,
    made: u64,
    /// Whether version 2 of the protocol was negotiated.
    pub is_v2: bool,
    pub turn_news: Vec<TurnNews>,
    /// The last message between sessions: its role, and whether some of its content was reported.
    pub subagent_message: Option<(MessageId, Role, bool)>,
    children: VecDeque<SessionId>,
}

/// Maximum number of child sessions; a message from an older one is shown as a regular message.
const MAX_CHILDREN: usize = 64;

impl Decoder {
    pub fn new(spec: &AgentSpec) -> Self {
        Self { quirks: Quirks::of(spec), ..Self::default() }
    }

    pub fn push(&mut self, session: &SessionId, update: SessionUpdate) {
        self.out.push(AgentEvent::Update(session.clone(), update));
    }

    pub fn anomaly(&mut self, kind: AnomalyKind, text: impl Into<String>) {
        self.out.push(AgentEvent::Anomaly(Anomaly { kind, text: text.into() }));
    }

    /// Sets a quirk and reports it the first time as an anomaly.
    pub fn learn(&mut self, quirk: Quirk) {
        if self.quirks.note(quirk) {
            self.anomaly(AnomalyKind::Dialect, quirk.0);
        }
    }

    /// Reports the number of invalid items; the official decoders would silently drop them.
    pub fn items<I, T>(&mut self, items: Vec<I>, name: &str, decode: impl FnMut(I) -> Option<T>) -> Vec<T> {
        let total = items.len();
        let decoded: Vec<T> = items.into_iter().filter_map(decode).collect();
        self.report_lost(name, total - decoded.len(), total, false);
        decoded
    }

    pub fn report_lost(&mut self, name: &str, lost: usize, total: usize, is_shown: bool) {
        if lost > 0 {
            let end = if is_shown { "shown unchanged" } else { "omitted" };
            let text = format!("{lost} of {total} items of `{name}` could not be decoded and are {end}.");
            self.anomaly(AnomalyKind::LostItems, text);
        }
    }

    /// The session with this id, which becomes the default for messages without a session id.
    pub fn session(&mut self, name: &str) -> SessionId {
        let known = self.session.take().filter(|known| known.as_str() == name);
        self.session.insert(known.unwrap_or_else(|| name.into())).clone()
    }

    /// The session of a message without a session id: the only one that is open.
    pub fn only_session(&self) -> Option<SessionId> {
        self.opened.first().filter(|_| self.opened.len() == 1).cloned()
    }

    pub fn child(&mut self, session: &SessionId) {
        if !self.is_child(session.as_str()) {
            self.children.truncate(MAX_CHILDREN - 1);
            self.children.push_front(session.clone());
        }
    }

    pub fn is_child(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.as_str() == name)
    }

    pub fn message(&mut self, name: &str) -> MessageId {
        let known = self.message.take().filter(|known| known.as_str() == name);
        self.message.insert(known.unwrap_or_else(|| name.into())).clone()
    }

    pub fn make_id(&mut self, what: &str) -> String {
        self.made += 1;
        format!("parlor-{what}-{}", self.made)
    }
}
