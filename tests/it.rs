//! The client without its screen: real processes, the real wire, the real services, the real reducer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start what they need")]

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
