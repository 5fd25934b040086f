//! Patterns of paths: a name for files anywhere, or a path from the session's folder, the home folder (`~/`) or the root.
//! `*` stands for any text in a name, `**` for any number of folders.

use std::path::{Component, Path, PathBuf};

use super::pattern::{climbs, wild};
use super::shell::Word;
use super::{RuleAction, RuleContext};
use crate::model::Policy;
use crate::model::policy::protected::{folded, protection_of};

/// Maximum number of `**` in a pattern.
const MAX_DEEP: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    base: Base,
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Anywhere,
    Session,
    Home,
    Root,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (base, rest) = match text {
            "~" => (Base::Home, ""),
            _ if text.starts_with("~/") => (Base::Home, text.get(2..).unwrap_or_default()),
            _ if text.starts_with('/') => (Base::Root, text),
            _ => {
                let rest = text.strip_prefix("./").unwrap_or(text);
                let is_name = rest == text && !text.trim_end_matches('/').contains('/');
                (if is_name && text != "**" { Base::Anywhere } else { Base::Session }, rest)
            }
        };
        let names: Vec<String> =
            rest.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect();
        if names.iter().any(|name| name == "..") {
            return Err("a path cannot have `..`".to_owned());
        }
        if names.iter().any(|name| name.contains("**") && name != "**") {
            return Err("`**` must be a part of the path of its own".to_owned());
        }
        if names.iter().filter(|name| *name == "**").count() > MAX_DEEP {
            return Err(format!("a path can have at most {MAX_DEEP} `**`"));
        }
        Ok(Self { base, names })
    }

    /// A rule that allows matches the path itself, others also what is in it, and names that some file systems do not
    /// tell apart.
    pub(super) fn matches(&self, path: &Path, context: &RuleContext, action: RuleAction) -> bool {
        let is_strict = action == RuleAction::Allow;
        let base = match self.base {
            Base::Home => context.home.as_deref(),
            Base::Session => Some(context.folder.as_path()),
            Base::Anywhere if is_strict => Some(context.folder.as_path()),
            Base::Anywhere | Base::Root => Some(Path::new("/")),
        };
        let Some(below) = base.and_then(|base| path.strip_prefix(base).ok()) else { return false };
        let name = |part: Component<'_>| match part {
            Component::Normal(name) if is_strict => Some(name.to_string_lossy().into_owned()),
            Component::Normal(name) => Some(folded(name)),
            _ => None,
        };
        let Some(names) = below.components().map(name).collect::<Option<Vec<String>>>() else {
            return !is_strict;
        };
        let mut patterns = self.names.clone();
        if !is_strict {
            patterns = patterns.iter().map(|name| folded(name.as_ref())).collect();
        }
        if self.base == Base::Anywhere {
            patterns.insert(0, "**".to_owned());
        }
        if is_strict {
            return is_match(&patterns, &names);
        }
        (0..=names.len()).any(|end| names.get(..end).is_some_and(|names| is_match(&patterns, names)))
    }

    /// Whether the pattern is about a file whose folder is not known. `None`: it depends on the folder.
    pub(super) fn matches_name(&self, path: &str) -> Option<bool> {
        let pattern = self.names.first().filter(|_| self.base == Base::Anywhere)?;
        let pattern = folded(pattern.as_ref());
        Some(path.split('/').any(|name| wild(&pattern, &folded(name.as_ref()))))
    }
}

fn is_match(patterns: &[String], names: &[String]) -> bool {
    match (patterns.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((pattern, rest)), _) if pattern == "**" => {
            (0..=names.len()).any(|skipped| names.get(skipped..).is_some_and(|names| is_match(rest, names)))
        }
        (Some((pattern, patterns)), Some((name, names))) => wild(pattern, name) && is_match(patterns, names),
        _ => false,
    }
}

/// The path of a word. `None`: it cannot be known.
pub(super) fn resolve(word: &str, cwd: Option<&Path>, context: &RuleContext) -> Option<PathBuf> {
    let path = match word.strip_prefix('~') {
        Some("") => context.home.clone()?,
        Some(rest) if rest.starts_with('/') => context.home.as_ref()?.join(rest.trim_start_matches('/')),
        Some(_) => return None,
        None if word.starts_with('/') => PathBuf::from(word),
        None => cwd?.join(word),
    };
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            // A link before it leads elsewhere.
            Component::ParentDir => return None,
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// Whether a word may name something outside the session's folder.
pub(super) fn is_outside(word: &Word, context: &RuleContext) -> bool {
    let is_path_outside = |text: &str| {
        let is_device = matches!(text, "/dev/null" | "/dev/stdout" | "/dev/stderr");
        let is_absolute = text.starts_with(['/', '~']) && !is_device;
        climbs(text) || is_absolute && !Path::new(text).starts_with(&context.folder)
    };
    let is_text = word.text.contains(char::is_whitespace);
    let value = word.text.split_once('=').map(|(_, value)| value);
    word.has_environment || !is_text && (is_path_outside(&word.text) || value.is_some_and(is_path_outside))
}

/// Whether writes to the file always need confirmation.
pub(super) fn is_protected(path: &Path, context: &RuleContext) -> bool {
    let policy = Policy { home: context.home.clone(), ..Policy::default() };
    protection_of(path, Some(context.folder.as_path()).filter(|folder| path.starts_with(folder)), &policy)
        .is_some()
}
