//! Links: targets of text.
//!
//! The tag of a span contains the number of its link. The canvas notes it beside the cells, where the painter turns it
//! into a hyperlink (OSC 8); the mouse finds it in the span. `text::locations` finds places in text, and
//! `ui::dialogs` opens them.
//!
//! The numbers belong to the drawing thread, and are valid until `MAX_LINKS` newer ones exist; an expired
//! number is text without a link.
//!
//! Invariants: all targets were created by [`Target::of_link`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::locations;
use crate::model::{Location, Target};
use crate::ui::text::Span;

/// Maximum number of links; a screen has far fewer.
const MAX_LINKS: u32 = 4_096;

#[derive(Default)]
struct Table {
    /// Indexed by number modulo [`MAX_LINKS`].
    targets: Vec<(u32, Target)>,
    numbers: HashMap<String, u32>,
    last: u32,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
    static ARE_SHOWN: Cell<bool> = const { Cell::new(false) };
    static ARE_FILES_HERE: Cell<bool> = const { Cell::new(true) };
}

/// Sets whether the terminal shows links, so that text does not have to contain the target. Called once,
/// before the first frame.
pub fn show(are_shown: bool) {
    ARE_SHOWN.set(are_shown);
}

pub fn are_shown() -> bool {
    ARE_SHOWN.get()
}

/// Sets, before a frame, whether files are on this machine, because the terminal can only open local ones.
pub fn keep_files(are_here: bool) {
    ARE_FILES_HERE.set(are_here);
}

/// Whether the terminal is known to show links, from the environment, because terminals cannot be queried.
/// tmux supports links since 3.4; screen removes them.
pub fn are_known_to(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    if is_set("STY") {
        return false;
    }
    if is_set("TMUX") {
        // Variables of the outer terminal are those from the start of tmux, so only tmux's own are used.
        let version = variable("TERM_PROGRAM_VERSION").unwrap_or_default();
        return program == "tmux" && has_version(&version, (3, 4));
    }
    // VTE (GNOME and others) supports links since 0.50.
    let vte: u32 = variable("VTE_VERSION").and_then(|version| version.parse().ok()).unwrap_or(0);
    ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour", "rio"]
        .iter()
        .any(|name| term.starts_with(name))
        || matches!(
            program.as_str(),
            "iTerm.app" | "WezTerm" | "ghostty" | "vscode" | "Hyper" | "rio" | "WarpTerminal"
        )
        || vte >= 5000
        || ["WT_SESSION", "KONSOLE_VERSION", "KITTY_WINDOW_ID", "DOMTERM"].into_iter().any(is_set)
}

/// Whether a version such as `3.5a` or `next-3.6` is at least this one.
fn has_version(version: &str, min: (u32, u32)) -> bool {
    let mut parts = version.trim_start_matches(|ch: char| !ch.is_ascii_digit()).splitn(2, '.');
    let mut number = || {
        let part = parts.next().unwrap_or_default();
        let end = part.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(part.len());
        part.get(..end).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0)
    };
    (number(), number()) >= min
}

/// The number of the link to a target. A relative path is resolved in `folder`.
pub fn number_of(target: &Target, folder: &Path) -> u32 {
    let target = match target {
        Target::File(location) => {
            let path = folder.join(&location.path).components().collect();
            Target::File(Location { path, line: location.line })
        }
        Target::Url(url) => Target::Url(url.clone()),
    };
    let key = match &target {
        Target::File(location) => format!("{}:{}", location.path.display(), location.line.unwrap_or(0)),
        Target::Url(url) => url.clone(),
    };
    TABLE.with_borrow_mut(|table| {
        if let Some(number) = table.numbers.get(&key) {
            return *number;
        }
        // The painter has 24 bits for it; 0 is reserved for no link.
        table.last = table.last % 0x00ff_ffff + 1;
        let number = table.last;
        let location = (number % MAX_LINKS) as usize;
        if location < table.targets.len() {
            table.numbers.retain(|_, known| *known % MAX_LINKS != number % MAX_LINKS);
        } else {
            table.targets.resize(location + 1, (0, Target::Url(String::new())));
        }
        if let Some(slot) = table.targets.get_mut(location) {
            *slot = (number, target);
        }
        table.numbers.insert(key, number);
        number
    })
}

pub fn target(number: u32) -> Option<Target> {
    TABLE.with_borrow(|table| {
        let (known, target) = table.targets.get((number % MAX_LINKS) as usize)?;
        (number != 0 && *known == number).then(|| target.clone())
    })
}

pub fn address(number: u32) -> Option<String> {
    let target = target(number)?;
    (ARE_FILES_HERE.get() || matches!(target, Target::Url(_))).then(|| target.address())?
}

/// Links the URLs and paths in a line, except in existing links.
pub fn linkify(spans: Vec<Span<'static>>, folder: &Path) -> Vec<Span<'static>> {
    let text: String = spans.iter().map(|span| span.content.as_ref()).collect();
    let locations = locations::find(&text);
    if locations.is_empty() {
        return spans;
    }
    let mut out = Vec::with_capacity(spans.len() + 2 * locations.len());
    let mut start = 0;
    for span in spans {
        let end = start + span.content.len();
        let mut at = start;
        let is_free = span.tag.link == 0;
        for (range, target) in
            locations.iter().filter(|(range, _)| is_free && range.start < end && range.end > start)
        {
            let (from, to) = (range.start.max(start), range.end.min(end));
            push(&mut out, &text, at..from, &span, 0);
            push(&mut out, &text, from..to, &span, number_of(target, folder));
            at = to;
        }
        push(&mut out, &text, at..end, &span, span.tag.link);
        start = end;
    }
    out
}

fn push(out: &mut Vec<Span<'static>>, text: &str, part: Range<usize>, like: &Span<'_>, link: u32) {
    if let Some(part) = text.get(part).filter(|part| !part.is_empty()) {
        out.push(like.with_text(part.to_owned()).linked(link));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Target {
        Target::of_link(text).expect("an address")
    }

    #[test]
    fn link_numbers_resolve_until_they_expire() {
        let folder = Path::new("/w");
        let number_of = |target: &Target| number_of(target, folder);
        let first = url("https://a.org");
        let number = number_of(&first);
        assert_eq!(number_of(&first), number, "the same number");
        assert_eq!(target(number), Some(first));
        let other = number_of(&url("https://b.org"));
        assert_eq!(address(other).as_deref(), Some("https://b.org"));
        for index in 0..MAX_LINKS {
            number_of(&url(&format!("https://a.org/{index}")));
        }
        assert_eq!((target(number), target(0)), (None, None));
        let file = Target::of_link("src/./a.rs:3").expect("a path");
        assert_eq!(address(number_of(&file)).as_deref(), Some("file:///w/src/a.rs"));
        keep_files(false);
        assert_eq!(address(number_of(&file)), None, "the terminal cannot open remote files");
        assert!(target(number_of(&file)).is_some() && address(other).is_none());
        keep_files(true);
    }

    #[test]
    fn terminals_are_detected_by_variables() {
        let known = |pairs: &[(&str, &str)]| {
            are_known_to(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(known(&[("TERM", "xterm-kitty")]));
        assert!(known(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode")]));
        assert!(known(&[("VTE_VERSION", "7600")]));
        assert!(!known(&[("VTE_VERSION", "3400")]));
        assert!(!known(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x,1,0")]), "unknown tmux version");
        let tmux = |version: &str| {
            known(&[("TMUX", "/tmp/x,1,0"), ("TERM_PROGRAM", "tmux"), ("TERM_PROGRAM_VERSION", version)])
        };
        assert!(tmux("3.4") && tmux("3.5a") && tmux("next-3.6") && tmux("4.0") && tmux("3.10"));
        assert!(!tmux("3.3a") && !tmux("2.9") && !tmux("") && !tmux("master"));
        assert!(!known(&[("STY", "1"), ("TERM_PROGRAM", "WezTerm")]));
        assert!(!known(&[("TERM", "linux")]) && !known(&[]));
    }

    #[test]
    fn text_stays_and_only_places_get_a_number() {
        let bold = ratatui::style::Style::new().bold();
        let there = number_of(&url("https://x.org"), Path::new("/w"));
        let spans = vec![
            Span::raw("see sr"),
            Span::styled("c/a.rs:3 now", bold),
            Span::styled(" https://y.org", bold).linked(there),
        ];
        let out = linkify(spans.clone(), Path::new("/w"));
        let text =
            |spans: &[Span<'static>]| spans.iter().map(|span| span.content.to_string()).collect::<String>();
        assert_eq!(text(&out), text(&spans));
        let linked: Vec<&str> =
            out.iter().filter(|span| span.tag.link != 0).map(|span| span.content.as_ref()).collect();
        assert_eq!(linked, ["sr", "c/a.rs:3", " https://y.org"]);
        assert_eq!(out.last().map(|span| (span.style, span.tag.link)), Some((bold, there)));
    }
}
