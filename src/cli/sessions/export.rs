//! Exports sessions: Markdown for reading, JSON for import.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;

use super::page::{self, Call, Picture, Section};
use super::{Format, World, html, time};
use crate::host::os::{files, private};
use crate::model::ExportForm;
use crate::redact::{find, masked};
use crate::store::{Document, SessionRow, Store, pretty};
use crate::ui::text::{boundary_before, sanitize};

/// Maximum number of bytes of a text that are searched for secrets at once.
const MAX_SEARCHED: usize = 1 << 20;

/// The output file of an export.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    pub path: &'a Path,
    /// Whether to replace an existing file without confirmation.
    pub replaces: bool,
    /// Whether the output is JSON; then the user is not asked.
    pub tells_json: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    session: &'a str,
    format: Format,
    file: String,
    bytes: usize,
}

/// Exports a session to a file. Replaces an existing file only if requested or confirmed. Returns the text to
/// print.
pub fn to_file(
    store: &Store,
    row: &SessionRow,
    (format, hides_secrets): (Format, bool),
    file: &File<'_>,
    world: &mut World<'_>,
) -> anyhow::Result<String> {
    let path = file.path.display();
    let mut replaces = file.replaces;
    if !replaces && file.path.symlink_metadata().is_ok() {
        let ask = world.ask.as_mut().filter(|_| !file.tells_json);
        replaces = ask.is_some_and(|ask| ask(&format!("{path} already exists. Replace it?")));
        if !replaces {
            bail!("{path} already exists; pass another file, or --force to replace it");
        }
    }
    let text = text(store, row, format, hides_secrets)?;
    write_file(file.path, &text, replaces)?;
    Ok(if file.tells_json {
        let file = file.path.to_string_lossy().into_owned();
        pretty(&Written { session: &row.uid, format, file, bytes: text.len() })
    } else {
        format!("Written to {path}.\n")
    })
}

/// The session in a format.
pub fn text(store: &Store, row: &SessionRow, format: Format, hides_secrets: bool) -> anyhow::Result<String> {
    Ok(match format {
        Format::Markdown => markdown(store, row, hides_secrets)?,
        // Its texts are in parts as they arrived, so a secret may be in two of them.
        Format::Json if hides_secrets => {
            bail!("secrets cannot be hidden in JSON; export Markdown or HTML")
        }
        Format::Json => json(store, row)?,
        Format::Html => {
            let (row, sections, unreadable_count) = for_reading(store, row, hides_secrets)?;
            html::page(&row, &sections, unreadable_count)
        }
    })
}

/// The text with `*` in place of what looks like a secret.
pub(super) fn hide(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    // Only so much of a text is searched at once.
    while rest.len() > MAX_SEARCHED {
        let end = boundary_before(rest, MAX_SEARCHED);
        let end = rest.get(..end).and_then(|part| part.rfind('\n')).map_or(end, |line| line + 1);
        let (part, after) = rest.split_at(end);
        out.push_str(&masked(part, &find(part)));
        rest = after;
    }
    out + &masked(rest, &find(rest))
}

/// The metadata and sections, and the number of events that cannot be read.
fn for_reading(
    store: &Store,
    row: &SessionRow,
    hides_secrets: bool,
) -> anyhow::Result<(SessionRow, Vec<Section>, u64)> {
    let (events, unreadable_count) = store.events(&row.uid)?;
    let (mut row, mut sections) = (row.clone(), page::pieces(events));
    if hides_secrets {
        for section in &mut sections {
            section.map_texts(hide);
        }
        row.title = row.title.as_deref().map(hide);
        row.first_prompt = row.first_prompt.as_deref().map(hide);
    }
    Ok((row, sections, unreadable_count))
}

/// A session as Markdown, for a prompt that mentions it. Errors are for display.
pub fn transcript(store: &Store, uid: &str) -> Result<String, String> {
    let text = || markdown(store, &store.find(uid)?, false);
    text().map_err(|error| format!("{error:#}"))
}

/// Maximum number of characters of a title in the name of a file.
const NAME_MAX_CHARS: usize = 60;

/// `fix-the-total` for `Fix the total!`: letters and digits, which no shell or file system interprets.
fn file_name(title: &str) -> String {
    let words = title.split(|ch: char| !ch.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    let name: String = name.chars().take(NAME_MAX_CHARS).collect();
    match name.trim_end_matches('-') {
        "" => "session".to_owned(),
        name => name.to_owned(),
    }
}

/// Exports a session to a new file in a folder, and returns its path. Errors are for display.
pub fn export_into(store: &Store, uid: &str, form: ExportForm, folder: &Path) -> Result<PathBuf, String> {
    let (format, extension) = match form {
        ExportForm::Markdown | ExportForm::Redacted => (Format::Markdown, "md"),
        ExportForm::Json => (Format::Json, "json"),
        ExportForm::Html => (Format::Html, "html"),
    };
    let row = store.find(uid).map_err(|error| format!("{error:#}"))?;
    let hides_secrets = form == ExportForm::Redacted;
    let name = row.title.as_deref().or(row.first_prompt.as_deref()).unwrap_or(uid);
    let name = file_name(&if hides_secrets { hide(name) } else { name.to_owned() });
    // Existing files are not replaced.
    let free = (1..1000)
        .map(|number| match number {
            1 => folder.join(format!("parlor-{name}.{extension}")),
            _ => folder.join(format!("parlor-{name}-{number}.{extension}")),
        })
        .find(|path| path.symlink_metadata().is_err());
    let Some(path) = free else { return Err(format!("Too many exports in {}.", folder.display())) };
    let write = || write_file(&path, &text(store, &row, format, hides_secrets)?, false);
    write().map(|()| path.clone()).map_err(|error| format!("{error:#}"))
}

/// Writes a file atomically; replaces an existing one only if requested. Then links are followed, and a pipe or a device
/// is written to.
fn write_file(path: &Path, text: &str, replaces: bool) -> anyhow::Result<()> {
    let target = if replaces { follow_links(path) } else { path.to_owned() };
    let path = target.as_path();
    let is_special = || path.metadata().is_ok_and(|facts| !facts.is_file() && !facts.is_dir());
    let write = || {
        if replaces && is_special() {
            return files::open_special(path)?.write_all(text.as_bytes());
        }
        let file = private::staged(path, text.as_bytes())?;
        let placed = if replaces { file.persist(path) } else { file.persist_noclobber(path) };
        let placed = match placed {
            // Not every file system supports the atomic check; the caller has checked before.
            Err(refused) if !replaces && refused.error.kind() != ErrorKind::AlreadyExists => {
                refused.file.persist(path)
            }
            other => other,
        };
        placed.map(drop).map_err(|refused| refused.error)
    };
    write().with_context(|| format!("cannot write {}; pass another file with --output", path.display()))
}

/// The file that a link leads to, which need not exist.
fn follow_links(path: &Path) -> PathBuf {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// The metadata and all events as JSON.
pub fn json(store: &Store, row: &SessionRow) -> anyhow::Result<String> {
    let (events, unreadable_count) = store.events(&row.uid)?;
    Ok(Document::new(store, row, events, unreadable_count).text())
}

/// The session as Markdown.
pub fn markdown(store: &Store, row: &SessionRow, hides_secrets: bool) -> anyhow::Result<String> {
    let (row, sections, unreadable_count) = for_reading(store, row, hides_secrets)?;
    let mut text = format!("# {}\n\n", row.name().lines().next().unwrap_or_default());
    for (name, value) in facts(&row) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    if let Some(note) = unreadable_note(unreadable_count) {
        let _ = writeln!(text, "\n> {note}");
    }
    for piece in sections {
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
        match piece {
            Section::Prompt(part) => {
                text.push_str("## Prompt\n\n");
                text.extend(part.lines().flat_map(|line| ["> ", line, "\n"]));
            }
            Section::Answer(part) => {
                text.push_str(part.trim_end());
                text.push('\n');
            }
            Section::Thought(part) => {
                text.push_str("<details><summary>Thought</summary>\n\n");
                text.push_str(part.trim_end());
                text.push_str("\n\n</details>\n");
            }
            // Markdown contains only a description of an image.
            Section::Picture(Picture { alt, .. }) => {
                text.push_str(&alt);
                text.push('\n');
            }
            Section::Call(call) => call_text(&mut text, &call),
            Section::Notice { is_error, text: notice } => {
                let mark = if is_error { "**" } else { "*" };
                let mut lines = notice.trim_end().lines();
                let _ = writeln!(text, "{mark}{}{mark}", lines.next().unwrap_or_default());
                let rest: Vec<&str> = lines.collect();
                if !rest.is_empty() {
                    text.push('\n');
                    fenced(&mut text, "", &rest.join("\n"));
                }
            }
        }
    }
    Ok(text.split_inclusive('\n').map(sanitized_line).collect())
}

/// The note about missing events, if there are any.
pub fn unreadable_note(count: u64) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 event is missing: it needs a newer version of parlor.".to_owned()),
        _ => Some(format!("{count} events are missing: they need a newer version of parlor.")),
    }
}

/// The session's metadata for the top of a document.
pub fn facts(row: &SessionRow) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Session", row.uid.clone()), ("Agent", row.agent.clone())];
    facts.push(("Folder", row.folder.to_string_lossy().into_owned()));
    facts.extend(row.branch.clone().map(|branch| ("Branch", branch)));
    facts.push(("Started", time::full(row.created_ms)));
    facts.push(("Updated", time::full(row.updated_ms)));
    facts
}

fn call_text(text: &mut String, call: &Call) {
    let status = call.status.map(|status| format!(" ({status})")).unwrap_or_default();
    let _ = writeln!(text, "### {}{status}\n", call.title.lines().next().unwrap_or_default());
    if let Some(command) = call.command.as_deref().filter(|command| !call.title.contains(command)) {
        fenced(text, "sh", command);
    }
    for note in &call.notes {
        fenced(text, "", note);
    }
    for (path, diff) in &call.diffs {
        let _ = writeln!(text, "`{}`\n", path.replace('`', "'"));
        fence(text, "diff", diff.strip_suffix('\n').unwrap_or(diff));
    }
    if !call.output.is_empty() {
        fenced(text, "", &call.output);
    }
    for Picture { alt, .. } in &call.pictures {
        let _ = writeln!(text, "{alt}\n");
    }
}

/// A line without what a terminal would interpret. The line end of Windows stays, because diffs need it.
pub(super) fn sanitized_line(line: &str) -> String {
    match line.strip_suffix("\r\n") {
        Some(line) => format!("{}\r\n", sanitize(line)),
        None => sanitize(line).into_owned(),
    }
}

/// A code block with a fence that is longer than any in the code.
fn fenced(text: &mut String, language: &str, code: &str) {
    fence(text, language, code.trim_end());
}

/// The same with the blanks at the end.
pub(super) fn fence(text: &mut String, language: &str, code: &str) {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(text, "{fence}{language}\n{code}\n{fence}\n\n");
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn exports_are_named_by_sanitised_titles() {
        for (title, name) in [
            ("Fix the receipt's total!", "fix-the-receipt-s-total"),
            ("../../etc/passwd\u{202e}\n", "etc-passwd"),
            ("Größe prüfen", "größe-prüfen"),
            ("…", "session"),
        ] {
            assert_eq!(file_name(title), name);
        }
        assert_eq!(file_name(&"word ".repeat(40)).chars().count(), 59, "cut, without a dash at the end");
    }
}
