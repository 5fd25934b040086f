//! The shell that every system has, and those with its syntax.

pub const PLAIN_SHELL: &str = "/bin/sh";

/// The `PATH` of programs if the user's has no absolute folder.
pub const PLAIN_PATH: &str = "/usr/bin:/bin";

/// Names of the shells with the syntax of a POSIX shell.
pub const POSIX_SHELLS: &[&str] = &["sh", "bash", "dash", "ksh", "zsh"];
