//! What the system offers to confine a process: on Linux Landlock, and mounts in a namespace of its own; on macOS a program
//! that starts another one with a profile.
//!
//! Landlock draws the bounds, but cannot deny something below a folder that it allows. Mounts protect that.
//! Invariants: paths are opened without following a link, and a mount is made on what was opened; what could not be
//! enforced is returned as text for the user.

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;

use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub use self::landlock::restrict;
#[cfg(target_os = "linux")]
pub use self::mounts::{cover, drop_capabilities, enter_namespaces};

/// What the process can reach. Everything can be listed and executed; all else that is not named is denied.
#[derive(Debug, Default)]
pub struct Bounds {
    /// Folders and files that can be read, written, created and deleted.
    pub write: Vec<PathBuf>,
    /// Folders that can be written, but have secrets below them: these are read as `read` says.
    pub write_only: Vec<PathBuf>,
    /// Folders and files that can be read.
    pub read: Vec<PathBuf>,
    /// Devices that can be read, written and controlled.
    pub devices: Vec<PathBuf>,
    /// The TCP ports that can be connected to; `None`: all.
    pub ports: Option<Vec<u16>>,
}

/// A mount over a path. An outer one comes before those in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cover {
    /// Keeps its place: nothing can move it or put something else in its place.
    Pinned(PathBuf),
    /// Cannot be changed or replaced.
    ReadOnly(PathBuf),
    /// Has only the pseudo terminals that are made in the sandbox: `/dev/pts`.
    Terminals(PathBuf),
    /// Appears empty, except for these sockets in it.
    Hidden(PathBuf, Vec<PathBuf>),
}

impl Cover {
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Pinned(path) | Self::ReadOnly(path) | Self::Terminals(path) | Self::Hidden(path, _) => path,
        }
    }
}

/// The program of this process, also while its file is being replaced, and also for a shell that starts it.
pub fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        format!("/proc/{}/exe", std::process::id()).into()
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

/// The program that starts another one with a profile; `None` if a process enters the sandbox itself. Not looked up on the
/// `PATH`, where anything could take its place.
pub fn profile_tool() -> Option<&'static str> {
    cfg!(target_os = "macos").then_some("/usr/bin/sandbox-exec")
}

/// Closes everything but standard input, output and error.
pub fn close_inherited() {
    #[cfg(target_os = "linux")]
    {
        let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let open: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        for number in open.into_iter().filter(|number| *number > 2) {
            // The folder's own descriptor is closed already.
            let _ = nix::unistd::close(number);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod missing {
    use super::{Bounds, Cover};

    const MISSING: &str = "there is no sandbox for this operating system";

    pub fn enter_namespaces() -> Result<(), String> {
        Err(MISSING.to_owned())
    }

    pub fn cover(_: &[Cover]) -> Vec<String> {
        Vec::new()
    }

    pub fn drop_capabilities() -> Result<(), String> {
        Ok(())
    }

    pub fn restrict(_: &Bounds) -> Result<Vec<String>, String> {
        Err(MISSING.to_owned())
    }
}

#[cfg(not(target_os = "linux"))]
pub use self::missing::{cover, drop_capabilities, enter_namespaces, restrict};
