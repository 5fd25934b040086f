//! The question about a file or command, and the effect of its answer.
//!
//! `requests` manages the queue of questions, `model::policy` decides whether to ask.

use std::time::Instant;

use crate::model::{
    Access, AccessOutcome, AccessRecord, AllowedBy, AskReason, ConnId, Facts, FileJob, Grant, GrantScope,
    RefusedBy, RequestId, Response, RpcError, WriteChange,
};

use super::super::{policy, requests};
use super::{add_file, start};
use crate::app::session::access;
use crate::app::{AccessChoice, AccessRequest, AccessWork, Effect, RequestClass, State};

/// The question to the user.
pub(super) fn question(
    state: &State,
    conn: ConnId,
    work: AccessWork,
    access: Access,
    why: AskReason,
    change: Option<WriteChange>,
    now: Instant,
) -> AccessRequest {
    let outcome = AccessOutcome::Refused(RefusedBy::Cancelled);
    let record = AccessRecord { change: change.clone(), ..AccessRecord::new(access.clone(), outcome) };
    let call = Box::new(access::call_of(record, now));
    let grant = policy::grant_of(state, &access, why);
    let spec = state.conns.get(&conn).map(|conn| &conn.spec);
    let is_here = spec.is_some_and(|spec| !spec.is_elsewhere());
    let is_inside = Facts { is_inside: why == AskReason::Command, ..Facts::default() };
    let offers_all_commands = is_here && Grant::AnyCommand.covers(&access, &is_inside);
    let agent = spec.map(|spec| spec.shown_name().to_owned()).unwrap_or_default();
    AccessRequest { work, access, why, change, call, grant, offers_all_commands, agent }
}

/// Applies the user's answer about a file or command.
pub(in crate::app) fn on_answered(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    open: &AccessRequest,
    choice: AccessChoice,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let key = match &open.work {
        AccessWork::Run(key, _) => Some(*key),
        AccessWork::File(_) => {
            match state.conns.get(&conn).and_then(|conn| conn.open_requests.get(&request_id)) {
                Some(RequestClass::File(key)) => Some(*key),
                _ => None,
            }
        }
    };
    let Some(key) = key else { return };
    let by = match choice {
        AccessChoice::Once => AllowedBy::You,
        AccessChoice::Longer(scope) => {
            if let Some(grant) = &open.grant {
                policy::add_grant(state, conn, key, grant.clone(), scope, fx);
            }
            AllowedBy::Grant(scope)
        }
        AccessChoice::AllCommands => {
            policy::add_grant(state, conn, key, Grant::AnyCommand, GrantScope::Session, fx);
            AllowedBy::Grant(GrantScope::Session)
        }
        AccessChoice::Refuse => {
            note_refused(state, open, RefusedBy::You, now);
            let what = match &open.access {
                Access::Read { path } => format!("reading {}", path.display()),
                Access::Write { path } => format!("writing {}", path.display()),
                Access::Run(_) | Access::SignIn { .. } => "this command".to_owned(),
            };
            let error = RpcError::new(RpcError::INTERNAL, format!("the user did not allow {what}"));
            requests::answer(state, conn, request_id, Response::Error(error), fx);
            return;
        }
    };
    match &open.work {
        AccessWork::File(job) => add_file(state, FileJob { allowed: Some(by), ..job.clone() }, fx),
        AccessWork::Run(key, command) => {
            // All commands in the session's folders, except where a link leads out of them.
            let is_bound = choice == AccessChoice::AllCommands;
            start(state, (conn, request_id), *key, command.clone(), by, is_bound, fx);
        }
    }
}

/// Adds a refused access to the transcript.
pub(in crate::app) fn note_refused(state: &mut State, open: &AccessRequest, by: RefusedBy, now: Instant) {
    let key = match &open.work {
        AccessWork::Run(key, _) => Some(*key),
        AccessWork::File(job) => {
            match state.conns.get(&job.conn).and_then(|conn| conn.open_requests.get(&job.request_id)) {
                Some(RequestClass::File(key)) => Some(*key),
                _ => None,
            }
        }
    };
    if let Some(session) = key.and_then(|key| state.sessions.get_mut(&key)) {
        let record = AccessRecord::new(open.access.clone(), AccessOutcome::Refused(by));
        access::add(session, AccessRecord { change: open.change.clone(), ..record }, now);
    }
}
