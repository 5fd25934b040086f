//! Unloads the oldest pages.
//!
//! Invariant: a session is checked only when a page was completed or written, or when the reader moved.

use crate::app::session::paging;
use crate::app::session::record::earlier_label;
use crate::app::state::pages::index_range;
use crate::app::state::texts;
use crate::app::{Earlier, Item, ItemBody, Modal, OpenRequestKind, Session, State};
use crate::model::{ItemId, SessionKey, Severity, TerminalId};

/// Minimum number of items that stay in memory: about a screen.
const LEAST_ITEMS: usize = 100;

/// Number of items before the reader that stay in memory.
const NEAR_ITEMS: usize = 40;

/// Unloads pages of touched sessions above their limit. Called at the end of each update.
pub(in crate::app) fn settle(state: &mut State) {
    let wants = |key: &&SessionKey| state.sessions.get(key).is_some_and(|session| session.pages.wants_trim);
    let keys: Vec<SessionKey> = state.sessions.touched().iter().filter(wants).copied().collect();
    for key in keys {
        trim(state, key);
    }
}

fn trim(state: &mut State, key: SessionKey) {
    let is_active = state.active == key;
    let trouble = match &state.unsaved {
        _ if !state.setup.keeps_sessions => Some("Saving of sessions is disabled.".to_owned()),
        why => why.as_ref().map(|why| format!("The session cannot be saved: {why}.")),
    };
    let names_items =
        |modal: &Modal| modal.names_items() || matches!(modal, Modal::Inspect(_) | Modal::Changes(_));
    let in_front = is_active && state.modals.iter().any(names_items);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let limit = session.pages.limit_bytes;
    if !std::mem::take(&mut session.pages.wants_trim) || limit == 0 || session.pages.weight() <= limit {
        return;
    }
    let is_looked_at = in_front
        || session.shelf.modals.iter().any(names_items)
        || session.search.is_some()
        || session.only.is_some()
        || session.pages.redo.is_some()
        || session.pages.earlier().is_some_and(|earlier| earlier.is_loading)
        || session.read_only.is_some();
    if is_looked_at {
        return;
    }
    let count = count_to_unload(session, limit - limit / 4);
    if count > 0 {
        drop_pages(session, count);
    } else if let Some(trouble) = trouble.filter(|_| !session.pages.is_told) {
        session.pages.is_told = true;
        let title =
            format!("This session is larger than {} MiB and cannot be unloaded from memory.", limit >> 20);
        let detail = Some(format!("{trouble} Older parts stay in memory until the session can be saved."));
        let body = ItemBody::notice(Severity::Warning, title, detail);
        session.transcript.push(session.turn_count, body);
    }
}

/// Number of the oldest pages to unload so that `goal` bytes are left.
fn count_to_unload(session: &Session, goal: usize) -> usize {
    let pages = &session.pages;
    if session.recorder.kept_as().is_none() {
        return 0;
    }
    let transcript = &session.transcript;
    let stays_from = transcript.items().len().saturating_sub(LEAST_ITEMS);
    let stays_from = pages.reader.map_or(stays_from, |reader| {
        stays_from.min(transcript.index_from(reader).saturating_sub(NEAR_ITEMS))
    });
    let book = &pages.book;
    let mut left = pages.weight();
    let mut count = 0;
    for page in book.loaded() {
        let next = book.page(book.unloaded + count + 1);
        let is_kept = page.seq().and(next.seq()).is_some() && page.late <= pages.written && !page.is_cut;
        let range = index_range(transcript, page.first, next.first);
        if left <= goal || !is_kept || range.end > stays_from || is_busy(session, range) {
            break;
        }
        left -= page.weight;
        count += 1;
    }
    count
}

/// Whether these items are active or referred to.
fn is_busy(session: &Session, range: std::ops::Range<usize>) -> bool {
    let is_in = |id: ItemId| session.transcript.index_of(id).is_some_and(|index| range.contains(&index));
    let is_marked = session.selected.is_some_and(is_in);
    let is_asked_about = session
        .requests
        .iter()
        .any(|request_id| matches!(request_id.kind, OpenRequestKind::Permission { tool, .. } if is_in(tool)));
    is_marked
        || is_asked_about
        || session.open_message.is_some_and(is_in)
        || session.index.terminals().any(|(id, at)| is_in(at) && runs_on(session, id, at))
        || session.transcript.items().get(range).unwrap_or_default().iter().any(is_open)
}

fn is_open(item: &Item) -> bool {
    match &item.body {
        ItemBody::Message(message) => message.is_open,
        ItemBody::Tool(call) => !call.status.is_final(),
        ItemBody::Compaction { status, .. } => status == texts::IN_PROGRESS,
        _ => false,
    }
}

/// Whether a command shown by an item may still write output. The end of an agent's terminal is reported in its turn or
/// the next, or never.
fn runs_on(session: &Session, id: &TerminalId, shown: ItemId) -> bool {
    let is_of_late = || session.transcript.get(shown).is_some_and(|item| item.turn + 1 >= session.turn_count);
    session.terminals.get(id).is_some_and(|view| view.exit.is_none() && (view.is_ours || is_of_late()))
}

/// Removes pages from memory. They are on disk.
fn drop_pages(session: &mut Session, count: usize) {
    let pages = session.pages.book.unloaded..session.pages.book.unloaded + count;
    let (first, end) = (session.pages.book.page(pages.start), session.pages.book.page(pages.end));
    let (Some(begin), Some(before)) = (first.seq(), end.seq()) else { return };
    let Some(uid) = session.recorder.kept_as().map(str::to_owned) else { return };
    let end = end.first;
    for at in pages.clone() {
        let book = &session.pages.book;
        let range = index_range(&session.transcript, book.page(at).first, book.page(at + 1).first);
        let subjects = paging::take_subjects(session, &range);
        if let Some(page) = session.pages.book.closed.get_mut(at) {
            (page.first, page.subjects) = (ItemId::HEAD, subjects);
        }
    }
    session.transcript.remove_before(end);
    let book = &mut session.pages.book;
    let events = u64::try_from(before - begin).unwrap_or(0);
    let count = events + book.earlier.as_ref().map_or(0, |earlier| earlier.count);
    book.unloaded = pages.end;
    book.earlier = Some(Earlier { uid, before, count, is_loading: false, has_failed: false });
    session.transcript.set_head(earlier_label(count));
}
