//! What is captured, and that nothing of the user changes.

use super::git::path_of;
use super::*;

#[test]
fn a_folder_without_a_repository_is_captured() {
    let rig = Rig::new();
    rig.write("a.txt", "one\n");
    rig.write("sub/b", [0, 255, 0]);
    rig.write("ignored.log", "log");
    rig.write(".gitignore", "*.log\n");
    fixtures::link("nowhere", rig.path().join("link"));
    rig.write("run.sh", "#!/bin/sh\n");
    fixtures::set_mode(rig.path().join("run.sh"), 0o755);
    let first = rig.open().capture("s", &[]).unwrap();
    assert!(!first.reused && first.left_out.is_empty(), "{first:?}");
    let expected = ["a.txt", "sub/b", ".gitignore", "link", "run.sh"].map(str::to_owned);
    assert_eq!(names(rig.open(), &first.id), BTreeSet::from(expected));
    let all = contents(rig.open(), &first.id);
    assert_eq!(all[Path::new("link")], (Kind::Link, b"nowhere".to_vec()));
    assert_eq!(all[Path::new("run.sh")].0, Kind::Program);
    let again = rig.open().capture("s", &[]).unwrap();
    assert!(again.reused && again.id == first.id);
    let named = rig.open().capture("s", &["ignored.log".into(), rig.path().join("none")]).unwrap();
    assert!(names(rig.open(), &named.id).contains("ignored.log"));
    let outside = rig.open().capture("s", &["../x".into(), "/etc/passwd".into()]).unwrap();
    assert_eq!(outside.left_out.len(), 2, "{:?}", outside.left_out);
}

#[test]
fn an_empty_folder_is_captured() {
    let rig = Rig::new();
    let id = rig.capture();
    assert!(names(rig.open(), &id).is_empty());
    let rig = Rig::repository();
    rig.write("a", "a");
    rig.commit();
    fs::create_dir(rig.path().join("sub")).unwrap();
    let sub = Snapshots::open(&rig.path().join("sub"), &rig.options()).unwrap();
    let id = sub.capture("s", &[]).unwrap().id;
    assert!(names(&sub, &id).is_empty());
    assert_eq!(names(rig.open(), &rig.open().capture("s", &[]).unwrap().id).len(), 1);
}

#[test]
fn odd_names_are_captured_and_restored() {
    let rig = Rig::repository();
    let odd: [&[u8]; 9] = [
        b"-rf",
        b"new\nline",
        b"quo\"te'",
        b"\xff\xfe",
        b":(glob)*",
        b" space ",
        b"tab\t",
        b"a\\b",
        b"git~1",
    ];
    let before = rig.capture();
    for name in odd {
        fs::write(rig.path().join(path_of(name)), name).unwrap();
    }
    let after = rig.capture();
    let found: BTreeSet<PathBuf> = contents(rig.open(), &after).into_keys().collect();
    assert_eq!(found, odd.iter().map(|name| path_of(name)).collect());
    let done = rig.undo(&after, &before);
    assert_eq!((done.changed.len(), done.refused.len()), (9, 0), "{done:?}");
    let redone = rig.undo(&before, &done.before.id);
    assert_eq!(redone.changed.len(), 9);
    assert_eq!(facts(&rig.path(), false).iter().filter(|(path, _)| !path.starts_with(".git")).count(), 9);
}

#[test]
fn large_special_and_reserved_files_are_left_out() {
    let rig = Rig::new();
    rig.write("big", "small");
    let before = rig.capture();
    rig.write("big", vec![7; (10 << 20) + 1]);
    rig.write(".GIT/config", "x");
    fixtures::pipe(rig.path().join("pipe"));
    let after = rig.open().capture("s", &["pipe".into()]).unwrap();
    let left: Vec<(&str, Why)> =
        after.left_out.iter().map(|left| (left.path.to_str().unwrap(), left.why)).collect();
    assert_eq!(left, [(".GIT/config", Why::Special), ("big", Why::TooLarge), ("pipe", Why::Special)]);
    assert!(names(rig.open(), &after.id).is_empty());
    // Neither written nor deleted.
    let done = rig.undo(&after.id, &before);
    assert!(done.changed.is_empty() && fs::metadata(rig.path().join("big")).unwrap().len() > 10 << 20);
    rig.write("big", "small again");
    let small = rig.capture();
    let done = rig.undo(&small, &after.id);
    assert_eq!(done.refused.len(), 1, "{done:?}");
    assert_eq!(rig.text("big"), "small again");
}

#[test]
fn nested_repositories_are_left_alone() {
    let rig = Rig::repository();
    rig.write("a", "a");
    rig.write("nested/inner", "inner");
    git(&rig.path().join("nested"), &["init", "-q"]);
    rig.commit_all_but_nested();
    let inside = rig.path().join("nested/inner");
    let captured = rig.open().capture("s", &[inside]).unwrap();
    let nested = LeftOut { path: "nested".into(), why: Why::NestedRepository };
    assert!(captured.left_out.contains(&nested), "{:?}", captured.left_out);
    assert_eq!(names(rig.open(), &captured.id), BTreeSet::from(["a".to_owned()]));
}

#[test]
fn submodules_are_left_alone() {
    let rig = Rig::repository();
    let other = Rig::repository();
    other.write("x", "x");
    other.commit();
    rig.write("a", "a");
    let url = other.path();
    rig.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", url.to_str().unwrap(), "sub"]);
    rig.commit();
    let before = facts(&rig.path(), true);
    let captured = rig.open().capture("s", &[]).unwrap();
    assert_eq!(captured.left_out, [LeftOut { path: "sub".into(), why: Why::NestedRepository }]);
    let expected = ["a", ".gitmodules"].map(str::to_owned);
    assert_eq!(names(rig.open(), &captured.id), BTreeSet::from(expected));
    assert_same(&facts(&rig.path(), true), &before);
}

impl Rig {
    fn commit_all_but_nested(&self) {
        self.git(&["add", "a"]);
        self.git(&["commit", "-q", "-m", "state"]);
    }
}

/// Sets programs of all kinds, which leave a file if they run.
fn set_programs(rig: &Rig) -> PathBuf {
    let ran = rig.base.path().join("ran");
    let program = format!("sh -c 'echo >>{}; tr a-z A-Z'", ran.display());
    for key in
        ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "diff.external"]
    {
        rig.git(&["config", key, &program]);
    }
    let hooks = rig.path().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-index-change", "reference-transaction", "pre-commit", "post-commit"] {
        fs::write(hooks.join(hook), format!("#!/bin/sh\necho >>{}\n", ran.display())).unwrap();
        fixtures::set_mode(hooks.join(hook), 0o755);
    }
    ran
}

#[test]
fn no_program_runs_and_contents_are_those_on_disk() {
    let rig = Rig::repository();
    rig.write("filtered", "lower\n");
    rig.write("crlf", "one\r\ntwo\r\n");
    rig.write("id", "$Id$\n");
    rig.write("utf16", b"\xff\xfea\0");
    rig.commit();
    let attributes = "filtered filter=evil diff=evil merge=evil\ncrlf text eol=crlf\nid ident\n\
                      utf16 working-tree-encoding=UTF-16\n";
    rig.write(".gitattributes", attributes);
    let ran = set_programs(&rig);
    rig.write("filtered", "changed\n");
    rig.write("crlf", "one\r\nthree\r\n");
    let before = facts(&rig.path(), true);
    let id = rig.capture();
    for (path, (_, bytes)) in contents(rig.open(), &id) {
        assert_eq!(bytes, fs::read(rig.path().join(&path)).unwrap(), "{path:?}");
    }
    assert_same(&facts(&rig.path(), true), &before);
    rig.write("filtered", "again\n");
    let after = rig.capture();
    rig.undo(&after, &id);
    assert_eq!(rig.text("filtered"), "changed\n");
    assert!(!ran.exists());
}

#[test]
fn contents_that_the_repository_converts_are_those_on_disk() {
    type Prepare = fn(&Rig);
    let cases: [(&str, Prepare); 7] = [
        ("crlf", |rig| {
            rig.git(&["config", "core.autocrlf", "true"]);
            rig.write("f", "one\r\ntwo\r\n");
            rig.commit();
        }),
        ("crlf, no longer set", |rig| {
            rig.git(&["config", "core.autocrlf", "true"]);
            rig.write("f", "one\r\ntwo\r\n");
            rig.commit();
            rig.git(&["config", "--unset", "core.autocrlf"]);
        }),
        ("filter", |rig| {
            rig.git(&["config", "filter.x.clean", "tr a-z A-Z"]);
            rig.git(&["config", "filter.x.smudge", "tr A-Z a-z"]);
            rig.write(".gitattributes", "f filter=x\n");
            rig.write("f", "text\n");
            rig.commit();
        }),
        ("ident", |rig| {
            rig.write(".gitattributes", "f ident\n");
            rig.write("f", "$Id$\n");
            rig.commit();
            rig.remove("f");
            rig.git(&["checkout", "-q", "f"]);
        }),
        ("assume unchanged", |rig| {
            rig.write("f", "old\n");
            rig.commit();
            rig.git(&["update-index", "--assume-unchanged", "f"]);
            rig.write("f", "new\n");
        }),
        ("skip worktree", |rig| {
            rig.write("f", "old\n");
            rig.commit();
            rig.git(&["update-index", "--skip-worktree", "f"]);
            rig.write("f", "new\n");
        }),
        ("split index", |rig| {
            rig.write("f", "text\n");
            rig.commit();
            rig.git(&["update-index", "--split-index"]);
        }),
    ];
    for (name, prepare) in cases {
        let rig = Rig::repository();
        prepare(&rig);
        // Older than the index, so that git takes the files for unchanged.
        rig.git(&["status", "--short"]);
        let id = rig.capture();
        let found = contents(rig.open(), &id);
        assert_eq!(found[Path::new("f")].1, fs::read(rig.path().join("f")).unwrap(), "{name}");
    }
}

#[test]
fn the_users_objects_are_used() {
    let rig = Rig::repository();
    for n in 0..50 {
        rig.write(&format!("f{n}"), format!("content {n}"));
    }
    rig.commit();
    let id = rig.capture();
    assert_eq!(names(rig.open(), &id).len(), 50);
    let own = capture::without_borrowed(&rig.open().git());
    let args = ["cat-file", "--batch-all-objects", "--batch-check=%(objecttype)"];
    let own = own.line("list", args, Vec::new()).unwrap();
    // The list of what was omitted, and the snapshot itself.
    assert_eq!(own.lines().filter(|line| *line == "blob").count(), 1, "{own}");
}

#[test]
fn linked_work_trees_and_subfolders_are_captured() {
    let rig = Rig::repository();
    rig.write(".gitignore", "target/\n");
    rig.write("sub/a", "a");
    rig.write("sub/target/out", "out");
    rig.write("other", "other");
    rig.commit();
    let sub = Snapshots::open(&rig.path().join("sub"), &rig.options()).unwrap();
    let id = sub.capture("s", &[]).unwrap().id;
    assert_eq!(names(&sub, &id), BTreeSet::from(["a".to_owned()]), "patterns of the folder above");
    rig.write("sub/a", "changed");
    let after = sub.capture("s", &[]).unwrap().id;
    let plan = sub.plan(&back(&after, &id)).unwrap();
    sub.restore("s", &plan, &all(&plan)).unwrap();
    assert_eq!(rig.text("sub/a"), "a");

    let tree = rig.base.path().canonicalize().unwrap().join("tree");
    rig.git(&["worktree", "add", "-q", "-b", "two", tree.to_str().unwrap()]);
    let linked = Snapshots::open(&tree, &rig.options()).unwrap();
    assert!(linked.user.is_some());
    let id = linked.capture("s", &[]).unwrap().id;
    assert_eq!(names(&linked, &id).len(), 3);
}

#[test]
fn a_folder_that_its_repository_ignores_is_a_project_of_its_own() {
    let rig = Rig::repository();
    rig.write(".gitignore", "*\n");
    rig.write("project/a", "a");
    let sub = Snapshots::open(&rig.path().join("project"), &rig.options()).unwrap();
    let id = sub.capture("s", &[]).unwrap().id;
    assert_eq!(names(&sub, &id), BTreeSet::from(["a".to_owned()]));
}

#[test]
fn patterns_of_the_repository_and_the_user_count() {
    let rig = Rig::repository();
    fs::write(rig.path().join(".git/info/exclude"), "private\n").unwrap();
    let patterns = rig.base.path().join("my \"patterns\"");
    fs::write(&patterns, "*.mine\n").unwrap();
    let home = rig.base.path().join("home");
    fs::create_dir(&home).unwrap();
    let settings =
        format!("[core]\n\texcludesFile = \"{}\"\n", patterns.display().to_string().replace('"', "\\\""));
    fs::write(home.join(".gitconfig"), settings).unwrap();
    rig.write("private", "x");
    rig.write("a.mine", "x");
    rig.write("shown", "x");
    rig.write("forced.mine", "x");
    rig.git(&["add", "-f", "forced.mine"]);
    rig.write(".gitattributes", "* text=auto\n");
    let id = rig.capture();
    let expected = ["shown", "forced.mine", ".gitattributes"].map(str::to_owned);
    assert_eq!(names(rig.open(), &id), BTreeSet::from(expected), "without a seed");
}

#[test]
fn snapshots_survive_a_collection_of_the_users_objects() {
    let rig = Rig::repository();
    rig.write("a", "committed");
    rig.commit();
    rig.write("a", "staged");
    rig.write("dir/b", "staged too");
    rig.git(&["add", "-A"]);
    let id = rig.capture();
    rig.git(&["reset", "-q", "--hard"]);
    rig.git(&["reflog", "expire", "--expire=now", "--all"]);
    rig.git(&["gc", "-q", "--prune=now"]);
    let found = contents(rig.open(), &id);
    assert_eq!(found[Path::new("a")].1, b"staged");
    assert_eq!(found[Path::new("dir/b")].1, b"staged too");
    // Objects that the last commit had are copied when it goes away.
    rig.write("c", "new");
    rig.commit();
    let second = rig.capture();
    rig.git(&["reset", "-q", "--soft", "HEAD~1"]);
    assert!(rig.open().capture("s", &[]).unwrap().reused);
    rig.git(&["reset", "-q", "--hard"]);
    rig.git(&["reflog", "expire", "--expire=now", "--all"]);
    rig.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(contents(rig.open(), &second)[Path::new("c")].1, b"new");
    assert_eq!(names(rig.open(), &rig.open().capture("s", &[]).unwrap().id).len(), 1);
}

#[test]
fn a_repository_with_sha256_is_supported() {
    let rig = Rig::new();
    rig.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    rig.write("a", "one");
    rig.commit();
    let before = rig.capture();
    rig.write("a", "two");
    let after = rig.capture();
    assert_eq!(rig.undo(&after, &before).changed, [PathBuf::from("a")]);
    assert_eq!(rig.text("a"), "one");
}

#[test]
fn refused_folders_have_a_reason() {
    let rig = Rig::new();
    let open = |folder: &Path, home: &Path| {
        let options = Options { home: Some(home.to_owned()), ..rig.options() };
        match Snapshots::open(folder, &options) {
            Err(SnapshotError::Refused(why)) => Some(why),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    let path = rig.path();
    let base = path.parent().unwrap();
    assert!(open(Path::new("/"), base).unwrap().contains("root of the file system"));
    assert!(open(&path, &path).unwrap().contains("is your home folder"));
    assert!(open(&path, &path.join("ada")).unwrap().contains("contains your home"));
    assert!(open(base, &path).unwrap().contains("contains your home"));
    assert!(open(base, Path::new("/none")).unwrap().contains("data of parlor"));
    rig.write("file", "x");
    assert!(open(&path.join("file"), base).unwrap().contains("not a folder"));
    assert_eq!(open(&path, base), None);
}

#[test]
fn another_process_is_named() {
    let rig = Rig::new();
    rig.open();
    let other = Snapshots::open(&rig.path(), &rig.options()).unwrap();
    let _lock = other.lock().unwrap();
    let error = rig.open().capture("s", &[]).unwrap_err();
    let SnapshotError::Busy { process } = error else { panic!("{error}") };
    assert_eq!(process, Some(std::process::id()));
}

#[test]
fn a_capture_that_takes_too_long_fails() {
    let rig = Rig::new();
    rig.write("a", "a");
    let mut snapshots = Snapshots::open(&rig.path(), &rig.options()).unwrap();
    // git waits for a writer.
    fixtures::pipe(rig.path().join(".gitignore"));
    snapshots.limits.max_time = Duration::from_millis(300);
    let error = snapshots.capture("s", &[]).unwrap_err();
    assert!(matches!(error, SnapshotError::TimedOut { .. }), "{error}");
    fs::remove_file(rig.path().join(".gitignore")).unwrap();
    snapshots.limits.max_time = Duration::from_secs(30);
    assert_eq!(names(&snapshots, &snapshots.capture("s", &[]).unwrap().id).len(), 1);
}

#[test]
fn a_failed_capture_is_not_an_older_snapshot() {
    let mut rig = Rig::new();
    rig.write("a", "one");
    rig.capture();
    rig.write("a", "two");
    // Each step that writes fails.
    let snapshots = rig.snapshots.take().unwrap();
    let objects = snapshots.git_dir.join("objects");
    fs::rename(&objects, snapshots.git_dir.join("away")).unwrap();
    fs::write(&objects, "").unwrap();
    assert!(snapshots.capture("s", &[]).is_err());
    fs::remove_file(&objects).unwrap();
    fs::rename(snapshots.git_dir.join("away"), &objects).unwrap();
    let id = snapshots.capture("s", &[]).unwrap().id;
    assert_eq!(contents(&snapshots, &id)[Path::new("a")].1, b"two");
    // A damaged index is not used.
    fs::write(snapshots.index(&content_hash(b"s")), "damaged").unwrap();
    rig.write("a", "three");
    let id = snapshots.capture("s", &[]).unwrap().id;
    assert_eq!(contents(&snapshots, &id)[Path::new("a")].1, b"three");
}

#[test]
fn files_that_change_within_a_second_are_captured() {
    let mut rig = Rig::repository();
    rig.write("a", "0000");
    rig.commit();
    for n in 0..8 {
        rig.write("a", format!("{n:04}"));
        let id = rig.capture();
        assert_eq!(contents(rig.open(), &id)[Path::new("a")].1, format!("{n:04}").into_bytes());
        if n % 3 == 0 {
            rig.snapshots.take();
        }
    }
}

#[test]
fn the_oldest_snapshots_are_pruned() {
    let rig = Rig::repository();
    rig.write("tracked", "x".repeat(1000));
    rig.commit();
    let mut ids = Vec::new();
    for n in 0..12u8 {
        let mut random = crate::random::Random::new(u64::from(n));
        rig.write("a", (0..50_000).map(|_| u8::try_from(random.below(256)).unwrap()).collect::<Vec<u8>>());
        ids.push(rig.capture());
    }
    fs::write(rig.open().git_dir.join("objects/pack/tmp_pack_x"), "left by a killed run").unwrap();
    let pruned = rig.open().prune(300_000).unwrap();
    assert!(pruned.snapshots >= 6 && pruned.bytes <= 300_000, "{pruned:?}");
    assert!(!rig.open().git_dir.join("objects/pack/tmp_pack_x").exists());
    assert!(matches!(rig.open().changes(&ids[0], &ids[11]), Err(SnapshotError::Missing(_))));
    assert_eq!(contents(rig.open(), &ids[11]).len(), 2);
    assert_eq!(rig.open().changes(&ids[10], &ids[11]).unwrap().len(), 1);
    // The limit of a capture.
    let mut options = rig.options();
    options.limits.max_store_bytes = 200_000;
    let snapshots = Snapshots::open(&rig.path(), &options).unwrap();
    rig.write("a", "small");
    let captured = snapshots.capture("other session / with a name", &[]).unwrap();
    assert!(captured.pruned > 0, "{captured:?}");
    assert_eq!(contents(&snapshots, &captured.id)[Path::new("a")].1, b"small");
    let pruned = snapshots.prune(0).unwrap();
    assert_eq!(contents(&snapshots, &captured.id).len(), 2, "the newest stays: {pruned:?}");
    assert!(snapshots.capture("s", &[]).is_ok());
}
