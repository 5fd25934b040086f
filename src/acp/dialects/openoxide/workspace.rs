//! Files in the folder of a session: a lock, and the id of the last session.
//!
//! Only one instance may run in a folder. `core` uses the id.
//! Invariants: other agents leave no files in the folder; links in the folder are not followed, and a file is
//! changed only if it contains parlor's own line; nothing here blocks for long, and sessions do not depend on the
//! id, because parlor saves it as well.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tokio::time::{Instant, sleep, timeout};

use crate::acp::dialects::profile_of;
use crate::host::os::files;
use crate::host::os::links::{self, Open};
use crate::model::{AgentSpec, CloseReason, Profile, SessionId};

const STORAGE: &str = ".openoxide";
/// The folder in the storage, and the file in it, with the id of the last session.
const SESSIONS: &str = "sessions";
const CURRENT: &str = ".current";
/// The lock file in the storage, which parlor holds while the agent runs.
const LOCK: &str = "parlor.lock";
/// How long parlor waits for a previous agent to exit; stopping one takes at most this long.
const PATIENCE: Duration = Duration::from_secs(6);
const PAUSE: Duration = Duration::from_millis(100);
/// Timeout of reading the id; the folder may be on an unreachable network.
const READ_TIME: Duration = Duration::from_millis(500);
const MAX_ID_BYTES: u64 = 512;
const MAX_PID_CHARS: usize = 20;

/// The folder of an agent; the lock is held while this exists.
#[derive(Debug, Default)]
pub struct Workspace {
    folder: Option<PathBuf>,
    /// Held for the lock, never read.
    _lock: Option<File>,
}

impl Workspace {
    /// Waits for a previous agent to exit. Fails if another parlor runs one in the folder, or the storage is not writable.
    pub async fn enter(spec: &AgentSpec, cwd: &Path) -> Result<Self, CloseReason> {
        Self::enter_within(spec, cwd, PATIENCE).await
    }

    async fn enter_within(spec: &AgentSpec, cwd: &Path, time_limit: Duration) -> Result<Self, CloseReason> {
        // The lock does not work across machines.
        if profile_of(spec) != Some(Profile::OpenOxide) || spec.is_elsewhere() {
            return Ok(Self::default());
        }
        let unusable = |error: &io::Error| {
            let (folder, advice) = (cwd.join(STORAGE), "Choose another folder, or change its permissions.");
            let storage = format!("{}, where this agent stores its sessions", folder.display());
            CloseReason::not_started(format!("Cannot write {storage}: {error}. {advice}"))
        };
        let file = storage(cwd).and_then(|storage| open_file(&storage, LOCK, Open::ReadWrite));
        let mut file = file.map_err(|error| unusable(&error))?;
        let end = Instant::now() + time_limit;
        while !files::try_lock(&file).map_err(|error| unusable(&error))? {
            if Instant::now() >= end {
                return Err(is_taken(&mut file));
            }
            sleep(PAUSE).await;
        }
        write_pid(&mut file).map_err(|error| unusable(&error))?;
        Ok(Self { folder: Some(cwd.to_owned()), _lock: Some(file) })
    }

    pub async fn last_session(&self) -> Option<SessionId> {
        let folder = self.folder.clone()?;
        let read = tokio::task::spawn_blocking(move || read_current(&folder).ok());
        let text = timeout(READ_TIME, read).await.ok()?.ok()??;
        let id = text.trim();
        (!id.is_empty() && !id.contains(char::is_control)).then(|| SessionId::from(id))
    }

    pub fn keep(&self, id: &SessionId) {
        let Some(folder) = self.folder.clone() else { return };
        let id = id.as_str().to_owned();
        tokio::task::spawn_blocking(move || {
            let _ = write_current(&folder, &id);
        });
    }
}

/// Opens a folder in another one, and creates it if it does not exist. Links are not followed.
fn open_folder(parent: &Dir, name: &str) -> io::Result<Dir> {
    match parent.create_dir(name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => links::open_folder(parent, name.as_ref()),
    }
}

/// Opens a regular file in a folder. Fails for links and other kinds of files.
fn open_file(folder: &Dir, name: &str, how: Open) -> io::Result<File> {
    let file = links::open_file(folder, name.as_ref(), how)?.into_std();
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a file")) }
}

fn storage(cwd: &Path) -> io::Result<Dir> {
    open_folder(&Dir::open_ambient_dir(cwd, ambient_authority())?, STORAGE)
}

fn read_current(folder: &Path) -> io::Result<String> {
    let sessions = open_folder(&storage(folder)?, SESSIONS)?;
    io::read_to_string(open_file(&sessions, CURRENT, Open::Read)?.take(MAX_ID_BYTES))
}

/// Replaces the file, or a link, atomically, because a partial id could name another session.
fn write_current(folder: &Path, id: &str) -> io::Result<()> {
    let sessions = open_folder(&storage(folder)?, SESSIONS)?;
    let new = format!("{CURRENT}.{}", std::process::id());
    let _ = sessions.remove_file(&new);
    let mut file = open_file(&sessions, &new, Open::New)?;
    file.write_all(id.as_bytes())?;
    sessions.rename(&new, &sessions, CURRENT)
}

/// The process id in a lock file, or an empty text. Fails for other content, because the file is not parlor's.
fn read_pid(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    let is_text = (&*file).take(MAX_PID_CHARS as u64 + 1).read_to_string(&mut text).is_ok();
    if is_text && text.len() <= MAX_PID_CHARS && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text);
    }
    Err(io::Error::other(format!("{LOCK} is not a parlor lock file")))
}

fn write_pid(file: &mut File) -> io::Result<()> {
    read_pid(file)?;
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())
}

fn is_taken(file: &mut File) -> CloseReason {
    let who = match read_pid(file) {
        Ok(pid) if !pid.is_empty() => format!("Another parlor (process {pid})"),
        _ => "Another parlor".to_owned(),
    };
    CloseReason::not_started(format!(
        "{who} is running this agent in this folder; a second instance would corrupt its sessions. \
         Continue there, or close it and restart the agent here."
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::host::os::fixtures;

    fn spec(command: &str) -> AgentSpec {
        AgentSpec { command: command.to_owned(), ..AgentSpec::default() }
    }

    #[tokio::test]
    async fn a_second_instance_is_rejected_and_other_agents_leave_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let other = Workspace::enter(&spec("claude"), folder.path()).await.unwrap();
        other.keep(&SessionId::from("s"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let first = Workspace::enter(&spec("openoxide"), folder.path()).await.unwrap();
        let Err(CloseReason::NotStarted { error, is_missing: false }) =
            Workspace::enter_within(&spec("openoxide"), folder.path(), Duration::ZERO).await
        else {
            panic!("two instances in one folder");
        };
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        assert!(Workspace::enter(&spec("openoxide"), folder.path()).await.is_ok());
    }

    #[tokio::test]
    async fn the_last_session_id_is_saved_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::enter(&spec("openoxide"), folder.path()).await.unwrap();
        assert_eq!(workspace.last_session().await, None);
        workspace.keep(&SessionId::from("sess_1"));
        let file = folder.path().join(STORAGE).join(SESSIONS).join(CURRENT);
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while !file.exists() {
            assert!(std::time::Instant::now() < end, "the id was not saved");
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "sess_1");
        assert_eq!(workspace.last_session().await, Some(SessionId::from("sess_1")));
    }

    #[tokio::test]
    async fn links_in_the_folder_are_not_followed() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let precious = elsewhere.path().join("bashrc");
        fs::write(&precious, "sess_9").unwrap();
        let storage = folder.path().join(STORAGE);
        let spec = spec("openoxide");
        let enter = || Workspace::enter_within(&spec, folder.path(), Duration::ZERO);
        // The storage, the lock, the folder of the id, and the id.
        fixtures::link(elsewhere.path(), &storage);
        assert!(enter().await.is_err());
        fs::remove_file(&storage).unwrap();
        fs::create_dir(&storage).unwrap();
        fixtures::link(&precious, storage.join(LOCK));
        assert!(enter().await.is_err());
        fs::remove_file(storage.join(LOCK)).unwrap();
        let workspace = enter().await.unwrap();
        fixtures::link(elsewhere.path(), storage.join(SESSIONS));
        assert!(write_current(folder.path(), "s").is_err());
        fs::remove_file(storage.join(SESSIONS)).unwrap();
        fs::create_dir(storage.join(SESSIONS)).unwrap();
        fixtures::link(&precious, storage.join(SESSIONS).join(CURRENT));
        assert_eq!(workspace.last_session().await, None);
        write_current(folder.path(), "sess_1").unwrap();
        assert_eq!(workspace.last_session().await, Some(SessionId::from("sess_1")));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "sess_9");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1, "no files were written there");
    }

    #[tokio::test]
    async fn a_file_that_is_not_a_lock_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let storage = folder.path().join(STORAGE);
        fs::create_dir(&storage).unwrap();
        for text in ["years of work", "123456789012345678901", "12\n"] {
            fs::write(storage.join(LOCK), text).unwrap();
            assert!(Workspace::enter(&spec("openoxide"), folder.path()).await.is_err());
            assert_eq!(fs::read_to_string(storage.join(LOCK)).unwrap(), text);
        }
        fs::write(storage.join(LOCK), "123").unwrap();
        assert!(Workspace::enter(&spec("openoxide"), folder.path()).await.is_ok());
    }
}
