//! Sessions and agents, without a screen: a pure reducer over plain state.
//!
//! [`on_event`] decides what an event means for the sessions and adds the work to do to the [`Cx`] as [`Effect`]s. It
//! never fails, never blocks and reads no clock; drawing, IO and the protocol are elsewhere. A front end
//! owns the [`State`], handles keys, and does what the core asks of it ([`UiRequest`]).
//!
//! Each layer calls only those before it (`tests/tidy/layers.rs`): [`state`] is the data and the queries on it, `session`
//! needs one session only, `recording` exchanges data with the store, and [`lifecycle`] handles connections, turns and
//! requests of agents. This file dispatches events to the layers, and makes the first state ([`start`]).

pub mod lifecycle;
mod recording;
pub(crate) mod session;
pub mod state;

pub use lifecycle::archive::unknown_agent;
pub use lifecycle::by_rule::rule_suggestions;
pub use lifecycle::policy::{ListedGrant, granted, protected_files};
pub use lifecycle::requests::risks;
pub use lifecycle::requests::saved::{SavedRequest, SavedRequests};
pub use recording::restore::restore;
pub use session::play::play;
pub use state::conn::*;
pub use state::effect::*;
pub use state::event::Event;
pub use state::files::FileJobs;
pub use state::line::LineInput;
pub use state::question::{
    Answer, Consequence, FormValues, Question, QuestionId, TrustAnswer, URL_OPTIONS, UserAnswer,
};
pub use state::recorded::{Handover, Loading, Reading, RecorderState};
pub use state::replay::{Replay, Spool};
pub use state::session::*;
pub use state::sessions::Sessions;
pub use state::tab::TabMark;
pub use state::titles::{session_title, title_of};
pub use state::transcript::*;
pub use state::ui_request::{RewindWay, UiRequest};
pub use state::unseen::{Unseen, UnseenKind};
pub use state::{
    AUTO_THEME, AgentChoice, ConfigNews, Counters, FolderRequest, MouseOwner, OtherTab, OutputRoom,
    ProjectRequest, Setup, State, ThemeInfo,
};

use std::time::Instant;

use crate::model::{
    Action, AgentEvent, Anomaly, AnomalyKind, CommandAccess, ConnId, RecordedSession, Reply, ServiceEvent,
    SessionKey, Severity, Unsaved,
};

/// Maximum number of quirks listed for a connection.
const MAX_QUIRKS: usize = 40;
/// Maximum number of lines of noise that a connection retains for its end.
const MAX_NOISE_LINES: usize = 5;
/// More lines of noise before the first message are not a greeting.
const MUCH_NOISE: u64 = 50;

/// The initial state: one session in the folder of the setup, whose agent is starting or about to be picked.
pub fn start(mut setup: Setup, cx: &mut Cx) -> State {
    let start_with = setup.start_with.clone();
    let (reopen, unsaved) = (setup.reopen.take(), setup.unsaved.take());
    let other_tabs = std::mem::take(&mut setup.other_tabs);
    let unsaved = unsaved.map(|why| Unsaved { why, ..Unsaved::default() });
    let grants = std::mem::take(&mut setup.grants);
    let mut state = State { unsaved, grants, ..State::new(setup) };
    let key = state.add_session();
    state.active = key;
    if let Some(saved) = reopen {
        reopen_session(&mut state, key, *saved, cx);
    }
    let named = std::mem::take(&mut state.setup.first_settings);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.settings.name(named);
    }
    show_problems(&mut state, key);
    if let Some(made) = state.setup.new_worktree.take() {
        lifecycle::call::notice(&mut state, key, Severity::Info, made.title, Some(made.details));
    }
    lifecycle::servers::take_known(&mut state, key);
    let folder = state.setup.folder.clone();
    lifecycle::archive::ask_of_folder(&state, cx);
    cx.effects.push(Effect::LoadHistory { session: key, folder: folder.clone() });
    cx.effects.push(Effect::ReadGit { session: key, folder });
    let offers = std::mem::take(&mut state.setup.folder_offers);
    let selects_folder = !offers.is_empty();
    let question = state.setup.project.take().filter(|_| !selects_folder);
    // It may choose another agent.
    let waits = question.as_ref().is_some_and(|question| question.agent.is_some());
    let held = waits.then(|| start_with.clone().map(Box::new));
    match start_with {
        _ if selects_folder => lifecycle::archive::offer_folders(&mut state, key, offers, cx.now),
        _ if waits => {}
        Some(spec) => lifecycle::conn::start_agent(&mut state, key, spec, cx),
        None if state.setup.lists_sessions => {}
        None => cx.requests.push(UiRequest::AgentPicker),
    }
    lifecycle::archive::reopen_tabs(&mut state, key, other_tabs, cx);
    if state.setup.lists_sessions {
        cx.requests.push(UiRequest::Act(Action::OpenSessions));
    }
    if let Some(question) = question {
        lifecycle::project::ask(&mut state, ProjectRequest { question, session: key, held }, cx.now);
    }
    // Otherwise the user chooses a folder or a session first.
    if !selects_folder
        && !state.setup.lists_sessions
        && let Some(text) = state.setup.first_prompt.take()
    {
        lifecycle::operations::submit(&mut state, key, text, cx);
    }
    state
}

/// Restores the first session from its record, with the current MCP servers and folder.
fn reopen_session(state: &mut State, key: SessionKey, saved: RecordedSession, cx: &mut Cx) {
    let folder = state.setup.folder.clone();
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let uid = saved.head.saved_as.clone().unwrap_or_default();
    let reading = Reading::of(&uid, &saved);
    lifecycle::archive::restore_all(session, saved, (None, ""), cx);
    if state.setup.folder_offers.is_empty() {
        session.workspace.cwd = folder;
    } else {
        lifecycle::archive::set_reading(session, reading, None);
    }
    for more in &state.setup.additional_directories {
        if !session.workspace.additional_directories.contains(more) {
            session.workspace.additional_directories.push(more.clone());
        }
    }
    if !session.draft.is_empty() {
        cx.requests.push(UiRequest::DraftChanged(key));
    }
    let waiting = session.outbox.queue_len();
    if waiting > 0 {
        let message = match waiting {
            1 => "1 prompt left in the queue.".to_owned(),
            _ => format!("{waiting} prompts left in the queue."),
        };
        lifecycle::call::flash(state, message, cx);
    }
}

fn show_problems(state: &mut State, key: SessionKey) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    for problem in &state.setup.problems {
        let notice = ItemBody::notice(Severity::Warning, problem.clone(), None);
        session.transcript.push(0, notice);
    }
}

/// Handles an event.
pub fn on_event(state: &mut State, event: Event, cx: &mut Cx) {
    match event {
        Event::Agent(conn, event) => on_agent(state, conn, event, cx),
        Event::Answer(id, answer) => {
            if let Err(why) = lifecycle::questions::answer(state, id, answer, cx) {
                lifecycle::call::flash(state, why, cx);
            }
        }
        Event::Service(event) => on_service(state, event, cx),
        Event::Timer(TimerId::CancelOverdue(key)) => lifecycle::late::on_cancel_overdue(state, key, cx.now),
        Event::Timer(TimerId::TurnQuiet(key)) => lifecycle::late::on_quiet(state, key, cx),
        Event::Timer(TimerId::Flash) => state.flash = None,
        Event::Timer(TimerId::QuitWindow) => state.last_interrupt = None,
        Event::Timer(TimerId::Commands(key)) => lifecycle::turn::on_commands(state, key, cx),
        Event::Timer(TimerId::History(key)) => {
            lifecycle::spool::on_timer(state, key, cx);
            lifecycle::turn::send_next(state, key, cx);
        }
        Event::Timer(TimerId::SettingOverdue(key)) => lifecycle::choices::on_overdue(state, key, cx),
        Event::Timer(TimerId::SnapshotOverdue(key)) => lifecycle::undo::on_overdue(state, key),
        Event::Timer(TimerId::TypedInto(key)) => lifecycle::shell::on_pause(state, key, cx),
        Event::Focus(has_focus) => lifecycle::tabs::set_focus(state, has_focus),
        Event::Terminate => lifecycle::conn::quit(state, cx),
        // The limits are compared after each event.
        Event::Timer(TimerId::Budget | TimerId::Search(_)) => {}
    }
}

/// Handles an event completely: [`on_event`], [`tidy`] and [`save`]. For a front end that shows no dialogs; the other
/// does its own work between these steps.
pub fn update(state: &mut State, event: Event, cx: &mut Cx) {
    on_event(state, event, cx);
    tidy(state, cx);
    save(state, cx);
}

/// Closes questions without a session, and refuses requests that cannot be answered. Called after each event, before a
/// front end shows the questions.
pub fn tidy(state: &mut State, cx: &mut Cx) {
    lifecycle::questions::dismiss_orphans(state, cx);
    lifecycle::requests::refuse_early(state, cx);
    lifecycle::requests::note_waits(state, cx.now);
    lifecycle::budget::watch(state, cx);
}

/// Records what has changed, moves what is saved out of memory, and lets effects wait for a snapshot. Called at the end of
/// each event.
pub fn save(state: &mut State, cx: &mut Cx) {
    recording::recorder::flush(state, cx);
    state::bodies::trim(state, cx);
    lifecycle::undo::hold(state, cx);
    lifecycle::worktrees::note_use(state, cx);
}

/// Whether a session of the active tab was touched.
pub fn touches_front(state: &State) -> bool {
    let front = state::tab::front(state);
    state.sessions.touched().iter().any(|key| state::lookup::root_of(state, *key) == front)
}

fn on_agent(state: &mut State, conn: ConnId, event: AgentEvent, cx: &mut Cx) {
    match event {
        AgentEvent::Update(session, update) => {
            lifecycle::updates::on_update(state, conn, session, update, cx);
        }
        AgentEvent::TurnBegan(session) => lifecycle::turn::own::on_began(state, conn, &session, cx),
        AgentEvent::TurnEnded(session, result) => {
            lifecycle::turn::own::on_ended(state, conn, &session, result, cx);
        }
        AgentEvent::Request(request_id, request) => {
            lifecycle::requests::on_request(state, conn, request_id, *request, cx);
        }
        AgentEvent::RequestWithdrawn(request_id) => {
            lifecycle::requests::on_withdrawn(state, conn, request_id, cx);
        }
        AgentEvent::Replied(tag, result) => {
            lifecycle::replies::on_replied(state, conn, &tag, result, cx);
        }
        AgentEvent::ElicitationComplete(id) => lifecycle::requests::on_page_done(state, conn, &id, cx),
        AgentEvent::Started { pid } => lifecycle::conn::on_started(state, conn, pid),
        AgentEvent::Sandboxed(text) => lifecycle::conn::on_sandboxed(state, conn, &text),
        AgentEvent::Ready(info) => lifecycle::conn::on_ready(state, conn, *info, cx),
        AgentEvent::InitializeFailed(error) => {
            lifecycle::conn::on_initialize_failed(state, conn, &error, cx);
        }
        AgentEvent::AuthStatus(status) => {
            lifecycle::unstable::on_response(state, conn, Ok(Reply::AuthStatus(status)));
        }
        AgentEvent::Interrupted(is_interrupted) => {
            if let Some(conn) = state.conns.get_mut(&conn) {
                conn.interrupted = is_interrupted.then(|| conn.interrupted.unwrap_or(cx.now));
            }
        }
        AgentEvent::SignInOutput(lines) => lifecycle::auth::on_output(state, conn, &lines, cx.now),
        AgentEvent::Anomaly(anomaly) => on_anomaly(state, conn, anomaly, cx.now),
        AgentEvent::Closed(reason) => lifecycle::conn::on_closed(state, conn, &reason, cx),
    }
}

fn on_anomaly(state: &mut State, id: ConnId, anomaly: Anomaly, now: Instant) {
    state.anomaly_count = state.anomaly_count.saturating_add(1);
    for key in state::lookup::sessions_of(state, id, false) {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.anomaly_count = session.anomaly_count.saturating_add(1);
        }
    }
    // The connection details list the quirks that were detected.
    if anomaly.kind == AnomalyKind::Dialect
        && let Some(info) = state.conns.get_mut(&id).and_then(|conn| conn.info.as_mut())
        && !info.quirks.contains(&anomaly.text)
        && info.quirks.len() < MAX_QUIRKS
    {
        info.quirks.push(anomaly.text);
        return;
    }
    // A program that is not an agent reports that on stdout, and exits.
    if anomaly.kind == AnomalyKind::Noise
        && let Some(conn) = state.conns.get_mut(&id)
    {
        if conn.noise.len() >= MAX_NOISE_LINES {
            conn.noise.remove(0);
        }
        let line = anomaly.text.clone();
        conn.noise.push(anomaly.text);
        conn.noise_count = conn.noise_count.saturating_add(1);
        let is_starting = matches!(conn.phase, ConnPhase::Starting { .. });
        if conn.noise_count == MUCH_NOISE && is_starting {
            let title = format!("{} wrote output that is not a protocol message.", conn.spec.shown_name());
            for key in state::lookup::sessions_of(state, id, false) {
                let advice = Some(state::texts::NOT_AN_AGENT.to_owned());
                lifecycle::call::notice(state, key, Severity::Warning, title.clone(), advice);
            }
        }
        lifecycle::auth::on_output(state, id, &[line], now);
    }
}

/// Handles an event of a service, unless it is one for the front end only.
fn on_service(state: &mut State, event: ServiceEvent, cx: &mut Cx) {
    match event {
        ServiceEvent::FileDone { conn, request_id, result, served } => {
            lifecycle::callbacks::on_file_done(
                state,
                (conn, request_id),
                result,
                served.map(|served| *served),
                cx,
            );
        }
        ServiceEvent::FileAsks { job, asked } => {
            lifecycle::callbacks::on_file_asks(state, job, *asked, cx);
        }
        ServiceEvent::TerminalOutside { conn, request_id, session, command } => {
            lifecycle::callbacks::on_terminal_outside(state, (conn, request_id), session, command, cx);
        }
        ServiceEvent::Held(key, news, span) => lifecycle::held::on_news(state, key, news, span, cx),
        ServiceEvent::Snapshot(key, news) => lifecycle::review::on_news(state, key, news, cx),
        ServiceEvent::Grants(grants) => state.grants = grants,
        ServiceEvent::TerminalStarted { conn, request_id, session, command, result } => {
            lifecycle::callbacks::on_terminal_started(state, conn, request_id, session, command, result, cx);
        }
        ServiceEvent::ShellStarted { session, number, line, folder, result } => {
            let command = CommandAccess { line, cwd: folder, env: Vec::new() };
            lifecycle::shell::on_started(state, (session, number), command, result, cx);
        }
        ServiceEvent::ShellFolder(key, folder) => {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.shell.folder = (folder != session.workspace.cwd).then_some(folder);
            }
        }
        ServiceEvent::TerminalOutput { terminal, bytes } => {
            lifecycle::callbacks::on_terminal_output(state, &terminal, &bytes, cx);
        }
        ServiceEvent::TerminalHidesInput { terminal, hides_input } => {
            lifecycle::shell::on_echo(state, &terminal, hides_input, cx);
        }
        ServiceEvent::TerminalEnded { terminal, exit } => {
            lifecycle::callbacks::on_terminal_ended(state, &terminal, &exit, cx);
        }
        ServiceEvent::TerminalRead { conn, request_id, result } => {
            lifecycle::callbacks::on_terminal_read(state, conn, request_id, result, cx);
        }
        ServiceEvent::DiffsLocated { session, item, found } => {
            if let Some(session) = state.sessions.get_mut(&session) {
                session::diffs::on_located(session, item, found);
            }
        }
        ServiceEvent::ServersFound(folder, found) => {
            lifecycle::servers::on_found(state, folder, found, cx);
        }
        ServiceEvent::BodiesSaved(is_saved) => state::bodies::on_saved(state, is_saved),
        ServiceEvent::Git(key, git) => {
            // The state of a remote folder is not known here.
            if let Some(session) =
                state.sessions.get_mut(&key).filter(|session| session.workspace.remote.is_none())
            {
                session.git = git;
            }
        }
        ServiceEvent::ProtectedRead(job, files) => lifecycle::protected::on_read(state, &job, files),
        ServiceEvent::RulesMatched(job, found) => lifecycle::by_rule::on_matched(state, &job, found),
        ServiceEvent::TemplatesFound(key, list) => {
            lifecycle::templates::on_found(state, key, list);
            lifecycle::turn::on_commands(state, key, cx);
        }
        ServiceEvent::PromptPrepared(key, id, prepared) => {
            lifecycle::steer::on_prepared(state, key, id, *prepared, cx);
        }
        // The view inserts a text for the active session.
        ServiceEvent::ClipboardRead { session, text: Ok(_), .. } if session == state.active => {}
        ServiceEvent::ClipboardRead { text, .. } => {
            let why = text.err();
            let why = why.unwrap_or_else(|| "Not pasted, because you changed tabs.".to_owned());
            lifecycle::call::flash(state, why, cx);
        }
        ServiceEvent::History(key, history) => {
            if let Some(session) = state.sessions.get_mut(&key) {
                // Prompts typed before the file was read follow it.
                let typed = std::mem::replace(&mut session.history, history);
                session.history.extend(typed);
            }
        }
        ServiceEvent::Store(news) => lifecycle::archive::on_news(state, *news, cx),
        ServiceEvent::LoginDone(conn, result) => {
            lifecycle::auth::on_login_done(state, conn, result, cx);
        }
        ServiceEvent::RegistryRead { result, is_fetched } => {
            lifecycle::install::on_registry(state, result, is_fetched, cx);
        }
        ServiceEvent::InstallProgress(line) => lifecycle::install::on_progress(state, &line),
        ServiceEvent::AgentInstalled { agent, result } => {
            lifecycle::install::on_installed(state, &agent, result, cx);
        }
        ServiceEvent::Worktree(key, news) => lifecycle::worktrees::on_news(state, key, *news, cx),
        ServiceEvent::EditorDone(Err(text)) | ServiceEvent::Problem(text) => {
            lifecycle::call::flash(state, text, cx);
        }
        ServiceEvent::EditorDone(Ok(()))
        | ServiceEvent::FilesFound { .. }
        | ServiceEvent::SymbolsFound { .. }
        | ServiceEvent::DropRead(..)
        | ServiceEvent::SessionAttached(..)
        | ServiceEvent::ImagePasted { .. }
        | ServiceEvent::Folders(_)
        | ServiceEvent::FolderFound { .. }
        | ServiceEvent::DraftEdited { .. }
        | ServiceEvent::Copied { .. } => {}
    }
}

#[cfg(test)]
pub(crate) mod tests;
