//! The permission requests of a saved session, and what rules would decide about them.

use std::path::PathBuf;
use std::time::Instant;

use super::{policy, ruled};
use crate::core::recording::restore::restore;
use crate::core::session::play;
use crate::core::state::recorded::Playing;
use crate::core::{Decision, Session, ToolCall};
use crate::model::{
    Access, AccessRecord, Policy, Record, RecordedSession, RuleAction, RuleContext, Rules, SessionKey,
};

/// A request that was asked or decided in a session.
#[derive(Debug)]
pub struct SavedRequest {
    /// Unix time in milliseconds.
    pub at_ms: i64,
    /// The mode of the session then.
    mode: String,
    pub what: RequestSubject,
}

impl SavedRequest {
    pub fn is_undecided(&self) -> bool {
        matches!(self.what, RequestSubject::Call(_, None))
    }
}

#[derive(Debug)]
pub enum RequestSubject {
    /// A permission request, with its call as it was asked about.
    Call(Box<ToolCall>, Option<Decision>),
    /// A file or command of parlor's own services.
    Access(Box<AccessRecord>),
}

/// The requests of a session.
#[derive(Debug)]
pub struct SavedRequests {
    session: Session,
    policy: Policy,
    agent: String,
    is_remote: bool,
    /// Oldest first.
    pub requests: Vec<SavedRequest>,
}

impl SavedRequests {
    /// Reads them by replaying the record, so that each call is as it was. `home` and `own_folders` are those of the
    /// policy; `now` is the time to which the record is replayed.
    pub fn of(
        mut saved: RecordedSession,
        (home, own_folders): (Option<PathBuf>, Vec<PathBuf>),
        now: Instant,
    ) -> Self {
        let (events, agent) = (std::mem::take(&mut saved.events), saved.head.agent.clone());
        // The program of an agent on another machine is not saved.
        let is_remote = saved.head.command.is_empty();
        let mut session = Session::new(SessionKey(0), saved.head.workspace.clone());
        restore(&mut session, saved, now);
        let mut requests: Vec<SavedRequest> = Vec::new();
        let mut playing = Playing::new(now);
        for event in events {
            let (at_ms, record) = (event.at_ms, event.record.clone());
            play::feed(&mut session, &mut playing, vec![event], None);
            let call = |id| session.tool_by_id(id).and_then(|item| session.tool_call(item));
            let what = match record {
                Record::Asked { tool, .. } => call(&tool.id).map(|call| {
                    let call = ToolCall { decision: None, ..call.clone() };
                    RequestSubject::Call(Box::new(call), None)
                }),
                Record::Access(access) if !access.is_typed() => Some(RequestSubject::Access(access)),
                Record::Decided { tool, .. } => {
                    let decision = call(&tool).and_then(|call| call.decision.clone());
                    let asked = requests.iter_mut().rev().find_map(|request| match &mut request.what {
                        RequestSubject::Call(call, decision) if call.id == tool => Some(decision),
                        _ => None,
                    });
                    if let Some(asked) = asked {
                        *asked = decision;
                    }
                    None
                }
                _ => None,
            };
            let mode = session.modes.as_ref().map(|modes| modes.current.to_string()).unwrap_or_default();
            requests.extend(what.map(|what| SavedRequest { at_ms, mode, what }));
        }
        let policy = Policy { home, own_folders, ..Policy::default() };
        Self { session, policy, agent, is_remote, requests }
    }

    /// What rules decide about a request, with the rule; `None`: nothing, so the user is asked.
    pub fn ruling(&self, request: &SavedRequest, rules: &Rules) -> Option<(RuleAction, String)> {
        let context = RuleContext {
            agent: self.agent.clone(),
            mode: request.mode.clone(),
            folder: self.session.workspace.folder().to_owned(),
            home: self.policy.home.clone(),
            is_remote: self.is_remote,
        };
        match &request.what {
            RequestSubject::Call(call, _) => {
                let is_plain = policy::protected_by(&self.policy, &self.session, call).is_empty();
                ruled::ruling_of(&self.session, call, is_plain, (rules, &context))
            }
            RequestSubject::Access(record) => {
                let policy = Policy { user_rules: rules.clone(), context, ..self.policy.clone() };
                let ruling = policy.ruling(&record.access)?;
                ruling.rule.map(|rule| (ruling.action, rule))
            }
        }
    }
}

impl RequestSubject {
    /// What was asked for, for display.
    pub fn description(&self) -> String {
        match self {
            Self::Call(call, _) => match &call.input.command {
                Some(command) => format!("run {command}"),
                None => call.title.clone(),
            },
            Self::Access(record) => match &record.access {
                Access::Run(command) => format!("run {}", command.line),
                Access::Read { path } => format!("read {}", path.display()),
                Access::Write { path } => format!("write {}", path.display()),
                Access::SignIn { .. } => "sign in".to_owned(),
            },
        }
    }

    /// What was decided, and by whom, for display.
    pub fn decision(&self) -> String {
        match self {
            Self::Call(_, Some(decision)) => decision.description(),
            Self::Call(_, None) => "Not answered".to_owned(),
            Self::Access(record) => record.decision(),
        }
    }
}
