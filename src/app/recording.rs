//! The exchange between the sessions and the store: records are written, pages and whole sessions are read.
//!
//! `recorder` emits the records of an event, `restore` restores a session, `trim` unloads pages that are on disk,
//! `loading` reads them again.
//! Invariants: calls only `session` and `state`; only what is on disk is removed from memory.

pub(in crate::app) mod loading;
pub(in crate::app) mod recorder;
pub(in crate::app) mod restore;
pub(in crate::app) mod trim;
