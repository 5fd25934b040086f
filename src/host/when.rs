//! Formats times in the user's time zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A time in lists: relative if it is less than a week ago, otherwise the date. Unix milliseconds.
pub fn ago(at_ms: i64, now_ms: i64) -> String {
    let past = now_ms.saturating_sub(at_ms);
    match past {
        ..60_000 => "just now".to_owned(),
        60_000..HOUR_MS => format!("{} min ago", past / 60_000),
        HOUR_MS..DAY_MS => format!("{} h ago", past / HOUR_MS),
        DAY_MS..604_800_000 => format!("{} d ago", past / DAY_MS),
        _ => date(at_ms),
    }
}

/// Date and time. Unix milliseconds.
pub fn full(at_ms: i64) -> String {
    local(at_ms).map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The date, `2026-11-20`. Unix milliseconds.
pub fn date(at_ms: i64) -> String {
    local(at_ms).map_or_else(String::new, |at| at.strftime("%Y-%m-%d").to_string())
}

/// The start of the day of a time, in Unix milliseconds; 0 if unknown.
pub fn day_start(at_ms: i64) -> i64 {
    let start = local(at_ms).and_then(|at| at.start_of_day().ok());
    start.map_or(0, |start| start.timestamp().as_millisecond())
}

fn local(at_ms: i64) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(at_ms).ok()?.to_zoned(TimeZone::system()))
}
