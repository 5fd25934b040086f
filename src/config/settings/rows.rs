//! The settings as the screen lists them, with their origins.

use super::{AGENTS, INPUT, SETTINGS};
use crate::config::{Config, Origin, Paths};
use crate::model::{Applies, BindingRow, McpServer, SettingKind, SettingRow, SettingValue};

/// All settings with their values, for the screen. `bindings`: the rows of the keymap.
pub fn rows(config: &Config, paths: &Paths, bindings: &[BindingRow]) -> Vec<SettingRow> {
    let defaults = Config::default();
    let mut rows: Vec<SettingRow> = Vec::new();
    for setting in SETTINGS {
        let value = (setting.get)(config);
        let shown = value.as_ref().map_or_else(|| "not set".to_owned(), SettingValue::text);
        let is_default = value == (setting.get)(&defaults);
        let mut about = setting.about.replace('`', "");
        if let SettingKind::Word(words) = setting.kind {
            // The filter finds a setting by its values, too.
            about = format!("{about}. Values: {}", words.join(", "));
        }
        rows.push(SettingRow {
            name: setting.name.to_owned(),
            group: setting.group,
            about,
            kind: setting.kind,
            applies: setting.applies,
            value,
            shown,
            unset: setting.unset,
            widening: setting.widening,
            is_default,
            ..by_hand(config, paths, setting.name, setting.group)
        });
        if setting.name == "keys.preset" {
            let changed = bindings.iter().filter(|row| row.is_changed).count();
            let entries = config.keymap.entries();
            let in_file =
                entries.into_iter().map(|(.., origin)| origin).find(|origin| *origin != Origin::Default);
            rows.push(SettingRow {
                origin: crate::config::show::origin_text(in_file.unwrap_or_default(), paths),
                kind: SettingKind::Keys,
                about: "Keys of all commands, by part of the screen".to_owned(),
                shown: if changed == 0 { "preset".to_owned() } else { format!("{changed} changed") },
                is_default: changed == 0,
                ..by_hand(config, paths, "keys", INPUT)
            });
        }
        if setting.name == "agent" {
            rows.extend(lists(config, paths));
        }
    }
    rows
}

fn lists(config: &Config, paths: &Paths) -> Vec<SettingRow> {
    let row = |name: String, about: &str, shown: String, origin: &str| {
        let is_default = shown == "none";
        let row = by_hand(config, paths, origin, AGENTS);
        SettingRow { name, about: about.to_owned(), shown, is_default, ..row }
    };
    let mut rows: Vec<SettingRow> = Vec::new();
    for (name, spec) in &config.agents {
        let title = spec.shown_name();
        let (key, shown) = match &spec.remote {
            Some(remote) => ("url", remote.shown_url()),
            None => ("command", spec.command.clone()),
        };
        let origin = format!("agents.{name}.{key}");
        rows.push(row(format!("agents.{name}"), &format!("The agent {title}"), shown, &origin));
    }
    if config.agents.is_empty() {
        rows.push(row("agents".to_owned(), "Agents of your own", "none".to_owned(), "agents"));
    }
    let servers = config.mcp_servers.iter().map(McpServer::name).collect::<Vec<_>>();
    let folders = config.additional_directories.iter().map(|path| path.to_string_lossy().into_owned());
    let shown = |names: String| if names.is_empty() { "none".to_owned() } else { names };
    rows.push(row(
        "mcp_servers".to_owned(),
        "MCP servers that are passed on to agents",
        shown(servers.join(", ")),
        "mcp_servers.1.name",
    ));
    rows.push(row(
        "additional_directories".to_owned(),
        "More folders that agents may work in, in all sessions",
        shown(folders.collect::<Vec<_>>().join(", ")),
        "additional_directories",
    ));
    rows
}

fn by_hand(config: &Config, paths: &Paths, name: &str, group: &'static str) -> SettingRow {
    let origin = origin(config, name);
    SettingRow {
        name: name.to_owned(),
        group,
        about: String::new(),
        kind: SettingKind::File,
        applies: Applies::Later,
        value: None,
        shown: String::new(),
        unset: "",
        origin: crate::config::show::origin_text(origin, paths),
        is_overridden: matches!(origin, Origin::File { .. } | Origin::Default)
            && config.project.as_ref().is_some_and(|project| project.sets(name)),
        is_default: false,
        line: if let Origin::File { line } = origin { Some(line) } else { None },
        widening: None,
    }
}

/// The origin of a setting; `callbacks.fs` sets two of them.
fn origin(config: &Config, name: &str) -> Origin {
    match config.origin(name) {
        Origin::Default if name.starts_with("callbacks.fs_") => config.origin("callbacks.fs"),
        origin => origin,
    }
}
