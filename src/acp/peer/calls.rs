//! Pending requests of parlor: ids from 1 that are never reused, and deadlines.
//!
//! Invariant: a pending call is removed exactly once, by its response, its deadline or the end of the connection.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::acp::frame::DEFAULT_FRAME_BYTES;
use crate::model::{AgentEvent, Call, CallError, CallTag, Reply, SessionId, SessionUpdate};

/// Silence after a state that may be the end of the turn, from an agent that reports only ends.
pub const CONFIRMED_TIME: Duration = Duration::from_secs(2);
/// The same from an agent that reports when it begins to work, and would report that of this turn.
pub const REPEATED_TIME: Duration = Duration::from_secs(30);
/// Number of finished requests that are remembered for late responses.
const MAX_RETIRED: usize = 64;

/// The size of messages, and timeouts of requests. `prompt` and `authenticate` have none; a request that opens a session
/// may take longer while its history is replayed.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum size of a message in bytes; a longer one is skipped and reported.
    pub max_frame_bytes: usize,
    /// `initialize`: the first start by `npx` or `uvx` downloads the agent.
    pub initialize: Duration,
    /// `session/new`, `load`, `resume`, `fork`: from the call, or from the last update of the session.
    pub session: Duration,
    pub other: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (long, short) = (Duration::from_secs(180), Duration::from_secs(60));
        Self { max_frame_bytes: DEFAULT_FRAME_BYTES, initialize: long, session: long, other: short }
    }
}

impl Limits {
    fn timeout(&self, call: Option<&Call>) -> Option<Duration> {
        match call {
            None => Some(self.initialize),
            Some(Call::Authenticate { .. } | Call::Prompt(..)) => None,
            Some(
                Call::NewSession(_) | Call::LoadSession(..) | Call::ResumeSession(..) | Call::ForkSession(..),
            ) => Some(self.session),
            Some(_) => Some(self.other),
        }
    }
}

#[derive(Debug, Default)]
pub struct Pending {
    /// `None`: `initialize`.
    pub call: Option<(CallTag, Call)>,
    pub method: &'static str,
    deadline: Option<(Instant, Duration)>,
    /// Whether the agent has worked since the prompt was sent.
    pub has_news: bool,
    /// Whether the agent has sent messages or tool calls since it accepted the prompt.
    pub has_output: bool,
    /// Whether the response has arrived, but not the end of the turn.
    pub is_answered: bool,
    /// The end of its turn, unless more updates follow in time, and that time.
    pub presumed_end: Option<PresumedEnd>,
}

pub type PresumedEnd = (Box<Result<Reply, CallError>>, Duration);

impl Pending {
    fn expect_presumed_end(&mut self, now: Instant) {
        if let Some((_, time)) = &self.presumed_end {
            self.deadline = Some((now + *time, *time));
        }
    }
}

fn is_output(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::Chunk { .. }
            | SessionUpdate::Block { .. }
            | SessionUpdate::Message { .. }
            | SessionUpdate::Tool(_)
    ) && !update.is_from_user()
}

#[derive(Debug)]
pub enum Match {
    Waiting(Box<Pending>),
    Retired(&'static str),
    /// A prompt whose end was reported before.
    Reported,
    Never,
}

#[derive(Debug, Default)]
pub struct Calls {
    limits: Limits,
    last_id: u64,
    // Ordered by id, so that requests end in order.
    pending: BTreeMap<u64, Pending>,
    retired: BTreeMap<u64, &'static str>,
    /// Prompts whose end was reported by an event; their response may follow.
    ended: BTreeSet<u64>,
}

impl Calls {
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub fn add(&mut self, id: u64, call: Option<(CallTag, Call)>, method: &'static str, now: Instant) {
        let time = self.limits.timeout(call.as_ref().map(|(_, call)| call));
        let deadline = time.map(|time| (now + time, time));
        self.pending.insert(id, Pending { call, method, deadline, ..Pending::default() });
    }

    pub fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub fn first_id(&self) -> Option<u64> {
        self.pending.keys().next().copied()
    }

    pub fn take(&mut self, id: Option<u64>) -> Match {
        let Some(id) = id else { return Match::Never };
        if let Some(pending) = self.remove(id) {
            return Match::Waiting(Box::new(pending));
        }
        if self.ended.remove(&id) {
            return Match::Reported;
        }
        match self.retired.get(&id) {
            Some(method) => Match::Retired(method),
            None if (1..=self.last_id).contains(&id) => Match::Retired("an earlier call"),
            None => Match::Never,
        }
    }

    pub fn take_only(&mut self) -> Option<Pending> {
        let id = self.first_id().filter(|_| self.pending.len() == 1)?;
        self.remove(id)
    }

    /// Puts a prompt back that was accepted and whose turn goes on. An earlier state may have been its end.
    pub fn accept(&mut self, id: u64, mut pending: Pending, now: Instant) {
        pending.is_answered = true;
        pending.expect_presumed_end(now);
        self.retired.remove(&id);
        self.pending.insert(id, pending);
    }

    /// The agent is idle, but was so before: its state says the same again, or its only state is the one at the end.
    /// Source: ACP v2, session states.
    pub fn presume_idle(&mut self, session: &SessionId, end: PresumedEnd, now: Instant) {
        if let Some(pending) = self.prompt_mut(session) {
            pending.presumed_end = Some(end);
            if pending.is_answered {
                pending.expect_presumed_end(now);
            }
        }
    }

    /// The agent works on the running prompt of a session, so that the turn has not ended.
    pub fn note_work(&mut self, session: &SessionId) {
        if let Some(pending) = self.prompt_mut(session) {
            pending.has_news = true;
            (pending.presumed_end, pending.deadline) = (None, None);
        }
    }

    pub fn find(&self, is_it: impl Fn(&CallTag, &Call) -> bool) -> Option<u64> {
        let matches = |pending: &Pending| pending.call.as_ref().is_some_and(|(tag, call)| is_it(tag, call));
        self.pending.iter().find(|(_, pending)| matches(pending)).map(|(id, _)| *id)
    }

    pub fn find_prompt(&self, session: &SessionId) -> Option<u64> {
        self.find(|_, call| matches!(call, Call::Prompt(own, _) if own == session))
    }

    pub fn get(&self, id: u64) -> Option<&Pending> {
        self.pending.get(&id)
    }

    pub fn prompt(&self, session: &SessionId) -> Option<&Pending> {
        self.pending.get(&self.find_prompt(session)?)
    }

    fn prompt_mut(&mut self, session: &SessionId) -> Option<&mut Pending> {
        self.pending.get_mut(&self.find_prompt(session)?)
    }

    pub fn end_prompt(&mut self, session: &SessionId) -> Option<Pending> {
        let id = self.find_prompt(session)?;
        let pending = self.remove(id)?;
        // A response that has already arrived is not expected again.
        if !pending.is_answered {
            self.ended.insert(id);
        }
        Some(pending)
    }

    /// An update restarts the timeout of a request that opens its session, and that of a turn that may have ended.
    pub fn note_update(&mut self, events: &[AgentEvent], now: Instant) {
        let update = events.iter().find_map(|event| match event {
            AgentEvent::Update(session, update) => Some((session, update)),
            _ => None,
        });
        let Some((session, update)) = update else { return };
        for pending in self.pending.values_mut() {
            if let Some((_, Call::LoadSession(id, _) | Call::ResumeSession(id, _) | Call::Prompt(id, _))) =
                &pending.call
                && id == session
            {
                pending.has_output |= pending.is_answered && is_output(update);
                if let Some((at, time)) = &mut pending.deadline {
                    *at = now + *time;
                }
            }
        }
    }

    pub fn waiting(&self) -> impl Iterator<Item = (u64, &Pending)> {
        self.pending.iter().map(|(id, pending)| (*id, pending))
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.pending.values().filter_map(|pending| pending.deadline).map(|(at, _)| at).min()
    }

    pub fn take_overdue(&mut self, now: Instant) -> Vec<(Pending, Duration)> {
        let is_overdue = |pending: &Pending| pending.deadline.is_some_and(|(at, _)| at <= now);
        let overdue = self.pending.iter().filter(|(_, pending)| is_overdue(pending));
        let ids: Vec<u64> = overdue.map(|(id, _)| *id).collect();
        let remove = |id| {
            let pending = self.remove(id)?;
            let (_, time) = pending.deadline?;
            Some((pending, time))
        };
        ids.into_iter().filter_map(remove).collect()
    }

    pub fn take_all(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending).into_values().collect()
    }

    fn remove(&mut self, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.retired.insert(id, pending.method);
        if self.retired.len() > MAX_RETIRED {
            self.retired.pop_first();
        }
        Some(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Purpose, Role, SessionKey, SessionWorkspace};

    #[test]
    fn updates_extend_the_timeout_of_session_load() {
        let mut calls = Calls::new(Limits::default());
        let (start, time) = (Instant::now(), Limits::default().session);
        let tag = |number| CallTag { number, purpose: Purpose::LoadSession(SessionKey(1)) };
        let load = Call::LoadSession("s".into(), SessionWorkspace::default());
        let other = Call::LoadSession("other".into(), SessionWorkspace::default());
        calls.add(1, Some((tag(1), load)), "session/load", start);
        calls.add(2, Some((tag(2), other)), "session/load", start);
        let late = start + time / 2;
        let update = SessionUpdate::Chunk { role: Role::Agent, message: None, text: "hi".into() };
        // An anomaly may follow the update.
        let anomaly = AgentEvent::Anomaly(crate::model::Anomaly {
            kind: crate::model::AnomalyKind::Dialect,
            text: String::new(),
        });
        calls.note_update(&[AgentEvent::Update("s".into(), update), anomaly], late);
        let overdue = calls.take_overdue(start + time);
        assert!(matches!(&overdue[..], [(Pending { call: Some((tag, _)), .. }, _)] if tag.number == 2));
        assert_eq!(calls.next_deadline(), Some(late + time));
        assert_eq!(calls.take_overdue(late + time).len(), 1, "times out without further updates");
    }

    #[test]
    fn an_agent_that_reports_only_idle_ends_its_turn() {
        for time in [CONFIRMED_TIME, REPEATED_TIME] {
            let mut calls = Calls::new(Limits::default());
            let (start, session) = (Instant::now(), SessionId::from("s"));
            let tag = CallTag { number: 1, purpose: Purpose::Prompt(SessionKey(1)) };
            let call = Call::Prompt(session.clone(), Vec::new());
            let id = calls.next_id();
            calls.add(id, Some((tag, call)), "session/prompt", start);
            let end = || Ok(Reply::TurnEnded { reason: crate::model::StopReason::EndTurn, usage: None });
            calls.presume_idle(&session, (Box::new(end()), time), start);
            assert_eq!(calls.next_deadline(), None, "the prompt was not accepted");
            let Match::Waiting(pending) = calls.take(Some(id)) else { panic!("the prompt is pending") };
            calls.accept(id, *pending, start);
            assert_eq!(calls.next_deadline(), Some(start + time));
            calls.note_work(&session);
            assert_eq!(calls.next_deadline(), None, "the agent works");
            calls.presume_idle(&session, (Box::new(end()), time), start);
            let update = SessionUpdate::Chunk { role: Role::Agent, message: None, text: "hi".into() };
            let later = start + Duration::from_secs(1);
            calls.note_update(&[AgentEvent::Update(session.clone(), update)], later);
            assert!(calls.prompt(&session).is_some_and(|prompt| prompt.has_output));
            assert!(calls.take_overdue(start + time).is_empty(), "it goes on");
            assert!(matches!(
                &calls.take_overdue(later + time)[..],
                [(Pending { presumed_end: Some(_), .. }, _)]
            ));
        }
    }
}
