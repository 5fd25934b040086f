//! Integration tests without the screen: real processes, protocol, services and reducer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

mod it {
    mod again;
    mod beside;
    #[path = "../support/bridge.rs"]
    pub mod bridge;
    mod dialects;
    mod extras;
    mod habits;
    mod proxy;
    mod remote;
    mod replays;
    pub mod rig;
    mod sdk;
    mod second;
    mod secure;
    mod ssh;
}
