//! The tap: sees every frame, both ways, before parsing and after writing.
//!
//! Keeps a bounded ring for the log view. Secrets are taken out when a line is read for display, not here.

/// A shared ring of raw lines.
#[derive(Debug, Clone, Default)]
pub struct Tap {}
