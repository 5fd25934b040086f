//! Decides what a sandbox allows and covers, from the tables, the folders of the session, and what exists here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use super::Cover;
use super::tables::{
    AGENT_SETTINGS, AGENTS, CACHED_PROGRAMS, CACHES, DEVICES, GIT_PROGRAMS, PSEUDO_TERMINALS, READABLE,
    SECRETS, TEMPORARY, TERMINAL, WAYS_OUT, WIDE, WRITABLE_NAMES,
};
use crate::host::git;
use crate::host::os::private;
use crate::host::os::sandbox::Bounds;
use crate::model::{Policy, Protection, STATE_VARIABLES, Sandbox, protection_of};

/// How deep the git data of submodules is searched for more of it.
const MAX_MODULE_DEPTH: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) bounds: Bounds,
    pub(super) covers: Vec<Cover>,
    /// Folders and files that cannot be read, and what can be read in them. The bounds have all of it.
    pub(super) secrets: Vec<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
    /// What is not protected, for the user.
    pub(super) notes: Vec<String>,
    /// State folders of the agent that its variables name, but that are not opened.
    pub(super) unopened: Vec<PathBuf>,
}

/// The folders of the user, without links.
struct Home {
    folder: PathBuf,
    runtime: Option<PathBuf>,
    /// The sockets of the agents that keep keys.
    key_agents: Vec<PathBuf>,
}

impl Home {
    /// The path of an entry of a table, with links resolved; `*` matches names that exist and are no links, which anyone could
    /// have made in a temporary folder.
    fn find(&self, entry: &str) -> Vec<PathBuf> {
        let path = self.folder.join(entry);
        let matches = match (path.parent(), entry.contains('*')) {
            (Some(folder), true) => {
                let pattern = entry.rsplit('/').next().unwrap_or(entry);
                let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
                let is_match = |path: &PathBuf| {
                    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                    let is_match = name.len() >= start.len() + end.len() && name.starts_with(start);
                    is_match && name.ends_with(end) && !path.is_symlink()
                };
                entries(folder).filter(is_match).collect()
            }
            _ => vec![path],
        };
        matches.into_iter().filter_map(|path| path.canonicalize().ok()).collect()
    }

    fn find_all<'a>(&self, entries: impl IntoIterator<Item = &'a str>) -> Vec<PathBuf> {
        entries.into_iter().flat_map(|entry| self.find(entry)).collect()
    }
}

fn is_in_one_of(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// The folder of the demo agent in parlor's own data, which is not open otherwise. It is made here, because the agent can
/// only write in it.
fn own_demo(path: &Path, own_folders: &[PathBuf]) -> Option<PathBuf> {
    let parent = path.parent()?.canonicalize().ok()?;
    let is_demo = path.ends_with("demo") && own_folders.contains(&parent);
    let is_made = is_demo && private::make_folder(path).is_ok();
    is_made.then(|| path.canonicalize().ok()).flatten()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

impl Plan {
    pub(super) fn of(wanted: &Sandbox, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let real = |name: &str| {
            let path = PathBuf::from(variable(name)?);
            path.is_absolute().then(|| path.canonicalize().ok()).flatten()
        };
        let runtime = real("XDG_RUNTIME_DIR").filter(|folder| folder.parent().is_some());
        let of_gnupg = ["S.gpg-agent", "S.gpg-agent.ssh", "S.gpg-agent.extra", "S.keyboxd"];
        let of_gnupg = runtime.iter().flat_map(|folder| of_gnupg.map(|name| folder.join("gnupg").join(name)));
        let home = Home {
            folder: real("HOME").unwrap_or_else(|| PathBuf::from("/nonexistent")),
            key_agents: real("SSH_AUTH_SOCK").into_iter().chain(of_gnupg).collect(),
            runtime,
        };
        let canonical = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
        };
        let (folders, mut write) = (canonical(&wanted.folders), canonical(&wanted.rules.write));
        let is_own = |names: &[&str]| wanted.names.iter().any(|name| names.contains(&name.as_str()));
        let others = AGENTS.iter().filter(|(names, _)| !is_own(names)).flat_map(|row| row.1).copied();
        let mut secrets = home.find_all(SECRETS.iter().copied().chain(others));
        let own_folders = canonical(&wanted.own_folders);
        secrets.extend(own_folders.iter().cloned());
        let caches = home.find_all(CACHES.iter().map(|(path, _)| *path));
        let temporary = home.find_all(TEMPORARY.iter().copied());
        // The folder that a variable of the user names for an agent.
        let named = |names: &[&str]| {
            let (name, _, place) = STATE_VARIABLES.iter().find(|(_, agent, _)| names.contains(agent))?;
            let configured = wanted.state.iter().find(|(known, _)| known == name);
            let path =
                configured.map(|(_, value)| value.into()).or_else(|| variable(name)).map(PathBuf::from);
            path.filter(|path| path.is_absolute()).map(|path| path.join(place))
        };
        let is_secret = |path: &PathBuf| {
            let is_open = [&folders, &write, &caches, &temporary].iter().any(|open| is_in_one_of(path, open));
            !is_open && !home.folder.starts_with(path)
        };
        let others = AGENTS.iter().filter(|(names, _)| !is_own(names)).filter_map(|(names, _)| named(names));
        secrets.extend(others.filter_map(|path| path.canonicalize().ok()).filter(is_secret));
        // A link could lead anywhere by now.
        let is_granted = |path: &&PathBuf| {
            path.canonicalize().is_ok_and(|real| real == **path)
                && !home.folder.starts_with(path)
                && !is_in_one_of(path, &secrets)
        };
        write.extend(wanted.granted_write.iter().filter(is_granted).cloned());
        let has_secrets = |path: &&PathBuf| secrets.iter().any(|secret| secret.starts_with(path));
        let wide = home.find_all(WIDE.iter().copied());
        let is_state = |path: &&PathBuf| {
            let is_wide = path.parent().is_none_or(|parent| parent.parent().is_none())
                || wide.iter().any(|wide| wide.starts_with(path));
            is_granted(path) && !is_wide && !has_secrets(path)
        };
        let (mut state, mut unopened) = (Vec::new(), Vec::new());
        for (names, places) in AGENTS.iter().filter(|(names, _)| is_own(names)) {
            let path = named(names);
            let opened = path.as_ref().and_then(|path| match own_demo(path, &own_folders) {
                None => Some(path.clone()).filter(|path| is_state(&path)),
                demo => demo,
            });
            unopened.extend(path.filter(|_| opened.is_none()));
            let usual = if opened.is_none() { home.find_all(places.iter().copied()) } else { Vec::new() };
            state.extend(opened.into_iter().chain(usual));
        }
        let granted_read = wanted.granted_read.iter().filter(is_granted).filter(|path| !has_secrets(path));
        let granted_read: Vec<PathBuf> = granted_read.cloned().collect();
        let moved = ["XDG_CACHE_HOME", "TMPDIR"].into_iter().filter_map(real);
        // A variable cannot open the home folder.
        let moved = moved.filter(|folder| !home.folder.starts_with(folder));
        let repositories: Vec<PathBuf> = folders.iter().flat_map(|folder| git_folders(folder)).collect();
        let named: Vec<PathBuf> = folders.iter().chain(&write).cloned().collect();
        let open = named.iter().cloned().chain(state.clone()).chain(caches).chain(temporary).chain(moved);
        let open: Vec<PathBuf> = open.chain(repositories.clone()).collect();

        let mut plan = Self { unopened, ..Self::default() };
        let mut readable = home.find_all(READABLE.iter().copied());
        readable.extend(canonical(&wanted.rules.read));
        readable.extend(granted_read);
        // The programs of agents that parlor installed.
        readable.extend(own_folders.iter().map(|own| own.join("agents")));
        secrets.retain(|secret| !readable.contains(secret) && !state.iter().any(|own| own == secret));
        plan.read_all_but(Path::new("/"), &secrets);
        plan.bounds.read.extend(readable.iter().cloned());
        for folder in &open {
            let has_secrets = secrets.iter().any(|secret| secret.starts_with(folder) && secret != folder);
            let rights = if has_secrets { &mut plan.bounds.write_only } else { &mut plan.bounds.write };
            rights.push(folder.clone());
        }
        (plan.secrets, plan.readable) = (secrets, readable);
        plan.bounds.devices = DEVICES.iter().map(PathBuf::from).collect();
        // An agent has pipes, and could type into the terminal that parlor is in.
        plan.bounds.devices.extend(std::io::stdin().is_terminal().then(|| TERMINAL.into()));
        plan.covers.push(Cover::Terminals(PSEUDO_TERMINALS.into()));
        plan.bounds.ports.clone_from(&wanted.rules.ports);

        let mut protected: BTreeSet<PathBuf> =
            home.find_all(CACHED_PROGRAMS.iter().map(|(path, _)| *path)).into_iter().collect();
        protected.extend(repositories.iter().flat_map(|folder| programs_of_git(folder)));
        for folder in &named {
            protected.extend(protected_in(folder, &state));
        }
        for folder in &state {
            let places = [folder.clone(), folder.join("agent")];
            protected
                .extend(places.iter().flat_map(|place| AGENT_SETTINGS.iter().map(|name| place.join(name))));
        }
        protected.retain(|path| path.symlink_metadata().is_ok());
        // What a protected link leads to.
        let targets: Vec<PathBuf> = protected.iter().filter_map(|path| path.canonicalize().ok()).collect();
        protected.extend(targets.into_iter().filter(|target| is_in_one_of(target, &open)));
        protected.retain(|path| !folders.contains(path));
        plan.cover(&protected, &open);
        plan.hide_sockets(&home, &open);
        if let Some(wide) = folders.iter().find(|folder| home.folder.starts_with(folder)) {
            plan.notes.push(format!("{} contains your home folder, which can be changed", wide.display()));
        }
        plan
    }

    /// Allows reading everything below a folder but the secrets. What is created later beside a secret cannot be read.
    fn read_all_but(&mut self, folder: &Path, secrets: &[PathBuf]) {
        for path in entries(folder) {
            // Devices are named one by one: root could read a disk.
            if path == Path::new("/dev") || secrets.contains(&path) {
                continue;
            }
            let is_above = secrets.iter().any(|secret| secret.starts_with(&path));
            if !is_above {
                // Links are left out when the rule is made.
                self.bounds.read.push(path);
            } else if path.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
                self.read_all_but(&path, secrets);
            }
        }
    }

    /// Makes protected paths read-only, and pins the folders that they are in, so that these cannot be moved away.
    fn cover(&mut self, protected: &BTreeSet<PathBuf>, open: &[PathBuf]) {
        let is_movable = |path: &&Path| path.parent().is_some_and(|parent| is_in_one_of(parent, open));
        let above = |path: &PathBuf| -> Vec<PathBuf> {
            path.ancestors().skip(1).filter(is_movable).map(Path::to_path_buf).collect()
        };
        let pinned: BTreeSet<PathBuf> = protected.iter().flat_map(above).collect();
        // A path is sorted after those of the folders that it is in.
        let all: BTreeSet<&PathBuf> = pinned.iter().chain(protected).collect();
        self.covers.extend(all.into_iter().map(|path| {
            if protected.contains(path) { Cover::ReadOnly(path.clone()) } else { Cover::Pinned(path.clone()) }
        }));
    }

    fn hide_sockets(&mut self, home: &Home, open: &[PathBuf]) {
        let mut hidden = home.find_all(WAYS_OUT.iter().copied());
        hidden.extend(home.runtime.clone());
        hidden.sort();
        hidden.dedup();
        // Such as `/tmp`, which some use as `$XDG_RUNTIME_DIR`.
        hidden.retain(|path| !open.iter().any(|folder| folder.starts_with(path)));
        for path in hidden {
            let is_agent = home.key_agents.contains(&path);
            let except = home.key_agents.iter().filter(|socket| socket.starts_with(&path)).cloned().collect();
            if !is_agent {
                self.covers.push(Cover::Hidden(path, except));
            }
        }
    }
}

/// The folders with the git data of a folder. Those outside of it are checked to belong to it.
pub(super) fn git_folders(folder: &Path) -> BTreeSet<PathBuf> {
    let found = git::find(folder).and_then(Result::ok);
    let folders = found.into_iter().flat_map(|repository| [repository.git_dir, repository.common_dir]);
    folders.filter_map(|folder| folder.canonicalize().ok()).collect()
}

/// What git runs or obeys in its data, also in that of submodules and other work trees.
pub(super) fn programs_of_git(git_folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = GIT_PROGRAMS.iter().map(|name| git_folder.join(name)).collect();
    // The `.git` file of a work tree.
    let text = git::read_text(&git_folder.join("gitdir"));
    all.extend(text.map(|text| git_folder.join(text.trim())));
    for folder in entries(&git_folder.join("worktrees")) {
        all.extend(GIT_PROGRAMS.iter().map(|name| folder.join(name)));
    }
    all.extend(programs_of_modules(&git_folder.join("modules"), MAX_MODULE_DEPTH));
    let config = git::read_text(&git_folder.join("config")).unwrap_or_default();
    let root = git_folder.parent().unwrap_or(git_folder);
    all.extend(config.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        // Source: git-config(1): hooks are relative to the work tree, included files to the configuration.
        match name.trim().to_lowercase().as_str() {
            "hookspath" => Some(root.join(value)),
            "path" => Some(git_folder.join(value)),
            _ => None,
        }
    }));
    all
}

fn programs_of_modules(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let inner = |path: PathBuf| match depth.checked_sub(1) {
        _ if path.join("HEAD").is_file() => programs_of_git(&path),
        Some(depth) => programs_of_modules(&path, depth),
        None => Vec::new(),
    };
    entries(folder).flat_map(inner).collect()
}

/// What programs run or obey at the top of a folder, as the policy knows it.
fn protected_in(folder: &Path, state: &[PathBuf]) -> Vec<PathBuf> {
    let policy = Policy::default();
    let is_protected = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Git data is protected in parts; a `.git` file says where it is.
        let is_excepted = WRITABLE_NAMES.contains(&name)
            || state.contains(path)
            || name == ".git" && path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
        // Judged without the folders above, whose names do not matter.
        let protection = protection_of(Path::new(name), None, &policy);
        protection.is_some_and(|why| why != Protection::Hidden) && !is_excepted
    };
    entries(folder).filter(is_protected).collect()
}
