//! Splits a command line into its simple commands and redirections.
//!
//! The grammar finds the structure. Words are read again here, from their source text, and whatever the two do not agree
//! on is refused, as is everything that is not on a list: a line that is not understood is asked about.

use tree_sitter::{Node, Parser};

use crate::model::policy::command::is_visible;

/// Maximum length of a line that is parsed, in bytes.
pub(super) const LINE_MAX_BYTES: usize = 10_000;

/// Maximum number of opening parentheses and nested statements. The parser needs long for more of them.
const MAX_NESTED: usize = 40;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The text, without quotes; if it is not known, the part of it that is known, from the start.
    pub(super) text: String,
    pub(super) is_known: bool,
    /// Whether it can become no word, or several.
    pub(super) can_split: bool,
    /// Whether it has a variable of the environment, such as `$HOME`.
    pub(super) has_environment: bool,
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Command {
    pub(super) assignments: Vec<Word>,
    pub(super) words: Vec<Word>,
    /// The source text.
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) target: Word,
    pub(super) writes: bool,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    pub(super) commands: Vec<Command>,
    pub(super) redirects: Vec<Redirect>,
}

impl Word {
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_known: true, can_split: false, has_environment: false }
    }

    pub(super) fn unknown(can_split: bool) -> Self {
        Self { is_known: false, can_split, ..Self::known("") }
    }

    /// The text, if it is known.
    pub(super) fn as_known(&self) -> Option<&str> {
        self.is_known.then_some(self.text.as_str())
    }
}

/// Parses a line. The error says what is not understood.
pub(super) fn parse(line: &str) -> Result<Line, String> {
    if line.len() > LINE_MAX_BYTES {
        return Err(format!("it is longer than {LINE_MAX_BYTES} bytes"));
    }
    if !is_visible(line) {
        return Err("it has invisible characters".to_owned());
    }
    if line.matches('(').count() > MAX_NESTED {
        return Err("it is nested too deeply".to_owned());
    }
    let mut parser = Parser::new();
    let is_set = parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_ok();
    let tree = parser.parse(line, None).filter(|_| is_set).ok_or("it cannot be parsed")?;
    let root = tree.root_node();
    if root.has_error() {
        return Err("its syntax is not understood".to_owned());
    }
    let mut walk = Walk { source: line, line: Line::default(), depth: 0 };
    // The root starts at its first token.
    walk.gap(0, root.start_byte(), true)?;
    walk.gap(root.end_byte(), line.len(), true)?;
    walk.statement(root)?;
    if walk.line.commands.is_empty() && walk.line.redirects.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(walk.line)
}

struct Walk<'a> {
    source: &'a str,
    line: Line,
    depth: usize,
}

impl<'a> Walk<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// Checks that only blanks are between two nodes.
    fn gap(&self, start: usize, end: usize, takes_newline: bool) -> Result<(), String> {
        let text = self.source.get(start..end).unwrap_or("?").replace("\\\n", " ");
        let is_blank = |c: char| matches!(c, ' ' | '\t') || takes_newline && c == '\n';
        if text.chars().all(is_blank) { Ok(()) } else { Err(format!("`{}` is not understood", text.trim())) }
    }

    /// The children of a node, which must cover it but for blanks.
    fn children<'t>(&self, node: Node<'t>, takes_newline: bool) -> Result<Vec<Node<'t>>, String> {
        let children: Vec<Node<'t>> = (0..node.child_count()).filter_map(|index| node.child(index)).collect();
        let mut end = node.start_byte();
        for child in &children {
            self.gap(end, child.start_byte(), takes_newline)?;
            end = child.end_byte();
        }
        self.gap(end, node.end_byte(), takes_newline)?;
        Ok(children)
    }

    fn refused<T>(&self, node: Node<'_>) -> Result<T, String> {
        let shown: String = self.text(node).chars().take(40).collect();
        Err(format!("`{}` is not understood", shown.trim()))
    }

    fn statement(&mut self, node: Node<'_>) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_NESTED {
            return Err("it is nested too deeply".to_owned());
        }
        match node.kind() {
            "command" => self.command(node)?,
            "variable_assignment" => {
                let assignments = vec![self.word(node)?];
                let text = self.text(node).to_owned();
                self.line.commands.push(Command { assignments, words: Vec::new(), text });
            }
            "program"
            | "list"
            | "pipeline"
            | "redirected_statement"
            | "subshell"
            | "compound_statement"
            | "negated_command"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "for_statement"
            | "do_group"
            | "variable_assignments" => {
                for child in self.children(node, true)? {
                    self.part(child)?;
                }
            }
            _ => return self.refused(node),
        }
        self.depth -= 1;
        Ok(())
    }

    /// A part of a compound statement.
    fn part(&mut self, node: Node<'_>) -> Result<(), String> {
        match node.kind() {
            ";" | "&&" | "||" | "|" | "|&" | "&" | "\n" | "(" | ")" | "{" | "}" | "!" | "if" | "then"
            | "fi" | "elif" | "else" | "while" | "until" | "do" | "done" | "for" | "in" | "variable_name" => {
                Ok(())
            }
            "comment" => self.comment(node),
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => self.redirect(node),
            kind if is_word(kind) => self.word(node).map(|_| ()),
            _ => self.statement(node),
        }
    }

    /// A comment begins where a word could begin, and ends with its line.
    fn comment(&self, node: Node<'_>) -> Result<(), String> {
        let before = self.source.get(..node.start_byte()).and_then(|text| text.chars().next_back());
        let begins = before.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')'));
        let after =
            self.source.get(node.end_byte()..).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'));
        let text = self.text(node);
        if begins && after && text.starts_with('#') && !text.contains('\n') {
            Ok(())
        } else {
            self.refused(node)
        }
    }

    fn command(&mut self, node: Node<'_>) -> Result<(), String> {
        let mut command = Command { text: self.text(node).to_owned(), ..Command::default() };
        let position = self.line.commands.len();
        let mut last_end = None;
        for child in self.children(node, false)? {
            let is_redirect = matches!(child.kind(), "file_redirect" | "herestring_redirect");
            // `a2>b` is the word `a2`, not a file descriptor.
            let is_number = self.text(child).starts_with(|c: char| c.is_ascii_digit());
            if last_end == Some(child.start_byte()) && (!is_redirect || is_number) {
                return self.refused(node);
            }
            last_end = Some(child.end_byte());
            match child.kind() {
                "variable_assignment" if command.words.is_empty() => {
                    command.assignments.push(self.word(child)?);
                }
                "command_name" => match self.children(child, false)?.as_slice() {
                    [word] => command.words.push(self.word(*word)?),
                    _ => return self.refused(child),
                },
                _ if is_redirect => self.redirect(child)?,
                _ => command.words.push(self.word(child)?),
            }
        }
        // Before those in its substitutions.
        self.line.commands.insert(position.min(self.line.commands.len()), command);
        Ok(())
    }

    fn redirect(&mut self, node: Node<'_>) -> Result<(), String> {
        if node.kind() == "heredoc_redirect" {
            return self.heredoc(node);
        }
        let text = self.text(node).to_owned();
        let (mut writes, mut duplicates) = (None, false);
        for child in self.children(node, false)? {
            match child.kind() {
                "file_descriptor" if writes.is_none() => {}
                "<" => writes = Some(false),
                // Opens it to read and write.
                ">" | ">>" | ">|" | "&>" | "&>>" | "<>" => writes = Some(true),
                ">&" | "<&" => (writes, duplicates) = (Some(child.kind() == ">&"), true),
                "<<<" => {
                    self.gap(node.start_byte(), child.start_byte(), false)?;
                    duplicates = true;
                    writes = Some(false);
                }
                _ => {
                    let target = self.word(child)?;
                    let is_number = target.as_known().is_some_and(|text| {
                        text == "-" || !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
                    });
                    let Some(writes) = writes.take() else { return self.refused(node) };
                    let is_text = node.kind() == "herestring_redirect";
                    if !(duplicates && (is_number || is_text)) {
                        self.line.redirects.push(Redirect { target, writes, text: text.clone() });
                    }
                }
            }
        }
        Ok(())
    }

    /// A here-document. Without quotes, its text must have nothing that is expanded.
    fn heredoc(&mut self, node: Node<'_>) -> Result<(), String> {
        let (mut start, mut body, mut end) = ("", "", "");
        for child in self.children(node, true)? {
            match child.kind() {
                "<<" | "<<-" | "file_descriptor" => {}
                "heredoc_start" => start = self.text(child),
                "heredoc_body" => body = self.text(child),
                "heredoc_end" => end = self.text(child).trim(),
                // A word here belongs to the command before.
                kind if is_word(kind) => return self.refused(child),
                _ => self.part(child)?,
            }
        }
        let name = start.trim_matches(['\'', '"']);
        let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_quoted = start.len() == name.len() + 2
            && (start.starts_with('\'') && start.ends_with('\'')
                || start.starts_with('"') && start.ends_with('"'));
        let is_closed_before = body.lines().any(|line| line.trim_start_matches('\t') == name);
        let has_expansion = body.contains(['$', '`', '\\']);
        if !is_plain || end != name || is_closed_before || !is_quoted && (has_expansion || start != name) {
            return self.refused(node);
        }
        Ok(())
    }

    /// Reads a word, and the commands that are substituted in it.
    fn word(&mut self, node: Node<'_>) -> Result<Word, String> {
        if !is_word(node.kind()) && node.kind() != "variable_assignment" {
            return self.refused(node);
        }
        let mut holes = Vec::new();
        self.holes(node, &mut holes)?;
        read_word(self.source, node.start_byte(), node.end_byte(), &holes)
            .ok_or_else(|| format!("the word `{}` is not understood", self.text(node)))
    }

    /// Finds the expansions of a word, and the commands in them.
    fn holes(&mut self, node: Node<'_>, holes: &mut Vec<(usize, usize)>) -> Result<(), String> {
        let text = self.text(node);
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match node.kind() {
            "command_substitution" => {
                let is_backquoted = text.starts_with('`') && text.ends_with('`') && text.len() > 1;
                if !(text.starts_with("$(") && text.ends_with(')')) && (!is_backquoted || text.contains('\\'))
                {
                    return self.refused(node);
                }
                self.substituted(node)?;
            }
            "process_substitution" => self.substituted(node)?,
            "simple_expansion" => {}
            "expansion" => {
                let inner = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
                if !inner.is_some_and(is_name) {
                    return self.refused(node);
                }
            }
            "arithmetic_expansion" | "array" | "subscript" => return self.refused(node),
            _ => {
                self.depth += 1;
                if self.depth > MAX_NESTED {
                    return Err("it is nested too deeply".to_owned());
                }
                for index in 0..node.child_count() {
                    if let Some(child) = node.child(index) {
                        self.holes(child, holes)?;
                    }
                }
                self.depth -= 1;
                return Ok(());
            }
        }
        holes.push((node.start_byte(), node.end_byte()));
        Ok(())
    }

    fn substituted(&mut self, node: Node<'_>) -> Result<(), String> {
        for child in self.children(node, true)? {
            match child.kind() {
                "$(" | "`" | "<(" | ">(" | ")" => {}
                _ => self.part(child)?,
            }
        }
        Ok(())
    }
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "concatenation"
            | "number"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "brace_expression"
    )
}

/// Removes the quotes of a word. `None` if it is not a single word for this reader.
fn read_word(source: &str, start: usize, end: usize, holes: &[(usize, usize)]) -> Option<Word> {
    let text = source.get(start..end)?;
    let mut word = Word::known("");
    let mut quote = None;
    let mut skip_to = start;
    let mut chars = text.char_indices().map(|(at, c)| (at + start, c)).peekable();
    let mut is_ansi = false;
    while let Some((at, c)) = chars.next() {
        if at < skip_to {
            continue;
        }
        if let Some((_, hole_end)) = holes.iter().find(|(hole, _)| *hole == at) {
            if quote == Some('\'') || *hole_end > end {
                return None;
            }
            let expansion = source.get(at..*hole_end)?;
            let is_list = expansion.contains(['@', '*']) && !expansion.starts_with("$(");
            let is_file = expansion.starts_with(['<', '>']);
            let name = expansion.trim_start_matches(['$', '{']);
            word.has_environment |= name.starts_with(|c: char| c.is_ascii_uppercase());
            unknown(&mut word, (quote.is_none() || is_list) && !is_file);
            skip_to = *hole_end;
            continue;
        }
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => {
                quote = None;
                is_ansi = false;
            }
            (Some('\''), '\\') if is_ansi => {
                chars.next();
            }
            // The fish shell reads it as a quote in the text.
            (Some('\''), '\\') if chars.peek().is_some_and(|(_, next)| *next == '\'') => return None,
            (Some('\''), _) => push(&mut word, c),
            (_, '$' | '`') => {
                let next = chars.peek().map(|(_, next)| *next);
                match (quote, next) {
                    (None, Some('\'')) => {
                        unknown(&mut word, false);
                        is_ansi = true;
                    }
                    // Not an expansion: `s/a$/b/`.
                    (Some(_), Some('"' | ' ' | '/' | '|' | ')')) | (None, None | Some('/')) if c == '$' => {
                        push(&mut word, c);
                    }
                    _ => return None,
                }
            }
            (Some('"'), '\\') => match chars.peek().copied() {
                Some((_, next @ ('$' | '`' | '"' | '\\'))) => {
                    chars.next();
                    push(&mut word, next);
                }
                Some((_, '\n')) => {
                    chars.next();
                }
                _ => push(&mut word, c),
            },
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => match chars.next()? {
                (_, '\n') => {}
                (_, next) => push(&mut word, next),
            },
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')') => return None,
            // Not expanded: the placeholder of find and xargs.
            (None, '{') if text.get(at - start..)?.starts_with("{}") => push(&mut word, c),
            (None, '*' | '?' | '[' | '{') => unknown(&mut word, true),
            (None, '#') if at == start => return None,
            // The zsh shell replaces it by the path of a program.
            (None, '=') if at == start => unknown(&mut word, true),
            _ => push(&mut word, c),
        }
    }
    (quote.is_none() && skip_to <= end).then_some(word)
}

fn push(word: &mut Word, c: char) {
    if word.is_known {
        word.text.push(c);
    }
}

fn unknown(word: &mut Word, can_split: bool) {
    word.is_known = false;
    word.can_split |= can_split;
}
