//! Shows and records how a request of the agent was decided.

use std::time::Instant;

use crate::core::lifecycle::callbacks;
use crate::core::session::{record, tools};
use crate::core::state::lookup;
use crate::core::{Decision, ItemBody, OpenRequestKind, Session, State};
use crate::model::{
    Decider, ElicitationRequest, PermissionOption, PermissionRequest, Record, RefusedBy, SessionKey,
};

pub(super) fn note_decision(
    state: &mut State,
    key: SessionKey,
    kind: &OpenRequestKind,
    decision: &Decision,
    now: Instant,
) {
    let (request, tool) = match kind {
        OpenRequestKind::Permission { request, tool } => (request, tool),
        OpenRequestKind::Access(open) => {
            if let Decision::Cancelled(by) = decision {
                callbacks::note_refused(state, open, (RefusedBy::Cancelled, *by), now);
            }
            return;
        }
        OpenRequestKind::Elicitation(request) => {
            if let (Decision::Cancelled(by), Some(session)) = (decision, state.sessions.get_mut(&key)) {
                note_answer(session, request, format!("not answered: {}", by.reason()), *by);
            }
            return;
        }
    };
    // The subagent's call, of which `tool` is a copy.
    let conn = state.sessions.get(&key).and_then(|session| session.conn);
    let child = conn
        .zip(request.session.as_ref())
        .and_then(|(conn, id)| lookup::session_by_id(state, conn, id))
        .filter(|child| *child != key);
    if let Some(session) = state.sessions.get_mut(&key) {
        tools::decide(session, *tool, decision, now);
        // A copy is not recorded.
        if child.is_none() {
            record::note(session, decided(request, decision));
        }
    }
    if let Some(session) = child.and_then(|child| state.sessions.get_mut(&child))
        && let Some(position) = session.tool_by_id(&request.tool.id)
    {
        tools::decide(session, position, decision, now);
        record::note(session, decided(request, decision));
    }
}

fn decided(request: &PermissionRequest, decision: &Decision) -> Record {
    let tool = request.tool.id.clone();
    match decision {
        Decision::Chosen { name, kind, is_allow, rule } => {
            let is_it = |option: &&PermissionOption| option.name == *name && Some(option.kind) == *kind;
            Record::Decided {
                tool,
                option: Some(name.clone()),
                option_id: request.options.iter().find(is_it).map(|option| option.id.clone()),
                kind: *kind,
                is_allow: *is_allow,
                by: if rule.is_some() { Decider::Policy } else { Decider::User },
                rule: rule.clone(),
            }
        }
        Decision::Cancelled(by) => Record::Decided {
            tool,
            option: None,
            option_id: None,
            kind: None,
            is_allow: false,
            by: *by,
            rule: None,
        },
    }
}

pub(super) fn note_answer(session: &mut Session, request: &ElicitationRequest, answer: String, by: Decider) {
    let question = request.message.clone();
    let body = ItemBody::Answered { question: question.clone(), answer: answer.clone(), by };
    record::note(
        session,
        Record::Answered { question, answer, request: Some(Box::new(request.to_record())), by },
    );
    session.transcript.push(session.turn_count, body);
}
