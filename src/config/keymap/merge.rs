//! Merges `[keys.CONTEXT]` tables into a keymap, after the preset.
//!
//! A binding is either `"key" = "action"`, which rebinds the key, or `action = ["key", …]`, which replaces
//! the keys of the action and must not use a key that is bound to another action. A key cannot be bound and also
//! start a sequence. Conflicts are reported with both sides.

use std::collections::HashMap;

use toml::de::{DeTable, DeValue};

use super::actions::{all, by_name, name_of};
use super::chord::Chord;
use super::sequence::Sequence;
use super::{Binding, Context, EDITS, EditBinding, Keymap, Lookup, PRESETS};
use crate::config::Origin;
use crate::config::nearest::advice;
use crate::config::read::{Reader, Value};
use crate::model::Action;

/// The bindings of the file so far, by context, each with its line.
type Written = HashMap<Context, HashMap<Sequence, (Option<Action>, usize)>>;

/// A binding in the configuration file.
struct WrittenBinding {
    context: Context,
    keys: Sequence,
    action: Option<Action>,
    /// Whether it has the form `action = ["key", …]`.
    is_list: bool,
    start: usize,
    span: std::ops::Range<usize>,
}

impl Keymap {
    /// Merges the tables under `[keys]`. `origin` returns the origin for a line number.
    pub(in crate::config) fn merge(
        &mut self,
        reader: &mut Reader<'_>,
        keys: &DeTable<'_>,
        origin: impl Fn(usize) -> Origin,
    ) {
        let mut locations: Vec<&str> = Context::ALL.iter().map(|context| context.name()).collect();
        locations.extend(["edit", "preset"]);
        for (key, _) in keys.iter().filter(|(_, value)| !matches!(value.get_ref(), DeValue::Table(_))) {
            let name = key.get_ref().as_ref();
            if !locations.contains(&name) {
                let text = format!("`{name}` is not in a key section");
                reader.problem(&key.span(), text, "move it to [keys.main] or another section");
                locations.push(name);
            }
        }
        reader.unknown_keys(keys, "[keys]", &locations);
        if let Some(value) = keys.get("preset")
            && let Some(name) = reader.string("keys.preset", value)
        {
            self.apply_preset(reader, &name, &value.span());
        }
        let mut entries = Vec::new();
        for context in Context::ALL {
            let Some(value) = keys.get(context.name()) else { continue };
            if let Some(table) = reader.table(&format!("keys.{}", context.name()), value) {
                self.read_context(reader, *context, table, &mut entries);
            }
        }
        // Unbound keys are applied first, wherever they are in the file; the rest is applied in the order of
        // the file.
        entries.sort_by_key(|entry| (entry.action.is_some(), entry.start));
        let mut written = Written::new();
        for entry in entries {
            self.grant(reader, &entry, &mut written, &origin);
        }
        if let Some(table) = keys.get("edit").and_then(|value| reader.table("keys.edit", value)) {
            self.read_edits(reader, table, &origin);
        }
        self.label();
    }

    fn apply_preset(&mut self, reader: &mut Reader<'_>, name: &str, span: &std::ops::Range<usize>) {
        if let Some((known, text)) = PRESETS.iter().find(|(known, _)| *known == name) {
            self.preset = known;
            self.merge_embedded(text);
            return;
        }
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        let fix = advice(name, names.iter().copied(), &format!("use one of {}", names.join(", ")));
        reader.problem(span, format!("unknown preset `{name}`"), fix);
    }

    fn read_context(
        &mut self,
        reader: &mut Reader<'_>,
        context: Context,
        table: &DeTable<'_>,
        entries: &mut Vec<WrittenBinding>,
    ) {
        for (left, value) in table {
            let name = left.get_ref().as_ref();
            let start = left.span().start;
            match value.get_ref() {
                DeValue::String(action) => {
                    let Some(keys) = parse_keys(reader, name, &left.span(), Sequence::parse) else {
                        continue;
                    };
                    let action = if action.as_ref() == "none" {
                        None
                    } else if let Some(action) = read_action(reader, action, value) {
                        Some(action)
                    } else {
                        continue;
                    };
                    entries.push(WrittenBinding {
                        context,
                        keys,
                        action,
                        is_list: false,
                        start,
                        span: left.span(),
                    });
                }
                DeValue::Array(items) => {
                    let Some(action) = read_action_name(reader, name, &left.span()) else { continue };
                    self.bindings.entry(context).or_default().retain(|binding| {
                        binding.action != Some(action) || binding.origin != Origin::Default
                    });
                    for item in items {
                        let Some(key) = item.get_ref().as_str() else {
                            reader.problem(
                                &item.span(),
                                format!("the keys of `{name}` must be strings"),
                                format!("use {name} = [\"ctrl+x\"]"),
                            );
                            continue;
                        };
                        if let Some(keys) = parse_keys(reader, key, &item.span(), Sequence::parse) {
                            let (start, span) = (item.span().start, item.span());
                            entries.push(WrittenBinding {
                                context,
                                keys,
                                action: Some(action),
                                is_list: true,
                                start,
                                span,
                            });
                        }
                    }
                }
                _ => reader.problem(
                    &value.span(),
                    format!("invalid binding for `{name}`"),
                    "use \"ctrl+x\" = \"open-palette\", or open-palette = [\"ctrl+x\"]",
                ),
            }
        }
    }

    fn grant(
        &mut self,
        reader: &mut Reader<'_>,
        entry: &WrittenBinding,
        written: &mut Written,
        origin: &impl Fn(usize) -> Origin,
    ) {
        let line = reader.line(&entry.span);
        if let Some((text, fix)) = self.objection(entry, line, written) {
            reader.problem(&entry.span, text, fix);
            return;
        }
        let (context, keys) = (entry.context, &entry.keys);
        written.entry(context).or_default().insert(keys.clone(), (entry.action, line));
        // A sequence replaces the unbound keys that it starts with, and a key the sequences that start with it.
        let bindings = self.bindings.entry(context).or_default();
        bindings.retain(|old| !keys.continues(old.keys.chords()) && !old.keys.continues(keys.chords()));
        let binding = Binding { keys: keys.clone(), action: entry.action, origin: origin(line) };
        match bindings.iter_mut().find(|old| old.keys == *keys) {
            Some(old) => *old = binding,
            None => bindings.push(binding),
        }
    }

    /// Why a binding is invalid, and the fix.
    fn objection(&self, entry: &WrittenBinding, line: usize, written: &Written) -> Option<(String, String)> {
        let (context, keys) = (entry.context, &entry.keys);
        let (key, location) = (keys.syntax(), context.name());
        let action = entry.action?;
        let new = name_of(action).unwrap_or_default();
        let is_kept_for_text =
            if keys.has_prefix() { !context.allows_text_prefix() } else { context.is_for_typing() };
        if keys.starts_with_text() && is_kept_for_text {
            return Some((
                format!("`{key}` types text in [keys.{location}] and cannot be bound to `{new}`"),
                format!("add a modifier, for example alt+{key}"),
            ));
        }
        if keys.has_prefix() && context == Context::Selection {
            let text = format!("`{key}` is a sequence, which [keys.{location}] does not support");
            return Some((text, "use a single key".to_owned()));
        }
        let in_file = written.get(&context);
        if let Some((Some(old), first)) = in_file.and_then(|bindings| bindings.get(keys))
            && *old != action
        {
            let old = name_of(*old).unwrap_or_default();
            return Some((
                format!(
                    "`{key}` in [keys.{location}] is bound to both `{old}` (line {first}) and `{new}` (line {line})"
                ),
                format!("remove one of them; `{old}` is used"),
            ));
        }
        for (other, (_, first)) in in_file.into_iter().flatten().filter(|(_, (action, _))| action.is_some()) {
            let (short, long) = match () {
                () if other.continues(keys.chords()) => (keys, other),
                () if keys.continues(other.chords()) => (other, keys),
                () => continue,
            };
            return Some((
                format!(
                    "`{}` in [keys.{location}] is bound and also starts `{}` (lines {first} and {line})",
                    short.syntax(),
                    long.syntax()
                ),
                format!("remove one of them; `{}` is used", other.syntax()),
            ));
        }
        let mut old = self.of(context).iter();
        let shorter = old.find(|old| old.action.is_some() && keys.continues(old.keys.chords()));
        if let Some(shorter) = shorter {
            let (short, old) = (shorter.keys.syntax(), shorter.action.and_then(name_of).unwrap_or_default());
            return Some((
                format!("`{short}` in [keys.{location}] is bound to `{old}` and cannot start `{key}`"),
                format!("use another key, or set \"{short}\" = \"none\" to unbind it"),
            ));
        }
        let is_unbound_in_file = in_file.is_some_and(|bindings| bindings.contains_key(keys));
        // Keys that edit the prompt have the lowest precedence, so that any key can be listed.
        let locations = context
            .chain()
            .iter()
            .filter(|location| **location != Context::Composer || context == **location);
        let mut found = locations.filter_map(|location| self.resolve_in(*location, keys.chords()));
        match found.next() {
            Some(Lookup::Action(taken)) if entry.is_list && !is_unbound_in_file && taken != action => {
                let old = name_of(taken).unwrap_or_default();
                Some((
                    format!(
                        "`{key}` in [keys.{location}] is already bound to `{old}` and cannot be bound to `{new}`"
                    ),
                    format!("use another key, or set \"{key}\" = \"{new}\" to rebind it"),
                ))
            }
            _ => None,
        }
    }

    fn read_edits(
        &mut self,
        reader: &mut Reader<'_>,
        table: &DeTable<'_>,
        origin: &impl Fn(usize) -> Origin,
    ) {
        let mut rows: Vec<_> = table.iter().collect();
        rows.sort_by_key(|(left, _)| left.span().start);
        let mut written: HashMap<Chord, usize> = HashMap::new();
        for (left, value) in rows {
            let Some(chord) = parse_keys(reader, left.get_ref(), &left.span(), Chord::parse) else {
                continue;
            };
            let line = reader.line(&left.span());
            let name = value.get_ref().as_str().unwrap_or_default();
            if let Some(first) = written.insert(chord, line) {
                let key = chord.syntax();
                reader.problem(
                    &left.span(),
                    format!("`{key}` in [keys.edit] is bound on line {first} and on line {line}"),
                    "remove one of them; the first is used",
                );
                continue;
            }
            let edit = EDITS.iter().find(|(known, _)| *known == name).map(|(_, edit)| edit.clone());
            if edit.is_none() && name != "none" {
                let names: Vec<&str> = EDITS.iter().map(|(name, _)| *name).collect();
                let otherwise = format!("use one of {}", names.join(", "));
                let fix = advice(name, names.iter().copied(), &otherwise);
                reader.problem(&value.span(), format!("unknown edit `{name}`"), fix);
                continue;
            }
            self.edits.retain(|old| old.chord != chord);
            if let Some(edit) = edit {
                self.edits.push(EditBinding { chord, edit, origin: origin(line) });
            }
        }
    }
}

fn parse_keys<T>(
    reader: &mut Reader<'_>,
    text: &str,
    span: &std::ops::Range<usize>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    match parse(text) {
        Ok(keys) => Some(keys),
        Err(why) => {
            // The error ends with the fix.
            let (what, fix) = why.split_once("; ").unwrap_or((why.as_str(), "use for example \"ctrl+x\""));
            reader.problem(span, format!("invalid key `{text}`: {what}"), fix);
            None
        }
    }
}

fn read_action(reader: &mut Reader<'_>, name: &str, value: &Value<'_>) -> Option<Action> {
    read_action_name(reader, name, &value.span())
}

fn read_action_name(reader: &mut Reader<'_>, name: &str, span: &std::ops::Range<usize>) -> Option<Action> {
    let found = by_name(name);
    if found.is_none() {
        let fix =
            advice(name, all().map(|info| info.name), "run `parlor config` to list all actions and keys");
        reader.problem(span, format!("unknown action `{name}`"), fix);
    }
    found
}
