//! Commands that are available everywhere, by key or from the palette.
//!
//! Invariant: a command is never run while [`obstacle`] returns a reason against it.

use std::time::Instant;

use super::notice::{notify, notify_obstacle};
use crate::app::lifecycle::operations;
use crate::app::{
    ChangesDialog, DiffLayout, DiffRoom, Effect, Modal, MouseOwner, PickerKind, State, ViewCommand,
};
use crate::model::{Action, ConfigJob, ConfigKind, ConfigOption, ConfigValue};

use super::obstacle::obstacle;
use super::{
    choice, delete_turn, history, inbox, items, jump, leave, line_dialog, locations, picker, pickers,
    providers, queue, rewind, rows, search, sessions, settings, stack, tabs,
};
use crate::app::state::lookup::{mode_option, model_option};

/// Whether the action is allowed while a request of the agent is open: it only opens a list or another session, and
/// does not scroll, type, answer or change the agent.
pub fn is_allowed_during_request(action: Action) -> bool {
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
            | Action::OpenSettings
            | Action::OpenBindings
            | Action::OpenGrants
            | Action::OpenQueue
            | Action::NewSession
            | Action::OpenAttention
            | Action::TypeIntoTerminal
            | Action::Browse
            | Action::OpenSearch
            | Action::OpenOutline
            | Action::OpenTasks
            | Action::OpenFilter
            | Action::OpenPlaces
            | Action::OpenCopy
            | Action::OpenChanges
            | Action::ToggleFold
            | Action::ToggleAllFolds
            | Action::ToggleThoughts
            | Action::TogglePlan
            | Action::ToggleWrap
            | Action::ToggleMouse
    )
}

pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    if let Some(why) = obstacle(state, action) {
        notify_obstacle(state, action, why, fx);
        return;
    }
    let key = state.active;
    if jump::on_action(state, action, fx)
        || locations::on_action(state, action, fx)
        || tabs::on_action(state, action, fx)
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
        Action::ToggleWrap => fx.push(Effect::View(ViewCommand::ToggleWrap)),
        Action::TogglePlan => {
            let Some(session) = state.sessions.get_mut(&key) else { return };
            let shows_steps = state.screen.map_or(!session.is_plan_folded(), |screen| screen.shows_steps);
            if state.screen.is_some_and(|screen| !screen.fits_plan) {
                notify(state, "The plan needs more rows. Enlarge the window.", fx);
                return;
            }
            session.plan_fold = Some(shows_steps);
            if let Some(screen) = &mut state.screen {
                screen.shows_steps = !shows_steps;
            }
        }
        Action::ToggleDiffLayout => {
            let room = state.screen.map_or(DiffRoom::Narrow, |screen| screen.diffs);
            let is_side_by_side = match state.diff_layout {
                DiffLayout::Auto => room == DiffRoom::Wide,
                chosen => chosen == DiffLayout::SideBySide,
            };
            let (layout, message) = match room {
                _ if is_side_by_side => (DiffLayout::Unified, "Diff layout: unified"),
                DiffRoom::OneColumn => {
                    (DiffLayout::SideBySide, "Diff layout: side by side, once the window is wider")
                }
                _ => (DiffLayout::SideBySide, "Diff layout: side by side"),
            };
            state.diff_layout = layout;
            notify(state, message, fx);
        }
        Action::ToggleThoughts => items::toggle_thoughts(state),
        Action::ToggleMouse => {
            let (owner, text) = match state.mouse {
                MouseOwner::Parlor => {
                    (MouseOwner::Terminal, "Mouse capture off: use the terminal's own selection.")
                }
                MouseOwner::Terminal => (MouseOwner::Parlor, "Mouse capture on."),
            };
            state.mouse = owner;
            fx.push(Effect::CaptureMouse(owner == MouseOwner::Parlor));
            notify(state, text, fx);
        }
        Action::CancelTurn => operations::cancel_turn(state, key, now, fx),
        Action::OpenHistory => history::open(state, fx),
        Action::TypeIntoTerminal => operations::toggle_typing(state, key, fx),
        Action::KillCommand => operations::stop_part(state, key, now, fx),
        Action::ArchiveSession => operations::archive_session(state, key, fx),
        Action::OpenProviders => providers::open(state),
        Action::OpenPalette => {
            let palette = picker::new(PickerKind::Palette, "Commands", rows::palette(state));
            picker::push(state, palette);
        }
        Action::OpenHelp => stack::toggle_page(state, choice::help()),
        Action::OpenChanges
            if !matches!(state.modals.last(), Some(Modal::Changes(_)))
                && operations::waits_for_whole(state, action) => {}
        Action::OpenChanges => stack::toggle_page(state, Modal::Changes(ChangesDialog::default())),
        Action::OpenLog => stack::toggle_page(state, choice::log()),
        Action::OpenConnection => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                stack::toggle_page(state, Modal::Connection(conn));
            }
        }
        Action::OpenAttention => inbox::open(state),
        Action::OpenAgents => pickers::open_agents(state),
        Action::OpenSessions => sessions::open(state, false, now, fx),
        Action::ContinueLast => operations::continue_last(state, now, fx),
        Action::SearchSessions => sessions::open(state, true, now, fx),
        Action::ExportSession => sessions::export_shown(state, fx),
        Action::HandOver
            if state.active_session().is_some_and(|session| session.resume.has_lost_history()) =>
        {
            operations::tell_agent(state, key, fx);
            operations::send_undecided(state, key, now, fx);
        }
        Action::HandOver => pickers::open_hand_over(state, fx),
        Action::OpenAgentHistory => operations::show_history(state, fx),
        Action::KeepAgentHistory => operations::keep_history(state, fx),
        Action::PutBackTurns => operations::put_back(state, fx),
        Action::DeleteTurn => delete_turn::ask(state, fx),
        Action::CloseSession => sessions::close(state, key, now, fx),
        Action::OpenModes => open_modes(state),
        Action::NextMode => next_mode(state, now, fx),
        Action::OpenModels => open_models(state),
        Action::OpenOptions => {
            let options = picker::new(PickerKind::Option, "Options", rows::options(state));
            picker::push(state, options);
        }
        Action::OpenGrants => pickers::open_grants(state),
        Action::OpenSettings => settings::open(state),
        Action::OpenBindings => settings::open_bindings(state),
        Action::OpenThemes => {
            let themes = picker::new(PickerKind::Theme, "Themes", rows::themes(state));
            picker::push(state, themes);
            // A folder of themes that was created meanwhile is not watched.
            fx.push(Effect::Configure(ConfigJob::Reread));
        }
        Action::OpenSignIn => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                let methods = pickers::sign_in(state, conn);
                picker::push(state, methods);
            }
        }
        Action::SignOut => {
            if let Some(conn) = state.active_session().and_then(|session| session.conn) {
                operations::sign_out(state, conn, now, fx);
            }
        }
        Action::OpenQueue => queue::open(state, fx),
        Action::Rewind => rewind::open(state, fx),
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
        // The other actions belong to one layer and have no effect here.
        _ => {}
    }
}

/// Config options take precedence over the older lists. Source: ACP v1 session-config-options.
fn open_modes(state: &mut State) {
    let option = state.active_session().and_then(mode_option).map(|option| option.id.clone());
    if let Some(id) = option {
        pickers::open_values(state, &id);
    } else {
        let modes = picker::new(PickerKind::Mode, "Modes", rows::modes(state));
        picker::push(state, modes);
    }
}

fn open_models(state: &mut State) {
    let option = state.active_session().and_then(model_option).map(|option| option.id.clone());
    if let Some(id) = option {
        pickers::open_values(state, &id);
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
