//! Stored sessions: opening, reading and continuing them, and loading more of their history.
//!
//! Sends jobs to the store and applies its results. `modal::sessions` has the list, `restore` creates the transcript,
//! `open` calls the agent. A read-only session has no agent and records nothing; it is continued once the store has
//! locked it for this process.
//! Invariants: a session is open at most once; failures are reported; open sessions are not deleted.

mod offer;

use crate::core::Reading;
use crate::core::UiRequest;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::escape::visible;
use crate::model::{
    AgentSpec, ArchiveOpening, EventPage, FolderOffer, FolderReason, RecordedSession, SessionKey, Severity,
    StoreJob, StoreNews,
};

use super::{call, close, conn, from_list, history, spool, tabs, titles, turn};
use crate::core::recording::{loading, restore};
use crate::core::state::{lookup, tab};
use crate::core::{
    Consequence, Cx, Effect, ItemBody, OtherTab, Question, RecorderState, Session, SessionPhase, State,
};

pub(in crate::core) use offer::ask as ask_of_folder;
pub use offer::continue_last;

/// Requests the list of stored sessions; returns the number of its pages.
pub fn list_saved(state: &mut State, cx: &mut Cx) -> u64 {
    state.next.store += 1;
    let serial = state.next.store;
    let folder = state.setup.folder.clone();
    cx.effects.push(Effect::Store(StoreJob::List { serial, folder }));
    serial
}

/// Opens a stored session to continue or read it, optionally at an event. An open session is activated.
pub fn open_saved(state: &mut State, uid: &str, takes: bool, at: Option<i64>, cx: &mut Cx) {
    let open = lookup::open_as(state, uid).or_else(|| lookup::read_as(state, uid).filter(|_| at.is_some()));
    if let Some(key) = open {
        tabs::activate(state, key);
        if let Some(at) = at {
            cx.effects.push(Effect::Store(StoreJob::Around { key, uid: uid.to_owned(), at }));
        }
        if takes {
            start_reading(state, key, cx);
        }
        return;
    }
    let folder = state.setup.folder.clone();
    cx.effects.push(Effect::Store(StoreJob::Open { uid: uid.to_owned(), takes, at, folder }));
}

/// Continues a read-only session: locks it in the store. If it is open in another tab, that one is activated. If its
/// folder is missing, or only an imported file names it, the user selects one first.
pub fn start_reading(state: &mut State, key: SessionKey, cx: &mut Cx) -> bool {
    let Some(uid) = lookup::reading_of(state, key).map(|reading| reading.uid.clone()) else { return false };
    if let Some(open) = lookup::open_as(state, &uid).filter(|open| *open != key) {
        let typed = state.sessions.get_mut(&key);
        let (draft, queue) = typed
            .map(|typed| (std::mem::take(&mut typed.draft), typed.outbox.take_free()))
            .unwrap_or_default();
        close::close_session(state, key, cx);
        tabs::activate(state, open);
        if let Some(session) = state.sessions.get_mut(&open).filter(|session| session.draft.is_empty()) {
            session.draft = draft;
        }
        for prompt in queue {
            turn::submit(state, open, prompt.text, cx);
        }
        return true;
    }
    if spool::is_spool(state, &uid) {
        call::flash(state, "Keep the agent's history as a session first, with the command palette.", cx);
        return true;
    }
    let Some(reading) = state.sessions.get_mut(&key).and_then(|session| session.read_only.as_mut()) else {
        return false;
    };
    if !reading.offers.is_empty() {
        ask_folder(state, key, cx.now);
        return true;
    }
    if !std::mem::replace(&mut reading.is_taking, true) {
        cx.effects.push(Effect::Store(StoreJob::Take { key, uid: reading.uid.clone() }));
    }
    true
}

pub fn go_on_in(state: &mut State, key: SessionKey, folder: PathBuf, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.workspace.cwd.clone_from(&folder);
        if let Some(reading) = &mut session.read_only {
            reading.offers.clear();
        }
        cx.effects.push(Effect::ReadGit { session: key, folder });
        start_reading(state, key, cx);
    }
}

/// Moves the stored sessions of a read-only session's missing folder to another.
pub fn move_sessions(state: &State, key: SessionKey, to: PathBuf, cx: &mut Cx) {
    if let Some(session) = state.sessions.get(&key).filter(|session| session.read_only.is_some()) {
        let from = session.workspace.cwd.clone();
        cx.effects.push(Effect::Store(StoreJob::MoveFolder { from, to }));
    }
}

pub(in crate::core) fn on_news(state: &mut State, news: StoreNews, cx: &mut Cx) {
    match news {
        StoreNews::UsedAgents { here, all } => offer::on_agents(state, here, all, cx),
        StoreNews::FolderSession(row) => offer::on_session(state, *row, cx),
        StoreNews::Unsaved(unsaved) => {
            let former = std::mem::replace(&mut state.unsaved, unsaved);
            if let (Some(unsaved), Some(former)) = (&mut state.unsaved, former) {
                // The recorder may not have received the latest changes.
                former.turns.into_iter().for_each(|(key, turns)| unsaved.note(key, turns));
            }
        }
        StoreNews::UsedToday { day_ms, used } => super::budget::on_day(state, day_ms, used),
        StoreNews::Reported(message) => push_note(state, Severity::Warning, message),
        // `update` passes these to the dialogs.
        StoreNews::Listed { .. }
        | StoreNews::Previewed { .. }
        | StoreNews::Found { .. }
        | StoreNews::Prompts { .. }
        | StoreNews::Mentionable { .. } => {}
        StoreNews::Opened(opening) => on_opened(state, *opening, cx),
        StoreNews::NotSaved(conn, info) => from_list::on_not_kept(state, conn, *info, cx),
        StoreNews::Taken { key, saved } => on_taken(state, key, saved.map(|saved| *saved), cx),
        StoreNews::Loaded { key, page } => {
            loading::on_loaded(state, key, page, cx);
            if let Some(session) = state.sessions.get_mut(&key) {
                spool::on_whole(session);
            }
            turn::send_next(state, key, cx);
        }
        StoreNews::Around { key, page } => on_around(state, key, page, cx),
        StoreNews::SpoolRead { key, from, events } => {
            spool::on_read(state, key, from, events, cx.now);
            turn::send_next(state, key, cx);
        }
        StoreNews::Forgotten { key, turns, result } => spool::on_forgotten(state, key, turns, result, cx),
        StoreNews::Renamed { uid, title, result } => match result {
            Ok(whose) => titles::on_renamed(state, &uid, &title, whose, cx),
            Err(why) => call::flash(state, format!("Rename failed: {why}"), cx),
        },
        StoreNews::TitleKnown { uid, result } => match result {
            Ok(()) => titles::mark_title(state, &uid, None, false, cx),
            Err(why) => call::flash(state, why, cx),
        },
        StoreNews::Deleted { uid, result } => match result {
            Ok(()) => {
                cx.requests.push(UiRequest::SavedGone(uid));
                call::flash(state, "Session deleted from parlor.", cx);
            }
            Err(why) => call::flash(state, format!("Delete failed: {why}"), cx),
        },
        StoreNews::Exported(Ok(path)) => {
            call::flash(state, format!("Exported to {}", path.display()), cx);
            let title = format!("Session exported to {}.", path.display());
            push_note(state, Severity::Info, title);
        }
        StoreNews::Exported(Err(why)) => call::flash(state, format!("Export failed: {why}"), cx),
        StoreNews::Written { key, upto } => spool::on_written(state, key, upto, cx),
        StoreNews::SavedAs { key, uid } => match state.sessions.get_mut(&key) {
            Some(session) => session.recorder.saved_as = Some(uid),
            None => spool::on_kept_as(state, key, uid),
        },
    }
}

/// Adds a line to the active transcript that is not recorded.
fn push_note(state: &mut State, severity: Severity, title: String) {
    if let Some(session) = state.sessions.get_mut(&state.active) {
        session.transcript.push(session.turn_count, ItemBody::notice(severity, title, None));
    }
}

fn on_opened(state: &mut State, opening: ArchiveOpening, cx: &mut Cx) {
    let ArchiveOpening { uid, takes, at, saved, offers } = opening;
    let saved = match saved {
        Ok(saved) => saved,
        Err(why) => return call::flash(state, why, cx),
    };
    if let Some(key) = lookup::open_as(state, &uid).filter(|_| at.is_none()) {
        tabs::activate(state, key);
        return;
    }
    let former = tab::front(state);
    // A message about the previous session no longer applies.
    state.flash = None;
    // Another part of the same read-only session replaces it.
    let read = lookup::read_as(state, &uid);
    let key = add(state, &uid, saved, (takes, at), cx);
    if let Some(read) = read {
        close::close_session(state, read, cx);
    }
    if takes {
        go_on(state, key, cx);
    }
    drop_unused(state, former, cx);
    if let Some(offers) = offers {
        offer_folders(state, key, offers, cx.now);
    }
}

/// Restores and activates a session, and reads the rest of it. `at`: the event to show.
fn add(
    state: &mut State,
    uid: &str,
    saved: RecordedSession,
    (takes, at): (bool, Option<i64>),
    cx: &mut Cx,
) -> SessionKey {
    // Its draft is in the tab where it is open.
    let is_second = lookup::open_as(state, uid).is_some_and(|open| lookup::reading_of(state, open).is_none());
    let key = state.add_session();
    let reading = Reading::of(uid, &saved);
    let open_in = saved.open_in;
    let searched = state.searched.take().unwrap_or_default();
    if let Some(session) = state.sessions.get_mut(&key) {
        restore_all(session, saved, (at, &searched), cx);
        if !takes {
            set_reading(session, reading, open_in);
        }
        if is_second {
            session.draft.clear();
            session.outbox.take_queue();
        }
        cx.effects.push(Effect::ReadGit { session: key, folder: session.workspace.cwd.clone() });
    }
    tabs::activate(state, key);
    history::init_history(state, key, cx);
    key
}

/// Restores the end of a session, and has the rest read if there is more, or an event is to be shown.
pub(in crate::core) fn restore_all(
    session: &mut Session,
    saved: RecordedSession,
    (at, searched): (Option<i64>, &str),
    cx: &mut Cx,
) {
    let (uid, end, has_more) =
        (saved.head.saved_as.clone().unwrap_or_default(), saved.end_seq, saved.has_earlier || at.is_some());
    let came_from = saved.came_from.clone();
    restore::restore(session, saved, cx.now);
    if has_more {
        loading::begin(session, &uid, end, came_from.as_ref(), (at, searched), cx);
    }
}

/// Finds an event in the transcript with the events around it.
fn on_around(state: &mut State, key: SessionKey, page: Result<EventPage, String>, cx: &mut Cx) {
    let found = match page {
        Ok(page) => state.sessions.get(&key).and_then(|session| restore::position_of(session, page, cx.now)),
        Err(why) => return call::flash(state, why, cx),
    };
    let searched = state.searched.take().unwrap_or_default();
    let Some(item) = found else { return call::flash(state, "Location not found in the transcript.", cx) };
    if state.active == key {
        cx.requests.push(UiRequest::ShowFound { session: key, item, snippet: searched });
    }
}

pub(in crate::core) fn set_reading(session: &mut Session, reading: Reading, open_in: Option<u32>) {
    session.recorder.saved_as = None;
    session.read_only = Some(reading);
    let cause = match open_in {
        Some(pid @ 1..) => {
            format!("This session is open in another parlor (pid {pid}). It is read-only here.")
        }
        Some(0) => "This session is open in another parlor. It is read-only here.".to_owned(),
        None => "This session is read-only. Start its agent to resume it.".to_owned(),
    };
    session.phase = SessionPhase::Ended { cause };
}

/// Opens the other tabs of the last run beside the active one, which stays active.
pub(in crate::core) fn reopen_tabs(state: &mut State, front: SessionKey, tabs: Vec<OtherTab>, cx: &mut Cx) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for OtherTab { saved, is_before, is_view } in tabs {
        let key = state.add_session_in(saved.head.workspace.cwd.clone());
        if let Some(session) = state.sessions.get_mut(&key) {
            let reading = Reading::of(saved.head.saved_as.as_deref().unwrap_or_default(), &saved);
            let open_in = saved.open_in;
            restore_all(session, *saved, (None, ""), cx);
            if is_view {
                set_reading(session, reading, open_in);
            }
            cx.effects.push(Effect::ReadGit { session: key, folder: session.workspace.cwd.clone() });
        }
        history::init_history(state, key, cx);
        if !is_view {
            start_known(state, key, cx);
        }
        if is_before { before.push(key) } else { after.push(key) }
    }
    let order = before.into_iter().chain([front]).chain(after);
    for (rank, key) in (1..).zip(order) {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.rank = rank;
        }
    }
}

/// Continues a stored session with its agent; the user chooses if it is not known.
fn go_on(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if !start_known(state, key, cx) {
        cx.requests.push(UiRequest::AgentPicker);
    }
}

/// Starts the agent of a stored session. Returns whether it is known.
fn start_known(state: &mut State, key: SessionKey, cx: &mut Cx) -> bool {
    if let Some(spec) = agent_of(state, key) {
        conn::start_agent(state, key, spec, cx);
        return true;
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        session.phase = SessionPhase::NoAgent;
        let recorder = &session.recorder;
        let name = recorder.agent().map_or("", |(name, ..)| name.as_str());
        let message = unknown_agent(name, recorder.saved_as().unwrap_or_default());
        call::notice(state, key, Severity::Info, message, None);
    }
    false
}

/// The hint for a stored session whose agent is not configured.
pub fn unknown_agent(name: &str, uid: &str) -> String {
    format!(
        "The agent of this session, {name:?}, is not configured. Select an agent, or for a remote agent \
            run `parlor --resume {uid} --connect URL`."
    )
}

/// The agent of a stored session: the configured one of that name, otherwise the recorded command.
fn agent_of(state: &State, key: SessionKey) -> Option<AgentSpec> {
    let (name, command, args) = state.sessions.get(&key)?.recorder.agent()?;
    let known = state.setup.agents.iter().find(|choice| choice.spec.name == *name);
    known.map(|choice| choice.spec.clone()).or_else(|| {
        (!command.is_empty()).then(|| AgentSpec {
            name: name.clone(),
            command: command.clone(),
            args: args.clone(),
            callbacks: state.setup.callbacks,
            ..AgentSpec::default()
        })
    })
}

/// Closes a session without prompts after another one was opened from it.
pub(in crate::core) fn drop_unused(state: &mut State, former: SessionKey, cx: &mut Cx) {
    let is_unused = state.sessions.get(&former).is_some_and(|session| {
        session.key != state.active
            && lookup::is_fresh(session)
            && session.draft.trim().is_empty()
            && session.outbox.is_empty()
            && session.requests.is_empty()
            && session.recorder.saved_as().is_none()
    });
    if is_unused {
        close::close_session(state, former, cx);
    }
}

fn on_taken(state: &mut State, key: SessionKey, saved: Result<RecordedSession, String>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(reading) = &mut session.read_only else { return };
    reading.is_taking = false;
    let saved = match saved {
        Ok(saved) => saved,
        Err(why) => return call::flash(state, why, cx),
    };
    let is_current = saved.end_seq == reading.end_seq;
    session.read_only = None;
    let (title, folder) = (session.title.clone(), session.workspace.cwd.clone());
    let draft = std::mem::take(&mut session.draft);
    // Those on hold are those of the record.
    let typed = session.outbox.take_free();
    if is_current {
        session.draft.clone_from(&saved.draft);
        restore::restore_queue(session, &saved.queue);
        session.title_state.owe(saved.head.owes_title);
        session.stash.clone_from(&saved.stash);
        session.held.files = Arc::new(saved.held);
        session.recorder = RecorderState::of_saved(saved.head, &session.draft, saved.queue, &session.stash);
        session.recorder.reported = saved.reported;
    } else {
        // Another parlor has continued it meanwhile.
        drop(session.transcript.take());
        session.forget_positions();
        session.turn_count = 0;
        restore_all(session, saved, (None, ""), cx);
    }
    session.title = title.or(session.title.take());
    session.workspace.cwd = folder;
    // Text typed while it was read-only takes precedence.
    if !draft.is_empty() {
        session.draft = draft;
    }
    session.outbox.adopt(typed);
    go_on(state, key, cx);
}

/// Reports that the folder is missing, or that only an imported file names it, and asks where to continue.
pub(crate) fn offer_folders(state: &mut State, key: SessionKey, offers: Vec<FolderOffer>, now: Instant) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let Some(reading) = &mut session.read_only {
        reading.offers = offers;
    }
    ask_folder(state, key, now);
}

/// Asks where to continue a read-only session.
fn ask_folder(state: &mut State, key: SessionKey, now: Instant) {
    let Some(session) = state.sessions.get(&key) else { return };
    let Some(offers) = session.read_only.as_ref().map(|reading| &reading.offers) else { return };
    let missing = &session.workspace.cwd;
    let label = |offer: &FolderOffer| {
        let why = match offer.why {
            FolderReason::Moved => "same folder, moved or renamed",
            FolderReason::Worktree => "worktree of the same repository",
            FolderReason::SameRemote => "repository with the same remote",
            FolderReason::SameName => "folder with the same name, may be unrelated",
            FolderReason::Current => "current folder",
            FolderReason::Imported => "folder named in the imported file",
        };
        format!("Resume in {} ({why})", visible(&offer.folder.to_string_lossy()))
    };
    let mut answers = Vec::new();
    for offer in offers {
        answers.push((label(offer), Consequence::GoOnIn(key, offer.folder.clone())));
        if offer.others > 0 {
            answers.push((
                format!("Resume there, and move the folder's other sessions, too ({})", offer.others),
                Consequence::MoveAllTo(key, offer.folder.clone()),
            ));
        }
    }
    answers.push(("Open read-only".to_owned(), Consequence::Close));
    let named = visible(&missing.to_string_lossy()).into_owned();
    let (title, body) = if offers.iter().any(|offer| offer.why == FolderReason::Imported) {
        let body = vec![
            format!("The file names the folder {named}."),
            "The agent can read and write files in the selected folder without asking.".to_owned(),
        ];
        ("Select a folder for the imported session", body)
    } else {
        let body = vec![
            format!("The folder {named} no longer exists."),
            "The agent may still use the old file paths.".to_owned(),
        ];
        ("Session folder not found", body)
    };
    state.ask(key, Question::new(title, body, answers).marking_last().asked_at(now));
}
