//! `parlor agents`: lists available agents, and imports agents from other editors.
//!
//! The import writes the configuration completely or not at all; `config::import` parses the settings.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::choose::DEMO;
use crate::config::catalogue::KNOWN;
use crate::config::import;
use crate::config::{Config, Origin, Paths, Problem};
use crate::host::os::private;
use crate::model::AgentSpec;

/// Lists the available agents, then the known agents that are not installed.
pub fn list(config: &Config, found: &[(AgentSpec, String)], paths: &Paths, problems: &[Problem]) -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for (name, spec) in &config.agents {
        let title = spec.shown_name().to_owned();
        let source = match config
            .origin(&format!("agents.{name}.{}", if spec.remote.is_some() { "url" } else { "command" }))
        {
            Origin::File { line } => {
                let file = paths.config_file.file_name().unwrap_or_default();
                format!("{}:{line}", file.to_string_lossy())
            }
            _ => "configured".to_owned(),
        };
        rows.push([name.clone(), title, source, without_arguments(spec)]);
    }
    for (spec, title) in found.iter().filter(|(spec, _)| !config.agents.contains_key(&spec.name)) {
        rows.push([spec.name.clone(), title.clone(), "found".to_owned(), spec.command_line()]);
    }
    if !config.agents.contains_key(DEMO) {
        rows.push([
            DEMO.to_owned(),
            "Demo agent".to_owned(),
            "built in".to_owned(),
            "parlor demo".to_owned(),
        ]);
    }
    let mut text = table(&rows);
    let is_here = |name: &str| rows.iter().any(|row| row.first().is_some_and(|first| first == name));
    let mut missing: Vec<[String; 4]> = Vec::new();
    for known in KNOWN.iter().filter(|known| !is_here(known.name)) {
        if missing.last().is_none_or(|row| row.first().is_none_or(|name| name != known.name)) {
            let line = known.spec(config.callbacks).command_line();
            missing.push([known.name.to_owned(), known.title.to_owned(), "not installed".to_owned(), line]);
        }
    }
    if !missing.is_empty() {
        text.push_str("\nKnown agents that are not installed:\n");
        text.push_str(&table(&missing));
    }
    for problem in problems {
        let _ = writeln!(text, "\n{problem}");
    }
    text
}

/// How a configured agent is started or reached, without arguments, which may contain tokens.
fn without_arguments(spec: &AgentSpec) -> String {
    let dots = if spec.args.is_empty() { "" } else { " …" };
    AgentSpec { args: Vec::new(), ..spec.clone() }.command_line() + dots
}

/// Adds the agents of an editor's settings to the configuration file, and returns the output.
///
/// Fails without any change if the settings cannot be read or the configuration cannot be written.
pub fn import(file: &Path, paths: &Paths) -> anyhow::Result<String> {
    let settings = std::fs::read_to_string(file).with_context(|| {
        format!("cannot read {}; pass Zed's settings.json or JetBrains' acp.json", file.display())
    })?;
    // A link is preserved; its target is replaced.
    let target = paths.config_file.canonicalize().unwrap_or_else(|_| paths.config_file.clone());
    let text = match std::fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| {
                format!("cannot read the configuration {}; correct its permissions first", target.display())
            });
        }
    };
    let import =
        import::import(&settings, &text).with_context(|| format!("cannot import {}", file.display()))?;
    if !import.added.is_empty() {
        private::replace(&target, import.text.as_bytes())
            .with_context(|| format!("cannot write {}; nothing was changed", target.display()))?;
    }
    let mut text: String = import.notes.iter().flat_map(|note| [note.as_str(), "\n"]).collect();
    let config = paths.config_file.display();
    let _ = match import.added.first() {
        Some(name) => writeln!(text, "\nWritten to {config}. Try `parlor --agent {name}`."),
        None => writeln!(text, "\nNo agents added; {config} is unchanged."),
    };
    Ok(text)
}

pub(super) fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let [first, second, third] = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [name, title, source, line] in rows {
        let _ = writeln!(text, "{name:first$}  {title:second$}  {source:third$}  {line}");
    }
    text
}
