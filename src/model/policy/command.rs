//! Command lines for comparison: those that an approved tool call shows, and those to be run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::{ContentBlock, TerminalCommand, ToolContent, ToolInput, ToolKind};

/// A command with everything that determines what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandAccess {
    /// The command line, without a wrapper such as `sh -c`.
    pub line: String,
    pub cwd: PathBuf,
    /// Variables that are added to the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
}

/// Maximum length of a command that can be approved, in bytes. Longer ones are not shown whole. Linux starts no program
/// with a longer argument. Source: execve(2), `MAX_ARG_STRLEN`.
pub const COMMAND_MAX_BYTES: usize = 128 << 10;

/// Shells whose `-c` argument is the command.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh"];

/// Variables that only affect the output of a command, not what it executes.
const PLAIN_VARIABLES: &[&str] = &[
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    "GIT_TERMINAL_PROMPT",
    "PYTHONUNBUFFERED",
    "PYTHONIOENCODING",
    "DEBIAN_FRONTEND",
    "GEMINI_CLI",
    "QWEN_CODE",
    "KIMI_CLI",
    "CLAUDECODE",
];

/// Variables that name a program, with their harmless values.
const PAGERS: &[(&str, &[&str])] =
    &[("PAGER", &["cat", ""]), ("GIT_PAGER", &["cat", ""]), ("MANPAGER", &["cat", ""])];

/// Prefixes of a command in a title: `Shell: ls`.
const TITLE_LEADS: &[&str] = &["", "$", "Shell:", "Bash:", "Run:", "Execute:", "Terminal:"];

/// Prefixes of a command in backticks.
const TEXT_LEADS: &[&str] =
    &["", "Run", "Run:", "Run command", "Run command:", "Execute", "Execute:", "Running", "Shell:"];

/// Prefix of one agent's permission requests. Source: kimi-cli, `acp/session.py`.
const ASK_LEAD: &str = "Requesting approval to perform:";

/// The command line that determines what runs: `LINE` of `sh -c LINE`, otherwise program and arguments with
/// shell quoting.
pub fn shell_line(command: &TerminalCommand) -> String {
    let name = command.command.rsplit_once('/').map_or(command.command.as_str(), |(folder, name)| {
        if matches!(folder, "/bin" | "/usr/bin" | "/usr/local/bin") { name } else { "" }
    });
    if SHELLS.contains(&name)
        && let [flag, line] = command.args.as_slice()
        && matches!(flag.as_str(), "-c" | "-lc" | "-cl")
    {
        return line.clone();
    }
    if command.args.is_empty() {
        return command.command.clone();
    }
    shell_words::join(std::iter::once(&command.command).chain(&command.args))
}

/// Whether the variables cannot change what a command executes. Values that may be paths do not qualify:
/// locales and terminal descriptions are read from files.
pub fn is_plain_environment(env: &[(String, String)]) -> bool {
    let is_plain_value = |value: &str| {
        value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:,@+".contains(c)) && !value.contains("..")
    };
    env.iter().all(|(name, value)| {
        let is_plain_name = PLAIN_VARIABLES.contains(&name.as_str()) || name.starts_with("LC_");
        is_plain_name && is_plain_value(value)
            || PAGERS.iter().any(|(pager, values)| pager == name && values.contains(&value.as_str()))
    })
}

/// The command lines that the user sees when approving a tool call: the command of its input; if there is
/// none, a title or text that consists of nothing but a command. Lines with hidden characters are excluded,
/// because the user did not see them.
pub fn approved_lines(
    kind: ToolKind,
    title: &str,
    content: &[ToolContent],
    input: &ToolInput,
) -> Vec<String> {
    let lines = match &input.command {
        Some(command) => unwrapped(command),
        None if !matches!(kind, ToolKind::Execute | ToolKind::Other) || !input.diffs.is_empty() => Vec::new(),
        None => {
            let texts: Vec<&str> = content
                .iter()
                .filter_map(|piece| match piece {
                    ToolContent::Block(ContentBlock::Text(text)) if text.len() <= COMMAND_MAX_BYTES => {
                        Some(text.trim())
                    }
                    _ => None,
                })
                .collect();
            let has_other = texts.len() != content.len();
            match texts.as_slice() {
                _ if has_other => Vec::new(),
                [] => of_title(title).filter(|line| is_one_line(line)).into_iter().collect(),
                [text] => of_text(text).into_iter().collect(),
                _ => Vec::new(),
            }
        }
    };
    let is_shown =
        |line: &String| !line.trim().is_empty() && line.len() <= COMMAND_MAX_BYTES && is_visible(line);
    lines.into_iter().filter(is_shown).collect()
}

/// The command that only the title of a call has, which is then shown in full.
pub fn command_in_title(
    kind: ToolKind,
    title: &str,
    content: &[ToolContent],
    input: &ToolInput,
) -> Option<String> {
    let is_only = kind == ToolKind::Execute && input.command.is_none() && input.diffs.is_empty();
    of_title(title).filter(|line| is_only && content.is_empty() && !line.is_empty())
}

fn is_one_line(title: &str) -> bool {
    !title.chars().any(char::is_control) && !title.contains("  ")
}

/// A command line, and the inner one of a wrapper: some agents show `/bin/sh -lc LINE`.
fn unwrapped(command: &str) -> Vec<String> {
    let mut lines = vec![command.to_owned()];
    if let Ok(parts) = shell_words::split(command)
        && let Some((program, args)) = parts.split_first()
        && args.len() == 2
    {
        let inner = shell_line(&TerminalCommand {
            command: program.clone(),
            args: args.to_vec(),
            ..Default::default()
        });
        // Without a wrapper, the inner line is the same.
        if args.last() == Some(&inner) {
            lines.push(inner);
        }
    }
    lines
}

fn of_title(title: &str) -> Option<String> {
    let title = title.trim();
    if let Some(line) = in_backticks(title) {
        return Some(line);
    }
    let lead = TITLE_LEADS.iter().rev().find(|lead| title.starts_with(**lead))?;
    title.strip_prefix(lead).map(|rest| rest.trim().to_owned())
}

fn of_text(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix("```")
        && let Some((language, code)) = rest.split_once('\n')
        && matches!(language.trim(), "" | "sh" | "bash" | "shell" | "console" | "zsh")
    {
        let code = code.strip_suffix("```")?;
        return (!code.contains("```")).then(|| code.trim().to_owned());
    }
    in_backticks(text.strip_prefix(ASK_LEAD).map_or(text, str::trim))
}

/// The `ls` of ``Run command `ls` ``.
fn in_backticks(text: &str) -> Option<String> {
    let (lead, rest) = text.split_once('`')?;
    let line = rest.strip_suffix('`')?;
    TEXT_LEADS.contains(&lead.trim()).then(|| line.to_owned())
}

/// Whether a line can be shown as it is.
pub fn is_shown_in_full(line: &str) -> bool {
    line.len() <= COMMAND_MAX_BYTES && is_visible(line)
}

/// Whether the line has no invisible characters.
pub(super) fn is_visible(line: &str) -> bool {
    let is_hidden = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t')
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    !line.chars().any(is_hidden)
}
