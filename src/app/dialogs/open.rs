//! Opens links and paths: a file in the editor, an address in the browser.
//!
//! A file opens immediately, because the user requested it and an editor changes nothing. An address is shown
//! completely first, because a link's text may differ from its target.

use std::time::Instant;

use super::notice::notify;
use crate::app::lifecycle::operations;
use crate::app::{Choice, ChoiceDialog, ChoiceOutcome, Effect, Modal, State};
use crate::escape::visible;
use crate::model::{CopyContent, CopyJob, Location, SessionKey, Target};

use super::inspect_url;

pub fn on_open(state: &mut State, target: Target, fx: &mut Vec<Effect>) {
    match target {
        Target::File(location) => open_file(state, location, fx),
        Target::Url(url) => ask_for_page(state, url, fx),
    }
}

/// Resolves a relative path against the session's folder. A remote file is opened only by the editor configured for it:
/// a local file of the same name is a different one.
fn open_file(state: &mut State, location: Location, fx: &mut Vec<Effect>) {
    let Some(session) = state.active_session() else { return };
    let editor = state.conn_of(session.key).and_then(|conn| conn.spec.editor.clone());
    if let (Some(remote), None) = (&session.workspace.remote, &editor) {
        let text = format!(
            "This file is on {}. Set `editor` in the agent's section of config.toml to open remote files.",
            remote.host
        );
        notify(state, text, fx);
        return;
    }
    let location = Location { path: session.workspace.folder().join(location.path), line: location.line };
    fx.push(Effect::OpenFile { location, folder: session.workspace.cwd.clone(), editor });
}

/// Shows a page that an agent names while it signs in.
pub fn ask_for_sign_in_page(
    state: &mut State,
    session: SessionKey,
    url: &str,
    printed: &[String],
    now: Instant,
) {
    let facts = inspect_url(url);
    let shown = |line: &str| visible(line).into_owned();
    let mut body = vec!["The agent has printed this address while it signs in:".to_owned(), shown(url)];
    body.extend(facts.warnings);
    let others = printed.iter().map(|line| shown(line)).filter(|line| *line != url);
    body.extend(others);
    let copy = CopyJob { what: "the address".to_owned(), content: CopyContent::Text(url.to_owned()) };
    let open =
        Choice { label: "Open in browser".to_owned(), outcome: ChoiceOutcome::OpenUrl(url.to_owned()) };
    let others = [
        Choice { label: "Copy the address".to_owned(), outcome: ChoiceOutcome::Copy(copy) },
        Choice { label: "Not now".to_owned(), outcome: ChoiceOutcome::Close },
    ];
    let choices: Vec<Choice> = facts.can_open.then_some(open).into_iter().chain(others).collect();
    let dialog = ChoiceDialog {
        title: "Open this page to sign in?".to_owned(),
        body,
        selected: choices.len() - 1,
        choices,
        opened_by_itself: Some(now),
    };
    operations::open_dialog(state, session, Modal::Choice(dialog));
}

fn ask_for_page(state: &mut State, url: String, fx: &mut Vec<Effect>) {
    let mut body = vec![url.clone()];
    if !url.to_ascii_lowercase().starts_with("mailto:") {
        let facts = inspect_url(&url);
        if !facts.can_open {
            notify(state, facts.warnings.into_iter().next().unwrap_or_default(), fx);
            return;
        }
        body.extend(facts.warnings);
    }
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: "Open link?".to_owned(),
        body,
        choices: vec![
            Choice { label: "Open in browser".to_owned(), outcome: ChoiceOutcome::OpenUrl(url) },
            Choice { label: "No".to_owned(), outcome: ChoiceOutcome::Close },
        ],
        selected: 0,
        opened_by_itself: None,
    }));
}
