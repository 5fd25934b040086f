//! The options of a permission request: the agent's labels, with the kind where the label does not contain
//! it. `core` handles the selection.
//!
//! Invariants: the row that rejects is always one of the pinned rows.

use std::ops::Range;

use crate::ui::text::Line;

use super::dialog_frame::{Row, choice, choices_in_a_row};
use crate::config::keymap::Context;
use crate::model::{Action, PermissionKind, PermissionRequest};
use crate::ui::frame_context::FrameContext;
use crate::ui::text;
use crate::ui::theme::Role;

/// Longer names are truncated.
const NAME_BYTES: usize = 120;
/// If there are more options, only those around the selected one are drawn.
const DRAWN_MAX: usize = 24;

/// More options are listed in a column.
const MAX_IN_A_ROW: usize = 4;

const ALLOWS: [&str; 18] = [
    "allow", "allowed", "yes", "approve", "accept", "ok", "okay", "permit", "run", "proceed", "continue",
    "grant", "apply", "confirm", "enable", "trust", "start", "approved",
];
const REJECTS: [&str; 15] = [
    "reject", "no", "deny", "decline", "refuse", "cancel", "abort", "never", "stop", "disallow", "skip",
    "not", "don", "dont", "disable",
];
const ALWAYS: [&str; 12] = [
    "always",
    "remember",
    "session",
    "forever",
    "again",
    "never",
    "all",
    "auto",
    "automatically",
    "future",
    "every",
    "any",
];

/// The label of an option, with its kind if the name does not contain it.
pub fn label(request: &PermissionRequest, position: usize) -> String {
    let Some(option) = request.options.get(position) else { return String::new() };
    let name = name_of(&option.name);
    let is_alone = request.options.iter().filter(|other| name_of(&other.name) == name).take(2).count() == 1;
    let mut notes = Vec::new();
    if !is_alone || !says(&name, option.kind) {
        notes.push(match option.kind {
            PermissionKind::AllowOnce => "allow once",
            PermissionKind::AllowAlways => "allow always",
            PermissionKind::RejectOnce => "reject once",
            PermissionKind::RejectAlways => "reject always",
        });
    }
    if request.is_ambiguous(position) {
        notes.push("cannot be sent: duplicate id");
    }
    let name = if name.is_empty() { "unnamed".to_owned() } else { name };
    if notes.is_empty() { name } else { format!("{name} ({})", notes.join("; ")) }
}

fn name_of(name: &str) -> String {
    let (head, rest) = text::clip(name, NAME_BYTES);
    let head = text::reveal_one_line(head);
    match rest {
        Some((_, tail)) => format!("{head} … {}", text::reveal_one_line(tail)),
        None => head,
    }
}

/// Whether the words of a name unambiguously mean this kind.
fn says(name: &str, kind: PermissionKind) -> bool {
    let lower = name.to_lowercase().replace("don't", "dont").replace("don’t", "dont");
    let says_again = lower.contains("ask again") || lower.contains("stop asking");
    let lower =
        lower.replace("dont ask again", "").replace("do not ask again", "").replace("stop asking", "");
    let has =
        |names: &[&str]| lower.split(|ch: char| !ch.is_alphanumeric()).any(|word| names.contains(&word));
    let (allows, rejects, always) = (has(&ALLOWS), has(&REJECTS), says_again || has(&ALWAYS));
    match kind {
        PermissionKind::AllowOnce => allows && !rejects && !always,
        PermissionKind::AllowAlways => allows && !rejects && always,
        PermissionKind::RejectOnce => rejects && !allows && !always,
        PermissionKind::RejectAlways => rejects && !allows && always,
    }
}

/// The options as rows of the foot, and the range that must remain visible.
pub(super) fn rows(
    ctx: &FrameContext,
    request: &PermissionRequest,
    selected: Option<usize>,
    cols: u16,
) -> (Vec<Row>, Range<usize>) {
    let count = request.options.len();
    let refusal = request.refusal();
    if refusal.is_some() && count <= MAX_IN_A_ROW {
        let labels: Vec<String> = (0..count).map(|position| label(request, position)).collect();
        if let Some(row) = choices_in_a_row(ctx, &labels, selected, cols) {
            return (vec![row], 0..1);
        }
    }
    let marked = selected.unwrap_or(0).min(count.saturating_sub(1));
    let first = marked.saturating_sub(DRAWN_MAX / 2).min(count.saturating_sub(DRAWN_MAX));
    let drawn = first..(first + DRAWN_MAX).min(count);
    let mut out = Vec::new();
    let mut pinned = 0..0;
    let mut add = |position: usize, out: &mut Vec<Row>| {
        let begin = out.len();
        out.extend(choice(ctx, position, &label(request, position), selected == Some(position), cols));
        if refusal == Some(position) {
            pinned = begin..out.len();
        }
    };
    let fold = |count: usize| -> Row {
        Line::from(ctx.span(Role::TextDim, format!("{} {count} more", ctx.render.glyphs.fold))).into()
    };
    if let Some(position) = refusal.filter(|position| *position < drawn.start) {
        add(position, &mut out);
    }
    let before = drawn.start - usize::from(refusal.is_some_and(|position| position < drawn.start));
    if before > 0 {
        out.push(fold(before));
    }
    for position in drawn.clone() {
        add(position, &mut out);
    }
    let after = count - drawn.end - usize::from(refusal.is_some_and(|position| position >= drawn.end));
    if after > 0 {
        out.push(fold(after));
    }
    if let Some(position) = refusal.filter(|position| *position >= drawn.end) {
        add(position, &mut out);
    }
    if refusal.is_none() {
        let begin = out.len();
        let key = ctx.key(Context::Permission, Action::Escape).unwrap_or_default();
        let line = vec![ctx.span(Role::Accent, format!("{key:<3}")), ctx.span(Role::Dialog, " Reject")];
        out.push(Line::from(line).into());
        pinned = begin..out.len();
    }
    (out, pinned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PermissionOption, ToolCallPatch};

    fn labels(options: &[(&str, &str, PermissionKind)]) -> Vec<String> {
        let option = |(id, name, kind): &(&str, &str, PermissionKind)| PermissionOption {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            kind: *kind,
        };
        let options: Vec<PermissionOption> = options.iter().map(option).collect();
        let request = PermissionRequest { session: None, tool: ToolCallPatch::new("t".into()), options };
        (0..request.options.len()).map(|position| label(&request, position)).collect()
    }

    #[test]
    fn the_kind_is_shown_if_the_name_does_not_contain_it() {
        use PermissionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        for (name, kind, shown) in [
            ("Allow once", AllowOnce, "Allow once"),
            ("Yes, and don't ask again for this file", AllowAlways, "Yes, and don't ask again for this file"),
            ("No, and tell it what to do differently", RejectOnce, "No, and tell it what to do differently"),
            ("Never", RejectAlways, "Never"),
            ("No", AllowOnce, "No (allow once)"),
            ("No, never", AllowAlways, "No, never (allow always)"),
            ("Yes", AllowAlways, "Yes (allow always)"),
            ("Go", AllowOnce, "Go (allow once)"),
            ("Ja", AllowOnce, "Ja (allow once)"),
            ("", RejectOnce, "unnamed (reject once)"),
            ("No\u{200b}\n", RejectOnce, "No⟨U+200B⟩"),
        ] {
            assert_eq!(labels(&[("a", name, kind)]), [shown]);
        }
        assert_eq!(
            labels(&[("a", "Yes", AllowOnce), ("b", "Yes", AllowOnce)]),
            ["Yes (allow once)", "Yes (allow once)"]
        );
        let shared = labels(&[("b", "Yes", AllowOnce), ("b", "No", RejectOnce)]);
        assert!(shared.iter().all(|label| label.contains("cannot be sent")), "{shared:?}");
        let long = labels(&[("a", &"Yes, echo harmless ".repeat(300), AllowAlways)]);
        assert!(long.iter().all(|label| label.len() < 200 && label.ends_with("(allow always)")), "{long:?}");
    }
}
