//! Odd rows, foreign files, and folders that vanish.

use super::faults::{next_trouble, outside};
use super::recorder::tests::writer;
use super::sessions::texts;
use super::*;
use crate::host::os::fixtures;

/// A store with three sessions.
fn three() -> (tempfile::TempDir, Store) {
    let (dir, store) = store();
    for n in 1..=3 {
        record(
            &store,
            vec![head(&format!("s{n}")), prompt(1, &format!("walnut {n}")), says(1, "a"), ended(1)],
        );
    }
    (dir, store)
}

#[test]
fn an_odd_row_hides_only_itself() {
    let invalid = "CAST(x'ff41' AS TEXT)";
    let odd = [
        ("title", invalid),
        ("folder", "x'2f636f6465'"),
        ("turns", "-1"),
        ("next_seq", "-5"),
        ("draft", invalid),
        ("used", "'never'"),
        ("used", "1e99"),
        ("tab", "-7"),
        ("owner", "x'00'"),
        ("uid", "x'00'"),
        ("updated", "'yesterday'"),
    ];
    for (column, value) in odd {
        let (dir, store) = three();
        let change = format!("UPDATE sessions SET {column} = {value} WHERE agent_session = 's2'");
        outside(&dir).execute_batch(&change).unwrap();
        let listed: Vec<String> =
            store.list(&ListFilter::default()).unwrap().iter().map(|row| row.name().to_owned()).collect();
        assert_eq!(listed, ["walnut 3", "walnut 1"], "{change}");
        let problems = store.take_problems();
        assert!(problems.len() == 1 && problems[0].ends_with("could not be read: 1."), "{problems:?}");
        for limit in 1..4 {
            let (mut paged, mut after) = (Vec::new(), None);
            loop {
                let (rows, next) = store.list_page(after, limit).unwrap();
                paged.extend(rows.into_iter().map(|row| row.name().to_owned()));
                after = next;
                if after.is_none() {
                    break;
                }
            }
            assert!(!paged.contains(&"walnut 2".to_owned()), "{change}");
            assert!(paged == listed || column == "used", "{change}, {limit}: {paged:?}");
        }
        assert_eq!(store.take_problems(), Vec::<String>::new(), "it is reported once");
        assert_eq!(store.find("s1").unwrap().name(), "walnut 1");
        store.find("s3").unwrap();
        assert!(hits(&store, "walnut") >= 2, "{change}");
        assert!(store.last_of(Path::new("/code/shop")).unwrap().0.len() >= 2);
        assert!(store.folder_offers(&store.find("s1").unwrap(), Path::new("/")).len() < 9);
        served(&store, StoreJob::List { serial: 1, folder: "/code".into() });
        store.search_prompts(&PromptQuery { is_new: true, ..PromptQuery::default() }).unwrap();
        store.unsent_prompts().unwrap();
        store.move_folder(Path::new("/code/shop"), Path::new("/moved")).unwrap();
        let uid = store.find("s1").unwrap().uid;
        store.reopen(&uid).unwrap();
        let again = another(&dir);
        record(&again, vec![head("s4"), prompt(1, "after"), ended(1)]);
        assert_eq!(again.find("s4").unwrap().turn_count, 1);
    }
}

#[test]
fn odd_events_and_texts_are_counted_and_left_out() {
    let (dir, store) = three();
    let uid = store.find("s2").unwrap().uid;
    outside(&dir)
        .execute_batch(
            "UPDATE log SET body = x'7b7d' WHERE session = 2 AND kind = 'answer';
            UPDATE log SET turn = -1 WHERE session = 2 AND kind = 'turn_ended';
            UPDATE docs SET kind = x'00' WHERE session = 1;
            INSERT INTO prompts (folder, text, at) VALUES ('/f', x'ff', 1), ('/f', 'fine', 'x');
            INSERT INTO folders VALUES ('/g', x'00', 1), (x'00', 'fake', 2);
            INSERT INTO meta VALUES (x'00', '');",
        )
        .unwrap();
    assert_eq!(store.events(&uid).unwrap().1, 2);
    let saved = store.reopen(&uid).unwrap();
    assert_eq!((texts(&saved), saved.unreadable_count), (vec!["> walnut 2".to_owned()], 2));
    assert_eq!(hits(&store, "walnut"), 2);
    assert_eq!(store.history(Path::new("/f")), ["fine"]);
    assert_eq!(store.folders(), [PathBuf::from("/g")]);
    assert!(store.draft_agents().is_empty());
    store.search_prompts(&PromptQuery { is_new: true, ..PromptQuery::default() }).unwrap();
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    for sql in [
        "PRAGMA application_id = 7; CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')",
        "CREATE TABLE sessions (id INTEGER PRIMARY KEY, uid TEXT); INSERT INTO sessions VALUES (1, 'mine')",
        "PRAGMA journal_mode = wal; CREATE TABLE notes (text TEXT)",
    ] {
        let (dir, store) = store();
        let data = dir.path().join("data");
        for file in [db::FILE, "sessions.db"] {
            Connection::open(data.join(file)).unwrap().execute_batch(sql).unwrap();
        }
        let state = || -> Vec<(PathBuf, Vec<u8>, u32)> {
            let entries = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
            let files = entries.filter(|path| path.extension().is_some_and(|kind| kind == "db"));
            let read = |path: PathBuf| {
                let mode = fixtures::mode(&path);
                (path.clone(), fs::read(&path).unwrap(), mode)
            };
            files.map(read).collect()
        };
        let before = state();
        let error = store.count().unwrap_err();
        assert_eq!(*error.fault(), Fault::Foreign);
        assert!(error.to_string().contains("another program"), "{error}");
        let (mut writer, mut received) = writer(&store);
        writer.keep_now(vec![head("s1"), prompt(1, "one")]);
        assert!(next_trouble(&mut received).contains("another program"));
        drop((writer, store));
        assert_eq!(state(), before, "{sql}");
        // The old name is not needed.
        fs::remove_file(data.join(db::FILE)).unwrap();
        let again = another(&dir);
        assert_eq!((again.count().unwrap(), again.former_files().len()), (0, 0));
        assert_eq!(again.take_problems(), Vec::<String>::new());
    }
}

#[test]
fn a_folder_that_vanishes_is_made_anew_and_told() {
    for only_file in [false, true] {
        let (dir, store) = store();
        let (mut writer, mut received) = writer(&store);
        writer.keep_now(vec![head("s1"), prompt(1, "one"), says(1, "lost")]);
        writer.keep_for(SessionKey(2), vec![head("s2"), prompt(1, "two"), Note::Draft("half".into())]);
        let data = dir.path().join("data");
        if only_file {
            for path in db::files(&data.join(db::FILE)) {
                let _ = fs::remove_file(path);
            }
        } else {
            fs::remove_dir_all(&data).unwrap();
        }
        store_news(&mut received);
        writer.keep_now(vec![says(1, "after"), ended(1)]);
        let trouble = next_trouble(&mut received);
        assert!(trouble.contains("Sessions are saved again from here on"), "{trouble}");
        let other = another(&dir);
        let rows = other.list(&ListFilter::default()).unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| other.open_in(row).is_some()), "they are open here");
        let uid = other.find("s1").unwrap().uid;
        assert_eq!(texts(&other.peek(&uid).unwrap().1), ["after", "end"]);
        assert_eq!(other.find("s2").unwrap().draft, "half");
        writer.keep_now(vec![prompt(2, "go on")]);
        assert!(
            store_news(&mut received).iter().all(|news| !matches!(news, StoreNews::Reported(_))),
            "told once"
        );
        // Other methods use the new file, too.
        assert_eq!(store.count().unwrap(), 2);
    }
}

#[test]
fn a_folder_that_cannot_be_made_anew_is_reported() {
    let (dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one")]);
    let data = dir.path().join("data");
    fs::remove_dir_all(&data).unwrap();
    fs::write(&data, "a file").unwrap();
    writer.keep_now(vec![says(1, "after")]);
    assert!(next_trouble(&mut received).starts_with("Not saved: "));
    fs::remove_file(&data).unwrap();
    writer.keep_now(vec![ended(1)]);
    let uid = another(&dir).find("s1").unwrap().uid;
    assert_eq!(texts(&another(&dir).peek(&uid).unwrap().1), ["after", "end"]);
}

#[test]
fn what_was_damaged_is_told_also_when_the_last_session_is_continued() {
    let (dir, first) = store();
    record(&first, vec![head("s1"), prompt(1, "one"), ended(1)]);
    drop(first);
    let path = dir.path().join("data").join(db::FILE);
    fs::write(&path, b"no database at all".repeat(99)).unwrap();
    let store = another(&dir);
    assert_eq!(store.last_of(Path::new("/code/shop")).unwrap(), (vec![], vec![]));
    let [aside] = broken_files(&dir.path().join("data")).try_into().unwrap();
    let [problem] = store.take_problems().try_into().unwrap();
    let (path, aside) = (path.display().to_string(), aside.display().to_string());
    assert!(problem.contains(&path) && problem.contains(&aside), "{problem}");
}

#[test]
fn errors_do_not_contain_statements() {
    let (dir, store) = three();
    outside(&dir).execute_batch("DROP VIEW listed; ALTER TABLE log RENAME COLUMN body TO text").unwrap();
    let (mut writer, mut received) = writer(&store);
    writer.keep_now(vec![head("s9"), prompt(1, "one")]);
    let uid = "any".to_owned();
    let errors = [
        store.list(&ListFilter::default()).unwrap_err().to_string(),
        store.count().unwrap_err().to_string(),
        store.events(&uid).unwrap_err().to_string(),
        next_trouble(&mut received),
    ];
    for error in errors {
        assert!(error.contains("its tables are not those of this version"), "{error}");
        assert!(
            !["SELECT", "INSERT", "listed", "no such"].iter().any(|word| error.contains(word)),
            "{error}"
        );
    }
}
