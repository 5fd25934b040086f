//! Commands: what can be wished from anywhere, by key or from the palette.
//!
//! [`obstacle`] is the one place that knows what makes sense now. The palette leaves out what it objects to;
//! a key for such a command says the objection.

use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::state::tab;
use crate::app::{
    ChangesDialog, ConnPhase, DiffLayout, Effect, Modal, MouseOwner, PickerKind, Session, SessionPhase,
    State, ViewCommand,
};
use crate::model::{Action, AgentInfo, ConfigKind, ConfigOption, ConfigValue};

use super::{
    choice, inbox, jump, leave, line_dialog, picker, places, providers, queue, rows, say, search, sessions,
    tabs,
};

/// Whether the action only opens a list or another session, so that it may be wished while a request of the
/// agent waits: nothing that scrolls, types, answers or changes the agent.
pub fn leads_elsewhere(action: Action) -> bool {
    matches!(
        action,
        Action::OpenPalette
            | Action::OpenConnection
            | Action::OpenAgents
            | Action::OpenSessions
            | Action::ContinueLast
            | Action::SearchSessions
            | Action::OpenModes
            | Action::OpenModels
            | Action::OpenOptions
            | Action::OpenProviders
            | Action::OpenThemes
            | Action::OpenGrants
            | Action::OpenQueue
            | Action::NewSession
            | Action::OpenAttention
    )
}

/// Why the action makes no sense now, in one sentence; `None` if it does. What the agent does not advertise
/// is never offered and never called.
pub fn obstacle(state: &State, action: Action) -> Option<&'static str> {
    let session = state.active_session()?;
    let info = info_of(state);
    let can = info.map(|info| info.capabilities).unwrap_or_default();
    let is_named = session.id.is_some();
    let unless = |is_fine: bool, why: &'static str| (!is_fine).then_some(why);
    match action {
        Action::OpenAgents | Action::NewTab => unless(!state.setup.agents.is_empty(), "No agents found."),
        Action::CloseSession => {
            unless(tab::tabs(state).count() > 1, "This is the only tab. Open another one first, or quit.")
        }
        Action::NextTab
        | Action::PreviousTab
        | Action::FormerTab
        | Action::MoveTabLeft
        | Action::MoveTabRight => unless(tab::tabs(state).count() > 1, "No other tabs."),
        Action::NewSession => unless(info.is_some(), crate::app::state::texts::NOT_READY),
        Action::ForkSession => unless(can.can_fork && is_named, "The agent cannot fork sessions."),
        Action::RenameSession => unless(is_named || session.read_only.is_some(), "No session to rename yet."),
        Action::ContinueLast => {
            unless(operations::last_session(state).is_some(), "No session to resume in this folder.")
        }
        Action::HandOver | Action::ExportSession => {
            unless(session.turn_count > 0, "No messages in this session yet.")
        }
        Action::LoadEarlier => unless(session.pages.book.earlier.is_some(), "Start of session."),
        Action::LoadLater => unless(
            session.read_only.as_ref().is_some_and(|reading| reading.later.is_some()),
            "End of session.",
        ),
        Action::OpenModes | Action::NextMode => {
            unless(mode_option(session).is_some() || has_modes(session), "The agent offers no modes.")
        }
        Action::OpenModels => {
            unless(model_option(session).is_some() || has_models(session), "The agent offers no models.")
        }
        Action::OpenOptions => unless(!session.options.is_empty(), "The agent offers no options."),
        Action::OpenThemes => unless(!state.setup.themes.is_empty(), "No other themes."),
        Action::OpenSignIn => {
            unless(info.is_some_and(|info| !info.auth_methods.is_empty()), "The agent has no sign-in method.")
        }
        Action::SignOut => unless(can.can_log_out, "The agent does not support signing out."),
        Action::OpenQueue => unless(!session.queue.is_empty(), "No queued prompts."),
        Action::OpenConnection => unless(session.conn.is_some(), "No agent running."),
        Action::SendAgain => unless(session.failed_prompt.is_some(), "No failed prompt."),
        Action::RestartAgent => unless(
            (session.conn.is_some() && session.phase != SessionPhase::NoAgent) || session.read_only.is_some(),
            "No agent running.",
        ),
        Action::ForceStop => unless(is_agent_alive(state), "No agent running."),
        Action::KillCommand => {
            unless(has_running_command(session) || operations::has_stoppable(session), "Nothing to stop.")
        }
        Action::ArchiveSession => unless(
            can.can_archive && is_named,
            "The agent does not support \
            archiving.",
        ),
        Action::OpenProviders => {
            unless(can.has_providers, "The agent does not support provider configuration.")
        }
        Action::TogglePlan => unless(!session.plans.is_empty(), "No plan."),
        Action::ToggleFold => unless(session.selected.is_some(), "Select an item first."),
        Action::OpenCopy
        | Action::CopyItem
        | Action::CopyReply
        | Action::CopyReplyPlain
        | Action::CopyCode
        | Action::CopyCommand
        | Action::CopyOutput
        | Action::CopyPatch
        | Action::CopyTurnPatch
        | Action::OpenFilter
        | Action::ToggleAllFolds => {
            unless(!session.transcript.items().is_empty(), "The transcript is empty.")
        }
        _ if action.counts_from_screen() => {
            unless(!session.transcript.items().is_empty(), "The transcript is empty.")
        }
        Action::Submit => unless(!session.draft.trim().is_empty(), "The prompt is empty."),
        Action::HistoryPrevious | Action::HistoryNext => {
            unless(!session.history.is_empty(), "No prompt history in this folder.")
        }
        _ => None,
    }
}

/// Carries a command out.
pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    if let Some(why) = obstacle(state, action) {
        say(state, why, fx);
        return;
    }
    let key = state.active;
    if jump::on_action(state, action, fx)
        || places::on_action(state, action, fx)
        || tabs::on_action(state, action, now, fx)
    {
        return;
    }
    match action {
        Action::OpenSearch => search::open(state),
        Action::NextHit => search::step(state, true, fx),
        Action::PreviousHit => search::step(state, false, fx),
        Action::Browse => leave::turn_browsing(state, fx),
        Action::ScrollLineUp => fx.push(Effect::View(ViewCommand::ScrollLines(-1))),
        Action::ScrollLineDown => fx.push(Effect::View(ViewCommand::ScrollLines(1))),
        Action::Scroll(lines) => fx.push(Effect::View(ViewCommand::ScrollLines(i32::from(lines)))),
        Action::ScrollLeft => fx.push(Effect::View(ViewCommand::ScrollSideways(-1))),
        Action::ScrollRight => fx.push(Effect::View(ViewCommand::ScrollSideways(1))),
        Action::ScrollPageUp | Action::PageUp => fx.push(Effect::View(ViewCommand::ScrollPages(-1))),
        Action::ScrollPageDown | Action::PageDown => fx.push(Effect::View(ViewCommand::ScrollPages(1))),
        Action::ScrollTop | Action::First => fx.push(Effect::View(ViewCommand::ScrollTop)),
        Action::ScrollEnd | Action::Last => fx.push(Effect::View(ViewCommand::ScrollEnd)),
        Action::ToggleThoughts => state.shows_thoughts = !state.shows_thoughts,
        Action::TogglePlan => {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.plan_fold = Some(!session.is_plan_folded());
            }
        }
        Action::ToggleDiffLayout => {
            let (layout, name) = match state.diff_layout {
                DiffLayout::Auto => (DiffLayout::Turned, "Diff layout: toggled"),
                DiffLayout::Turned | DiffLayout::Unified => (DiffLayout::Auto, "Diff layout: automatic"),
            };
            state.diff_layout = layout;
            say(state, name, fx);
        }
        Action::ToggleMouse => {
            let (owner, text) = match state.mouse {
                MouseOwner::Parlor => {
                    (MouseOwner::Terminal, "Mouse capture off: use the terminal's own selection.")
                }
                MouseOwner::Terminal => (MouseOwner::Parlor, "Mouse capture on."),
            };
            state.mouse = owner;
            fx.push(Effect::CaptureMouse(owner == MouseOwner::Parlor));
            say(state, text, fx);
        }
        Action::KillCommand => operations::stop_part(state, key, now, fx),
        Action::ArchiveSession => operations::archive_session(state, key, fx),
        Action::OpenProviders => providers::open(state),
        Action::OpenPalette => {
            let palette = picker::new(PickerKind::Palette, "Commands", rows::palette(state));
            picker::push(state, palette);
        }
        Action::OpenHelp => choice::toggle_page(state, choice::help(), fx),
        Action::OpenChanges
            if !matches!(state.modals.last(), Some(Modal::Changes(_)))
                && operations::ask_for_all(state, action, fx) => {}
        Action::OpenChanges => choice::toggle_page(state, Modal::Changes(ChangesDialog::default()), fx),
        Action::OpenLog => choice::toggle_page(state, choice::log(), fx),
        Action::OpenConnection => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                choice::toggle_page(state, Modal::Connection(conn), fx);
            }
        }
        Action::OpenAttention => inbox::open(state, now, fx),
        Action::OpenAgents => picker::open_agents(state),
        Action::OpenSessions => sessions::open(state, false, now, fx),
        Action::ContinueLast => operations::continue_last(state, now, fx),
        Action::SearchSessions => sessions::open(state, true, now, fx),
        Action::ExportSession => sessions::export_shown(state, fx),
        Action::HandOver
            if state.active_session().is_some_and(|session| session.resume.has_lost_history()) =>
        {
            operations::tell_agent(state, key, fx);
            operations::send_held(state, key, now, fx);
        }
        Action::HandOver => picker::open_hand_over(state, fx),
        Action::LoadEarlier => operations::load_earlier(state, key, fx),
        Action::LoadLater => operations::load_later(state, key, fx),
        Action::CloseSession => sessions::close(state, key, now, fx),
        Action::OpenModes => open_modes(state),
        Action::NextMode => next_mode(state, now, fx),
        Action::OpenModels => open_models(state),
        Action::OpenOptions => {
            let options = picker::new(PickerKind::Option, "Options", rows::options(state));
            picker::push(state, options);
        }
        Action::OpenGrants => picker::open_grants(state),
        Action::OpenThemes => {
            let themes = picker::new(PickerKind::Theme, "Themes", rows::themes(state));
            picker::push(state, themes);
        }
        Action::OpenSignIn => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                let methods = picker::sign_in(state, conn);
                picker::push(state, methods);
            }
        }
        Action::SignOut => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                operations::sign_out(state, conn, now, fx);
            }
        }
        Action::OpenQueue => queue::open(state, fx),
        Action::NewSession => operations::new_session(state, now, fx),
        Action::ForkSession => sessions::fork_session(state, key, now, fx),
        Action::RenameSession => line_dialog::open_title(state, key),
        Action::SendAgain => operations::send_again(state, key, now, fx),
        Action::RestartAgent => operations::restart_agent(state, key, now, fx),
        Action::ForceStop => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                operations::force_stop(state, conn, now, fx);
            }
        }
        // The rest belongs to one layer only; here it means nothing.
        _ => {}
    }
}

/// Config options go before the older lists. Source: ACP v1 session-config-options.
fn open_modes(state: &mut State) {
    let option = state.active_session().and_then(mode_option).map(|option| option.id.clone());
    if let Some(id) = option {
        picker::open_values(state, &id);
    } else {
        let modes = picker::new(PickerKind::Mode, "Modes", rows::modes(state));
        picker::push(state, modes);
    }
}

fn open_models(state: &mut State) {
    let option = state.active_session().and_then(model_option).map(|option| option.id.clone());
    if let Some(id) = option {
        picker::open_values(state, &id);
    } else {
        let models = picker::new(PickerKind::Model, "Models", rows::models(state));
        picker::push(state, models);
    }
}

fn next_mode(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.active_session() else { return };
    let key = session.key;
    if let Some(ConfigOption { id, kind: ConfigKind::Select { current, choices }, .. }) = mode_option(session)
    {
        let at = choices.iter().position(|choice| choice.value == *current);
        let next = choices.get(at.map_or(0, |at| at + 1)).or(choices.first());
        if let Some(value) = next.map(|choice| choice.value.clone()).filter(|value| value != current) {
            let id = id.clone();
            operations::set_option(state, key, id, ConfigValue::Text(value), now, fx);
        }
    } else if let Some(modes) = &session.modes {
        let at = modes.available.iter().position(|mode| mode.id == modes.current);
        let next = modes.available.get(at.map_or(0, |at| at + 1)).or(modes.available.first());
        if let Some(mode) = next.map(|mode| mode.id.clone()).filter(|mode| *mode != modes.current) {
            operations::set_mode(state, key, mode, now, fx);
        }
    }
}

fn mode_option(session: &Session) -> Option<&ConfigOption> {
    select_of(session, "mode")
}

fn model_option(session: &Session) -> Option<&ConfigOption> {
    select_of(session, "model")
}

fn select_of<'a>(session: &'a Session, category: &str) -> Option<&'a ConfigOption> {
    session.options.iter().find(|option| {
        option.category.as_deref() == Some(category) && matches!(option.kind, ConfigKind::Select { .. })
    })
}

fn has_modes(session: &Session) -> bool {
    session.modes.as_ref().is_some_and(|modes| !modes.available.is_empty())
}

fn has_models(session: &Session) -> bool {
    session.models.as_ref().is_some_and(|models| !models.available.is_empty())
}

fn has_running_command(session: &Session) -> bool {
    session.terminals.values().any(|terminal| terminal.is_ours && terminal.exit.is_none())
}

fn info_of(state: &State) -> Option<&AgentInfo> {
    let conn = state.conn_of(state.active)?;
    (conn.phase == ConnPhase::Ready).then_some(conn.info.as_ref()).flatten()
}

fn is_agent_alive(state: &State) -> bool {
    state.conn_of(state.active).is_some_and(|conn| !matches!(conn.phase, ConnPhase::Closed(_)))
}
