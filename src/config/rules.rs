//! Reads `policy.rules`: a list of rules, each as text, or as a table with examples that are checked.

use super::read::{Reader, Value};
use crate::escape::visible;
use crate::model::{Rule, RuleAction, Rules};

/// The keys of a rule with examples.
const KEYS: [&str; 3] = ["rule", "matches", "not"];

/// Whose rules are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    /// Its rules can only deny and ask.
    Project,
}

/// Reads the rules. If one is invalid, none allows anything: what the invalid one denies is not known.
pub(super) fn read(reader: &mut Reader<'_>, value: &Value<'_>, author: Author) -> Rules {
    let Some(items) = value.get_ref().as_array() else {
        let fix = "use rules = ['allow run \"cargo test *\"']";
        reader.problem(&value.span(), "`policy.rules` must be a list of rules", fix);
        return Rules::default();
    };
    reader.taken("policy.rules", value);
    let mut rules = Vec::new();
    let mut are_valid = true;
    for item in items {
        match read_rule(reader, item) {
            Some(rule) if author == Author::Project && rule.action == RuleAction::Allow => {
                let text = format!(
                    "the rule `{}` is ignored: a project cannot allow anything",
                    visible(&rule.to_string())
                );
                reader.problem(&item.span(), text, "remove it, or add it to your own configuration");
            }
            Some(rule) => rules.push(rule),
            None => are_valid = false,
        }
    }
    if !are_valid {
        rules.retain(|rule: &Rule| rule.action != RuleAction::Allow);
    }
    Rules::new(rules)
}

/// Reads one rule and checks its examples, or adds a problem.
fn read_rule(reader: &mut Reader<'_>, item: &Value<'_>) -> Option<Rule> {
    let (table, text) = match (item.get_ref().as_table(), item.get_ref().as_str()) {
        (None, Some(text)) => (None, text.to_owned()),
        (Some(table), _) => {
            reader.unknown_keys(table, "a rule", &KEYS);
            let Some(value) = table.get("rule") else {
                reader.problem(&item.span(), "a rule has no `rule`", "add rule = 'ask run \"git push *\"'");
                return None;
            };
            (Some(table), reader.string("policy.rules.rule", value)?)
        }
        (None, None) => {
            let fix = "use 'allow run \"cargo test *\"', or a table with `rule`, `matches` and `not`";
            reader.problem(&item.span(), "a rule must be a string or a table", fix);
            return None;
        }
    };
    let fix = "correct it; until then, no rule allows anything";
    let rule = match Rule::parse(&text) {
        Ok(rule) => rule,
        Err(why) => {
            reader.problem(&item.span(), format!("the rule `{}` is invalid: {why}", visible(&text)), fix);
            return None;
        }
    };
    let mut is_valid = true;
    for (key, expected) in [("matches", true), ("not", false)] {
        let Some(value) = table.and_then(|table| table.get(key)) else { continue };
        let Some(examples) = reader.strings(&format!("policy.rules.{key}"), value) else {
            is_valid = false;
            continue;
        };
        for example in examples.iter().filter(|example| rule.matches_example(example) != expected) {
            let matches = if expected { "does not match" } else { "matches" };
            let text = format!("the rule `{}` {matches} its example `{}`", visible(&text), visible(example));
            reader.problem(&value.span(), text, fix);
            is_valid = false;
        }
    }
    is_valid.then_some(rule)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str, author: Author) -> (Vec<String>, Vec<String>) {
        let (mut reader, table) = Reader::parse(Path::new("/c.toml"), text);
        let rules = read(&mut reader, table.get_ref().get("rules").unwrap(), author);
        let problems = reader.problems.iter().map(ToString::to_string).collect();
        (rules.iter().map(ToString::to_string).collect(), problems)
    }

    #[test]
    fn rules_are_texts_or_have_examples() {
        let text = "rules = [\n'allow run \"ls *\"',\n{ rule = 'deny read \".env\"', matches = [\".env\", \"a/.env\"], \
                    not = [\"env\"] },\n{ rule = 'ask run \"git push *\"', matches = [\"git -C x push\"] }]";
        let (rules, problems) = parse(text, Author::User);
        assert_eq!(problems, [""; 0]);
        assert_eq!(rules, ["allow run \"ls *\"", "deny read \".env\"", "ask run \"git push *\""]);
    }

    #[test]
    fn a_wrong_example_is_reported_with_its_line() {
        let text = "rules = ['allow run \"pwd\"', 'deny run \"rm *\"',\n{ rule = 'allow run \"ls *\"', \
                    matches = [\"cat x\"],\nnot = [\"ls -l\"] }]";
        let (rules, problems) = parse(text, Author::User);
        assert_eq!(rules, ["deny run \"rm *\""], "no rule allows anything");
        assert!(
            problems[0].starts_with("/c.toml:2: the rule `allow run \"ls *\"` does not match"),
            "{problems:?}"
        );
        assert!(problems[1].starts_with("/c.toml:3: the rule `allow run \"ls *\"` matches"), "{problems:?}");
    }

    #[test]
    fn invalid_rules_disable_those_that_allow() {
        for (bad, why) in [
            ("'permit run x'", "must start with"),
            ("3", "a string or a table"),
            ("{ matches = [] }", "has no `rule`"),
            ("{ rule = 'deny run x', matches = 3 }", "must be a list of strings"),
        ] {
            let (rules, problems) =
                parse(&format!("rules = ['allow run ls', 'ask run x', {bad}]"), Author::User);
            assert_eq!(rules, ["ask run x"], "{bad}");
            assert!(problems[0].contains(why), "{problems:?}");
        }
        assert!(parse("rules = 'x'", Author::User).1[0].contains("must be a list of rules"));
    }

    #[test]
    fn a_project_cannot_allow() {
        let (rules, problems) = parse("rules = ['allow run ls', 'deny run x']", Author::Project);
        assert_eq!(rules, ["deny run x"]);
        assert!(problems[0].contains("a project cannot allow anything"), "{problems:?}");
    }
}
