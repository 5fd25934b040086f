//! Tips for options of other programs: what parlor has instead.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options of other agents and clients, and the tip for them.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &["-p", "--print", "-e", "--exec", "--headless", "--non-interactive"],
        "`parlor --plain --prompt TEXT < /dev/null` prints the answer and ends; `parlor --prompt TEXT` opens the screen",
    ),
    (&["-i", "-q", "--prompt-interactive", "--query"], "pass the first prompt with `--prompt TEXT`"),
    (
        &["-C", "--cd", "--cwd", "--dir", "--directory", "--workdir", "--workspace"],
        "pass the folder as an argument: `parlor FOLDER`",
    ),
    (&["-s", "--session", "--session-id"], "resume a session with `--resume SESSION`"),
    (&["--fork", "--fork-session"], "choose the session with `--resume`, and fork it in the list"),
    (&["--permission-mode", "--approval-mode"], "pass the mode of the agent with `--mode MODE`"),
    (
        &[
            "--yolo",
            "--full-auto",
            "--allow-all",
            "--approve-all",
            "--auto-approve",
            "--dangerously-skip-permissions",
            "--dangerously-bypass-approvals-and-sandbox",
        ],
        "parlor has no such mode; `--mode MODE` chooses a mode of the agent that asks less",
    ),
    (&["-v", "-d", "--verbose", "--debug"], "`--log-file FILE` writes the protocol log"),
    (&["--url", "--server", "--remote"], "connect to a remote agent with `--connect URL`"),
    (&["--add-folder", "--include-directories"], "add a folder with `--add-dir DIR`"),
    (
        &["--output-format", "--json"],
        "`parlor sessions export SESSION --format json` prints a session as JSON",
    ),
];

/// Replaces the tips of an error about an unknown option, where parlor has something else for it.
pub fn with_advice(mut error: clap::Error) -> clap::Error {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => option.clone(),
        _ => return error,
    };
    // A search already covers what the option of the list adds.
    let is_of_search = option == "--all";
    let known = OPTIONS.iter().find(|(names, _)| names.contains(&option.as_str())).map(|(_, tip)| *tip);
    if let Some(tip) =
        known.or(is_of_search.then_some("all folders are included; `--folder DIR` limits them"))
    {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::super::Cli;
    use super::*;

    fn reported(args: &[&str]) -> String {
        let line = std::iter::once("parlor").chain(args.iter().copied());
        with_advice(Cli::try_parse_from(line).unwrap_err()).to_string()
    }

    #[test]
    fn options_of_other_programs_are_answered_with_those_of_parlor() {
        for (names, tip) in OPTIONS {
            for name in *names {
                let reported = reported(&[name, "x"]);
                assert!(reported.contains(&format!("unexpected argument '{name}'")), "{reported}");
                assert_eq!(reported.matches("tip: ").count(), 1, "{reported}");
                assert!(reported.contains(tip), "{reported}");
            }
        }
        assert!(reported(&["sessions", "search", "--all", "x"]).contains("`--folder DIR` limits them"));
        assert!(reported(&["--folders"]).contains("unexpected argument '--folders'"));
    }

    #[test]
    fn tips_name_existing_options() {
        let command = Cli::command();
        let export =
            command.find_subcommand("sessions").and_then(|jobs| jobs.find_subcommand("export")).unwrap();
        let has = |command: &clap::Command, name: &str| {
            command.get_arguments().any(|arg| arg.get_long() == Some(name))
        };
        let words = OPTIONS.iter().flat_map(|(_, tip)| tip.split([' ', '`', ';']));
        for name in words.filter_map(|word| word.strip_prefix("--")) {
            assert!(has(&command, name) || has(export, name), "--{name}");
        }
    }
}
