//! Notes the events of a session for the store, with the pages they belong to.
//!
//! Nothing is sent from here: `recording::recorder` flushes the notes after each event.

use crate::model::{ItemId, Note, NoticeKind, Record, Severity};

use super::paging;
use crate::app::{ItemBody, Session};

/// Notes an event of the running or last turn.
pub(in crate::app) fn note(session: &mut Session, record: Record) {
    let item = paging::item_of(session, &record);
    note_of(session, item, record);
}

/// Notes an event of this item, which may have been followed by another item with the same id.
pub(in crate::app) fn note_of(session: &mut Session, item: Option<ItemId>, record: Record) {
    let Some(record) = paging::divert(session, item, record) else { return };
    let turn = session.turn_count;
    session.recorder.note(Note::Event { turn, record: Box::new(record) });
}

/// Starts recording a history that replaces the record if it is complete; until then the record stays.
pub(in crate::app) fn hold(session: &mut Session) {
    session.recorder.hold();
    note(session, Record::Replaced);
}

/// Ends the recording of a history, complete or not.
pub(in crate::app) fn release(session: &mut Session, is_whole: bool) {
    session.recorder.release(is_whole);
}

/// Adds a line at the end: in a part of a read-only session, above the line with the number of later events.
pub(in crate::app) fn push_line(session: &mut Session, body: ItemBody) {
    let later = session.read_only.as_ref().and_then(|reading| reading.later.as_ref());
    let count = later.map_or(0, |later| later.count);
    if let Some(line) = session.pages.later_line.take() {
        session.transcript.remove(line);
    }
    session.transcript.push(session.turn_count, body);
    push_later(session, count);
}

/// Adds the line with the number of later events that are not shown.
pub(in crate::app) fn push_later(session: &mut Session, count: u64) {
    let title = match count {
        0 => return,
        1 => "1 later event. Scroll down to load it.".to_owned(),
        _ => format!("{count} later events. Scroll down to load them."),
    };
    let body = ItemBody::notice(Severity::Info, title, None);
    session.pages.later_line = Some(session.transcript.push(session.turn_count, body));
}

/// The line above the first event that is shown.
pub(in crate::app) fn earlier_label(count: u64) -> String {
    match count {
        0 => "Start of session".to_owned(),
        1 => "1 earlier event. Scroll up to load it.".to_owned(),
        _ => format!("{count} earlier events. Scroll up to load them."),
    }
}

/// Adds a notice at the end, and records it.
pub(in crate::app) fn notice(
    session: &mut Session,
    kind: NoticeKind,
    severity: Severity,
    title: String,
    detail: Option<String>,
) {
    note(session, Record::Notice { kind, severity, title: title.clone(), detail: detail.clone() });
    push_line(session, ItemBody::Notice { kind, severity, title, detail });
}

/// Adds an informational notice, and records it.
pub(in crate::app) fn say(session: &mut Session, title: String, detail: Option<String>) {
    let severity = Severity::Info;
    note(session, Record::notice(severity, title.clone(), detail.clone()));
    session.transcript.push(session.turn_count, ItemBody::notice(severity, title, detail));
}
