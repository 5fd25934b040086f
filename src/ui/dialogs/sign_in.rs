//! Signing in: the list of an agent's methods, and the variables of a method in turn.

use crate::core::lifecycle::operations;
use crate::core::state::{lookup, tab};
use crate::core::{Cx, State};
use crate::model::{AuthKind, AuthMethod, AuthVar, ConnId, SessionKey};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;

use super::layer::Flow;
use super::line_dialog::{LineDialog, Purpose};
use super::picker::{List, Picker, PickerRow};

#[derive(Debug)]
pub struct SignIns {
    pub conn: ConnId,
    /// Whether parlor opened the list, so that [`crate::guard`] decides which keys it gets.
    pub is_unasked: bool,
}

impl List for SignIns {
    /// The id of the method.
    type Item = String;
    const SHOWS_DETAIL: bool = true;
    const STAYS_WITH_TAB: bool = true;

    fn pick(&mut self, id: String, app: &mut App, cx: &mut Cx) -> Flow {
        let conn = self.conn;
        let method = methods(&app.state, conn).iter().find(|method| method.id == id).cloned();
        let Some(method) = method else { return Flow::Close };
        if let Some(refusal) = operations::variables_refused(&app.state, conn, &method) {
            operations::report_refusal(&mut app.state, conn, &refusal, None, cx);
            return Flow::Close;
        }
        match method.kind {
            AuthKind::EnvVar { vars, .. } => {
                open_vars(app, conn, id, Vec::new(), vars, cx);
            }
            AuthKind::ApiKey => open_api_key(app, conn, &method),
            AuthKind::Agent | AuthKind::Terminal(_) => {
                operations::sign_in(&mut app.state, conn, &id, Vec::new(), cx);
            }
        }
        Flow::Close
    }

    fn unasked_by(&self) -> Option<ConnId> {
        self.is_unasked.then_some(self.conn)
    }

    fn is_alone(&self, ctx: &FrameContext) -> bool {
        self.is_unasked && ctx.session.transcript.items().is_empty()
    }
}

/// Opens the sign-in methods of this agent for the user.
pub fn open(app: &mut App, conn: ConnId) {
    let list = picker(&app.state, SignIns { conn, is_unasked: false });
    app.layers.open(list);
}

/// Opens the sign-in methods of this agent after it answers that sign-in is required. For the session of an inactive
/// tab, they appear when that tab is shown.
pub fn open_unasked(app: &mut App, key: Option<SessionKey>, conn: ConnId) {
    let list = picker(&app.state, SignIns { conn, is_unasked: true });
    match key.map(|key| lookup::root_of(&app.state, key)) {
        None => app.layers.open(list),
        Some(root) if root == tab::front(&app.state) => app.layers.push(list),
        Some(root) => app.background.entry(root).or_default().layers.push(list),
    }
}

fn picker(state: &State, list: SignIns) -> Picker<SignIns> {
    let row = |method: &AuthMethod| {
        let row = PickerRow {
            detail: method.description.clone().unwrap_or_default(),
            right: match &method.kind {
                AuthKind::Agent => String::new(),
                AuthKind::Terminal(_) => "in terminal".to_owned(),
                AuthKind::EnvVar { .. } | AuthKind::ApiKey => "API key".to_owned(),
            },
            ..PickerRow::new(method.name.as_str())
        };
        (row, method.id.clone())
    };
    let rows: Vec<_> = methods(state, list.conn).iter().map(row).collect();
    let note = "The agent has no sign-in method. Sign in with its own command, then restart it.";
    let note = rows.is_empty().then(|| note.to_owned());
    Picker::new(list, "Sign in", rows).noting(note)
}

fn methods(state: &State, conn: ConnId) -> &[AuthMethod] {
    let info = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    info.map(|info| info.auth_methods.as_slice()).unwrap_or_default()
}

/// Variables of a sign-in, entered one after the other.
#[derive(Debug)]
struct Variables {
    conn: ConnId,
    method: String,
    given: Vec<(String, String)>,
    current: AuthVar,
    /// Those after the current one.
    missing: Vec<AuthVar>,
}

impl Purpose for Variables {
    fn verb(&self) -> &'static str {
        "continue"
    }

    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        if text.is_empty() && !self.current.is_optional {
            return Err("This value is required to sign in.".to_owned());
        }
        let mut given = self.given.clone();
        if !text.is_empty() {
            given.push((self.current.name.clone(), text.to_owned()));
        }
        open_vars(app, self.conn, self.method.clone(), given, self.missing.clone(), cx);
        Ok(())
    }
}

/// Asks for the first variable that is missing; signs in immediately if there is none.
fn open_vars(
    app: &mut App,
    conn: ConnId,
    method: String,
    given: Vec<(String, String)>,
    mut missing: Vec<AuthVar>,
    cx: &mut Cx,
) {
    if missing.is_empty() {
        operations::sign_in(&mut app.state, conn, &method, given, cx);
        return;
    }
    let var = missing.remove(0);
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
    let is_secret = var.is_secret;
    let variables = Variables { conn, method, given, current: var, missing };
    app.layers.push(LineDialog::new("Sign in", help, "", variables).hiding(is_secret));
}

/// Asks for the key that a method reads in `authenticate`.
fn open_api_key(app: &mut App, conn: ConnId, method: &AuthMethod) {
    let current = AuthVar { name: method.name.clone(), label: None, is_secret: true, is_optional: true };
    let help = format!(
        "Key for \"{}\". The agent gets it for this run; parlor does not save it. Leave it empty if the agent finds \
         one in its environment.",
        method.name
    );
    let (given, missing) = (Vec::new(), Vec::new());
    let key = Variables { conn, method: method.id.clone(), given, current, missing };
    app.layers.push(LineDialog::new("Sign in", help, "", key).hiding(true));
}
