//! Restores a session from its record.
//!
//! Replays the records with the code that created the transcript live, with the same intervals between them. `conn`
//! starts the agent, `open` opens its session.

use std::sync::Arc;
use std::time::Instant;

use crate::model::{EventPage, ItemId, RecordedSession, Severity};

use crate::core::session::play;
use crate::core::{ItemBody, Message, MessagePart, Outbox, RecorderState, Session, TitleState};

/// Restores a session, or its end, without starting its agent.
pub fn restore(session: &mut Session, saved: RecordedSession, now: Instant) {
    let RecordedSession { head, usage, draft, queue, stash, held, events, unreadable_count, .. } = saved;
    session.id.clone_from(&head.session);
    session.title.clone_from(&head.title);
    if head.workspace.cwd.is_absolute() {
        session.workspace.cwd.clone_from(&head.workspace.cwd);
    }
    session.workspace.additional_directories.clone_from(&head.workspace.additional_directories);
    session.usage = usage;
    session.draft = draft;
    session.stash = stash;
    session.held.files = Arc::new(held);
    restore_queue(session, &queue);
    session.settings.set_chosen(head.chosen.clone());
    session.title_state = TitleState::saved(head.has_own_title, head.owes_title);
    say_origin(session, saved.came_from.as_ref());
    say_unreadable(session, unreadable_count);
    play::play(session, events, now);
    session.recorder = RecorderState::of_saved(head, &session.draft, queue, &session.stash);
    session.recorder.reported = saved.reported;
}

pub(in crate::core) fn say_origin(session: &mut Session, came_from: Option<&(String, String)>) {
    if let Some((uid, name)) = came_from {
        let title = format!("Continued from {uid}: {name}");
        session.transcript.push(session.turn_count, ItemBody::notice(Severity::Info, title, None));
    }
}

/// Says how many events could not be read.
pub(in crate::core) fn say_unreadable(session: &mut Session, count: u64) {
    if count > 0 {
        let title = format!("{count} events of this session could not be read.");
        session.transcript.push(session.turn_count, ItemBody::notice(Severity::Warning, title, None));
    }
}

pub(in crate::core) fn restore_queue(session: &mut Session, queue: &[String]) {
    session.outbox = Outbox::default();
    for prompt in queue {
        session.outbox.enqueue_on_hold(prompt.clone());
    }
}

/// The item that shows the requested event, found by its content: items of a live session have no event numbers.
pub(in crate::core) fn position_of(session: &Session, window: EventPage, now: Instant) -> Option<ItemId> {
    let mut part = Session::new(session.key, session.workspace.clone());
    let mark = play::play_to(&mut part, window.events, window.mark, now)?;
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
