//! Notes the events of a session for the store.
//!
//! Nothing is sent from here: `recording::recorder` flushes the notes after each event.

use crate::model::{NoticeKind, Record, Severity};

use crate::core::{ItemBody, Session};

/// Notes an event of the running or last turn.
pub(in crate::core) fn note(session: &mut Session, record: Record) {
    session.recorder.event(session.turn_count, record);
}

pub(in crate::core) fn notice(
    session: &mut Session,
    kind: NoticeKind,
    severity: Severity,
    title: String,
    detail: Option<String>,
) {
    note(session, Record::Notice { kind, severity, title: title.clone(), detail: detail.clone() });
    session.transcript.push(session.turn_count, ItemBody::Notice { kind, severity, title, detail });
}

/// Adds an informational notice, and records it.
pub(in crate::core) fn say(session: &mut Session, title: String, detail: Option<String>) {
    notice(session, NoticeKind::Other, Severity::Info, title, detail);
}
