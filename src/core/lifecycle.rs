//! Connections, sessions and turns from start to end, and the requests of agents.
//!
//! `conn` and `open` start processes and sessions, `turn` sends prompts and ends turns, `updates` routes updates,
//! `requests` and `callbacks` answer requests, `auth`, `choices` and `servers` are the other exchanges with an agent,
//! `archive` the one with the store. `shell` runs the user's own commands. `operations` is the interface for the layers
//! above. A question is asked with `State::ask` and answered in `questions`; a dialog is requested with a
//! [`UiRequest`](super::UiRequest).
//! Some modules call each other in a circle (`conn`, `open`, `turn` and those they use): the end of a turn may reopen
//! the session, an opened session sends the waiting prompt, and the order of effects is that of the calls. `requests` and
//! `callbacks` are another circle, because a request answered by the user is executed by the code that asked.
//! Invariant: only advertised methods are called.

pub(in crate::core) mod approve_all;
pub mod archive;
pub(in crate::core) mod auth;
pub(in crate::core) mod budget;
pub mod by_rule;
pub(crate) mod call;
pub(in crate::core) mod callbacks;
pub(in crate::core) mod choices;
pub(in crate::core) mod chosen;
pub(in crate::core) mod close;
pub(in crate::core) mod conn;
pub(in crate::core) mod from_list;
pub mod handover;
pub(in crate::core) mod held;
pub(in crate::core) mod history;
pub mod install;
pub(in crate::core) mod late;
pub(in crate::core) mod listing;
pub mod new_tab;
pub(in crate::core) mod open;
pub mod operations;
pub(in crate::core) mod policy;
pub(in crate::core) mod project;
pub(in crate::core) mod prompt;
pub(in crate::core) mod protected;
pub(in crate::core) mod providers;
pub mod questions;
pub(in crate::core) mod refused;
pub(in crate::core) mod replies;
pub mod requests;
pub(in crate::core) mod review;
pub(in crate::core) mod secrets;
pub(in crate::core) mod servers;
pub mod shell;
pub(in crate::core) mod spool;
pub(in crate::core) mod ssh_sign_in;
pub mod steer;
pub mod tabs;
pub(in crate::core) mod templates;
pub(in crate::core) mod titles;
pub(in crate::core) mod turn;
pub(in crate::core) mod undo;
mod unreported;
pub(in crate::core) mod unstable;
pub(in crate::core) mod unsupported;
pub(crate) mod updates;
mod version;
pub(in crate::core) mod worktrees;
