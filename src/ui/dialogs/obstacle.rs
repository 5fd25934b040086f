//! Which commands are available: the palette omits the others, and a key for one of them shows the reason.

use crate::core::lifecycle::operations;
use crate::core::state::lookup::{has_models, has_modes, mode_option, model_option, root_of};
use crate::core::state::outline::is_running;
use crate::core::state::tab;
use crate::core::{ConnPhase, Item, Session, SessionPhase, State, Turn};
use crate::model::{Action, AgentInfo, attachment_labels};

use crate::ui::session_view::fold::can_fold;

pub(super) const NOTHING_TO_FOLD: &str = "Nothing to expand.";

/// Why the action is not available, in one sentence; `None` if it is. What the agent does not advertise is not offered.
pub fn obstacle(state: &State, action: Action) -> Option<&'static str> {
    let session = state.active_session()?;
    let info = info_of(state);
    let can = info.map(|info| info.capabilities).unwrap_or_default();
    let is_named = session.id.is_some();
    let unless = |is_fine: bool, why: &'static str| (!is_fine).then_some(why);
    match action {
        Action::OpenAgents => unless(!state.setup.agents.is_empty(), "No agents found."),
        Action::NewTab => {
            unless(!state.setup.agents.is_empty() || session.conn.is_some(), "No agents found.")
        }
        Action::CloseSession => {
            unless(tab::tabs(state).count() > 1, "This is the only tab. Open another one first, or quit.")
        }
        Action::NextTab
        | Action::PreviousTab
        | Action::FormerTab
        | Action::MoveTabLeft
        | Action::MoveTabRight => unless(tab::tabs(state).count() > 1, "No other tabs."),
        Action::NewSession => unless(info.is_some(), crate::core::state::texts::NOT_READY),
        Action::NewWorktree => unless(session.conn.is_some(), "No agent running."),
        Action::ForkSession => unless(can.can_fork && is_named, "The agent cannot fork sessions."),
        Action::RenameSession => unless(is_named || session.read_only.is_some(), "No session to rename yet."),
        Action::ContinueLast => {
            unless(operations::last_session(state).is_some(), "No session to resume in this folder.")
        }
        Action::HandOver | Action::ExportSession => {
            unless(session.turn_count > 0, "No messages in this session yet.")
        }
        Action::OpenModes | Action::NextMode => {
            unless(mode_option(session).is_some() || has_modes(session), "The agent offers no modes.")
        }
        Action::OpenModels => {
            unless(model_option(session).is_some() || has_models(session), "The agent offers no models.")
        }
        Action::OpenOptions => unless(!session.options.is_empty(), "The agent offers no options."),
        Action::OpenThemes => unless(!state.setup.themes.is_empty(), "No other themes."),
        Action::OpenSettings | Action::OpenBindings => {
            unless(!state.setup.settings.is_empty(), "No settings in plain-text mode.")
        }
        Action::OpenSignIn => {
            unless(info.is_some_and(|info| !info.auth_methods.is_empty()), "The agent has no sign-in method.")
        }
        Action::SignOut => unless(can.can_log_out, "The agent does not support signing out."),
        Action::OpenAttachment => {
            unless(!attachment_labels(&session.draft).is_empty(), "No attachments in the prompt.")
        }
        Action::OpenQueue => unless(session.outbox.queue_len() > 0, "No queued prompts."),
        Action::Steer if session.turn.is_running() && !can.can_steer => {
            Some("The agent does not accept prompts during a turn. Queue the prompt instead.")
        }
        Action::SendNow | Action::Steer => {
            unless(session.outbox.queue_len() > 0 || !session.draft.trim().is_empty(), "The prompt is empty.")
        }
        Action::Rewind => unless(session.turn_count > 0, "No prompts in this session yet."),
        Action::UndoTurn | Action::RedoTurn | Action::ReviewChanges => of_undo(state, session, action),
        Action::CancelTurn => unless(can_cancel(state), "No turn to cancel."),
        Action::ToggleApproveAll if session.parent.is_some() => {
            Some("Requests are approved in the parent session.")
        }
        Action::ReviewHeld if session.read_only.is_some() => {
            Some("Continue the session first, with a prompt.")
        }
        Action::ReviewHeld => {
            let root = state.sessions.get(&root_of(state, session.key));
            unless(root.is_some_and(|root| !root.held.files.is_empty()), "No writes are held.")
        }
        Action::OpenConnection | Action::ToggleApproveAll => {
            unless(session.conn.is_some(), "No agent running.")
        }
        Action::AllowPath => {
            unless(!session.refused.is_empty(), "The sandbox has not refused a path in the last turn.")
        }
        Action::SendAgain => unless(session.outbox.failed().is_some(), "No failed prompt."),
        Action::RestartAgent => unless(
            (session.conn.is_some() && session.phase != SessionPhase::NoAgent) || session.read_only.is_some(),
            "No agent running.",
        ),
        Action::ForceStop => unless(is_agent_alive(state), "No agent running."),
        Action::TypeIntoTerminal => {
            let is_running = has_running_command(session) || session.typing().is_some();
            unless(is_running, "No running command accepts input.")
        }
        Action::KillCommand => {
            unless(has_running_command(session) || operations::has_stoppable(session), "Nothing to stop.")
        }
        Action::OpenTasks => unless(session.transcript.items().iter().any(is_running), "Nothing is running."),
        Action::ArchiveSession => unless(
            can.can_archive && is_named,
            "The agent does not support \
            archiving.",
        ),
        Action::OpenProviders => {
            unless(can.has_providers, "The agent does not support provider configuration.")
        }
        Action::TogglePlan => unless(!session.plans.is_empty(), "No plan."),
        Action::ToggleFold => {
            let is_foldable = |item: &Item| !item.is_hidden() && can_fold(&item.body);
            unless(session.transcript.items().iter().any(is_foldable), NOTHING_TO_FOLD)
        }
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

/// The commands that the current situation calls for, the most likely one first.
pub fn fitting(state: &State) -> Vec<Action> {
    let Some(session) = state.active_session() else { return Vec::new() };
    let mut fitting = Vec::new();
    if state.sessions.values().any(|session| !session.requests.is_empty()) {
        fitting.push(Action::OpenAttention);
    }
    if session.turn.is_running() {
        let of_turn =
            [Action::CancelTurn, Action::SendNow, Action::Steer, Action::OpenQueue, Action::KillCommand];
        fitting.extend(of_turn);
    }
    if session.outbox.failed().is_some() {
        fitting.push(Action::SendAgain);
    }
    match session.phase {
        _ if session.read_only.is_some() => fitting.push(Action::RestartAgent),
        SessionPhase::NoAgent => fitting.push(Action::OpenAgents),
        SessionPhase::NeedsSignIn => fitting.push(Action::OpenSignIn),
        SessionPhase::Failed(_) | SessionPhase::Ended { .. } => {
            fitting.extend([Action::RestartAgent, Action::OpenLog]);
        }
        SessionPhase::Starting { .. } | SessionPhase::Opening { .. } | SessionPhase::Ready => {}
    }
    if session.turn_count == 0 {
        fitting.push(Action::ContinueLast);
    }
    fitting
}

/// Whether there is a turn that can be cancelled, also again after the agent did not stop for long.
pub fn can_cancel(state: &State) -> bool {
    let can_cancel =
        |turn: &Turn| matches!(turn, Turn::Running { .. } | Turn::Cancelling { is_overdue: true, .. });
    state.active_session().is_some_and(|session| can_cancel(&session.turn))
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

/// Why nothing can be undone or redone, unless the reason is one of the whole folder, which `undo` tells.
fn of_undo(state: &State, session: &Session, action: Action) -> Option<&'static str> {
    let has_none = match action {
        Action::RedoTurn => session.undo.undone.is_empty(),
        _ if session.undo.after.is_some() => false,
        _ => session.undo.undoable().next().is_none() && operations::undo_obstacle(state, session).is_none(),
    };
    match () {
        () if session.read_only.is_some() => Some("Continue the session first, with a prompt."),
        () if session.turn.is_running() && action != Action::ReviewChanges => {
            Some("A turn is running. Cancel it first, or wait for its end.")
        }
        () if has_none && action == Action::RedoTurn => Some("Nothing was undone in this session."),
        () if has_none => Some("No turn of this session has changed files that can be restored."),
        () => None,
    }
}
