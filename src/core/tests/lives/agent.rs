//! An agent with a session of its own, and how it replays it.

use std::collections::BTreeSet;

use crate::core::tests::support::{call, patch};
use crate::model::*;
use crate::random::Random;

/// The number of a turn. parlor does not know it.
pub type Id = usize;

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Thought(String),
    Call(String),
}

/// A turn as the agent has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: Id,
    pub prompt: String,
    /// The URI and text of an embedded resource.
    pub resource: Option<(String, String)>,
    pub reply: Vec<Piece>,
    /// Whether the agent stores a note about the interruption after it.
    pub is_noted: bool,
    /// A user message that the agent puts into the reply, before this piece.
    pub inner: Option<(usize, &'static str)>,
}

impl Turn {
    /// The text of the reply, without thoughts.
    pub fn text(&self) -> String {
        text_of(&self.reply)
    }
}

/// The text of a reply; parts that something stands between are separate lines.
pub fn text_of(reply: &[Piece]) -> String {
    let texts = reply.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.as_str()),
        Piece::Thought(_) | Piece::Call(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What an update of a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prompt,
    /// A user message of the agent's own, or what it adds to one.
    Wrapper,
    Reply,
    /// A setting of the session, which is no part of its history.
    Setting,
}

/// An update of a replay, with the turn that it is of.
#[derive(Debug, Clone)]
pub struct Sent {
    pub of: Id,
    pub kind: Kind,
    pub update: SessionUpdate,
}

/// Habits of an agent.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent habits")]
pub struct Habits {
    pub has_ids: bool,
    pub has_thoughts: bool,
    pub splits: bool,
    pub wraps: bool,
    pub omits_prompts: bool,
    pub omits_resources: bool,
    /// How it replays embedded resources.
    pub resources: u64,
    pub resumes: bool,
    pub lists_clear: bool,
    pub reports_usage: bool,
}

impl Habits {
    pub fn new(random: &mut Random) -> Self {
        Self {
            has_ids: random.one_in(3),
            has_thoughts: random.one_in(2),
            splits: random.one_in(2),
            wraps: random.one_in(4),
            omits_prompts: random.one_in(25),
            omits_resources: random.one_in(4),
            resources: random.below(3),
            resumes: random.one_in(6),
            lists_clear: random.one_in(3),
            reports_usage: random.one_in(4),
        }
    }
}

/// An agent and the turns that it has of the session.
#[derive(Debug, Clone)]
pub struct Agent {
    pub habits: Habits,
    pub turns: Vec<Turn>,
}

pub const NOTE: &str = "[Request interrupted by user]";
pub const CONTEXT: &str = "<session_context>\nToday is Monday.\n</session_context>";

impl Agent {
    /// What the agent replays now, the turns that it replays twice, and whether it has more than its turns. `is_plain`: all turns as they are.
    pub fn replay(&self, random: &mut Random, is_plain: bool) -> (Vec<Sent>, BTreeSet<Id>, bool) {
        let mut turns = self.turns.clone();
        let has_more = !is_plain && disturb(&mut turns, random);
        let mut seen = BTreeSet::new();
        let doubled = turns.iter().map(|turn| turn.id).filter(|id| !seen.insert(*id)).collect();
        let mut sent = Vec::new();
        for turn in &turns {
            self.send(turn, random, &mut sent);
        }
        if self.habits.omits_prompts {
            sent.retain(|sent| sent.kind == Kind::Reply);
        }
        if self.habits.reports_usage {
            let used_tokens = 1 + random.below(9);
            let update = SessionUpdate::Usage(Usage { used_tokens, size_tokens: 10, cost: None });
            let at = usize::try_from(random.below(sent.len() as u64 + 1)).unwrap_or(0);
            sent.insert(at, Sent { of: 0, kind: Kind::Setting, update });
        }
        (sent, doubled, has_more)
    }

    fn send(&self, turn: &Turn, random: &mut Random, sent: &mut Vec<Sent>) {
        let is_joined = sent.last().is_some_and(|sent| sent.update.is_from_user());
        let mut add = |kind, update| sent.push(Sent { of: turn.id, kind, update });
        let prompt_id = self.habits.has_ids.then(|| format!("u{}", turn.id));
        let user = |text: &str| said(Role::User, prompt_id.as_deref(), text);
        let mut prompt = turn.prompt.clone();
        let mut begin = String::new();
        if self.habits.wraps && !is_joined && random.one_in(2) {
            if random.one_in(2) {
                add(Kind::Wrapper, user(CONTEXT));
            } else {
                begin = format!("{CONTEXT}\n");
            }
        }
        if turn.prompt.starts_with('/') && random.one_in(2) {
            begin = format!("<command-name>{}</command-name>\n<command-args></command-args>", turn.prompt);
            prompt = String::new();
        }
        for text in self.cut(&prompt, random) {
            add(Kind::Prompt, user(&format!("{}{text}", std::mem::take(&mut begin))));
        }
        if let Some((uri, text)) = turn.resource.as_ref().filter(|_| !self.habits.omits_resources) {
            let block = match self.habits.resources {
                0 => ContentBlock::Text(text.clone().into()),
                1 => ContentBlock::ResourceLink(ResourceLink { uri: uri.clone(), ..ResourceLink::default() }),
                _ => ContentBlock::Resource {
                    uri: uri.clone(),
                    mime_type: None,
                    body: ResourceBody::Text(text.clone().into()),
                },
            };
            let message = prompt_id.as_deref().map(Into::into);
            add(Kind::Prompt, SessionUpdate::Block { role: Role::User, message, block });
        }
        for (index, piece) in turn.reply.iter().enumerate() {
            if let Some((_, text)) = turn.inner.filter(|(at, _)| *at == index) {
                add(Kind::Wrapper, said(Role::User, None, text));
            }
            let id = self.habits.has_ids.then(|| format!("m{}.{index}", turn.id));
            match piece {
                Piece::Text(text) => {
                    for text in self.cut(text, random) {
                        add(Kind::Reply, said(Role::Agent, id.as_deref(), &text));
                    }
                }
                Piece::Thought(text) if self.habits.has_thoughts => {
                    add(Kind::Reply, said(Role::Thought, None, text));
                }
                Piece::Thought(_) => {}
                Piece::Call(name) => add(Kind::Reply, call(name, ToolStatus::Completed)),
            }
        }
        if turn.is_noted {
            add(Kind::Wrapper, said(Role::User, None, NOTE));
        }
    }

    /// The updates of a piece of a reply, as the agent streams it.
    pub fn stream(&self, turn: Id, index: usize, piece: &Piece, random: &mut Random) -> Vec<SessionUpdate> {
        let id = self.habits.has_ids.then(|| format!("m{turn}.{index}"));
        match piece {
            Piece::Text(text) => {
                self.cut(text, random).iter().map(|text| said(Role::Agent, id.as_deref(), text)).collect()
            }
            Piece::Thought(text) => vec![said(Role::Thought, None, text)],
            Piece::Call(name) => vec![
                call(name, ToolStatus::InProgress),
                patch(name, |patch| patch.status = Patch::Set(ToolStatus::Completed)),
            ],
        }
    }

    fn cut(&self, text: &str, random: &mut Random) -> Vec<String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while self.habits.splits && rest.len() > 1 && random.one_in(2) {
            let (part, after) = rest.split_at(1 + index(random, rest.len() - 1));
            parts.push(part.to_owned());
            rest = after;
        }
        parts.push(rest.to_owned());
        parts
    }
}

/// A number below `end`, which is at least 1.
pub fn index(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap_or(0)
}

/// Loses the beginning or the end of a history, or single turns, or repeats or extends some. Returns whether it has more then.
fn disturb(turns: &mut Vec<Turn>, random: &mut Random) -> bool {
    if turns.is_empty() {
        return false;
    }
    let kind = random.below(12);
    match kind {
        0 => drop(turns.drain(..index(random, turns.len()))),
        1 => turns.truncate(index(random, turns.len() + 1)),
        2 => drop(turns.remove(index(random, turns.len()))),
        3 => {
            let at = index(random, turns.len());
            turns.insert(at, turns[at].clone());
        }
        4 => {
            let again = turns.clone();
            turns.extend(again);
        }
        5 => {
            let at = index(random, turns.len());
            if let Some(Piece::Text(text)) = turns[at].reply.first_mut() {
                text.insert_str(0, "a warning\n");
            }
        }
        6 => {
            let at = index(random, turns.len());
            if let Some(Piece::Text(text)) = turns[at].reply.last_mut() {
                text.push_str("\na note");
            }
        }
        _ => {}
    }
    (3..7).contains(&kind)
}

pub fn said(role: Role, message: Option<&str>, text: &str) -> SessionUpdate {
    SessionUpdate::Chunk { role, message: message.map(Into::into), text: text.to_owned() }
}
