//! `parlor replay`: plays a protocol log on the screen or as text frames.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use super::{Cli, Next, start};
use crate::acp::log::Log;
use crate::config::{self, Config, Paths};
use crate::runtime::print::Printer;
use crate::runtime::replay::{self, Screen};
use crate::ui::text::one_line;

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

/// A replay on the screen.
#[derive(Debug, Clone)]
pub struct Job {
    log: Log,
    speed: f64,
    is_stepping: bool,
    config: Config,
    theme_dir: PathBuf,
}

/// Reads the log, and prints it with `--frames` and in plain-text mode. Problems of the log go to standard error.
pub fn run(args: &ReplayArgs, cli: &Cli, paths: &Paths, out: &mut Printer<'_>) -> anyhow::Result<Next> {
    let name = one_line(&args.file.to_string_lossy());
    let cannot = || format!("cannot replay {name}");
    let file = File::open(&args.file).with_context(cannot)?;
    // Reading a pipe or a device may never end.
    if !file.metadata().with_context(cannot)?.is_file() {
        bail!("cannot replay {name}: not a regular file");
    }
    let log = Log::read(file, args.run).with_context(cannot)?;
    report(&broken(&log));
    let (mut config, _) = config::load(paths);
    cli.options.apply(&mut config);
    let is_plain = start::is_plain(&config);
    if args.frames || is_plain {
        let played = if args.frames {
            replay::frames(log, args.size, |frame| out.print(frame))
        } else {
            replay::plain(log, start::has_rich_glyphs(), |text| out.print(text))
        };
        let left_out = match played {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Next::Nothing),
            done => done.context("cannot print")?,
        };
        report(&unplayed(&left_out));
        return Ok(Next::Nothing);
    }
    let (speed, is_stepping) = (args.speed, args.step);
    Ok(Next::Replay(Box::new(Job { log, speed, is_stepping, config, theme_dir: paths.theme_dir.clone() })))
}

impl Job {
    /// Shows the replay until the user quits. Fails if the terminal cannot be used.
    pub fn run(self) -> anyhow::Result<()> {
        let colors = start::color_support();
        let (themes, _) = start::find_themes(&self.theme_dir);
        let (theme, _) = themes.load(start::theme_name(&self.config.theme, colors), colors);
        let left_out = replay::run(Screen {
            log: self.log,
            speed: self.speed,
            is_stepping: self.is_stepping,
            theme,
            has_rich_glyphs: start::has_rich_glyphs(),
            reduced_motion: self.config.reduced_motion,
        })?;
        report(&unplayed(&left_out));
        Ok(())
    }
}

/// Prints a warning. An error is ignored, because standard error may be closed.
fn report(text: &str) {
    let _ = Printer::stderr().print(text);
}

fn broken(log: &Log) -> String {
    let reported = log.reported.iter();
    let mut lines: Vec<String> =
        reported.map(|(line, error)| format!("parlor: skipped line {line}: {}\n", one_line(error))).collect();
    let more = log.broken - log.reported.len();
    lines.extend((more > 0).then(|| format!("parlor: skipped {more} more lines\n")));
    lines.concat()
}

/// The requests of parlor that could not be repeated.
fn unplayed(lines: &[usize]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().take(20).map(ToString::to_string).collect();
    format!("parlor: could not replay lines {}\n", lines.join(", "))
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
