//! Errors of the disk, and of other processes.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::sessions::wait_for;
use super::*;
use crate::host::os::files;
use crate::host::os::process::{self, Ending, ProcessId};
use crate::program::{PARLOR_PID, PARLOR_RUN, Start, StartedBy};

/// The data folder of the child process of [`killed_writers_lose_nothing_that_was_written`].
const CHILD_DIR: &str = "PARLOR_TEST_STORE_CHILD";

pub fn next_trouble(received: &mut tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) -> String {
    loop {
        match received.blocking_recv() {
            Some(ServiceEvent::Problem(message)) => return message,
            // The id of a recorded session is not an error.
            Some(ServiceEvent::Store(news)) => {
                if let StoreNews::Reported(message) = *news {
                    return message;
                }
            }
            other => panic!("no error: {other:?}"),
        }
    }
}

/// The reported states of saving: an error, or `None` when it works.
fn savings(received: &mut tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) -> Vec<Option<String>> {
    let news = std::iter::from_fn(|| received.try_recv().ok()).filter_map(|event| match event {
        ServiceEvent::Store(news) => match *news {
            StoreNews::Unsaved(unsaved) => Some(unsaved.map(|unsaved| unsaved.why)),
            _ => None,
        },
        _ => None,
    });
    news.collect()
}

fn has_no_trouble(received: &mut tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) -> bool {
    std::iter::from_fn(|| received.try_recv().ok()).all(|event| matches!(event, ServiceEvent::Store(_)))
}

/// A second connection to the file, like another program.
pub fn outside(dir: &tempfile::TempDir) -> Connection {
    Connection::open(dir.path().join("data").join(db::FILE)).unwrap()
}

#[test]
fn a_locked_file_is_reported_and_written_later() {
    let (dir, store) = store();
    store.count().unwrap();
    let holder = outside(&dir);
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let (mut recorder, mut received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head("s1"), prompt(1, "one")]);
    let trouble = next_trouble(&mut received);
    assert!(trouble.contains("the file is locked by another process"), "{trouble}");
    recorder.keep(SessionKey(1), vec![says(1, "more"), ended(1)]);
    holder.execute_batch("COMMIT").unwrap();
    let good = next_trouble(&mut received);
    assert!(good.starts_with("Saving works again"), "{good}");
    assert_eq!(recorder.finish(), None);
    let row = store.list(&ListFilter::default()).unwrap().remove(0);
    assert_eq!(store.events(&row.uid).unwrap().0.len(), 3);
}

#[test]
fn the_end_of_a_lock_is_reported_also_without_pending_notes() {
    let (dir, store) = store();
    record(&store, vec![head("s1"), prompt(1, "one")]);
    // Closing the session of a dead parlor at the start is blocked by another program.
    outside(&dir).execute_batch("UPDATE sessions SET owner = '1-dead', state = 'turn'").unwrap();
    let holder = outside(&dir);
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let (mut recorder, mut received) = recorder(&store);
    recorder.start();
    assert!(next_trouble(&mut received).contains("locked"));
    holder.execute_batch("COMMIT").unwrap();
    assert!(next_trouble(&mut received).starts_with("Saving works again"));
    wait_for(|| savings(&mut received) == [None]);
    assert_eq!(store.list(&ListFilter::default()).unwrap()[0].state, SessionState::Cut);
}

/// The data folder of the child process of [`a_parlor_that_exits_does_not_affect_others`].
const GUEST_DIR: &str = "PARLOR_TEST_STORE_GUEST";

/// The child process of the test below.
#[test]
fn child_that_reads_and_exits() {
    let Some(dir) = std::env::var_os(GUEST_DIR) else {
        assert!(std::env::args().len() > 0);
        return;
    };
    Store::open(PathBuf::from(dir)).unwrap().count().unwrap();
}

#[test]
fn a_parlor_that_exits_does_not_affect_others() {
    let (dir, store) = store();
    let data = dir.path().join("data");
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one")]);
    // A second connection of this process, as for the session list.
    assert_eq!(store.count().unwrap(), 1);
    let render = || {
        let name = "store::tests::faults::child_that_reads_and_exits";
        let mut guest = Command::new(std::env::current_exe().unwrap());
        guest.args(["--exact", name]).env(GUEST_DIR, &data).stdout(Stdio::null());
        assert!(guest.status().unwrap().success());
    };
    render();
    let log = data.join(format!("{}-wal", db::FILE));
    let identity = files::identity(&log);
    assert!(identity.is_some(), "the log is still in use");
    writer.keep_now(vec![says(1, "after the guest"), ended(1)]);
    render();
    assert_eq!(files::identity(&log), identity);
    drop((writer, store));
    let fresh = another(&dir);
    let row = fresh.list(&ListFilter::default()).unwrap().remove(0);
    assert_eq!(fresh.events(&row.uid).unwrap().0.len(), 3);
}

#[test]
fn a_full_disk_loses_no_events() {
    let (_dir, store) = store();
    let (mut writer, mut received) = recorder::tests::writer(&store);
    writer.on_conn_for_test(|conn| conn.pragma_update(None, "max_page_count", 60));
    let large = "x".repeat(1 << 20);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), says(1, &large)]);
    let trouble = next_trouble(&mut received);
    assert!(trouble.contains("the disk is full"), "{trouble}");
    writer.keep_now(vec![ended(1)]);
    assert_eq!(store.count().unwrap(), 0);
    // Reported once and not with every batch, and valid until saving works.
    assert_eq!(savings(&mut received), [Some("the disk is full".to_owned())]);
    writer.on_conn_for_test(|conn| conn.pragma_update(None, "max_page_count", 1 << 20));
    writer.keep_now(vec![Note::Draft("after".to_owned())]);
    assert!(next_trouble(&mut received).starts_with("Saving works again"));
    assert_eq!(savings(&mut received), [None]);
    let row = store.list(&ListFilter::default()).unwrap().remove(0);
    assert_eq!((store.events(&row.uid).unwrap().0.len(), row.draft.as_str()), (3, "after"));
}

#[test]
fn a_read_only_file_is_reported() {
    let (_dir, store) = store();
    let (mut writer, mut received) = recorder::tests::writer(&store);
    writer.on_conn_for_test(|conn| conn.pragma_update(None, "query_only", true));
    writer.keep_now(vec![head("s1"), prompt(1, "one")]);
    let trouble = next_trouble(&mut received);
    assert!(trouble.contains("is read-only"), "{trouble}");
    writer.on_conn_for_test(|conn| conn.pragma_update(None, "query_only", false));
    writer.keep_now(vec![ended(1)]);
    assert!(next_trouble(&mut received).starts_with("Saving works again"));
    assert_eq!(store.count().unwrap(), 1);
}

#[test]
fn a_damaged_file_is_renamed_and_reported() {
    let (dir, first) = store();
    record(&first, vec![head("s1"), prompt(1, "one"), ended(1)]);
    drop(first);
    let data = dir.path().join("data");
    let path = data.join(db::FILE);
    let garbage = b"this is no database, and never was one".repeat(100);
    fs::write(&path, &garbage).unwrap();
    let store = another(&dir);
    assert_eq!(store.count().unwrap(), 0);
    let troubles = store.take_problems();
    assert!(troubles.len() == 1 && troubles[0].contains("It was renamed to"), "{troubles:?}");
    let aside = broken_files(&data);
    assert!(aside.iter().any(|path| fs::read(path).unwrap() == garbage), "{aside:?}");
    record(&store, vec![head("s2"), prompt(1, "two"), ended(1)]);
    assert_eq!(another(&dir).count().unwrap(), 1);
    assert_eq!(store.take_problems(), Vec::<String>::new());
}

#[test]
fn a_file_damaged_during_use_loses_no_events_of_the_session() {
    let (dir, store) = store();
    let (mut writer, mut received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), says(1, &"word ".repeat(5000))]);
    writer.on_conn_for_test(|conn| conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
    writer.drop_conn();
    let path = dir.path().join("data").join(db::FILE);
    let mut bytes = fs::read(&path).unwrap();
    // The header stays valid; everything after it is overwritten.
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0xA5;
    }
    fs::write(&path, &bytes).unwrap();
    writer.keep_now(vec![says(1, "after the fall"), ended(1)]);
    let trouble = next_trouble(&mut received);
    assert!(trouble.contains("It was renamed to"), "{trouble}");
    let fresh = another(&dir);
    let row = fresh.list(&ListFilter::default()).unwrap().remove(0);
    assert_eq!(row.first_prompt.as_deref(), Some("one"));
    assert_eq!(fresh.events(&row.uid).unwrap().0.len(), 2);
}

#[test]
fn a_file_of_a_newer_version_is_unchanged() {
    let (dir, first) = store();
    first.count().unwrap();
    outside(&dir).pragma_update(None, "user_version", 999).unwrap();
    let error = another(&dir).count().unwrap_err();
    assert_eq!(*error.fault(), Fault::Newer);
    assert!(broken_files(&dir.path().join("data")).is_empty());
}

#[test]
fn a_database_that_is_being_created_is_not_foreign() {
    for _ in 0..20 {
        let (dir, _) = store();
        thread::scope(|scope| {
            let openers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| another(&dir).count().map_err(|e| e.to_string()))).collect();
            assert!(openers.into_iter().all(|opener| opener.join().unwrap() == Ok(0)));
        });
    }
}

#[test]
fn two_parlors_record_concurrently() {
    let (dir, store) = store();
    let threads: Vec<_> = (0..2)
        .map(|n| {
            let store = another(&dir);
            thread::spawn(move || {
                let (mut recorder, mut received) = recorder(&store);
                for turn in 1..=30 {
                    let text = format!("{n} says {turn}");
                    recorder
                        .keep(SessionKey(1), vec![head(&format!("s{n}")), prompt(turn, &text), ended(turn)]);
                }
                assert_eq!(recorder.finish(), None);
                assert!(has_no_trouble(&mut received));
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let rows = store.list(&ListFilter::default()).unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((store.events(&row.uid).unwrap().0.len(), row.turn_count), (60, 30));
        assert_eq!(row.state, SessionState::Idle);
    }
}

/// The child process of the test below; it does nothing if started directly.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else {
        assert!(std::env::args().len() > 0);
        return;
    };
    let store = Store::open(PathBuf::from(dir)).unwrap();
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "go")]);
    for n in 0_u32.. {
        writer.keep_now(vec![says(1, &format!("[{n}]")), event(1, answered("q", &n.to_string()))]);
        // The harness captures `println`.
        std::io::Write::write_all(&mut std::io::stderr(), format!("written {n}\n").as_bytes()).unwrap();
    }
}

/// Total number of killed writers; they run in parallel lanes to save time.
const KILLS: u32 = 200;
const LANES: u32 = 8;

#[test]
fn killed_writers_lose_nothing_that_was_written() {
    thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || kill_writers(lane, KILLS / LANES));
        }
    });
}

/// Kills writers one after another while they write, and checks the result.
fn kill_writers(lane: u32, rounds: u32) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let name = "store::tests::faults::child_that_writes_until_it_is_killed";
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD_DIR, &data)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Each round ends at a different point: after a number of batches and a short delay.
        let min = random() % 23;
        let wanted = format!("written {min}");
        assert!(lines.map_while(Result::ok).any(|line| line == wanted), "lane {lane}, round {round}");
        thread::sleep(Duration::from_micros(random() % 2_000));
        child.kill().unwrap();
        child.wait().unwrap();

        let store = Store::open(&data).unwrap();
        let mut rows = store.list(&ListFilter::default()).unwrap();
        assert_eq!(rows.len(), round as usize + 1);
        let row = rows.remove(0);
        assert_eq!(row.state, SessionState::Cut);
        let (events, unreadable) = store.events(&row.uid).unwrap();
        let answers: Vec<u32> = events
            .iter()
            .filter_map(|event| match &event.record {
                Record::Answered { answer, .. } => answer.parse().ok(),
                _ => None,
            })
            .collect();
        assert_eq!(unreadable, 0);
        assert!(answers.len() as u64 > min, "lane {lane}, round {round}: {answers:?}");
        assert!(answers.iter().copied().eq(0..u32::try_from(answers.len()).unwrap()), "{answers:?}");
        assert_eq!(events.last().unwrap().record, Record::TurnEnded(TurnOutcome::Cut));
        assert_eq!(store.take_problems(), Vec::<String>::new());
    }
    let check: String = Store::open(&data)
        .unwrap()
        .with(|conn| conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .unwrap();
    assert_eq!(check, "ok");
}

/// A session whose agent is the given process, and another parlor's store.
fn kept_with(dir: &tempfile::TempDir, store: &Store, agent_pid: u32) -> (Recorder, Store) {
    let Note::Head(mut head) = head("s1") else { unreachable!() };
    head.agent_pid = Some(agent_pid);
    let (mut recorder, _received) = recorder(store);
    recorder.keep(SessionKey(1), vec![Note::Head(head), prompt(1, "one")]);
    let other = another(dir);
    wait_for(|| other.count().unwrap() == 1);
    (recorder, other)
}

#[test]
fn an_agent_that_outlived_its_parlor_is_stopped() {
    let (dir, store) = store();
    let mut agent = Command::new("sleep");
    agent.arg("600").stdin(Stdio::null());
    process::in_own_group(&mut agent);
    let mut agent = agent.spawn().unwrap();
    let (_recorder, other) = kept_with(&dir, &store, agent.id());
    assert!(agent.try_wait().unwrap().is_none());
    lose_mark(&dir, &store);
    assert_eq!(other.list(&ListFilter::default()).unwrap()[0].state, SessionState::Cut);
    if birth(std::process::id()).is_some() {
        wait_for(|| agent.try_wait().unwrap().is_some());
    } else {
        agent.kill().unwrap();
        agent.wait().unwrap();
    }
}

#[test]
fn processes_left_by_an_ended_agent_are_stopped() {
    if birth(std::process::id()).is_none() {
        return;
    }
    let (dir, store) = store();
    // Two processes in the agent's group: one started by it, and one of another parlor.
    let script = format!("sleep 600 & echo $!; {PARLOR_PID}=1 sleep 600 & echo $!; read line");
    let mut agent = Command::new("sh");
    agent.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    agent.env(PARLOR_PID, std::process::id().to_string());
    process::in_own_group(&mut agent);
    let mut agent = agent.spawn().unwrap();
    let lines = BufReader::new(agent.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let left: Vec<u32> = lines.take(2).map(|line| line.parse().unwrap()).collect();
    let (_recorder, other) = kept_with(&dir, &store, agent.id());
    // The agent exits when its pipe is closed; its child process does not.
    drop(agent.stdin.take());
    agent.wait().unwrap();
    lose_mark(&dir, &store);
    other.list(&ListFilter::default()).unwrap();
    wait_for(|| birth(left[0]).is_none());
    assert!(birth(left[1]).is_some(), "other processes keep running");
    process::end(ProcessId::of(left[1]).unwrap(), Ending::Kill);
}

#[test]
fn commands_of_a_dead_parlor_are_stopped_with_their_sessions() {
    if birth(std::process::id()).is_none() {
        return;
    }
    let (_dir, store) = store();
    record(&store, vec![head("s1"), prompt(1, "one")]);
    let start = |run: &str| {
        let pty = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).unwrap();
        let start = Start::find(StartedBy::Agent, "sh", None, &[]).unwrap();
        let start = start.args(["-c", "env -i sleep 600 & echo $!; exec sleep 600"]);
        let mut builder = start.in_shell_line("exec \"$@\"", "sh".as_ref(), &[], false);
        builder.env(PARLOR_RUN, run);
        let child = pty.slave.spawn_command(builder).unwrap();
        let mut lines = BufReader::new(pty.master.try_clone_reader().unwrap()).lines();
        let below: u32 = lines.next().unwrap().unwrap().trim().parse().unwrap();
        (child, below, pty)
    };
    let (mut dead, below, _terminal) = start("4000000-0badcafe");
    let (mut other, of_other, _other_terminal) = start("4000001-0badcafe");
    store.with(|conn| conn.execute("UPDATE sessions SET owner = '4000000-0badcafe-1'", [])).unwrap();
    store.list(&ListFilter::default()).unwrap();
    wait_for(|| dead.try_wait().unwrap().is_some() && birth(below).is_none());
    assert!(
        other.try_wait().unwrap().is_none() && birth(of_other).is_some(),
        "those of another run keep running"
    );
    other.kill().unwrap();
    process::end(ProcessId::of(of_other).unwrap(), Ending::Kill);
}

#[test]
fn a_file_in_a_read_only_folder_can_be_read() {
    let (dir, first) = store();
    let (mut writer, _received) = recorder::tests::writer(&first);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), ended(1)]);
    let data = dir.path().join("data");
    let read = || db::open_to_read(&data);
    let log = data.join(format!("{}-wal", db::FILE));
    assert!(log.metadata().unwrap().len() > 0 && read().is_err(), "changes in the log would be missing");
    drop((writer, first));
    assert!(!log.exists(), "the last connection merges the log");
    let conn = read().unwrap();
    let count: i64 = conn.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    let refused = conn.execute("DELETE FROM sessions", []).unwrap_err();
    assert_eq!(db::fault(&refused), Fault::ReadOnly);
}

fn birth(process: u32) -> Option<u64> {
    process::birth(ProcessId::of(process)?)
}
