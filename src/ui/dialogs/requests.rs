//! Requests of the agent with a few answers: permissions, files and commands, pages to visit.

use std::path::Path;

use crate::core::{Cx, ItemBody, OpenRequest, OpenRequestKind, QuestionId, ToolCall, UserAnswer};
use crate::model::{Action, ElicitationMode, Plan, Raw, RequestId, SessionKey, ToolInput, input_keys};
use crate::ui::App;

use super::fields::FormState;
use super::inspect::InspectPage;
use super::layer::Flow;
use super::list::moved;
use super::scroll;

/// The view of the shown request; reset when another one is shown.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RequestView {
    /// The selected option (permission, outside file) or field (form).
    pub selected: usize,
    pub is_full_screen: bool,
    /// Increases when what is asked changes.
    pub revision: u64,
    pub form: Option<FormState>,
    /// The tool call as shown; a change of what is asked makes a new revision.
    pub seen: Option<Box<SeenCall>>,
    /// Whether the call changed while it was shown.
    pub has_changed: bool,
    /// The request of this view; `dialogs::refresh` resets it for another one.
    pub request_id: Option<RequestId>,
}

/// A tool call and the plans as shown with its permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCall {
    pub rev: u32,
    pub call: ToolCall,
    pub plans: Vec<Plan>,
}

impl SeenCall {
    /// Whether another state of the call requests the same: ignores its progress, and whether the session's folder is named,
    /// where the call happens in any case.
    pub fn asks_the_same(&self, other: &ToolCall, folder: &Path) -> bool {
        let call = &self.call;
        let input = |call: &ToolCall| ToolInput {
            cwd: call.input.cwd.clone().filter(|cwd| cwd != folder),
            ..call.input.clone()
        };
        call.kind == other.kind
            && call.title == other.title
            && call.name == other.name
            && input(call) == input(other)
            && without_folder(call.raw_input.as_ref(), folder)
                == without_folder(other.raw_input.as_ref(), folder)
            && call.content == other.content
            && call.locations == other.locations
    }
}

/// The input without the keys that name the folder. It is compact JSON, in which no string contains a plain quote.
fn without_folder(input: Option<&Raw>, folder: &Path) -> Option<String> {
    let mut input = input?.0.to_string();
    for key in input_keys::CWD {
        let named = format!("\"{key}\":\"{}\"", folder.display());
        for part in [format!(",{named}"), format!("{named},"), named] {
            input = input.replace(&part, "");
        }
    }
    Some(input)
}

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
        super::answer(app, QuestionId::Agent(id), answer, cx);
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
