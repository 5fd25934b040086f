//! Lenient access to parsed TOML: typed readers that report each invalid value with its line and continue,
//! and record the line of each valid one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;
use super::nearest::advice;

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
