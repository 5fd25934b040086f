//! The arguments of `parlor replay`.

use std::path::PathBuf;

use clap::Args;

const COLS: std::ops::RangeInclusive<u16> = 20..=500;
const ROWS: std::ops::RangeInclusive<u16> = 6..=200;

/// Arguments of `parlor replay`.
#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// Protocol log to replay
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Speed factor, or `max` to play without waiting
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed, conflicts_with_all = ["frames", "plain"])]
    pub speed: f64,

    /// Play one message per press of `n`
    #[arg(long, conflicts_with_all = ["frames", "plain"])]
    pub step: bool,

    /// Print changed frames as text, for comparison with diff
    #[arg(long)]
    pub frames: bool,

    /// With --frames: frame size
    #[arg(long, value_name = "COLSxROWS", default_value = "80x24", value_parser = size, requires = "frames")]
    pub size: (u16, u16),

    /// Number of the run in the log [default: last]
    #[arg(long, value_name = "N")]
    pub run: Option<usize>,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = if text == "max" { Ok(0.0) } else { text.parse::<f64>() };
    let known = speed.ok().filter(|speed| (0.0..=1e6).contains(speed));
    known.ok_or_else(|| "expected a number such as 2 or 0.5, or `max`".to_owned())
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('x').and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    parsed.filter(|(cols, rows)| COLS.contains(cols) && ROWS.contains(rows)).ok_or_else(|| {
        let bounds = (COLS.start(), ROWS.start(), COLS.end(), ROWS.end());
        format!(
            "expected columns and rows from {}x{} to {}x{}, such as 80x24",
            bounds.0, bounds.1, bounds.2, bounds.3
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_sizes_have_bounds() {
        assert_eq!(speed("2").ok().zip(speed("max").ok()), Some((2.0, 0.0)));
        assert!(["", "-1", "NaN", "inf", "fast"].iter().all(|text| speed(text).is_err()));
        assert_eq!(size("100x30"), Ok((100, 30)));
        assert!(["", "80", "x", "1x1", "65535x24", "80x24x2"].iter().all(|text| size(text).is_err()));
    }
}
