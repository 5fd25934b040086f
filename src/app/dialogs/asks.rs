//! Requests of the agent with a few answers: permissions, files and commands, pages to visit.

use std::time::Instant;

use crate::app::ViewCommand;
use crate::app::lifecycle::operations::{self, ElicitationOutcome};
use crate::app::{
    AccessChoice, Effect, FormState, ItemBody, Modal, OpenRequest, OpenRequestKind, RequestView, SeenCall,
    State, URL_OPTIONS,
};
use crate::model::{Action, ElicitationMode, PermissionKind};

use super::{first_ask, inspect_url, moved, say, shown_ask, stack};

/// Resets `state.ask_view` when another request (or none) is at the front of the active session.
/// Does nothing if the view already belongs to that request, so the input of a form is kept.
pub fn on_ask_shown(state: &mut State, now: Instant) {
    let front = shown_ask(state).map(|(_, open)| open.ask);
    let is_in_list = matches!(state.modals.last(), Some(Modal::Attention(_)));
    if front.is_some() && state.ask_view.ask == front {
        if state.ask_view.is_in_list != is_in_list {
            // The request is shown again, in another place.
            state.ask_view.is_in_list = is_in_list;
            state.ask_view.shown_at = None;
        }
        return;
    }
    let fresh = shown_ask(state).map(|(_, open)| fresh_view(open, now)).unwrap_or_default();
    let left = std::mem::replace(&mut state.ask_view, RequestView { is_in_list, ..fresh });
    keep_form(state, left);
}

/// Resets the selection, the grace period and earlier answers if the content of the tool call in question changes.
pub fn follow_call(state: &mut State, now: Instant) {
    let Some((key, open)) = shown_ask(state) else { return };
    let OpenRequestKind::Permission { tool, .. } = open.kind else { return };
    let Some(item) = state.sessions.get(&key).and_then(|session| session.transcript.get(tool)) else {
        return;
    };
    let ItemBody::Tool(call) = &item.body else { return };
    let seen = state.ask_view.seen.as_deref();
    if seen.is_some_and(|seen| seen.rev == item.rev) {
        return;
    }
    let has_changed = seen.is_some_and(|seen| !seen.asks_the_same(call));
    let seen = SeenCall { rev: item.rev, call: call.as_ref().clone() };
    let marked = fresh_view(open, now).selected;
    state.ask_view.seen = Some(Box::new(seen));
    if has_changed {
        state.ask_view.has_changed = true;
        state.ask_view.selected = marked;
        state.ask_view.shown_at = Some(now);
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
        let mut asks = state.sessions.values().flat_map(|session| &session.asks);
        asks.any(|open| Some(open.ask) == view.ask)
    };
    let mut forms: Vec<RequestView> =
        state.user.left_forms.iter().filter(|view| is_open(view)).cloned().collect();
    if let Some(place) = forms.iter().position(|view| view.ask == state.ask_view.ask) {
        let known = forms.remove(place);
        state.ask_view = RequestView { shown_at: state.ask_view.shown_at, ..known };
    }
    state.user.left_forms = forms;
}

/// Handles the keys of requests with several answers: permissions, files and commands.
pub fn on_options(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let Some((key, open)) = shown_ask(state) else { return false };
    let ask = open.ask;
    let count = match &open.kind {
        OpenRequestKind::Permission { request, .. } => request.options.len(),
        OpenRequestKind::Access(open) => open.choices().len(),
        OpenRequestKind::Elicitation(_) => return false,
    };
    let chosen = match action {
        Action::Choose(place) => usize::from(place).checked_sub(1),
        Action::Accept => Some(state.ask_view.selected),
        Action::Yes => allow_once(&open.kind),
        Action::No => {
            operations::answer_ask(state, key, ask, None, now, fx);
            return true;
        }
        _ => return move_mark(state, action, count, fx),
    };
    let is_ambiguous = |place: usize| match shown_ask(state).map(|(_, open)| &open.kind) {
        Some(OpenRequestKind::Permission { request, .. }) => request.is_ambiguous(place),
        _ => false,
    };
    match chosen.filter(|place| *place < count) {
        Some(place) if is_ambiguous(place) => {
            say(state, "This option cannot be sent: duplicate id.", fx);
        }
        Some(place) => operations::answer_ask(state, key, ask, Some(place), now, fx),
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
            let is_once = |place: &usize| {
                let option = request.options.get(*place);
                option.is_some_and(|option| option.kind == PermissionKind::AllowOnce)
                    && !request.is_ambiguous(*place)
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
    let place = match action {
        Action::Choose(place) => usize::from(place).checked_sub(1),
        Action::Accept => Some(state.ask_view.selected),
        Action::Yes => Some(0),
        Action::No | Action::Decline => Some(1),
        _ => return move_mark(state, action, URL_OPTIONS.len(), fx),
    };
    match place {
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
    match first_ask(state).map(|open| &open.kind) {
        Some(OpenRequestKind::Permission { .. } | OpenRequestKind::Access(_)) => {
            operations::answer_first_ask(state, state.active, None, now, fx);
        }
        Some(OpenRequestKind::Elicitation(_)) => {
            operations::answer_elicitation(state, state.active, ElicitationOutcome::Cancel, now, fx);
        }
        None => {}
    }
}

fn fresh_view(open: &OpenRequest, now: Instant) -> RequestView {
    let mut view = RequestView { ask: Some(open.ask), shown_at: Some(now), ..RequestView::default() };
    match &open.kind {
        // If all options are permanent, none is selected, so Enter alone does nothing.
        OpenRequestKind::Permission { request, .. } => {
            view.selected = request.first_marked().unwrap_or(request.options.len());
        }
        // The option that rejects.
        OpenRequestKind::Access(open) => view.selected = open.choices().len().saturating_sub(1),
        OpenRequestKind::Elicitation(ask) => {
            if let ElicitationMode::Form { fields, .. } = &ask.mode {
                view.form = Some(FormState::new(fields));
            }
        }
    }
    view
}

/// Moves the selection among the answers, or scrolls the content.
fn move_mark(state: &mut State, action: Action, count: usize, fx: &mut Vec<Effect>) -> bool {
    let selected = state.ask_view.selected;
    state.ask_view.selected = match action {
        Action::Up | Action::Left | Action::PreviousField => moved(selected.min(count), -1, count),
        Action::Down | Action::Right | Action::NextField => moved(selected, 1, count),
        Action::First => 0,
        Action::Last => count.saturating_sub(1),
        Action::Mark(place) if usize::from(place) < count => usize::from(place),
        Action::FullScreen => {
            state.ask_view.is_full_screen = !state.ask_view.is_full_screen;
            selected
        }
        Action::InspectItem => {
            let tool = match shown_ask(state).map(|(_, open)| &open.kind) {
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
    match first_ask(state).map(|open| &open.kind) {
        Some(OpenRequestKind::Elicitation(ask)) => match &ask.mode {
            ElicitationMode::Url { url, .. } => inspect_url(url).can_open,
            ElicitationMode::Form { .. } => false,
        },
        _ => false,
    }
}
