//! Lets the oldest pages go.
//!
//! Invariant: a session is looked at only when a page was completed or written, or when the reader went somewhere.

use crate::app::{Earlier, Item, ItemBody, Modal, OpenAskKind, Session, State, user};
use crate::model::{EventPlace, ItemId, SessionKey, Severity, TerminalId};

use super::{Gone, Key, Page, index};
use crate::app::restore::earlier_words;
use crate::app::words;

/// So many items stay in any case: what a screen shows.
const LEAST_ITEMS: usize = 100;

/// So many items in front of what is read stay.
const NEAR_ITEMS: usize = 40;

/// Lets pages go where a session that was touched has too many. Called at the end of each update.
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
        _ if !state.setup.keeps_sessions => Some("This parlor keeps no sessions.".to_owned()),
        why => why.as_ref().map(|why| format!("It cannot be saved: {why}.")),
    };
    let names_items =
        |modal: &Modal| user::names_items(modal) || matches!(modal, Modal::Inspect(_) | Modal::Changes(_));
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
        || session.pages.book.reading > 0
        || session.ledger.reading.is_some();
    if is_looked_at {
        return;
    }
    let count = count_to_go(session, limit - limit / 4);
    if count > 0 {
        drop_pages(session, count);
    } else if let Some(trouble) = trouble.filter(|_| !session.pages.is_told) {
        session.pages.is_told = true;
        let title =
            format!("This session is larger than {} MiB, and all of it stays in memory.", limit >> 20);
        let detail = Some(format!("{trouble} Parts of it go to the disk once they can be saved."));
        let body = ItemBody::Notice { severity: Severity::Warning, title, detail };
        session.transcript.push(session.turn_count, body);
    }
}

/// How many of the oldest pages can go, until this many bytes are left.
fn count_to_go(session: &Session, goal: usize) -> usize {
    let pages = &session.pages;
    if session.ledger.keeping.kept_as.is_none() {
        return 0;
    }
    let item_count = session.transcript.items().len();
    let stays_from = item_count.saturating_sub(LEAST_ITEMS);
    let stays_from =
        pages.reader.map_or(stays_from, |reader| stays_from.min(index(reader).saturating_sub(NEAR_ITEMS)));
    let closed = &pages.book.closed;
    let mut left = pages.weight();
    let mut count = 0;
    while left > goal
        && let Some(page) = closed.get(count)
    {
        let next = closed.get(count + 1).unwrap_or(&pages.book.open);
        let is_kept = is_placed(page) && is_placed(next) && page.late <= pages.written && !page.is_cut;
        if !is_kept || next.first > stays_from || is_busy(session, page.first..next.first) {
            break;
        }
        left -= page.weight;
        count += 1;
    }
    count
}

fn is_placed(page: &Page) -> bool {
    matches!(page.begin, Some(EventPlace::Seq(_)))
}

/// Whether something happens in these items, or they are pointed to.
fn is_busy(session: &Session, range: std::ops::Range<usize>) -> bool {
    let is_marked = session.selected.is_some_and(|id| range.contains(&index(id)));
    let is_asked_about = session
        .asks
        .iter()
        .any(|ask| matches!(ask.kind, OpenAskKind::Permission { tool, .. } if range.contains(&index(tool))));
    is_marked
        || is_asked_about
        || session.ledger.open_message.is_some_and(|id| range.contains(&index(id)))
        || session
            .ledger
            .shown_by
            .iter()
            .any(|(id, at)| range.contains(&index(*at)) && runs_on(session, id, *at))
        || session.transcript.items().get(range).unwrap_or_default().iter().any(is_open)
}

fn is_open(item: &Item) -> bool {
    match &item.body {
        ItemBody::Message(message) => message.is_open,
        ItemBody::Tool(call) => !call.status.is_final(),
        ItemBody::Compaction { status, .. } => status == words::IN_PROGRESS,
        _ => false,
    }
}

/// Whether a command that an item shows may still write. The end of an agent's own is told in its turn or the next, or
/// never.
fn runs_on(session: &Session, id: &TerminalId, shown: ItemId) -> bool {
    let is_of_late = || session.transcript.get(shown).is_some_and(|item| item.turn + 1 >= session.turn_count);
    session.terminals.get(id).is_some_and(|view| view.exit.is_none() && (view.is_ours || is_of_late()))
}

/// Takes so many pages out of memory. They are on the disk.
fn drop_pages(session: &mut Session, count: usize) {
    let book = &session.pages.book;
    let end = book.closed.get(count).unwrap_or(&book.open);
    let (Some(EventPlace::Seq(before)), Some(uid)) = (end.begin, session.ledger.keeping.kept_as.clone())
    else {
        return;
    };
    let range = usize::from(book.has_head)..end.first;
    note_away(session, count);
    let book = &mut session.pages.book;
    for page in book.closed.drain(..count) {
        if let Some(EventPlace::Seq(begin)) = page.begin {
            book.gone.push(Gone { begin, weight: page.weight });
        }
    }
    let begin = book.gone.get(book.gone.len() - count).map_or(before, |gone| gone.begin);
    let events = u64::try_from(before - begin).unwrap_or(0);
    let has_head = std::mem::replace(&mut book.has_head, true);
    let count = events + session.ledger.earlier.as_ref().map_or(0, |earlier| earlier.count);
    let title = earlier_words(count);
    let head = ItemBody::Notice { severity: Severity::Info, title: title.clone(), detail: None };
    // The line takes the place of the first item, if there was none before.
    let by = range.len() - usize::from(!has_head);
    let end = range.end;
    session.transcript.remove(range, (!has_head).then_some(head));
    session.unshift_places(end, by);
    if has_head {
        set_head(session, title);
    }
    session.ledger.earlier = Some(Earlier { uid, before, count, is_loading: false, has_failed: false });
}

/// The line above all items says how much is kept, and not in memory.
pub(super) fn set_head(session: &mut Session, words: String) {
    session.transcript.edit(ItemId(0), |item| {
        if let ItemBody::Notice { title, .. } = &mut item.body {
            *title = words;
        }
    });
}

/// Remembers what goes with the first so many pages, and forgets where it was.
fn note_away(session: &mut Session, count: usize) {
    let mut away = std::mem::take(&mut session.pages.book.away);
    for place in 0..count {
        let book = &session.pages.book;
        let (Some(page), Some(next)) =
            (book.closed.get(place), book.closed.get(place + 1).or(Some(&book.open)))
        else {
            continue;
        };
        let Some(EventPlace::Seq(behind)) = next.begin else { continue };
        let range = page.first..next.first;
        let is_in = |id: &ItemId| range.contains(&index(*id));
        let turn = session.turn_count;
        for item in session.transcript.items().get(range.clone()).unwrap_or_default() {
            if let ItemBody::Message(message) = &item.body
                && let Some(id) = &message.message
            {
                away.put(&Key::Message(message.role, id), item.turn, behind);
            }
        }
        session.tools.retain(|id, at| {
            let goes = is_in(at);
            if goes {
                away.put(&Key::Tool(id), turn, behind);
            }
            !goes
        });
        let ledger = &mut session.ledger;
        ledger.former_tools.retain(|id, at| {
            let goes = is_in(at);
            if goes {
                away.put(&Key::Tool(id), turn.saturating_sub(1), behind);
            }
            !goes
        });
        ledger.compactions.retain(|id, at| {
            let goes = is_in(at);
            if goes {
                away.put(&Key::Compaction(id), turn, behind);
            }
            !goes
        });
        ledger.subagents.retain(|id, at| {
            let goes = is_in(at);
            if goes {
                away.put(&Key::Subagent(id), turn, behind);
            }
            !goes
        });
        ledger.shown_by.retain(|id, at| {
            let goes = is_in(at);
            if goes {
                away.put(&Key::Terminal(id), turn, behind);
                session.terminals.remove(id);
            }
            !goes
        });
    }
    session.tools.shrink_to_fit();
    session.ledger.former_tools.shrink_to_fit();
    session.pages.book.away = away;
}
