//! What one system keeps in the user's folder: its own storage, which two of it would ruin, and the id of the
//! session that it had last.
//!
//! Duty: lets only one such agent run in a folder, reads and writes that id. Not its duty: which agents do so
//! (`codec`'s quirks), or what is done with the id (`app`).
//! Invariants: other agents leave no trace in the folder; nothing here waits for long, and all trouble with the
//! id is no trouble for the session, because parlor keeps it itself.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::codec::profile_of;
use crate::model::{AgentSpec, CloseReason, Profile, SessionId};

/// Where the system keeps its sessions, within the folder.
const STORAGE: &str = ".openoxide";
/// The file with the last session's id, within the storage.
const CURRENT: &str = "sessions/.current";
/// The file whose lock says that an agent of parlor's runs, within the storage.
const LOCK: &str = "parlor.lock";
/// How long a former agent may take to end: as long as its stop takes at most.
const PATIENCE: Duration = Duration::from_secs(6);
const PAUSE: Duration = Duration::from_millis(100);
/// How long the id may be waited for; a folder may lie on a network that is gone.
const READ_TIME: Duration = Duration::from_millis(500);
/// Longest id that is read, in bytes.
const MAX_ID_BYTES: u64 = 512;

/// The folder of one agent, for as long as the agent runs in it.
#[derive(Debug, Default)]
pub struct Workspace {
    storage: Option<PathBuf>,
    /// Held, never read.
    _lock: Option<File>,
}

impl Workspace {
    /// Enters the folder. Waits for a former agent to end where only one may run.
    ///
    /// # Errors
    /// Another parlor runs this agent there, or the storage cannot be written.
    pub async fn enter(spec: &AgentSpec, cwd: &Path) -> Result<Self, CloseReason> {
        Self::enter_within(spec, cwd, PATIENCE).await
    }

    async fn enter_within(spec: &AgentSpec, cwd: &Path, patience: Duration) -> Result<Self, CloseReason> {
        // On another machine, nobody here can see to it.
        if profile_of(spec) != Some(Profile::OpenOxide) || spec.is_elsewhere() {
            return Ok(Self::default());
        }
        let storage = cwd.join(STORAGE);
        let file = open_lock(&storage).map_err(|error| CloseReason::NotStarted {
            error: format!(
                "{} cannot be written, and this agent keeps its sessions there: {error}. Choose another folder, \
                 or give parlor the right to write there.",
                storage.display()
            ),
            is_missing: false,
        })?;
        let end = Instant::now() + patience;
        while rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= end {
                return Err(is_taken(&storage));
            }
            sleep(PAUSE).await;
        }
        write_pid(&file);
        Ok(Self { storage: Some(storage), _lock: Some(file) })
    }

    /// The session that the system had last here.
    pub async fn last_session(&self) -> Option<SessionId> {
        let file = self.storage.as_ref()?.join(CURRENT);
        let read = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            File::open(file).ok()?.take(MAX_ID_BYTES).read_to_string(&mut text).ok()?;
            Some(text)
        });
        let text = timeout(READ_TIME, read).await.ok()?.ok()??;
        let id = text.trim();
        (!id.is_empty() && !id.contains(char::is_control)).then(|| SessionId::from(id))
    }

    /// Keeps the id of the session that was opened last.
    pub fn keep(&self, id: &SessionId) {
        let Some(storage) = self.storage.clone() else { return };
        let id = id.as_str().to_owned();
        tokio::task::spawn_blocking(move || {
            let file = storage.join(CURRENT);
            let folder = file.parent().unwrap_or(&storage);
            // Whole or not at all: a torn id would be somebody else's session.
            let _ = fs::create_dir_all(folder)
                .and_then(|()| tempfile::NamedTempFile::new_in(folder))
                .and_then(|mut new| new.write_all(id.as_bytes()).map(|()| new))
                .map(|new| new.persist(&file));
        });
    }
}

fn open_lock(storage: &Path) -> std::io::Result<File> {
    fs::create_dir_all(storage)?;
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(storage.join(LOCK))
}

fn write_pid(mut file: &File) {
    let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
}

fn is_taken(storage: &Path) -> CloseReason {
    let pid = fs::read_to_string(storage.join(LOCK)).unwrap_or_default();
    let pid = pid.trim();
    let who =
        if pid.is_empty() { "Another parlor".to_owned() } else { format!("Another parlor (process {pid})") };
    CloseReason::NotStarted {
        error: format!(
            "{who} runs this agent in this folder, and two of it would ruin its sessions. Go on there, or end it \
             and restart the agent here."
        ),
        is_missing: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(command: &str) -> AgentSpec {
        AgentSpec { command: command.to_owned(), ..AgentSpec::default() }
    }

    #[tokio::test]
    async fn a_second_agent_of_the_system_is_refused_and_others_leave_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let other = Workspace::enter(&spec("claude"), folder.path()).await.unwrap();
        other.keep(&SessionId::from("s"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let first = Workspace::enter(&spec("openoxide"), folder.path()).await.unwrap();
        let Err(CloseReason::NotStarted { error, is_missing: false }) =
            Workspace::enter_within(&spec("openoxide"), folder.path(), Duration::ZERO).await
        else {
            panic!("two in one folder");
        };
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        assert!(Workspace::enter(&spec("openoxide"), folder.path()).await.is_ok());
    }

    #[tokio::test]
    async fn the_last_id_is_kept_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::enter(&spec("openoxide"), folder.path()).await.unwrap();
        assert_eq!(workspace.last_session().await, None);
        workspace.keep(&SessionId::from("sess_1"));
        let file = folder.path().join(STORAGE).join(CURRENT);
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while !file.exists() {
            assert!(std::time::Instant::now() < end, "nothing was kept");
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "sess_1");
        assert_eq!(workspace.last_session().await, Some(SessionId::from("sess_1")));
    }
}
