//! The question on top that the user did not open, and what keys, clicks and pastes mean for it.
//!
//! [`crate::guard`] decides when an answer counts; this file tells it what is asked, and carries out its verdict.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use super::notice::notify;
use crate::config::keymap::Context;
use crate::core::state::FlashEnd;
use crate::core::{
    AccessChoice, Cx, Effect, ItemBody, OpenRequest, OpenRequestKind, Question, State, ToolCall, URL_OPTIONS,
    UserAnswer, ViewCommand,
};
use crate::guard::{self, Answer, Effect as Reach, Facts, Input, Refusal, Verdict};
use crate::model::{Access, Action, ElicitationMode, PermissionKind, SessionKey, ToolKind};
use crate::ui::App;

use super::choice::QuestionDialog;
use super::inbox::InboxDialog;
use super::layer::{Layer, with_top};
use super::{base_focus, focus, form, on_draft, reason, requests};

const NOT_SHOWN_LONG_ENOUGH: &str = "Not answered: wait half a second after the question appears. Try again.";

/// Whether the top layer gets the keys. Otherwise it is a question of somebody else, and they go to the prompt.
pub fn takes_input(app: &App) -> bool {
    app.guard.question().is_none() || has_keys(app)
}

/// Whether a question is shown and the keys go elsewhere: text stands there, or the user moved them.
pub fn is_beside_draft(app: &App) -> bool {
    !takes_input(app)
}

/// Whether the shown request hides the prompt: never while the prompt gets the keys.
pub fn is_full_screen(app: &App) -> bool {
    app.request_view.is_full_screen && takes_input(app)
}

/// Whether keys go to a question that the user did not open.
pub fn has_keys(app: &App) -> bool {
    app.guard.has_keys(facts(app))
}

/// Whether a question is on top whose text fields do not get keys yet.
pub fn is_closed(app: &App) -> bool {
    has_keys(app) && !app.guard.is_entered()
}

pub fn takes_answers(app: &App, now: Instant) -> bool {
    app.guard.question().is_none() || app.guard.is_open(now) && !app.guard.lacks_end(facts(app), now)
}

/// When the answers of the shown question count without further input; `None` or a time in the past: now, or not before
/// another frame.
pub fn takes_answers_from(app: &App) -> Option<Instant> {
    app.guard.opens_at(facts(app))
}

/// Whether the answers of the shown question count once its end was shown.
pub fn waits_for_end(app: &App, now: Instant) -> bool {
    app.guard.is_open(now) && app.guard.lacks_end(facts(app), now)
}

/// Tells the guard which question is on top. Called after every change of the state.
pub fn refresh(app: &mut App) {
    let asked = asked(app);
    let is_other = asked.map(|asked| asked.id) != app.guard.question().map(|asked| asked.id);
    let left = app.guard.ask(asked);
    if std::mem::take(&mut app.user.enters_question) {
        app.guard.enter();
    }
    if is_other {
        app.user.first_mark = marked(app).unwrap_or(0);
    }
    if !left.is_empty() {
        let key = app.user.asked_in;
        if let Some(session) = app.state.sessions.get_mut(&key) {
            session.draft.push_str(&left);
            app.user.unshown.push_str(&left);
        }
    }
    app.user.asked_in = app.state.active;
}

pub fn show_left_keys(app: &mut App, cx: &mut Cx) {
    let left = std::mem::take(&mut app.user.unshown);
    let Some(session) = app.state.active_session().filter(|_| !left.is_empty()) else { return };
    if session.draft.ends_with(&left) {
        let start = session.draft.len() - left.len();
        cx.effects.push(Effect::View(ViewCommand::ReplaceInDraft(start..start, left)));
    }
}

/// The question on top, unless the user opened it.
fn asked(app: &App) -> Option<guard::Question> {
    let depth = app.layers.len();
    if !shows_request(app) {
        let id = app.layers.last()?.unasked_question(&app.state)?;
        return Some(guard::Question { id: hash((depth, id)), revision: 0 });
    }
    if inbox(app).is_some_and(|inbox| !inbox.is_whole) {
        return None;
    }
    let (key, open) = app.shown_request()?;
    let id = hash((depth, key, open.conn, open.request_id));
    Some(guard::Question { id, revision: app.request_view.revision })
}

/// The inbox, if it is on top.
fn inbox(app: &App) -> Option<&InboxDialog> {
    app.layers.top()
}

/// Whether the keys of dialogs go to a request of an agent.
fn shows_request(app: &App) -> bool {
    app.layers.is_empty() || inbox(app).is_some()
}

fn is_list(app: &App) -> bool {
    app.layers.last().and_then(Layer::list).is_some()
}

/// The question of parlor that is on top.
fn own_question(app: &App) -> Option<(&QuestionDialog, Option<&Question>)> {
    let dialog = app.layers.top::<QuestionDialog>()?;
    Some((dialog, app.state.question(dialog.id)))
}

fn hash(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// What the guard has to know of the screen.
fn facts(app: &App) -> Facts {
    // The user opened the inbox, so its requests have the keys.
    let is_in_inbox = inbox(app).is_some();
    let has_draft = app.state.active_session().is_some_and(|session| !session.draft.is_empty());
    Facts {
        has_text: !is_in_inbox && (has_draft || base_focus(app) != Context::Main),
        must_end: runs_something(app),
        has_fields: focus(app) == Context::Form || is_list(app),
    }
}

/// Whether the question is about a program, so that its end has to be seen. Also true for what cannot be recognized.
fn runs_something(app: &App) -> bool {
    if let Some((_, question)) = own_question(app) {
        return question.is_none_or(Question::runs_something);
    }
    if !shows_request(app) {
        return false;
    }
    app.shown_request().is_some_and(|(key, open)| match &open.kind {
        OpenRequestKind::Permission { .. } => call_of(&app.state, key, open).is_none_or(|call| {
            matches!(call.kind, ToolKind::Execute | ToolKind::Other) || call.input.command.is_some()
        }),
        OpenRequestKind::Access(request) => {
            matches!(request.access, Access::Run(_) | Access::SignIn { .. })
        }
        OpenRequestKind::Elicitation(request) => matches!(request.mode, ElicitationMode::Url { .. }),
    })
}

fn call_of<'s>(state: &'s State, key: SessionKey, open: &OpenRequest) -> Option<&'s ToolCall> {
    let OpenRequestKind::Permission { tool, .. } = open.kind else { return None };
    match &state.sessions.get(&key)?.transcript.get(tool)?.body {
        ItemBody::Tool(call) => Some(call),
        _ => None,
    }
}

fn answer_at(app: &App, position: usize) -> Option<Answer> {
    let effect = if let Some((_, question)) = own_question(app) {
        question?.answers.get(position)?.consequence.reach()
    } else if let Some(list) = app.layers.last().and_then(Layer::list) {
        list.row(position).map(|_| Reach::Once)?
    } else {
        reach_of_request(app, position)?
    };
    Some(Answer { position, effect })
}

fn reach_of_request(app: &App, position: usize) -> Option<Reach> {
    Some(match &app.shown_request()?.1.kind {
        OpenRequestKind::Permission { request, .. } => match request.options.get(position)?.kind {
            PermissionKind::AllowOnce => Reach::Once,
            PermissionKind::AllowAlways | PermissionKind::RejectAlways => Reach::Lasting,
            PermissionKind::RejectOnce => Reach::Reject,
        },
        OpenRequestKind::Access(open) => match open.choices().get(position)? {
            AccessChoice::Once => Reach::Once,
            AccessChoice::Longer(_) | AccessChoice::AllCommands => Reach::Lasting,
            AccessChoice::Refuse => Reach::Reject,
        },
        OpenRequestKind::Elicitation(request) => match request.mode {
            ElicitationMode::Url { .. } if position == 0 => Reach::Once,
            ElicitationMode::Url { .. } if position < URL_OPTIONS.len() => Reach::Reject,
            ElicitationMode::Form { .. } if position < choices_of_form(app)? => Reach::Once,
            _ => return None,
        },
    })
}

/// The number of answers of a form that is a single question, while its comment does not have the focus.
fn choices_of_form(app: &App) -> Option<usize> {
    let form = app.request_view.form.as_ref()?;
    let is_question = form.is_one_question() && !form.is_review && app.request_view.selected == 0;
    form.fields.first().filter(|_| is_question).map(super::fields::FieldState::choice_count)
}

fn marked(app: &App) -> Option<usize> {
    if let Some((dialog, _)) = own_question(app) {
        Some(dialog.marked)
    } else if let Some(list) = app.layers.last().and_then(Layer::list) {
        Some(list.selected)
    } else if focus(app) == Context::Form {
        choices_of_form(app)?;
        app.request_view.form.as_ref()?.fields.first().map(|field| field.choice)
    } else {
        shows_request(app).then_some(app.request_view.selected)
    }
}

fn mark(app: &mut App, position: usize) {
    if let Some(dialog) = app.layers.top_mut::<QuestionDialog>() {
        dialog.marked = position;
    } else if let Some(list) = app.layers.last_mut().and_then(Layer::list_mut) {
        list.selected = position;
    } else if focus(app) == Context::Form {
        if choices_of_form(app).is_some_and(|count| position < count)
            && let Some(field) = app.request_view.form.as_mut().and_then(|form| form.fields.first_mut())
        {
            field.choice = position;
        }
    } else if shows_request(app) {
        app.request_view.selected = position;
    }
}

fn answer_of(app: &App, action: Action) -> Option<Answer> {
    let position = match action {
        Action::Choose(position) => usize::from(position).checked_sub(1)?,
        Action::Accept => marked(app)?,
        Action::Mark(position) if is_list(app) => position.into(),
        Action::Yes | Action::No => {
            let wanted = if action == Action::Yes { Reach::Once } else { Reach::Reject };
            let mut all = (0..).map_while(|position| answer_at(app, position));
            let first = all.find(|answer| answer.effect == wanted && can_send(app, answer.position))?;
            // "Yes" needs a single meaning; the agent's own options are described by their kind.
            let is_choice = own_question(app).is_some();
            let is_unique = !is_choice || all.all(|answer| answer.effect != wanted);
            return is_unique.then_some(first);
        }
        _ => return None,
    };
    answer_at(app, position)
}

/// Whether the agent can tell this answer from the others.
fn can_send(app: &App, position: usize) -> bool {
    let open = app.shown_request().map(|(_, open)| &open.kind);
    !matches!(open, Some(OpenRequestKind::Permission { request, .. }) if request.is_ambiguous(position))
}

pub fn on_character(app: &mut App, key: char, action: Option<Action>, cx: &mut Cx) {
    let answer = action.and_then(|action| answer_of(app, action));
    judge(app, Input::Character(key, answer), cx);
}

pub fn on_backspace(app: &mut App, cx: &mut Cx) {
    judge(app, Input::Backspace, cx);
}

/// A click on a question. Returns whether it has its usual effect.
pub fn on_click(app: &mut App, action: Option<Action>, cx: &mut Cx) -> bool {
    let answer = action.and_then(|action| answer_of(app, action));
    judge(app, Input::Click(answer), cx)
}

/// An action while a question may be on top. Returns whether it has its usual effect.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let is_entered = app.guard.is_entered() && facts(app).has_fields;
    let input = match action {
        Action::AnswerRequest => Input::Switch,
        Action::Decline => {
            let is_usual = judge(app, Input::Escape, cx);
            return is_usual && (app.guard.question().is_none() || app.guard.rejects());
        }
        Action::Escape | Action::ClearOrQuit => Input::Escape,
        _ if !has_keys(app) => Input::Elsewhere,
        Action::Submit => return on_action(app, Action::Accept, cx),
        // It may have been meant as a completion.
        Action::Complete if !is_entered => {
            judge(app, Input::Look, cx);
            return false;
        }
        Action::Accept => Input::Enter(answer_of(app, action)),
        Action::RejectWithReason => {
            judge(app, Input::Look, cx);
            if app.guard.rejects() {
                app.guard.forget_keys();
                reason::open(app);
            } else {
                say_of_question(app, NOT_SHOWN_LONG_ENOUGH, cx);
            }
            return false;
        }
        _ if is_entered => Input::Look,
        Action::Choose(digit) => Input::Character(char::from(b'0' + digit % 10), answer_of(app, action)),
        Action::Yes => Input::Character('y', answer_of(app, action)),
        Action::No => Input::Character('n', answer_of(app, action)),
        // These keys cannot be text, so they also move to the form.
        Action::Up
        | Action::Down
        | Action::Left
        | Action::Right
        | Action::NextField
        | Action::PreviousField
            if focus(app) == Context::Form =>
        {
            let is_usual = judge(app, Input::Arrow, cx);
            if is_usual {
                app.guard.enter();
            }
            return is_usual;
        }
        Action::Up
        | Action::Down
        | Action::HistoryPrevious
        | Action::HistoryNext
        | Action::Left
        | Action::Right
        | Action::First
        | Action::Last
        | Action::Mark(_)
        | Action::NextField
        | Action::PreviousField => Input::Arrow,
        Action::PageUp
        | Action::PageDown
        | Action::Scroll(_)
        | Action::ScrollTop
        | Action::ScrollEnd
        | Action::FullScreen
        | Action::ToggleDiffLayout
        | Action::InspectItem
        | Action::Redraw => Input::Look,
        _ => Input::Elsewhere,
    };
    judge(app, input, cx)
}

/// Carries out the verdict on an input. Returns whether it has its usual effect.
pub(super) fn judge(app: &mut App, input: Input, cx: &mut Cx) -> bool {
    let facts = facts(app);
    match app.guard.on(input, facts, cx.now) {
        Verdict::Pass => return true,
        Verdict::Keep | Verdict::Move => {}
        Verdict::Mark(position) => mark(app, position),
        Verdict::Unmark => mark(app, app.user.first_mark),
        Verdict::Type(text) => {
            mark(app, app.user.first_mark);
            if inbox(app).is_none() {
                type_text(app, &text, cx);
            }
            say_of_question(app, "Not answered: the keys are in the prompt.", cx);
            return input == Input::Paste;
        }
        Verdict::Refuse(Refusal::Early) => {
            say_of_question(app, NOT_SHOWN_LONG_ENOUGH, cx);
        }
        Verdict::Refuse(Refusal::EndUnseen) => {
            say_of_question(app, "Not answered: scroll to the end of the question first.", cx);
            if let FlashEnd::Question(id) = app.state.flash_end {
                app.state.flash_end = FlashEnd::QuestionRead(id);
            }
        }
        Verdict::Give(question, answer) => {
            if asked(app) == Some(question) {
                give(app, answer, cx);
            }
        }
    }
    false
}

/// Shows a message in the status line while the question is on top.
fn say_of_question(app: &mut App, text: &str, cx: &mut Cx) {
    notify(&mut app.state, text, cx);
    if let Some(question) = app.guard.question() {
        app.state.flash_end = FlashEnd::Question(question.id);
    }
}

fn give(app: &mut App, answer: Option<Answer>, cx: &mut Cx) {
    if let Some(answer) = answer {
        mark(app, answer.position);
    }
    if !shows_request(app) {
        with_top(app, |layer, app| layer.on_action(app, Action::Accept, cx));
    } else if focus(app) == Context::Form {
        form::on_action(app, Action::Accept, cx);
    } else {
        requests::answer(app, UserAnswer::Option(app.request_view.selected), cx);
    }
}

fn type_text(app: &mut App, text: &str, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let end = session.draft.len();
    let draft = format!("{}{text}", session.draft);
    on_draft(app, draft, cx);
    cx.effects.push(Effect::View(ViewCommand::ReplaceInDraft(end..end, text.to_owned())));
}
