//! The first prompt of a session, from the command line, a file, or standard input if that is not a terminal; and its
//! model and mode.

use std::io::{IsTerminal as _, Read};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::resume::with_wait_notice;
use crate::host::os::terminal;
use crate::runtime::print::Printer;

/// Maximum size of a first prompt in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The options for the first turn of a session.
#[derive(Debug, Clone, Default, Args)]
pub struct FirstTurn {
    /// First prompt, sent when the session is ready; piped text is appended
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// File with the first prompt
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,

    /// The settings of the session.
    #[command(flatten)]
    pub settings: FirstSettings,
}

/// The settings for the first turn of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct FirstSettings {
    /// Model to set before the first prompt: its id, or its name in the list of models
    #[arg(short, long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,

    /// Mode to set before the first prompt: its id, or its name in the list of modes
    #[arg(long, value_name = "MODE", value_parser = NonEmptyStringValueParser::new())]
    pub mode: Option<String>,
}

impl FirstTurn {
    /// Whether a prompt is given.
    pub fn has_prompt(&self) -> bool {
        self.prompt.is_some() || self.prompt_file.is_some()
    }

    /// The prompt of the options. Fails if it is empty, or if the file cannot be read as text.
    pub fn text(&self) -> anyhow::Result<Option<String>> {
        let (text, source) = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => (text.trim().to_owned(), "--prompt".to_owned()),
            (None, Some(path)) => {
                let name = path.display().to_string();
                let file = std::fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
                (read_text(file, &name)?, name)
            }
            (None, None) => return Ok(None),
        };
        if text.is_empty() {
            bail!("{source} is empty; write a prompt");
        }
        Ok(Some(text))
    }
}

/// Reads piped input, then replaces standard input by the terminal. Returns `None` if standard input is a terminal or
/// empty.
pub fn piped() -> anyhow::Result<Option<String>> {
    let input = std::io::stdin();
    if input.is_terminal() || !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    let tell_wait = || {
        let _ = Printer::stderr().print("Reading the prompt from standard input. Press Ctrl+C to quit.\n");
    };
    let text = with_wait_notice(|| read_text(input.lock(), "standard input"), tell_wait)?;
    terminal::replace_stdin().context("cannot read the keyboard")?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Joins the prompt of the options and the text that is piped in.
pub fn join(given: Option<String>, piped: Option<String>) -> Option<String> {
    match (given, piped) {
        (Some(given), Some(piped)) => Some(format!("{given}\n\n{piped}")),
        (given, piped) => given.or(piped),
    }
}

fn read_text(input: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{name} is larger than 1 MiB; name the file in the prompt, so that the agent reads it");
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
            // The first line may be indented.
            Ok(text.trim_end().trim_start_matches('\n').to_owned())
        }
        _ => bail!("{name} is not UTF-8 text; a prompt must be text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(content: &[u8]) -> Result<Option<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("task.md");
        std::fs::write(&path, content).unwrap();
        let first = FirstTurn { prompt_file: Some(path), ..FirstTurn::default() };
        first.text().map_err(|error| format!("{error:#}").replace(folder.path().to_str().unwrap(), ""))
    }

    #[test]
    fn a_prompt_file_is_text_of_limited_size() {
        assert_eq!(of_file(b"\xef\xbb\xbfFix it.\r\n  now\r\n\n"), Ok(Some("Fix it.\n  now".to_owned())));
        assert_eq!(of_file(b" \n"), Err("/task.md is empty; write a prompt".to_owned()));
        for binary in [&b"\x7fELF\0\0"[..], b"caf\xe9"] {
            let error = "/task.md is not UTF-8 text; a prompt must be text";
            assert_eq!(of_file(binary), Err(error.to_owned()));
        }
        let largest = vec![b'x'; 1 << 20];
        assert_eq!(of_file(&largest).unwrap().unwrap().len(), 1 << 20);
        assert!(of_file(&[&largest[..], b"x"].concat()).unwrap_err().contains("larger than 1 MiB"));
        let missing = FirstTurn { prompt_file: Some("/no/such".into()), ..FirstTurn::default() };
        assert!(format!("{:#}", missing.text().unwrap_err()).starts_with("cannot read /no/such: "));
    }

    #[test]
    fn piped_text_follows_the_prompt() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(join(text("Review this"), text("+ a")), text("Review this\n\n+ a"));
        assert_eq!(join(None, text("+ a")), text("+ a"));
        assert_eq!(join(text("Review this"), None), text("Review this"));
    }
}
