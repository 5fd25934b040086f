//! Attachments of the draft: pasted texts, images of the clipboard, and dropped files.
//!
//! Services read and save the contents; the draft contains only their labels.

use std::ops::Range;
use std::path::PathBuf;

use super::notice::notify;
use super::obstacle;
use crate::core::{Conn, Cx, Effect, State, ViewCommand};
use crate::model::{Action, AttachmentKind, DropJob, SessionAttachJob, SessionKey, attachment_labels};
use crate::ui::App;

/// Handles an action on attachments. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    if !matches!(action, Action::PasteImage | Action::OpenAttachment) {
        return false;
    }
    if let Some(why) = obstacle(&app.state, action) {
        notify(&mut app.state, why, cx);
        return true;
    }
    let cursor = app.user.cursor;
    let Some(session) = app.state.active_session() else { return true };
    let draft = session.draft.clone();
    if action == Action::PasteImage {
        let before = Some(draft.get(..cursor).unwrap_or(&draft).to_owned());
        cx.effects.push(Effect::ReadClipboard { session: session.key, before });
        return true;
    }
    let mut labels = attachment_labels(&draft);
    let at_cursor = labels.iter().position(|label| label.range.start <= cursor && cursor <= label.range.end);
    let label = at_cursor.map(|position| labels.swap_remove(position)).or_else(|| labels.pop());
    if let Some(label) = label {
        let (session, folder) = (session.key, session.workspace.cwd.clone());
        cx.effects.push(Effect::OpenAttachment { session, draft, label, folder });
    }
    true
}

/// Files were dropped: `text` with their paths was pasted at this byte of the draft.
pub fn on_dropped(state: &State, text: String, at: usize, readings: Vec<Vec<PathBuf>>, cx: &mut Cx) {
    let Some(session) = state.active_session() else { return };
    let position = &session.workspace;
    cx.effects.push(Effect::ReadDropped(DropJob {
        session: session.key,
        text,
        at,
        readings,
        folder: position.remote.is_none().then(|| position.cwd.clone()),
        roots: position.roots(),
    }));
}

/// The dropped files exist: replaces the pasted text, if the draft still contains it.
pub fn on_drop_read(app: &mut App, job: &DropJob, read: Result<String, String>, cx: &mut Cx) {
    let labels = match read {
        Ok(labels) => labels,
        Err(why) => return notify(&mut app.state, why, cx),
    };
    if let Some(session) = app.state.sessions.get_mut(&job.session) {
        session.listed_files.add_mentions(&labels);
    }
    replace_text(app, job.session, job.at, &job.text, &labels, cx);
}

/// The transcript of a session was saved: replaces the mention by its label, if the draft still contains it.
pub fn on_session_attached(
    app: &mut App,
    job: &SessionAttachJob,
    label: Result<String, String>,
    cx: &mut Cx,
) {
    app.user.attaching = app.user.attaching.filter(|key| *key != job.session);
    match label {
        Ok(label) => replace_text(app, job.session, job.at, &job.text, &label, cx),
        Err(why) => notify(&mut app.state, why, cx),
    }
}

/// Replaces a text that was at this byte of the draft, if the draft still contains it.
fn replace_text(app: &mut App, key: SessionKey, at: usize, text: &str, labels: &str, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get(&key) else { return };
    let draft = &session.draft;
    let is_there = draft.get(at..).is_some_and(|rest| rest.starts_with(text));
    if let Some(start) = if is_there { Some(at) } else { draft.rfind(text) } {
        replace(app, key, start..start + text.len(), labels, cx);
    }
}

/// The image of the clipboard was saved: inserts its label after the text that was before the cursor.
pub fn on_image(app: &mut App, key: SessionKey, before: &str, label: Result<String, String>, cx: &mut Cx) {
    let label = match label {
        Ok(label) => label,
        Err(why) => return notify(&mut app.state, why, cx),
    };
    let Some(session) = app.state.sessions.get(&key) else { return };
    let draft = &session.draft;
    let at = if draft.starts_with(before) { before.len() } else { draft.len() };
    replace(app, key, at..at, &label, cx);
}

/// Replaces a part of the draft by labels and mentions, separated from the words beside them.
fn replace(app: &mut App, key: SessionKey, range: Range<usize>, labels: &str, cx: &mut Cx) {
    let is_active = app.state.active == key;
    let Some(session) = app.state.sessions.get(&key) else { return };
    let mut draft = session.draft.clone();
    let is_blank = |text: Option<&str>, is_before: bool| {
        let ch = text.and_then(|text| if is_before { text.chars().next_back() } else { text.chars().next() });
        ch.map_or(is_before, char::is_whitespace)
    };
    let space = |is_blank: bool| if is_blank { "" } else { " " };
    let before = space(is_blank(draft.get(..range.start), true));
    let after = space(is_blank(draft.get(range.end..), false));
    let text = format!("{before}{labels}{after}");
    if draft.get(range.clone()).is_none() {
        return;
    }
    draft.replace_range(range.clone(), &text);
    if is_active {
        super::on_draft(app, draft, cx);
        cx.effects.push(Effect::View(ViewCommand::ReplaceInDraft(range, text)));
    } else if let Some(session) = app.state.sessions.get_mut(&key) {
        session.draft = draft;
    }
    let has_image = attachment_labels(labels).iter().any(|label| label.kind == AttachmentKind::Image);
    let info = app.state.conn_of(key).filter(|conn| conn.info.is_some());
    if has_image && info.is_some_and(|conn| !Conn::capabilities(conn).prompt_image) {
        notify(&mut app.state, "The agent does not accept images.", cx);
    }
}
