//! Settings of other editors in their various forms.

use super::*;
use crate::config::{Paths, Surroundings, read};

const ZED: &str = r#"{
  // Zed's settings
  "theme": "One Dark",
  "agent_servers": {
    "My Agent": {
      "type": "custom",
      "command": "/opt/agent/bin/agent",
      "args": ["--acp", "two words"],
      "env": { "DEBUG": "1", "LEVEL": 3 },
      "default_mode": "plan",
    },
    "nested": { "command": { "path": "goose", "args": ["acp"], "env": { "A": "b" } } },
    "claude-acp": { "type": "registry", "env": { "ANTHROPIC_LOG": "debug" } },
    "unheard-of": { "type": "registry" },
    "gemini": { "ignore_system_version": true },
    "broken": { "command": 7 },
    "text": "agent",
  },
}"#;

fn config_of(text: &str) -> crate::config::Config {
    let paths = Paths::find(Some("/etc/parlor/config.toml".into()), Some("/tmp".into())).unwrap();
    let (config, problems) = read(&paths, text, &Surroundings::default());
    assert_eq!(problems, [], "{text}");
    config
}

#[test]
fn all_forms_of_zed_settings_are_imported() {
    let import = import(ZED, "").unwrap();
    assert_eq!(import.added, ["my-agent", "nested", "claude-acp"]);
    let config = config_of(&import.text);
    let agent = config.agents.get("my-agent").unwrap();
    assert_eq!(agent.command_line(), "/opt/agent/bin/agent --acp 'two words'");
    assert_eq!(agent.env, [("DEBUG".to_owned(), "1".to_owned()), ("LEVEL".to_owned(), "3".to_owned())]);
    assert_eq!(config.agents["my-agent"].shown_name(), "My Agent");
    assert_eq!(config.agents.get("nested").unwrap().command_line(), "goose acp");
    let claude = config.agents.get("claude-acp").unwrap();
    assert_eq!(claude.command, "claude-agent-acp");
    assert_eq!(claude.env, [("ANTHROPIC_LOG".to_owned(), "debug".to_owned())]);
}

#[test]
fn skipped_entries_are_reported_with_a_reason() {
    let notes = import(ZED, "").unwrap().notes.join("\n");
    for wanted in [
        "My Agent: ignored default_mode: no equivalent in parlor",
        "skipped unheard-of: installed by its editor from a registry",
        "skipped gemini: no command",
        "skipped broken: command is neither a string nor an object",
        "skipped text: not an object",
        "added nested: goose acp",
    ] {
        assert!(notes.contains(wanted), "{wanted} is missing in:\n{notes}");
    }
}

#[test]
fn jetbrains_file_and_bare_block_are_imported() {
    let acp = r#"{ "default_mcp_settings": {}, "agent_servers": { "OpenCode": { "command": "/usr/bin/opencode", "args": ["acp"] } } }"#;
    assert_eq!(import(acp, "").unwrap().added, ["opencode"]);
    let bare = r#"{ "OpenCode": { "command": "opencode", "args": ["acp"] } } // pasted"#;
    assert_eq!(import(bare, "").unwrap().added, ["opencode"]);
}

#[test]
fn existing_text_and_names_are_preserved() {
    let mine = "# mine\ntheme='dark'   # odd spacing\n\n[agents.nested]\ncommand = \"other\"";
    let import = import(ZED, mine).unwrap();
    assert!(import.text.starts_with(mine));
    assert_eq!(import.added, ["my-agent", "claude-acp"]);
    assert!(import.notes.contains(&"skipped nested: agent `nested` is already configured".to_owned()));
    assert_eq!(config_of(&import.text).agents.get("nested").unwrap().command, "other");
    let again = super::import(ZED, &import.text).unwrap();
    assert_eq!(again.text, import.text, "a second import adds nothing");
    assert_eq!(again.added, Vec::<String>::new());
}

#[test]
fn special_characters_are_escaped() {
    let settings =
        r#"{ "agent_servers": { "Ünï \"x\" / y.z": { "command": "a\\b \"c\"", "args": ["\n\u0007"] } } }"#;
    let import = import(settings, "").unwrap();
    assert_eq!(import.added, ["ünï-x-y.z"]);
    let config = config_of(&import.text);
    let agent = config.agents.get("ünï-x-y.z").unwrap();
    assert_eq!(agent.args, ["\n\u{7}"]);
    assert_eq!(config.agents["ünï-x-y.z"].shown_name(), "Ünï \"x\" / y.z");
}

#[test]
fn other_files_are_rejected_with_advice() {
    for (settings, wanted) in [
        ("not json", "invalid JSON"),
        ("[1]", "not a JSON object"),
        ("", "not a JSON object"),
        ("{}", "no `agent_servers`"),
        (r#"{"agent_servers": {}}"#, "nothing to import"),
        (r#"{"agent_servers": []}"#, "not an object"),
    ] {
        let error = import(settings, "").unwrap_err();
        assert!(error.to_string().contains(wanted), "{settings}: {error:#}");
    }
    assert!(import(ZED, "theme = ").unwrap_err().to_string().contains("not valid TOML"));
    assert!(
        import(ZED, "agents = { a = { command = 'b' } }").unwrap_err().to_string().contains("inline table")
    );
}
