//! Why data could not be saved or read.

use std::path::{Path, PathBuf};

/// Why data could not be saved or read. `Display` is a message for the user with the remedy.
#[derive(Debug)]
pub struct StoreError {
    pub(super) path: PathBuf,
    pub(super) fault: Fault,
}

/// The kind of a store error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No space on the disk.
    Full,
    /// The disk rejects writes for another reason, such as a quota; the system's message.
    Refused(String),
    /// The file is read-only.
    ReadOnly,
    /// Another process has the file locked.
    Busy,
    /// The file is damaged or not a database.
    Corrupt(String),
    /// The file was written by a newer version.
    Newer,
    /// The file is a database of another program.
    Foreign,
    /// A parlor of an older version has the file open: its process id, if known.
    Former(Option<u32>),
    /// No session has this id.
    NoSession(String),
    /// Several sessions match.
    Ambiguous(String),
    /// Another parlor has the session open: its process id, if known.
    InUse(Option<u32>),
    /// Any other error; the system's message.
    Other(String),
}

impl StoreError {
    pub(super) fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_path_buf(), fault }
    }

    /// The kind of a store error.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
}

/// `" (process 7)"`, if the process is known.
fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.fault {
            Fault::Full => write!(f, "Cannot write {path}: the disk is full. Free some space."),
            Fault::Refused(why) => {
                write!(f, "Cannot write {path}: {why}. Check the disk's free space, quota and health.")
            }
            Fault::ReadOnly => write!(
                f,
                "Cannot write {path}: read-only or permission denied. Check its permissions and the disk."
            ),
            Fault::Busy => {
                write!(f, "Not saved: {path} is locked by another process. Close that process if it hangs.")
            }
            Fault::Corrupt(why) => write!(f, "{path} is damaged ({why})."),
            Fault::Newer => write!(
                f,
                "{path} was written by a newer version of parlor. Update parlor, or pass another --data-dir."
            ),
            Fault::Foreign => write!(
                f,
                "{path} is a database of another program and was not changed. Pass another --data-dir."
            ),
            Fault::Former(pid) => write!(
                f,
                "{path} has to be converted once, but an older parlor{} has it open. Close that one first.",
                process(*pid)
            ),
            Fault::NoSession(id) => {
                write!(f, "Session {id} not found. List all with `parlor sessions list --all`.")
            }
            Fault::Ambiguous(id) => write!(f, "Several session ids start with {id}. Pass more of the id."),
            Fault::InUse(pid) => {
                let process = process(*pid);
                write!(f, "The session is open in another parlor{process}. Close it there first.")
            }
            Fault::Other(why) => {
                write!(f, "Cannot use {path}: {why}. Check its permissions and the free disk space.")
            }
        }
    }
}

impl Fault {
    /// Why nothing can be saved, in a few words; `None` for faults of one request.
    pub(super) fn why(&self) -> Option<String> {
        Some(match self {
            Self::Full => "the disk is full".to_owned(),
            Self::Refused(why) => format!("{why}; check the free disk space and your quota"),
            Self::ReadOnly => "the data folder is read-only".to_owned(),
            Self::Busy => "the file is locked by another process".to_owned(),
            Self::Newer => "the file was written by a newer version of parlor; update parlor".to_owned(),
            Self::Foreign => "the file is a database of another program".to_owned(),
            Self::Former(pid) => {
                format!("an older parlor{} has the sessions open; close that one first", process(*pid))
            }
            Self::Corrupt(why) | Self::Other(why) => why.clone(),
            Self::NoSession(_) | Self::Ambiguous(_) | Self::InUse(_) => return None,
        })
    }
}

impl std::error::Error for StoreError {}
