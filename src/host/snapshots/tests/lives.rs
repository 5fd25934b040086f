//! Random lives of a folder, with a plain copy of it as the model.

use super::git::path_of;
use super::*;
use crate::random::Random;

const NAMES: [&[u8]; 16] = [
    b"a",
    b"b.txt",
    b"-c",
    b"d\ne",
    b"\xff",
    b":(top)",
    b"x.ign",
    b"dir/a",
    b"dir/b b",
    b"dir/sub/c",
    b"dir/y.ign",
    b"\"q\"/e",
    b"\"q\"/f",
    b"deep/er/and/deeper",
    b"deep/g",
    b"z\\",
];

/// A file or link: its kind and content.
type State = BTreeMap<PathBuf, (Kind, Vec<u8>)>;

struct Life {
    rig: Rig,
    random: Random,
    is_repository: bool,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_repository = !random.one_in(3);
        let rig = if is_repository { Rig::repository() } else { Rig::new() };
        let mut life = Self { rig, random, is_repository };
        life.rig.write(".gitignore", "*.ign\n");
        life.edit(12);
        if is_repository {
            match life.random.below(4) {
                0 => life.rig.write(".gitattributes", "* text=auto eol=crlf\n*.txt ident\n"),
                1 => life.rig.git(&["config", "core.autocrlf", "input"]),
                _ => {}
            }
            life.user_git();
        }
        if life.random.one_in(2) {
            life.rig.write("nested/file", "nested");
            git(&life.rig.path().join("nested"), &["init", "-q"]);
        }
        life
    }

    fn content(&mut self) -> Vec<u8> {
        let count = self.random.below(6);
        let lines = (0..count).map(|_| match self.random.below(6) {
            0 => b"line\r\n".to_vec(),
            1 => b"$Id$\n".to_vec(),
            2 => vec![0, 255, b'\n'],
            3 => b"no end".to_vec(),
            n => format!("line {n}\n").into_bytes(),
        });
        lines.collect::<Vec<_>>().concat()
    }

    fn path(&mut self) -> PathBuf {
        let at = usize::try_from(self.random.below(NAMES.len() as u64)).unwrap();
        self.rig.path().join(path_of(NAMES[at]))
    }

    fn edit(&mut self, count: u64) {
        for _ in 0..count {
            let path = self.path();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_there = path.symlink_metadata().is_ok();
            match self.random.below(8) {
                0 if is_there => fs::remove_file(path).unwrap(),
                1 if is_there => {
                    let other = self.path();
                    fs::create_dir_all(other.parent().unwrap()).unwrap();
                    fs::rename(path, other).unwrap();
                }
                2 if path.is_file() && !path.is_symlink() => {
                    let mode = if self.random.one_in(2) { 0o755 } else { 0o644 };
                    fixtures::set_mode(path, mode);
                }
                3 => {
                    let _ = fs::remove_file(&path);
                    let target = if self.random.one_in(2) { "a" } else { "/nowhere/\u{fc}" };
                    fixtures::link(target, path);
                }
                _ => {
                    if path.is_symlink() {
                        fs::remove_file(&path).unwrap();
                    }
                    let content = self.content();
                    fs::write(path, content).unwrap();
                }
            }
        }
    }

    /// The user works in the repository.
    fn user_git(&mut self) {
        if !self.is_repository {
            return;
        }
        match self.random.below(6) {
            0 => self.rig.git(&["gc", "-q", "--prune=now"]),
            1 => self.rig.git(&["add", "-A", "--", ":(exclude)nested"]),
            2 => self.rig.git(&["reset", "-q"]),
            _ => {
                self.rig.git(&["add", "-A", "--", ":(exclude)nested"]);
                self.rig.git(&["commit", "-q", "--allow-empty", "-m", "state"]);
            }
        }
    }

    /// Everything that snapshots have.
    fn state(&self) -> State {
        let is_seen = |path: &Path| {
            !path.starts_with(".git")
                && !path.starts_with("nested")
                && path.extension() != Some(std::ffi::OsStr::new("ign"))
        };
        let top = self.rig.path();
        let entry = |(path, fact): (PathBuf, Fact)| {
            let kind = match top.join(&path) {
                full if full.is_symlink() => Kind::Link,
                full if full.is_dir() => return None,
                _ if fact.mode & 0o100 != 0 => Kind::Program,
                _ => Kind::File,
            };
            is_seen(&path).then_some((path, (kind, fact.content)))
        };
        facts(&top, false).into_iter().filter_map(entry).collect()
    }

    fn git_facts(&self) -> BTreeMap<PathBuf, Fact> {
        let git = self.rig.path().join(".git");
        if git.exists() { facts(&git, true) } else { BTreeMap::new() }
    }

    fn capture(&mut self) -> SnapshotId {
        let state = self.state();
        let git = self.git_facts();
        let id = self.rig.capture();
        assert_eq!(contents(self.rig.open(), &id), state);
        assert_same(&self.git_facts(), &git);
        id
    }

    fn round(&mut self) {
        let (before, old) = (self.capture(), self.state());
        let count = self.random.below(8) + 1;
        self.edit(count);
        let (after, new) = (self.capture(), self.state());
        if self.random.one_in(3) {
            self.user_git();
        }
        let count = self.random.below(4);
        self.edit(count);
        let disk = self.state();
        let times = facts(&self.rig.path(), true);
        let git = self.git_facts();
        if self.random.one_in(4) {
            // Another run of parlor.
            self.rig.snapshots.take();
        }
        let plan = self.rig.open().plan(&back(&after, &before)).unwrap();
        let mut expected = disk.clone();
        let mut conflicts = BTreeSet::new();
        let paths: BTreeSet<&PathBuf> = old.keys().chain(new.keys()).collect();
        for path in paths.into_iter().filter(|path| old.get(*path) != new.get(*path)) {
            let now = disk.get(path);
            match old.get(path) {
                target if now == target => {}
                Some(target) if now == new.get(path) => {
                    expected.insert(path.clone(), target.clone());
                }
                None if now == new.get(path) => {
                    expected.remove(path);
                }
                _ => {
                    conflicts.insert(path.clone());
                }
            }
        }
        let found = plan.steps.iter().filter(|step| matches!(step.action, Action::Conflict));
        assert_eq!(found.map(|step| step.path.clone()).collect::<BTreeSet<_>>(), conflicts);
        let chosen = all(&plan);
        let done = self.rig.open().restore("s", &plan, &chosen).unwrap();
        assert!(done.refused.is_empty(), "{done:?}");
        assert_eq!(self.state(), expected);
        assert_same(&self.git_facts(), &git);
        // Other files are the same, with their times.
        for (path, fact) in facts(&self.rig.path(), true) {
            let is_dir = self.rig.path().join(&path).is_dir();
            if !is_dir && !done.changed.contains(&path) {
                assert_eq!(times.get(&path), Some(&fact), "{path:?}");
            }
        }
        // Redo: the state before the restore, with all edits of the user.
        let now = self.capture();
        self.rig.undo(&now, &done.before.id);
        assert_eq!(self.state(), disk);
    }
}

#[test]
fn random_lives_are_restored_like_a_plain_copy() {
    for seed in 0..10 {
        let mut life = Life::new(seed);
        for _ in 0..4 {
            life.round();
        }
    }
}
