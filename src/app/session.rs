//! What needs a single session only: its messages, tool calls, plan, settings, pages, and the replay of its record.
//!
//! Applies what the agent sent (`apply`) and what was recorded (`play`), and notes for the store what happened
//! (`record`). `reconcile` compares a replayed history with the record, `insert` adds what only the agent has.
//! `messages`, `turns`, `tools`, `access` and `terminals` call each other in a circle: a message may begin a turn, a turn
//! closes messages and tool calls, and tool calls show accesses and terminals.
//! Invariants: reaches nothing but a session; calls only `state`.

pub(in crate::app) mod access;
pub(in crate::app) mod apply;
pub(in crate::app) mod diffs;
pub(in crate::app) mod insert;
pub(in crate::app) mod messages;
pub mod paging;
pub(in crate::app) mod play;
pub(in crate::app) mod reconcile;
pub(in crate::app) mod record;
pub mod replay_reconcile;
pub(in crate::app) mod reveal;
pub(in crate::app) mod settings;
pub(in crate::app) mod terminals;
pub(in crate::app) mod tools;
pub(in crate::app) mod turns;
