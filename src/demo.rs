//! The built-in agent: a real ACP v1 agent over stdio, scripted, without account or network.
//!
//! Duty: shows a newcomer what a session with an agent is like, and is a rig for the client: floods, crashes
//! and garbage on demand. Bytes come in as lines of JSON, and go out the same way.
//! Not its duty: being clever. It knows its commands and a few words.
//! Invariants: it writes only into its own folder (and a scratch folder that it was given); a turn can be
//! cancelled at any moment (but for `/hang`, whose point that is); output that a client did not ask for
//! (noise, unknown updates) comes only from `/garbage`.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

mod agent;
mod client;
mod offers;
mod peer;
mod picture;
mod scenes;
mod session;
mod shelf;
mod turn;

#[cfg(test)]
mod tests;

use agent::Agent;
use peer::Peer;

/// The longest line that is read; a prompt with pictures is far below.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Names the folder of the demo agent.
pub const DIR_VARIABLE: &str = "PARLOR_DEMO_DIR";

/// How a demo agent behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its folder: for its sessions and, unless it is given another, the files that it works on.
    pub dir: PathBuf,
    /// A folder that is there, for the files of all sessions.
    pub scratch_dir: Option<PathBuf>,
    /// Whether it pauses as a thinking and typing agent would.
    pub is_paced: bool,
    /// What `/crash` does.
    pub crash: fn(),
}

impl Settings {
    /// From the environment: [`DIR_VARIABLE`] (else `dir`), `PARLOR_DEMO_PACE=0`, and `PARLOR_DEMO_SCRATCH`, a
    /// folder that is there and stays.
    pub fn from_env(dir: PathBuf) -> Self {
        let dir = std::env::var_os(DIR_VARIABLE).filter(|dir| !dir.is_empty()).map_or(dir, PathBuf::from);
        let scratch_dir =
            std::env::var_os("PARLOR_DEMO_SCRATCH").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let is_paced = std::env::var_os("PARLOR_DEMO_PACE").is_none_or(|pace| pace != "0");
        Self { dir, scratch_dir, is_paced, crash }
    }
}

/// Runs the agent on standard input and output until the input ends. Its folder is `dir` unless the environment
/// names another.
pub fn run(dir: PathBuf) -> anyhow::Result<()> {
    serve(io::stdin().lock(), io::stdout(), Settings::from_env(dir))
}

/// Runs the agent until `input` ends. Fails when it cannot be read.
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

/// Ends as a program with a fault does: words on stderr, a code, no goodbye.
fn crash() {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "demo: the /crash command was given");
    let _ = writeln!(err, "demo: this is where a real agent would print its stack");
    let _ = writeln!(err, "demo: giving up with code 3");
    std::process::exit(3);
}
