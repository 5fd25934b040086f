//! Hostile folders: nothing in them is run, written through a link, or leads to reads outside.

use super::*;

/// A file outside of the folder with patterns that exclude `secret`.
fn outside(rig: &Rig) -> PathBuf {
    let path = rig.base.path().join("outside");
    fs::write(&path, "secret\n").unwrap();
    path
}

#[test]
fn settings_of_the_folders_repository_are_not_read() {
    let rig = Rig::repository();
    let pipe = rig.base.path().join("pipe");
    fixtures::pipe(&pipe);
    rig.write("secret", "x");
    let config = rig.path().join(".git/config");
    let settings = format!(
        "[core]\n\texcludesFile = {}\n[include]\n\tpath = {}\n",
        outside(&rig).display(),
        pipe.display()
    );
    fs::write(&config, fs::read_to_string(&config).unwrap() + &settings).unwrap();
    let mut options = rig.options();
    options.limits.max_time = Duration::from_secs(5);
    let snapshots = Snapshots::open(&rig.path(), &options).unwrap();
    let id = snapshots.capture("s", &[]).unwrap().id;
    assert_eq!(names(&snapshots, &id), BTreeSet::from(["secret".to_owned()]));
}

#[test]
fn links_in_the_folders_repository_are_not_followed() {
    let rig = Rig::repository();
    rig.write("secret", "x");
    rig.commit();
    let exclude = rig.path().join(".git/info/exclude");
    let _ = fs::remove_file(&exclude);
    fixtures::link(outside(&rig), exclude);
    rig.write("sub/secret", "x");
    assert_eq!(names(rig.open(), &rig.capture()).len(), 2);
}

#[test]
fn objects_of_other_repositories_are_not_borrowed() {
    let other = Rig::repository();
    other.write("a", "of another repository");
    other.commit();
    let rig = Rig::repository();
    rig.write("b", "b");
    rig.commit();
    let entry = Entry { kind: Kind::File, id: compare::id_of(b"of another repository") };
    rig.capture();
    assert!(rig.open().read(&entry, 100).is_err());
    // It appears after the repository was checked.
    let objects = other.path().join(".git/objects");
    fs::create_dir_all(rig.path().join(".git/objects/info")).unwrap();
    fs::write(rig.path().join(".git/objects/info/alternates"), files::bytes(objects.as_os_str())).unwrap();
    assert!(rig.open().read(&entry, 100).is_err());
    assert_eq!(names(rig.open(), &rig.capture()).len(), 1);

    let rig = Rig::new();
    rig.write(".git", format!("gitdir: {}\n", other.path().join(".git").display()));
    rig.write("c", "c");
    rig.capture();
    assert!(rig.open().read(&entry, 100).is_err());
}

#[test]
fn a_folder_that_was_replaced_by_a_link_is_neither_read_nor_written() {
    let rig = Rig::new();
    rig.write("changed", "one");
    rig.write("deleted", "one");
    let before = rig.capture();
    rig.write("changed", "two");
    rig.remove("deleted");
    let after = rig.capture();
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    let elsewhere = rig.base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("changed"), "two").unwrap();
    fs::rename(rig.path(), rig.base.path().join("away")).unwrap();
    fixtures::link(&elsewhere, rig.base.path().join("w"));
    assert!(rig.open().capture("s", &[]).is_err());
    assert!(rig.open().plan(&back(&after, &before)).is_err());
    assert!(rig.open().on_disk(Path::new("changed")).is_err());
    assert!(rig.open().restore("s", &plan, &all(&plan)).is_err());
    assert_eq!(fs::read_to_string(elsewhere.join("changed")).unwrap(), "two");
    assert!(!elsewhere.join("deleted").exists());
}

#[test]
fn a_content_that_does_not_match_its_id_is_not_written() {
    let rig = Rig::repository();
    rig.commit();
    let object = |text: &str| {
        rig.write("a", text);
        rig.git(&["hash-object", "-w", "a"]);
        let id = compare::id_of(text.as_bytes());
        rig.path().join(".git/objects").join(&id.as_str()[..2]).join(&id.as_str()[2..])
    };
    let (wrong, right) = (object("wrong"), object("right"));
    fs::remove_file(&right).unwrap();
    fs::copy(&wrong, &right).unwrap();
    let before = rig.capture();
    rig.write("a", "changed");
    let after = rig.capture();
    let plan = rig.open().plan(&back(&after, &before)).unwrap();
    let _ = rig.open().restore("s", &plan, &all(&plan));
    assert_eq!(rig.text("a"), "changed");
    assert!(rig.open().recover().unwrap().is_none());
}
