//! Lenient access to parsed TOML: typed readers that report each invalid value with its line and continue,
//! and record the line of each valid one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;
use super::nearest::advice;
use crate::escape::visible;
use crate::model::{Limit, Rule, RuleAction, Rules};

/// Settings of earlier versions, and why they have no effect any more.
const FORMER: [(&str, &str); 1] = [("[sessions].memory_mib", "remove it; sessions are read as a whole")];

/// A value with its position.
pub type Value<'i> = Spanned<DeValue<'i>>;

/// Reads a TOML file and collects its problems.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a Path,
    line_starts: Vec<usize>,
    pub problems: Vec<Problem>,
    /// The lines of valid values by dotted name.
    pub lines: BTreeMap<String, usize>,
}

impl<'a> Reader<'a> {
    /// Parses the text. Syntax errors become problems; the table has the valid parts.
    pub fn parse(file: &'a Path, text: &'a str) -> (Self, Spanned<DeTable<'a>>) {
        let line_starts =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        let mut reader =
            Self { file, line_starts: line_starts.collect(), problems: Vec::new(), lines: BTreeMap::new() };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| reader.line(&span));
            reader.problems.push(Problem {
                file: file.to_owned(),
                line,
                text: format!("invalid TOML: {}", one_line(error.message())),
                fix: "correct the line; the rest of the file is read as far as possible".to_owned(),
            });
        }
        (reader, table)
    }

    /// The line of a position, from 1.
    pub fn line(&self, span: &Range<usize>) -> usize {
        self.line_starts.partition_point(|start| *start <= span.start)
    }

    pub fn problem(&mut self, span: &Range<usize>, text: impl Into<String>, fix: impl Into<String>) {
        let line = Some(self.line(span));
        self.problems.push(Problem { file: self.file.to_owned(), line, text: text.into(), fix: fix.into() });
    }

    /// Reports unknown keys with the most similar known ones.
    pub fn unknown_keys(&mut self, table: &DeTable<'_>, location: &str, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            if let Some((_, why)) = FORMER.iter().find(|(former, _)| format!("{location}.{name}") == *former)
            {
                self.problem(&key.span(), format!("`{name}` has no effect"), *why);
                continue;
            }
            let otherwise = format!("remove it; known keys are {}", known.join(", "));
            let fix = advice(name, known.iter().copied(), &otherwise);
            self.problem(&key.span(), format!("unknown key `{name}` in {location}"), fix);
        }
    }

    pub fn table<'t, 'i>(&mut self, name: &str, value: &'t Value<'i>) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(name, value, "a table", &format!("[{name}] on a separate line"));
        }
        table
    }

    /// Reads a non-empty string, or adds a problem.
    pub fn string(&mut self, name: &str, value: &Value<'_>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => {
                self.taken(name, value);
                Some(text.to_owned())
            }
            Some(_) => {
                self.problem(&value.span(), format!("`{name}` is empty"), "set a value, or remove the line");
                None
            }
            None => {
                self.wrong_type(name, value, "a string", &format!("{} = \"…\"", last(name)));
                None
            }
        }
    }

    pub fn boolean(&mut self, name: &str, value: &Value<'_>) -> Option<bool> {
        let found = value.get_ref().as_bool();
        if found.is_some() {
            self.taken(name, value);
        } else {
            self.wrong_type(name, value, "true or false", &format!("{} = true", last(name)));
        }
        found
    }

    /// Reads an integer of at least `min`, or adds a problem.
    pub fn number(&mut self, name: &str, value: &Value<'_>, min: u64) -> Option<u64> {
        let found = value
            .get_ref()
            .as_integer()
            .and_then(|number| u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok());
        match found {
            Some(number) if number >= min => {
                self.taken(name, value);
                Some(number)
            }
            _ if value.get_ref().as_integer().is_some() => {
                let fix = format!("use {} = {min} or more", last(name));
                self.problem(&value.span(), format!("`{name}` is out of range"), fix);
                None
            }
            _ => {
                self.wrong_type(name, value, "an integer", &format!("{} = {}", last(name), min.max(1)));
                None
            }
        }
    }

    /// Reads a list of ports; other items are reported and ignored.
    pub fn ports(&mut self, name: &str, value: &Value<'_>) -> Vec<u16> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(name, value, "a list of ports", &format!("{} = [443]", last(name)));
            return Vec::new();
        };
        let mut ports = Vec::new();
        for item in items {
            match self.number(name, item, 1).map(u16::try_from) {
                Some(Ok(port)) => ports.push(port),
                Some(Err(_)) => {
                    self.problem(&item.span(), format!("`{name}` is out of range"), "use ports up to 65535");
                }
                None => {}
            }
        }
        self.taken(name, value);
        ports
    }

    /// Reads a list of strings; other items are reported and ignored.
    pub fn strings(&mut self, name: &str, value: &Value<'_>) -> Option<Vec<String>> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(name, value, "a list of strings", &format!("{} = [\"…\"]", last(name)));
            return None;
        };
        self.taken(name, value);
        let mut texts = Vec::new();
        for item in items {
            match plain_text(item.get_ref()) {
                Some(text) => texts.push(text),
                None => {
                    self.wrong_type(name, item, "a list of strings", &format!("{} = [\"…\"]", last(name)));
                }
            }
        }
        Some(texts)
    }

    /// Reads a table of strings in the file's order; numbers and booleans are accepted as written.
    pub fn pairs(&mut self, name: &str, value: &Value<'_>) -> Option<Vec<(String, String)>> {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(
                name,
                value,
                "a table of strings",
                &format!("{} = {{ NAME = \"value\" }}", last(name)),
            );
            return None;
        };
        let mut rows: Vec<(usize, (String, String))> = Vec::new();
        for (key, value) in table {
            let full = format!("{name}.{}", key.get_ref());
            match plain_text(value.get_ref()) {
                Some(text) => {
                    self.taken(&full, value);
                    rows.push((key.span().start, (key.get_ref().to_string(), text)));
                }
                None => self.wrong_type(&full, value, "a string", &format!("{} = \"…\"", key.get_ref())),
            }
        }
        rows.sort_by_key(|(start, _)| *start);
        Some(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// Records the line of a valid value.
    pub fn taken(&mut self, name: &str, value: &Value<'_>) {
        let line = self.line(&value.span());
        self.lines.insert(name.to_owned(), line);
    }

    fn wrong_type(&mut self, name: &str, value: &Value<'_>, wanted: &str, example: &str) {
        let found = value.get_ref().type_str();
        let article = if found.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
        self.problem(
            &value.span(),
            format!("`{name}` must be {wanted}, not {article} {found}"),
            format!("use {example}"),
        );
    }
}

fn plain_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Reads the limits; invalid ones are reported.
pub(super) fn read_budget(reader: &mut Reader<'_>, value: &Value<'_>) -> Vec<Limit> {
    let texts = reader.strings("budget", value).unwrap_or_default();
    let limits = texts.iter().filter_map(|text| match Limit::parse(text) {
        Ok(limit) => Some(limit),
        Err(why) => {
            let text = format!("invalid limit `{}` in `budget`: {why}", visible(text));
            reader.problem(&value.span(), text, "correct it, or remove it");
            None
        }
    });
    limits.collect()
}

/// The keys of a rule with examples.
const RULE_KEYS: [&str; 3] = ["rule", "matches", "not"];

/// Whose rules are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    /// Its rules can only deny and ask.
    Project,
}

/// Reads the rules. If one is invalid, none allows anything: what the invalid one denies is not known.
pub(super) fn read_rules(reader: &mut Reader<'_>, value: &Value<'_>, author: Author) -> Rules {
    let Some(items) = value.get_ref().as_array() else {
        let fix = "use rules = ['allow run \"cargo test *\"']";
        reader.problem(&value.span(), "`policy.rules` must be a list of rules", fix);
        return Rules::default();
    };
    reader.taken("policy.rules", value);
    let mut rules = Vec::new();
    let mut are_valid = true;
    for item in items {
        let problem_count = reader.problems.len();
        let rule = read_rule(reader, item);
        are_valid &= reader.problems.len() == problem_count;
        match rule {
            Some(rule) if author == Author::Project && rule.action == RuleAction::Allow => {
                let text = format!(
                    "the rule `{}` is ignored: a project cannot allow anything",
                    visible(&rule.to_string())
                );
                reader.problem(&item.span(), text, "remove it, or add it to your own configuration");
            }
            Some(rule) => rules.push(rule),
            None => {}
        }
    }
    if !are_valid {
        rules.retain(|rule: &Rule| rule.action != RuleAction::Allow);
    }
    Rules::new(rules)
}

/// Reads one rule and checks its examples, or adds a problem. A rule with a wrong example is returned: it may deny.
fn read_rule(reader: &mut Reader<'_>, item: &Value<'_>) -> Option<Rule> {
    let (table, text) = match (item.get_ref().as_table(), item.get_ref().as_str()) {
        (None, Some(text)) => (None, text.to_owned()),
        (Some(table), _) => {
            reader.unknown_keys(table, "a rule", &RULE_KEYS);
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
    for (key, expected) in [("matches", true), ("not", false)] {
        let Some(value) = table.and_then(|table| table.get(key)) else { continue };
        let examples = reader.strings(&format!("policy.rules.{key}"), value).unwrap_or_default();
        for example in examples.iter().filter(|example| rule.matches_example(example) != expected) {
            let matches = if expected { "does not match" } else { "matches" };
            let text = format!("the rule `{}` {matches} its example `{}`", visible(&text), visible(example));
            reader.problem(&value.span(), text, fix);
        }
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, author: Author) -> (Vec<String>, Vec<String>) {
        let (mut reader, table) = Reader::parse(Path::new("/c.toml"), text);
        let rules = read_rules(&mut reader, table.get_ref().get("rules").unwrap(), author);
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
            let expected: &[&str] =
                if bad.contains("= 3") { &["ask run x", "deny run x"] } else { &["ask run x"] };
            assert_eq!(rules, expected, "{bad}");
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
