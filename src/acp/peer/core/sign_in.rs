//! Reports what the agent writes to stderr while it signs in, such as the address of a page.

use std::time::Duration;

use tokio::time::Instant;

use super::Peer;
use crate::model::{AgentEvent, Call};

/// How often its output is read.
const INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of lines of one report, the last ones.
const MAX_LINES: usize = 20;
const MAX_CHARS: usize = 2000;

/// When the output is read next, and the number of the last line in the protocol log that was seen.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    pub next: Instant,
    seen: u64,
}

impl Peer {
    pub fn watch_output(&mut self, now: Instant) {
        self.sign_in = Some(Watch { next: now + INTERVAL, seen: self.tap.version() });
    }

    /// Reports new lines, and goes on while a sign-in is pending.
    pub fn report_output(&mut self, now: Instant) {
        let Some(Watch { seen, .. }) = self.sign_in else { return };
        let newest = self.tap.version();
        let mut lines = if newest > seen { self.tap.stderr_after(seen) } else { Vec::new() };
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        for line in &mut lines {
            if let Some((end, _)) = line.char_indices().nth(MAX_CHARS) {
                line.truncate(end);
            }
        }
        if !lines.is_empty() {
            self.events.push(AgentEvent::SignInOutput(lines));
        }
        let pending = self.calls.find(|_, call| matches!(call, Call::Authenticate { .. }));
        self.sign_in = pending.map(|_| Watch { next: now + INTERVAL, seen: newest });
    }
}
