//! The dependencies between parts of a session.
//!
//! A part is replayed without the parts before it. If an earlier part, loaded later, may change what it shows, both are
//! read again and replayed as one (`loading`), so that a session read in parts looks the same as one read at once.
//! Invariant: no dependency is missed; a dependency that does not exist may be assumed.

use std::collections::{BTreeSet, HashMap};

use crate::app::{ItemBody, Session};
use crate::model::{AgentTerminal, MessageId, Record, RecordedEvent, Role, SessionUpdate};

use crate::app::state::session::index::Key;

/// The dependencies of a part on earlier events.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(in crate::app) struct Needs {
    /// Subjects that were unknown when the part first referred to them, by hash; with the turn, where the id is valid
    /// in that turn only.
    things: BTreeSet<Thing>,
    /// The turn of the first event.
    turn: Option<u32>,
    /// Whether no prompt has been replayed yet.
    is_within_turn: bool,
    /// The first message, if no turn began or ended before it.
    message: Option<(Role, Option<MessageId>)>,
    /// Whether the part has closed the message that was open before it.
    is_closed: bool,
    /// Whether something depends on the whole first turn.
    depends_on_turn: bool,
    /// Whether some events are not shown because their subject is unknown.
    pub hides: bool,
    /// The last turn that ended in the part.
    pub ended_turn: u32,
}

impl Needs {
    /// Notes an event before it is replayed. Returns whether it changes an unknown subject without enough details to
    /// show it.
    pub fn note(&mut self, session: &Session, event: &RecordedEvent) -> bool {
        let RecordedEvent { turn, record, .. } = event;
        if self.turn.is_none() {
            (self.turn, self.is_within_turn) = (Some(*turn), true);
        }
        self.is_within_turn &= self.turn == Some(*turn) && !matches!(record, Record::Prompt { .. });
        if let Record::TurnEnded(_) = record {
            self.ended_turn = *turn;
        }
        if let Record::Update(SessionUpdate::Tool(patch)) = record {
            self.things.extend(patch.terminals.iter().filter_map(|news| unknown_terminal(session, news)));
        }
        let unknown = unknown(session, *turn, record);
        self.things.extend(unknown);
        if self.is_within_turn {
            self.note_edge(session, record);
        }
        unknown.is_some() && !is_named(record)
    }

    /// Notes an event of the turn in which the part begins.
    fn note_edge(&mut self, session: &Session, record: &Record) {
        let said = match record {
            Record::Update(
                SessionUpdate::Chunk { role, message, .. } | SessionUpdate::Block { role, message, .. },
            ) => Some((*role, message.clone())),
            Record::Update(SessionUpdate::Message { role, message, .. }) => {
                Some((*role, Some(message.clone())))
            }
            _ => None,
        };
        self.depends_on_turn |= match record {
            // File access and commands through parlor are shown with the calls of the turn.
            Record::Access(_) | Record::Decided { is_allow: true, .. } => true,
            Record::Inserted { back, .. } => {
                let items = session.transcript.items().iter().rev();
                let count = items.take_while(|item| item.turn == session.turn_count).count();
                count < usize::try_from(*back).unwrap_or(usize::MAX)
            }
            // It may be an echo of the prompt.
            _ => said.as_ref().is_some_and(|(role, _)| *role == Role::User),
        };
        if let Some(said) = said
            && !std::mem::replace(&mut self.is_closed, true)
        {
            self.message = Some(said);
        }
        self.is_closed |= matches!(record, Record::TurnEnded(_));
    }

    /// Adds the dependencies of events replayed after the part.
    pub fn extend(&mut self, more: Self) {
        self.things.extend(more.things);
        self.hides |= more.hides;
        self.ended_turn = self.ended_turn.max(more.ended_turn);
        if self.turn == more.turn {
            self.depends_on_turn |= more.depends_on_turn;
            if !self.is_closed {
                (self.message, self.is_closed) = (more.message, more.is_closed);
            }
        }
    }

    /// Drops all dependencies, because everything before the part was added or the part was unloaded.
    pub fn clear(&mut self) {
        *self = Self { hides: self.hides, ended_turn: self.ended_turn, ..Self::default() };
    }

    /// Whether the part may look different after a part with these subjects. `is_first`: that part is the first one.
    pub fn are_in(&self, things: &Things, is_first: bool) -> bool {
        let is_known = |(hash, turn): &Thing| {
            things.known.get(hash).is_some_and(|known| turn.is_none_or(|turn| turn == *known))
        };
        // A message without an id continues the open one.
        let goes_on = || {
            self.message.as_ref().zip(things.open_message.as_ref()).is_some_and(
                |((role, message), (open_role, open))| {
                    role == open_role && (message.is_none() || message == open)
                },
            )
        };
        let is_same_turn = self.turn.is_some() && self.turn == things.turn;
        (is_first && self.hides)
            || (is_same_turn && (self.depends_on_turn || things.has_loose || goes_on()))
            || self.things.iter().any(is_known)
    }
}

/// The hash of a subject, with its turn if its id is valid in that turn only.
type Thing = (u64, Option<u32>);

/// The subject of an event, if it is unknown.
fn unknown(session: &Session, turn: u32, record: &Record) -> Option<Thing> {
    let key = Key::of(record)?;
    let is_known = match record {
        Record::Command { .. } => session.item_of(&key).is_some(),
        _ => session.has(&key),
    };
    // A call announced in another turn is a different call.
    let is_announced = matches!(record, Record::Update(SessionUpdate::Tool(patch)) if patch.is_announcement);
    (!is_known).then(|| (key.hash(), is_announced.then_some(turn)))
}

fn unknown_terminal(session: &Session, news: &AgentTerminal) -> Option<Thing> {
    let key = Key::of_terminal(news);
    (!session.has(&key)).then(|| (key.hash(), None))
}

/// Whether an event has enough details to show its subject.
fn is_named(record: &Record) -> bool {
    match record {
        Record::Update(SessionUpdate::Tool(patch)) => patch.is_announcement || patch.title.as_set().is_some(),
        Record::Asked(patch) => patch.title.as_set().is_some(),
        Record::Update(SessionUpdate::Subagent(patch)) => patch.title.as_set().is_some(),
        Record::Update(SessionUpdate::Terminal(news)) => {
            matches!(news, AgentTerminal::Info { .. } | AgentTerminal::About { .. })
        }
        Record::Decided { .. }
        | Record::Located { .. }
        | Record::Update(SessionUpdate::CompactionChunk { .. }) => false,
        _ => true,
    }
}

/// The subjects in a part that later parts may depend on.
#[derive(Debug, Default)]
pub(in crate::app) struct Things {
    /// Hashes of the subjects that later events may refer to, with their turns.
    known: HashMap<u64, u32>,
    /// The turn of the last event.
    turn: Option<u32>,
    /// The message that is open at the end of the part.
    open_message: Option<(Role, Option<MessageId>)>,
    /// Whether later calls may absorb items of the part.
    has_loose: bool,
}

impl Things {
    /// The subjects of a part that was replayed to its last event but not closed yet.
    pub fn of(session: &Session, turn: Option<u32>) -> Self {
        let mut known = HashMap::new();
        let turn_of = |id| session.transcript.get(id).map_or(0, |item| item.turn);
        let mut add = |key: Key<'_>, turn: u32| {
            known.insert(key.hash(), turn);
        };
        for (key, item) in session.index.entries() {
            let turn = if matches!(key, Key::Tool(_)) { turn_of(item) } else { 0 };
            add(key, turn);
        }
        for (id, view) in &session.terminals {
            add(Key::Terminal(id), 0);
            if view.exit.is_none() || view.is_ours {
                add(Key::OpenTerminal(id), 0);
            }
        }
        for item in session.transcript.items() {
            if let ItemBody::Message(message) = &item.body
                && let Some(id) = &message.message
            {
                add(Key::Message(message.role, id), 0);
            }
        }
        let open = session.open_message.and_then(|id| session.transcript.get(id));
        let open_message = open.and_then(|item| match &item.body {
            ItemBody::Message(message) => Some((message.role, message.message.clone())),
            _ => None,
        });
        Self { known, turn, open_message, has_loose: !session.loose.is_empty() }
    }
}
