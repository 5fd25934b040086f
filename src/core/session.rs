//! Operations on a single session: its messages, tool calls, plan, settings, and the replay of its record.
//!
//! Applies updates of the agent (`apply`) and recorded events (`play`), and notes events for the store (`record`).
//! `messages`, `turns`, `tools`, `access` and `terminals`
//! call each other: a message may start a turn, a turn closes messages and tool calls, and tool calls show accesses and
//! terminals.
//! Invariants: accesses a single session only; calls only `state`.

pub(in crate::core) mod access;
pub(crate) mod apply;
pub(in crate::core) mod clear;
pub(in crate::core) mod diffs;
pub(in crate::core) mod insert;
pub(in crate::core) mod messages;
pub(crate) mod play;
pub(in crate::core) mod record;
pub(in crate::core) mod recorded_turns;
pub(in crate::core) mod settings;
pub(in crate::core) mod terminals;
pub(in crate::core) mod tools;
pub(in crate::core) mod turns;
