//! Integration tests without the screen: real processes, protocol, services and reducer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

mod it {
    #[path = "../support/bridge.rs"]
    pub mod bridge;
    mod dialects;
    mod draft_features;
    mod nonstandard;
    mod proxy;
    mod remote;
    mod replays;
    mod restarts;
    pub mod rig;
    #[cfg(target_os = "linux")]
    mod sandbox;
    mod sdk;
    mod sdk_v2;
    mod single_agents;
    mod ssh;
    mod tls;
}
