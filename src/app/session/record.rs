//! Notes what happened in a session for the store, together with the pages that it belongs to.
//!
//! Nothing is sent from here: `recording::recorder` hands the notes out once an event is dealt with.

use crate::model::{ItemId, Note, NoticeKind, Record, Severity};

use super::paging;
use crate::app::{ItemBody, Session};

/// Notes that something happened in the running or last turn.
pub(in crate::app) fn note(session: &mut Session, record: Record) {
    let item = paging::item_of(session, &record);
    note_of(session, item, record);
}

/// Notes what happened to this item, which another one of its name may have followed.
pub(in crate::app) fn note_of(session: &mut Session, item: Option<ItemId>, record: Record) {
    let Some(record) = paging::divert(session, item, record) else { return };
    let turn = session.turn_count;
    session.recorder.note(Note::Event { turn, record: Box::new(record) });
}

/// From now on what happens is a history that replaces what is kept, if it comes to its end: until then that stays.
pub(in crate::app) fn hold(session: &mut Session) {
    session.recorder.hold();
    note(session, Record::Replaced);
}

/// The history has come to its end, or to none.
pub(in crate::app) fn release(session: &mut Session, is_whole: bool) {
    session.recorder.release(is_whole);
}

/// Puts a line below what is shown: of a part that is read, above the line that says how many events follow it.
pub(in crate::app) fn push_line(session: &mut Session, body: ItemBody) {
    let later = session.read_only.as_ref().and_then(|reading| reading.later.as_ref());
    let count = later.map_or(0, |later| later.count);
    if let Some(line) = session.pages.later_line.take() {
        session.transcript.remove(line);
    }
    session.transcript.push(session.turn_count, body);
    push_later(session, count);
}

/// What stands below the last event that is shown of a part.
pub(in crate::app) fn push_later(session: &mut Session, count: u64) {
    let title = match count {
        0 => return,
        1 => "1 later event. Scroll down to load it.".to_owned(),
        _ => format!("{count} later events. Scroll down to load them."),
    };
    let body = ItemBody::notice(Severity::Info, title, None);
    session.pages.later_line = Some(session.transcript.push(session.turn_count, body));
}

/// What stands above the first event that is shown.
pub(in crate::app) fn earlier_words(count: u64) -> String {
    match count {
        0 => "Start of session".to_owned(),
        1 => "1 earlier event. Scroll up to load it.".to_owned(),
        _ => format!("{count} earlier events. Scroll up to load them."),
    }
}

/// Adds a notice below what is shown, and records it.
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

/// A line in a transcript, kept.
pub(in crate::app) fn say(session: &mut Session, title: String, detail: Option<String>) {
    let severity = Severity::Info;
    note(session, Record::notice(severity, title.clone(), detail.clone()));
    session.transcript.push(session.turn_count, ItemBody::notice(severity, title, detail));
}
