//! Everything that differs between operating systems, one module for each duty.
//!
//! Invariant: no other module names a system, its crates or `std::os`, so that another system needs changes here only.
//! This folder uses `model` alone, and every layer may use it.

pub mod files;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod links;
pub mod modes;
pub mod pipe;
pub mod private;
pub mod process;
pub mod pty;
pub mod sandbox;
pub mod shell;
pub mod signals;
pub mod terminal;
pub mod volumes;
