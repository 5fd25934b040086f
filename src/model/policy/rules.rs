//! Rules of the user about commands, files and addresses: `allow run "cargo test *"`.
//!
//! [`Rules::judge`] is pure, and the running program and `parlor policy` share it. Any rule that denies wins, then any that
//! asks, then one that allows; neither the order of the rules nor how specific they are matters.
//!
//! A pattern for a command is compared with its words, never with its text. All commands of a line must be allowed, and all
//! files that it redirects to. An allowing rule matches only what is certain, and a denying or asking one also what may
//! be; see [`wrappers`] for what `*` does not stand for.

mod paths;
mod pattern;
pub(in crate::model) mod risk;
mod shell;
pub(in crate::model) mod suggest;
mod wrappers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paths::PathPattern;
use pattern::{Match, RunPattern, wild};
use shell::{Redirect, Word};
use wrappers::{Part, parts_of};

/// What a rule does. The greatest one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleAction {
    Allow,
    Ask,
    Deny,
}

/// A rule with what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub action: RuleAction,
    target: Target,
    /// Patterns of names.
    agent: Option<String>,
    mode: Option<String>,
    /// The folder of the session, or one above it.
    folder: Option<PathPattern>,
    is_remote: Option<bool>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Any,
    Run(RunPattern),
    Read(PathPattern),
    Write(PathPattern),
    /// A host.
    Fetch(String),
    /// An MCP server and its tool.
    Mcp(String),
}

/// What an agent requests.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    Run {
        line: &'a str,
        cwd: &'a Path,
    },
    Read(&'a Path),
    Write(&'a Path),
    Fetch(&'a str),
    /// `server/tool`.
    Mcp(&'a str),
    /// Something else, which only rules about everything match.
    Other,
}

/// Where a request comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleContext {
    pub agent: String,
    pub mode: String,
    /// The folder of the session.
    pub folder: PathBuf,
    pub home: Option<PathBuf>,
    pub is_remote: bool,
}

/// The decision about a request, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub action: RuleAction,
    /// The rule; `None`: no rule matches, or it is not certain that one does.
    pub rule: Option<String>,
    /// Why no rule allows it.
    pub reason: String,
    /// Whether a rule that denies or asks may match.
    pub is_doubtful: bool,
    /// What this is about.
    pub text: String,
    pub parts: Vec<Ruling>,
}

/// All rules of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules(Arc<[Rule]>);

impl Rules {
    pub fn new(rules: Vec<Rule>) -> Self {
        Self(rules.into())
    }

    /// These rules and those of a project, which can only narrow them.
    #[must_use]
    pub fn narrowed_by(&self, others: &Self) -> Self {
        let is_new = |rule: &&Rule| rule.action != RuleAction::Allow && !self.0.contains(rule);
        let narrowing = others.0.iter().filter(is_new);
        Self(self.0.iter().chain(narrowing).cloned().collect())
    }

    /// These rules and others of the user.
    #[must_use]
    pub fn with(&self, others: Vec<Rule>) -> Self {
        if others.is_empty() {
            return self.clone();
        }
        Self(self.0.iter().cloned().chain(others).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// Whether all of these requests are allowed by `former` too, as far as the texts of the rules show.
    pub fn is_narrower_than(&self, former: &Self) -> bool {
        let has = |rules: &Self, rule: &Rule| rules.0.contains(rule);
        self.0.iter().all(|rule| rule.action != RuleAction::Allow || has(former, rule))
            && former.0.iter().all(|rule| rule.action == RuleAction::Allow || has(self, rule))
    }

    /// Decides about a request. `None`: no rule is about it.
    pub fn judge(&self, subject: Subject<'_>, context: &RuleContext) -> Option<Ruling> {
        let rules: Vec<&Rule> = self.0.iter().filter(|rule| rule.applies(context)).collect();
        if rules.is_empty() {
            return None;
        }
        let judge = Judge { rules, context };
        let ruling = match subject {
            Subject::Run { line, cwd } => judge.line(line, cwd),
            Subject::Read(path) => judge.simple(path.display().to_string(), |target, action| match target {
                Target::Read(pattern) => pattern.matches(path, context, action),
                _ => false,
            }),
            Subject::Write(path) => judge.simple(path.display().to_string(), |target, action| match target {
                Target::Write(pattern) => pattern.matches(path, context, action),
                _ => false,
            }),
            Subject::Fetch(url) => judge.simple(url.to_owned(), |target, _| match (target, host_of(url)) {
                (Target::Fetch(pattern), Some(host)) => wild(pattern, &host),
                _ => false,
            }),
            Subject::Mcp(tool) => judge.simple(tool.to_owned(), |target, _| match target {
                Target::Mcp(pattern) => wild(pattern, tool),
                _ => false,
            }),
            Subject::Other => judge.simple(String::new(), |_, _| false),
        };
        (ruling.rule.is_some() || ruling.is_doubtful || !ruling.parts.is_empty()).then_some(ruling)
    }
}

/// The host of an address.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let host = host.split(':').next().filter(|host| !host.is_empty() && host.chars().all(is_plain))?;
    Some(host.trim_end_matches('.').to_ascii_lowercase())
}

/// The rules that apply in a session.
struct Judge<'a> {
    rules: Vec<&'a Rule>,
    context: &'a RuleContext,
}

impl Judge<'_> {
    fn of(&self, action: RuleAction) -> impl Iterator<Item = &Rule> {
        self.rules.iter().copied().filter(move |rule| rule.action == action)
    }

    /// A request that a rule matches or does not.
    fn simple(&self, text: String, matches: impl Fn(&Target, RuleAction) -> bool) -> Ruling {
        let found = [RuleAction::Deny, RuleAction::Ask, RuleAction::Allow].into_iter().find_map(|action| {
            self.of(action).find(|rule| rule.target == Target::Any || matches(&rule.target, action))
        });
        match found {
            Some(rule) => Ruling::by(rule, text),
            None => Ruling::unruled("no rule matches", text),
        }
    }

    fn line(&self, line: &str, cwd: &Path) -> Ruling {
        let about_all = |action| self.of(action).find(|rule| rule.target == Target::Any);
        if let Some(rule) = about_all(RuleAction::Deny) {
            return Ruling::by(rule, line.to_owned());
        }
        let (commands, whole) = match parts_of(line) {
            Ok(parts) => parts,
            Err(why) => {
                let is_doubtful = self.rules.iter().any(|rule| rule.action != RuleAction::Allow);
                return match about_all(RuleAction::Ask) {
                    Some(rule) => Ruling::by(rule, line.to_owned()),
                    None => Ruling { is_doubtful, ..Ruling::unruled(&why, line.to_owned()) },
                };
            }
        };
        // After `cd`, relative paths are not known.
        let moves = |part: &Part| {
            let program = part.command.words.first().map(|word| wrappers::base_name(&word.text));
            matches!(program, Some("cd" | "pushd" | "popd" | "chdir" | "z"))
        };
        let cwd = (!commands.iter().any(moves)).then_some(cwd);
        let of_commands = commands.iter().map(|part| self.command(part, cwd));
        let mut parts: Vec<Ruling> =
            of_commands.chain(whole.redirects.iter().map(|redirect| self.redirect(redirect, cwd))).collect();
        if let Some(rule) = about_all(RuleAction::Ask) {
            parts.push(Ruling::by(rule, line.to_owned()));
        }
        let worst = parts.iter().max_by_key(|part| (part.action, part.rule.is_some(), part.is_doubtful));
        let allowed = || parts.iter().find(|part| part.rule.is_some());
        let Some(decisive) = worst.filter(|part| part.action != RuleAction::Allow).or_else(allowed).cloned()
        else {
            return Ruling::unruled("no rule allows it", line.to_owned());
        };
        let is_doubtful = parts.iter().any(|part| part.is_doubtful);
        Ruling { text: line.to_owned(), is_doubtful, parts, ..decisive }
    }

    fn command(&self, part: &Part, cwd: Option<&Path>) -> Ruling {
        let text = part.command.text.clone();
        let mut doubt = None;
        for action in [RuleAction::Deny, RuleAction::Ask] {
            for rule in self.of(action) {
                let found = match &rule.target {
                    Target::Run(pattern) => pattern.may_match(&part.command),
                    Target::Read(pattern) | Target::Write(pattern) => {
                        let words = part.command.words.iter().skip(1).chain(&part.command.assignments);
                        words.map(|word| self.names(word, pattern, cwd)).max().unwrap_or(Match::No)
                    }
                    _ => Match::No,
                };
                match found {
                    Match::Yes => return Ruling::by(rule, text),
                    Match::Maybe => doubt = doubt.or(Some(rule)),
                    Match::No => {}
                }
            }
        }
        if let Some(rule) = doubt {
            let reason = format!("it may be what the rule `{rule}` is about");
            return Ruling { is_doubtful: true, ..Ruling::unruled(&reason, text) };
        }
        if !part.needs_rule {
            let reason = "the command that it runs is decided about".to_owned();
            return Ruling { action: RuleAction::Allow, reason, ..Ruling::unruled("", text) };
        }
        let words = part.command.words.as_slice();
        let program = words.first().map(|word| wrappers::base_name(&word.text)).unwrap_or_default();
        let goes_away = match words {
            [_] => true,
            [_, rest @ ..] => rest.iter().any(|word| !word.is_known || word.text.starts_with('-')),
            [] => false,
        };
        if program == "cd" && goes_away {
            return Ruling::unruled("it may leave the session's folder", text);
        }
        if program == "git" && cwd.is_none() {
            return Ruling::unruled(
                "git runs what the folder configures, and the folder is another one",
                text,
            );
        }
        let mut reason = "no rule allows it".to_owned();
        for rule in self.of(RuleAction::Allow) {
            if let Target::Run(pattern) = &rule.target {
                match pattern.certainly_matches(&part.command, |word| paths::is_outside(word, self.context)) {
                    Ok(true) => return Ruling::by(rule, text),
                    Ok(false) => {}
                    Err(why) => reason = format!("the rule `{rule}` does not allow it: {why}"),
                }
            }
        }
        Ruling::unruled(&reason, text)
    }

    /// Whether a word names a file of a pattern: as a whole, or after `=`, `@` or `:`.
    fn names(&self, word: &Word, pattern: &PathPattern, cwd: Option<&Path>) -> Match {
        if !word.is_known {
            return Match::Maybe;
        }
        let starts = word.text.match_indices(['=', '@', ':', '<', '>']).map(|(at, sign)| at + sign.len());
        let letters = word.text.starts_with('-').then_some(2);
        let mut found = Match::No;
        for start in [0].into_iter().chain(starts).chain(letters) {
            let Some(rest) = word.text.get(start..).filter(|rest| !rest.is_empty()) else { continue };
            match paths::resolve(rest, cwd, self.context) {
                Some(path) if pattern.matches(&path, self.context, RuleAction::Deny) => return Match::Yes,
                Some(_) => {}
                None => match pattern.matches_name(rest) {
                    Some(true) => return Match::Yes,
                    None if start == 0 && !word.text.starts_with('-') => found = Match::Maybe,
                    _ => {}
                },
            }
        }
        found
    }

    fn redirect(&self, redirect: &Redirect, cwd: Option<&Path>) -> Ruling {
        let text = redirect.text.clone();
        let known = redirect.target.as_known();
        if known.is_some_and(|path| matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"))
        {
            let reason = "it is not a file".to_owned();
            return Ruling { action: RuleAction::Allow, reason, ..Ruling::unruled("", text) };
        }
        let path = known.and_then(|path| paths::resolve(path, cwd, self.context));
        let Some(path) = path else {
            let is_doubtful = self.rules.iter().any(|rule| rule.action != RuleAction::Allow);
            return Ruling { is_doubtful, ..Ruling::unruled("the file is not known", text) };
        };
        let ruling = self.simple(text, |target, action| match target {
            Target::Write(pattern) if redirect.writes => pattern.matches(&path, self.context, action),
            Target::Read(pattern) if !redirect.writes => pattern.matches(&path, self.context, action),
            _ => false,
        });
        let is_plain_read = !redirect.writes && path.starts_with(&self.context.folder);
        match ruling.rule {
            None if is_plain_read => Ruling {
                action: RuleAction::Allow,
                reason: "it is in the session's folder".to_owned(),
                ..ruling
            },
            None => Ruling { reason: "no rule allows the file".to_owned(), ..ruling },
            // Programs run what is in such files, and the content is not known here.
            Some(_)
                if ruling.action == RuleAction::Allow
                    && redirect.writes
                    && paths::is_protected(&path, self.context) =>
            {
                Ruling::unruled("the file is protected", ruling.text)
            }
            Some(_) => ruling,
        }
    }
}

impl Ruling {
    fn by(rule: &Rule, text: String) -> Self {
        Self { rule: Some(rule.text.clone()), action: rule.action, ..Self::unruled("", text) }
    }

    fn unruled(reason: &str, text: String) -> Self {
        let (action, reason) = (RuleAction::Ask, reason.to_owned());
        Self { action, rule: None, reason, is_doubtful: false, text, parts: Vec::new() }
    }
}

impl RuleAction {
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Reads a rule: an action, a kind, a pattern in quotes, and conditions. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = pattern::split(text).ok_or("a quote is not closed")?;
        let mut words = words.iter().map(String::as_str);
        let action = match words.next() {
            Some("allow") => RuleAction::Allow,
            Some("ask") => RuleAction::Ask,
            Some("deny") => RuleAction::Deny,
            _ => return Err("it must start with `allow`, `ask` or `deny`".to_owned()),
        };
        let kind = words.next().unwrap_or_default();
        let mut pattern = || match words.next() {
            Some(pattern) if !pattern.trim().is_empty() => Ok(pattern.to_owned()),
            _ => Err(format!("a pattern in quotes must follow `{kind}`")),
        };
        let target = match kind {
            "any" if action == RuleAction::Allow => return Err("`allow any` is not a rule".to_owned()),
            "any" => Target::Any,
            "run" => Target::Run(RunPattern::parse(&pattern()?)?),
            "read" => Target::Read(PathPattern::parse(&pattern()?)?),
            "write" => Target::Write(PathPattern::parse(&pattern()?)?),
            "fetch" => Target::Fetch(pattern()?.to_ascii_lowercase()),
            "mcp" if action == RuleAction::Allow => {
                return Err("tools of MCP servers cannot be allowed: the agent names them, and parlor cannot check that"
                    .to_owned());
            }
            "mcp" => Target::Mcp(pattern()?),
            _ => return Err("the kind must be `run`, `read`, `write`, `fetch`, `mcp` or `any`".to_owned()),
        };
        if let (Target::Run(run), RuleAction::Allow) = (&target, action) {
            run.check_allow()?;
        }
        let mut rule = Self {
            action,
            target,
            agent: None,
            mode: None,
            folder: None,
            is_remote: None,
            text: text.trim().to_owned(),
        };
        for word in words {
            match word.split_once('=') {
                Some(("agent", name)) => rule.agent = Some(name.to_owned()),
                Some(("mode", name)) => rule.mode = Some(name.to_owned()),
                Some(("in", folder)) if folder.starts_with(['/', '~']) => {
                    rule.folder = Some(PathPattern::parse(folder)?);
                }
                None if word == "remote" => rule.is_remote = Some(true),
                None if word == "local" => rule.is_remote = Some(false),
                _ => {
                    let known = "`agent=…`, `mode=…`, `in=/folder`, `remote` or `local`";
                    return Err(format!("`{word}` is not a condition; use {known}"));
                }
            }
        }
        // A remote agent runs elsewhere, so a rule for it is written on purpose.
        if action == RuleAction::Allow && rule.is_remote.is_none() {
            rule.is_remote = Some(false);
        }
        Ok(rule)
    }

    fn applies(&self, context: &RuleContext) -> bool {
        let is_it = |pattern: &Option<String>, name: &str| match pattern {
            None => true,
            Some(pattern) if self.action == RuleAction::Allow => wild(pattern, name),
            Some(pattern) => wild(&pattern.to_lowercase(), &name.to_lowercase()),
        };
        is_it(&self.agent, &context.agent)
            && is_it(&self.mode, &context.mode)
            && self.is_remote.is_none_or(|is_remote| is_remote == context.is_remote)
            // A folder stands for what is in it.
            && self.folder.as_ref().is_none_or(|folder| folder.matches(&context.folder, context, RuleAction::Deny))
    }

    /// Whether the rule, without its conditions, is about an example: a command line, a path, an address or a tool.
    pub fn matches_example(&self, example: &str) -> bool {
        let alone = Self { agent: None, mode: None, folder: None, is_remote: None, ..self.clone() };
        let (folder, home) = (PathBuf::from("/home/user/project"), Some(PathBuf::from("/home/user")));
        let context = RuleContext { folder: folder.clone(), home, ..RuleContext::default() };
        let path = paths::resolve(example, Some(&folder), &context).unwrap_or_default();
        let subject = match &self.target {
            Target::Any => return true,
            Target::Run(_) => Subject::Run { line: example, cwd: &folder },
            Target::Read(_) => Subject::Read(&path),
            Target::Write(_) => Subject::Write(&path),
            Target::Fetch(_) => Subject::Fetch(example),
            Target::Mcp(_) => Subject::Mcp(example),
        };
        let ruling = Rules::new(vec![alone]).judge(subject, &context);
        ruling.is_some_and(|ruling| ruling.action == self.action && ruling.rule.is_some())
    }
}

#[cfg(test)]
mod tests;
