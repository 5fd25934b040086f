//! Removing texts, turns and the old database.

use super::*;

#[test]
fn a_text_is_removed_from_all_sessions() {
    let mut fixture = Fixture::new();
    fixture.input = "hunter2\n";
    assert_eq!(fixture.run(&["redact", "--yes"]), "No saved session contains the text.\n");
    let one = fixture.record("/here", "log in with hunter2", "hunter2 works");
    let two = fixture.record("/there", "again", "it is hunter2.");
    fixture.record("/here", "other", "nothing");
    let pasted = Attachment::of_text("paste of hunter2");
    let attachments = crate::host::attachments::Attachments::new(Some(fixture.dir.path()));
    attachments.save(&pasted).unwrap();

    let error = fixture.try_run(&["redact"], None).unwrap_err().to_string();
    assert!(error.contains("pass --yes"), "{error}");
    let reported = fixture.try_run(&["redact"], Some(false)).unwrap();
    assert!(
        reported.contains(&one) && reported.contains(&two) && !reported.contains("hunter2"),
        "{reported}"
    );
    assert!(reported.ends_with("Nothing was removed.\n"), "{reported}");
    assert!(fixture.run(&["show", &one]).contains("hunter2"), "counting changes nothing");

    let reported = fixture.try_run(&["redact"], Some(true)).unwrap();
    assert!(reported.contains(" entries of 2 sessions, and deleted pasted texts: 1.\n"), "{reported}");
    for id in [&one, &two] {
        let shown = fixture.run(&["show", id]);
        assert!(shown.contains("[removed]") && !shown.contains("hunter2"), "{shown}");
    }
    let label = attachment_labels(&pasted.label()).remove(0);
    assert_eq!(crate::host::attachments::Attachments::new(Some(fixture.dir.path())).find(&label), None);
}

#[test]
fn a_text_is_removed_from_one_session_only() {
    let mut fixture = Fixture::new();
    fixture.input = "hunter2";
    let one = fixture.record("/here", "one", "hunter2 works");
    let two = fixture.record("/here", "two", "it is hunter2.");
    let reported = fixture.run(&["redact", &one, "--yes"]);
    assert!(reported.contains("1 entry of 1 session.\n"), "{reported}");
    assert!(!fixture.run(&["show", &one]).contains("hunter2"));
    assert!(fixture.run(&["show", &two]).contains("hunter2"));
    assert!(fixture.run(&["search", "hunter2"]).contains(&two), "its search texts stay");
    fixture.input = " \n";
    let error = fixture.try_run(&["redact", "--yes"], None).unwrap_err().to_string();
    assert!(error.starts_with("no text was given"), "{error}");
}

#[test]
fn an_open_session_is_not_changed() {
    let mut fixture = Fixture::new();
    fixture.input = "hunter2";
    let id = fixture.record("/here", "one", "hunter2 works");
    fixture.store.reopen(&id).unwrap();
    for args in [&["redact", "--yes"][..], &["delete-turns", &id, "1", "--yes"]] {
        let error = fixture.try_run(args, None).unwrap_err().to_string();
        assert!(error.contains(&format!("{id} is open in another parlor")), "{error}");
    }
    assert!(fixture.run(&["show", &id]).contains("hunter2"));
}

#[test]
fn turns_are_listed_and_deleted() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "mend\nthe basket", "done");
    assert_eq!(fixture.run(&["delete-turns", &id]), "  1  mend the basket\n");
    assert!(
        fixture.try_run(&["delete-turns", &id, "1"], Some(false)).unwrap().contains("Nothing was deleted")
    );
    for wrong in ["0", "2-1", "x", "1-", ""] {
        let error = fixture.try_run(&["delete-turns", &id, wrong, "--yes"], None).unwrap_err().to_string();
        assert!(error.contains("use a number or a range"), "{wrong}: {error}");
    }
    let error = fixture.try_run(&["delete-turns", &id, "2-9", "--yes"], None).unwrap_err().to_string();
    assert!(error.contains("has no such turns"), "{error}");
    let reported = fixture.run(&["delete-turns", &id, "1-2", "--yes"]);
    assert!(reported.starts_with("  1  mend the basket\nDeleted. "), "{reported}");
    assert!(!fixture.run(&["show", &id]).contains("done"));
    assert_eq!(fixture.run(&["search", "basket"]), "No matches.\n");
}

#[test]
fn the_old_database_is_named_and_deleted() {
    let fixture = Fixture::new();
    let none = "There is no database of an earlier version.\n";
    assert_eq!(fixture.run(&["delete-old-database", "--yes"]), none);
    let path = fixture.dir.path().join("sessions.db.former");
    std::fs::write(&path, vec![0; 3 << 20]).unwrap();
    let listed = fixture.run(&["list"]);
    let note = "The database of an earlier version is still there (3 MiB); `parlor sessions delete-old-database` \
                deletes it.";
    assert_eq!(listed.matches(note).count(), 1, "{listed}");
    let reported = fixture.try_run(&["delete-old-database"], Some(false)).unwrap();
    assert!(reported.starts_with(&format!("{}  3072 KiB  20", path.display())), "{reported}");
    assert!(path.exists());
    assert!(fixture.try_run(&["delete-old-database"], Some(true)).unwrap().ends_with("\nDeleted.\n"));
    assert!(!path.exists() && !fixture.run(&["list"]).contains("earlier version"));
}
