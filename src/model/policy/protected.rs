//! Files that other programs execute or trust: every write to them needs confirmation.
//!
//! Names are compared ignoring case and characters that some file systems ignore.

use std::ffi::OsStr;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::Policy;
use crate::model::worktrees_beside;

/// Why a file is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// It is part of a git repository's data, or configures git.
    Git,
    /// Editors, package managers and other tools execute it.
    Tool,
    Agent,
    /// Shells and other programs execute it on startup.
    Startup,
    /// It contains keys or login settings.
    Keys,
    Own,
    /// It, or its folder, is hidden and at the top of the session's folder, where many tools look for files that they run.
    Hidden,
    /// It has other names (hard links), which a write changes too, and which may be anywhere.
    Linked,
    /// The session's folder is `/`, the home folder or a parent of it.
    WideRoot,
}

impl Protection {
    pub fn description(self) -> &'static str {
        match self {
            Self::Git => "Version control runs commands from this file.",
            Self::Tool => "Development tools run commands from this file.",
            Self::Agent => "This file configures an agent.",
            Self::Startup => "Programs run this file or read their settings from it.",
            Self::Keys => "This file contains credentials or login settings.",
            Self::Own => "This is a parlor file.",
            Self::Hidden => "Tools may run commands from this hidden file.",
            Self::Linked => "This file has other names (hard links), which change with it.",
            Self::WideRoot => "The session's folder is your home folder or a parent of it.",
        }
    }
}

/// Folder names, at any place in a path.
const FOLDERS: &[(&str, Protection)] = &[
    (".git", Protection::Git),
    ("git~1", Protection::Git),
    (".githooks", Protection::Git),
    (".husky", Protection::Git),
    (".vscode", Protection::Tool),
    (".idea", Protection::Tool),
    (".fleet", Protection::Tool),
    (".zed", Protection::Tool),
    (".devcontainer", Protection::Tool),
    (".direnv", Protection::Tool),
    (".yarn", Protection::Tool),
    (".mvn", Protection::Tool),
    (".claude", Protection::Agent),
    (".codex", Protection::Agent),
    (".copilot", Protection::Agent),
    (".cursor", Protection::Agent),
    (".gemini", Protection::Agent),
    (".hermes", Protection::Agent),
    (".kimi", Protection::Agent),
    (".opencode", Protection::Agent),
    (".openhands", Protection::Agent),
    (".openoxide", Protection::Agent),
    (".qwen", Protection::Agent),
    (".vibe", Protection::Agent),
    (".hg", Protection::Git),
    (".jj", Protection::Git),
    (".svn", Protection::Git),
    (".git-hooks", Protection::Git),
    (".lefthook", Protection::Git),
    (".vs", Protection::Tool),
    (".nova", Protection::Tool),
    (".vim", Protection::Tool),
    (".nvim", Protection::Tool),
    (".mise", Protection::Tool),
    (".bundle", Protection::Tool),
    (".settings", Protection::Tool),
    (".gdbinit.d", Protection::Tool),
    (".ctags.d", Protection::Tool),
    (".circleci", Protection::Tool),
    (".github", Protection::Tool),
    (".venv", Protection::Tool),
    ("venv", Protection::Tool),
    ("site-packages", Protection::Tool),
    ("node_modules", Protection::Tool),
    (".agents", Protection::Agent),
    (".amp", Protection::Agent),
    (".augment", Protection::Agent),
    (".clinerules", Protection::Agent),
    (".continue", Protection::Agent),
    (".factory", Protection::Agent),
    (".goose", Protection::Agent),
    (".junie", Protection::Agent),
    (".kiro", Protection::Agent),
    (".pi", Protection::Agent),
    (".roo", Protection::Agent),
    (".trae", Protection::Agent),
    (".windsurf", Protection::Agent),
    (".docker", Protection::Keys),
    (".azure", Protection::Keys),
    (".parlor", Protection::Own),
    (".ssh", Protection::Keys),
    (".gnupg", Protection::Keys),
    (".aws", Protection::Keys),
    (".kube", Protection::Keys),
    ("launchagents", Protection::Startup),
];

/// File names, in any folder.
const FILES: &[(&str, Protection)] = &[
    (".gitattributes", Protection::Git),
    (".gitmodules", Protection::Git),
    (".gitconfig", Protection::Git),
    (".pre-commit-config.yaml", Protection::Git),
    (".pre-commit-config.yml", Protection::Git),
    ("lefthook.yml", Protection::Git),
    (".lefthook.yml", Protection::Git),
    ("lefthook-local.yml", Protection::Git),
    (".lefthook-local.yml", Protection::Git),
    (".hgrc", Protection::Git),
    (".envrc", Protection::Tool),
    (".npmrc", Protection::Tool),
    (".pnpmfile.cjs", Protection::Tool),
    (".mise.toml", Protection::Tool),
    (".rtx.toml", Protection::Tool),
    (".exrc", Protection::Tool),
    (".vimrc", Protection::Tool),
    (".gvimrc", Protection::Tool),
    (".nvimrc", Protection::Tool),
    (".nvim.lua", Protection::Tool),
    (".dir-locals.el", Protection::Tool),
    (".emacs", Protection::Tool),
    (".gdbinit", Protection::Tool),
    (".lldbinit", Protection::Tool),
    (".tmux.conf", Protection::Tool),
    (".screenrc", Protection::Tool),
    (".curlrc", Protection::Tool),
    (".wgetrc", Protection::Tool),
    (".pypirc", Protection::Tool),
    (".pdbrc", Protection::Tool),
    ("commondir", Protection::Git),
    ("config.worktree", Protection::Git),
    ("gitdir", Protection::Git),
    ("lefthook.yaml", Protection::Git),
    (".lefthook.yaml", Protection::Git),
    ("lefthook.toml", Protection::Git),
    (".lefthook.toml", Protection::Git),
    ("lefthook.json", Protection::Git),
    (".overcommit.yml", Protection::Git),
    ("mise.toml", Protection::Tool),
    (".bazelrc", Protection::Tool),
    (".gitlab-ci.yml", Protection::Tool),
    ("_vimrc", Protection::Tool),
    ("_exrc", Protection::Tool),
    (".lvimrc", Protection::Tool),
    ("latexmkrc", Protection::Tool),
    (".latexmkrc", Protection::Tool),
    (".pnp.cjs", Protection::Tool),
    (".pnpmfile.mjs", Protection::Tool),
    ("rust-toolchain.toml", Protection::Tool),
    ("rust-toolchain", Protection::Tool),
    ("sitecustomize.py", Protection::Tool),
    ("usercustomize.py", Protection::Tool),
    (".pryrc", Protection::Tool),
    (".irbrc", Protection::Tool),
    (".ghci", Protection::Tool),
    (".rprofile", Protection::Tool),
    (".ocamlinit", Protection::Tool),
    (".sqliterc", Protection::Tool),
    (".psqlrc", Protection::Tool),
    ("opencode.json", Protection::Agent),
    ("opencode.jsonc", Protection::Agent),
    ("crush.json", Protection::Agent),
    (".crush.json", Protection::Agent),
    (".mcp.json", Protection::Agent),
    (".bashrc", Protection::Startup),
    (".bash_profile", Protection::Startup),
    (".bash_login", Protection::Startup),
    (".bash_logout", Protection::Startup),
    (".bash_aliases", Protection::Startup),
    (".profile", Protection::Startup),
    (".zshrc", Protection::Startup),
    (".zshenv", Protection::Startup),
    (".zprofile", Protection::Startup),
    (".zlogin", Protection::Startup),
    (".zlogout", Protection::Startup),
    (".kshrc", Protection::Startup),
    (".mkshrc", Protection::Startup),
    (".cshrc", Protection::Startup),
    (".tcshrc", Protection::Startup),
    (".login", Protection::Startup),
    (".inputrc", Protection::Startup),
    (".xinitrc", Protection::Startup),
    (".xprofile", Protection::Startup),
    (".xsession", Protection::Startup),
    (".xsessionrc", Protection::Startup),
    (".pam_environment", Protection::Startup),
    (".netrc", Protection::Keys),
    (".git-credentials", Protection::Keys),
];

/// The names of protected files and folders, as a file system may have them.
pub fn protected_names() -> impl Iterator<Item = &'static str> {
    FOLDERS.iter().chain(FILES).map(|(name, _)| *name).chain([".Rprofile"])
}

/// Prefixes of file names.
const PREFIXES: &[(&str, Protection)] = &[(".yarnrc", Protection::Tool), (".aider.conf", Protection::Agent)];

/// Ends of file names: projects of editors, and files that Python runs at its start.
const SUFFIXES: &[(&str, Protection)] = &[
    (".code-workspace", Protection::Tool),
    (".sublime-project", Protection::Tool),
    (".pth", Protection::Tool),
];

/// Starts and ends of names of files with keys.
const KEY_STARTS: &[&str] =
    &["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", ".env", "credentials", "secrets."];
const KEY_ENDS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];

/// Files whose name starts with a dot and that no tool runs or obeys beyond leaving out files; also all names that end
/// with `ignore`.
const HARMLESS: &[&str] = &[".gitkeep", ".keep", ".editorconfig", ".mailmap", ".nojekyll", ".env.example"];

const HOME_FOLDERS: &[&str] = &[".config", ".local", "bin", "library"];

/// Why a write to a file needs confirmation; `None` if it does not. All paths must be resolved. `root` is the
/// session's folder that contains the file.
pub fn protection_of(path: &Path, root: Option<&Path>, policy: &Policy) -> Option<Protection> {
    if policy.own_folders.iter().any(|own| is_in(path, own)) {
        return Some(Protection::Own);
    }
    let names = folded_names(path);
    let find = |table: &[(&str, Protection)], name: &str| {
        table.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
    };
    if let Some(why) = names.iter().find_map(|name| find(FOLDERS, name)) {
        return Some(why);
    }
    let last = names.last().map(String::as_str).unwrap_or_default();
    let by_prefix = || PREFIXES.iter().find(|(start, _)| last.starts_with(start)).map(|(_, why)| *why);
    let by_suffix = || SUFFIXES.iter().find(|(end, _)| last.ends_with(end)).map(|(_, why)| *why);
    if let Some(why) = find(FILES, last).or_else(by_prefix).or_else(by_suffix) {
        return Some(why);
    }
    let parent = names.len().checked_sub(2).and_then(|index| names.get(index)).map(String::as_str);
    if let Some(cargo) = names.iter().position(|name| name == ".cargo") {
        let next = names.get(cargo + 1).map(String::as_str).unwrap_or_default();
        if last.starts_with("credentials") {
            return Some(Protection::Keys);
        }
        if next.starts_with("config") || matches!(next, "bin" | "env") {
            return Some(Protection::Tool);
        }
    }
    if parent == Some("mise") && last.starts_with("config") {
        return Some(Protection::Tool);
    }
    let home = policy.home.as_deref();
    let is_startup =
        || home.is_some_and(|home| HOME_FOLDERS.iter().any(|folder| is_in(path, &home.join(folder))));
    // The data folder is usually in one of these, but worktrees are ordinary projects.
    let is_in_worktree = policy.own_folders.iter().any(|own| is_in(path, &worktrees_beside(own)));
    if !is_in_worktree && is_startup() {
        return Some(Protection::Startup);
    }
    // Which tools the user has is not known.
    let is_hidden = |name: &String| {
        name.starts_with('.') && !name.ends_with("ignore") && !HARMLESS.contains(&name.as_str())
    };
    let depth = |path: &Path| path.components().filter(|part| matches!(part, Component::Normal(_))).count();
    if root.and_then(|root| names.get(depth(root))).is_some_and(is_hidden) {
        return Some(Protection::Hidden);
    }
    root.and_then(|root| protection_of_root(root, home))
}

fn folded_names(path: &Path) -> Vec<String> {
    let name = |part| match part {
        Component::Normal(name) => Some(folded(name)),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Whether a file has keys or passwords, or is next to such files.
pub fn has_keys(path: &Path) -> bool {
    let names = folded_names(path);
    let is_known = |table: &[(&str, Protection)], name: &String| {
        table.iter().any(|(known, why)| known == name && *why == Protection::Keys)
    };
    let last = names.last().map(String::as_str).unwrap_or_default();
    names.iter().any(|name| is_known(FOLDERS, name))
        || names.last().is_some_and(|name| is_known(FILES, name))
        || KEY_STARTS.iter().any(|start| last.starts_with(start))
        || KEY_ENDS.iter().any(|end| last.ends_with(end))
}

/// Why every write in a session's folder needs confirmation, if the folder is too broad.
fn protection_of_root(root: &Path, home: Option<&Path>) -> Option<Protection> {
    let is_wide = root.parent().is_none() || home.is_some_and(|home| is_in(home, root));
    is_wide.then_some(Protection::WideRoot)
}

/// Whether a folder looks like a bare git repository when this entry of it is written. git requires `HEAD`, `objects`
/// and `refs`, but the last two may be elsewhere.
pub fn is_repository(has: impl Fn(&str) -> bool, entry: &OsStr) -> bool {
    let entry = folded(entry);
    let is_there = |name: &str| entry == name.to_lowercase() || has(name);
    let [config, objects, refs] = ["config", "objects", "refs"].map(is_there);
    is_there("HEAD") && (config || objects || refs) || objects && refs
}

/// Whether a path is a folder or inside it, ignoring case.
fn is_in(path: &Path, folder: &Path) -> bool {
    let mut rest = path.components();
    folder
        .components()
        .all(|part| rest.next().is_some_and(|other| folded(other.as_os_str()) == folded(part.as_os_str())))
}

/// A name as case-insensitive file systems compare it.
pub(super) fn folded(name: &OsStr) -> String {
    let is_ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let name: String = name.to_string_lossy().chars().filter(|c| !is_ignored(*c)).collect();
    name.trim_end_matches([' ', '.']).to_lowercase()
}
