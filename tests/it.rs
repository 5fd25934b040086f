//! The client without its screen: real processes, the real wire, the real services, the real reducer.

mod it {
    mod habits;
    pub mod rig;
    mod sdk;
}
