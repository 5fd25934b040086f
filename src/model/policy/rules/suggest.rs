//! Rules that would allow a request, the narrowest first. Whether one really does is for the caller to try.

use std::path::{Path, PathBuf};

use super::shell::Word;
use super::wrappers::{Part, parts_of};
use super::{Redirect, RuleContext, Subject, host_of, paths};
use crate::model::RequestId;

/// Maximum number of commands of a line for which rules are suggested.
const MAX_PARTS: usize = 5;

/// Counts the saved requests of an agent in a folder that rules would have allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchJob {
    /// The request for which the rules were suggested.
    pub request: RequestId,
    pub rules: Vec<String>,
    pub agent: String,
    pub folder: PathBuf,
    pub home: Option<PathBuf>,
    /// The folders of parlor's own files.
    pub own_folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleMatches {
    /// Number of requests in [`MATCH_DAYS`].
    pub all: usize,
    pub allowed: usize,
    /// The first ones that were allowed, for display.
    pub examples: Vec<String>,
}

/// How far back requests are searched for those that a rule would have allowed, in days.
pub const MATCH_DAYS: u32 = 30;

/// Sets of rules that may allow a request, each at least as wide as the one before.
pub fn suggestions(subject: Subject<'_>, context: &RuleContext) -> Vec<Vec<String>> {
    match subject {
        Subject::Run { line, cwd } => of_line(line, cwd, context),
        Subject::Read(path) => of_path("read", path, context),
        Subject::Write(path) => of_path("write", path, context),
        Subject::Fetch(url) => host_of(url).map(|host| vec![allow("fetch", &host)]).into_iter().collect(),
        Subject::Mcp(_) | Subject::Other => Vec::new(),
    }
}

fn of_line(line: &str, cwd: &Path, context: &RuleContext) -> Vec<Vec<String>> {
    let Ok((parts, whole)) = parts_of(line) else { return Vec::new() };
    let commands = parts.iter().filter(|part| part.needs_rule).map(of_command);
    let files = whole.redirects.iter().filter(|redirect| needs_rule(redirect));
    let file = |redirect: &Redirect| {
        let path = redirect.target.as_known().and_then(|path| paths::resolve(path, Some(cwd), context));
        path.and_then(|path| of_path("write", &path, context).into_iter().next()).unwrap_or_default()
    };
    let of_parts: Vec<Vec<String>> = commands.chain(files.map(file)).collect();
    if of_parts.len() > MAX_PARTS || of_parts.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let levels = of_parts.iter().map(Vec::len).max().unwrap_or(0);
    let at = |level: usize| {
        let mut rules: Vec<String> = Vec::new();
        for steps in &of_parts {
            let rule = steps.get(level.min(steps.len() - 1)).filter(|rule| !rules.contains(rule)).cloned();
            rules.extend(rule);
        }
        rules
    };
    (0..levels).map(at).collect()
}

fn needs_rule(redirect: &Redirect) -> bool {
    let is_device = |path: &str| path.starts_with("/dev/");
    redirect.writes && !redirect.target.as_known().is_some_and(is_device)
}

/// The command with all its words, with any words after the subcommand, and with any words.
fn of_command(part: &Part) -> Vec<String> {
    let words: Option<Vec<&str>> = part.command.words.iter().map(Word::as_known).collect();
    let Some(words) = words else { return Vec::new() };
    // A `*` in a rule would stand for any text.
    let is_plain = |word: &&str| !word.contains('*');
    let lead: Vec<&str> = words.iter().copied().take_while(is_plain).take(2).collect();
    let mut rules = Vec::new();
    if words.iter().all(is_plain) {
        rules.push(allow("run", &shell_words::join(&words)));
    }
    if let [program, subcommand] = lead.as_slice()
        && !subcommand.starts_with('-')
    {
        rules.push(allow("run", &format!("{} *", shell_words::join([program, subcommand]))));
    }
    if let Some(program) = lead.first() {
        rules.push(allow("run", &format!("{} *", shell_words::quote(program))));
    }
    rules
}

/// The file, the files of its folder, and all files of the session's folder.
fn of_path(kind: &str, path: &Path, context: &RuleContext) -> Vec<Vec<String>> {
    let Some(below) = path.strip_prefix(&context.folder).ok().and_then(Path::to_str) else {
        return Vec::new();
    };
    if below.is_empty() || below.contains('*') {
        return Vec::new();
    }
    let mut patterns = vec![format!("./{below}")];
    if let Some((folder, _)) = below.rsplit_once('/') {
        patterns.push(format!("./{folder}/*"));
    }
    patterns.push("./**".to_owned());
    patterns.iter().map(|pattern| vec![allow(kind, pattern)]).collect()
}

fn allow(kind: &str, pattern: &str) -> String {
    let needs_care = pattern.contains(['"', '\\', '$', '`']);
    let quoted = if needs_care { shell_words::quote(pattern).into_owned() } else { format!("\"{pattern}\"") };
    format!("allow {kind} {quoted}")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Rule, RuleAction, Rules};
    use super::*;

    fn context() -> RuleContext {
        RuleContext { folder: PathBuf::from("/w"), ..RuleContext::default() }
    }

    fn of(line: &str) -> Vec<String> {
        let subject = Subject::Run { line, cwd: Path::new("/w") };
        suggestions(subject, &context()).iter().map(|rules| rules.join(" + ")).collect()
    }

    #[test]
    fn the_narrowest_rule_comes_first() {
        assert_eq!(
            of("cargo test --lib"),
            ["allow run \"cargo test --lib\"", "allow run \"cargo test *\"", "allow run \"cargo *\""]
        );
        assert_eq!(of("ls -l"), ["allow run \"ls -l\"", "allow run \"ls *\""]);
        assert_eq!(
            of("cd src && ls > out.txt"),
            [
                "allow run \"cd src\" + allow run \"ls\" + allow write \"./out.txt\"",
                "allow run \"cd src *\" + allow run \"ls *\" + allow write \"./out.txt\"",
                "allow run \"cd *\" + allow run \"ls *\" + allow write \"./out.txt\"",
            ]
        );
    }

    #[test]
    fn a_star_of_the_command_is_in_no_rule() {
        assert_eq!(of("grep -r 'a*b' src"), ["allow run \"grep *\""]);
        assert_eq!(of("ls \"$DIR\""), [""; 0]);
        assert_eq!(of("if then"), [""; 0]);
    }

    #[test]
    fn quotes_survive_in_a_rule() {
        for line in ["echo 'a b' \"c'd\"", "printf '%s\\n' 'x$y'", "git commit -m 'Fix `x`'"] {
            let rules = suggestions(Subject::Run { line, cwd: Path::new("/w") }, &context());
            let exact = Rule::parse(&rules[0][0]).unwrap();
            let subject = Subject::Run { line, cwd: Path::new("/w") };
            let ruling = Rules::new(vec![exact]).judge(subject, &context()).unwrap();
            assert_eq!(ruling.action, RuleAction::Allow, "{line}: {rules:?}");
        }
    }

    #[test]
    fn files_are_suggested_below_the_folder_only() {
        let of = |path: &str| suggestions(Subject::Write(Path::new(path)), &context());
        let expected = ["allow write \"./src/a.rs\"", "allow write \"./src/*\"", "allow write \"./**\""];
        assert_eq!(of("/w/src/a.rs"), expected.map(|rule| vec![rule.to_owned()]));
        assert!(of("/etc/passwd").is_empty());
        let fetch = suggestions(Subject::Fetch("https://Docs.rs/x"), &context());
        assert_eq!(fetch, [vec!["allow fetch \"docs.rs\"".to_owned()]]);
    }
}
