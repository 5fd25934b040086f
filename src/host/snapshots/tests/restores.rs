//! What a restore writes, and what it never touches.

use super::*;

fn step<'a>(plan: &'a Plan, path: &str) -> &'a Step {
    plan.steps.iter().find(|step| step.path == Path::new(path)).unwrap()
}

/// Files that were changed from `one` to `two`, with the snapshots before and after.
fn edited(names: &[&str]) -> (Rig, SnapshotId, SnapshotId) {
    let rig = Rig::new();
    let [before, after] = ["one", "two"].map(|text| {
        for name in names {
            rig.write(name, text);
        }
        rig.capture()
    });
    (rig, before, after)
}

#[test]
fn undo_and_redo_have_no_end() {
    let rig = Rig::repository();
    rig.write("changed", "one\n");
    rig.write("deleted", "gone\n");
    rig.write("run", "x");
    rig.write("same", "same");
    rig.commit();
    let before = rig.capture();
    rig.write("changed", "two\n");
    rig.remove("deleted");
    rig.write("new/deep/file", "new\n");
    fixtures::set_mode(rig.path().join("run"), 0o755);
    fixtures::link("same", rig.path().join("link"));
    let after = rig.capture();
    let agent = facts(&rig.path(), false);
    let times = facts(&rig.path(), true);
    for _ in 0..3 {
        let undone = rig.undo(&after, &before);
        assert_eq!(undone.before.id, after);
        assert_eq!((undone.changed.len(), undone.refused.len()), (5, 0), "{undone:?}");
        assert_eq!(rig.text("changed") + &rig.text("deleted"), "one\ngone\n");
        assert!(!rig.path().join("new").exists(), "folders of the agent");
        assert_eq!(rig.capture(), before);
        let redone = rig.undo(&before, &after);
        assert_eq!(redone.changed.len(), 5);
        assert_eq!(facts(&rig.path(), false), agent);
    }
    let same = Path::new("same");
    assert_eq!(facts(&rig.path(), true)[same], times[same], "also its time");
}

#[test]
fn changes_have_both_states_of_a_path() {
    let rig = Rig::new();
    rig.write("a", "content");
    rig.write("changed", "x");
    let before = rig.capture();
    fs::rename(rig.path().join("a"), rig.path().join("b")).unwrap();
    rig.write("changed", "y");
    let after = rig.capture();
    let changes = rig.open().changes(&before, &after).unwrap();
    let found: Vec<(&str, bool, bool)> =
        changes.iter().map(|c| (c.path.to_str().unwrap(), c.before.is_some(), c.after.is_some())).collect();
    assert_eq!(found, [("a", true, false), ("b", false, true), ("changed", true, true)]);
    assert_eq!(changes[0].before, changes[1].after, "a renamed file");
    let on_disk = rig.open().on_disk(Path::new("b")).unwrap();
    assert_eq!(on_disk, changes[1].after);
    let entry = on_disk.unwrap();
    assert_eq!(rig.open().read(&entry, 7).unwrap(), b"content");
    assert!(matches!(rig.open().read(&entry, 6), Err(SnapshotError::Refused(_))));
}

#[test]
fn what_the_user_changed_since_is_a_conflict() {
    let rig = Rig::new();
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    for name in ["merges", "conflicts", "deleted", "binary", "undone"] {
        rig.write(name, lines("1", "8"));
    }
    let before = rig.capture();
    for name in ["merges", "conflicts", "deleted", "binary", "undone"] {
        rig.write(name, lines("agent", "8"));
    }
    rig.write("created", "agent");
    let after = rig.capture();
    rig.write("merges", lines("agent", "user"));
    rig.write("conflicts", lines("user", "8"));
    rig.remove("deleted");
    rig.write("binary", "agent\0user");
    rig.write("undone", lines("1", "8"));
    rig.write("created", "user");
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    for name in ["merges", "conflicts", "deleted", "binary", "created"] {
        assert_eq!(step(&plan, name).action, Action::Conflict, "{name}");
    }
    assert_eq!(step(&plan, "undone").action, Action::Nothing);
    let state = facts(&rig.path(), true);
    let chosen = ["undone".into(), "x".into()];
    let done = rig.open().restore("s", &plan, &chosen).unwrap();
    assert_eq!((done.changed.len(), done.refused.len()), (0, 1), "{done:?}");
    assert_eq!(facts(&rig.path(), true), state);
    let chosen = ["merges".into(), "created".into(), "deleted".into()];
    let done = rig.open().restore("s", &plan, &chosen).unwrap();
    assert_eq!(done.changed.len(), 3, "{done:?}");
    assert_eq!(rig.text("merges"), lines("1", "8"));
    assert_eq!(rig.text("created"), "absent");
    assert_eq!(rig.text("conflicts"), lines("user", "8"), "not chosen");
    // What the user had written is in the snapshot that was captured before.
    let saved = contents(rig.open(), &done.before.id);
    assert_eq!(saved[Path::new("created")].1, b"user");
    assert_eq!(saved[Path::new("merges")].1, lines("agent", "user").into_bytes());
}

#[test]
fn paths_that_change_after_the_plan_are_not_written() {
    let (rig, before, _) = edited(&["a", "b"]);
    rig.write("c", "two");
    let after = rig.capture();
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    rig.write("a", "user");
    rig.write("c", "user");
    let done = rig.open().restore("s", &plan, &all(&plan)).unwrap();
    assert_eq!(done.changed, [PathBuf::from("b")]);
    assert_eq!(done.refused.len(), 2);
    assert_eq!(rig.text("a") + &rig.text("b") + &rig.text("c"), "useroneuser");
}

#[test]
fn only_what_was_certainly_absent_is_deleted() {
    let rig = Rig::new();
    rig.write(".gitignore", ".env\ncache/\nmany/\n");
    for n in 0..300 {
        rig.write(&format!("many/{n}"), "of the user");
    }
    rig.write(".env", "of the user");
    rig.write("cache/x", "of the user");
    fs::create_dir(rig.path().join("logs")).unwrap();
    let before = rig.capture();
    rig.write(".env", "of the agent");
    rig.write("cache/x", "of the agent");
    rig.write("cache/y", "of the agent");
    rig.write("many/7", "of the agent");
    rig.write("logs/new", "of the agent");
    let extra = [".env", "cache/x", "cache/y", "many/7", "logs/new"].map(PathBuf::from);
    let after = rig.open().capture("s", &extra).unwrap().id;
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    for name in [".env", "cache/x", "many/7"] {
        assert!(matches!(step(&plan, name).action, Action::Refused(_)), "{name}");
    }
    let done = rig.undo(&after, &before);
    assert_eq!(done.changed, ["cache/y", "logs/new"].map(PathBuf::from));
    assert_eq!(rig.text(".env"), "of the agent");
    assert!(rig.path().join("logs").is_dir(), "it was there before");
}

#[test]
fn links_and_special_files_are_never_followed() {
    let rig = Rig::new();
    let outside = rig.base.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    rig.write("dir/file", "one");
    rig.write("plain", "one");
    rig.write("pipe", "one");
    rig.write("hard", "one");
    let before = rig.capture();
    for name in ["dir/file", "plain", "pipe", "hard"] {
        rig.write(name, "two");
    }
    let after = rig.capture();
    fs::remove_dir_all(rig.path().join("dir")).unwrap();
    fixtures::link(&outside, rig.path().join("dir"));
    rig.remove("plain");
    fixtures::link(outside.join("file"), rig.path().join("plain"));
    rig.remove("pipe");
    fixtures::pipe(rig.path().join("pipe"));
    fs::hard_link(rig.path().join("hard"), outside.join("hard")).unwrap();
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    for name in ["dir/file", "pipe", "hard"] {
        assert!(matches!(step(&plan, name).action, Action::Refused(_)), "{name}: {plan:?}");
    }
    assert_eq!(step(&plan, "plain").action, Action::Conflict);
    let done = rig.open().restore("s", &plan, &["plain".into()]).unwrap();
    assert_eq!(done.changed.len(), 1, "{done:?}");
    assert!(rig.path().join("plain").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside");
    assert!(rig.open().on_disk(Path::new("dir/file")).is_err());
    assert!(rig.open().on_disk(Path::new("../outside/file")).is_err());
    assert!(rig.open().on_disk(Path::new(".git/config")).is_err());
}

#[test]
fn a_link_that_appears_after_the_plan_is_not_followed() {
    let rig = Rig::new();
    let outside = rig.base.path().join("outside");
    fs::create_dir(&outside).unwrap();
    rig.write("dir/file", "one");
    let before = rig.capture();
    rig.remove("dir/file");
    fs::remove_dir(rig.path().join("dir")).unwrap();
    let after = rig.capture();
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    assert_eq!(step(&plan, "dir/file").action, Action::Write);
    fixtures::link(&outside, rig.path().join("dir"));
    let done = rig.open().restore("s", &plan, &all(&plan)).unwrap();
    assert_eq!(done.refused.len(), 1, "{done:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn files_and_folders_take_each_others_place() {
    let rig = Rig::new();
    rig.write("a", "file");
    rig.write("b/c/d", "deep");
    let before = rig.capture();
    rig.remove("a");
    rig.write("a/x/y", "in a folder");
    fs::remove_dir_all(rig.path().join("b")).unwrap();
    rig.write("b", "file now");
    let after = rig.capture();
    let agent = facts(&rig.path(), false);
    let done = rig.undo(&after, &before);
    assert_eq!((done.changed.len(), done.refused.len()), (4, 0), "{done:?}");
    assert_eq!(rig.text("a") + &rig.text("b/c/d"), "filedeep");
    rig.undo(&before, &after);
    assert_eq!(facts(&rig.path(), false), agent);
    // A file of the user in the folder stays.
    rig.write("a/user", "of the user");
    let done = rig.undo(&after, &before);
    assert_eq!(rig.text("a/user"), "of the user");
    assert!(done.refused.iter().any(|(path, _)| path == Path::new("a")), "{done:?}");
}

#[test]
fn modes_of_overwritten_files_stay() {
    let rig = Rig::new();
    rig.write("private", "one");
    rig.write("tool", "one");
    fixtures::set_mode(rig.path().join("private"), 0o600);
    fixtures::set_mode(rig.path().join("tool"), 0o750);
    let before = rig.capture();
    rig.write("private", "two");
    fixtures::set_mode(rig.path().join("tool"), 0o640);
    let after = rig.capture();
    assert_eq!(rig.undo(&after, &before).changed.len(), 2);
    assert_eq!(fixtures::mode(rig.path().join("private")), 0o600);
    assert_eq!(fixtures::mode(rig.path().join("tool")), 0o750);
}

#[test]
fn sessions_do_not_change_each_others_snapshots() {
    let rig = Rig::new();
    rig.write("a", "one");
    let first = rig.open().capture("one", &[]).unwrap().id;
    rig.write("a", "two");
    let second = rig.open().capture("two", &[]).unwrap().id;
    rig.write("a", "three");
    let third = rig.open().capture("one", &[]).unwrap().id;
    for (id, text) in [(first, "one"), (second, "two"), (third, "three")] {
        assert_eq!(contents(rig.open(), &id)[Path::new("a")].1, text.as_bytes());
    }
}

#[test]
fn a_restore_deletes_no_snapshots() {
    let rig = Rig::new();
    let mut options = rig.options();
    options.limits.max_store_bytes = 120_000;
    let snapshots = Snapshots::open(&rig.path(), &options).unwrap();
    let mut random = crate::random::Random::new(1);
    let mut content = || (0..50_000).map(|_| u8::try_from(random.below(256)).unwrap()).collect::<Vec<u8>>();
    let old = content();
    rig.write("a", &old);
    let before = snapshots.capture("s", &[]).unwrap().id;
    rig.write("a", content());
    let after = snapshots.capture("s", &[]).unwrap().id;
    rig.write("user", content());
    let plan = snapshots.plan(&back(&after, &before)).unwrap();
    let done = snapshots.restore("s", &plan, &all(&plan)).unwrap();
    assert_eq!((done.changed.len(), fs::read(rig.path().join("a")).unwrap()), (1, old));
    rig.write("new", "new");
    assert!(snapshots.capture("s", &[]).unwrap().pruned > 0);
}

/// A folder with an agent's changes of all kinds.
fn changed(seed: u64) -> (Rig, SnapshotId, SnapshotId) {
    let rig = Rig::new();
    let mut random = crate::random::Random::new(seed);
    let names = ["a", "b", "d/e", "d/f/g", "h/i"];
    for name in names {
        if !random.one_in(3) {
            rig.write(name, format!("old {name}"));
        }
    }
    rig.write("user", "of the user");
    let before = rig.capture();
    for name in names {
        let path = rig.path().join(name);
        match random.below(4) {
            0 => rig.write(name, format!("new {name}")),
            1 => {
                let _ = fs::remove_file(path);
            }
            2 => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let _ = fs::remove_file(&path);
                fixtures::link(name, path);
            }
            _ => {}
        }
    }
    if random.one_in(2) {
        let _ = fs::remove_file(rig.path().join("a"));
        rig.write("a/inner", "new folder");
    }
    let after = rig.capture();
    (rig, before, after)
}

/// Files and links, without empty folders.
fn files(rig: &Rig) -> BTreeMap<PathBuf, Fact> {
    let path = rig.path();
    facts(&path, false)
        .into_iter()
        .filter(|(name, _)| !path.join(name).is_dir() || path.join(name).is_symlink())
        .collect()
}

#[test]
fn a_crash_leaves_the_old_or_the_new_state() {
    let (mut olds, mut news, mut steps) = (0, 0, 0);
    for seed in 0..5 {
        let (mut rig, before, after) = changed(seed);
        let old = files(&rig);
        rig.undo(&after, &before);
        let new = files(&rig);
        for crash in 1.. {
            let state = rig.capture();
            if state != after {
                let done = rig.undo(&state, &after);
                assert!(done.refused.is_empty(), "{done:?}");
            }
            assert_eq!(files(&rig), old, "{seed}");
            let plan = rig.open().plan(&back(&after, &before)).unwrap();
            let chosen = all(&plan);
            crashes::crash_after(Some(crash));
            let result = rig.open().restore("s", &plan, &chosen);
            let has_crashed = crashes::has_crashed();
            crashes::crash_after(None);
            if !has_crashed {
                assert!(result.unwrap().refused.is_empty());
                break;
            }
            steps += 1;
            // A second crash, while it recovers.
            crashes::crash_after(Some(crash % 5 + 1));
            let _ = rig.open().recover();
            crashes::crash_after(None);
            rig.snapshots.take();
            let recovered = rig.open().recover().unwrap();
            let found = files(&rig);
            assert!(
                found == old || found == new,
                "{seed} {crash}: {recovered:?}\n{found:?}\n{old:?}\n{new:?}"
            );
            if found == old {
                olds += 1;
            } else {
                news += 1;
            }
            assert_eq!(rig.text("user"), "of the user");
            assert!(rig.open().recover().unwrap().is_none());
        }
    }
    assert!(olds > 20 && news > 0 && steps > 30, "{olds} {news} {steps}");
}

#[test]
fn recovery_leaves_what_others_changed() {
    let (rig, before, after) = edited(&["a", "b", "c"]);
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    // Each file takes three steps.
    crashes::crash_after(Some(7));
    assert!(rig.open().restore("s", &plan, &all(&plan)).is_err());
    crashes::crash_after(None);
    assert_eq!(rig.text("a") + &rig.text("b") + &rig.text("c"), "oneonetwo");
    assert!(matches!(rig.open().prune(u64::MAX), Err(SnapshotError::Interrupted)));
    let error = rig.open().restore("s", &plan, &[]).unwrap_err();
    assert!(matches!(error, SnapshotError::Interrupted));
    rig.write("a", "user");
    let recovered = rig.open().recover().unwrap().unwrap();
    assert_eq!(recovered.left, [PathBuf::from("a")]);
    assert!(!recovered.is_complete);
    assert_eq!(rig.text("a") + &rig.text("b") + &rig.text("c"), "usertwotwo");
}

#[test]
fn a_restore_that_fails_is_undone() {
    let (rig, before, after) = edited(&["a", "b"]);
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    crashes::fail_once_after(5);
    let error = rig.open().restore("s", &plan, &all(&plan)).unwrap_err();
    assert!(matches!(error, SnapshotError::Failed(_)), "{error}");
    assert_eq!(rig.text("a") + &rig.text("b"), "twotwo");
    assert!(rig.open().recover().unwrap().is_none());
}
