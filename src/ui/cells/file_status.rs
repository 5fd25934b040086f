//! Lines about a changed file: its name, and whether it is new, deleted, moved, binary or has another mode.

use std::path::Path;

use crate::ui::text::{Line, Span};

use crate::model::byte_size;
use crate::ui::diff::{Diff, FileStatus};
use crate::ui::render_context::RenderContext;
use crate::ui::text::{truncate, truncate_path, width, wrap_whole};
use crate::ui::theme::Role;

/// Formats `  +12 −3`, the numbers of added and removed lines; 0 is omitted.
pub(crate) fn counts_line(counts: (usize, usize), render: &RenderContext<'_>) -> Line<'static> {
    let mut line = Line::default();
    if counts.0 > 0 {
        line.push_span(Span::styled(format!("  +{}", counts.0), render.theme.style(Role::Success)));
    }
    if counts.1 > 0 {
        let lead = if counts.0 > 0 { " " } else { "  " };
        let text = format!("{lead}{}{}", render.glyphs.minus, counts.1);
        line.push_span(Span::styled(text, render.theme.style(Role::Error)));
    }
    line
}

/// Whether a change needs a line with the file name even if it is the only one.
pub(super) fn needs_head(diff: &Diff) -> bool {
    !diff.is_text || diff.status != FileStatus::Changed || diff.moved_from.is_some() || diff.modes.is_some()
}

pub(crate) fn diff_head(diff: &Diff, render: &RenderContext<'_>, cols: u16) -> Line<'static> {
    let mut tail = status(diff, |path| render.path(path)).join("  ");
    if !tail.is_empty() {
        tail.insert_str(0, "  ");
    }
    let room = usize::from(cols).saturating_sub(width(&tail)).max(8);
    let text = format!("{}{tail}", truncate_path(&render.path(&diff.path), room));
    Line::styled(truncate(&text, usize::from(cols)), render.theme.style(Role::DiffMeta))
}

/// The same for review: the whole path, in as many lines as it needs.
pub(super) fn whole_head(diff: &Diff, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let shown = |path: &Path| render.exact_path(path);
    let parts: Vec<String> = std::iter::once(shown(&diff.path)).chain(status(diff, shown)).collect();
    wrap_whole(&Line::styled(parts.join("  "), render.theme.style(Role::DiffMeta)), cols)
}

/// A line that describes the change of the file as a whole.
pub(super) fn status_line(diff: &Diff, render: &RenderContext<'_>, cols: u16) -> Line<'static> {
    let text = status(diff, |path| render.path(path)).join("  ");
    Line::styled(truncate(&text, usize::from(cols)), render.theme.style(Role::DiffMeta))
}

fn status(diff: &Diff, show_path: impl Fn(&Path) -> String) -> Vec<String> {
    let status = match diff.status {
        FileStatus::New => Some("new file"),
        FileStatus::Deleted => Some("deleted"),
        FileStatus::Binary => Some("binary file"),
        FileStatus::Changed => None,
    };
    let moved = diff.moved_from.as_ref().map(|from| format!("moved from {}", show_path(from)));
    let modes = diff.modes.as_ref().map(|(old, new)| match (old.as_str(), new.as_str()) {
        ("100644", "100755") => "made executable".to_owned(),
        ("100755", "100644") => "no longer executable".to_owned(),
        _ => format!("mode {old} to {new}"),
    });
    let noise = (!diff.is_text).then(|| format!("binary, {}", byte_size(diff.len_bytes())));
    status.map(str::to_owned).into_iter().chain(moved).chain(modes).chain(noise).collect()
}
