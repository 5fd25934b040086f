//! The app: a pure reducer over plain state.
//!
//! [`update`] decides what each event means and returns the work to do as [`Effect`]s. It never fails, never blocks and
//! reads no clock (`now` is an argument); drawing, IO and the protocol are elsewhere.
//!
//! Each layer calls only those before it (`tests/tidy/layers.rs`): [`state`] is the data and the queries on it, `session`
//! needs one session only, `recording` exchanges data with the store, [`lifecycle`] handles connections, turns and
//! requests of agents, and [`dialogs`] handles the keys. This file dispatches events to the layers, makes the first state
//! ([`start`]) and performs what a lower layer requests of the dialogs ([`UiRequest`]).

pub mod dialogs;
pub mod lifecycle;
mod recording;
mod session;
pub mod state;

pub use dialogs::modal::*;
pub use lifecycle::archive::unknown_agent;
pub use lifecycle::policy::{ListedGrant, granted, protected_files};
pub use recording::restore::restore;
pub use session::play::play;
pub use state::conn::*;
pub use state::effect::*;
pub use state::event::Event;
pub use state::files::FileJobs;
pub use state::line::LineInput;
pub use state::question::{
    Answer, Consequence, FormValues, Question, QuestionId, RewindWay, TrustAnswer, URL_OPTIONS, UserAnswer,
};
pub use state::recorded::{Handover, Loading, Reading, RecorderState};
pub use state::replay::{Replay, Spool};
pub use state::session::*;
pub use state::sessions::Sessions;
pub use state::tab::TabMark;
pub use state::titles::{session_title, title_of};
pub use state::transcript::*;
pub use state::unseen::{Unseen, UnseenKind};
pub use state::{
    AUTO_THEME, AgentChoice, ConfigNews, Counters, DiffLayout, DiffRoom, FolderRequest, MouseOwner, OtherTab,
    ProjectRequest, Screen, Setup, State, ThemeInfo, UiRequest,
};

use std::time::Instant;

use crate::guard::Input;
use crate::model::{
    Action, AgentEvent, Anomaly, AnomalyKind, CommandAccess, ConnId, CopyContent, CopyJob, RecordedSession,
    Reply, ServiceEvent, SessionKey, Severity, StoreNews, Unsaved,
};

/// Maximum number of quirks listed for a connection.
const MAX_QUIRKS: usize = 40;
/// Maximum number of lines of noise that a connection retains for its end.
const MAX_NOISE_LINES: usize = 5;
/// More lines of noise before the first message are not a greeting.
const MUCH_NOISE: u64 = 50;

/// The initial state: one session in the folder of the setup, whose agent is starting or about to be picked.
pub fn start(mut setup: Setup, now: Instant) -> (App, Vec<Effect>) {
    let start_with = setup.start_with.clone();
    let (reopen, unsaved) = (setup.reopen.take(), setup.unsaved.take());
    let other_tabs = std::mem::take(&mut setup.other_tabs);
    let unsaved = unsaved.map(|why| Unsaved { why, ..Unsaved::default() });
    let mut state = State { unsaved, ..State::new(setup) };
    let mut cx = Cx::new(now);
    let key = state.add_session();
    state.active = key;
    if let Some(saved) = reopen {
        reopen_session(&mut state, key, *saved, &mut cx);
    }
    let named = std::mem::take(&mut state.setup.first_settings);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.settings.name(named);
    }
    show_problems(&mut state, key);
    lifecycle::servers::take_known(&mut state, key);
    let folder = state.setup.folder.clone();
    lifecycle::archive::ask_of_folder(&state, &mut cx);
    cx.effects.push(Effect::LoadGrants);
    cx.effects.push(Effect::LoadHistory { session: key, folder: folder.clone() });
    cx.effects.push(Effect::ReadGit { session: key, folder });
    let offers = std::mem::take(&mut state.setup.folder_offers);
    let selects_folder = !offers.is_empty();
    let question = state.setup.project.take().filter(|_| !selects_folder);
    // It may choose another agent.
    let waits = question.as_ref().is_some_and(|question| question.agent.is_some());
    let held = waits.then(|| start_with.clone().map(Box::new));
    match start_with {
        _ if selects_folder => lifecycle::archive::offer_folders(&mut state, key, offers, now),
        _ if waits => {}
        Some(spec) => lifecycle::conn::start_agent(&mut state, key, spec, &mut cx),
        None if state.setup.lists_sessions => {}
        None => state.ui_requests.push(UiRequest::AgentPicker),
    }
    lifecycle::archive::reopen_tabs(&mut state, key, other_tabs, &mut cx);
    if state.setup.lists_sessions {
        state.ui_requests.push(UiRequest::Act(Action::OpenSessions));
    }
    let mut app = App::new(state);
    dialogs::serve(&mut app, &mut cx);
    if let Some(question) = question {
        lifecycle::project::ask(&mut app.state, ProjectRequest { question, session: key, held }, now);
    }
    if let Some(text) = app.state.setup.first_prompt.take() {
        if !selects_folder && !app.state.setup.lists_sessions {
            lifecycle::operations::submit(&mut app.state, key, text, &mut cx);
        } else {
            // The user chooses a folder or a session first.
            cx.effects.push(Effect::View(ViewCommand::SetDraft(text.clone())));
            dialogs::on_draft(&mut app, text, &mut cx);
        }
    }
    dialogs::refresh(&mut app);
    (app, cx.effects)
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
        cx.effects.push(Effect::View(ViewCommand::SetDraft(session.draft.clone())));
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

/// Applies an event to the state and returns the effects.
pub fn update(app: &mut App, event: Event, now: Instant) -> Vec<Effect> {
    let mut cx = Cx::new(now);
    let front_before = app.state.active;
    let is_act = |event: &Event| matches!(event, Event::Act(_));
    let is_wanted = match &event {
        Event::Key(events) => events.iter().any(is_act),
        event => is_act(event),
    };
    let face = |app: &App| (app.modals.len(), state::tab::face(&app.state));
    let before = may_be_unseen(app, &event).then(|| face(app));
    if !lifecycle::updates::is_text_of_turn(&app.state, &event) {
        app.state.chrome_changes = app.state.chrome_changes.wrapping_add(1);
    }
    on_event(app, event, &mut cx);
    dialogs::serve(app, &mut cx);
    if before.is_none_or(|before| touches_front(&app.state) || before != face(app)) {
        app.state.changes = app.state.changes.wrapping_add(1);
    }
    if app.state.active != front_before && !is_wanted {
        dialogs::show_draft(app, &mut cx);
    }
    lifecycle::questions::dismiss_orphans(&mut app.state, &mut cx);
    lifecycle::requests::refuse_early(&mut app.state, &mut cx);
    lifecycle::requests::note_waits(&mut app.state, now);
    dialogs::refresh(app);
    dialogs::show_left_keys(app, &mut cx);
    dialogs::set_search_timer(&mut app.state, &mut cx);
    dialogs::send_requests(app, &mut cx);
    recording::recorder::flush(&mut app.state, &mut cx);
    state::bodies::trim(&mut app.state, &mut cx);
    cx.effects
}

fn on_event(app: &mut App, event: Event, cx: &mut Cx) {
    match event {
        Event::Agent(conn, event) => on_agent(&mut app.state, conn, event, cx),
        Event::Act(action) => dialogs::on_action(app, action, cx),
        Event::Answer(id, answer) => dialogs::answer(app, id, answer, cx),
        Event::Draft(text) => dialogs::on_draft(app, text, cx),
        Event::Mention(typed) => dialogs::on_mention(app, typed, cx),
        Event::Argument(range, path) => dialogs::on_argument(app, (range, path), cx),
        Event::RunCommand(text) => dialogs::on_command_line(app, &text, cx),
        Event::TypeIn(input) => lifecycle::operations::type_in(&app.state, app.state.active, input, cx),
        Event::Copy(text) => {
            let what = "the yanked text".to_owned();
            cx.effects.push(Effect::Copy(CopyJob { what, content: CopyContent::Text(text) }));
        }
        Event::ReadClipboard => {
            cx.effects.push(Effect::ReadClipboard { session: app.state.active, before: None });
        }
        Event::Pasted(attachment) => cx.effects.push(Effect::SaveAttachment(attachment)),
        Event::Dropped { text, at, readings } => dialogs::on_dropped(&app.state, text, at, readings, cx),
        Event::Cursor(at) => app.user.cursor = at,
        Event::Line(edit) => dialogs::on_line(app, edit, cx),
        Event::Capturing(key) => dialogs::settings::on_capturing(app, key),
        Event::Captured { keys, label, taken } => {
            dialogs::settings::on_captured(app, keys, &label, taken, cx);
        }
        Event::Config(news) => dialogs::settings::on_news(app, *news, cx),
        Event::Message(text) => lifecycle::call::flash(&mut app.state, text, cx),
        Event::Open(target) => dialogs::on_open(&mut app.state, target, cx),
        Event::Reading(first, last) => dialogs::on_reading(&mut app.state, first, last),
        Event::Letter(key, action) => dialogs::on_letter(app, key, action, cx),
        Event::Backspace => dialogs::on_backspace(app, cx),
        Event::Click(action) => dialogs::on_click(app, action, cx),
        Event::Input => dialogs::on_input(app, Some(Input::Look), cx),
        Event::InputElsewhere => dialogs::on_input(app, Some(Input::Elsewhere), cx),
        Event::Key(events) => {
            let tells_guard = |event: &Event| {
                matches!(
                    event,
                    Event::Act(_)
                        | Event::Letter(..)
                        | Event::Backspace
                        | Event::Click(_)
                        | Event::InputElsewhere
                )
            };
            let is_text = events.iter().any(|event| matches!(event, Event::Draft(_)));
            let input = if is_text { Input::Paste } else { Input::Look };
            let is_reported = events.iter().any(tells_guard);
            dialogs::on_input(app, (!is_reported).then_some(input), cx);
            for event in events {
                on_event(app, event, cx);
                dialogs::serve(app, cx);
            }
        }
        Event::Service(event) => on_service(app, event, cx),
        Event::Timer(TimerId::CancelOverdue(key)) => {
            lifecycle::late::on_cancel_overdue(&mut app.state, key, cx.now);
        }
        Event::Timer(TimerId::TurnQuiet(key)) => lifecycle::late::on_quiet(&mut app.state, key, cx),
        Event::Timer(TimerId::Flash) => app.state.flash = None,
        Event::Timer(TimerId::QuitWindow) => app.state.last_interrupt = None,
        Event::Timer(TimerId::Commands(key)) => lifecycle::turn::on_commands(&mut app.state, key, cx),
        Event::Timer(TimerId::History(key)) => {
            lifecycle::spool::on_timer(&mut app.state, key, cx);
            lifecycle::turn::send_next(&mut app.state, key, cx);
        }
        Event::Timer(TimerId::SettingOverdue(key)) => {
            lifecycle::choices::on_overdue(&mut app.state, key, cx);
        }
        Event::Timer(TimerId::TypedInto(key)) => lifecycle::shell::on_pause(&mut app.state, key, cx),
        Event::Timer(TimerId::Search(key)) => dialogs::on_search_timer(app, key, cx),
        Event::Focus(has_focus) => {
            lifecycle::tabs::set_focus(&mut app.state, has_focus);
            if has_focus {
                app.guard.returned();
            }
        }
        Event::Returned => app.guard.returned(),
        Event::Theme(name) => dialogs::on_theme(app, name, cx),
        Event::Screen(screen) => {
            app.state.screen = Some(screen);
            lifecycle::shell::fit(&mut app.state, cx);
        }
        Event::Terminate => lifecycle::conn::quit(&mut app.state, cx),
    }
}

/// Whether the event is one of the frequent ones that may only affect an inactive tab.
fn may_be_unseen(app: &App, event: &Event) -> bool {
    // These show events of all agents.
    let is_everything_shown = matches!(app.modals.last(), Some(Modal::Log { .. } | Modal::Attention(_)));
    let is_one_of_many = matches!(
        event,
        Event::Agent(_, AgentEvent::Update(..))
            | Event::Service(
                ServiceEvent::TerminalOutput { .. }
                    | ServiceEvent::TerminalEnded { .. }
                    | ServiceEvent::TerminalRead { .. }
                    | ServiceEvent::FileDone { .. }
                    | ServiceEvent::DiffsLocated { .. }
                    | ServiceEvent::Git(..)
            )
            | Event::Timer(TimerId::Search(_))
    );
    // A single tab is always active; this is checked for every chunk.
    is_one_of_many && !is_everything_shown && state::tab::tabs(&app.state).nth(1).is_some()
}

/// Whether a session of the active tab was touched.
fn touches_front(state: &State) -> bool {
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

fn on_service(app: &mut App, event: ServiceEvent, cx: &mut Cx) {
    match event {
        ServiceEvent::FileDone { conn, request_id, result, served } => {
            lifecycle::callbacks::on_file_done(
                &mut app.state,
                (conn, request_id),
                result,
                served.map(|served| *served),
                cx,
            );
        }
        ServiceEvent::FileAsks { job, asked } => {
            lifecycle::callbacks::on_file_asks(&mut app.state, job, *asked, cx);
        }
        ServiceEvent::TerminalOutside { conn, request_id, session, command } => {
            lifecycle::callbacks::on_terminal_outside(
                &mut app.state,
                (conn, request_id),
                session,
                command,
                cx,
            );
        }
        ServiceEvent::Grants(grants) => app.state.grants = grants,
        ServiceEvent::TerminalStarted { conn, request_id, session, command, result } => {
            lifecycle::callbacks::on_terminal_started(
                &mut app.state,
                conn,
                request_id,
                session,
                command,
                result,
                cx,
            );
        }
        ServiceEvent::ShellStarted { session, number, line, folder, result } => {
            let command = CommandAccess { line, cwd: folder, env: Vec::new() };
            lifecycle::shell::on_started(&mut app.state, (session, number), command, result, cx);
        }
        ServiceEvent::ShellFolder(key, folder) => {
            if let Some(session) = app.state.sessions.get_mut(&key) {
                session.shell.folder = (folder != session.workspace.cwd).then_some(folder);
            }
        }
        ServiceEvent::TerminalOutput { terminal, bytes } => {
            lifecycle::callbacks::on_terminal_output(&mut app.state, &terminal, &bytes, cx);
        }
        ServiceEvent::TerminalHidesInput { terminal, hides_input } => {
            lifecycle::shell::on_echo(&mut app.state, &terminal, hides_input, cx);
        }
        ServiceEvent::TerminalEnded { terminal, exit } => {
            lifecycle::callbacks::on_terminal_ended(&mut app.state, &terminal, &exit, cx);
        }
        ServiceEvent::TerminalRead { conn, request_id, result } => {
            lifecycle::callbacks::on_terminal_read(&mut app.state, conn, request_id, result, cx);
        }
        ServiceEvent::DiffsLocated { session, item, found } => {
            if let Some(session) = app.state.sessions.get_mut(&session) {
                session::diffs::on_located(session, item, found);
            }
        }
        ServiceEvent::ServersFound(folder, found) => {
            lifecycle::servers::on_found(&mut app.state, folder, found, cx);
        }
        ServiceEvent::BodiesSaved(is_saved) => state::bodies::on_saved(&mut app.state, is_saved),
        ServiceEvent::Git(key, git) => {
            // The &app.state of a remote folder is not known here.
            if let Some(session) =
                app.state.sessions.get_mut(&key).filter(|session| session.workspace.remote.is_none())
            {
                session.git = git;
            }
        }
        ServiceEvent::FilesFound { session, query, files, is_complete } => {
            dialogs::on_found(app, session, query, files, is_complete, cx);
        }
        ServiceEvent::SymbolsFound { session, query, symbols, has_tags } => {
            dialogs::on_symbols_found(app, session, query, symbols, has_tags);
        }
        ServiceEvent::TemplatesFound(key, list) => {
            lifecycle::templates::on_found(&mut app.state, key, list);
            lifecycle::turn::on_commands(&mut app.state, key, cx);
        }
        ServiceEvent::PromptPrepared(key, id, prepared) => {
            lifecycle::steer::on_prepared(&mut app.state, key, id, *prepared, cx);
        }
        ServiceEvent::DropRead(job, read) => dialogs::on_drop_read(app, &job, read, cx),
        ServiceEvent::SessionAttached(job, label) => {
            dialogs::on_session_attached(app, &job, label, cx);
        }
        ServiceEvent::ImagePasted { session, before, label } => {
            dialogs::on_image(app, session, &before, label, cx);
        }
        // The view inserts a text for the active session.
        ServiceEvent::ClipboardRead { session, text: Ok(_), .. } if session == app.state.active => {}
        ServiceEvent::ClipboardRead { text, .. } => {
            let why = text.err();
            let why = why.unwrap_or_else(|| "Not pasted, because you changed tabs.".to_owned());
            lifecycle::call::flash(&mut app.state, why, cx);
        }
        ServiceEvent::Folders(folders) => dialogs::tabs::on_folders(app, &folders),
        ServiceEvent::FolderFound { text, found } => dialogs::tabs::on_folder_found(app, &text, found),
        ServiceEvent::History(key, history) => {
            if let Some(session) = app.state.sessions.get_mut(&key) {
                // Prompts typed before the file was read follow it.
                let typed = std::mem::replace(&mut session.history, history);
                session.history.extend(typed);
            }
        }
        ServiceEvent::Store(news) => match *news {
            StoreNews::Prompts { serial, found } => dialogs::on_prompts_found(app, serial, found),
            StoreNews::Mentionable { folder, sessions } => {
                dialogs::on_mentionable(app, &folder, sessions);
            }
            news @ (StoreNews::Listed { .. } | StoreNews::Previewed { .. } | StoreNews::Found { .. }) => {
                dialogs::on_sessions_news(app, news, cx.now);
            }
            news => lifecycle::archive::on_news(&mut app.state, news, cx),
        },
        ServiceEvent::LoginDone(conn, result) => {
            lifecycle::auth::on_login_done(&mut app.state, conn, result, cx);
        }
        ServiceEvent::EditorDone(Ok(())) => {}
        ServiceEvent::DraftEdited { session, before, edited } => {
            dialogs::on_draft_edited(app, session, &before, edited, cx);
        }
        ServiceEvent::Copied { what, outcome } => dialogs::on_copied(&mut app.state, &what, &outcome, cx),
        ServiceEvent::RegistryRead { result, is_fetched } => {
            lifecycle::install::on_registry(&mut app.state, result, is_fetched, cx);
        }
        ServiceEvent::InstallProgress(line) => lifecycle::install::on_progress(&mut app.state, &line),
        ServiceEvent::AgentInstalled { agent, result } => {
            lifecycle::install::on_installed(&mut app.state, &agent, result, cx);
        }
        ServiceEvent::EditorDone(Err(text)) | ServiceEvent::Problem(text) => {
            lifecycle::call::flash(&mut app.state, text, cx);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
