//! Tests of the core without a front end.
//!
//! Each gives events or calls operations, and compares a digest of the state, the questions and the effects.

mod approve_all;
pub(crate) mod archive;
mod attachments;
mod attention;
mod bodies;
mod budget;
mod by_rule;
mod callbacks;
mod chosen;
mod clear;
mod close;
mod decisions;
mod dialects;
mod diffs;
mod handover;
mod hostile;
mod identity;
mod life;
pub(crate) mod lives;
mod mentions;
mod messages;
mod offer;
pub(crate) mod once;
mod policy;
mod project;
mod queue;
pub(crate) mod recorder;
pub(crate) mod remote;
mod requests;
pub(crate) mod resume;
mod review;
mod rules;
mod servers;
mod sessions;
pub(crate) mod shell;
mod shown;
mod sign_in;
pub(crate) mod support;
mod tabs;
mod titles;
mod tools;
mod turns;
mod undo;
mod unstable;
mod v2;
