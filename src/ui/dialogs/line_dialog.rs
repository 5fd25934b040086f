//! The single-line input dialog: a title, the variables of a sign-in in turn.

use crate::app::lifecycle::operations;
use crate::app::{ConnPhase, Cx, Effect, LineInput, OpenRequestKind, QuestionId, UserAnswer};
use crate::model::{Action, AuthMethod, AuthVar, ConnId, LineEdit, SessionKey, StoreJob};
use crate::ui::{App, LineDialog, LinePurpose, Modal};

use super::{providers, session_rows, settings, stack};

/// The help for a title while the agent cannot be updated.
pub(super) const RENAMED_LATER: &str =
    "Renames the session in parlor. The agent is updated when the session is opened.";

pub fn open_title(app: &mut App, key: SessionKey) {
    let title = app.state.sessions.get(&key).and_then(|session| session.title.clone()).unwrap_or_default();
    app.modals.push(Modal::Line(LineDialog {
        title: "Rename session".to_owned(),
        help: match app.state.conn_of(key).filter(|conn| conn.phase == ConnPhase::Ready) {
            Some(conn) if conn.capabilities().can_set_title => {
                "Renames the session in parlor and in the agent."
            }
            Some(_) => "Renames the session in parlor only. The agent does not support titles.",
            None => RENAMED_LATER,
        }
        .to_owned(),
        input: LineInput::new(&title),
        is_secret: false,
        problem: None,
        purpose: LinePurpose::Title(key),
    }));
}

/// Asks for the title of a session that is not open; `help` says whether its agent is updated.
pub fn open_kept_title(app: &mut App, uid: &str, title: &str, help: String) {
    app.modals.push(Modal::Line(LineDialog {
        title: "Rename session".to_owned(),
        help,
        input: LineInput::new(title),
        is_secret: false,
        problem: None,
        purpose: LinePurpose::SavedTitle(uid.to_owned()),
    }));
}

/// Asks why the shown permission request, file or command is rejected.
pub fn open_reason(app: &mut App) {
    let Some((session, open)) = app.shown_request() else { return };
    if matches!(open.kind, OpenRequestKind::Elicitation(_)) {
        return;
    }
    let purpose = LinePurpose::Reason { session, request_id: open.request_id };
    app.modals.push(Modal::Line(LineDialog {
        title: "Reject with a reason".to_owned(),
        help: "Rejects the request and sends this text as the next prompt.".to_owned(),
        input: LineInput::default(),
        is_secret: false,
        problem: None,
        purpose,
    }));
}

/// Asks for the first variable of a sign-in; signs in immediately if there is none.
pub fn open_auth_vars(
    app: &mut App,
    conn: ConnId,
    method: String,
    given: Vec<(String, String)>,
    missing: Vec<AuthVar>,
    cx: &mut Cx,
) {
    let Some(var) = missing.first() else {
        operations::sign_in(&mut app.state, conn, &method, given, cx);
        return;
    };
    let optional = if var.is_optional { " Optional." } else { "" };
    let what = match &var.label {
        Some(label) => format!("{label} ({})", var.name),
        None => format!("Value of {}", var.name),
    };
    let help = format!(
        "{what}.{optional} The agent is restarted with this value, which parlor does not save. To keep it, set {} \
         before you start parlor, or configure `env_command` for this agent.",
        var.name
    );
    app.modals.push(Modal::Line(LineDialog {
        title: "Sign in".to_owned(),
        help,
        input: LineInput::default(),
        is_secret: var.is_secret,
        problem: None,
        purpose: LinePurpose::AuthVars { conn, method, given, missing },
    }));
}

/// Asks for the key that a method reads in `authenticate`.
pub fn open_api_key(app: &mut App, conn: ConnId, method: &AuthMethod) {
    let var = AuthVar { name: method.name.clone(), label: None, is_secret: true, is_optional: true };
    let help = format!(
        "Key for \"{}\". The agent gets it for this run; parlor does not save it. Leave it empty if the agent finds \
         one in its environment.",
        method.name
    );
    app.modals.push(Modal::Line(LineDialog {
        title: "Sign in".to_owned(),
        help,
        input: LineInput::default(),
        is_secret: true,
        problem: None,
        purpose: LinePurpose::AuthVars {
            conn,
            method: method.id.clone(),
            given: Vec::new(),
            missing: vec![var],
        },
    }));
}

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let Some(Modal::Line(dialog)) = app.modals.last_mut() else { return false };
    let edit = match action {
        Action::Accept => {
            accept(app, cx);
            return true;
        }
        Action::Left => LineEdit::Left,
        Action::Right => LineEdit::Right,
        Action::First => LineEdit::Home,
        Action::Last => LineEdit::End,
        Action::Choose(digit) => LineEdit::Insert(digit.to_string()),
        Action::Up | Action::Down | Action::NextField | Action::PreviousField => return true,
        _ => return stack::scroll_body(action, cx),
    };
    dialog.input.apply(&edit);
    true
}

fn accept(app: &mut App, cx: &mut Cx) {
    let Some(Modal::Line(dialog)) = app.modals.last_mut() else { return };
    let text = dialog.input.text.trim().to_owned();
    match dialog.purpose.clone() {
        LinePurpose::Title(_) | LinePurpose::SavedTitle(_) if text.is_empty() => {
            dialog.problem = Some("Type a value.".to_owned());
        }
        LinePurpose::Title(key) => {
            app.modals.pop();
            operations::set_title(&mut app.state, key, text, cx);
            session_rows::refresh(app);
        }
        LinePurpose::SavedTitle(uid) => {
            app.modals.pop();
            cx.effects.push(Effect::Store(StoreJob::Rename { uid, title: text }));
        }
        LinePurpose::Reason { session, request_id } => {
            app.modals.pop();
            super::answer(app, QuestionId::Agent(request_id), UserAnswer::Dismiss, cx);
            operations::send_reason(&mut app.state, session, text, cx);
        }
        LinePurpose::Setting(name) => match settings::accept_text(&mut app.state, &name, &text, cx) {
            Ok(()) => drop(app.modals.pop()),
            Err(problem) => refuse(app, Err(problem)),
        },
        LinePurpose::Keys { context, action } => {
            app.modals.pop();
            settings::accept_keys(context, action, &text, cx);
        }
        LinePurpose::ProviderUrl { conn, id, api } => {
            let taken = providers::take_url(app, conn, id, api, &text, cx);
            refuse(app, taken);
        }
        LinePurpose::ProviderHeader { conn, request } => {
            let taken = providers::take_header(app, conn, request, &text, cx);
            refuse(app, taken);
        }
        LinePurpose::AuthVars { conn, method, mut given, mut missing } => {
            if missing.is_empty() {
                app.modals.pop();
                return;
            }
            let is_needed = missing.first().is_some_and(|var| !var.is_optional);
            if text.is_empty() && is_needed {
                dialog.problem = Some("This value is required to sign in.".to_owned());
                return;
            }
            let var = missing.remove(0);
            if !text.is_empty() {
                given.push((var.name, text));
            }
            app.modals.pop();
            open_auth_vars(app, conn, method, given, missing, cx);
        }
    }
}

/// Shows why the input is invalid.
fn refuse(app: &mut App, taken: Result<(), String>) {
    if let (Err(problem), Some(Modal::Line(dialog))) = (taken, app.modals.last_mut()) {
        dialog.problem = Some(problem);
    }
}
