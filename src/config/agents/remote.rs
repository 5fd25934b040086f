//! Parses agents behind a URL: `url` of `[agents.NAME]` and its related keys, as a [`Remote`].
//!
//! `acp` connects to them and fetches the token.

use toml::de::DeTable;

use super::super::Surroundings;
use super::super::nearest::advice;
use super::super::read::{Reader, Value};
use super::{expand_home, read_pairs, read_string};
use crate::model::{Carrier, Remote, TokenSource};

/// Keys that only apply to an agent behind a URL.
const REMOTE_KEYS: &[&str] =
    &["transport", "events_url", "headers", "token_env", "token_file", "token_command", "ca_file"];
/// Whether the user's MCP servers are passed to an agent on another machine.
const SERVERS_KEY: &str = "mcp";
/// Keys that only apply to an agent that parlor starts.
const LOCAL_KEYS: &[&str] = &["command", "args", "env", "cwd", "ssh", "ssh_args", "ssh_program"];
const TOKEN_KEYS: &[&str] = &["token_env", "token_file", "token_command"];

/// Parses the agent behind the table's `url`; `None` if the URL is invalid, which is reported.
pub(super) fn read(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    around: &Surroundings,
) -> Option<Remote> {
    for key in LOCAL_KEYS {
        if let Some((found, _)) = table.get_key_value(*key) {
            let text = format!("`{key}` does not apply to a remote agent");
            reader.problem(&found.span(), text, format!("remove `{key}`, or remove `url`"));
        }
    }
    let value = table.get("url")?;
    let url = reader.string(&format!("{location}.url"), value)?;
    if let Err(why) = check_url(&url, &["https", "http", "wss", "ws"]) {
        reader.problem(&value.span(), format!("the URL of `{location}` {}", why.0), why.1);
        return None;
    }
    let token = read_token(reader, location, table, around);
    let headers = read_pairs(reader, location, "headers", table);
    let has_secret = token.is_some() || headers.iter().any(|(name, _)| super::super::show::is_secret(name));
    if has_secret && !is_private(&url) {
        reader.problem(
            &value.span(),
            format!("`{location}` sends secrets over an unencrypted connection"),
            "use https:// or wss:// if the server supports it",
        );
    }
    Some(Remote {
        carrier: table.get("transport").and_then(|value| read_carrier(reader, location, value)),
        events_url: read_events_url(reader, location, table),
        ca_file: read_string(reader, location, "ca_file", table).map(|path| expand_home(&path, around)),
        gets_servers: reads_servers(reader, location, table),
        headers,
        token,
        url,
    })
}

/// Whether MCP servers are passed to this agent on another machine.
pub(super) fn reads_servers(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>) -> bool {
    let value = table.get(SERVERS_KEY);
    value.and_then(|value| reader.boolean(&format!("{location}.{SERVERS_KEY}"), value)).unwrap_or_default()
}

/// Reports `mcp` in the table of a local agent.
pub(super) fn tell_stray_servers(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>) {
    if let Some((found, _)) = table.get_key_value(SERVERS_KEY) {
        let text = format!("`{SERVERS_KEY}` of `{location}` applies only to an agent on another machine");
        reader.problem(&found.span(), text, "remove it: local agents always receive the MCP servers");
    }
}

/// Reports keys that have no effect without a `url`.
pub(super) fn tell_strays(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>) {
    for key in REMOTE_KEYS {
        if let Some((found, _)) = table.get_key_value(*key) {
            let text = format!("`{key}` of `{location}` applies only to an agent with a URL");
            reader.problem(&found.span(), text, format!("remove `{key}`, or add url = \"https://…\""));
        }
    }
}

/// Checks a URL; the error contains the problem and the fix.
pub fn check_url(url: &str, schemes: &[&str]) -> Result<(), (String, String)> {
    let example = format!("use {}://host/path", schemes.first().copied().unwrap_or("https"));
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(("has no scheme".to_owned(), example));
    };
    if !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        let known: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
        return Err((format!("has the unsupported scheme {scheme}://"), format!("use {}", known.join(", "))));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        let fix = "remove them; use `token_env`, `token_file`, `token_command` or `headers`";
        return Err(("contains credentials".to_owned(), fix.to_owned()));
    }
    if host.is_empty() || url.contains(char::is_whitespace) {
        return Err(("has no host".to_owned(), example));
    }
    Ok(())
}

/// Whether the connection cannot be read by others: TLS, or a loopback address.
pub fn is_private(url: &str) -> bool {
    let url = url.to_ascii_lowercase();
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    matches!(scheme, "https" | "wss") || is_here
}

fn read_carrier(reader: &mut Reader<'_>, location: &str, value: &Value<'_>) -> Option<Carrier> {
    let name = format!("{location}.transport");
    let word = reader.string(&name, value)?;
    if word == "auto" {
        return None;
    }
    let carrier = Carrier::of_word(&word);
    if carrier.is_none() {
        let names = Carrier::ALL.map(Carrier::word);
        let fix = advice(&word, names, &format!("use one of {}, or remove the line", names.join(", ")));
        reader.problem(&value.span(), format!("unknown transport `{word}`"), fix);
        reader.lines.remove(&name);
    }
    carrier
}

fn read_events_url(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>) -> Option<String> {
    let url = read_string(reader, location, "events_url", table)?;
    let value = table.get("events_url")?;
    match check_url(&url, &["https", "http"]) {
        Ok(()) => Some(url),
        Err((what, fix)) => {
            reader.problem(&value.span(), format!("`{location}.events_url` {what}"), fix);
            reader.lines.remove(&format!("{location}.events_url"));
            None
        }
    }
}

/// The source of the token. If several keys are set, the first one is used.
fn read_token(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    around: &Surroundings,
) -> Option<TokenSource> {
    let mut source = None;
    for key in TOKEN_KEYS {
        let Some((name, value)) = table.get_key_value(*key) else { continue };
        if source.is_some() {
            let text = format!("`{location}` has more than one token source");
            reader.problem(&name.span(), text, format!("remove `{key}`; the other one is used"));
            continue;
        }
        source = match *key {
            "token_env" => reader.string(&format!("{location}.{key}"), value).map(TokenSource::Env),
            "token_file" => reader
                .string(&format!("{location}.{key}"), value)
                .map(|path| TokenSource::File(expand_home(&path, around))),
            _ => {
                let name = format!("{location}.{key}");
                read_command_parts(reader, &name, value, around).map(TokenSource::Command)
            }
        };
    }
    source
}

/// Parses a list of words, or a command line with shell quoting.
/// Reads a command, as a string or a list.
pub(super) fn read_command_parts(
    reader: &mut Reader<'_>,
    name: &str,
    value: &Value<'_>,
    around: &Surroundings,
) -> Option<Vec<String>> {
    let mut parts = if value.get_ref().as_array().is_some() {
        reader.strings(name, value)?
    } else {
        let line = reader.string(name, value)?;
        shell_words::split(&line).unwrap_or_default()
    };
    let Some(program) = parts.first_mut().filter(|program| !program.trim().is_empty()) else {
        reader.problem(
            &value.span(),
            format!("invalid command in `{name}`"),
            "set the program and its arguments, as a string or a list",
        );
        reader.lines.remove(name);
        return None;
    };
    *program = expand_home(program, around).to_string_lossy().into_owned();
    Some(parts)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::config::{self, Config, Paths};
    use crate::model::Callbacks;

    /// A configuration, its problems, and the output of `parlor config`.
    pub fn parse(text: &str) -> (Config, Vec<String>, String) {
        let paths =
            Paths::find(Some("/etc/parlor/config.toml".into()), Some("/var/lib/parlor".into())).unwrap();
        let around = Surroundings { home: Some("/home/ada".into()), path: None };
        let (config, problems) = config::read(&paths, text, &around);
        let shown = config::show::show(&config, &paths, &problems);
        (config, problems.iter().map(ToString::to_string).collect(), shown)
    }

    #[test]
    fn remote_agent_is_parsed_and_shown_without_secrets() {
        let (config, problems, shown) = parse(
            r#"
[agents.far]
title = "Far away"
url = "https://host/acp?key=hush"
transport = "post-sse"
events_url = "https://host/events"
headers = { Authorization = "Basic hush", X-Team = "blue" }
token_command = "~/bin/token --for 'the agent'"
ca_file = "~/company.pem"
fs_read = true
"#,
        );
        assert_eq!(problems, Vec::<String>::new());
        let spec = config.agents.get("far").unwrap();
        let remote = spec.remote.as_ref().unwrap();
        assert_eq!(remote.carrier, Some(Carrier::PostSse));
        assert_eq!(remote.headers.len(), 2);
        let parts = ["/home/ada/bin/token", "--for", "the agent"].map(str::to_owned).to_vec();
        assert_eq!(remote.token, Some(TokenSource::Command(parts)));
        assert_eq!(remote.ca_file.as_deref(), Some(std::path::Path::new("/home/ada/company.pem")));
        assert_eq!(spec.command_line(), "https://host/acp");
        assert!(!shown.contains("hush"), "{shown}");
        for line in [
            "url = \"https://host/acp\"",
            "transport = \"post-sse\"",
            "X-Team = \"blue\"",
            "token_command = [",
            "ca_file = \"/home/ada/company.pem\"",
        ] {
            assert!(shown.contains(line), "{line} is missing:\n{shown}");
        }
    }

    #[test]
    fn mcp_servers_are_passed_to_remote_agents_only_if_enabled() {
        let (config, problems, shown) = parse(
            "[agents.a]\nurl = \"wss://a\"\n[agents.b]\nurl = \"wss://b\"\nmcp = true\n[agents.c]\ncommand = \"/c\"\n\
             [agents.d]\nssh = \"d\"\ncommand = \"d\"\n[agents.e]\nssh = \"e\"\ncommand = \"e\"\nmcp = true\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        let gets = |name: &str| config.agents.get(name).unwrap().gets_servers();
        assert_eq!(["a", "b", "c", "d", "e"].map(gets), [false, true, true, false, true]);
        for agent in ["a", "b", "d", "e"] {
            let table = shown.split(&format!("[agents.{agent}]")).nth(1).unwrap();
            let line = table.lines().find(|line| line.starts_with("mcp = ")).unwrap();
            assert!(line.starts_with(&format!("mcp = {}", gets(agent))), "{line}");
        }
        assert_eq!(parse(&shown).1, Vec::<String>::new());
        let (_, problems, _) = parse("[agents.c]\ncommand = \"/c\"\nmcp = true\n");
        assert!(
            problems[0].contains("`mcp` of `agents.c` applies only to an agent on another machine"),
            "{problems:?}"
        );
    }

    #[test]
    fn callbacks_of_remote_agents_are_off_unless_enabled() {
        let (config, _, shown) = parse(
            "[callbacks]\nfs = true\nterminal = true\n[agents.a]\nurl = \"ws://127.0.0.1:1\"\n[agents.b]\nurl = \"ws://[::1]:1\"\nterminal = true\n",
        );
        assert_eq!(config.agents.get("a").unwrap().callbacks, Callbacks::NONE);
        assert_eq!(
            config.agents.get("b").unwrap().callbacks,
            Callbacks { terminal: true, ..Callbacks::NONE }
        );
        let own = shown.split("[agents.a]").nth(1).unwrap();
        let line = own.lines().find(|line| line.starts_with("terminal")).unwrap();
        assert!(line.starts_with("terminal = false") && line.ends_with("# default"), "{line}");
    }

    #[test]
    fn invalid_remote_settings_are_reported_with_a_fix() {
        for (text, expected) in [
            ("url = \"host/acp\"", "has no scheme; use https://host/path"),
            (
                "url = \"ftp://host\"",
                "has the unsupported scheme ftp://; use https://, http://, wss://, ws://",
            ),
            ("url = \"https://me:hush@host\"", "contains credentials; remove them"),
            ("url = \"https://\"", "has no host"),
            ("url = \"https://h\"\ncommand = \"x\"", "`command` does not apply to a remote agent"),
            (
                "url = \"https://h\"\ntransport = \"webscoket\"",
                "unknown transport `webscoket`; did you mean `websocket`?",
            ),
            ("url = \"https://h\"\nevents_url = \"h\"", "`agents.x.events_url` has no scheme"),
            (
                "url = \"https://h\"\ntoken_env = \"A\"\ntoken_file = \"/b\"",
                "`agents.x` has more than one token source",
            ),
            ("url = \"https://h\"\ntoken_command = []", "invalid command in `agents.x.token_command`"),
            ("url = \"http://h\"\ntoken_env = \"A\"", "sends secrets over an unencrypted connection"),
            (
                "command = \"/x\"\ntoken_env = \"A\"",
                "`token_env` of `agents.x` applies only to an agent with a URL",
            ),
            ("title = \"X\"", "or url = "),
        ] {
            let (_, problems, _) = parse(&format!("[agents.x]\n{text}\n"));
            let found =
                problems.iter().any(|problem| problem.contains(expected) && !problem.contains("hush"));
            assert!(found && problems.len() == 1, "{text}: {problems:?}");
        }
        for url in ["http://localhost:1", "http://127.0.0.9", "wss://host", "ws://[::1]:2"] {
            let (_, problems, _) = parse(&format!("[agents.x]\nurl = \"{url}\"\ntoken_env = \"A\"\n"));
            assert_eq!(problems, Vec::<String>::new(), "{url}");
        }
    }
}
