//! Errors of file requests, and their JSON-RPC form.
//!
//! Codes: `-32002` for a missing file (with `data.uri`), `-32602` for a path that cannot be a text file, `-32603` for
//! others.

use std::io;
use std::path::Path;

use super::lines::MAX_SKIPPED_BYTES;
use crate::host::os::links;
use crate::model::{Raw, RefusedBy, RpcError};

/// Why a file request was rejected or failed.
#[derive(Debug)]
pub(super) enum FsError {
    Relative,
    Missing,
    Folder,
    /// A device, a pipe or a socket.
    Special,
    /// The content is not valid UTF-8.
    NotText {
        /// Offset of the first invalid byte in the requested part.
        at_bytes: usize,
    },
    /// The file or the requested part is over the limit.
    TooLarge {
        size_bytes: u64,
    },
    /// The file changed since the agent read it.
    Changed,
    /// The file was created since the agent found it missing.
    Appeared,
    /// A link was created after the check. Not reported: the path is resolved again.
    Escaped,
    Refused(RefusedBy),
    /// Writes are held, and this one cannot be, with the reason.
    Unholdable(&'static str),
    /// The path had another target each time.
    Unsteady,
    /// The requested part begins too far from the start of the file.
    TooFar,
    /// The turn or the session ended.
    Stopped,
    /// A new file cannot have the attributes of the old one. Not reported: the old one is overwritten.
    Unlike,
    /// Overwriting the file would remove permissions that cannot be set again.
    Privileged,
    /// The file can only be overwritten, and is too large to be restored if that fails.
    Irreplaceable {
        size_bytes: u64,
    },
    /// A write failed, and so did restoring the file.
    Damaged(io::Error),
    Io(io::Error),
}

impl From<io::Error> for FsError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Folder,
            // An error of the folder handle has no error number; those of the system do.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::Escaped,
            _ if links::is_link_error(&error) => Self::Escaped,
            _ => Self::Io(error),
        }
    }
}

impl FsError {
    /// The error response for the agent.
    pub(super) fn answer(&self, path: &Path) -> RpcError {
        let name = path.display();
        let code = match self {
            Self::Relative | Self::Folder | Self::Special => RpcError::INVALID_PARAMS,
            Self::Missing => RpcError::RESOURCE_NOT_FOUND,
            Self::Stopped => RpcError::CANCELLED,
            _ => RpcError::INTERNAL,
        };
        let message = match self {
            Self::Relative => format!("{name} is not an absolute path. Pass an absolute path."),
            Self::Missing => format!("{name} does not exist."),
            Self::Folder => format!("{name} is a folder, not a file."),
            Self::Special => format!("{name} is a device, pipe or socket. Only regular files are supported."),
            Self::NotText { at_bytes } => {
                format!("{name} is not UTF-8 text (first invalid byte: {at_bytes}).")
            }
            Self::TooLarge { size_bytes } => format!(
                "{name} is {} MiB; the limit is {} MiB. Read a part with `line` and `limit`.",
                size_bytes.div_ceil(1 << 20),
                super::MAX_READ_BYTES >> 20
            ),
            Self::Changed => {
                format!("Not written: {name} has changed since you read it. Read it again first.")
            }
            Self::Appeared => {
                format!("Not written: {name} was created since you last checked. Read it first.")
            }
            Self::Escaped | Self::Unsteady => {
                format!("Not written: a link in the path of {name} keeps changing.")
            }
            Self::TooFar => format!(
                "{name}: the first requested line is not in the first {} MiB. Read it with a command, such as `sed`.",
                MAX_SKIPPED_BYTES >> 20
            ),
            Self::Stopped => format!("{name}: cancelled, because the turn or the session ended."),
            Self::Unlike => format!("Not written: the attributes of {name} cannot be preserved."),
            Self::Privileged => format!(
                "Not written: {name} would lose its set-user-id bit or capabilities. Its owner can change it with a \
                 command."
            ),
            Self::Irreplaceable { size_bytes } => format!(
                "Not written: {name} has other names (hard links) or attributes that a new file cannot have, and is \
                 larger than {} MiB ({} MiB). Change it with a command.",
                super::MAX_READ_BYTES >> 20,
                size_bytes.div_ceil(1 << 20)
            ),
            Self::Damaged(error) => format!(
                "{name}: {error}. The file is incomplete, because its old content could not be restored. Write it \
                 again."
            ),
            Self::Unholdable(why) => format!(
                "Not written: parlor holds writes until the user has reviewed them, and {name} cannot be held: {why}."
            ),
            Self::Refused(by) => format!("{name}: {}.", by.description()),
            Self::Io(error) => format!("{name}: {error}."),
        };
        let data = (code == RpcError::RESOURCE_NOT_FOUND).then(|| {
            let path = path.to_string_lossy();
            Raw(format!("{{\"uri\":{}}}", json_string(&path)).into())
        });
        RpcError { code, message, data }
    }
}

/// A text as a JSON string, without a dependency on a JSON library.
fn json_string(text: &str) -> String {
    use std::fmt::Write as _;
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
