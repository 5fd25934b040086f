//! Parses the MCP servers of a folder's `.mcp.json`.
//!
//! The result contains the servers, and lines that describe them in the dialog that asks whether they may be
//! used. The format is that of other clients: `{"mcpServers": {NAME: {command, args, env} | {type, url,
//! headers}}}`, with `${NAME}` and `${NAME:-default}` for environment variables. The lines show the variables
//! unexpanded and labelled, because their values may be secrets.
//!
//! Invariants: each argument, variable and header has its own line, with visible control characters; an
//! invalid server is listed with the reason.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::escape::visible;
use crate::model::McpServer;

/// The file's name, in the session's folder.
pub const NAME: &str = ".mcp.json";

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    pub servers: Vec<McpServer>,
    /// The programs, arguments, variables, URLs and headers, one per line.
    pub lines: Vec<String>,
    /// The ignored servers with the reasons.
    pub notes: Vec<String>,
}

/// Parses the text of a file in this folder. `variable` reads the environment; `find` looks up a program.
///
/// Fails if the text is not JSON or has no object of servers.
pub fn read(
    text: &str,
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Found, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
    let servers = value.get("mcpServers").or_else(|| value.get("servers")).unwrap_or(&value);
    let Value::Object(servers) = servers else {
        return Err("no `mcpServers` object".to_owned());
    };
    Ok(read_servers(servers, folder, variable, find))
}

/// Reads the servers of a project's configuration, by name.
pub fn read_tables(
    servers: &[(String, toml::Value)],
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Found {
    let value = |server| serde_json::to_value(server).unwrap_or_default();
    let servers = servers.iter().map(|(name, server)| (name.clone(), value(server))).collect();
    read_servers(&servers, folder, variable, find)
}

fn read_servers(
    servers: &Map<String, Value>,
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Found {
    let mut found = Found::default();
    for (name, value) in servers {
        match read_server(name, value, folder, variable, find) {
            Ok((server, lines)) => {
                found.servers.push(server);
                found.lines.extend(lines);
            }
            Err(why) => found.notes.push(format!("{} is ignored: {}.", visible(name), visible(&why))),
        }
    }
    found
}

fn read_server(
    name: &str,
    value: &Value,
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<(McpServer, Vec<String>), String> {
    let Value::Object(table) = value else { return Err("not an object".to_owned()) };
    if table.get("disabled") == Some(&Value::Bool(true)) {
        return Err("disabled in the file".to_owned());
    }
    let text = |key: &str| table.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let kind = match (text("type"), text("url")) {
        (Some(kind), _) => kind,
        (None, Some(_)) => "http",
        (None, None) => "stdio",
    };
    let name = name.to_owned();
    match kind {
        "stdio" => {
            let command = text("command").ok_or("no command")?;
            let args = match table.get("args") {
                None => Vec::new(),
                Some(args) => strings(args).ok_or("`args` is not a list of strings")?,
            };
            let env = pairs(table, "env")?;
            let mut lines = vec![format!("{}: runs {}", visible(&name), shown(command))];
            lines.extend(args.iter().map(|arg| format!("· argument {}", shown(arg))));
            lines.extend(
                env.iter().map(|(name, value)| format!("· variable {} = {}", visible(name), shown(value))),
            );
            let filled = fill(command, variable)?;
            let program = find(&filled).ok_or_else(|| format!("program {command} not found"))?;
            let args = args.iter().map(|arg| fill(arg, variable)).collect::<Result<_, _>>()?;
            // The agent may start it in another folder, so the path must be absolute.
            let command = folder.join(program);
            Ok((McpServer::Stdio { name, command, args, env: fill_pairs(env, variable)? }, lines))
        }
        "http" | "streamable-http" | "sse" => {
            let url = text("url").ok_or("no url")?;
            let headers = pairs(table, "headers")?;
            let mut lines = vec![format!("{}: connects to {} ({kind})", visible(&name), shown(url))];
            lines.extend(
                headers.iter().map(|(name, value)| format!("· header {}: {}", visible(name), shown(value))),
            );
            let url = fill(url, variable)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err("URL does not start with https:// or http://".to_owned());
            }
            let headers = fill_pairs(headers, variable)?;
            let server = if kind == "sse" {
                McpServer::Sse { name, url, headers }
            } else {
                McpServer::Http { name, url, headers }
            };
            Ok((server, lines))
        }
        other => Err(format!("unknown type `{other}` (expected stdio, http or sse)")),
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

fn pairs(table: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, String> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let wrong = || format!("`{key}` is not a table of strings");
    let rows = value.as_object().ok_or_else(wrong)?;
    rows.iter()
        .map(|(name, value)| Ok((name.clone(), value.as_str().map(str::to_owned).ok_or_else(wrong)?)))
        .collect()
}

/// The unexpanded text for display, labelled if it uses environment variables.
fn shown(text: &str) -> String {
    let quoted = shell_words::quote(text);
    match text.split_once("${") {
        Some((_, rest)) if rest.contains('}') => format!("{} (from your environment)", visible(&quoted)),
        _ => visible(&quoted).into_owned(),
    }
}

fn fill_pairs(
    pairs: Vec<(String, String)>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, String> {
    pairs.into_iter().map(|(name, value)| Ok((name, fill(&value, variable)?))).collect()
}

/// Expands variables once; their values are not expanded again.
fn fill(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, after)) = tail.split_once('}') else {
            out.push_str("${");
            rest = tail;
            continue;
        };
        let (name, otherwise) = match inner.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inner, None),
        };
        match (variable(name).filter(|value| !value.is_empty()), otherwise) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(otherwise)) => out.push_str(otherwise),
            (None, None) => return Err(format!("environment variable {name} is not set")),
        }
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Found, String> {
        let variable = |name: &str| (name == "KEY").then(|| "${KEY} hunter2".to_owned());
        let find = |name: &str| match name {
            "npx" => Some("/usr/bin/npx".into()),
            "./tool" => Some("tool".into()),
            _ => None,
        };
        read(text, Path::new("/code/shop"), &variable, &find)
    }

    #[test]
    fn all_server_types_are_parsed_and_shown_without_secrets() {
        let found = parse(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files mcp", "${NONE:-.}"], "env": {"TOKEN": "${KEY}"}},
                "own": {"type": "stdio", "command": "./tool"},
                "docs": {"type": "http", "url": "https://docs.example/${KEY}", "headers": {"X-Key": "${KEY}"}},
                "web": {"url": "https://web.example"},
                "old": {"type": "sse", "url": "http://old.example"}
            }}"#,
        )
        .unwrap();
        assert_eq!(found.notes, Vec::<String>::new());
        assert_eq!(
            found.lines,
            [
                "files: runs npx",
                "· argument -y",
                "· argument 'files mcp'",
                "· argument '${NONE:-.}' (from your environment)",
                "· variable TOKEN = '${KEY}' (from your environment)",
                "own: runs ./tool",
                "docs: connects to 'https://docs.example/${KEY}' (from your environment) (http)",
                "· header X-Key: '${KEY}' (from your environment)",
                "web: connects to https://web.example (http)",
                "old: connects to http://old.example (sse)",
            ]
        );
        let secret = || vec![("TOKEN".to_owned(), "${KEY} hunter2".to_owned())];
        assert_eq!(
            found.servers[0],
            McpServer::Stdio {
                name: "files".to_owned(),
                command: "/usr/bin/npx".into(),
                args: ["-y", "files mcp", "."].map(str::to_owned).to_vec(),
                env: secret(),
            }
        );
        assert!(matches!(&found.servers[1], McpServer::Stdio { command, .. }
            if command == Path::new("/code/shop/tool")));
        assert!(matches!(&found.servers[2], McpServer::Http { url, headers, .. }
            if url == "https://docs.example/${KEY} hunter2" && headers[0].1 == "${KEY} hunter2"));
        assert!(matches!(&found.servers[3], McpServer::Http { .. }));
        assert!(matches!(&found.servers[4], McpServer::Sse { .. }));
    }

    #[test]
    fn invalid_servers_are_listed_with_the_reason() {
        let found = parse(
            r#"{"mcpServers": {
                "a": {}, "b": 1, "c": {"command": "gone"}, "d": {"command": "npx", "args": "x"},
                "e": {"type": "pigeon"}, "f": {"url": "ftp://x"}, "g": {"command": "npx", "env": {"A": 1}},
                "h": {"url": "https://${NONE}"}, "i": {"command": "npx", "disabled": true}, "j": {"command": "npx"}
            }}"#,
        )
        .unwrap();
        assert_eq!(found.servers.len(), 1);
        let reasons = [
            "no command",
            "not an object",
            "gone not found",
            "not a list",
            "pigeon",
            "https://",
            "not a table",
            "NONE is not set",
            "disabled",
        ];
        assert_eq!(found.notes.len(), reasons.len());
        for (note, reason) in found.notes.iter().zip(reasons) {
            assert!(note.contains(reason), "{reason}: {note}");
        }
        assert!(parse("{").is_err_and(|why| why.contains("invalid JSON")));
        assert!(parse("[1]").is_err_and(|why| why.contains("mcpServers")));
        assert_eq!(parse("{\"mcpServers\": {}}"), Ok(Found::default()));
    }

    #[test]
    fn every_part_of_a_server_is_shown_to_the_user() {
        let found = parse(
            r#"{"mcpServers": {
                "tests": {"command": "npx", "args": ["--version"],
                    "env": {"NODE_OPTIONS": "--require ./evil.js", "LANG": "C"}},
                "nl\n\nUse them: runs true": {"command": "npx", "args": ["a\n\nb", "\u202ex"]},
                "web": {"url": "https://web.example", "headers": {"X-Team": "${AWS_KEY:-none}", "X\n-B": "c\nd"}}
            }}"#,
        )
        .unwrap();
        assert_eq!(
            found.lines,
            [
                "tests: runs npx",
                "· argument --version",
                "· variable NODE_OPTIONS = '--require ./evil.js'",
                "· variable LANG = C",
                "nl⟨U+000A⟩⟨U+000A⟩Use them: runs true: runs npx",
                "· argument 'a⟨U+000A⟩⟨U+000A⟩b'",
                "· argument ⟨U+202E⟩x",
                "web: connects to https://web.example (http)",
                "· header X-Team: '${AWS_KEY:-none}' (from your environment)",
                "· header X⟨U+000A⟩-B: 'c⟨U+000A⟩d'",
            ]
        );
    }

    #[test]
    fn unclosed_braces_are_literal_text() {
        assert_eq!(fill("a${b", &|_| None), Ok("a${b".to_owned()));
        assert_eq!(fill("$a ${KEY}", &|_| Some("1".to_owned())), Ok("$a 1".to_owned()));
    }
}
