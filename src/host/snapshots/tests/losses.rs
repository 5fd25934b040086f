//! What users of other clients have lost to an undo.

use super::*;

#[test]
fn redo_in_one_folder_leaves_other_folders_alone() {
    let (one, other) = (Rig::repository(), Rig::repository());
    let options = one.options();
    let snapshots = [&one, &other].map(|rig| {
        rig.write("a", "old");
        let snapshots = Snapshots::open(&rig.path(), &options).unwrap();
        let before = snapshots.capture("s", &[]).unwrap().id;
        rig.write("a", "new");
        let after = snapshots.capture("s", &[]).unwrap().id;
        (snapshots, before, after)
    });
    let restore = |from: &SnapshotId, to: &SnapshotId| {
        let plan = snapshots[0].0.plan(&back(from, to)).unwrap();
        snapshots[0].0.restore("s", &plan, &all(&plan)).unwrap();
    };
    let [(_, before, after), _] = &snapshots;
    restore(after, before);
    assert_eq!((one.text("a").as_str(), other.text("a").as_str()), ("old", "new"));
    restore(before, after);
    assert_eq!((one.text("a").as_str(), other.text("a").as_str()), ("new", "new"));
}

#[test]
fn untracked_files_that_an_agent_deleted_come_back() {
    let rig = Rig::repository();
    rig.write("tracked", "x");
    rig.commit();
    rig.write("notes/untracked", "never committed");
    let before = rig.capture();
    fs::remove_dir_all(rig.path().join("notes")).unwrap();
    let after = rig.capture();
    rig.undo(&after, &before);
    assert_eq!(rig.text("notes/untracked"), "never committed");
}

#[test]
fn ignored_files_are_not_deleted_when_the_patterns_change() {
    let rig = Rig::repository();
    rig.write(".gitignore", "build/\n");
    rig.write("build/out", "an hour of work");
    let before = rig.capture();
    // The agent removes the pattern, so the files are captured from now on.
    rig.remove(".gitignore");
    rig.write("new", "of the agent");
    let after = rig.capture();
    rig.undo(&after, &before);
    assert_eq!((rig.text("build/out").as_str(), rig.text("new").as_str()), ("an hour of work", "absent"));
    assert_eq!(rig.text(".gitignore"), "build/\n");
}

#[test]
fn a_capture_during_a_commit_leaves_the_repository_as_it_is() {
    let rig = Rig::repository();
    rig.write("a", "one");
    rig.commit();
    rig.write(".git/index.lock", "");
    rig.write("a", "two");
    let before = rig.capture();
    rig.write("a", "three");
    rig.undo(&rig.capture(), &before);
    assert_eq!((rig.text("a").as_str(), rig.text(".git/index.lock").as_str()), ("two", ""));
    assert!(rig.path().join(".git/HEAD").is_file());
}
