//! Requests of the agent with a few answers: permissions, files and commands, pages to visit.

use super::notice::notify;
use crate::app::dialogs::modal::moved;
use crate::app::lifecycle::operations::{self, ElicitationOutcome};
use crate::app::state::lookup::first_request;
use crate::app::{
    App, Cx, FormState, ItemBody, Modal, OpenRequest, OpenRequestKind, RequestView, SeenCall, State,
    URL_OPTIONS,
};
use crate::model::{Action, ElicitationMode};

use super::stack;
use crate::app::state::url::inspect_url;

/// Resets `state.request_view` when another request (or none) is at the front of the active session.
/// Does nothing if the view already belongs to that request, so the input of a form is kept.
pub fn on_request_shown(app: &mut App) {
    let front = app.shown_request().map(|(_, open)| open.request_id);
    if front.is_some() && app.request_view.request_id == front {
        return;
    }
    let fresh = app.shown_request().map(|(_, open)| fresh_view(open)).unwrap_or_default();
    let left = std::mem::replace(&mut app.request_view, fresh);
    keep_form(app, left);
}

/// Resets the selection and makes a new revision if the content of the tool call in question changes.
pub fn follow_call(app: &mut App) {
    let Some((key, open)) = app.shown_request() else { return };
    let OpenRequestKind::Permission { tool, .. } = open.kind else { return };
    let Some(session) = app.state.sessions.get(&key) else { return };
    let Some(item) = session.transcript.get(tool) else { return };
    let ItemBody::Tool(call) = &item.body else { return };
    let plans = session.asked_plans(call);
    let seen = app.request_view.seen.as_deref();
    if seen.is_some_and(|seen| seen.rev == item.rev && seen.plans == plans) {
        return;
    }
    let has_changed =
        seen.is_some_and(|seen| !seen.asks_the_same(call, session.workspace.folder()) || seen.plans != plans);
    let seen = SeenCall { rev: item.rev, call: call.as_ref().clone(), plans: plans.to_vec() };
    let marked = fresh_view(open).selected;
    app.request_view.seen = Some(Box::new(seen));
    if has_changed {
        app.request_view.has_changed = true;
        app.request_view.selected = marked;
        app.request_view.revision += 1;
    }
}

/// Saves the input of a form when another session is shown, to restore it later.
fn keep_form(app: &mut App, left: RequestView) {
    if left.form.is_some() {
        app.user.left_forms.push(left);
    }
    if app.user.left_forms.is_empty() {
        return;
    }
    let is_open = |view: &RequestView| {
        let mut requests = app.state.sessions.values().flat_map(|session| &session.requests);
        requests.any(|open| Some(open.request_id) == view.request_id)
    };
    let mut forms: Vec<RequestView> =
        app.user.left_forms.iter().filter(|view| is_open(view)).cloned().collect();
    if let Some(position) = forms.iter().position(|view| view.request_id == app.request_view.request_id) {
        app.request_view = forms.remove(position);
    }
    app.user.left_forms = forms;
}

/// Handles the keys of requests with several answers, apart from those that answer.
pub fn on_options(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let active = app.state.active;
    let Some((_, open)) = app.shown_request() else { return false };
    let count = match &open.kind {
        OpenRequestKind::Permission { request, .. } => request.options.len(),
        OpenRequestKind::Access(open) => open.choices().len(),
        OpenRequestKind::Elicitation(_) => URL_OPTIONS.len(),
    };
    if action == Action::Decline && matches!(open.kind, OpenRequestKind::Elicitation(_)) {
        operations::answer_elicitation(&mut app.state, active, ElicitationOutcome::Decline, cx);
        return true;
    }
    move_mark(app, action, count, cx)
}

/// Gives the marked answer to the shown permission request, file or command.
pub fn answer(app: &mut App, cx: &mut Cx) {
    let position = app.request_view.selected;
    let Some((key, open)) = app.shown_request() else { return };
    let request_id = open.request_id;
    let (count, is_ambiguous) = match &open.kind {
        OpenRequestKind::Permission { request, .. } => {
            (request.options.len(), request.is_ambiguous(position))
        }
        OpenRequestKind::Access(open) => (open.choices().len(), false),
        OpenRequestKind::Elicitation(_) => return,
    };
    if count == 0 {
        notify(&mut app.state, "The agent offers no options. The request can only be rejected.", cx);
    } else if position >= count {
        notify(&mut app.state, "Select an answer first, or type its number.", cx);
    } else if is_ambiguous {
        notify(&mut app.state, "This option cannot be sent: duplicate id.", cx);
    } else {
        operations::answer_request(&mut app.state, key, request_id, Some(position), cx);
    }
}

/// Gives the marked answer to a request to open a page.
pub fn answer_url(app: &mut App, cx: &mut Cx) {
    let active = app.state.active;
    match app.request_view.selected {
        0 if can_open(&app.state) => {
            operations::answer_elicitation(&mut app.state, active, ElicitationOutcome::Accept(None), cx);
        }
        0 => {
            notify(&mut app.state, "This address cannot be opened safely. Decline, or copy it manually.", cx);
        }
        _ => operations::answer_elicitation(&mut app.state, active, ElicitationOutcome::Decline, cx),
    }
}

/// Rejects the shown request once, with the option that has the least effect on later requests.
pub fn reject(state: &mut State, cx: &mut Cx) {
    match first_request(state).map(|open| &open.kind) {
        Some(OpenRequestKind::Permission { .. } | OpenRequestKind::Access(_)) => {
            operations::answer_first_request(state, state.active, None, cx);
        }
        Some(OpenRequestKind::Elicitation(_)) => {
            operations::answer_elicitation(state, state.active, ElicitationOutcome::Cancel, cx);
        }
        None => {}
    }
}

fn fresh_view(open: &OpenRequest) -> RequestView {
    let mut view = RequestView { request_id: Some(open.request_id), ..RequestView::default() };
    match &open.kind {
        // If all options are permanent, none is selected, so Enter alone does nothing.
        OpenRequestKind::Permission { request, .. } => {
            view.selected = request.first_marked().unwrap_or(request.options.len());
        }
        // The first answer allows this once.
        OpenRequestKind::Access(_) => {}
        OpenRequestKind::Elicitation(elicitation) => {
            if let ElicitationMode::Form { fields, .. } = &elicitation.mode {
                view.form = Some(FormState::new(fields));
            }
        }
    }
    view
}

/// Moves the selection among the answers, or scrolls the content.
fn move_mark(app: &mut App, action: Action, count: usize, cx: &mut Cx) -> bool {
    let selected = app.request_view.selected;
    app.request_view.selected = match action {
        Action::Up | Action::Left | Action::PreviousField => moved(selected.min(count), -1, count),
        Action::Down | Action::Right | Action::NextField => moved(selected, 1, count),
        Action::First => 0,
        Action::Last => count.saturating_sub(1),
        Action::Mark(position) if usize::from(position) < count => usize::from(position),
        Action::FullScreen => {
            app.request_view.is_full_screen = !app.request_view.is_full_screen;
            selected
        }
        Action::InspectItem => {
            let tool = match app.shown_request().map(|(_, open)| &open.kind) {
                Some(OpenRequestKind::Permission { tool, .. }) => Some(*tool),
                _ => None,
            };
            app.modals.extend(tool.map(Modal::Inspect));
            selected
        }
        _ => return stack::scroll_body(action, cx),
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
