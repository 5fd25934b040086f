//! What parlor does on this machine: files, terminals, git, the clipboard, images, the registry of agents.
//!
//! The modules execute requests of agents outside the UI thread and report results as [`crate::model::ServiceEvent`].
//! `core` decides whether a request is allowed.
//! Invariants: nothing here draws or decides; programs are started by `crate::program` with the party that requested
//! it.

pub mod attachments;
pub mod browser;
pub mod clipboard;
pub mod editor;
pub mod file_finder;
pub mod folder;
pub mod folder_relocation;
pub mod fs;
pub mod git;
pub mod grants;
pub mod locate;
pub mod login;
pub mod notification;
pub mod os;
pub mod patch;
pub mod picture;
pub mod prompt;
pub mod sandbox;
pub mod snapshots;
pub mod spill;
pub mod templates;
pub mod terminals;
pub mod trust;
pub mod watch;
pub mod when;
pub mod worktrees;

pub mod process;
pub mod registry;
mod regular;
mod symbols;
