use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::support::{random, unix_ms};
use super::*;
use crate::model::held::HeldFile;
use crate::model::*;

mod archive;
mod deletion;
mod disk;
mod faults;
mod format;
mod former;
mod migration;
mod odd;
mod prompts;
mod reading;
mod rescue;
mod sessions;
mod spool;

/// A store in a temporary folder.
pub fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("data")).unwrap();
    (dir, store)
}

/// Another process's view of the same folder, with a separate mark and connection.
pub fn another(dir: &tempfile::TempDir) -> Store {
    Store::open(dir.path().join("data")).unwrap()
}

/// Simulates a crash of the store's parlor: its mark is removed.
pub fn lose_mark(dir: &tempfile::TempDir, store: &Store) {
    let token = &store.owner().unwrap().token;
    std::fs::remove_file(dir.path().join("data/locks").join(format!("{token}.lock"))).unwrap();
}

pub fn head(session: &str) -> Note {
    Note::Head(Box::new(SessionHead {
        agent: "fake".to_owned(),
        command: "fake-agent".to_owned(),
        args: vec!["--acp".to_owned()],
        session: Some(session.into()),
        workspace: SessionWorkspace { cwd: "/code/shop".into(), ..SessionWorkspace::default() },
        branch: Some("main".to_owned()),
        ..SessionHead::default()
    }))
}

pub fn event(turn: u32, record: Record) -> Note {
    Note::Event { turn, record: Box::new(record) }
}

pub fn answered(question: &str, answer: &str) -> Record {
    let (question, answer) = (question.to_owned(), answer.to_owned());
    Record::Answered { question, answer, request: None, by: Decider::User }
}

pub fn prompt(turn: u32, text: &str) -> Note {
    event(
        turn,
        Record::Prompt {
            text: text.to_owned(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        },
    )
}

pub fn says(turn: u32, text: &str) -> Note {
    let update = SessionUpdate::Chunk { role: Role::Agent, message: None, text: text.to_owned() };
    event(turn, Record::Update(update))
}

pub fn ended(turn: u32) -> Note {
    let outcome = TurnOutcome::Stopped { reason: StopReason::EndTurn, usage: None, took_ms: 5, cost: None };
    event(turn, Record::TurnEnded(outcome))
}

/// A note of an event as it is saved.
pub fn recorded(note: Note) -> RecordedEvent {
    let Note::Event { turn, record } = note else { panic!("{note:?}") };
    RecordedEvent { at_ms: 1, turn, record: *record }
}

/// The messages of the store that were received.
pub fn store_news(received: &mut tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) -> Vec<StoreNews> {
    let received = std::iter::from_fn(|| received.try_recv().ok());
    received
        .filter_map(|event| if let ServiceEvent::Store(news) = event { Some(*news) } else { None })
        .collect()
}

/// A store in a folder, as a parlor that may be killed writes it.
pub struct Written {
    dir: tempfile::TempDir,
    pub store: Store,
    writer: recorder::tests::TestWriter,
    received: tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>,
}

impl Written {
    pub fn new() -> Self {
        let (dir, store) = store();
        let (writer, received) = recorder::tests::writer(&store);
        Self { dir, store, writer, received }
    }

    /// Writes notes in one batch. Returns the messages of the store.
    pub fn write(&mut self, notes: Vec<(SessionKey, Vec<Note>)>) -> Vec<StoreNews> {
        let all = notes.into_iter().flat_map(|(key, notes)| notes.into_iter().map(move |note| (key, note)));
        self.writer.keep_all(all);
        store_news(&mut self.received)
    }

    /// Ends the process, and starts another.
    pub fn restart(&mut self, is_orderly: bool) {
        if is_orderly {
            self.writer.close();
        }
        lose_mark(&self.dir, &self.store);
        self.store = another(&self.dir);
        (self.writer, self.received) = recorder::tests::writer(&self.store);
    }

    /// All events of a session or a spool.
    pub fn events(&self, uid: &str) -> Vec<RecordedEvent> {
        self.store.events(uid).unwrap().0
    }

    /// The answers to a job.
    pub fn served(&self, job: StoreJob) -> Vec<StoreNews> {
        served(&self.store, job)
    }
}

/// The number of rows of a query.
pub fn number(store: &Store, sql: &str) -> i64 {
    store.with(|conn| conn.query_row(sql, [], |row| row.get(0))).unwrap()
}

/// The responses to a job.
pub fn served(store: &Store, job: StoreJob) -> Vec<StoreNews> {
    let mut received = Vec::new();
    store.serve(job, |_, _, _, _| Err("no".to_owned()), &mut |news| received.push(news));
    received
}

/// The number of results of a search.
pub fn hits(store: &Store, text: &str) -> usize {
    store
        .search(&ArchiveSearch { text: text.to_owned(), limit: 99, ..ArchiveSearch::default() })
        .unwrap()
        .len()
}

/// A recorder and its events.
pub fn recorder(store: &Store) -> (Recorder, tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) {
    let (sender, received) = tokio::sync::mpsc::unbounded_channel();
    (Recorder::new(store.clone(), sender), received)
}

/// Records the notes of a session and closes it; returns the session's id.
pub fn record(store: &Store, notes: Vec<Note>) -> String {
    let (mut recorder, _received) = recorder(store);
    recorder.keep(SessionKey(1), notes);
    assert_eq!(recorder.finish(), None);
    let all = ListFilter { with_children: true, ..ListFilter::default() };
    store.list(&all).unwrap().into_iter().max_by_key(|row| row.created_ms).unwrap().uid
}

pub fn broken_files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".broken-"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn prompts_are_saved_by_folder() {
    let (dir, store) = store();
    let (one, two) = (Path::new("/here/one"), Path::new("/other/one"));
    assert_eq!(store.history(one), Vec::<String>::new());
    for text in ["first", "two\nlines \u{1f980}", "two\nlines \u{1f980}", "  ", "first"] {
        store.append_prompt(one, text).unwrap();
    }
    store.append_prompt(two, "elsewhere").unwrap();
    store.append_prompt(one, &"x".repeat(300 << 10)).unwrap();
    let again = another(&dir);
    assert_eq!(again.history(one), ["first", "two\nlines \u{1f980}", "first"]);
    assert_eq!(again.history(two), ["elsewhere"]);
    assert_eq!(again.take_problems(), Vec::<String>::new());
}

#[test]
fn unsent_prompts_are_the_drafts_and_queues_of_all_sessions() {
    let (_dir, store) = store();
    let queue = Note::Queue(vec!["next".to_owned()]);
    record(&store, vec![head("s"), prompt(1, "sent"), Note::Draft("half".to_owned()), queue]);
    let mut texts = store.unsent_prompts().unwrap();
    texts.sort();
    assert_eq!(texts, ["[\"next\"]", "half"]);
}

#[test]
fn history_is_bounded() {
    let (_dir, store) = store();
    let folder = Path::new("/f");
    let many = folders::MAX_PROMPTS + folders::SLACK_PROMPTS;
    let add = |conn: &mut Connection| {
        let change = conn.transaction()?;
        for n in 0..many {
            folders::insert_prompt(&change, "/f", &format!("p{n}"), 1)?;
        }
        change.commit()
    };
    store.with(add).unwrap();
    assert_eq!(store.history(folder).len(), folders::MAX_PROMPTS as usize);
    store.append_prompt(folder, "last").unwrap();
    let saved: u32 =
        store.with(|conn| conn.query_row("SELECT count(*) FROM prompts", [], |row| row.get(0))).unwrap();
    assert_eq!(saved, folders::MAX_PROMPTS);
    let prompts = store.history(folder);
    assert_eq!(prompts.first().unwrap(), &format!("p{}", many + 1 - folders::MAX_PROMPTS));
    assert_eq!(prompts.last().unwrap(), "last");
}

#[test]
fn several_processes_lose_nothing() {
    let (dir, store) = store();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            // Each store has a separate connection, like a process.
            let store = another(&dir);
            std::thread::spawn(move || {
                for i in 0..20 {
                    store.append_prompt(Path::new("/f"), &format!("{n}-{i}")).unwrap();
                    store.save_agent(&PathBuf::from(format!("/f{n}-{i}")), "demo").unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let prompts = store.history(Path::new("/f"));
    assert_eq!(prompts.len(), 80);
    for n in 0..4 {
        let own: Vec<_> = prompts.iter().filter(|text| text.starts_with(&format!("{n}-"))).collect();
        assert_eq!(own.len(), 20);
        assert!(own.iter().enumerate().all(|(i, text)| **text == format!("{n}-{i}")));
        assert_eq!(store.agent_for(&PathBuf::from(format!("/f{n}-19"))).as_deref(), Some("demo"));
    }
}

#[test]
fn the_last_agent_of_a_folder_is_saved() {
    let (_dir, store) = store();
    assert_eq!(store.agent_for(Path::new("/f")), None);
    for (agent, is_draft) in [("a --b", true), ("c", true), ("a --b", true), ("c", false)] {
        store.save_draft_agent(agent, is_draft).unwrap();
    }
    assert_eq!(store.draft_agents(), ["a --b".to_owned()].into());
    store.save_agent(Path::new("/f"), "claude").unwrap();
    store.save_agent(Path::new("/g"), "codex").unwrap();
    store.save_agent(Path::new("/f"), "gemini").unwrap();
    assert_eq!(store.agent_for(Path::new("/f")).as_deref(), Some("gemini"));
    assert_eq!(store.agent_for(Path::new("/g")).as_deref(), Some("codex"));
}

#[test]
fn an_unusable_data_folder_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = Store::open(dir.path().join("file/below")).unwrap_err();
    assert!(error.to_string().contains("file/below: "), "{error}");
    let store = Store::open(dir.path().join("data")).unwrap();
    // A folder with the name of the file.
    fs::create_dir(dir.path().join("data").join(db::FILE)).unwrap();
    assert!(store.append_prompt(Path::new("/f"), "x").is_err());
    assert_eq!(store.history(Path::new("/f")), Vec::<String>::new());
    assert_eq!(store.take_problems().len(), 1);
}

#[test]
fn sessions_for_mentions_are_those_of_the_folder_with_a_prompt() {
    let (_dir, store) = store();
    record(&store, vec![head("s1"), prompt(1, "fix the tests"), ended(1)]);
    record(&store, vec![head("s2"), Note::Draft("only a draft".to_owned())]);
    let mut elsewhere = SessionHead { agent: "fake".to_owned(), ..SessionHead::default() };
    elsewhere.workspace.cwd = "/code".into();
    record(&store, vec![Note::Head(Box::new(elsewhere)), prompt(1, "secret"), ended(1)]);
    let mut received = Vec::new();
    let job = StoreJob::Mentionable { folder: "/code/shop".into() };
    store.serve(job, |_, _, _, _| Err(String::new()), &mut |news| received.push(news));
    let [StoreNews::Mentionable { folder, sessions }] = received.as_slice() else { panic!("{received:?}") };
    assert_eq!(folder, Path::new("/code/shop"));
    let names: Vec<_> = sessions.iter().map(|saved| (saved.name.as_str(), saved.agent.as_str())).collect();
    assert_eq!(names, [("fix the tests", "fake")]);
}
