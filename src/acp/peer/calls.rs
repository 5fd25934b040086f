//! Our requests that wait for their answers.
//!
//! Duty: ids from 1, never reused; deadlines; whose answer came.
//! Not its duty: writing them, reading the answers.
//! Invariant: a pending call leaves the table exactly once, by its answer, its deadline or the end.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Call, CallTag};

/// How many late or double answers are remembered by name.
const MAX_RETIRED: usize = 64;

/// How long calls may take. `prompt` and `authenticate` may take for ever.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// `initialize`: the first start by `npx` or `uvx` downloads the agent.
    pub initialize: Duration,
    /// `session/new`, `load`, `resume`, `fork`.
    pub session: Duration,
    /// All others.
    pub other: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            initialize: Duration::from_secs(180),
            session: Duration::from_secs(180),
            other: Duration::from_secs(60),
        }
    }
}

impl Deadlines {
    fn of(&self, asked: &Asked) -> Option<Duration> {
        match asked {
            Asked::Initialize { .. } => Some(self.initialize),
            Asked::Call { call, .. } => match call {
                Call::Authenticate { .. } | Call::Prompt(..) => None,
                Call::NewSession(_)
                | Call::LoadSession(..)
                | Call::ResumeSession(..)
                | Call::ForkSession(..) => Some(self.session),
                _ => Some(self.other),
            },
        }
    }
}

/// What was asked.
#[derive(Debug)]
pub enum Asked {
    /// `initialize`, in its form number `attempt`.
    Initialize {
        /// From 0.
        attempt: u8,
    },
    /// A call of the app.
    Call {
        /// The app's own mark.
        tag: CallTag,
        /// The call; its answer cannot be read without it.
        call: Call,
    },
}

/// A call that waits.
#[derive(Debug)]
pub struct Pending {
    /// What was asked.
    pub asked: Asked,
    /// The wire's name of it.
    pub method: &'static str,
    /// When it is given up, and after how long.
    deadline: Option<(Instant, Duration)>,
}

/// What a response belongs to.
#[derive(Debug)]
pub enum Match {
    /// A call that waited; it waits no more.
    Waiting(Box<Pending>),
    /// A call that was answered or given up already.
    Retired(&'static str),
    /// Nothing that was ever asked.
    Never,
}

/// The table.
#[derive(Debug)]
pub struct Calls {
    deadlines: Deadlines,
    last_id: u64,
    // In the order of the ids, so that the end is told in the order of the calls.
    pending: BTreeMap<u64, Pending>,
    retired: BTreeMap<u64, &'static str>,
}

impl Calls {
    /// An empty table.
    pub fn new(deadlines: Deadlines) -> Self {
        Self { deadlines, last_id: 0, pending: BTreeMap::new(), retired: BTreeMap::new() }
    }

    /// Enters a call and gives it its id.
    pub fn add(&mut self, asked: Asked, method: &'static str, now: Instant) -> u64 {
        self.last_id += 1;
        let deadline = self.deadlines.of(&asked).map(|time| (now + time, time));
        self.pending.insert(self.last_id, Pending { asked, method, deadline });
        self.last_id
    }

    /// Takes the call that a response with this id answers.
    pub fn take(&mut self, id: Option<u64>) -> Match {
        let Some(id) = id else { return Match::Never };
        if let Some(pending) = self.pending.remove(&id) {
            self.retire(id, pending.method);
            return Match::Waiting(Box::new(pending));
        }
        match self.retired.get(&id) {
            Some(method) => Match::Retired(method),
            None if (1..=self.last_id).contains(&id) => Match::Retired("an earlier call"),
            None => Match::Never,
        }
    }

    /// The only call that waits, if it is only one.
    pub fn take_only(&mut self) -> Option<Pending> {
        let id = *self.pending.first_key_value()?.0;
        match self.take((self.pending.len() == 1).then_some(id)) {
            Match::Waiting(pending) => Some(*pending),
            Match::Retired(_) | Match::Never => None,
        }
    }

    /// The id of a call that waits.
    pub fn find(&self, tag: &CallTag) -> Option<u64> {
        self.pending.iter().find_map(|(id, pending)| match &pending.asked {
            Asked::Call { tag: own, .. } if own == tag => Some(*id),
            _ => None,
        })
    }

    /// When the next call is given up.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.pending.values().filter_map(|pending| pending.deadline).map(|(at, _)| at).min()
    }

    /// Takes the calls whose time is over, each with the time it had.
    pub fn take_overdue(&mut self, now: Instant) -> Vec<(Pending, Duration)> {
        let is_overdue = |pending: &Pending| pending.deadline.is_some_and(|(at, _)| at <= now);
        let ids: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| is_overdue(pending)).map(|(id, _)| *id).collect();
        let mut overdue = Vec::new();
        for id in ids {
            if let Some(pending) = self.pending.remove(&id) {
                self.retire(id, pending.method);
                let time = pending.deadline.map_or(Duration::ZERO, |(_, time)| time);
                overdue.push((pending, time));
            }
        }
        overdue
    }

    /// Takes all calls, in the order they were made.
    pub fn take_all(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending).into_values().collect()
    }

    fn retire(&mut self, id: u64, method: &'static str) {
        self.retired.insert(id, method);
        if self.retired.len() > MAX_RETIRED {
            self.retired.pop_first();
        }
    }
}
