//! Review of the changes that the turns of a session made on disk: each part is accepted, or reverted and described in the
//! draft for the agent.
//!
//! Invariant: nothing is sent automatically. Text of the agent is quoted as an attachment, so it cannot mention files.

use std::path::Path;

use super::{call, undo};
use crate::core::{Cx, Effect, Offer, RestoreOf, State, UiRequest};
use crate::model::held::HeldChange;
use crate::model::hunk::patch_lines;
use crate::model::snapshot::{
    Moment, Part, Preview, RestoreRecord, Restored, SnapshotNews, SnapshotRecord, SnapshotTask, shown_path,
};
use crate::model::{Attachment, DiffChange, SessionKey, Severity};

/// Maximum number of lines of a hunk that are quoted.
const MAX_QUOTED: usize = 60;

/// Plans a review of all changes that were not accepted.
pub fn start(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let what = unaccepted(state, key);
    undo::offer(state, key, what, None, cx);
}

fn unaccepted(state: &State, key: SessionKey) -> RestoreOf {
    let last = state.sessions.get(&key).and_then(|session| session.undo.turns.last());
    RestoreOf::Unaccepted { through: last.map_or(0, |changes| changes.turn) }
}

/// Plans the review again if it is still shown.
pub fn refresh(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if state.sessions.get(&key).is_some_and(|session| is_review(session.undo.offer.as_ref())) {
        let what = unaccepted(state, key);
        undo::plan(state, key, what, None, cx);
    }
}

fn is_review(offer: Option<&Offer>) -> bool {
    offer.is_some_and(|offer| matches!(offer.what, RestoreOf::Unaccepted { .. }))
}

/// Accepts a part of the shown changes.
pub fn accept(state: &mut State, key: SessionKey, part: Part, cx: &mut Cx) {
    if let Some(Offer { what: RestoreOf::Unaccepted { through: turn }, preview: Some(preview), .. }) =
        begin(state, key, &part, cx)
    {
        undo::run(state, key, SnapshotTask::Accept { plan: Box::new(preview.plan), part, turn }, cx);
    }
}

/// Reverts a part of the shown changes.
pub fn reject(state: &mut State, key: SessionKey, part: Part, cx: &mut Cx) {
    let Some(offer) = begin(state, key, &part, cx) else { return };
    if state.sessions.get(&key).is_some_and(|session| session.turn.is_running()) {
        queue(state, key, offer, part, cx);
    } else {
        revert(state, key, offer, part, cx);
    }
}

fn revert(state: &mut State, key: SessionKey, mut offer: Offer, part: Part, cx: &mut Cx) {
    let Some(plan) = offer.preview.as_ref().map(|preview| Box::new(preview.plan.clone())) else { return };
    offer.part = Some(part.clone());
    if let Some(session) = state.sessions.get_mut(&key) {
        session.undo.restoring = Some(offer);
    }
    undo::run(state, key, SnapshotTask::Restore(plan, vec![part]), cx);
}

/// Queues a part to be reverted when the turn has ended and the agent no longer writes.
fn queue(state: &mut State, key: SessionKey, offer: Offer, part: Part, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let Some(shown) = &mut session.undo.offer {
        shown.part = None;
    }
    let is_queued = session.undo.is_queued(&part);
    let known = session.undo.queued.iter_mut().find(|(_, queued)| queued.path == part.path);
    let text = match known {
        _ if is_queued => "Already queued: it will be reverted when the turn ends.",
        Some((of, _)) if of.number != offer.number => {
            "Another part of this file will be reverted when the turn ends. Reject this one afterwards."
        }
        known => {
            match known {
                Some((_, queued)) if part.hunks.is_empty() => queued.hunks.clear(),
                Some((_, queued)) => {
                    queued.hunks.extend(part.hunks);
                    queued.hunks.sort_by_key(|hunk| hunk.new.start);
                }
                None => session.undo.queued.push((offer, part)),
            }
            "It will be reverted when the turn ends, unless the file changes before then."
        }
    };
    call::flash(state, text, cx);
}

/// Handles the end of a turn. Queued parts are reverted after the snapshot, if one is captured.
pub(in crate::core) fn on_turn_end(state: &mut State, key: SessionKey, cx: &mut Cx) {
    undo::on_turn_end(state, key, cx);
    if state.sessions.get(&key).is_some_and(|session| session.undo.after.is_none()) {
        revert_next(state, key, cx);
    }
}

/// Reverts the next queued part.
fn revert_next(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_free = !session.turn.is_running() && session.undo.restoring.is_none();
    if is_free && !session.undo.queued.is_empty() {
        let (offer, part) = session.undo.queued.remove(0);
        revert(state, key, offer, part, cx);
    }
}

/// Marks a part of the shown review as being decided; `None` if another one is.
fn begin(state: &mut State, key: SessionKey, part: &Part, cx: &mut Cx) -> Option<Offer> {
    let undo = &mut state.sessions.get_mut(&key)?.undo;
    let offer = undo.offer.as_mut().filter(|offer| offer.part.is_none() && offer.preview.is_some());
    let Some(offer) = offer.filter(|_| undo.restoring.is_none()) else {
        call::flash(state, "The changes are being compared. Try again.", cx);
        return None;
    };
    offer.part = Some(part.clone());
    Some(offer.clone())
}

/// Adds a comment on a part of the shown changes to the draft.
pub fn comment(state: &mut State, key: SessionKey, part: &Part, text: &str, cx: &mut Cx) {
    let quote = quoted(state, key, part);
    add_to_draft(state, key, part, &quote, text, cx);
}

/// The lines of a part of the shown changes, as in a patch.
pub fn quoted(state: &State, key: SessionKey, part: &Part) -> String {
    let held = state.sessions.get(&key).and_then(|session| session.held.change(&part.path));
    if let Some(HeldChange { disk, text, .. }) = held {
        return quote_texts(disk.as_deref().unwrap_or_default(), text, part);
    }
    let preview = state.sessions.get(&key).and_then(|session| session.undo.offer.as_ref()?.preview.as_ref());
    preview.map(|preview| quote(preview, part)).unwrap_or_default()
}

/// Adds to the draft what the user did with a part of the shown changes.
pub(super) fn describe(state: &mut State, key: SessionKey, part: &Part, verb: &str, cx: &mut Cx) {
    let quote = quoted(state, key, part);
    add_to_draft(state, key, part, &quote, &done(part, verb), cx);
}

fn done(part: &Part, verb: &str) -> String {
    let what = if part.hunks.is_empty() { "all changes of this file" } else { "this change" };
    format!("{verb} {what}.")
}

pub(in crate::core) fn on_news(state: &mut State, key: SessionKey, news: SnapshotNews, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    match news {
        SnapshotNews::Accepted(path, accepted) => {
            match accepted {
                Ok(what) => undo::note(session, SnapshotRecord::Accepted { path, what }),
                Err(why) => call::flash(state, why, cx),
            }
            refresh(state, key, cx);
        }
        SnapshotNews::Restored(restored) if is_review(session.undo.restoring.as_ref()) => {
            on_reverted(state, key, restored, cx);
        }
        news => {
            let is_end = matches!(news, SnapshotNews::Captured(Moment::After(_), _));
            undo::on_news(state, key, news, cx);
            if is_end {
                refresh(state, key, cx);
                revert_next(state, key, cx);
            }
        }
    }
}

fn on_reverted(state: &mut State, key: SessionKey, restored: Result<Restored, String>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(Offer { preview: Some(preview), part: Some(part), .. }) = session.undo.restoring.take() else {
        return;
    };
    match restored {
        Ok(Restored { span, changed, .. }) if !changed.is_empty() => {
            let restore = RestoreRecord {
                turns: Vec::new(),
                before: span.before,
                after: span.after,
                files: changed.len(),
                is_whole: false,
            };
            undo::note(session, SnapshotRecord::Undone(restore));
            let quote = quote(&preview, &part);
            add_to_draft(state, key, &part, &quote, &done(&part, "I reverted"), cx);
            call::flash(state, "Reverted, and added to the prompt. /redo restores it.", cx);
        }
        Ok(Restored { refused, .. }) => {
            let why = refused.into_iter().next().map_or_else(String::new, |(_, why)| format!(": {why}"));
            call::flash(state, format!("{} was not reverted{why}.", shown_path(&part.path)), cx);
        }
        Err(why) => {
            call::notice(state, key, Severity::Error, format!("The change was not reverted. {why}"), None);
        }
    }
    refresh(state, key, cx);
    revert_next(state, key, cx);
}

fn quote(preview: &Preview, part: &Part) -> String {
    let position = preview.plan.steps.iter().position(|step| step.path == part.path);
    let diff = position.and_then(|position| preview.diffs.get(position)?.as_ref());
    match diff.map(|diff| &diff.change) {
        Some(DiffChange::Texts { old, new }) => quote_texts(old.as_deref().unwrap_or_default(), new, part),
        _ => String::new(),
    }
}

fn quote_texts(old: &str, new: &str, part: &Part) -> String {
    let (mut quoted, more) = patch_lines(old, new, &part.hunks, MAX_QUOTED);
    quoted.extend((more > 0).then(|| format!("({more} more lines)")));
    quoted.join("\n")
}

fn add_to_draft(state: &mut State, key: SessionKey, part: &Part, quote: &str, text: &str, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let lines = match part.hunks.first().map(|hunk| &hunk.new) {
        Some(new) if new.len() > 1 => format!(":{}-{}", new.start + 1, new.end),
        Some(new) => format!(":{}", new.start + 1),
        None => String::new(),
    };
    let path = part.path.strip_prefix(session.workspace.folder()).unwrap_or(&part.path);
    let place = format!("{}{lines}", shown_path(path));
    if !session.draft.is_empty() && !session.draft.ends_with('\n') {
        session.draft.push('\n');
    }
    let is_plain = is_plain(&part.path);
    if is_plain {
        session.draft.push_str(&place);
    }
    if !quote.is_empty() || !is_plain {
        let attachment = Attachment::of_text(format!("{place}\n{quote}").trim_end());
        session.draft.push_str(if is_plain { " " } else { "" });
        session.draft.push_str(&attachment.label());
        cx.effects.push(Effect::SaveAttachment(attachment));
    }
    session.draft.extend([": ", text, "\n"]);
    cx.requests.push(UiRequest::DraftChanged(key));
}

/// Whether a path has no character that could begin a mention or a label in a prompt.
fn is_plain(path: &Path) -> bool {
    let is_plain = |ch: char| ch.is_alphanumeric() || matches!(ch, '/' | '.' | '_' | '-' | '+');
    path.to_str().is_some_and(|path| path.chars().all(is_plain))
}
