//! Opens sessions: `session/new`, `load`, `resume` and `fork`.
//!
//! Chooses the call that opens a session, applies its response, and falls back to another call when it fails. `conn`
//! handles processes, `auth` sign-ins, `listing` and `from_list` the agent's list.
//! Invariants: only advertised methods are called; a transcript is only replaced by a replay that has begun; the user
//! is always informed when an agent could not restore a conversation.

use crate::core::UiRequest;
use std::path::PathBuf;

use crate::model::{
    Call, CallError, ConnId, NoticeKind, Purpose, Reply, SessionId, SessionKey, SessionReply, Severity,
};

use super::chosen::ReportedSettings;
use super::{
    auth, call, chosen, close, conn, handover, held, history, prompt, requests, servers, spool, tabs, titles,
    turn, unstable, unsupported, updates,
};
use crate::core::recording::recorder;
use crate::core::session::{clear, record, settings};
use crate::core::state::session::Opened;
use crate::core::state::{lookup, tab, texts};
use crate::core::{
    ConnPhase, Cx, Effect, ItemBody, Replay, ResumeConfidence, ResumeState, SessionPhase, State, UnseenKind,
    session_title,
};

pub fn new_session(state: &mut State, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    let Some(conn) = state.conn_of(root).filter(|conn| conn.is_alive()).map(|conn| conn.id) else {
        if state.conn_of(root).is_some() {
            call::flash(state, "The agent is not running. Restart it, or select another agent.", cx);
        } else {
            cx.requests.push(UiRequest::AgentPicker);
        }
        return;
    };
    let folder = lookup::folder_of(state, root);
    let key = add_beside(state, conn, folder, cx);
    history::init_history(state, key, cx);
    open_if_ready(state, conn, key, cx);
}

/// Replaces a session by a new one with the same agent, folders, settings and unsent text. The former one is closed, and
/// stays in the list of sessions.
pub fn start_over(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let key = lookup::root_of(state, key);
    let Some(conn) = state.conn_of(key).filter(|conn| conn.is_alive()).map(|conn| conn.id) else {
        call::flash(state, texts::NOT_READY, cx);
        return;
    };
    let Some(former) = state.sessions.get(&key) else { return };
    if former.turn_count == 0 {
        call::flash(state, "The context is already empty.", cx);
        return;
    }
    let title = session_title(former);
    let fresh = state.add_session_in(former.workspace.cwd.clone());
    let Some(former) = state.sessions.get_mut(&key) else { return };
    let (workspace, rank) = (former.workspace.clone(), former.rank);
    let (history, git) = (former.history.clone(), former.git.clone());
    let (draft, queue) = (std::mem::take(&mut former.draft), former.outbox.take_queue());
    let stash = std::mem::take(&mut former.stash);
    let chosen = former.settings.chosen().to_vec();
    if let Some(session) = state.sessions.get_mut(&fresh) {
        (session.workspace, session.rank) = (workspace, rank);
        (session.history, session.git) = (history, git);
        (session.draft, session.stash) = (draft, stash);
        session.outbox.adopt(queue);
        session.settings.set_chosen(chosen);
        session.phase = SessionPhase::Starting { since: cx.now };
        conn::take_conn(session, conn);
        let notice = format!("New session with an empty context. Previous session: {title}");
        session.transcript.push(0, ItemBody::notice(Severity::Info, notice, None));
    }
    held::move_all(state, key, fresh);
    if tab::front(state) == key {
        tabs::activate(state, fresh);
    }
    close::close_session(state, key, cx);
    open_if_ready(state, conn, fresh, cx);
}

/// Copies the session if the agent supports that, optionally up to the end of a turn.
pub fn fork_session(state: &mut State, key: SessionKey, at: Option<u32>, cx: &mut Cx) {
    let Some((conn, caps)) =
        state.conn_of(key).filter(|conn| conn.phase == ConnPhase::Ready).map(|c| (c.id, c.capabilities()))
    else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
        return;
    };
    let Some(source) = state.sessions.get(&key).filter(|session| session.phase == SessionPhase::Ready) else {
        call::flash(state, crate::core::state::texts::NOT_OPEN, cx);
        return;
    };
    if source.loading.is_some() {
        call::flash(state, "The session is still being read. Try again in a moment.", cx);
        return;
    }
    let (Some(id), true) = (source.id.clone(), caps.can_fork) else {
        call::flash(state, "This agent cannot fork sessions.", cx);
        return;
    };
    let turns = at.map_or(source.turn_count, |at| at.clamp(1, source.turn_count.max(1)));
    let workspace = source.workspace.clone();
    let mut copy = crate::core::Session {
        transcript: source.transcript.up_to_turn(turns),
        turn_count: turns,
        terminals: source.terminals.clone(),
        history: source.history.clone(),
        commands: source.commands.clone(),
        title: source.title.clone(),
        git: source.git.clone(),
        ..crate::core::Session::new(key, workspace.clone())
    };
    copy.resume = ResumeState::copy_of(key);
    copy.start.add_conn(conn);
    let source_title = session_title(source);
    let forked = add_beside(state, conn, workspace.cwd.clone(), cx);
    state.sessions.insert(
        forked,
        crate::core::Session {
            key: forked,
            rank: forked.0,
            conn: Some(conn),
            phase: SessionPhase::Opening { since: cx.now, is_replay: false },
            ..copy
        },
    );
    turn::close_items(state, forked, cx.now);
    recorder::link(state, key, forked, Some(turns));
    if let Some(copy) = state.sessions.get_mut(&forked) {
        record::say(copy, format!("Forked from: {source_title}"), None);
    }
    call::call(state, conn, Purpose::ForkSession(forked), Call::ForkSession(id, workspace, turns), cx);
}

/// Adds a session with an open connection, and activates it.
pub(crate) fn add_beside(state: &mut State, conn: ConnId, folder: PathBuf, cx: &mut Cx) -> SessionKey {
    let key = state.add_session_in(folder);
    tabs::activate(state, key);
    let spec = state.conns.get(&conn).map(|conn| &conn.spec);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.workspace.remote = spec.and_then(|spec| spec.remote_folder(&session.workspace.cwd));
        conn::take_conn(session, conn);
        session.phase = SessionPhase::Starting { since: cx.now };
        cx.effects.push(Effect::ReadGit { session: key, folder: session.workspace.cwd.clone() });
    }
    key
}

pub(in crate::core) fn open_if_ready(state: &mut State, conn: ConnId, key: SessionKey, cx: &mut Cx) {
    if state.conns.get(&conn).is_some_and(|conn| conn.phase == ConnPhase::Ready) {
        open(state, key, cx);
    }
}

/// Opens a session on its connection, which is ready. After a crash the transcript stays if the agent can resume; a
/// session from the list is loaded, because only a load replays its history.
pub(in crate::core) fn open(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let session = state.sessions.get(&key);
    let conn = state.conn_of(key).zip(session).filter(|(conn, session)| !tab::has_room(conn, session));
    if let Some((former, spec)) = conn.map(|(conn, _)| (conn.id, conn.spec.clone())) {
        // The sandbox of this process is for other folders.
        conn::join_or_connect(state, key, spec, cx);
        if lookup::sessions_of(state, former, false).is_empty() {
            conn::retire(state, former, false, cx);
        }
        return;
    }
    if unstable::must_wait(state, key) || servers::must_wait(state, key, cx) {
        return;
    }
    unsupported::report_servers(state, key);
    let caps = state.conn_of(key).map(crate::core::Conn::capabilities).unwrap_or_default();
    // An agent without an archive, or another agent, has nothing to unarchive.
    if let Some(session) = state.sessions.get_mut(&key).filter(|_| !caps.can_archive) {
        session.is_archived = false;
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_reopening = session.resume.is_reopening();
    if let Some(former) = session.resume.former_id().cloned().filter(|_| is_reopening) {
        session.id = Some(former);
    }
    let Some(session) = state.sessions.get(&key) else { return };
    let keeps_view = session.resume.keeps_view();
    // Only a load shows what the agent has under this id: another client may have continued the session.
    let may_differ =
        clear::was_cleared(session) || !session.resume.was_open() || session.resume.former_id().is_some();
    match &session.id {
        Some(id) if caps.can_archive && (session.is_archived || is_listed_away(state, key, id)) => {
            unarchive(state, key, cx);
        }
        Some(_) if caps.can_resume && (keeps_view && !may_differ || !caps.can_load) => {
            resume(state, key, cx);
        }
        Some(_) if caps.can_load => load(state, key, cx),
        Some(_) => open_replacement(state, key, "The agent can neither resume nor load sessions.", cx),
        None if is_reopening => open_replacement(state, key, "The session has no id.", cx),
        None => create(state, key, cx),
    }
}

fn is_listed_away(state: &State, key: SessionKey, id: &SessionId) -> bool {
    let listing = state.conn_of(key).map(|conn| &conn.listing.sessions);
    listing.into_iter().flatten().any(|info| info.is_archived && info.id == *id)
}

/// Unarchives a session before it continues. Source: `session/unarchive` (unstable).
fn unarchive(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.is_archived = true;
    }
    call_open(state, key, false, cx, |session| {
        Some((Purpose::Archive(key), Call::Archive(session.id.clone()?, false)))
    });
}

fn create(state: &mut State, key: SessionKey, cx: &mut Cx) {
    call_open(state, key, false, cx, |session| {
        Some((Purpose::NewSession(key), Call::NewSession(session.workspace.clone())))
    });
}

fn resume(state: &mut State, key: SessionKey, cx: &mut Cx) {
    // Some agents replay the history on a resume too.
    if state.sessions.get(&key).is_some_and(|session| session.turn_count > 0) {
        spool::begin(state, key, false);
    }
    call_open(state, key, false, cx, |session| {
        let id = session.id.clone()?;
        Some((Purpose::ResumeSession(key), Call::ResumeSession(id, session.workspace.clone())))
    });
}

fn load(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let is_shown = |session: &crate::core::Session| session.turn_count > 0 && session.resume.keeps_view();
    if state.sessions.get(&key).is_some_and(is_shown) {
        spool::begin(state, key, true);
    } else {
        spool::begin_whole(state, key);
    }
    call_open(state, key, true, cx, |session| {
        let id = session.id.clone()?;
        Some((Purpose::LoadSession(key), Call::LoadSession(id, session.workspace.clone())))
    });
}

fn call_open(
    state: &mut State,
    key: SessionKey,
    is_replay: bool,
    cx: &mut Cx,
    make: impl FnOnce(&crate::core::Session) -> Option<(Purpose, Call)>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let (Some(conn), Some((purpose, request))) = (session.conn, make(session)) {
        session.phase = SessionPhase::Opening { since: cx.now, is_replay };
        call::call(state, conn, purpose, request, cx);
    }
}

/// The title of the notice about a session that could not be opened.
const NOT_OPENED: &str = "The session could not be opened.";

/// Whether the last item is the notice that the agent could not restore the conversation.
fn ends_with_not_restored(session: &crate::core::Session) -> bool {
    let last = session.transcript.items().iter().rev().find(|item| !item.is_hidden());
    matches!(last.map(|item| &item.body), Some(ItemBody::Notice { kind: NoticeKind::NotRestored, .. }))
}

/// The agent could not restore the conversation: opens a new session, with a notice.
pub(in crate::core) fn open_replacement(state: &mut State, key: SessionKey, why: &str, cx: &mut Cx) {
    let session = state.sessions.get(&key);
    let has_talked = session.is_some_and(|session| session.turn_count > 0);
    let caps = state.conn_of(key).map(crate::core::Conn::capabilities).unwrap_or_default();
    let former = session.and_then(|session| session.id.clone());
    let former = former.filter(|_| has_talked && (caps.can_load || caps.can_resume));
    if session.is_some_and(ends_with_not_restored) {
        call::flash(state, "The agent still could not restore this conversation.", cx);
    } else if has_talked {
        let mut detail =
            format!("{why} A new session was started. The agent does not have the history above.");
        if let Some(offer) = handover::offer(state, key) {
            detail = format!("{detail}\n{offer}");
        }
        if former.is_some() {
            detail.push_str("\nRetries on each restart until you send a message.");
        }
        if let Some(session) = state.sessions.get_mut(&key) {
            let title = "The agent could not restore this conversation.".to_owned();
            record::notice(session, NoticeKind::NotRestored, Severity::Warning, title, Some(detail));
        }
    }
    let chosen = state.sessions.get_mut(&key).map(|session| session.settings.take_chosen());
    clear_agent_state(state, key);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.resume.not_restored(former, has_talked);
        session.settings.set_chosen(chosen.unwrap_or_default());
        session.outbox.stop_preparing();
        if has_talked && session.outbox.queue_len() > 0 {
            // These prompts were meant for the agent that knows the conversation: the user decides.
            session.outbox.hold();
            tabs::flash_hold(state, key, cx);
        }
    }
    create(state, key, cx);
}

/// Drops data of the previous agent, or of the previous session id.
pub(in crate::core) fn clear_agent_state(state: &mut State, key: SessionKey) {
    drop_replay(state, key);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.id = None;
        session.modes = None;
        session.models = None;
        session.options.clear();
        session.commands.clear();
        session.usage = None;
        session.plans.clear();
        session.outbox.expect_commands_until(None);
        session.resume.clear_agent_state();
        session.settings.clear_agent_state();
        session.index.forget_subagents();
        session.title_state.clear_agent_state();
    }
}

/// Aborts a replay that will not end, and restores the previous items.
pub(in crate::core) fn drop_replay(state: &mut State, key: SessionKey) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.recorder.end_diversion(false);
        match std::mem::take(&mut session.replay) {
            Replay::Running(former) => {
                session.turn_count = former.items().last().map_or(0, |item| item.turn);
                session.transcript.restore(*former);
                session.forget_positions();
            }
            beside @ Replay::Beside(_) => {
                session.replay = beside;
                spool::end(session);
            }
            Replay::None | Replay::Armed(_) => {}
        }
    }
}

/// The response to `new`, `load`, `resume` or `fork`.
pub(in crate::core) fn on_opened(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    purpose: &Purpose,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let is_awaited = state.sessions.get(&key).is_some_and(|session| {
        session.conn == Some(conn) && matches!(session.phase, SessionPhase::Opening { .. })
    });
    if !is_awaited {
        return;
    }
    let is_fresh = matches!(purpose, Purpose::NewSession(_) | Purpose::ForkSession(_));
    let result = match result {
        Ok(Reply::Session(reply)) if is_fresh && reply.id.is_none() => {
            Err(CallError::Malformed { error: "missing session id".to_owned() })
        }
        Ok(Reply::Session(reply)) => Ok(reply),
        // Some agents respond to a load or a resume with an empty result.
        Ok(Reply::Done) if !is_fresh => Ok(SessionReply::default()),
        // The agent has the session's id, so that it can be used.
        Err(CallError::TimedOut(seconds)) if is_last_resort(state, key, purpose) => {
            say_unanswered(state, key, seconds);
            Ok(SessionReply::default())
        }
        Ok(_) => Err(CallError::Malformed { error: "unexpected response".to_owned() }),
        Err(error) => Err(error),
    };
    match result {
        Ok(reply) => {
            let is_resumed = matches!(purpose, Purpose::ResumeSession(_));
            // A session without a prompt has nothing to restore except what parlor stored.
            let is_bare = state
                .sessions
                .get(&key)
                .is_some_and(|session| session.turn_count == 0 && !session.resume.is_reopening());
            if is_resumed && is_bare {
                let title = "Session resumed. The agent does not send earlier messages.";
                call::notice(state, key, Severity::Info, title, None);
            }
            finish(state, conn, key, is_fresh, reply, cx);
        }
        Err(error) => on_open_failed(state, conn, key, purpose, error, cx),
    }
}

fn is_last_resort(state: &State, key: SessionKey, purpose: &Purpose) -> bool {
    let can_load = state.conn_of(key).is_some_and(|conn| conn.capabilities().can_load);
    match purpose {
        Purpose::LoadSession(_) => true,
        Purpose::ResumeSession(_) => !can_load,
        _ => false,
    }
}

/// Says that the agent has not answered. It is not recorded, because it may be so on each start.
fn say_unanswered(state: &mut State, key: SessionKey, seconds: u64) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let title = format!("The agent has not answered the request to open the session within {seconds} s.");
    let detail = "Prompts are sent anyway. If the agent does not answer them either, restart it.".to_owned();
    let body = ItemBody::notice(Severity::Warning, title, Some(detail));
    session.transcript.push(session.turn_count, body);
}

fn finish(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    is_fresh: bool,
    reply: SessionReply,
    cx: &mut Cx,
) {
    let known = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    let commands = known.map(|info| info.commands.clone()).unwrap_or_default();
    turn::close_items(state, key, cx.now);
    let reported = ReportedSettings::of(&reply);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if reply.id.is_some() {
        session.id = reply.id;
    }
    // A response to load or resume may omit what did not change.
    if is_fresh || reply.modes.is_some() {
        session.modes = reply.modes;
    }
    if is_fresh || reply.models.is_some() {
        session.models = reply.models;
    }
    if is_fresh || !reply.options.is_empty() {
        session.options = reply.options;
    }
    if session.commands.is_empty() {
        session.commands = commands;
    }
    spool::on_answered(session, cx);
    let text = match session.resume.opened(is_fresh, reply.is_provisional) {
        Opened::AsUsual => None,
        Opened::Restored => Some("The agent restored this conversation."),
        Opened::Reconnected => Some("Session resumed."),
    };
    if let Some(text) = text {
        record::say(session, text.to_owned(), None);
    }
    session.phase = SessionPhase::Ready;
    session
        .outbox
        .expect_commands_until(session.commands.is_empty().then(|| cx.now + prompt::COMMANDS_LIMIT));
    settings::agree(session);
    let folder = session.workspace.cwd.clone();
    let id = session.id.clone();
    auth::on_proof(state, conn, cx);
    if let Some(id) = id {
        updates::replay_early(state, conn, key, &id, cx);
    }
    cx.effects.push(Effect::ReadGit { session: key, folder });
    chosen::restore_settings(state, key, reported, cx);
    titles::send_pending_title(state, key, cx);
    if let Some(session) = state.sessions.get_mut(&key) {
        // What another agent takes may differ.
        session.outbox.stop_preparing();
    }
    turn::send_next(state, key, cx);
}

fn on_open_failed(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    purpose: &Purpose,
    error: CallError,
    cx: &mut Cx,
) {
    // The end of the connection follows, with more details.
    if error == CallError::Lost {
        return;
    }
    drop_replay(state, key);
    let known = state.conns.get(&conn);
    let needs_sign_in = texts::is_auth_error(&error, known.and_then(|conn| conn.info.as_ref()));
    let caps = known.map(crate::core::Conn::capabilities).unwrap_or_default();
    let resume = state.sessions.get(&key).map(|session| &session.resume);
    let is_reopening = resume.is_some_and(ResumeState::is_reopening);
    let is_hinted = resume.is_some_and(|resume| resume.doubt() == Some(ResumeConfidence::Hinted));
    let text = texts::error_text(&error);
    let is_gone = texts::is_session_gone(&error);
    match purpose {
        Purpose::ForkSession(_) => drop_fork(state, key, &text, cx),
        _ if needs_sign_in => auth::need_sign_in(state, conn, key, &text, cx),
        Purpose::ResumeSession(_) if caps.can_load => load(state, key, cx),
        Purpose::ResumeSession(_) if is_hinted => {
            let title = "The last session has expired. A new session was started.";
            call::notice(state, key, Severity::Info, title, Some(text));
            clear_agent_state(state, key);
            create(state, key, cx);
        }
        Purpose::ResumeSession(_) | Purpose::LoadSession(_) if is_reopening && is_gone => {
            let why = format!("Resume failed: {text}");
            open_replacement(state, key, &why, cx);
        }
        _ => {
            call::notice(
                state,
                key,
                Severity::Error,
                texts::start_fault(NOT_OPENED, &error),
                Some(format!("{text}\n{}", texts::next_for_session(&error))),
            );
            if let Some(session) = state.sessions.get_mut(&key) {
                session.phase = SessionPhase::Failed(error);
            }
            let failed = UnseenKind::Failed(NOT_OPENED.to_owned());
            tabs::note_unseen(state, key, failed, cx.now);
        }
    }
}

/// Removes a copy that failed; text typed in it is moved to the source session.
fn drop_fork(state: &mut State, key: SessionKey, text: &str, cx: &mut Cx) {
    requests::clear_session(state, key, cx);
    let cause = format!("Fork failed: {text}");
    let Some(mut copy) = state.sessions.remove(&key) else { return };
    let source = copy.resume.copied_from().filter(|source| state.sessions.contains_key(source));
    let Some(source) = source.or_else(|| state.sessions.keys().copied().next_back()) else {
        // It was the only session left: it stays and shows the error.
        let phase = SessionPhase::Ended { cause };
        state.sessions.insert(key, crate::core::Session { phase, ..copy });
        return;
    };
    if let Some(session) = state.sessions.get_mut(&source) {
        session.outbox.adopt(copy.outbox.take_queue());
        if session.draft.is_empty() {
            session.draft = copy.draft;
        }
    }
    if state.active == key {
        // The copy was already removed, and its dialogs with it.
        tabs::activate(state, source);
    }
    call::flash(state, cause, cx);
}
