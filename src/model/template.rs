//! Prompt templates: Markdown files that are offered as slash commands.
//!
//! A file has an optional front matter (`description`, `argument-hint`) between lines of `---`, then the text of the
//! prompt. A prompt that calls a template is edited, queued and saved as it was typed; `host::templates` reads the
//! file when the prompt is sent.
//! Invariant: arguments are inserted once; placeholders in an argument stay text.

use std::fmt;
use std::path::PathBuf;

/// Where a template comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateSource {
    /// The folder `prompts` next to the user's configuration.
    User,
    /// The folder `.parlor/prompts` of the session's folder.
    Project,
}

impl TemplateSource {
    /// The prefix that selects it: `/user:review`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// A template as it is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateInfo {
    /// The name without the slash and the prefix; `dir:name` for a file in a folder.
    pub name: String,
    pub source: TemplateSource,
    pub description: String,
    /// Placeholder for the arguments; `None` if it uses none.
    pub hint: Option<String>,
}

/// A template of a project that the user has not decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreviewedTemplate {
    pub name: String,
    pub file: PathBuf,
    pub text: String,
    pub answer_file: PathBuf,
}

/// The templates for a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateList {
    /// Those that can be used, by name; the user's before those of the project.
    pub offered: Vec<TemplateInfo>,
    /// Those of the project that the user has to review first.
    pub unreviewed: Vec<UnreviewedTemplate>,
    /// The files that cannot be used, with the reasons.
    pub problems: Vec<String>,
    pub is_loaded: bool,
}

impl TemplateList {
    /// Whether there is a template of this name, reviewed or not.
    pub fn has(&self, name: &str, source: Option<TemplateSource>) -> bool {
        let is_source = |it| source.is_none_or(|source| source == it);
        self.offered.iter().any(|template| template.name == name && is_source(template.source))
            || is_source(TemplateSource::Project)
                && self.unreviewed.iter().any(|template| template.name == name)
    }
}

/// The call of a template in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCall {
    pub name: String,
    /// `None`: the user's template, or else that of the project.
    pub source: Option<TemplateSource>,
    pub arguments: String,
    /// The folder whose templates may be used; `None` if it has none.
    pub project: Option<PathBuf>,
}

/// A template file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    pub description: String,
    pub hint: Option<String>,
    /// The text of the prompt, with placeholders.
    pub body: String,
}

/// Whether a text can be the name of a template. Each part of it is the name of a file or folder.
pub fn is_template_name(name: &str) -> bool {
    name.split(':').all(is_template_name_part)
}

/// Whether a file or folder of this name can be called.
pub fn is_template_name_part(part: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    !part.is_empty() && !part.starts_with('.') && part.chars().all(is_allowed)
}

/// Parses a template file. Without a description, the first line of the text describes it.
pub fn parse_template(text: &str) -> Template {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let (head, body) = front_matter(&text).unwrap_or(("", &text));
    let mut template = Template { body: body.trim().to_owned(), ..Template::default() };
    for line in head.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = unquoted(value.trim());
        match key.trim() {
            "description" => value.clone_into(&mut template.description),
            "argument-hint" => template.hint = Some(value.to_owned()).filter(|hint| !hint.is_empty()),
            _ => {}
        }
    }
    if template.description.is_empty() {
        let first = template.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        template.description = first.trim_start_matches('#').trim().to_owned();
    }
    if template.hint.is_none() && pieces(&template.body).iter().any(|piece| !matches!(piece, Piece::Text(_)))
    {
        template.hint = Some("[arguments]".to_owned());
    }
    template
}

/// Splits the text after the front matter.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n")?;
    if let Some(body) = rest.strip_prefix("---\n") {
        return Some(("", body));
    }
    let end = rest.find("\n---\n").or_else(|| rest.ends_with("\n---").then(|| rest.len() - 4))?;
    Some((rest.get(..end)?, rest.get(end + 4..)?))
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// A part of the text of a template.
enum Piece<'a> {
    Text(&'a str),
    /// `$ARGUMENTS`
    All,
    /// `$1` to `$9`, from 0.
    Number(usize),
}

/// Splits the text at its placeholders. `$$` is a dollar sign; a number of several digits is an amount.
fn pieces(body: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('$') {
        found.push(Piece::Text(before));
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let number = after.bytes().next().filter(|digit| digits == 1 && *digit != b'0');
        if let Some(tail) = after.strip_prefix("ARGUMENTS") {
            found.push(Piece::All);
            rest = tail;
        } else if let (Some(digit), Some(tail)) = (number, after.get(1..)) {
            found.push(Piece::Number(usize::from(digit - b'1')));
            rest = tail;
        } else {
            found.push(Piece::Text("$"));
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    found.push(Piece::Text(rest));
    found
}

/// The text of a prompt: the template with its arguments. Arguments follow the text if it has no placeholder.
pub fn expand_template(body: &str, arguments: &str) -> String {
    let arguments = arguments.trim();
    let words = words_of(arguments);
    let pieces = pieces(body);
    let has_placeholder = pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)));
    let text = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::All => arguments.to_owned(),
        Piece::Number(index) => words.get(*index).cloned().unwrap_or_default(),
    };
    let mut expanded: String = pieces.iter().map(text).collect();
    if !has_placeholder && !arguments.is_empty() {
        expanded = format!("{expanded}\n\n{arguments}");
    }
    expanded.trim().to_owned()
}

/// Splits arguments at spaces. A word in quotes is one argument; other quotes are text, as in `don't`.
fn words_of(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments.trim_start();
    while !rest.is_empty() {
        let quoted = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')).and_then(|quote| {
            let (word, after) = rest.get(1..)?.split_once(quote)?;
            (after.is_empty() || after.starts_with(char::is_whitespace)).then_some((word, after))
        });
        let (word, after) =
            quoted.unwrap_or_else(|| rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())));
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

impl fmt::Display for TemplateCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Some(source) => write!(f, "/{}:{}", source.prefix(), self.name),
            None => write!(f, "/{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_describes_a_template() {
        let text = "---\ndescription: \"Review a file\"\nargument-hint: <file> [focus]\nmodel: x\n---\n\nReview $1.\n";
        let template = parse_template(text);
        assert_eq!(
            template,
            Template {
                description: "Review a file".into(),
                hint: Some("<file> [focus]".into()),
                body: "Review $1.".into()
            }
        );
        let plain = parse_template("\u{feff}# Fix it\r\n\r\nNow.\r\n");
        assert_eq!((plain.description.as_str(), plain.body.as_str()), ("Fix it", "# Fix it\n\nNow."));
        assert_eq!(plain.hint, None);
        assert_eq!(parse_template("Do $2").hint.as_deref(), Some("[arguments]"));
        for open in ["---\ndescription: x\nno end", "--- \nx"] {
            assert_eq!(parse_template(open).body, open, "text without an end of the front matter");
        }
        assert_eq!(parse_template("---\n---\nx").body, "x");
        assert_eq!(parse_template("---\ndescription: x\n---").body, "");
    }

    #[test]
    fn arguments_are_inserted_once() {
        for (body, arguments, expected) in [
            ("Review $ARGUMENTS now", "a b", "Review a b now"),
            ("$1 and $2, not $3", "one 'two words'", "one and two words, not"),
            ("$1", "$ARGUMENTS $2", "$ARGUMENTS"),
            ("see @\"$1\"", "'my file.rs' x", "see @\"my file.rs\""),
            ("$1|$2", "don't stop", "don't|stop"),
            ("$1|$2|$3", "#12 \"open 'x y'", "#12|\"open|x y"),
            ("costs $100, $0 and $$1", "x", "costs $100, $0 and $1\n\nx"),
            ("Say hi", "  to Ann ", "Say hi\n\nto Ann"),
            ("Say hi", " ", "Say hi"),
            ("$", "", "$"),
            ("$é $ARGUMENTS$1", "ü", "$é üü"),
        ] {
            assert_eq!(expand_template(body, arguments), expected, "{body} {arguments}");
        }
    }

    #[test]
    fn names_cannot_lead_out_of_the_folder() {
        for name in ["review", "git:commit", "a.b", "naïve_1"] {
            assert!(is_template_name(name), "{name}");
        }
        for name in ["", ":", "a:", "..", ".hidden", "a/b", "a:..:b", "usr/bin/x", "a b", "a\u{202e}"] {
            assert!(!is_template_name(name), "{name}");
        }
    }
}
