//! Parses and formats times.

use anyhow::bail;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The current time in Unix milliseconds.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

pub use crate::host::when::{ago, full};

/// Formats a time as RFC 3339 in UTC.
pub fn rfc3339(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Parses a date (its start), or an age in hours, days or weeks.
pub fn parse(text: &str, now_ms: i64) -> anyhow::Result<i64> {
    let text = text.trim();
    if let Ok(date) = text.parse::<Date>() {
        return Ok(date.to_zoned(TimeZone::system())?.timestamp().as_millisecond());
    }
    let unit_ms = match text.chars().last() {
        Some('h') => HOUR_MS,
        Some('d') => DAY_MS,
        Some('w') => 7 * DAY_MS,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1)).and_then(|number| number.parse::<u32>().ok());
    match number {
        Some(number) if unit_ms > 0 => Ok(now_ms.saturating_sub(i64::from(number).saturating_mul(unit_ms))),
        _ => bail!("invalid time {text}; use a date such as 2026-01-31, or 12h, 30d, 8w"),
    }
}
