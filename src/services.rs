//! Local services: files, terminals, git, and what parlor keeps on disk.
//!
//! Duty: does the work that an agent asks of its client, off the UI thread, and tells the outcome as
//! [`crate::model::ServiceEvent`]. Not its duty: deciding whether it may be done (`app`).
