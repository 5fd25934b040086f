//! What the store and the sessions exchange: notes go out, pages and whole sessions come in.
//!
//! `recorder` hands out the notes of an event, `restore` makes a session of a record, `trim` lets pages go that are on
//! the disk, `loading` asks for them again.
//! Invariants: calls only `session` and `state`; nothing leaves the memory that is not on the disk.

pub(in crate::app) mod loading;
pub(in crate::app) mod recorder;
pub(in crate::app) mod restore;
pub(in crate::app) mod trim;
