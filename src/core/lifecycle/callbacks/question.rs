//! The question about a file or command, and the effect of its answer.
//!
//! `requests` manages the queue of questions, `model::policy` decides whether to ask.

use std::time::Instant;

use crate::model::{
    Access, AccessOutcome, AccessQuestion, AccessRecord, Allowance, AllowedBy, AskReason, ConnId, Decider,
    Facts, FileJob, Grant, GrantScope, PermissionKind, PermissionOption, RefusedBy, RequestId, Response,
    RpcError, SessionKey, WriteChange,
};

use super::super::{call, policy};
use super::{add_file, start};
use crate::core::session::access;
use crate::core::{AccessChoice, AccessRequest, AccessWork, Cx, RequestClass, State};

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
    AccessRequest { work, access, why, rule: None, change, call, grant, offers_all_commands, agent }
}

/// The question for the record. A choice that answers other questions too is a rule for those.
fn asked(open: &AccessRequest, choice: Option<AccessChoice>, by: Decider) -> AccessQuestion {
    let option = |(choice, name): (&AccessChoice, String)| {
        let (id, kind) = id_and_kind(*choice);
        PermissionOption { id: id.to_owned(), name, kind }
    };
    let options = open.choices().iter().zip(open.labels()).map(option).collect();
    let rule = open.rule.as_ref().map(|rule| format!(" Rule: {rule}")).unwrap_or_default();
    let reason = format!("{} {}{rule}", open.why.heading(&open.access), open.why.description());
    let chosen = choice.filter(|_| by == Decider::User).map(|choice| id_and_kind(choice).0.to_owned());
    AccessQuestion { reason, options, chosen, by }
}

fn id_and_kind(choice: AccessChoice) -> (&'static str, PermissionKind) {
    match choice {
        AccessChoice::Once => ("once", PermissionKind::AllowOnce),
        AccessChoice::Longer(GrantScope::Session) => ("session", PermissionKind::AllowAlways),
        AccessChoice::Longer(GrantScope::Folder) => ("folder", PermissionKind::AllowAlways),
        AccessChoice::AllCommands => ("all_commands", PermissionKind::AllowAlways),
        AccessChoice::Refuse => ("reject", PermissionKind::RejectOnce),
    }
}

/// Applies the user's answer about a file or command.
pub(in crate::core) fn on_answered(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    open: &AccessRequest,
    choice: AccessChoice,
    by: Decider,
    cx: &mut Cx,
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
    let question = asked(open, Some(choice), by);
    let allowed = match choice {
        AccessChoice::Once => AllowedBy::You.into(),
        AccessChoice::Longer(scope) => {
            if let Some(grant) = &open.grant {
                policy::add_grant(state, conn, key, grant.clone(), scope, cx);
            }
            open.grant.as_ref().map_or(AllowedBy::You.into(), |grant| grant.allowance(scope))
        }
        AccessChoice::AllCommands => {
            policy::add_grant(state, conn, key, Grant::AnyCommand, GrantScope::Session, cx);
            Grant::AnyCommand.allowance(GrantScope::Session)
        }
        AccessChoice::Refuse => {
            note_refused(state, open, (RefusedBy::You, by), cx.now);
            let what = match &open.access {
                Access::Read { path } => format!("reading {}", path.display()),
                Access::Write { path } => format!("writing {}", path.display()),
                Access::Run(_) | Access::SignIn { .. } => "this command".to_owned(),
            };
            let error = RpcError::new(RpcError::INTERNAL, format!("the user did not allow {what}"));
            call::respond(state, conn, request_id, Response::Error(error), cx);
            return;
        }
    };
    // The rule that this answer makes decides later requests.
    let rule = allowed.rule.filter(|_| by == Decider::Rule);
    let allowed = Allowance { by: allowed.by, rule, question: Some(Box::new(question)) };
    match &open.work {
        AccessWork::File(job) => add_file(state, FileJob { allowed: Some(allowed), ..job.clone() }, cx),
        AccessWork::Run(key, command) => {
            // All commands in the session's folders, except where a link leads out of them.
            let is_bound = choice == AccessChoice::AllCommands;
            start(state, (conn, request_id), *key, command.clone(), allowed, is_bound, cx);
        }
    }
}

/// Adds a refused access to the transcript.
pub(in crate::core) fn note_refused(
    state: &mut State,
    open: &AccessRequest,
    (refused, by): (RefusedBy, Decider),
    now: Instant,
) {
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
        let record = AccessRecord::new(open.access.clone(), AccessOutcome::Refused(refused));
        let chosen = (refused == RefusedBy::You).then_some(AccessChoice::Refuse);
        let question = Some(Box::new(asked(open, chosen, by)));
        access::add(session, AccessRecord { change: open.change.clone(), question, ..record }, now);
    }
}

/// Refuses what a rule denies, and adds it to the transcript with the rule.
pub(super) fn refuse_by_rule(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    access: Access,
    rule: Option<String>,
    cx: &mut Cx,
) {
    let named = rule.as_ref().map(|rule| format!(": {rule}")).unwrap_or_default();
    let error = format!("{}{named}", RefusedBy::Rule.description());
    if let Some(session) = state.sessions.get_mut(&key) {
        let record = AccessRecord::new(access, AccessOutcome::Refused(RefusedBy::Rule));
        access::add(session, AccessRecord { rule, ..record }, cx.now);
    }
    call::respond(state, conn, request_id, Response::Error(RpcError::new(RpcError::INTERNAL, error)), cx);
}
