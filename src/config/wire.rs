//! Reads the protocol settings of `[agents.NAME]`: profile, strictness, framing, version, and options for new
//! sessions.
//!
//! `acp::codec` implements them.

use toml::de::{DeTable, DeValue};

use super::nearest::advice;
use super::read::{Reader, Value};
use crate::model::{Profile, ProviderRequest, ProviderTarget, SystemPrompt, WireSpec};

pub(super) const KEYS: &[&str] = &[
    "profile",
    "strict",
    "framing",
    "protocol",
    "model",
    "auto_commits",
    "first_turn",
    "system_prompt",
    "replace_system_prompt",
    "trace",
    "providers",
];

/// The framings of messages to an agent.
const FRAMINGS: &[&str] = &["lines", "content-length"];

/// Parses the keys of an agent's table; `location` is its dotted name.
pub(super) fn read_wire(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>) -> WireSpec {
    let profiles = Profile::ALL.map(Profile::name);
    let profile = word(reader, location, table, "profile", &profiles);
    let framing = word(reader, location, table, "framing", FRAMINGS);
    let name = |key: &str| format!("{location}.{key}");
    let replaces = table
        .get("replace_system_prompt")
        .and_then(|value| reader.boolean(&name("replace_system_prompt"), value))
        .unwrap_or(false);
    let text = table.get("system_prompt").and_then(|value| reader.string(&name("system_prompt"), value));
    WireSpec {
        system_prompt: text.map(|text| SystemPrompt { text, replaces }),
        is_traced: table
            .get("trace")
            .and_then(|value| reader.boolean(&name("trace"), value))
            .unwrap_or(false),
        providers: table
            .get("providers")
            .map(|value| read_providers(reader, &name("providers"), value))
            .unwrap_or_default(),
        profile: profile.and_then(|profile| Profile::of_name(&profile)),
        is_strict: table
            .get("strict")
            .and_then(|value| reader.boolean(&name("strict"), value))
            .unwrap_or(false),
        has_headers: framing.as_deref() == Some("content-length"),
        protocol: number(reader, location, table, "protocol", [1, 2]).unwrap_or_default(),
        model: table.get("model").and_then(|value| reader.string(&name("model"), value)),
        auto_commits: table
            .get("auto_commits")
            .and_then(|value| reader.boolean(&name("auto_commits"), value)),
        first_turn: number(reader, location, table, "first_turn", [0, 1]).unwrap_or_default().into(),
    }
}

/// Parses `[[agents.NAME.providers]]`. An invalid provider is reported and ignored.
fn read_providers(reader: &mut Reader<'_>, location: &str, value: &Value<'_>) -> Vec<ProviderRequest> {
    const PROVIDER_KEYS: &[&str] = &["id", "api_type", "base_url", "headers", "off"];
    let Some(items) = value.get_ref().as_array() else {
        let text = format!("`{location}` must be a list of tables");
        reader.problem(&value.span(), text, format!("use [[{location}]] for each"));
        return Vec::new();
    };
    let mut requests = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let name = format!("{location}.{}", index + 1);
        let Some(table) = reader.table(&name, item) else { continue };
        reader.unknown_keys(table, &format!("[[{location}]]"), PROVIDER_KEYS);
        let mut text =
            |key: &str| table.get(key).and_then(|value| reader.string(&format!("{name}.{key}"), value));
        let (id, api_type, base_url) = (text("id"), text("api_type"), text("base_url"));
        let is_off =
            table.get("off").and_then(|value| reader.boolean(&format!("{name}.off"), value)).unwrap_or(false);
        let headers = table
            .get("headers")
            .and_then(|value| reader.pairs(&format!("{name}.headers"), value))
            .unwrap_or_default();
        match (id, api_type, base_url) {
            (Some(id), _, _) if is_off => requests.push(ProviderRequest { id, target: None }),
            (Some(id), Some(api_type), Some(base_url)) => {
                let target = Some(ProviderTarget { api_type, base_url, headers });
                requests.push(ProviderRequest { id, target });
            }
            _ => reader.problem(
                &item.span(),
                format!("incomplete provider in `{location}`"),
                "set id, api_type and base_url; or id and off = true",
            ),
        }
    }
    requests
}

/// Reads one of the known words, or reports a problem.
fn word(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    key: &str,
    known: &[&str],
) -> Option<String> {
    let value = table.get(key)?;
    let text = reader.string(&format!("{location}.{key}"), value)?;
    if known.contains(&text.as_str()) {
        return Some(text);
    }
    let fix = advice(&text, known.iter().copied(), &format!("use one of {}", known.join(", ")));
    wrong(reader, location, key, value, &format!("unknown {key} `{text}`"), fix);
    None
}

/// Reads one of two numbers, or reports a problem.
fn number(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    key: &str,
    known: [u16; 2],
) -> Option<u16> {
    let value = table.get(key)?;
    let found = match value.get_ref() {
        DeValue::Integer(number) => known.into_iter().find(|one| number.as_str() == one.to_string()),
        _ => None,
    };
    if found.is_some() {
        reader.taken(&format!("{location}.{key}"), value);
    } else {
        let [first, second] = known;
        let text = format!("`{location}.{key}` must be {first} or {second}");
        wrong(reader, location, key, value, &text, format!("use {key} = {second}, or remove the line"));
    }
    found
}

fn wrong(
    reader: &mut Reader<'_>,
    location: &str,
    key: &str,
    value: &Value<'_>,
    text: &str,
    fix: impl Into<String>,
) {
    reader.problem(&value.span(), text, fix);
    reader.lines.remove(&format!("{location}.{key}"));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str) -> (WireSpec, Vec<String>) {
        let (mut reader, table) = Reader::parse(Path::new("config.toml"), text);
        let wire = read_wire(&mut reader, "agents.x", table.get_ref());
        (wire, reader.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_protocol_key_is_parsed() {
        let (wire, problems) = read(
            "profile = \"banjo\"\nstrict = true\nframing = \"content-length\"\nprotocol = 2\n\
             model = \"m\"\nauto_commits = false\nfirst_turn = 1\ntrace = true\n\
             system_prompt = \"Be brief.\"\nreplace_system_prompt = true\n\
             [[providers]]\nid = \"main\"\napi_type = \"openai\"\nbase_url = \"https://llm.example\"\n\
             headers = { X-Key = \"k\" }\n[[providers]]\nid = \"other\"\noff = true\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        let expected = WireSpec {
            profile: Some(Profile::Banjo),
            is_strict: true,
            has_headers: true,
            protocol: 2,
            model: Some("m".to_owned()),
            auto_commits: Some(false),
            first_turn: 1,
            system_prompt: Some(SystemPrompt { text: "Be brief.".to_owned(), replaces: true }),
            is_traced: true,
            providers: vec![
                ProviderRequest {
                    id: "main".to_owned(),
                    target: Some(ProviderTarget {
                        api_type: "openai".to_owned(),
                        base_url: "https://llm.example".to_owned(),
                        headers: vec![("X-Key".to_owned(), "k".to_owned())],
                    }),
                },
                ProviderRequest { id: "other".to_owned(), target: None },
            ],
        };
        assert_eq!(wire, expected);
        assert_eq!(read("").0, WireSpec::default());
    }

    #[test]
    fn invalid_values_are_reported_with_a_fix() {
        let (_, problems) = read("[[providers]]\nid = \"main\"\n");
        assert!(problems[0].contains("incomplete provider"), "{}", problems[0]);
        let (wire, problems) =
            read("profile = \"banjoo\"\nframing = \"xml\"\nprotocol = 3\nfirst_turn = \"1\"\n");
        assert_eq!(wire, WireSpec::default());
        assert_eq!(problems.len(), 4);
        assert!(problems[0].contains("banjo"), "{}", problems[0]);
        assert!(problems[1].contains("content-length"), "{}", problems[1]);
        assert!(problems[2].contains("must be 1 or 2"), "{}", problems[2]);
    }
}
