//! Files of changes that could not be saved, imported again.

use super::*;

fn prompt(turn: u32, text: &str) -> Note {
    let record = Record::Prompt {
        text: text.to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    };
    Note::Event { turn, record: Box::new(record) }
}

/// Records a prompt while the store fails: `break_store` changes the database. Returns the file and the message.
fn lose(fixture: &Fixture, saved_as: Option<&str>, break_store: &str) -> (String, String) {
    let reopened = Store::open(fixture.dir.path()).unwrap();
    if let Some(uid) = saved_as {
        reopened.reopen(uid).unwrap();
    }
    let database = fixture.dir.path().join("record.db");
    rusqlite::Connection::open(database).unwrap().execute_batch(break_store).unwrap();
    let (services, _events) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::new(reopened, services);
    let head = SessionHead {
        agent: "fake".to_owned(),
        saved_as: saved_as.map(str::to_owned),
        workspace: SessionWorkspace { cwd: "/here".into(), ..SessionWorkspace::default() },
        ..SessionHead::default()
    };
    recorder.keep(SessionKey(1), vec![Note::Head(Box::new(head)), prompt(2, "the lost one")]);
    let message = recorder.finish().unwrap();
    let path = message.split('\'').nth(1).unwrap().to_owned();
    (path, message)
}

fn mend(fixture: &Fixture, sql: &str) {
    rusqlite::Connection::open(fixture.dir.path().join("record.db")).unwrap().execute_batch(sql).unwrap();
}

const FAIL: &str = "CREATE TRIGGER fail BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'no'); END";
const MEND: &str = "DROP TRIGGER fail";

#[test]
fn a_session_that_was_never_saved_is_imported_under_its_id() {
    let fixture = Fixture::new();
    fixture.run(&["list"]);
    let (file, message) = lose(&fixture, None, FAIL);
    assert!(message.starts_with("1 turn was not saved: "), "{message}");
    mend(&fixture, MEND);
    let listed = fixture.run(&["list", "--all"]);
    assert_eq!(
        listed,
        format!(
            "No sessions yet.\n\nThere are turns that were not saved. Add them with `parlor sessions import \
             '{file}'`, then delete what was imported.\n"
        )
    );
    let reported = fixture.run(&["import", &file]);
    let uid = file.rsplit_once('-').unwrap().1.strip_suffix(".json").unwrap();
    assert_eq!(reported, format!("{file}: imported as session {uid}.\n"));
    assert!(fixture.run(&["show", uid]).contains("> the lost one"));
    assert_eq!(fixture.run(&["import", &file]), format!("{file}: session {uid} already exists.\n"));
}

#[test]
fn an_import_adds_the_whole_session_beside_the_saved_part() {
    let fixture = Fixture::new();
    let saved = fixture.record("/here", "one", "the answer");
    let (file, _) = lose(&fixture, Some(&saved), FAIL);
    mend(&fixture, MEND);
    let reported = fixture.run(&["import", &file]);
    let uid = reported.trim_end_matches(".\n").rsplit_once(' ').unwrap().1;
    assert_ne!(uid, saved);
    let shown = fixture.run(&["show", uid]);
    assert!(shown.contains("the answer") && shown.contains("> the lost one"), "{shown}");
    assert!(fixture.run(&["import", &file]).ends_with("already exists.\n"), "nothing is imported twice");
}

#[test]
fn the_rest_of_a_session_names_the_saved_part() {
    let fixture = Fixture::new();
    let saved = fixture.record("/here", "one", "the answer");
    let (file, message) = lose(&fixture, Some(&saved), "PRAGMA user_version = 999");
    assert!(message.contains("Earlier turns could not be read"), "{message}");
    mend(&fixture, "PRAGMA user_version = 3");
    let reported = fixture.run(&["import", &file]);
    let uid = reported.trim_end_matches(".\n").rsplit_once(' ').unwrap().1;
    let shown = fixture.run(&["show", uid]);
    assert!(!shown.contains("the answer") && shown.contains("> the lost one"), "{shown}");
    assert_eq!(fixture.store.find(uid).unwrap().came_from, Some(saved));
}
