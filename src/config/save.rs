//! Changes single values of the configuration file. Comments, order and formatting of the rest stay as they are.
//!
//! A change is read back before it is written: one that the file would have a problem with is refused.

use std::fs;
use std::io::ErrorKind;

use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike, Value};

use super::keymap::actions::by_name;
use super::keymap::sequence::Sequence;
use super::keymap::{Context, Keymap, Lookup};
use super::{Paths, Surroundings, read};
use crate::host::os::private;
use crate::model::{SettingChange, SettingValue};

/// Writes a change to the configuration file, which is created if it is missing. The error is a sentence without the name
/// of the file.
pub fn change(paths: &Paths, change: &SettingChange) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let file = &paths.config_file;
    // A link, for example into a folder of dotfiles, is followed and not replaced.
    let is_link = fs::symlink_metadata(file).is_ok_and(|facts| facts.is_symlink());
    let target = if is_link { file.canonicalize().map_err(failed)? } else { file.clone() };
    let text = match fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let text = changed(paths, "", change)?;
            return private::replace(&target, text.as_bytes()).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    let facts = fs::metadata(&target).map_err(failed)?;
    if facts.permissions().readonly() {
        return Err("the file is read-only".to_owned());
    }
    let staged = private::staged(&target, changed(paths, &text, change)?.as_bytes()).map_err(failed)?;
    // The file is the user's and keeps its mode.
    staged.as_file().set_permissions(facts.permissions()).map_err(failed)?;
    staged.persist(&target).map(drop).map_err(|refused| failed(refused.error))
}

fn changed(paths: &Paths, text: &str, change: &SettingChange) -> Result<String, String> {
    let around = Surroundings::of_process();
    let parsed = Document::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        format!("line {line}: invalid TOML: {}", error.message())
    })?;
    let (_, problems) = read(paths, text, &around);
    let new = match change {
        SettingChange::Value { name, value: None } => without_value(text, &parsed, name),
        SettingChange::Value { name, value: Some(value) } => {
            let mut document = parsed.into_mut();
            set_value(&mut document, name, value)?;
            document.to_string()
        }
        SettingChange::Keys { context, action, keys } => {
            let mut document = parsed.into_mut();
            let keymap_of = |text: &str| read(paths, text, &around).0.keymap;
            set_keys(&mut document, &keymap_of, context, action, keys.as_deref())?;
            document.to_string()
        }
    };
    let has_crlf = text.contains("\r\n");
    let new = if has_crlf { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new };
    let (_, now) = read(paths, &new, &around);
    let is_new = |problem: &&super::Problem| !problems.iter().any(|known| known.text == problem.text);
    match now.iter().find(is_new) {
        Some(problem) => Err(format!("{}; {}", problem.text, problem.fix)),
        None => Ok(new),
    }
}

fn toml_value(value: &SettingValue) -> Value {
    match value {
        SettingValue::Flag(flag) => Value::from(*flag),
        SettingValue::Number(number) => Value::from(i64::try_from(*number).unwrap_or(i64::MAX)),
        SettingValue::Text(text) => Value::from(text.as_str()),
    }
}

/// The table of a dotted section, created if it is missing.
fn section<'a>(document: &'a mut DocumentMut, name: &str) -> Result<&'a mut dyn TableLike, String> {
    let first = name.split('.').next().unwrap_or_default();
    let mut before = String::new();
    if !first.is_empty() && !document.contains_key(first) {
        // Comments at the end of the file stay before the new table.
        document.trailing().as_str().unwrap_or_default().clone_into(&mut before);
        document.set_trailing("");
        if !before.is_empty() || !document.is_empty() {
            before.push('\n');
        }
    }
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut path = String::new();
    let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
    for (depth, part) in parts.iter().enumerate() {
        path = format!("{path}{}{part}", if depth == 0 { "" } else { "." });
        if !table.contains_key(part) {
            let mut new = Table::new();
            new.set_implicit(depth + 1 < parts.len());
            if depth + 1 == parts.len() {
                let gap = if depth > 0 && before.is_empty() {
                    "\n".to_owned()
                } else {
                    std::mem::take(&mut before)
                };
                new.decor_mut().set_prefix(gap);
            }
            table.insert(part, Item::Table(new));
        }
        let item = table.get_mut(part).and_then(Item::as_table_like_mut);
        table = item.ok_or_else(|| format!("`{path}` is not a table"))?;
    }
    Ok(table)
}

fn set_value(document: &mut DocumentMut, name: &str, value: &SettingValue) -> Result<(), String> {
    let (location, key) = name.rsplit_once('.').unwrap_or(("", name));
    let table = section(document, location)?;
    let mut value = toml_value(value);
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
    Ok(())
}

/// The text without the line of a value. A comment above it stays, which is why the line is cut from the text.
fn without_value(text: &str, parsed: &Document<&str>, name: &str) -> String {
    let (location, key) = name.rsplit_once('.').unwrap_or(("", name));
    let mut table: &dyn TableLike = parsed.as_table();
    for part in location.split('.').filter(|part| !part.is_empty()) {
        let Some(next) = table.get(part).and_then(Item::as_table_like) else { return text.to_owned() };
        table = next;
    }
    let Some((known, item)) = table.get_key_value(key) else { return text.to_owned() };
    let spans = known.span().zip(item.span());
    let cut = spans.and_then(|(key, value)| {
        let start = text.get(..key.start)?.rfind('\n').map_or(0, |at| at + 1);
        let end = text.get(value.end..)?.find('\n').map_or(text.len(), |at| value.end + at + 1);
        // In an inline table, the line has other values.
        let is_alone = !text.get(start..key.start)?.contains('{');
        is_alone.then(|| Some([text.get(..start)?, text.get(end..)?].concat()))?
    });
    cut.unwrap_or_else(|| {
        let mut document = parsed.clone().into_mut();
        let table = section(&mut document, location);
        if let Ok(table) = table {
            table.remove(key);
        }
        document.to_string()
    })
}

/// Binds exactly these keys to an action in a context; `None` restores its default keys.
fn set_keys(
    document: &mut DocumentMut,
    keymap_of: &dyn Fn(&str) -> Keymap,
    context: &str,
    action: &str,
    keys: Option<&[String]>,
) -> Result<(), String> {
    let wanted = keys.unwrap_or_default().iter().map(|key| Sequence::parse(key));
    let wanted = wanted.collect::<Result<Vec<Sequence>, String>>()?;
    let known = Context::named(context).zip(by_name(action));
    let (location, bound) = known.ok_or_else(|| format!("unknown action `{action}`"))?;
    let is_there = document.get("keys").is_some_and(|tables| tables.get(context).is_some());
    if keys.is_none() && !is_there {
        return Ok(());
    }
    // The prompt has precedence over these, so that a key of it is bound there, too.
    let prompt = Context::Main.name();
    let is_after = matches!(location, Context::Global | Context::Composer);
    if is_after && let Some(table) = document.get_mut("keys").and_then(|tables| tables.get_mut(prompt)) {
        let table = table.as_table_like_mut().ok_or_else(|| format!("`keys.{prompt}` must be a table"))?;
        let here = table.iter().filter(|(_, item)| item.as_str() == Some(action));
        for name in here.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
            table.remove(&name);
        }
    }
    let defaults = Keymap::of_preset(keymap_of(&document.to_string()).preset());
    let table = section(document, &format!("keys.{context}"))?;
    let before = listed(table.get(action));
    // Removes everything that the file has about these keys and this action.
    let is_start = |keys: &Sequence| wanted.iter().any(|new| new.continues(keys.chords()));
    let clashes = |keys: &Sequence| {
        is_start(keys) || wanted.iter().any(|new| new == keys || keys.continues(new.chords()))
    };
    let mut stale = Vec::new();
    for (key, item) in table.iter_mut() {
        let name = key.get().to_owned();
        if let Some(list) = item.as_array_mut() {
            if name == action {
                stale.push(name);
            } else {
                list.retain(|key| {
                    let keys = key.as_str().and_then(|key| Sequence::parse(key).ok());
                    !keys.is_some_and(|keys| clashes(&keys))
                });
            }
        } else if let (Some(value), Ok(keys)) = (item.as_str(), Sequence::parse(&name)) {
            let is_default = || defaults.resolve(location, keys.chords()) == Lookup::Action(bound);
            let is_free_start = value == "none" && is_start(&keys);
            if value == action || clashes(&keys) && !is_free_start || value == "none" && is_default() {
                stale.push(name);
            }
        }
    }
    for name in stale {
        table.remove(&name);
    }
    // The keys of before were unbound for this action.
    let saved: Vec<Sequence> = table
        .iter()
        .flat_map(|(name, item)| match item.as_str() {
            Some("none") => Vec::new(),
            Some(_) => Sequence::parse(name).into_iter().collect(),
            None => listed(Some(item)),
        })
        .collect();
    let freed = before.iter().flat_map(|keys| (1..=keys.chords().len()).map(|count| keys.start(count)));
    for keys in freed.filter(|keys| !saved.iter().any(|saved| saved.continues(keys.chords()))) {
        if table.get(&keys.syntax()).and_then(Item::as_str) == Some("none") {
            table.remove(&keys.syntax());
        }
    }
    if keys.is_none() {
        return Ok(());
    }
    let rest = keymap_of(&document.to_string());
    let table = section(document, &format!("keys.{context}"))?;
    for keys in &wanted {
        // An unbound key can be bound in a list, and start a sequence.
        for start in (1..=keys.chords().len()).map(|count| keys.start(count)) {
            let is_taken = match rest.resolve(location, start.chords()) {
                Lookup::Action(other) => other != bound || start != *keys,
                Lookup::Prefix => start == *keys,
                Lookup::Unbound => false,
            };
            if is_taken {
                table.insert(&start.syntax(), Item::Value(Value::from("none")));
            }
        }
    }
    let keys: Array = wanted.iter().map(Sequence::syntax).collect();
    table.insert(action, Item::Value(Value::Array(keys)));
    if is_after {
        let is_taken = |keys: &&Sequence| {
            let found = rest.resolve(Context::Main, keys.chords());
            matches!(found, Lookup::Action(other) if other != bound)
        };
        let taken: Vec<&Sequence> = wanted.iter().filter(is_taken).collect();
        if !taken.is_empty() {
            let table = section(document, &format!("keys.{prompt}"))?;
            for keys in taken {
                table.insert(&keys.syntax(), Item::Value(Value::from(action)));
            }
        }
    }
    Ok(())
}

fn listed(item: Option<&Item>) -> Vec<Sequence> {
    let keys = item.and_then(Item::as_array).into_iter().flatten().filter_map(Value::as_str);
    keys.filter_map(|key| Sequence::parse(key).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Origin;
    use crate::host::os::fixtures;
    use crate::model::Action;

    fn paths(file: &Path) -> Paths {
        Paths::find(Some(file.to_owned()), Some("/var/lib/parlor".into())).unwrap()
    }

    fn with(text: &str, name: &str, value: Option<SettingValue>) -> Result<String, String> {
        let change = SettingChange::Value { name: name.to_owned(), value };
        changed(&paths(Path::new("/etc/config.toml")), text, &change)
    }

    fn text(value: &str) -> SettingValue {
        SettingValue::Text(value.to_owned())
    }

    fn theme(name: &str) -> SettingChange {
        SettingChange::Value { name: "theme".to_owned(), value: Some(text(name)) }
    }

    #[test]
    fn comments_and_order_are_kept() {
        let old = "# mine\nagent = \"a\" # first\ntheme   = 'dark' # at night\n\n# agents\n[agents.a]\ncommand = \"x\"\n";
        let new = with(old, "theme", Some(text("nord"))).unwrap();
        assert_eq!(new, old.replace("'dark'", "\"nord\""));
        let old = "# mine\n\n[agents.a] # one\ncommand = \"x\"\n";
        let new = with(old, "theme", Some(text("auto"))).unwrap();
        assert_eq!(new, format!("theme = \"auto\"\n{old}"));
        let crlf = with("agent = 'a'\r\n[ui]\r\n", "theme", Some(text("x")));
        assert_eq!(crlf.unwrap(), "agent = 'a'\r\ntheme = \"x\"\r\n[ui]\r\n");
        assert_eq!(with("# only\n", "theme", Some(text("x"))).unwrap(), "theme = \"x\"\n# only\n");
        let error = with("agent = \n", "theme", Some(text("x"))).unwrap_err();
        assert!(error.starts_with("line 1: invalid TOML: "), "{error}");
    }

    #[test]
    fn values_are_set_in_tables_of_any_form_and_removed_again() {
        let flag = || Some(SettingValue::Flag(false));
        for (old, new) in [
            ("", "[ui]\nbell = false\n"),
            ("agent = 'a'\n", "agent = 'a'\n\n[ui]\nbell = false\n"),
            ("# mine\n", "# mine\n\n[ui]\nbell = false\n"),
            ("agent = 'a'\n# end\n", "agent = 'a'\n# end\n\n[ui]\nbell = false\n"),
            ("[ui] # look\nmouse = true\n", "[ui] # look\nmouse = true\nbell = false\n"),
            ("ui.mouse = true\n", "ui.mouse = true\nui.bell = false\n"),
            ("ui = { mouse = true }\n", "ui = { mouse = true , bell = false }\n"),
        ] {
            let found = with(old, "ui.bell", flag()).unwrap();
            assert_eq!(found, new, "{old:?}");
            let removed = with(&found, "ui.bell", None).unwrap();
            assert!(!removed.contains("bell"), "{removed}");
            assert_eq!(removed.contains("mouse = true"), old.contains("mouse"), "{removed}");
        }
        let old = "[ui]\n# quiet\nbell = false # now\n# mouse\nmouse = true\n";
        let new = with(old, "ui.bell", None).unwrap();
        assert_eq!(new, "[ui]\n# quiet\n# mouse\nmouse = true\n");
        assert_eq!(with(old, "ui.title", None).unwrap(), old);
    }

    #[test]
    fn invalid_values_are_refused_with_the_reason() {
        let error = with("", "handover.max_bytes", Some(SettingValue::Number(3))).unwrap_err();
        assert_eq!(error, "`handover.max_bytes` is out of range; use max_bytes = 1024 or more");
        let error = with("ui = 3\n", "ui.bell", Some(SettingValue::Flag(true))).unwrap_err();
        assert_eq!(error, "`ui` is not a table");
        // A problem that the file had before does not prevent a change.
        assert!(with("thme = 1\n", "ui.bell", Some(SettingValue::Flag(true))).is_ok());
    }

    fn bind(text: &str, context: &'static str, action: &'static str, keys: Option<&[&str]>) -> String {
        let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
        let change = SettingChange::Keys { context, action, keys };
        changed(&paths(Path::new("/etc/config.toml")), text, &change).unwrap()
    }

    fn keys_of(text: &str, context: &str, action: &str) -> Vec<String> {
        let (config, problems) = read(&paths(Path::new("/etc/config.toml")), text, &Surroundings::default());
        assert_eq!(problems, [], "{text}");
        let rows = config.keymap.binding_rows();
        rows.into_iter().find(|row| row.context == context && row.action == action).unwrap().keys
    }

    #[test]
    fn keys_are_bound_taken_from_other_actions_and_reset() {
        let text = bind("# mine\n", "main", "open-palette", Some(&["f10", "alt+m"]));
        assert_eq!(keys_of(&text, "main", "open-palette"), ["f10", "alt+m"]);
        // A key of another action, and one of a preset.
        let text = bind(&text, "main", "open-models", Some(&["f10", "f9"]));
        assert_eq!(keys_of(&text, "main", "open-models"), ["f9", "f10"]);
        assert_eq!(keys_of(&text, "main", "open-palette"), ["alt+m"]);
        assert!(!keys_of(&text, "main", "open-themes").contains(&"f9".to_owned()));
        let text = bind(&text, "main", "open-palette", None);
        assert_eq!(keys_of(&text, "main", "open-palette"), ["ctrl+p"]);
        let text = bind(&text, "main", "open-palette", Some(&[]));
        assert_eq!(keys_of(&text, "main", "open-palette"), Vec::<String>::new());
        // A sequence that starts with a bound key, and with an unbound one.
        let text = bind("", "main", "open-models", Some(&["f9 g"]));
        assert_eq!(keys_of(&text, "main", "open-models"), ["f9 g"]);
        assert!(!keys_of(&text, "main", "open-themes").contains(&"f9".to_owned()), "{text}");
        let text = bind(&text, "main", "open-modes", Some(&["f9 h"]));
        assert_eq!(keys_of(&text, "main", "open-models"), ["f9 g"]);
        assert_eq!(keys_of(&text, "main", "open-modes"), ["f9 h"]);
        let text = bind(&text, "main", "open-themes", Some(&["f9"]));
        assert_eq!(keys_of(&text, "main", "open-themes"), ["f9"]);
        assert_eq!(keys_of(&text, "main", "open-modes"), Vec::<String>::new());
        let text = bind(
            "[keys.main]\nopen-models = [\"f9 g\"]\n\"f9\" = \"open-log\"\n",
            "main",
            "open-modes",
            Some(&["f9 x"]),
        );
        assert_eq!(keys_of(&text, "main", "open-modes"), ["f9 x"]);
        // An action and a key with the same name.
        let text =
            bind("[keys.browse]\n\"up\" = \"select-previous\"\n", "browse", "toggle-fold", Some(&["z a"]));
        assert_eq!(keys_of(&text, "browse", "toggle-fold"), ["z a"]);
        assert!(text.contains("\"up\" = \"select-previous\""), "{text}");
        assert!(text.starts_with("[keys.browse]"), "{text}");
        assert_eq!(bind("# a\n", "main", "undo", None), "# a\n");
        let keymap = read(&paths(Path::new("/x")), &text, &Surroundings::default()).0.keymap;
        assert!(keymap.keys_for(Context::Browse, Action::ToggleFold).contains(&"z a".to_owned()));
    }

    #[test]
    fn keys_return_to_the_action_that_had_them() {
        for keys in ["f9", "f9 g"] {
            let text = bind("# mine\n", "main", "open-models", Some(&[keys]));
            assert!(text.contains("f9 = \"none\""), "{text}");
            for back in [None, Some(&["f2"][..]), Some(&[][..])] {
                let text = bind(&text, "main", "open-models", back);
                assert!(!text.contains("none"), "{back:?}: {text}");
                assert_eq!(keys_of(&text, "main", "open-themes"), ["f9", "ctrl+x t"]);
            }
        }
        // Another sequence needs its start.
        let text = bind("", "main", "open-models", Some(&["f9 g"]));
        let text = bind(&text, "main", "open-modes", Some(&["f9 h"]));
        let text = bind(&text, "main", "open-models", None);
        assert_eq!(keys_of(&text, "main", "open-modes"), ["f9 h"]);
        // One that the user has unbound stays so.
        let text = bind("[keys.main]\n\"f9\" = \"none\"\n", "main", "open-models", Some(&["f2"]));
        assert!(text.contains("\"f9\" = \"none\""), "{text}");
    }

    #[test]
    fn a_key_of_the_prompt_is_bound_to_an_action_of_all_contexts() {
        let action_of = |text: &str, context, key: &str| {
            let (config, problems) = read(&paths(Path::new("/x")), text, &Surroundings::default());
            assert_eq!(problems, [], "{text}");
            match config.keymap.resolve(context, Sequence::parse(key).unwrap().chords()) {
                Lookup::Action(action) => Some(action),
                Lookup::Prefix | Lookup::Unbound => None,
            }
        };
        let text = bind("", "global", "open-log", Some(&["f9", "f11"]));
        for context in [Context::Main, Context::List] {
            assert_eq!(action_of(&text, context, "f9"), Some(Action::OpenLog), "{text}");
            assert_eq!(action_of(&text, context, "f11"), Some(Action::OpenLog));
        }
        let text = bind(&text, "global", "open-log", Some(&["f11"]));
        assert_eq!(action_of(&text, Context::Main, "f9"), Some(Action::OpenThemes));
        assert_eq!(action_of(&text, Context::List, "f9"), None);
        assert_eq!(action_of(&text, Context::Main, "f12"), None);
        let text = bind(&text, "composer", "line-start", Some(&["f2"]));
        assert_eq!(action_of(&text, Context::Main, "f2"), Some(Action::LineStart), "{text}");
    }

    #[test]
    fn keys_that_type_text_are_refused() {
        let keys = Some(vec!["x".to_owned()]);
        let change = SettingChange::Keys { context: "main", action: "open-palette", keys };
        let error = changed(&paths(Path::new("/etc/config.toml")), "", &change).unwrap_err();
        assert!(error.contains("types text") && error.contains("alt+x"), "{error}");
    }

    #[test]
    fn the_file_keeps_its_mode_and_its_link() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real.toml"), root.path().join("config.toml"));
        fs::write(&real, "agent = \"a\"\n").unwrap();
        fixtures::set_mode(&real, 0o644);
        fixtures::link(&real, &link);
        change(&paths(&link), &theme("nord")).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "agent = \"a\"\ntheme = \"nord\"\n");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fixtures::mode(&real), 0o644);
        let new = root.path().join("sub/config.toml");
        change(&paths(&new), &theme("light")).unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "theme = \"light\"\n");
        assert_eq!(crate::config::load(&paths(&new)).0.origin("theme"), Origin::File { line: 1 });
    }

    #[test]
    fn files_that_cannot_be_changed_are_reported_and_kept() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        for (text, mode, why) in
            [("theme = \"a\"\n", 0o444, "read-only"), ("theme = \n", 0o644, "invalid TOML")]
        {
            fs::write(&file, text).unwrap();
            fixtures::set_mode(&file, mode);
            let error = change(&paths(&file), &theme("nord")).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            fs::remove_file(&file).unwrap();
        }
    }
}
