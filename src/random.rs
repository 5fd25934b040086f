//! Deterministic random numbers for tests.

use std::time::Duration;

/// A generator of pseudo-random numbers (xorshift64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// True once in `count` times on average.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A duration below `max` milliseconds.
    pub fn millis(&mut self, max: u64) -> Duration {
        Duration::from_millis(self.below(max))
    }
}
