//! The session store: a log of each session, and prompts and agents by folder.
//!
//! One SQLite file (`schema`) that several parlors use at once. [`Store`] reads and manages it and blocks on the disk;
//! [`Recorder`] writes events of sessions on its own thread, in batches.
//! Invariants: the UI never waits for the disk; a failed write is reported immediately and retried; a damaged file
//! is renamed and reported, never overwritten; a session that is open in a running parlor is not opened by another;
//! an odd row hides only itself.

mod backlog;
mod db;
mod docs;
mod document;
mod fault;
mod folders;
mod forget;
mod format;
mod handle;
mod manage;
mod migrate;
mod orphan;
mod owner;
mod prompts;
mod read;
mod recorder;
mod rescue;
mod rows;
mod schema;
mod search;
mod serve;
mod session_writer;
mod support;
mod usage;
mod write;

pub use backlog::Backlog;
pub use document::{Document, FORMAT, FORMAT_VERSION, pretty};
pub use fault::{Fault, StoreError};
pub use forget::TextUses;
pub use handle::Store;
pub use manage::Imported;
pub use migrate::Migrated;
pub use read::ListFilter;
pub use recorder::Recorder;
pub use rows::{SessionRow, SessionState};
pub use serve::{Export, Transcript};
pub use usage::UsedAt;

#[cfg(test)]
pub(crate) mod tests;
