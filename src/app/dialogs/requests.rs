//! Requests of the agent with a few answers: permissions, files and commands, pages to visit.

use std::time::Instant;

use crate::app::ViewCommand;
use crate::app::lifecycle::operations::{self, ElicitationOutcome};
use crate::app::{
    AccessChoice, Effect, FormState, ItemBody, Modal, OpenRequest, OpenRequestKind, RequestView, SeenCall,
    State, URL_OPTIONS,
};
use crate::model::{Action, ElicitationMode, PermissionKind};

use super::{first_request, inspect_url, moved, say, shown_request, stack};

/// Resets `state.request_view` when another request (or none) is at the front of the active session.
/// Does nothing if the view already belongs to that request, so the input of a form is kept.
pub fn on_request_shown(state: &mut State, now: Instant) {
    let front = shown_request(state).map(|(_, open)| open.request_id);
    let is_in_list = matches!(state.modals.last(), Some(Modal::Attention(_)));
    if front.is_some() && state.request_view.request_id == front {
        if state.request_view.is_in_list != is_in_list {
            // The request is shown again, in another place.
            state.request_view.is_in_list = is_in_list;
            state.request_view.shown_at = None;
        }
        return;
    }
    let fresh = shown_request(state).map(|(_, open)| fresh_view(open, now)).unwrap_or_default();
    let left = std::mem::replace(&mut state.request_view, RequestView { is_in_list, ..fresh });
    keep_form(state, left);
}

/// Resets the selection, the grace period and earlier answers if the content of the tool call in question changes.
pub fn follow_call(state: &mut State, now: Instant) {
    let Some((key, open)) = shown_request(state) else { return };
    let OpenRequestKind::Permission { tool, .. } = open.kind else { return };
    let Some(item) = state.sessions.get(&key).and_then(|session| session.transcript.get(tool)) else {
        return;
    };
    let ItemBody::Tool(call) = &item.body else { return };
    let seen = state.request_view.seen.as_deref();
    if seen.is_some_and(|seen| seen.rev == item.rev) {
        return;
    }
    let has_changed = seen.is_some_and(|seen| !seen.asks_the_same(call));
    let seen = SeenCall { rev: item.rev, call: call.as_ref().clone() };
    let marked = fresh_view(open, now).selected;
    state.request_view.seen = Some(Box::new(seen));
    if has_changed {
        state.request_view.has_changed = true;
        state.request_view.selected = marked;
        state.request_view.shown_at = Some(now);
        state.user.unlocked = None;
    }
}

/// Saves the input of a form when another session is shown, to restore it later.
fn keep_form(state: &mut State, left: RequestView) {
    if left.form.is_some() {
        state.user.left_forms.push(left);
    }
    if state.user.left_forms.is_empty() {
        return;
    }
    let is_open = |view: &RequestView| {
        let mut requests = state.sessions.values().flat_map(|session| &session.requests);
        requests.any(|open| Some(open.request_id) == view.request_id)
    };
    let mut forms: Vec<RequestView> =
        state.user.left_forms.iter().filter(|view| is_open(view)).cloned().collect();
    if let Some(position) = forms.iter().position(|view| view.request_id == state.request_view.request_id) {
        let known = forms.remove(position);
        state.request_view = RequestView { shown_at: state.request_view.shown_at, ..known };
    }
    state.user.left_forms = forms;
}

/// Handles the keys of requests with several answers: permissions, files and commands.
pub fn on_options(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let Some((key, open)) = shown_request(state) else { return false };
    let request_id = open.request_id;
    let count = match &open.kind {
        OpenRequestKind::Permission { request, .. } => request.options.len(),
        OpenRequestKind::Access(open) => open.choices().len(),
        OpenRequestKind::Elicitation(_) => return false,
    };
    let chosen = match action {
        Action::Choose(position) => usize::from(position).checked_sub(1),
        Action::Accept => Some(state.request_view.selected),
        Action::Yes => allow_once(&open.kind),
        Action::No => {
            operations::answer_request(state, key, request_id, None, now, fx);
            return true;
        }
        _ => return move_mark(state, action, count, fx),
    };
    let is_ambiguous = |position: usize| match shown_request(state).map(|(_, open)| &open.kind) {
        Some(OpenRequestKind::Permission { request, .. }) => request.is_ambiguous(position),
        _ => false,
    };
    match chosen.filter(|position| *position < count) {
        Some(position) if is_ambiguous(position) => {
            say(state, "This option cannot be sent: duplicate id.", fx);
        }
        Some(position) => operations::answer_request(state, key, request_id, Some(position), now, fx),
        None if count == 0 => {
            say(state, "The agent offers no options. The request can only be rejected.", fx);
        }
        None if action == Action::Yes => {
            say(state, "No option allows this once. Choose an option by its number.", fx);
        }
        None if action == Action::Accept => say(state, "Select an answer first, or type its number.", fx),
        None => {}
    }
    true
}

/// The option that allows the request once.
fn allow_once(kind: &OpenRequestKind) -> Option<usize> {
    match kind {
        OpenRequestKind::Permission { request, .. } => {
            let is_once = |position: &usize| {
                let option = request.options.get(*position);
                option.is_some_and(|option| option.kind == PermissionKind::AllowOnce)
                    && !request.is_ambiguous(*position)
            };
            (0..request.options.len()).find(is_once)
        }
        OpenRequestKind::Access(open) => {
            open.choices().iter().position(|choice| *choice == AccessChoice::Once)
        }
        OpenRequestKind::Elicitation(_) => None,
    }
}

/// Handles the keys of a request to open a page. It is opened only after the user confirms.
pub fn on_url(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let position = match action {
        Action::Choose(position) => usize::from(position).checked_sub(1),
        Action::Accept => Some(state.request_view.selected),
        Action::Yes => Some(0),
        Action::No | Action::Decline => Some(1),
        _ => return move_mark(state, action, URL_OPTIONS.len(), fx),
    };
    match position {
        Some(0) if can_open(state) => {
            operations::answer_elicitation(state, state.active, ElicitationOutcome::Accept(None), now, fx);
        }
        Some(0) => say(state, "This address cannot be opened safely. Decline, or copy it manually.", fx),
        Some(1) => operations::answer_elicitation(state, state.active, ElicitationOutcome::Decline, now, fx),
        _ => {}
    }
    true
}

/// Rejects the shown request once, with the option that has the least effect on later requests.
pub fn reject(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    match first_request(state).map(|open| &open.kind) {
        Some(OpenRequestKind::Permission { .. } | OpenRequestKind::Access(_)) => {
            operations::answer_first_request(state, state.active, None, now, fx);
        }
        Some(OpenRequestKind::Elicitation(_)) => {
            operations::answer_elicitation(state, state.active, ElicitationOutcome::Cancel, now, fx);
        }
        None => {}
    }
}

fn fresh_view(open: &OpenRequest, now: Instant) -> RequestView {
    let mut view =
        RequestView { request_id: Some(open.request_id), shown_at: Some(now), ..RequestView::default() };
    match &open.kind {
        // If all options are permanent, none is selected, so Enter alone does nothing.
        OpenRequestKind::Permission { request, .. } => {
            view.selected = request.first_marked().unwrap_or(request.options.len());
        }
        // The option that rejects.
        OpenRequestKind::Access(open) => view.selected = open.choices().len().saturating_sub(1),
        OpenRequestKind::Elicitation(elicitation) => {
            if let ElicitationMode::Form { fields, .. } = &elicitation.mode {
                view.form = Some(FormState::new(fields));
            }
        }
    }
    view
}

/// Moves the selection among the answers, or scrolls the content.
fn move_mark(state: &mut State, action: Action, count: usize, fx: &mut Vec<Effect>) -> bool {
    let selected = state.request_view.selected;
    state.request_view.selected = match action {
        Action::Up | Action::Left | Action::PreviousField => moved(selected.min(count), -1, count),
        Action::Down | Action::Right | Action::NextField => moved(selected, 1, count),
        Action::First => 0,
        Action::Last => count.saturating_sub(1),
        Action::Mark(position) if usize::from(position) < count => usize::from(position),
        Action::FullScreen => {
            state.request_view.is_full_screen = !state.request_view.is_full_screen;
            selected
        }
        Action::InspectItem => {
            let tool = match shown_request(state).map(|(_, open)| &open.kind) {
                Some(OpenRequestKind::Permission { tool, .. }) => Some(*tool),
                _ => None,
            };
            state.modals.extend(tool.map(Modal::Inspect));
            selected
        }
        Action::PageUp | Action::PageDown => {
            let pages = if action == Action::PageUp { -1 } else { 1 };
            fx.push(Effect::View(ViewCommand::ScrollDialogPages(pages)));
            selected
        }
        Action::Scroll(lines) => {
            stack::scroll(i32::from(lines), fx);
            selected
        }
        _ => return false,
    };
    true
}

fn can_open(state: &State) -> bool {
    match first_request(state).map(|open| &open.kind) {
        Some(OpenRequestKind::Elicitation(request)) => match &request.mode {
            ElicitationMode::Url { url, .. } => inspect_url(url).can_open,
            ElicitationMode::Form { .. } => false,
        },
        _ => false,
    }
}
