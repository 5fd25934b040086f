//! Requests of the agent with a few answers: permissions, files and commands, pages to visit.

use crate::core::{Cx, ItemBody, OpenRequest, OpenRequestKind, QuestionId, UserAnswer};
use crate::model::{Action, SessionKey};
use crate::ui::App;

use super::inspect::InspectPage;
use super::layer::Flow;
use super::list::moved;
use super::request_view::{RequestView, SeenCall};
use super::{allow_rule, notice, scroll};

/// Resets `App::request_view` when another request (or none) is at the front of the active session.
/// Does nothing if the view already belongs to that request, so the input of a form is kept.
pub fn on_request_shown(app: &mut App) {
    let front = app.shown_request().map(|(_, open)| open.request_id);
    if front.is_some() && app.request_view.request_id == front {
        return;
    }
    let fresh = app.shown_request().map(|(_, open)| RequestView::new(open)).unwrap_or_default();
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
    let marked = RequestView::new(open).selected;
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
pub fn on_options(app: &mut App, action: Action, cx: &mut Cx) -> Flow {
    let Some((_, open)) = viewed(app) else { return Flow::Pass };
    let count = open.kind.answers().len();
    if action == Action::Decline && matches!(open.kind, OpenRequestKind::Elicitation(_)) {
        answer(app, UserAnswer::Decline, cx);
        return Flow::Stay;
    }
    move_mark(app, action, count, cx)
}

/// The request of `App::request_view`, with its session.
fn viewed(app: &App) -> Option<(SessionKey, &OpenRequest)> {
    app.state.open_request(app.request_view.request_id?)
}

/// Answers the shown request.
pub fn answer(app: &mut App, answer: UserAnswer, cx: &mut Cx) {
    if let Some(id) = viewed(app).map(|(_, open)| open.request_id) {
        notice::answer(&mut app.state, QuestionId::Agent(id), answer, cx);
    }
}

/// Moves the selection among the answers, or scrolls the content.
fn move_mark(app: &mut App, action: Action, count: usize, cx: &mut Cx) -> Flow {
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
        Action::AllowByRule => {
            allow_rule::open(app, cx);
            selected
        }
        Action::InspectItem => {
            if let Some((session, open)) = viewed(app)
                && let OpenRequestKind::Permission { tool, .. } = open.kind
            {
                app.layers.push(InspectPage { session, item: tool });
            }
            selected
        }
        _ => return scroll::scroll_body(action, cx),
    };
    Flow::Stay
}
