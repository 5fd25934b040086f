//! Local services: files, terminals, git, the clipboard, pictures, and what parlor keeps on disk.
//!
//! Duty: does the work that an agent asks of its client, off the UI thread, and tells the outcome as
//! [`crate::model::ServiceEvent`].
//! Not its duty: deciding whether it may be done (`app`), the wire (`acp`).
//! Invariants: nothing here is drawn or decided; what only Unix has lives in `unix`; programs are started by
//! `crate::program`, with the party that asked for it.

pub mod browser;
pub mod clipboard;
pub mod editor;
pub mod folder;
pub mod folder_relocation;
pub mod fs;
pub mod git;
pub mod grants;
pub mod locate;
pub mod login;
pub mod mcp_trust;
pub mod patch;
pub mod picture;
pub mod store;
pub mod terminals;
pub mod when;

mod process;
mod unix;
