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

pub mod archive;
pub(in crate::app) mod auth;
pub(crate) mod call;
pub(in crate::app) mod callbacks;
pub(in crate::app) mod choices;
pub(in crate::app) mod chosen;
pub(in crate::app) mod close;
pub(in crate::app) mod conn;
pub(in crate::app) mod from_list;
pub mod handover;
pub(in crate::app) mod history;
pub mod install;
pub(in crate::app) mod late;
pub(in crate::app) mod listing;
pub mod new_tab;
pub(in crate::app) mod open;
pub mod operations;
pub(in crate::app) mod policy;
pub(in crate::app) mod project;
pub(in crate::app) mod prompt;
pub(in crate::app) mod providers;
pub mod questions;
pub(in crate::app) mod replies;
pub(in crate::app) mod requests;
pub(in crate::app) mod servers;
pub mod shell;
pub(in crate::app) mod spool;
pub(in crate::app) mod ssh_sign_in;
pub mod steer;
pub mod tabs;
pub(in crate::app) mod templates;
pub(in crate::app) mod titles;
pub(in crate::app) mod turn;
pub(in crate::app) mod unstable;
pub(in crate::app) mod unsupported;
pub(crate) mod updates;
mod version;
