//! Power failures and full disks.

use std::process::{Command, Stdio};

use super::faults::next_trouble;
use super::*;
use crate::host::os::fixtures;

/// The data folder of the child process of [`a_full_quota_is_reported_and_writing_resumes`].
const FULL_DIR: &str = "PARLOR_TEST_STORE_FULL";

/// Maximum file size of the child process.
const MAX_BYTES: u64 = 512 << 10;

fn numbered(number: usize) -> Note {
    event(1, answered("q", &number.to_string()))
}

/// The recorded numbers of the only session, in order; empty without a session.
fn numbers(store: &Store) -> Vec<usize> {
    let Some(row) = store.list(&ListFilter::default()).unwrap().pop() else { return Vec::new() };
    let (events, unreadable_count) = store.events(&row.uid).unwrap();
    assert_eq!(unreadable_count, 0);
    let numbers = events.into_iter().filter_map(|event| match event.record {
        Record::Answered { answer, .. } => answer.parse().ok(),
        _ => None,
    });
    numbers.collect()
}

fn pragma(conn: &Connection, name: &str) -> String {
    conn.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
        .map(|value| match value {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        })
        .unwrap()
}

#[test]
fn commits_are_durable() {
    let (_dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    let check = |conn: &Connection| {
        let found = ["journal_mode", "synchronous", "fullfsync"].map(|name| pragma(conn, name));
        // 2 is FULL: the log is synchronised with every commit. Source: sqlite.org, "PRAGMA synchronous".
        assert_eq!(found, ["wal", "2", "1"]);
        Ok(())
    };
    writer.on_conn_for_test(check);
    store.with(|conn| check(conn)).unwrap();
}

/// Possible contents of the log after the part that reached the disk, after a power failure.
fn tails(rest: &[u8]) -> [Vec<u8>; 4] {
    let mut torn = rest.to_vec();
    if let Some(first) = torn.first_mut() {
        *first ^= 0xff;
    }
    let noise = (0..rest.len()).map(|_| random().to_le_bytes()[0]).collect();
    [Vec::new(), vec![0; rest.len()], noise, torn]
}

#[test]
fn a_power_failure_at_any_byte_preserves_earlier_commits() {
    let (dir, store) = store();
    let data = dir.path().join("data");
    let [file, log, _] = db::files(&data.join(db::FILE));
    let (mut writer, _received) = recorder::tests::writer(&store);
    let mut committed = 0;
    // In the first part all data is in the log, in the second one the start is in the database.
    for part in 0..2 {
        if part == 1 {
            writer.on_conn_for_test(|conn| conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
        }
        let before = committed;
        // The length of the log after each commit of this part.
        let mut ends = Vec::new();
        for _ in 0..20 {
            let reply = "word ".repeat(usize::try_from(random() % 2_000).unwrap());
            let mut notes = vec![says(1, &reply), numbered(committed)];
            if committed == 0 {
                notes.splice(0..0, [head("s1"), prompt(1, "go")]);
            }
            writer.keep_now(notes);
            committed += 1;
            ends.push(fs::metadata(&log).unwrap().len());
        }
        let (file, log) = (fs::read(&file).unwrap(), fs::read(&log).unwrap());
        assert_eq!(log.len() as u64, *ends.last().unwrap(), "the log was reset");
        for round in 0..40 {
            let cut = match round {
                0 => 0,
                1 => log.len(),
                _ => usize::try_from(random()).unwrap_or(0) % (log.len() + 1),
            };
            let wanted = before + ends.iter().filter(|end| **end <= cut as u64).count();
            let (saved, rest) = log.split_at(cut);
            let [tail, ..] = &mut tails(rest)[round % 4..] else { unreachable!() };
            let after = tempfile::tempdir().unwrap();
            let [copy, copied_log, _] = db::files(&after.path().join(db::FILE));
            fs::write(copy, &file).unwrap();
            fs::write(copied_log, [saved, tail].concat()).unwrap();

            let found = Store::open(after.path()).unwrap();
            let saved: Vec<usize> = numbers(&found);
            // SQLite pads the sector after a commit, so the last one may be valid before its bytes are complete.
            let is_begin = saved.iter().copied().eq(0..saved.len());
            let is_enough = saved.len() == wanted || saved.len() == wanted + 1;
            assert!(is_begin && is_enough, "part {part}, cut at {cut}: {saved:?}, not {wanted}");
            let check = found.with(|conn| {
                conn.execute_batch("INSERT INTO docs_fts (docs_fts) VALUES ('integrity-check')")?;
                conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
            });
            assert_eq!(check.unwrap(), "ok", "part {part}, cut at {cut}");
            assert_eq!(found.take_problems(), Vec::<String>::new());
        }
    }
}

/// The child process of the test below; it does nothing if started directly.
#[test]
fn child_with_a_file_size_limit() {
    let Some(dir) = std::env::var_os(FULL_DIR) else {
        assert!(std::env::args().len() > 0);
        return;
    };
    let store = Store::open(PathBuf::from(dir)).unwrap();
    let (mut recorder, mut received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head("s1"), prompt(1, "go"), numbered(0)]);
    super::sessions::wait_for(|| numbers(&store).len() == 1);
    fixtures::limit_file_size(Some(MAX_BYTES));
    for number in 1..=8 {
        recorder.keep(SessionKey(1), vec![says(1, &"word ".repeat(40_000)), numbered(number)]);
    }
    let trouble = next_trouble(&mut received);
    assert!(trouble.contains("free disk space") && trouble.contains("your quota"), "{trouble}");
    assert!(trouble.contains("stay in memory"), "{trouble}");
    // Saved sessions can be read and resumed.
    assert_eq!(numbers(&store).len(), 1);
    let uid = store.list(&ListFilter::default()).unwrap().remove(0).uid;
    assert_eq!(store.reopen(&uid).unwrap().events.len(), 2);
    recorder.keep(SessionKey(1), vec![numbered(9)]);
    fixtures::limit_file_size(None);
    assert!(next_trouble(&mut received).starts_with("Saving works again"));
    assert_eq!(recorder.finish(), None);
    assert!(numbers(&store).into_iter().eq(0..10));
}

#[test]
fn a_full_quota_is_reported_and_writing_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let name = "store::tests::disk::child_with_a_file_size_limit";
    // The signal of the limit would end the child.
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(FULL_DIR, dir.path().join("data"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = [child.stdout, child.stderr].concat();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&output));
}

#[test]
fn all_files_of_the_store_are_private_also_existing_ones() {
    let (dir, store) = store();
    let keep = |store: &Store, number: &str| {
        let (mut writer, _received) = recorder::tests::writer(store);
        writer.keep_now(vec![head(number), numbered(1)]);
        assert_eq!(store.list(&ListFilter::default()).unwrap().len(), usize::from(number != "a") + 1);
        writer
    };
    let writer = keep(&store, "a");
    let walk = |mode: Option<u32>| {
        let mut wide = Vec::new();
        let mut folders = vec![dir.path().join("data")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let (path, facts) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
                let is_folder = facts.is_dir();
                if let Some(mode) = mode {
                    let mode = if is_folder { mode | 0o111 } else { mode };
                    fixtures::set_mode(&path, mode);
                }
                if fixtures::mode(&path) & 0o077 != 0 {
                    wide.push(path.clone());
                }
                folders.extend(is_folder.then_some(path));
            }
        }
        wide
    };
    assert_eq!(walk(None), Vec::<std::path::PathBuf>::new());
    drop(writer);
    drop(store);
    walk(Some(0o644));
    let store = Store::open(dir.path().join("data")).unwrap();
    let _writer = keep(&store, "b");
    let wide = walk(None);
    let is_stale = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "lock");
    assert!(wide.iter().all(is_stale), "except for files of an ended process: {wide:?}");
}

#[test]
fn growth_of_the_store_is_reported_repeatedly() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (mut writer, mut received) = recorder::tests::writer(&store);
    writer.tell_growth_each(1 << 20);
    let mut messages = Vec::new();
    writer.keep_now(vec![head("flood"), prompt(1, "go")]);
    for _ in 0..10 {
        writer.keep_now(vec![says(1, &"x".repeat(300 << 10))]);
        while let Ok(event) = received.try_recv() {
            messages.extend(if let ServiceEvent::Problem(text) = event { Some(text) } else { None });
        }
    }
    let [first, second] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(first.contains("stored 1 MiB") && first.contains("cancel the turn"), "{first}");
    assert!(second.contains("stored 2 MiB"), "{second}");
}
