//! Opens links and paths: a file in the editor, an address in the browser.
//!
//! A file opens immediately, because the user requested it and an editor changes nothing. An address is shown
//! completely first, because a link's text may differ from its target.

use super::notice::notify;
use crate::core::state::url::inspect_url;
use crate::core::{Consequence, Cx, Effect, Question, State};
use crate::model::{Location, Target};

pub fn on_open(state: &mut State, target: Target, cx: &mut Cx) {
    match target {
        Target::File(location) => match opened(state, location) {
            Ok(effect) => cx.effects.extend(effect),
            Err(why) => notify(state, why, cx),
        },
        Target::Url(url) => ask_for_page(state, url, cx),
    }
}

/// The effect that opens a file. A relative path is in the session's folder. A remote file needs the editor configured
/// for it, because a local file of the same name is a different one.
pub fn opened(state: &State, location: Location) -> Result<Option<Effect>, String> {
    let Some(session) = state.active_session() else { return Ok(None) };
    let editor = state.conn_of(session.key).and_then(|conn| conn.spec.editor.clone());
    if let (Some(remote), None) = (&session.workspace.remote, &editor) {
        return Err(format!(
            "This file is on {}. Set `editor` in the agent's section of config.toml to open remote files.",
            remote.host
        ));
    }
    let location = Location { path: session.workspace.folder().join(location.path), line: location.line };
    Ok(Some(Effect::OpenFile { location, folder: session.workspace.cwd.clone(), editor }))
}

fn ask_for_page(state: &mut State, url: String, cx: &mut Cx) {
    let mut body = vec![url.clone()];
    if !url.to_ascii_lowercase().starts_with("mailto:") {
        let facts = inspect_url(&url);
        if !facts.can_open {
            notify(state, facts.warnings.into_iter().next().unwrap_or_default(), cx);
            return;
        }
        body.extend(facts.warnings);
    }
    let answers =
        [("Open in browser", Consequence::effect(Effect::OpenUrl(url))), ("No", Consequence::Close)];
    state.ask(state.active, Question::new("Open link?", body, answers));
}
