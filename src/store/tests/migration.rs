//! The conversion of files of older versions.

use super::former::STEPS;
use super::sessions::texts;
use super::*;
use crate::random::Random;

/// The old file, with the tables of a version.
fn former(dir: &tempfile::TempDir, steps: usize) -> Connection {
    let data = dir.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let conn = Connection::open(data.join("sessions.db")).unwrap();
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    conn.execute_batch("PRAGMA synchronous = off").unwrap();
    for sql in &STEPS[..steps] {
        conn.execute_batch(sql).unwrap();
    }
    conn.pragma_update(None, "user_version", i64::try_from(steps).unwrap()).unwrap();
    conn
}

/// Adds a session; its number is that of the row.
fn add_session(conn: &Connection, id: i64, updated: i64) {
    conn.execute(
        "INSERT INTO sessions (id, uid, agent, command, args, folder, roots, title, first_prompt, is_child, created,
            updated, state, turns, next_seq, draft, queue)
        VALUES (?1, ?2, 'fake', 'fake', '[\"--acp\"]', '/code', '[]', ?3, 'mend it', 0, 1, ?4, 'idle', 1, 1, 'half',
            '[\"next\"]')",
        rusqlite::params![id, format!("uid{id}"), format!("title {id}"), updated],
    )
    .unwrap();
}

fn answered(text: &str) -> String {
    super::super::format::encode(&super::answered("", text))
}

fn add_event(conn: &Connection, session: i64, seq: i64, text: &str) {
    let sql =
        "INSERT INTO events (session, seq, turn, at, kind, body) VALUES (?1, ?2, 1, ?2, 'answered', ?3)";
    conn.execute(sql, rusqlite::params![session, seq, answered(text)]).unwrap();
    let sql = "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (?1, ?2, 1, ?2, 'prompt', 0, ?3)";
    conn.execute(sql, rusqlite::params![session, seq, text]).unwrap();
}

/// The texts of a session's events.
fn log_of(store: &Store, uid: &str) -> Vec<String> {
    let (events, unreadable_count) = store.events(uid).unwrap();
    assert_eq!(unreadable_count, 0);
    let text = |event: RecordedEvent| match event.record {
        Record::Answered { answer, .. } => answer,
        other => panic!("{other:?}"),
    };
    events.into_iter().map(text).collect()
}

#[test]
fn files_of_all_older_versions_are_converted_without_loss() {
    for steps in 1..=STEPS.len() {
        let (dir, store) = store();
        let conn = former(&dir, steps);
        add_session(&conn, 1, 1);
        conn.execute_batch(
            "INSERT INTO events VALUES (1, 0, 1, 1, 'prompt', '{\"prompt\":{\"text\":\"mend the rounding\"}}');
            INSERT INTO docs (session, seq, turn, at, kind, is_error, text)
                VALUES (1, 0, 1, 1, 'prompt', 0, 'mend the rounding');
            INSERT INTO prompts (folder, text, at) VALUES ('/code', 'mend it', 1);
            INSERT INTO folders VALUES ('/code', 'fake', 1);
            INSERT INTO meta VALUES ('draft agent: fake --acp', '');",
        )
        .unwrap();
        drop(conn);
        let row = store.find("uid1").unwrap();
        assert_eq!((row.name(), row.draft.as_str(), row.queue.len()), ("title 1", "half", 1), "{steps}");
        assert!(!row.has_own_title && !row.owes_title && row.came_from.is_none() && row.stash.is_empty());
        // Older versions did not mark imported sessions, and saved their programs.
        assert_eq!(
            (row.is_imported, row.command.as_str()),
            if steps < 7 { (true, "") } else { (false, "fake") }
        );
        assert_eq!(texts(&store.reopen("uid1").unwrap()), ["> mend the rounding"]);
        assert_eq!(hits(&store, "rounding"), 1);
        assert_eq!(store.history(Path::new("/code")), ["mend it"]);
        assert_eq!(store.agent_for(Path::new("/code")).as_deref(), Some("fake"));
        assert_eq!(store.draft_agents().len(), 1);
        record(&store, vec![head("s1"), prompt(1, "one"), ended(1)]);
        assert_eq!(store.list(&ListFilter::default()).unwrap().len(), 2);
        assert_eq!(store.take_problems(), Vec::<String>::new());
        assert_eq!(number(&store, "SELECT count(*) FROM meta"), 1, "no marks are left");
        let data = dir.path().join("data");
        assert_eq!(store.former_files(), [data.join("sessions.db.former")]);
        assert!(!data.join("sessions.db").exists() && !data.join("sessions.db-wal").exists());
        store.discard_former().unwrap();
        assert_eq!((store.former_files().len(), another(&dir).count().unwrap()), (0, 2));
    }
}

/// What a converted store must have.
struct Expected {
    logs: Vec<(String, Vec<String>)>,
    odd_count: usize,
}

/// Fills the old file with random sessions: with late events, replaced and incomplete histories, and odd rows.
fn fill(conn: &Connection, random: &mut Random, count: i64) -> Expected {
    let change = conn.unchecked_transaction().unwrap();
    let (mut logs, mut odd_count) = (Vec::new(), 0);
    for id in 1..=count {
        add_session(&change, id, 1_000 + (id * 37) % 101);
        let length = i64::try_from(random.below(30)).unwrap();
        let mut log: Vec<String> = Vec::new();
        let (mut has_odd, mut latest) = (false, -1);
        for seq in 0..length {
            let text = format!("word{id}x{seq}");
            match random.below(20) {
                0 => {
                    let sql = "INSERT INTO events VALUES (?1, ?2, 1, 1, 'replaced', '\"replaced\"')";
                    change.execute(sql, [id, seq]).unwrap();
                    change.execute("DELETE FROM docs WHERE session = ?1 AND seq < ?2", [id, seq]).unwrap();
                    log.clear();
                }
                1 => {
                    let odd = if random.one_in(2) { "x'00'" } else { "CAST(x'ff' AS TEXT)" };
                    let sql = format!("INSERT INTO events VALUES (?1, ?2, 1, 1, 'answered', {odd})");
                    change.execute(&sql, [id, seq]).unwrap();
                    // Events before a history that replaces them are not read at all.
                    has_odd = true;
                    latest = seq;
                }
                _ => {
                    add_event(&change, id, seq, &text);
                    log.push(text);
                }
            }
            for nth in 1..=random.below(6).saturating_sub(3) {
                let text = format!("late{id}x{seq}x{nth}");
                let sql =
                    "INSERT INTO late (session, seq, nth, turn, at, body) VALUES (?1, ?2, ?3, 1, 1, ?4)";
                change.execute(sql, rusqlite::params![id, seq, nth.cast_signed(), answered(&text)]).unwrap();
                log.push(text);
            }
        }
        let sql = "SELECT coalesce(max(seq), -1) FROM events WHERE session = ?1 AND kind = 'replaced'";
        let replaced: i64 = change.query_row(sql, [id], |row| row.get(0)).unwrap();
        odd_count += usize::from(has_odd && latest > replaced);
        if random.one_in(4) {
            // A history that was being loaded.
            let sql = "INSERT INTO staged VALUES (?1, ?2, 1, 1, 'answered', ?3)";
            change.execute(sql, rusqlite::params![id, length, answered("incomplete")]).unwrap();
            let sql = "INSERT INTO late VALUES (?1, ?2, 1, 1, 1, ?3)";
            change.execute(sql, rusqlite::params![id, length, answered("incomplete")]).unwrap();
        }
        if random.one_in(9) {
            change.execute("UPDATE sessions SET title = x'00', turns = -3 WHERE id = ?1", [id]).unwrap();
            odd_count += usize::from(!(has_odd && latest > replaced));
        }
        logs.push((format!("uid{id}"), log));
    }
    change.commit().unwrap();
    Expected { logs, odd_count }
}

fn check(store: &Store, expected: &Expected) {
    assert_eq!(number(store, "SELECT count(*) FROM sessions"), i64::try_from(expected.logs.len()).unwrap());
    for (uid, log) in &expected.logs {
        assert_eq!(log_of(store, uid), *log, "{uid}");
        let sql = format!("SELECT next_seq FROM sessions WHERE uid = '{uid}'");
        assert_eq!(number(store, &sql), i64::try_from(log.len()).unwrap());
        for (seq, text) in (0..).zip(log).filter(|(_, text)| text.starts_with("word")).take(3) {
            let search = ArchiveSearch { text: text.clone(), limit: 9, ..ArchiveSearch::default() };
            let found = store.search(&search).unwrap();
            let found: Vec<_> = found.iter().map(|hit| (hit.uid.as_str(), hit.seq)).collect();
            assert_eq!(found, [(uid.as_str(), seq)], "{text}");
        }
    }
    // By their times, which are all different.
    let order: Vec<i64> =
        store.list(&ListFilter::default()).unwrap().iter().map(|row| row.updated_ms).collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
}

#[test]
fn a_conversion_that_is_interrupted_after_any_session_goes_on() {
    let (dir, first) = store();
    let count = 60;
    let conn = former(&dir, STEPS.len());
    let expected = fill(&conn, &mut Random::new(7), count);
    assert!(expected.odd_count > 5);
    drop(conn);
    for stop in 1..=count.cast_unsigned() {
        let store = another(&dir);
        let mut seen = 0;
        let error = store
            .convert(&mut |done, total| {
                assert_eq!(total, count.cast_unsigned());
                seen = done;
                done < stop
            })
            .unwrap_err();
        assert!(error.to_string().contains("interrupted") && seen == stop, "{error}");
        // An older parlor refuses the file.
        let old = Connection::open(dir.path().join("data/sessions.db")).unwrap();
        let version: i64 = old.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert!(version > i64::try_from(STEPS.len()).unwrap());
    }
    let mut progress = Vec::new();
    let migrated = first.migrate(&mut |done, total| progress.push((done, total))).unwrap().unwrap();
    assert_eq!((migrated.session_count, migrated.unreadable.len()), (60, expected.odd_count));
    check(&first, &expected);
    let problems = first.take_problems();
    assert!(problems.len() == 1 && problems[0].contains("sessions.db.former"), "{problems:?}");
    assert!(migrated.unreadable.iter().all(|odd| problems[0].contains(odd)), "{problems:?}");
    // Nothing happens again.
    let again = another(&dir);
    assert_eq!(again.migrate(&mut |_, _| panic!("again")).unwrap(), None);
    check(&again, &expected);
    // Killed before the old file was renamed.
    fs::rename(dir.path().join("data/sessions.db.former"), dir.path().join("data/sessions.db")).unwrap();
    again.with(|conn| conn.execute("INSERT INTO meta VALUES ('converted', '')", [])).unwrap();
    let third = another(&dir);
    check(&third, &expected);
    assert!(!third.former_files().is_empty() && !dir.path().join("data/sessions.db").exists());
    // The old file is put back: nothing is doubled.
    fs::rename(dir.path().join("data/sessions.db.former"), dir.path().join("data/sessions.db")).unwrap();
    check(&another(&dir), &expected);
}

#[test]
fn several_parlors_that_start_at_once_convert_once() {
    let (dir, store) = store();
    let conn = former(&dir, STEPS.len());
    let expected = fill(&conn, &mut Random::new(3), 40);
    drop(conn);
    let results: Vec<_> = thread::scope(|scope| {
        let run = || another(&dir).migrate(&mut |_, _| ()).unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_some()).count(), 1);
    check(&store, &expected);
}

#[test]
fn an_older_parlor_has_to_be_closed_first() {
    let (dir, store) = store();
    let conn = former(&dir, STEPS.len());
    add_session(&conn, 1, 1);
    add_event(&conn, 1, 0, "a");
    // It is only connected.
    let error = store.count().unwrap_err();
    assert!(matches!(error.fault(), Fault::Former(_)), "{error:?}");
    let token = store.owner().unwrap().token.clone();
    conn.execute("UPDATE sessions SET owner = ?1", [&token]).unwrap();
    drop(conn);
    // It has a session open.
    let other = another(&dir);
    let error = other.count().unwrap_err();
    assert_eq!(*error.fault(), Fault::Former(Some(std::process::id())));
    assert!(error.to_string().contains("Close that one first"), "{error}");
    assert!(dir.path().join("data/sessions.db").exists());
    // It died: its turn is marked, as always.
    lose_mark(&dir, &store);
    assert_eq!(other.list(&ListFilter::default()).unwrap().len(), 1);
    assert_eq!(log_of(&other, "uid1"), ["a"]);
}

#[test]
fn sessions_of_an_older_parlor_that_is_used_again_are_added() {
    let (dir, store) = store();
    let conn = former(&dir, STEPS.len());
    add_session(&conn, 1, 1);
    add_event(&conn, 1, 0, "a");
    drop(conn);
    assert_eq!(store.count().unwrap(), 1);
    // parlor was killed between the renaming of the file and the removal of the mark.
    store.with(|conn| conn.execute("INSERT INTO meta (key, value) VALUES ('converted', '')", [])).unwrap();
    let conn = former(&dir, STEPS.len());
    add_session(&conn, 1, 3);
    add_session(&conn, 2, 2);
    add_event(&conn, 1, 0, "b");
    add_event(&conn, 1, 1, "c");
    drop(conn);
    let again = another(&dir);
    assert_eq!(again.count().unwrap(), 3, "another session with a known id gets a new one");
    assert_eq!(log_of(&again, "uid1"), ["a"]);
    assert_eq!(again.former_files().len(), 2);
    again.discard_former().unwrap();
    assert!(again.former_files().is_empty());
}

#[test]
fn times_in_the_future_do_not_decide_the_order() {
    let (dir, store) = store();
    let conn = former(&dir, STEPS.len());
    let now = unix_ms();
    for (id, updated) in [(1, now - 3_000), (2, now + 400 * 86_400_000), (3, now - 1_000), (4, i64::MAX)] {
        add_session(&conn, id, updated);
    }
    conn.execute("UPDATE sessions SET opened = ?1 WHERE id = 2", [now - 2_000]).unwrap();
    conn.execute("UPDATE sessions SET created = ?1 WHERE id = 4", [i64::MAX]).unwrap();
    drop(conn);
    let order: Vec<String> =
        store.list(&ListFilter::default()).unwrap().into_iter().map(|row| row.uid).collect();
    assert_eq!(order, ["uid4", "uid3", "uid2", "uid1"]);
}

#[test]
fn a_damaged_old_file_is_renamed_or_read_as_far_as_possible() {
    let (dir, store) = store();
    fs::write(dir.path().join("data/sessions.db"), b"no database".repeat(500)).unwrap();
    assert_eq!(store.count().unwrap(), 0);
    let problems = store.take_problems();
    assert!(problems.len() == 1 && problems[0].contains("sessions.db.broken-"), "{problems:?}");
    // Pages in the middle are overwritten.
    let conn = former(&dir, STEPS.len());
    for id in 1..=30 {
        add_session(&conn, id, id);
        for seq in 0..40 {
            add_event(&conn, id, seq, &format!("{id} {seq} {}", "word ".repeat(40)));
        }
    }
    conn.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).unwrap();
    drop(conn);
    let path = dir.path().join("data/sessions.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 5 * 4096].fill(0xA5);
    fs::write(&path, &bytes).unwrap();
    let again = another(&dir);
    let migrated = again.migrate(&mut |_, _| ()).unwrap().unwrap();
    assert_eq!(migrated.session_count, 30);
    let whole = (1..=30).filter(|id| log_of(&again, &format!("uid{id}")).len() == 40).count();
    assert!((20..30).contains(&whole), "{whole}");
    assert!((1..=10).contains(&migrated.unreadable.len()), "{:?}", migrated.unreadable);
    assert!(!again.former_files().is_empty());
}
