//! The real program in a pseudo terminal, from the first frame to a clean shell.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod e2e {
    mod ceiling;
    mod copy;
    mod modes;
    mod picture;
    mod plain;
    pub mod screen;
    mod search;
    mod servers;
    mod session;
    mod sessions;
    mod sign_in;
    mod signals;
    mod ssh;
    mod tabs;
    mod terminal;
    mod tty;
}
