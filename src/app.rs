//! The app: a pure reducer over plain state.
//!
//! Duty: decides what every event means (`update`), and holds all that must survive a redraw.
//! Not its duty: drawing, IO, clocks, the wire.
//! Events come in wire order through one queue; what is to be done leaves as [`Effect`]s.
//! The user's side is `user` and the dialogs (`modal`), with `inbox` over all tabs; the agent's side is `conn` and `open` (processes and
//! sessions), `tabs`, `turn`, `updates` (with `messages`, `tools`, `terminals`), `asks` and `callbacks` (requests of
//! the agent, with `policy`, `files` and `access`), `auth` and `choices`. `archive` is what parlor itself kept of sessions, `handover` what one agent is
//! told of a conversation with another. `paging` lets parts of long transcripts go that are on the disk. `operations` is
//! what the one may ask of the other. `recorder` says what is worth keeping, `restore` makes a session of it. `replay_reconcile` holds
//! a history that an agent replays beside the record, `reconcile` compares the two, `insert` adds what only the agent has.
//! `update` is total: it never fails, never blocks, reads no clock (`now` is given).

mod access;
mod apply;
pub mod archive;
mod asks;
mod auth;
mod call;
mod callbacks;
pub mod changes;
mod choices;
mod chosen;
mod close;
mod conn;
mod diffs;
pub mod duplicate_diffs;
pub mod effect;
mod files;
pub mod fold;
mod from_list;
mod fuzzy;
pub mod handover;
pub mod inbox;
mod insert;
mod listing;
mod loading;
mod lookup;
mod messages;
pub mod modal;
mod open;
pub mod operations;
pub mod outline;
mod pages;
pub mod paging;
pub mod places;
mod play;
mod policy;
mod providers;
mod reconcile;
mod record;
mod recorded;
mod recorder;
mod replay;
pub mod replay_reconcile;
mod replies;
mod restore;
mod reveal;
pub mod search;
mod servers;
pub mod session;
mod sessions;
mod settings;
mod ssh_sign_in;
pub mod state;
pub mod tab;
pub mod tabs;
mod terminals;
pub mod texts;
mod titles;
mod tools;
pub mod transcript;
mod trim;
mod turn;
mod turns;
mod unstable;
mod unsupported;
mod updates;
pub mod user;

pub use archive::unknown_agent;
pub use effect::*;
pub use files::FileJobs;
pub use modal::*;
pub use pages::{Former, Pages};
pub use play::play;
pub use policy::{ListedGrant, granted, protected_files};
pub use recorded::{Earlier, Handover, Later, Reading, RecorderState};
pub use replay::{Aside, Replay, Unread};
pub use restore::restore;
pub use session::*;
pub use sessions::Sessions;
pub use state::*;
pub use tab::{TabMark, TabUi, Unseen, UnseenKind};
pub use tabs::{Beginning, NewTab};
pub use transcript::*;

use std::time::Instant;

use crate::model::{
    Action, AgentEvent, Anomaly, AnomalyKind, ConnId, ItemId, LineEdit, RecordedSession, Reply, ServiceEvent,
    SessionKey, Severity, Target,
};

/// Everything that can happen.
#[allow(clippy::large_enum_variant, reason = "an event is used once, where it was made")]
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A connection tells something.
    Agent(ConnId, AgentEvent),
    /// The user wants something.
    Act(Action),
    /// The text of the prompt changed; this is all of it.
    Draft(String),
    /// A line of text in the top dialog changes.
    Line(LineEdit),
    /// The user wants this opened: a file in the editor, a page in the browser.
    Open(Target),
    /// The first and the last item that are on the screen, told before a wish that counts from there.
    Reading(ItemId, ItemId),
    /// The reader left the end of the session in front, and this is the first item on the screen; or is back there.
    Reader(Option<ItemId>),
    /// A key, click or paste arrived that does nothing: the grace period of dialogs counts from it.
    Input,
    /// The same, and what it does, in order.
    Key(Vec<Event>),
    /// A service tells something.
    Service(ServiceEvent),
    /// A timer that was set ran out.
    Timer(TimerId),
    /// The terminal got or lost the focus.
    Focus(bool),
    /// This theme suits the terminal, and the user chose none.
    Theme(String),
    /// The system asked parlor to end (TERM, HUP, INT).
    Terminate,
}

/// Most quirks that are listed for a connection.
const MOST_QUIRKS: usize = 40;
/// Most lines of noise that a connection remembers for its last words.
const MOST_NOISE_LINES: usize = 5;
/// So many lines of noise before the first message are no greeting any more.
const MUCH_NOISE: u64 = 50;

/// The first state: one session in the folder of the setup, its agent starting or about to be picked.
pub fn start(mut setup: Setup, now: Instant) -> (State, Vec<Effect>) {
    let start_with = setup.start_with.clone();
    let (reopen, unsaved) = (setup.reopen.take(), setup.unsaved.take());
    let mut state = State { unsaved, ..State::new(setup) };
    let mut fx = Vec::new();
    let key = state.add_session();
    state.active = key;
    if let Some(kept) = reopen {
        reopen_session(&mut state, key, *kept, now, &mut fx);
    }
    show_problems(&mut state, key);
    servers::take_known(&mut state, key);
    let folder = state.setup.folder.clone();
    archive::ask_of_folder(&state, &mut fx);
    fx.push(Effect::LoadGrants);
    fx.push(Effect::LoadHistory { session: key, folder: folder.clone() });
    fx.push(Effect::ReadGit { session: key, folder });
    let offers = std::mem::take(&mut state.setup.folder_offers);
    match start_with {
        _ if !offers.is_empty() => archive::offer_folders(&mut state, key, &offers, now),
        Some(spec) => conn::start_agent(&mut state, key, spec, now, &mut fx),
        None => state.ui_requests.push(UiRequest::AgentPicker),
    }
    user::serve(&mut state, now, &mut fx);
    (state, fx)
}

/// Makes the first session of what was kept of it. Its servers are those of today, and so is its folder.
fn reopen_session(
    state: &mut State,
    key: SessionKey,
    kept: RecordedSession,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let folder = state.setup.folder.clone();
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let uid = kept.head.kept_as.clone().unwrap_or_default();
    let reading = Reading::of(&uid, &kept);
    restore::restore(session, kept, now);
    if state.setup.folder_offers.is_empty() {
        session.place.cwd = folder;
    } else {
        archive::set_reading(session, reading, None);
    }
    for more in &state.setup.additional_directories {
        if !session.place.additional_directories.contains(more) {
            session.place.additional_directories.push(more.clone());
        }
    }
    if !session.draft.is_empty() {
        fx.push(Effect::View(ViewCommand::SetDraft(session.draft.clone())));
    }
    let waiting = session.queue.len();
    if waiting > 0 {
        let words = match waiting {
            1 => "1 prompt left in the queue.".to_owned(),
            _ => format!("{waiting} prompts left in the queue."),
        };
        call::flash(state, words, fx);
    }
}

/// What is wrong with the configuration stands at the top of the first session.
fn show_problems(state: &mut State, key: SessionKey) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    for problem in &state.setup.problems {
        let notice = ItemBody::Notice { severity: Severity::Warning, title: problem.clone(), detail: None };
        session.transcript.push(0, notice);
    }
}

/// Applies an event to the state and says what is to be done.
pub fn update(state: &mut State, event: Event, now: Instant) -> Vec<Effect> {
    let mut fx = Vec::new();
    let front_before = state.active;
    let is_act = |event: &Event| matches!(event, Event::Act(_));
    let is_wish = match &event {
        Event::Key(events) => events.iter().any(is_act),
        event => is_act(event),
    };
    let face = may_be_unseen(state, &event).then(|| tab::face(state));
    on_event(state, event, now, &mut fx);
    user::serve(state, now, &mut fx);
    if face.is_none_or(|before| touches_front(state) || before != tab::face(state)) {
        state.changes = state.changes.wrapping_add(1);
    }
    if state.active != front_before && !is_wish {
        user::show_draft(state, &mut fx);
    }
    servers::settle(state, now, &mut fx);
    user::settle(state, now);
    user::settle_search(state, &mut fx);
    user::settle_sessions(state, &mut fx);
    trim::settle(state);
    recorder::flush(state, &mut fx);
    fx
}

fn on_event(state: &mut State, event: Event, now: Instant, fx: &mut Vec<Effect>) {
    match event {
        Event::Agent(conn, event) => on_agent(state, conn, event, now, fx),
        Event::Act(action) => user::on_action(state, action, now, fx),
        Event::Draft(text) => user::on_draft(state, text, fx),
        Event::Line(edit) => user::on_line(state, edit, now, fx),
        Event::Open(target) => user::on_open(state, target, fx),
        Event::Reading(first, last) => user::on_reading(state, first, last),
        Event::Reader(reader) => user::on_reader(state, reader),
        Event::Input => user::on_input(state, now),
        Event::Key(events) => {
            user::on_input(state, now);
            for event in events {
                on_event(state, event, now, fx);
                user::serve(state, now, fx);
            }
        }
        Event::Service(event) => on_service(state, event, now, fx),
        Event::Timer(TimerId::CancelOverdue(key)) => turn::on_cancel_overdue(state, key, now),
        Event::Timer(TimerId::TurnQuiet(key)) => turn::on_quiet(state, key, now, fx),
        Event::Timer(TimerId::Flash) => state.flash = None,
        Event::Timer(TimerId::QuitWindow) => state.last_interrupt = None,
        Event::Timer(TimerId::History(key)) => updates::on_history_timer(state, key, now, fx),
        Event::Timer(TimerId::SettingOverdue(key)) => choices::on_overdue(state, key, now, fx),
        Event::Timer(TimerId::Search(key)) => user::on_search_timer(state, key, fx),
        Event::Focus(has_focus) => state.has_focus = has_focus,
        Event::Theme(name) => user::on_theme(state, name, fx),
        Event::Terminate => conn::quit(state, now, fx),
    }
}

/// Whether the event is one of the many that may concern a tab behind the front alone.
fn may_be_unseen(state: &State, event: &Event) -> bool {
    // These show what comes from all agents.
    let is_everything_shown = matches!(state.modals.last(), Some(Modal::Log { .. } | Modal::Attention(_)));
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
    // With one tab there is none behind the front, and an agent's stream asks this for every chunk.
    is_one_of_many && !is_everything_shown && tab::tabs(state).nth(1).is_some()
}

/// Whether a session of the tab in front was touched.
fn touches_front(state: &State) -> bool {
    let front = tab::front(state);
    state.sessions.touched().iter().any(|key| lookup::root_of(state, *key) == front)
}

fn on_agent(state: &mut State, conn: ConnId, event: AgentEvent, now: Instant, fx: &mut Vec<Effect>) {
    match event {
        AgentEvent::Update(session, update) => updates::on_update(state, conn, session, update, now, fx),
        AgentEvent::Request(ask, request) => asks::on_ask(state, conn, ask, *request, now, fx),
        AgentEvent::AskWithdrawn(ask) => asks::on_withdrawn(state, conn, ask, now, fx),
        AgentEvent::Replied(tag, result) => replies::on_replied(state, conn, &tag, result, now, fx),
        AgentEvent::ElicitationComplete(id) => asks::on_page_done(state, conn, &id, fx),
        AgentEvent::Started { pid } => conn::on_started(state, conn, pid),
        AgentEvent::Ready(info) => conn::on_ready(state, conn, *info, now, fx),
        AgentEvent::InitializeFailed(error) => conn::on_initialize_failed(state, conn, &error, now, fx),
        AgentEvent::AuthStatus(status) => unstable::on_told(state, conn, Ok(Reply::AuthStatus(status))),
        AgentEvent::Anomaly(anomaly) => on_anomaly(state, conn, anomaly),
        AgentEvent::Closed(reason) => conn::on_closed(state, conn, &reason, now, fx),
    }
}

fn on_anomaly(state: &mut State, id: ConnId, anomaly: Anomaly) {
    state.anomaly_count = state.anomaly_count.saturating_add(1);
    for key in lookup::sessions_of(state, id, false) {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.anomaly_count = session.anomaly_count.saturating_add(1);
        }
    }
    // The details of the connection tell what was learned on the way.
    if anomaly.kind == AnomalyKind::Dialect
        && let Some(info) = state.conns.get_mut(&id).and_then(|conn| conn.info.as_mut())
        && !info.quirks.contains(&anomaly.text)
        && info.quirks.len() < MOST_QUIRKS
    {
        info.quirks.push(anomaly.text);
        return;
    }
    // A program that is no agent says so on stdout, and ends.
    if anomaly.kind == AnomalyKind::Noise
        && let Some(conn) = state.conns.get_mut(&id)
    {
        if conn.noise.len() >= MOST_NOISE_LINES {
            conn.noise.remove(0);
        }
        conn.noise.push(anomaly.text);
        conn.noise_count = conn.noise_count.saturating_add(1);
        let is_starting = matches!(conn.phase, ConnPhase::Starting { .. });
        if conn.noise_count == MUCH_NOISE && is_starting {
            let title = format!("{} wrote output that is not a protocol message.", conn.spec.name);
            for key in lookup::sessions_of(state, id, false) {
                let advice = Some(texts::NOT_AN_AGENT.to_owned());
                call::notice(state, key, Severity::Warning, title.clone(), advice);
            }
        }
    }
}

fn on_service(state: &mut State, event: ServiceEvent, now: Instant, fx: &mut Vec<Effect>) {
    match event {
        ServiceEvent::FileDone { conn, ask, result, served } => {
            callbacks::on_file_done(state, (conn, ask), result, served.map(|served| *served), now, fx);
        }
        ServiceEvent::FileAsks { job, asked } => callbacks::on_file_asks(state, job, *asked, now, fx),
        ServiceEvent::TerminalOutside { conn, ask, session, command } => {
            callbacks::on_terminal_outside(state, (conn, ask), session, command, now, fx);
        }
        ServiceEvent::Grants(grants) => state.grants = grants,
        ServiceEvent::TerminalStarted { conn, ask, session, command, result } => {
            callbacks::on_terminal_started(state, conn, ask, session, command, result, now, fx);
        }
        ServiceEvent::TerminalOutput { terminal, bytes } => {
            callbacks::on_terminal_output(state, &terminal, &bytes);
        }
        ServiceEvent::TerminalEnded { terminal, exit } => {
            callbacks::on_terminal_ended(state, &terminal, &exit, now, fx);
        }
        ServiceEvent::TerminalRead { conn, ask, result } => {
            callbacks::on_terminal_read(state, conn, ask, result, fx);
        }
        ServiceEvent::DiffsLocated { session, item, found } => {
            if let Some(session) = state.sessions.get_mut(&session) {
                diffs::on_located(session, item, found);
            }
        }
        ServiceEvent::ServersFound(folder, found) => servers::on_found(state, folder, found, now, fx),
        ServiceEvent::Git(key, git) => {
            // Of another machine's folder nothing is known here.
            if let Some(session) = state.sessions.get_mut(&key).filter(|session| session.place.far.is_none())
            {
                session.git = git;
            }
        }
        ServiceEvent::Folders(folders) => user::tabs::on_folders(state, &folders),
        ServiceEvent::FolderFound { text, found } => user::tabs::on_folder_found(state, &text, found),
        ServiceEvent::History(key, history) => {
            if let Some(session) = state.sessions.get_mut(&key) {
                // What was typed before the file was read comes after it.
                let typed = std::mem::replace(&mut session.history, history);
                session.history.extend(typed);
            }
        }
        ServiceEvent::Store(news) => archive::on_news(state, *news, now, fx),
        ServiceEvent::LoginDone(conn, result) => auth::on_login_done(state, conn, result, now, fx),
        ServiceEvent::EditorDone(Ok(())) => {}
        ServiceEvent::Copied { what, outcome } => user::on_copied(state, &what, &outcome, fx),
        ServiceEvent::EditorDone(Err(text)) | ServiceEvent::Trouble(text) => call::flash(state, text, fx),
    }
}

#[cfg(test)]
mod tests;
