//! Restores a session from its record.
//!
//! Replays the records with the code that created the transcript live, with the same intervals between them. `conn`
//! starts the agent, `open` opens its session.

use std::time::Instant;

use crate::model::{EventPage, ItemId, RecordedSession, Severity};

use crate::app::session::play::{Bounds, Played};
use crate::app::session::{paging, play, record};
use crate::app::{Earlier, ItemBody, Message, MessagePart, RecorderState, Session, TitleState};

/// Restores a session without starting its agent. Returns the item of the requested event.
pub fn restore(session: &mut Session, kept: RecordedSession, now: Instant) -> Option<ItemId> {
    let RecordedSession {
        head, usage, draft, queue, events, left_out_count, unreadable_count, end_seq, ..
    } = kept;
    session.id.clone_from(&head.session);
    session.title.clone_from(&head.title);
    if head.workspace.cwd.is_absolute() {
        session.workspace.cwd.clone_from(&head.workspace.cwd);
    }
    session.workspace.additional_directories.clone_from(&head.workspace.additional_directories);
    session.usage = usage;
    session.draft = draft;
    session.queue = queue.into();
    session.settings.set_chosen(head.chosen.clone());
    session.title_state = TitleState::saved(head.has_own_title, head.owes_title);
    let earlier = head.kept_as.clone().filter(|_| left_out_count > 0).map(|uid| Earlier {
        uid,
        before: kept.first_seq,
        count: left_out_count,
        is_loading: false,
        has_failed: false,
    });
    if left_out_count > 0 {
        session.transcript.set_head(record::earlier_label(left_out_count));
    }
    if let Some((uid, name)) = kept.came_from {
        let title = format!("Continued from {uid}: {name}");
        session.transcript.push(session.turn_count, ItemBody::notice(Severity::Info, title, None));
    }
    if unreadable_count > 0 {
        let title = format!("{unreadable_count} events of this session could not be read.");
        session.transcript.push(session.turn_count, ItemBody::notice(Severity::Warning, title, None));
    }
    // If no event is valid, there is nothing to read later.
    let first_seq = if events.is_empty() { end_seq } else { kept.first_seq };
    let goes_on = kept.later.is_some();
    let bounds = Bounds { is_cut: left_out_count > 0, goes_on, ..Bounds::default() };
    let first = session.transcript.next_id();
    let Played { mark, mut needs, .. } = play::play_to(session, events, kept.mark, bounds, now);
    if left_out_count == 0 {
        needs.clear();
    }
    record::push_later(session, kept.later.map_or(0, |(_, count)| count));
    paging::on_restored(session, first, (first_seq, end_seq), needs, earlier);
    session.recorder = RecorderState::of_kept(head, &session.draft, &session.queue);
    mark
}

/// Adds a page of later events at the end, replacing the line with their number.
pub(in crate::app) fn append(session: &mut Session, window: EventPage, now: Instant) {
    if let Some(line) = session.pages.later_line.take() {
        session.transcript.remove(line);
    }
    let (is_cut, goes_on) = (session.pages.book.earlier.is_some(), window.later_count > 0);
    let bounds = Bounds { is_cut, is_continued: true, goes_on, is_over: false };
    let Played { needs, .. } = play::play_to(session, window.events, None, bounds, now);
    record::push_later(session, window.later_count);
    paging::on_appended(session, window.next_seq, needs);
}

/// The item that shows the requested event, found by its content: items of a live session have no event numbers.
pub(in crate::app) fn position_of(session: &Session, window: EventPage, now: Instant) -> Option<ItemId> {
    let mut part = Session::new(session.key, session.workspace.clone());
    let mark = play::play_to(&mut part, window.events, window.mark, Bounds::default(), now).mark?;
    let wanted = part.transcript.get(mark)?;
    let of_turn = || session.transcript.items().iter().filter(|item| item.turn == wanted.turn);
    let same = of_turn().find(|item| is_same(&item.body, &wanted.body));
    same.or_else(|| of_turn().next()).map(|item| item.id)
}

/// Whether a shown item equals this one, whose start or end may be missing.
fn is_same(shown: &ItemBody, wanted: &ItemBody) -> bool {
    let text = |message: &Message| {
        let texts = message.parts.iter().filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.as_str()),
            MessagePart::Block(_) => None,
        });
        texts.collect::<String>()
    };
    match (shown, wanted) {
        (ItemBody::Message(shown), ItemBody::Message(wanted)) => {
            shown.role == wanted.role && text(shown).contains(text(wanted).trim())
        }
        (ItemBody::Tool(shown), ItemBody::Tool(wanted)) => shown.id == wanted.id,
        _ => shown == wanted,
    }
}
