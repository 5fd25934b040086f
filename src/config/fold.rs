//! Parses `[fold]`: how much of a tool call is shown, by kind, result and size.

use toml::de::DeTable;

use super::nearest::advice;
use super::read::Reader;
use crate::model::{Fold, FoldRules};

/// Keys other than the kinds.
const OTHER_KEYS: [&str; 5] = ["changes", "failed", "open_up_to_lines", "closed_above_lines", "groups"];

/// Fold settings with their names.
pub(super) const FOLDS: [(&str, Fold); 3] =
    [("closed", Fold::Closed), ("preview", Fold::Preview), ("open", Fold::Open)];

/// Parses the table. Invalid values are reported and replaced by their defaults.
pub(super) fn read(reader: &mut Reader<'_>, table: &DeTable<'_>) -> FoldRules {
    let keys: Vec<&str> = FoldRules::KINDS.iter().map(|(name, _)| *name).chain(OTHER_KEYS).collect();
    reader.unknown_keys(table, "[fold]", &keys);
    let mut rules = FoldRules::default();
    for ((name, _), rule) in FoldRules::KINDS.iter().zip(&mut rules.kinds) {
        *rule = fold(reader, table, name);
    }
    rules.changes = fold(reader, table, "changes").unwrap_or(rules.changes);
    rules.failed = fold(reader, table, "failed").unwrap_or(rules.failed);
    rules.open_up_to_lines = lines(reader, table, "open_up_to_lines").unwrap_or(0);
    rules.closed_above_lines = lines(reader, table, "closed_above_lines").unwrap_or(0);
    if let Some(groups) = table.get("groups").and_then(|value| reader.boolean("fold.groups", value)) {
        rules.groups = groups;
    }
    rules
}

fn fold(reader: &mut Reader<'_>, table: &DeTable<'_>, key: &str) -> Option<Fold> {
    let name = format!("fold.{key}");
    let value = table.get(key)?;
    let word = reader.string(&name, value)?;
    let known = FOLDS.iter().find(|(known, _)| *known == word).map(|(_, fold)| *fold);
    if known.is_none() {
        let fix = advice(&word, FOLDS.iter().map(|(name, _)| *name), "use closed, preview or open");
        reader.problem(&value.span(), format!("unknown fold setting `{word}`"), fix);
    }
    known
}

fn lines(reader: &mut Reader<'_>, table: &DeTable<'_>, key: &str) -> Option<u32> {
    let name = format!("fold.{key}");
    let value = table.get(key)?;
    let number = value.get_ref().as_integer().and_then(|number| number.to_string().parse().ok());
    if number.is_some() {
        reader.taken(&name, value);
    } else {
        let text = format!("`{name}` is not a number of lines");
        reader.problem(&value.span(), text, format!("use for example {key} = 200, or 0 for no limit"));
    }
    number
}

/// The name of a fold setting.
pub(super) fn name_of(fold: Fold) -> &'static str {
    FOLDS.iter().find(|(_, known)| *known == fold).map_or("closed", |(name, _)| *name)
}
