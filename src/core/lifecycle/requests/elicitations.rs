//! Elicitations: forms and pages for the user.
//!
//! A record of one contains neither the value nor the default of a secret field.

use super::decisions::{note_answer, note_decision};
use super::{enqueue, is_cancelling, route, take};
use crate::core::lifecycle::call;
use crate::core::state::lookup;
use crate::core::state::question::NO_SUCH_ANSWER;
use crate::core::state::url::inspect_url;
use crate::core::{Cx, Decision, Effect, OpenRequest, OpenRequestKind, State, UserAnswer};
use crate::model::{
    ConnId, Decider, ElicitationMode, ElicitationRequest, FieldValue, FormField, RequestId, Response,
    SessionKey,
};

pub(super) fn on_elicitation(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    request: ElicitationRequest,
    cx: &mut Cx,
) {
    let key = route(state, conn, request.session.as_ref(), cx);
    let kind = OpenRequestKind::Elicitation(request);
    match key {
        Some(key) if !is_cancelling(state, key) => {
            enqueue(state, key, OpenRequest { conn, request_id, kind, since: cx.now }, cx);
        }
        _ => {
            if let Some(root) = key.map(|key| lookup::root_of(state, key)) {
                note_decision(state, root, &kind, &Decision::Cancelled(Decider::TurnCancelled), cx.now);
            }
            call::respond(state, conn, request_id, Response::ElicitationCancelled, cx);
        }
    }
}

/// The address of an elicitation was handled elsewhere.
pub(in crate::core) fn on_page_done(state: &mut State, conn: ConnId, id: &str, cx: &mut Cx) {
    let is_it = |open: &&OpenRequest| {
        open.conn == conn
            && matches!(&open.kind, OpenRequestKind::Elicitation(request)
                if matches!(&request.mode, ElicitationMode::Url { id: page, .. } if page == id))
    };
    let waiting =
        state.sessions.values().flat_map(|session| &session.requests).find(is_it).map(|open| open.request_id);
    if let Some(request_id) = waiting {
        // It was not confirmed here, so the response is not `accept`.
        if let Some((key, kind)) = take(state, conn, request_id) {
            note_decision(state, key, &kind, &Decision::Cancelled(Decider::Elsewhere), cx.now);
        }
        call::respond(state, conn, request_id, Response::ElicitationCancelled, cx);
        call::flash(state, "The page request was completed elsewhere.", cx);
    }
}

pub(super) fn answer_by_user(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    request: &ElicitationRequest,
    user: UserAnswer,
    cx: &mut Cx,
) -> Result<(), &'static str> {
    let (reply, shown) = match (user, &request.mode) {
        (UserAnswer::Values(values), ElicitationMode::Form { fields, .. }) => {
            let shown = values_text(fields, &values);
            (Response::ElicitationAccepted(Some(values)), shown)
        }
        (UserAnswer::Option(0), ElicitationMode::Url { url, .. }) => {
            if !inspect_url(url).can_open {
                return Err("This address cannot be opened safely. Decline, or copy it manually.");
            }
            cx.effects.push(Effect::OpenUrl(url.clone()));
            (Response::ElicitationAccepted(None), format!("opened {url}"))
        }
        (UserAnswer::Option(1), ElicitationMode::Url { .. }) | (UserAnswer::Decline, _) => {
            (Response::ElicitationDeclined, "declined".to_owned())
        }
        (UserAnswer::Dismiss, _) => (Response::ElicitationCancelled, "cancelled".to_owned()),
        (UserAnswer::Option(_) | UserAnswer::Values(_), _) => return Err(NO_SUCH_ANSWER),
    };
    take(state, conn, request_id);
    if let Some(session) = state.sessions.get_mut(&key) {
        note_answer(session, request, shown, Decider::User);
    }
    call::respond(state, conn, request_id, reply, cx);
    Ok(())
}

/// The submitted values for the transcript: a single value alone, several with their labels.
fn values_text(fields: &[FormField], values: &[(String, FieldValue)]) -> String {
    let said: Vec<String> = values
        .iter()
        .map(|(key, value)| {
            let field = fields.iter().find(|field| field.key == *key);
            let label = field.map_or(key, |field| &field.title);
            format!("{label}: {}", recorded_value(field, value))
        })
        .collect();
    match (values, said.as_slice()) {
        ([], _) => "accepted".to_owned(),
        ([(key, only)], _) => {
            format!("accepted: {}", recorded_value(fields.iter().find(|field| field.key == *key), only))
        }
        _ => format!("accepted: {}", said.join(", ")),
    }
}

/// A value for the record: a secret is not included.
fn recorded_value(field: Option<&FormField>, value: &FieldValue) -> String {
    if field.is_some_and(FormField::is_secret) { "answered".to_owned() } else { value_text(value) }
}

fn value_text(value: &FieldValue) -> String {
    match value {
        FieldValue::Text(text) => text.clone(),
        FieldValue::Texts(texts) => texts.join(", "),
        FieldValue::Integer(number) => number.to_string(),
        FieldValue::Number(number) => number.to_string(),
        FieldValue::Bool(true) => "yes".to_owned(),
        FieldValue::Bool(false) => "no".to_owned(),
    }
}
