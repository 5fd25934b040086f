//! The built-in demo agent: a scripted ACP v1 agent over stdio that needs no account and no network.
//!
//! It shows a new user what a session with an agent looks like. Messages are JSON lines in both directions.
//! Invariants: files are written only in its own folder and in scratch folders; a turn can be cancelled at any
//! moment.

use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;
use std::sync::Arc;

mod agent;
mod client;
mod offers;
mod peer;
mod picture;
mod saved_sessions;
mod scenes;
mod session;
mod turn;

#[cfg(test)]
mod tests;

use agent::Agent;
use peer::Peer;

/// Maximum length of an input line in bytes; prompts with images are far smaller.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Environment variable with the folder of the demo agent.
pub const DIR_VARIABLE: &str = "PARLOR_DEMO_DIR";

/// Settings of a demo agent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of its sessions and, unless `scratch_dir` is set, of the files that it edits.
    pub dir: PathBuf,
    /// Existing folder for the files of all sessions.
    pub scratch_dir: Option<PathBuf>,
    /// Whether it pauses between chunks like a real agent.
    pub is_paced: bool,
}

impl Settings {
    /// Reads the environment: [`DIR_VARIABLE`] (otherwise `dir`), `PARLOR_DEMO_PACE=0`, and
    /// `PARLOR_DEMO_SCRATCH`, an existing folder that is not removed.
    pub fn from_env(dir: PathBuf) -> Self {
        let dir = std::env::var_os(DIR_VARIABLE).filter(|dir| !dir.is_empty()).map_or(dir, PathBuf::from);
        let scratch_dir =
            std::env::var_os("PARLOR_DEMO_SCRATCH").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let is_paced = std::env::var_os("PARLOR_DEMO_PACE").is_none_or(|pace| pace != "0");
        Self { dir, scratch_dir, is_paced }
    }
}

/// Runs the agent on standard input and output until the input ends. Its folder is `dir` unless the
/// environment sets another one.
pub fn run(dir: PathBuf) -> anyhow::Result<()> {
    serve(io::stdin().lock(), io::stdout(), Settings::from_env(dir))
}

/// Runs the agent until `input` ends. Fails if it cannot be read.
pub fn serve(
    mut input: impl BufRead,
    output: impl Write + Send + 'static,
    settings: Settings,
) -> anyhow::Result<()> {
    let peer = Arc::new(Peer::new(Box::new(output)));
    let agent = Arc::new(Agent::new(Arc::clone(&peer), settings));
    let mut line = Vec::new();
    loop {
        line.clear();
        let len = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        if len == 0 {
            agent.end();
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => agent.on_message(message),
            Err(error) => peer.refuse_line(&error),
        }
    }
}
