//! The real program in a pseudo terminal, from the first frame to a clean shell.

mod e2e {
    pub mod screen;
    mod session;
    mod signals;
}
