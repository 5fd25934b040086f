//! The values of a raw input that a dialog about a tool call must list.
//!
//! A value that the dialog already shows (as plan, or as command, folder, path, change or reason under a key with that meaning) is
//! omitted; all others are listed with their names. `acp::codec` parses the input.
//! Invariant: a value is omitted only if its own text, or its own change, is in the dialog.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::ui::text::{Line, Span};

use super::changes_of;
use crate::core::ToolCall;
use crate::core::state::duplicate_diffs::KnownChanges;
use crate::model::input_keys::{COMMAND, CWD, DESCRIPTION, NEW, OLD, PATCH, PATH, QUERY, SHELLS, URL, WHOLE};
use crate::model::{ContentBlock, DiffChange, FileDiff, ToolContent, ToolKind, byte_size};
use crate::ui::json::{self, Leaf, Step};
use crate::ui::render_context::RenderContext;
use crate::ui::text::{Shown, clip, hard_wrap, reveal_line, reveal_lines, wrap_whole};
use crate::ui::theme::Role;

/// Maximum number of values that are checked.
const LEAVES_MAX: usize = 1000;
const LISTED_MAX: usize = 60;
/// Longer values are shown with their start and end only.
pub(super) const VALUE_BYTES: usize = 4096;
const VALUE_LINES: usize = 12;
/// Longer texts are shown with their start and end; a key shows the rest.
pub(super) const TEXT_BYTES: usize = 32 * 1024;
/// Maximum number of edits searched in changes of whole files, and maximum size of such a file.
const EDITS_MAX: usize = 8;
const EDITED_BYTES: usize = 256 * 1024;

/// The paths in the head line of the call: those of its changes, otherwise of its input, otherwise its locations.
pub(crate) fn named_paths(tool: &ToolCall) -> Vec<&Path> {
    if !matches!(tool.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Read) {
        return Vec::new();
    }
    let mut paths: Vec<&Path> = Vec::new();
    if tool.kind == ToolKind::Edit {
        paths.extend(changes_of(tool).iter().map(|change| change.path.as_path()));
        paths.dedup();
        paths.retain(|path| !path.as_os_str().is_empty());
    }
    if paths.is_empty() {
        let first = tool.locations.first().map(|position| position.path.as_path());
        paths.extend(tool.input.path.as_deref().or(first));
    }
    paths
}

/// The subject in the head line apart from paths: the query of a search, the address of a request.
pub(crate) fn named_text(tool: &ToolCall) -> Option<&str> {
    match tool.kind {
        ToolKind::Search => tool.input.query.as_deref(),
        ToolKind::Fetch => tool.input.url.as_deref(),
        _ => None,
    }
}

/// Switches of the tools of known agents that say nothing while they are off.
const UNSET: &[&str] = &["replace_all", "replaceAll", "allow_multiple", "run_in_background", "is_background"];

/// The values of the raw input that are not shown elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnlistedInput {
    /// Names and values, in the order of the input.
    values: Vec<(String, String)>,
    /// Number of values not listed; `None`: too many to check.
    more: Option<usize>,
}

impl UnlistedInput {
    /// Compares the raw input with what the dialog of the call shows.
    pub fn of(tool: &ToolCall, known: &KnownChanges<'_>) -> Self {
        let Some(raw) = &tool.raw_input else { return Self { more: Some(0), ..Self::default() } };
        // Some agents write the input as JSON inside a string.
        let inner = json::text_of(raw.0.trim());
        let text = inner.as_deref().filter(|text| text.trim_start().starts_with('{'));
        let (leaves, is_whole) = json::leaves(text.unwrap_or(&raw.0), LEAVES_MAX);
        let paths = named_paths(tool).into_iter().collect();
        let content = ShownContent { tool, known, paths, changes: changes_of(tool), leaves: &leaves };
        let mut unlisted = leaves.iter().filter(|leaf| !content.shows(leaf));
        let value = |leaf: &Leaf<'_>| json::text_of(leaf.raw).unwrap_or_else(|| leaf.raw.to_owned());
        let listed = unlisted.by_ref().take(LISTED_MAX);
        let values: Vec<(String, String)> = listed.map(|leaf| (name_of(&leaf.path), value(leaf))).collect();
        let values = if values.iter().all(|(name, value)| name.is_empty() && value.trim() == "{}") {
            Vec::new()
        } else {
            values
        };
        let more = unlisted.count();
        Self { values, more: is_whole.then_some(more) }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The top-level names in one line, for where the values themselves are far below.
    pub fn names(&self) -> String {
        let mut names: Vec<&str> = self.values.iter().map(|(name, _)| name.as_str()).collect();
        names.dedup();
        let more = match self.more {
            Some(0) => String::new(),
            Some(more) => format!(" +{more}"),
            None => " and more".to_owned(),
        };
        names.join(", ") + &more
    }

    /// `name: value`, one or more lines each.
    pub fn lines(&self, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
        let style = |role: Role| render.theme.style(role);
        let mut out = Vec::new();
        for (name, value) in &self.values {
            let label = if name.is_empty() { "input: ".to_owned() } else { format!("{name}: ") };
            let mut lines = text_lines(value, Role::Text, VALUE_BYTES, render, cols.saturating_sub(2).max(8));
            if let [line] = lines.as_mut_slice() {
                line.spans.insert(0, Span::styled(label, style(Role::TextDim)));
                out.extend(wrap_whole(line, cols));
                continue;
            }
            out.extend(hard_wrap(&Line::styled(label, style(Role::TextDim)), cols));
            let hidden = lines.len().saturating_sub(VALUE_LINES);
            lines.truncate(VALUE_LINES);
            for mut line in lines {
                line.spans.insert(0, Span::raw("  "));
                out.push(line);
            }
            if hidden > 0 {
                let more = format!("  {} {hidden} more lines", render.glyphs.fold);
                out.push(Line::styled(more, style(Role::TextDim)));
            }
        }
        let more = match self.more {
            Some(0) => return out,
            Some(more) => format!("{} {more} more values", render.glyphs.fold),
            None => format!("{} more values", render.glyphs.fold),
        };
        out.push(Line::styled(more, style(Role::TextDim)));
        out
    }
}

/// Text of an agent for review: plain, with hidden characters marked, and shortened to both ends if long.
pub(super) fn text_lines(
    text: &str,
    role: Role,
    max_bytes: usize,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let dim = render.theme.style(Role::TextDim);
    let mut out = Vec::new();
    let add = |part: &str, out: &mut Vec<Line<'static>>| {
        for shown in reveal_lines(part) {
            match shown {
                Shown::Line(line) => {
                    out.extend(wrap_whole(&Line::styled(line, render.theme.style(role)), cols));
                }
                Shown::BlankLines(count) => {
                    out.push(Line::styled(format!("{} {count} blank lines", render.glyphs.fold), dim));
                }
            }
        }
    };
    let (head, rest) = clip(text, max_bytes);
    add(head, &mut out);
    if let Some((left_out, tail)) = rest {
        let note = format!("{} {} omitted", render.glyphs.fold, byte_size(left_out as u64));
        out.push(Line::styled(note, dim));
        add(tail, &mut out);
    }
    out
}

/// `env.NODE_OPTIONS`, `edits[1].path`.
fn name_of(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                let (head, rest) = clip(key, 200);
                out.push_str(&reveal_line(head));
                if let Some((_, tail)) = rest {
                    out.push('…');
                    out.push_str(&reveal_line(tail));
                }
            }
            Step::Index(index) => {
                let _ = write!(out, "[{index}]");
            }
        }
    }
    out
}

/// The content of the dialog of a call apart from its raw input.
struct ShownContent<'t, 'k> {
    tool: &'t ToolCall,
    known: &'t KnownChanges<'k>,
    paths: HashSet<&'t Path>,
    changes: Vec<&'t FileDiff>,
    leaves: &'t [Leaf<'t>],
}

impl ShownContent<'_, '_> {
    fn shows(&self, leaf: &Leaf<'_>) -> bool {
        let input = &self.tool.input;
        let key = leaf.path.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        });
        // Parents may only be lists of changes or named files; any other name is shown.
        let known = |step: &Step| match step {
            Step::Index(_) => true,
            Step::Key(key) => {
                ["edits", "replacements", "changes"].contains(&key.as_str())
                    || self.paths.contains(Path::new(key))
            }
        };
        if !leaf.path.split_last().is_none_or(|(_, parents)| parents.iter().all(known)) {
            return false;
        }
        let Some(key) = key else {
            return json::text_of(leaf.raw).is_some_and(|text| {
                input.command.as_deref() == Some(text.as_str()) || self.shows_patch(&text)
            });
        };
        if leaf.raw == "false" && UNSET.contains(&key) {
            return true;
        }
        let is_top = leaf.path.len() == 1;
        if let Some(list) = json::texts_of(leaf.raw) {
            return is_top && self.shows_command_list(key, &list);
        }
        let Some(text) = json::text_of(leaf.raw) else { return false };
        let is = |keys: &[&str]| keys.contains(&key);
        let has_command = input.command.is_some();
        is_top && is(COMMAND) && (input.command.as_deref() == Some(&text) || self.shows_arguments().is_some())
            || is_top && is(CWD) && has_command && input.cwd.as_deref() == Some(Path::new(&text))
            || is_top && self.is_plan(&text)
            || is_top && is(DESCRIPTION) && input.description.as_deref() == Some(&text)
            || (is(QUERY) || is(URL)) && is_top && named_text(self.tool) == Some(&text)
            || is(PATH) && self.paths.contains(Path::new(&text))
            || (is(PATCH) || is(COMMAND) || is(&["diff", "unified_diff"])) && self.shows_patch(&text)
            || is(OLD) && (self.has_text(&text, false) || self.shows_edit(leaf, &text, false))
            || (is(NEW) || is(WHOLE)) && (self.has_text(&text, true) || self.shows_edit(leaf, &text, true))
            || is(&["new_content", "content"]) && self.has_text(&text, true)
            || is(&["old_content", "content"]) && self.has_text(&text, false)
    }

    /// Whether a text is a plan to approve that the dialog shows as content of the call.
    fn is_plan(&self, text: &str) -> bool {
        let text = text.trim();
        let is_it = |content: &ToolContent| matches!(content, ToolContent::Block(ContentBlock::Text(shown)) if shown.trim() == text);
        self.tool.kind == ToolKind::SwitchMode && !text.is_empty() && self.tool.content.iter().any(is_it)
    }

    /// `["bash", "-lc", "make"]` equals `make` if the shell is one of the system's; other lists are shown unchanged.
    fn shows_command_list(&self, key: &str, parts: &[String]) -> bool {
        let Some(command) = self.tool.input.command.as_deref() else { return false };
        if key == "args" && self.shows_arguments().is_some() {
            return true;
        }
        if !COMMAND.contains(&key) {
            return false;
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if let [shell, "-c" | "-lc" | "-ic", line] = parts.as_slice() {
            let name = ["/bin/", "/usr/bin/"].iter().find_map(|folder| shell.strip_prefix(folder));
            return SHELLS.contains(&name.unwrap_or(shell)) && *line == command;
        }
        shell_words::join(parts) == command
    }

    /// Whether the command is one word followed by its arguments, all of them strings.
    fn shows_arguments(&self) -> Option<()> {
        let top = |keys: &[&str]| {
            self.leaves
                .iter()
                .find(|leaf| matches!(leaf.path.as_slice(), [Step::Key(key)] if keys.contains(&key.as_str())))
        };
        let program = json::text_of(top(COMMAND)?.raw)?;
        let args = json::texts_of(top(&["args"])?.raw)?;
        let whole = shell_words::join(std::iter::once(&program).chain(&args));
        (self.tool.input.command.as_ref() == Some(&whole)).then_some(())
    }

    fn has_text(&self, text: &str, is_new: bool) -> bool {
        self.changes.iter().any(|change| match &change.change {
            DiffChange::Texts { old, new } => {
                (if is_new { Some(new) } else { old.as_ref() }).is_some_and(|known| **known == *text)
            }
            DiffChange::Patch(_) => false,
        })
    }

    fn shows_patch(&self, text: &str) -> bool {
        self.known.repeats(text)
    }

    /// Whether a change of a whole file equals the edit of its old text that replaces or inserts this text.
    fn shows_edit(&self, leaf: &Leaf<'_>, text: &str, is_new: bool) -> bool {
        let Some((_, parent)) = leaf.path.split_last() else { return false };
        let beside = |keys: &[&str]| {
            let found = self.leaves.iter().find(|other| match other.path.split_last() {
                Some((Step::Key(key), of)) => of == parent && keys.contains(&key.as_str()),
                _ => false,
            });
            found.and_then(|leaf| json::text_of(leaf.raw))
        };
        let (Some(from), Some(to)) = (beside(OLD), beside(NEW)) else { return false };
        !from.is_empty()
            && text == if is_new { &to } else { &from }
            && self.changes.iter().take(EDITS_MAX).any(|change| match &change.change {
                DiffChange::Texts { old: Some(old), new } if old.len() <= EDITED_BYTES => {
                    is_edit(old, (&from, &to), new)
                }
                _ => false,
            })
    }
}

/// Whether replacing the first, or each, occurrence of `from` by `to` gives `new`. The lengths are compared first:
/// replacing a few bytes by many could create any amount of text.
fn is_edit(old: &str, (from, to): (&str, &str), new: &str) -> bool {
    let count = old.matches(from).count();
    let is_possible = |count: usize| {
        count.checked_mul(to.len()).is_some_and(|more| old.len() + more == new.len() + count * from.len())
    };
    (is_possible(1) && old.replacen(from, to, 1) == new)
        || (is_possible(count) && old.replace(from, to) == new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_recognised_without_building_a_huge_text() {
        assert!(is_edit("a b a", ("a", "cc"), "cc b a") && is_edit("a b a", ("a", "cc"), "cc b cc"));
        assert!(!is_edit("a b a", ("a", "cc"), "a b cc") && !is_edit("a b", ("x", "y"), "a c"));
        let megabyte = "a".repeat(1 << 20);
        assert!(!is_edit(&megabyte, ("a", &megabyte), "b"), "this would be a terabyte");
    }
}
