//! Locks whose data stays usable after a panic of another thread.
//!
//! Invariants: nothing that is locked here is left half changed by a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
