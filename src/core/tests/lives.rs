//! Property tests of the record of a session, over random lives of it.
//!
//! What is recorded stays as it is; what is new of the agent's history is added once; what is told about a difference
//! is true, and told once. `PARLOR_LIVES` is the number of lives, `PARLOR_LIFE` the seed of a single one.

mod agent;
mod bench;
pub mod disk;
mod life;
mod oracle;

use disk::{Disk, Memory};
use life::Life;

use super::recorder::items;

/// How a life is played.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How often something is written, of a hundred updates.
    pub commits: u64,
    /// Number of bytes that are added to replies.
    pub padding: usize,
}

/// Plays a life; returns its story if something was wrong.
pub fn fault(seed: u64, disk: impl Disk, pace: Pace) -> Option<String> {
    let mut life = Life::new(seed, disk);
    life.commits = pace.commits;
    life.padding = "x".repeat(pace.padding);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life.play()));
    let error = match result {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error,
        Err(_) => "a panic".to_owned(),
    };
    let shown = life.bench.as_ref().map(|bench| items(bench.session())).unwrap_or_default();
    Some(format!("PARLOR_LIFE={seed}: {error}\n  {}\nshown: {shown:#?}", life.story.join("\n  ")))
}

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Number of lives that are printed.
const MAX_FAULTS: u64 = 100;

/// Plays a share of the lives.
fn play(share: u64) {
    let seeds = match number("PARLOR_LIFE") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PARLOR_LIVES").unwrap_or(10_000),
    };
    let mut faults = 0;
    for seed in seeds.filter(|seed| seed % 2 == share) {
        if let Some(story) = fault(seed, Memory::default(), Pace { commits: 35, padding: 0 }) {
            faults += 1;
            println!("{story}");
        }
        assert!(faults < MAX_FAULTS, "{faults} lives until {seed}");
    }
    assert_eq!(faults, 0);
}

#[test]
fn a_record_only_gains_what_is_new() {
    play(0);
}

#[test]
fn a_record_only_gains_what_is_new_in_other_lives() {
    play(1);
}
