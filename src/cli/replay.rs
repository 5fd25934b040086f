//! `parlor replay`: plays a protocol log on the screen or as text frames.

use std::fs::File;

use super::args::{Cli, ReplayArgs};
use super::start;
use crate::acp::log::Log;
use crate::config::{self, Paths};
use crate::runtime::print::Printer;
use crate::runtime::replay::{self, Screen};
use crate::ui::text::one_line;
use anyhow::{Context as _, bail};

/// Reads the log, and prints it with `--frames` and in plain-text mode; otherwise returns what [`show`] needs. Problems of
/// the log go to standard error.
pub fn run(
    args: &ReplayArgs,
    cli: &Cli,
    paths: &Paths,
    out: &mut Printer<'_>,
) -> anyhow::Result<Option<Screen>> {
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
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(None),
            done => done.context("cannot print")?,
        };
        report(&unplayed(&left_out));
        return Ok(None);
    }
    let colors = start::color_support();
    let (themes, _) = start::find_themes(&paths.theme_dir);
    let (theme, _) = themes.load(start::theme_name(&config.theme, colors), colors);
    Ok(Some(Screen {
        log,
        speed: args.speed,
        is_stepping: args.step,
        theme,
        has_rich_glyphs: start::has_rich_glyphs(),
        reduced_motion: config.reduced_motion,
    }))
}

/// Shows the replay until the user quits. Fails if the terminal cannot be used.
pub fn show(screen: Screen) -> anyhow::Result<()> {
    report(&unplayed(&replay::run(screen)?));
    Ok(())
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
