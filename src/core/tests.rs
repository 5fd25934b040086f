//! Tests of the reducer without dialogs.
//!
//! Each applies events to `update` and compares the result as text: a digest of the state, and the effects.

mod archive;
mod attachments;
mod attention;
mod bodies;
mod callbacks;
mod chosen;
mod clear;
mod close;
mod decisions;
mod delete_turn;
mod dialects;
mod diffs;
mod handover;
mod hostile;
mod identity;
mod inbox;
mod life;
pub(crate) mod lives;
mod mentions;
mod messages;
mod offer;
mod once;
mod policy;
mod project;
mod prompts;
mod queue;
mod recorder;
mod remote;
mod requests;
mod resume;
mod servers;
mod sessions;
mod shell;
mod sign_in;
mod support;
mod tabs;
mod titles;
mod tools;
mod turns;
mod unsaved;
mod unstable;
mod v2;
