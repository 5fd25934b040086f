//! Imports agents from the settings of editors.
//!
//! Reads `agent_servers` of Zed's settings and of JetBrains' `acp.json` (JSON with comments and trailing commas),
//! and appends `[agents.NAME]` tables to a configuration. The user's text is unchanged, and existing names are
//! never overwritten.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use jsonc_parser::{CollectOptions, ParseOptions, ast};
use serde_json::{Map, Value};
use toml::de::DeTable;

use super::catalogue::known;
use super::show::key;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub text: String,
    pub added: Vec<String>,
    /// What was added, skipped or changed, with reasons: one sentence each, in the file's order.
    pub notes: Vec<String>,
}

struct Found {
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

/// Appends the agents of `settings` to the configuration `text`.
///
/// Fails if the settings are not JSON or contain no agents, or if the configuration cannot be extended
/// safely. Only returns the new text and writes nothing.
pub fn import(settings: &str, text: &str) -> anyhow::Result<Import> {
    let servers = read_servers(settings)?;
    let (existing, is_inline) = read_names(text)?;
    if is_inline {
        bail!("`agents` is an inline table in the configuration; convert it to [agents.NAME] tables first");
    }
    let mut import = Import { text: text.to_owned(), added: Vec::new(), notes: Vec::new() };
    let mut names = existing;
    for (label, value) in &servers {
        let found = match read_agent(label, value, &mut import.notes) {
            Ok(found) => found,
            Err(why) => {
                import.notes.push(format!("skipped {label}: {why}"));
                continue;
            }
        };
        let name = slug(label);
        if !names.insert(name.clone()) {
            import.notes.push(format!("skipped {label}: agent `{name}` is already configured"));
            continue;
        }
        append(&mut import.text, &name, label, &found);
        import.notes.push(format!("added {name}: {}", command_line(&found)));
        import.added.push(name);
    }
    // The result must be valid for the parser that reads it on the next start.
    DeTable::parse(&import.text)
        .context("the resulting configuration would be invalid; nothing was changed")?;
    Ok(import)
}

/// The entries of `agent_servers`, in the file's order.
fn read_servers(settings: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let settings = settings.strip_prefix('\u{feff}').unwrap_or(settings);
    let parsed = jsonc_parser::parse_to_ast(settings, &CollectOptions::default(), &ParseOptions::default())
        .map_err(|error| anyhow::anyhow!("{error}"))
        .context(
            "invalid JSON (comments and trailing commas are allowed); correct the file or pass another one",
        )?;
    let Some(ast::Value::Object(root)) = parsed.value else {
        bail!("not a JSON object; pass Zed's settings.json or JetBrains' acp.json");
    };
    match root.get("agent_servers").map(|property| &property.value) {
        Some(ast::Value::Object(servers)) if !servers.properties.is_empty() => Ok(entries(servers)),
        Some(ast::Value::Object(_)) => bail!("`agent_servers` is empty; nothing to import"),
        Some(_) => bail!("`agent_servers` is not an object; pass Zed's settings.json or JetBrains' acp.json"),
        None => {
            // The object may be pasted without the `agent_servers` key.
            let bare = entries(&root);
            if bare.is_empty() || !bare.iter().all(|(_, value)| looks_like_agent(value)) {
                bail!("no `agent_servers` in the file; pass Zed's settings.json or JetBrains' acp.json");
            }
            Ok(bare)
        }
    }
}

fn entries(object: &ast::Object<'_>) -> Vec<(String, Value)> {
    let properties = object.properties.iter();
    properties.map(|property| (property.name.as_str().to_owned(), property.value.clone().into())).collect()
}

fn looks_like_agent(value: &Value) -> bool {
    value.get("command").is_some() || value.get("type").and_then(Value::as_str) == Some("registry")
}

/// The names of the configured agents, and whether `agents` cannot be extended by appending a table.
fn read_names(text: &str) -> anyhow::Result<(BTreeSet<String>, bool)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table = DeTable::parse(text)
        .context("the configuration is not valid TOML; correct it first (see `parlor config`)")?;
    let Some(agents) = table.get_ref().get("agents") else { return Ok((BTreeSet::new(), false)) };
    let Some(entries) = agents.get_ref().as_table() else { return Ok((BTreeSet::new(), true)) };
    let is_inline = text.get(agents.span()).is_some_and(|source| source.starts_with('{'));
    Ok((entries.keys().map(|name| name.get_ref().trim().to_owned()).collect(), is_inline))
}

/// Parses one entry. The error completes the sentence "skipped NAME: …".
fn read_agent(label: &str, value: &Value, notes: &mut Vec<String>) -> Result<Found, String> {
    let Value::Object(entry) = value else { return Err("not an object".to_owned()) };
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or("custom");
    let mut ignored: Vec<&str> = Vec::new();
    for name in entry.keys() {
        if !["type", "command", "args", "env"].contains(&name.as_str()) {
            ignored.push(name);
        }
    }
    if !ignored.is_empty() {
        notes.push(format!("{label}: ignored {}: no equivalent in parlor", ignored.join(", ")));
    }
    let outer_env = read_env(label, entry, notes);
    match (entry.get("command"), kind) {
        (Some(Value::String(command)), _) => {
            checked(Found { command: command.clone(), args: read_args(label, entry, notes), env: outer_env })
        }
        (Some(Value::Object(command)), _) => {
            let Some(path) = command.get("path").or_else(|| command.get("command")).and_then(Value::as_str)
            else {
                return Err("command without a path".to_owned());
            };
            let mut env = read_env(label, command, notes);
            env.extend(outer_env);
            checked(Found { command: path.to_owned(), args: read_args(label, command, notes), env })
        }
        (Some(_), _) => Err("command is neither a string nor an object".to_owned()),
        (None, "registry" | "extension") => match known(label) {
            Some(known) => Ok(Found {
                command: known.command.to_owned(),
                args: known.args.iter().map(|word| (*word).to_owned()).collect(),
                env: outer_env,
            }),
            None => Err(format!(
                "installed by its editor from a registry; install it and add [agents.{}] manually",
                key(&slug(label))
            )),
        },
        // Older settings of Zed only adjusted its built-in agents.
        (None, _) => match known(label) {
            Some(known) if !outer_env.is_empty() => Ok(Found {
                command: known.command.to_owned(),
                args: known.args.iter().map(|word| (*word).to_owned()).collect(),
                env: outer_env,
            }),
            _ => Err("no command".to_owned()),
        },
    }
}

fn checked(found: Found) -> Result<Found, String> {
    if found.command.trim().is_empty() { Err("empty command".to_owned()) } else { Ok(found) }
}

fn read_args(label: &str, entry: &Map<String, Value>, notes: &mut Vec<String>) -> Vec<String> {
    let Some(value) = entry.get("args") else { return Vec::new() };
    let strings = value.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)));
    strings.and_then(Iterator::collect).unwrap_or_else(|| {
        notes.push(format!("{label}: ignored args: not a list of strings; check the result"));
        Vec::new()
    })
}

fn read_env(label: &str, entry: &Map<String, Value>, notes: &mut Vec<String>) -> Vec<(String, String)> {
    let Some(value) = entry.get("env") else { return Vec::new() };
    let Value::Object(table) = value else {
        if !value.is_null() {
            notes.push(format!("{label}: ignored env: not an object; check the result"));
        }
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (name, value) in table {
        match value {
            Value::String(text) => pairs.push((name.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => pairs.push((name.clone(), value.to_string())),
            _ => notes.push(format!("{label}: ignored the variable {name}: not a string")),
        }
    }
    pairs
}

/// A name that is easy to type: lower case, with dashes instead of other characters.
fn slug(label: &str) -> String {
    let mut slug = String::new();
    for ch in label.trim().chars() {
        if ch.is_alphanumeric() || ch == '_' || ch == '.' {
            slug.extend(ch.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

fn append(text: &mut String, name: &str, label: &str, found: &Found) {
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    let table = key(name);
    let title = (name != label).then(|| toml::Value::from(label));
    let args = (!found.args.is_empty()).then(|| toml::Value::from(found.args.clone()));
    let env: toml::Table =
        found.env.iter().map(|(name, value)| (name.clone(), toml::Value::from(value.as_str()))).collect();
    let env = (!env.is_empty()).then_some(toml::Value::Table(env));
    let rows = [
        ("title", title),
        ("command", Some(toml::Value::from(found.command.as_str()))),
        ("args", args),
        ("env", env),
    ];
    let _ = writeln!(text, "[agents.{table}]");
    for (left, value) in rows.into_iter().filter_map(|(left, value)| Some((left, value?))) {
        let _ = writeln!(text, "{left} = {value}");
    }
}

fn command_line(found: &Found) -> String {
    shell_words::join(std::iter::once(&found.command).chain(&found.args))
}

#[cfg(test)]
mod tests;
