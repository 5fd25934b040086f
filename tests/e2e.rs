//! End-to-end tests of the binary in a pseudo terminal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

mod e2e {
    mod attention;
    #[path = "../support/bridge.rs"]
    #[allow(dead_code, reason = "other tests use the rest")]
    pub mod bridge;
    mod ceiling;
    mod clipboard;
    mod copy;
    mod editor;
    mod forks;
    mod habits;
    mod mentions;
    mod modes;
    mod paste;
    mod picture;
    mod plain;
    mod policy;
    mod prompts;
    mod replay;
    pub mod screen;
    mod search;
    mod secrets;
    mod servers;
    mod session;
    mod sessions;
    mod settings;
    mod shell;
    mod sign_in;
    mod signals;
    mod ssh;
    mod strict;
    mod tabs;
    mod templates;
    mod terminal;
    mod tmux;
    mod tty;
    mod typing;
    mod undo;
    mod vim;
    mod worktrees;
}
