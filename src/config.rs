//! Configuration: finds, merges and checks what the user wrote.
//!
//! Duty: one [`Config`] in force, with the origin of each value, and a list of problems that never stop the
//! program. Not its duty: acting on it.
