//! Commands that are available everywhere, by key or from the palette.
//!
//! Invariant: a command is never run while [`obstacle`] returns a reason against it.

use super::notice::{notify, notify_obstacle};
use crate::core::lifecycle::operations;
use crate::core::{Cx, Effect, MouseOwner, State, ViewCommand};
use crate::model::{Action, ConfigKind, ConfigOption, ConfigValue};
use crate::ui::App;
use crate::ui::screen::{DiffLayout, DiffRoom};

use super::changes::ChangesDialog;
use super::connection::ConnectionPage;
use super::help::HelpPage;
use super::log_page::LogPage;
use super::obstacle::obstacle;
use super::{
    agent_options, agents, delete_turn, grants, history, inbox, items, jump, leave, locations, palette,
    providers, queue, review, rewind, search, sessions, settings, sign_in, tabs, themes, titles, undo,
    worktrees,
};
use crate::core::state::lookup::mode_option;

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
            | Action::ToggleApproveAll
            | Action::OpenQueue
            | Action::NewSession
            | Action::NewWorktree
            | Action::OpenWorktrees
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

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) {
    if let Some(why) = obstacle(&app.state, action) {
        notify_obstacle(&mut app.state, action, why, cx);
        return;
    }
    let key = app.state.active;
    let conn = app.state.active_session().and_then(|session| session.conn);
    if jump::on_action(app, action, cx)
        || locations::on_action(app, action, cx)
        || tabs::on_action(app, action, cx)
    {
        return;
    }
    match action {
        Action::OpenSearch => search::open(app),
        Action::NextHit => search::step(app, true, cx),
        Action::PreviousHit => search::step(app, false, cx),
        Action::Browse => leave::turn_browsing(app, cx),
        Action::ScrollLineUp => cx.effects.push(Effect::View(ViewCommand::ScrollLines(-1))),
        Action::ScrollLineDown => cx.effects.push(Effect::View(ViewCommand::ScrollLines(1))),
        Action::Scroll(lines) => cx.effects.push(Effect::View(ViewCommand::ScrollLines(i32::from(lines)))),
        Action::ScrollLeft => cx.effects.push(Effect::View(ViewCommand::ScrollSideways(-1))),
        Action::ScrollRight => cx.effects.push(Effect::View(ViewCommand::ScrollSideways(1))),
        Action::ScrollPageUp | Action::PageUp => cx.effects.push(Effect::View(ViewCommand::ScrollPages(-1))),
        Action::ScrollPageDown | Action::PageDown => {
            cx.effects.push(Effect::View(ViewCommand::ScrollPages(1)));
        }
        Action::ScrollTop | Action::First => cx.effects.push(Effect::View(ViewCommand::ScrollTop)),
        Action::ScrollEnd | Action::Last => cx.effects.push(Effect::View(ViewCommand::ScrollEnd)),
        Action::ToggleWrap => cx.effects.push(Effect::View(ViewCommand::ToggleWrap)),
        Action::TogglePlan => {
            let Some(session) = app.state.sessions.get(&key) else { return };
            let shows_steps =
                app.screen.map_or(!app.shown().is_plan_folded(session), |screen| screen.shows_steps);
            if app.screen.is_some_and(|screen| !screen.fits_plan) {
                notify(&mut app.state, "The plan needs more rows. Enlarge the window.", cx);
                return;
            }
            app.shown_mut().plan_fold = Some(shows_steps);
            if let Some(screen) = &mut app.screen {
                screen.shows_steps = !shows_steps;
            }
        }
        Action::ToggleDiffLayout => {
            let room = app.screen.map_or(DiffRoom::Narrow, |screen| screen.diffs);
            let is_side_by_side = match app.diff_layout {
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
            app.diff_layout = layout;
            notify(&mut app.state, message, cx);
        }
        Action::ToggleThoughts => items::toggle_thoughts(app),
        Action::ToggleMouse => {
            let (owner, text) = match app.mouse {
                MouseOwner::Parlor => {
                    (MouseOwner::Terminal, "Mouse capture off: use the terminal's own selection.")
                }
                MouseOwner::Terminal => (MouseOwner::Parlor, "Mouse capture on."),
            };
            app.mouse = owner;
            cx.effects.push(Effect::CaptureMouse(owner == MouseOwner::Parlor));
            notify(&mut app.state, text, cx);
        }
        Action::CancelTurn => operations::cancel_turn(&mut app.state, key, cx),
        Action::OpenHistory => history::open(app, cx),
        Action::TypeIntoTerminal => {
            operations::toggle_typing(&mut app.state, key, app.views.get(key).selected, cx);
        }
        Action::KillCommand => operations::stop_part(&mut app.state, key, app.views.get(key).selected, cx),
        Action::ArchiveSession => operations::archive_session(&mut app.state, key, cx),
        Action::OpenProviders => providers::open(app),
        Action::OpenPalette => palette::open(app),
        Action::OpenHelp => app.layers.toggle(HelpPage::default()),
        Action::OpenChanges
            if app.layers.top::<ChangesDialog>().is_none()
                && operations::waits_for_whole(&mut app.state, action) => {}
        Action::OpenChanges => app.layers.toggle(ChangesDialog::default()),
        Action::OpenLog => app.layers.toggle(LogPage::default()),
        Action::OpenConnection => {
            if let Some(conn) = conn {
                app.layers.toggle(ConnectionPage(conn));
            }
        }
        Action::OpenAttention => inbox::open(app),
        Action::OpenAgents => agents::open(app, cx),
        Action::OpenSessions => sessions::open(app, false, cx),
        Action::ContinueLast => operations::continue_last(&mut app.state, cx),
        Action::SearchSessions => sessions::open(app, true, cx),
        Action::ExportSession => sessions::export_shown(&mut app.state, cx),
        Action::HandOver
            if app.state.active_session().is_some_and(|session| session.resume.has_lost_history()) =>
        {
            operations::tell_agent(&mut app.state, key, cx);
            operations::send_undecided(&mut app.state, key, cx);
        }
        Action::HandOver => agents::open_hand_over(app, cx),
        Action::OpenAgentHistory => operations::show_history(&mut app.state, cx),
        Action::KeepAgentHistory => operations::keep_history(&mut app.state, cx),
        Action::PutBackTurns => operations::put_back(&mut app.state, app.views.get(key).selected, cx),
        Action::DeleteTurn => delete_turn::ask(app, cx),
        Action::CloseSession => sessions::close(&mut app.state, key, cx),
        Action::OpenModes => agent_options::open_modes(app),
        Action::NextMode => next_mode(&mut app.state, cx),
        Action::OpenModels => agent_options::open_models(app),
        Action::OpenOptions => agent_options::open_options(app),
        Action::OpenGrants => grants::open(app),
        Action::ToggleApproveAll => operations::toggle_approve_all(&mut app.state, key, cx),
        Action::OpenSettings => settings::open(app),
        Action::OpenBindings => settings::open_bindings(app),
        Action::OpenThemes => themes::open(app, cx),
        Action::OpenSignIn => {
            if let Some(conn) = conn {
                sign_in::open(app, conn);
            }
        }
        Action::SignOut => {
            if let Some(conn) = conn {
                operations::sign_out(&mut app.state, conn, cx);
            }
        }
        Action::OpenQueue => queue::open(app, cx),
        Action::UndoTurn => undo::undo(app, cx),
        Action::RedoTurn => undo::redo(app, cx),
        Action::ReviewChanges => review::start(app, cx),
        Action::ReviewHeld => operations::review_held(&mut app.state, key, cx),
        Action::AllowPath => operations::offer_refused_paths(&mut app.state, key, cx),
        Action::Rewind => rewind::open(app, cx),
        Action::NewSession => operations::new_session(&mut app.state, cx),
        Action::NewWorktree => operations::new_worktree(&mut app.state, None, cx),
        Action::OpenWorktrees => worktrees::open(app, cx),
        Action::ForkSession => sessions::fork_session(app, key, cx),
        Action::RenameSession => titles::open(app, key),
        Action::SendAgain => operations::send_again(&mut app.state, key, cx),
        Action::RestartAgent => operations::restart_agent(&mut app.state, key, cx),
        Action::ForceStop => {
            if let Some(conn) = conn {
                operations::force_stop(&mut app.state, conn, cx);
            }
        }
        // The other actions belong to one layer and have no effect here.
        _ => {}
    }
}

fn next_mode(state: &mut State, cx: &mut Cx) {
    let Some(session) = state.active_session() else { return };
    let key = session.key;
    if let Some(ConfigOption { id, kind: ConfigKind::Select { current, choices }, .. }) = mode_option(session)
    {
        let at = choices.iter().position(|choice| choice.value == *current);
        let next = choices.get(at.map_or(0, |at| at + 1)).or(choices.first());
        if let Some(value) = next.map(|choice| choice.value.clone()).filter(|value| value != current) {
            let id = id.clone();
            operations::set_option(state, key, id, ConfigValue::Text(value), cx);
        }
    } else if let Some(modes) = &session.modes {
        let at = modes.available.iter().position(|mode| mode.id == modes.current);
        let next = modes.available.get(at.map_or(0, |at| at + 1)).or(modes.available.first());
        if let Some(mode) = next.map(|mode| mode.id.clone()).filter(|mode| *mode != modes.current) {
            operations::set_mode(state, key, mode, cx);
        }
    }
}
