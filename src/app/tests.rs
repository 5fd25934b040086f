//! Tests of the agent's side of the reducer.
//!
//! Each plays events to `update` and reads the outcome as text: a digest of the state, and what was sent.

mod asks;
mod attention;
mod callbacks;
mod ceiling;
mod chosen;
mod close;
mod dialects;
mod diffs;
mod extras;
mod far;
mod handover;
mod hostile;
mod keep;
mod kept;
mod life;
mod messages;
mod offer;
mod once;
mod paging;
mod policy;
mod reconcile;
mod resume;
mod servers;
mod sessions;
mod sign_in;
mod support;
mod tabs;
mod titles;
mod tools;
mod turns;
mod v2;
