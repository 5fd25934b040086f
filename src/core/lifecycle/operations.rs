//! The operations for the layers above: starting agents, opening sessions, turns and answers.
//!
//! `ui::dialogs` calls them on actions of the user. An operation that does not apply to the state does nothing, or
//! shows a message in the status line. Each is implemented in its own module and re-exported here.

pub use super::approve_all::{is_on as approves_all, toggle as toggle_approve_all};
pub use super::archive::{continue_last, list_saved, open_saved, start_reading};
pub(crate) use super::auth::report_refusal;
pub use super::auth::{cancel_sign_in, running_sign_in, sign_in, sign_out, variables_refused};
pub use super::by_rule::ask as ask_to_allow_by_rules;
pub use super::choices::{set_mode, set_model, set_option};
pub use super::close::close_session;
pub use super::conn::{force_stop, quit, restart_agent, start_agent};
pub use super::from_list::open_session;
pub use super::handover::{agent_of, hand_over, hand_over_before, tell_agent};
pub use super::held::{
    apply as apply_held, close as close_held, discard as discard_held, start as review_held,
};
pub use super::listing::{list_sessions, request_status};
pub use super::new_tab::open_tab;
pub use super::open::{fork_session, new_session, start_over};
pub use super::policy::revoke;
pub use super::prompt::remember;
pub use super::providers::change as change_provider;
pub use super::questions::answer;
pub use super::refused::offer as offer_refused_paths;
pub use super::review::{
    accept as accept_part, comment as comment_on_part, quoted as quoted_part, refresh as refresh_review,
    reject as reject_part, start as review_changes,
};
pub use super::shell::{
    fit_terminals, obstacle as shell_obstacle, password_obstacle, run as run_command, stop as stop_command,
    toggle_typing, type_in,
};
pub use super::spool::{deletable, keep_history, put_back, show_history};
pub use super::steer::steer;
pub use super::tabs::activate;
pub use super::templates::{load_templates, review_templates};
pub use super::titles::{set_title, takes_titles};
pub use super::turn::{cancel_turn, send_again, send_next, send_now, send_reason, send_undecided, submit};
pub use super::undo::{
    obstacle as undo_obstacle, offer as offer_undo, on_first_key, restore as restore_files,
    undo_when_captured,
};
pub use super::unstable::{archive_session, has_stoppable, stop_part};
pub use super::worktrees::{ask_to_remove_worktree, new_worktree, open_worktree, worktree_job};
pub use crate::core::recording::loading::waits_for_whole;
pub use crate::core::state::lookup::last_session;
