//! `parlor policy`: lists the rules, explains what they decide about a command, and tries them on saved sessions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::output::print;
use super::sessions;
use crate::config::settings::RULES;
use crate::config::{Config, Origin, Problem, Surroundings};
use crate::model::{Rule, RuleAction, RuleContext, Rules, Ruling, Subject, risks_of};
use crate::runtime::print::Printer;
use crate::runtime::saved_requests::Source;
use crate::store::{ListFilter, Store};
use crate::ui::dialogs::risk_texts;
use crate::ui::text::one_line;

mod saved;

/// Subcommands of `parlor policy`.
#[derive(Debug, Clone, Subcommand)]
pub enum PolicyJob {
    /// List the rules of the configuration and of the project
    List,
    /// Explain what the rules decide about a command: `allow`, `ask` or `deny`, then each part with its rule
    ///
    /// The exit code is 0 for `allow`, 3 for `ask`, 4 for `deny`, and 1 for an error.
    Explain {
        #[command(flatten)]
        draft: Draft,
        /// Name of the agent that asks
        #[arg(long = "for", value_name = "AGENT", default_value = "")]
        agent: String,
        /// The agent runs on another machine
        #[arg(long)]
        remote: bool,
        /// The command: one argument is a command line, several are its words
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// List what the agents of saved sessions asked for, and who decided
    Log {
        /// Only requests since a date, such as 2026-01-31, or an age, such as 12h, 30d or 8w
        #[arg(long, value_name = "TIME", default_value = "30d")]
        since: String,
    },
    /// Show which requests of saved sessions additional rules would decide differently
    Test {
        #[command(flatten)]
        draft: Draft,
        /// Only requests since a date, such as 2026-01-31, or an age, such as 12h, 30d or 8w
        #[arg(long, value_name = "TIME", default_value = "30d")]
        since: String,
    },
}

/// Rules in addition to those of the configuration.
#[derive(Debug, Clone, Default, Args)]
pub struct Draft {
    /// Add a rule that allows, such as 'run "cargo test *"' (repeatable)
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Add a rule that asks (repeatable)
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,
    /// Add a rule that denies (repeatable)
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
}

impl Draft {
    /// The rules of the configuration with these.
    fn with(&self, config: &Config) -> anyhow::Result<Rules> {
        let mut rules: Vec<Rule> = config.rules.iter().cloned().collect();
        for (word, texts) in [("allow", &self.allow), ("ask", &self.ask), ("deny", &self.deny)] {
            for text in texts {
                let text = format!("{word} {}", text.strip_prefix(word).unwrap_or(text).trim_start());
                rules.push(Rule::parse(&text).map_err(|why| anyhow!("invalid rule `{text}`: {why}"))?);
            }
        }
        Ok(Rules::new(rules))
    }
}

/// The exit code for a decision.
fn exit_code(action: RuleAction) -> u8 {
    match action {
        RuleAction::Allow => 0,
        RuleAction::Ask => 3,
        RuleAction::Deny => 4,
    }
}

/// Where a subcommand runs.
#[derive(Debug)]
pub struct Place<'a> {
    pub folder: &'a Path,
    pub data_dir: &'a Path,
    /// The folders of parlor's own files.
    pub own_folders: Vec<PathBuf>,
}

/// Runs a subcommand. Returns the exit code.
pub fn run(
    job: &PolicyJob,
    config: &Config,
    problems: &[Problem],
    place: &Place<'_>,
    out: &mut Printer<'_>,
) -> anyhow::Result<u8> {
    let (folder, home) = (place.folder, Surroundings::of_process().home);
    let (text, code) = match job {
        PolicyJob::List => (list(config, problems), 0),
        PolicyJob::Log { since } => {
            let store = sessions::open(place.data_dir)?;
            (saved::log(&source(&store, since, home, place)?)?, 0)
        }
        PolicyJob::Test { draft, since } => {
            let store = sessions::open(place.data_dir)?;
            (saved::test(&source(&store, since, home, place)?, &config.rules, &draft.with(config)?)?, 0)
        }
        PolicyJob::Explain { draft, agent, remote, command } => {
            let line = match command.as_slice() {
                [line] => line.clone(),
                words => shell_words::join(words),
            };
            let context = RuleContext {
                agent: agent.clone(),
                mode: String::new(),
                folder: folder.to_owned(),
                home,
                is_remote: *remote,
            };
            let ruling = draft.with(config)?.judge(Subject::Run { line: &line, cwd: folder }, &context);
            let action = ruling.as_ref().map_or(RuleAction::Ask, |ruling| ruling.action);
            let mut text = explanation(ruling.as_ref());
            for risk in risk_texts(&risks_of(&line, folder, &context)) {
                let _ = writeln!(text, "  risk   {risk}");
            }
            (text, exit_code(action))
        }
    };
    print(out, &text)?;
    Ok(code)
}

fn source<'a>(
    store: &'a Store,
    since: &str,
    home: Option<PathBuf>,
    place: &Place<'_>,
) -> anyhow::Result<Source<'a>> {
    let since_ms = sessions::time::parse(since, sessions::time::now_ms())?;
    let filter = ListFilter { with_children: true, ..ListFilter::default() };
    Ok(Source { store, since_ms, filter, home, own_folders: place.own_folders.clone() })
}

/// The decision, then each part with its rule or the reason why there is none.
fn explanation(ruling: Option<&Ruling>) -> String {
    let Some(ruling) = ruling else { return "ask\n  no rule matches\n".to_owned() };
    let mut text = format!("{}\n", ruling.action.word());
    let whole = std::slice::from_ref(ruling);
    for part in if ruling.parts.is_empty() { whole } else { ruling.parts.as_slice() } {
        let why = part.rule.as_ref().unwrap_or(&part.reason);
        let _ = writeln!(text, "  {:<5}  {}: {}", part.action.word(), one_line(&part.text), one_line(why));
    }
    text
}

/// The rules, one on each line, after the place that they are from.
fn list(config: &Config, problems: &[Problem]) -> String {
    let mut text = String::new();
    let of_project = config.project.as_ref().map(|project| &project.rules);
    let is_of_project = |rule: &Rule| of_project.is_some_and(|rules| rules.iter().any(|other| other == rule));
    for rule in config.rules.iter() {
        let origin = match config.origin(RULES) {
            _ if is_of_project(rule) => "project".to_owned(),
            Origin::File { line } => format!("configuration, line {line}"),
            _ => "configuration".to_owned(),
        };
        let _ = writeln!(text, "{}  ({origin})", one_line(&rule.to_string()));
    }
    if text.is_empty() {
        text.push_str("No rules. Add them to the list policy.rules of the configuration.\n");
    }
    for problem in problems.iter().filter(|problem| problem.text.contains("rule")) {
        let _ = writeln!(text, "# {}", one_line(&problem.to_string()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(job: &PolicyJob, rules: &[&str]) -> (u8, String) {
        let rules = rules.iter().map(|text| Rule::parse(text).unwrap()).collect();
        let config = Config { rules: Rules::new(rules), ..Config::default() };
        let mut text = Vec::new();
        let code = run(job, &config, &[], &place(), &mut Printer::new(&mut text)).unwrap();
        (code, String::from_utf8(text).unwrap())
    }

    fn place() -> Place<'static> {
        Place { folder: Path::new("/w"), data_dir: Path::new("/none"), own_folders: Vec::new() }
    }

    fn explain(allow: &[&str], deny: &[&str], command: &[&str]) -> PolicyJob {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let draft = Draft { allow: owned(allow), deny: owned(deny), ..Draft::default() };
        PolicyJob::Explain { draft, agent: String::new(), remote: false, command: owned(command) }
    }

    #[test]
    fn a_command_is_explained_part_by_part() {
        let job = explain(&["run \"cargo test *\""], &[], &["cargo test | head"]);
        let (code, text) = run_with(&job, &["allow run \"ls *\""]);
        assert_eq!(
            text,
            "ask\n  allow  cargo test: allow run \"cargo test *\"\n  ask    head: no rule allows it\n"
        );
        assert_eq!(code, 3);
        let (code, text) = run_with(&explain(&[], &["run \"rm *\""], &["rm", "a b"]), &[]);
        assert_eq!(
            (code, text.as_str()),
            (4, "deny\n  deny   rm 'a b': deny run \"rm *\"\n  risk   Deletes or overwrites: rm 'a b'\n")
        );
        let (code, text) = run_with(&explain(&[], &[], &["ls -l"]), &["allow run \"ls *\""]);
        assert_eq!((code, text.as_str()), (0, "allow\n  allow  ls -l: allow run \"ls *\"\n"));
        let (code, text) = run_with(&explain(&[], &[], &["ls"]), &[]);
        assert_eq!((code, text.as_str()), (3, "ask\n  no rule matches\n"));
    }

    #[test]
    fn rules_are_listed_with_their_origin() {
        let (code, text) = run_with(&PolicyJob::List, &["allow run \"ls *\"", "deny read \".env\""]);
        assert_eq!(code, 0);
        assert_eq!(text, "allow run \"ls *\"  (configuration)\ndeny read \".env\"  (configuration)\n");
        assert!(run_with(&PolicyJob::List, &[]).1.starts_with("No rules."));
    }

    #[test]
    fn an_invalid_rule_is_an_error() {
        let job = explain(&["run \"git *\""], &[], &["ls"]);
        let mut text = Vec::new();
        let done = run(&job, &Config::default(), &[], &place(), &mut Printer::new(&mut text));
        assert!(done.unwrap_err().to_string().contains("would stand for code"));
    }
}
