//! Reads TOML leniently: every wrong value is told with its line, and everything else still counts.
//!
//! Duty: typed access to a parsed table, with problems collected on the way and the line of each value kept.
//! Not its duty: which keys there are and what they mean (`config`, `agents`, `keymap`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;
use super::nearest::advice;

/// A value with its place in the text.
pub type Value<'i> = Spanned<DeValue<'i>>;

/// Reads one file's text.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a Path,
    line_starts: Vec<usize>,
    /// What was wrong so far.
    pub problems: Vec<Problem>,
    /// The line of each value that was taken, by its dotted name.
    pub lines: BTreeMap<String, usize>,
}

impl<'a> Reader<'a> {
    /// Parses the text. Errors of syntax become problems; what could be read is in the table.
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

    /// The line of a place in the text, from 1.
    pub fn line(&self, span: &Range<usize>) -> usize {
        self.line_starts.partition_point(|start| *start <= span.start)
    }

    /// Notes a problem at a place.
    pub fn problem(&mut self, span: &Range<usize>, text: impl Into<String>, fix: impl Into<String>) {
        let line = Some(self.line(span));
        self.problems.push(Problem { file: self.file.to_owned(), line, text: text.into(), fix: fix.into() });
    }

    /// Tells keys that nobody knows, with the nearest ones that there are.
    pub fn unknown_keys(&mut self, table: &DeTable<'_>, place: &str, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            let otherwise = format!("remove it; known keys are {}", known.join(", "));
            let fix = advice(name, known.iter().copied(), &otherwise);
            self.problem(&key.span(), format!("unknown key `{name}` in {place}"), fix);
        }
    }

    /// A table, or a problem.
    pub fn table<'t, 'i>(&mut self, name: &str, value: &'t Value<'i>) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(name, value, "a table", &format!("[{name}] on a separate line"));
        }
        table
    }

    /// A text that is not empty, or a problem.
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

    /// `true` or `false`, or a problem.
    pub fn boolean(&mut self, name: &str, value: &Value<'_>) -> Option<bool> {
        let found = value.get_ref().as_bool();
        if found.is_some() {
            self.taken(name, value);
        } else {
            self.wrong_type(name, value, "true or false", &format!("{} = true", last(name)));
        }
        found
    }

    /// A whole number that is at least `least`, or a problem.
    pub fn number(&mut self, name: &str, value: &Value<'_>, least: u64) -> Option<u64> {
        let found = value
            .get_ref()
            .as_integer()
            .and_then(|number| u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok());
        match found {
            Some(number) if number >= least => {
                self.taken(name, value);
                Some(number)
            }
            _ if value.get_ref().as_integer().is_some() => {
                let fix = format!("use {} = {least} or more", last(name));
                self.problem(&value.span(), format!("`{name}` is out of range"), fix);
                None
            }
            _ => {
                self.wrong_type(name, value, "an integer", &format!("{} = {}", last(name), least.max(1)));
                None
            }
        }
    }

    /// A list of texts, or a problem. Items that are no text are told and left out.
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
                    self.wrong_type(name, item, "a list of strings", &format!("{} = [\"…\"]", last(name)))
                }
            }
        }
        Some(texts)
    }

    /// A table of texts (numbers and booleans are taken as they are written), in the file's order.
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

    /// Keeps the line of a value that is used.
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

/// Texts, whole numbers and booleans as text.
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
