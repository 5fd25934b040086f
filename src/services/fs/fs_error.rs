//! What can go wrong with a file, in words for the agent and its user.
//!
//! Duty: one enum for every refusal, and its JSON-RPC form. Codes: `-32002` missing (with `data.uri`),
//! `-32602` a path that cannot name a text file, `-32603` the rest.

use std::io;
use std::path::Path;

use crate::model::{Raw, RefusedBy, RpcError};
use crate::services::unix;

/// Why a file request was refused or failed.
#[derive(Debug)]
pub(super) enum FsError {
    /// The path is not absolute.
    Relative,
    /// There is no such file.
    Missing,
    Folder,
    /// It is neither a file nor a folder: a device, a pipe, a socket.
    Special,
    /// It holds bytes that are no UTF-8, the first at this offset.
    NotText {
        /// Offset of the first bad byte in what was asked for.
        at_bytes: usize,
    },
    /// It, or the part that was asked for, is over the limit.
    TooLarge {
        /// Size of the file.
        size_bytes: u64,
    },
    /// It changed since the agent read it.
    Changed,
    /// It came into being since the agent found it missing.
    Appeared,
    /// A link was swapped in after the check. Not reported: the path is resolved again.
    Escaped,
    /// The policy refuses it.
    Refused(RefusedBy),
    /// The path led somewhere else each time.
    Unsteady,
    /// The system refused.
    Io(io::Error),
}

impl From<io::Error> for FsError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Folder,
            // The folder handle's own refusal carries no error number; the system's does.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::Escaped,
            _ if unix::is_link_error(&error) => Self::Escaped,
            _ => Self::Io(error),
        }
    }
}

impl FsError {
    /// The answer to the agent.
    pub(super) fn answer(&self, path: &Path) -> RpcError {
        let name = path.display();
        let (code, message) = match self {
            Self::Relative => {
                (RpcError::INVALID_PARAMS, format!("{name} is not an absolute path. Pass an absolute path."))
            }
            Self::Missing => (RpcError::RESOURCE_NOT_FOUND, format!("{name} does not exist.")),
            Self::Folder => (RpcError::INVALID_PARAMS, format!("{name} is a folder, not a file.")),
            Self::Special => (
                RpcError::INVALID_PARAMS,
                format!("{name} is a device, pipe or socket. Only regular files are supported."),
            ),
            Self::NotText { at_bytes } => {
                (RpcError::INTERNAL, format!("{name} is not UTF-8 text (first invalid byte: {at_bytes})."))
            }
            Self::TooLarge { size_bytes } => (
                RpcError::INTERNAL,
                format!(
                    "{name} is {} MiB; the limit is {} MiB. Read a part with `line` and `limit`.",
                    size_bytes.div_ceil(1 << 20),
                    super::MAX_READ_BYTES >> 20
                ),
            ),
            Self::Changed => (
                RpcError::INTERNAL,
                format!("Not written: {name} has changed since you read it. Read it again first."),
            ),
            Self::Appeared => (
                RpcError::INTERNAL,
                format!("Not written: {name} was created since you last checked. Read it first."),
            ),
            Self::Escaped | Self::Unsteady => {
                (RpcError::INTERNAL, format!("Not written: a link in the path of {name} keeps changing."))
            }
            Self::Refused(by) => (RpcError::INTERNAL, format!("{name}: {}.", by.words())),
            Self::Io(error) => (RpcError::INTERNAL, format!("{name}: {error}.")),
        };
        let data = (code == RpcError::RESOURCE_NOT_FOUND).then(|| {
            let path = path.to_string_lossy();
            Raw(format!("{{\"uri\":{}}}", json_string(&path)).into())
        });
        RpcError { code, message, data }
    }
}

/// A text as a JSON string. The one place in the services that needs JSON, so it needs no parser.
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
