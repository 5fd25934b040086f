//! The end of a turn in one line: its duration, the changed files and its cost.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::core::{Item, ItemBody, ToolCall, TurnSummary};
use crate::model::ToolStatus;
use crate::ui::diff::cache::{self, Placed, Shown};
use crate::ui::diff::counts_of;
use crate::ui::render_context::{RenderContext, cost_text, duration};

use super::layout::Context;
use super::{changes_of, placed};

/// Number of items of a turn that are searched for changes; the files of longer turns are not counted.
const ITEMS_MAX: usize = 2_000;

/// Number of changes that are compared immediately.
const QUICK_CHANGES: usize = 16;

/// What is known of a turn that ended.
#[derive(Debug, Default)]
pub(super) struct TurnFacts {
    took: Option<Duration>,
    files: usize,
    added: usize,
    removed: usize,
    cost: String,
    /// Whether the changes are still being compared.
    pub waits: bool,
}

impl TurnFacts {
    pub fn of(item: &Item, end: &TurnSummary, context: &Context<'_>) -> Self {
        let cost = end.cost.as_ref().filter(|cost| cost.amount >= 0.005).map(cost_text).unwrap_or_default();
        let mut facts = Self { took: end.took, cost, ..Self::default() };
        let calls = calls_of_turn(item, context).unwrap_or_default();
        let changes: Vec<Placed<'_>> =
            calls.iter().flat_map(|call| placed(call, &changes_of(call))).collect();
        if changes.is_empty() {
            return facts;
        }
        let paths: BTreeSet<&Path> = changes.iter().map(|(change, _)| change.path.as_path()).collect();
        facts.files = paths.len();
        let shown = Shown::default();
        let diffs = if changes.len() <= QUICK_CHANGES {
            cache::diffs(&changes, &shown)
        } else {
            cache::diffs_later(&changes, &shown)
        };
        facts.waits = diffs.is_none();
        (facts.added, facts.removed) = diffs.map(|diffs| counts_of(&diffs)).unwrap_or_default();
        facts
    }

    /// `14 s · 3 files +22 −4 · $0.05`; `None` if nothing is worth showing. The time of a turn below one second is shown
    /// only with `is_bad_end`.
    pub fn line(&self, render: &RenderContext<'_>, is_bad_end: bool) -> Option<String> {
        let is_long = |took: &Duration| took.as_secs() > 0;
        let has_more = is_bad_end || self.files > 0 || !self.cost.is_empty();
        let took = self.took.filter(|took| is_long(took) || (has_more && !took.is_zero())).map(duration);
        let parts: Vec<String> = took.into_iter().chain(self.parts(render)).collect();
        (!parts.is_empty()).then(|| parts.join(&separator(render)))
    }

    /// The facts after a duration: ` · 3 files +22 −4 · $0.05`.
    pub fn after_time(&self, render: &RenderContext<'_>) -> String {
        self.parts(render).map(|part| separator(render) + &part).collect()
    }

    fn parts(&self, render: &RenderContext<'_>) -> impl Iterator<Item = String> {
        let mut files = match self.files {
            0 => String::new(),
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        if self.added > 0 {
            files = format!("{files} +{}", self.added);
        }
        if self.removed > 0 {
            files = format!("{files} {}{}", render.glyphs.minus, self.removed);
        }
        [files, self.cost.clone()].into_iter().filter(|part| !part.is_empty())
    }
}

fn separator(render: &RenderContext<'_>) -> String {
    format!(" {} ", render.glyphs.dot)
}

/// The visible calls of the item's turn that succeeded; `None` if the start of the turn is not loaded.
fn calls_of_turn<'a>(item: &Item, context: &Context<'a>) -> Option<Vec<&'a ToolCall>> {
    let transcript = &context.session.transcript;
    let end = transcript.index_of(item.id)? + 1;
    let items = transcript.items().get(..end)?;
    let before = items.iter().rposition(|other| other.turn != item.turn);
    let start = before.map_or(0, |at| at + 1);
    if (before.is_none() && context.session.loading.is_some()) || end - start > ITEMS_MAX {
        return None;
    }
    let calls = items.get(start..end)?.iter().filter(|item| !item.is_hidden());
    let calls = calls.filter_map(|item| match &item.body {
        ItemBody::Tool(call) if call.status == ToolStatus::Completed => Some(call.as_ref()),
        _ => None,
    });
    Some(calls.collect())
}
