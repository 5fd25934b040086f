//! The session store: opening a session of 100,000 updates, writing half a second of events, and searching a word among
//! 100,000 updates of 1,000 sessions.

#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

use parlor::core::Session;
use parlor::core::restore;
use parlor::model::{
    ArchiveSearch, Note, Patch, PromptQuery, Record, RecordedEvent, Role, SessionHead, SessionKey,
    SessionUpdate, SessionWorkspace, StopReason, StoreJob, StoreNews, ToolCallPatch, ToolKind, ToolStatus,
    TurnOutcome,
};
use parlor::store::{ListFilter, Recorder, SessionRow, Store};

/// The updates of a session: turns with a prompt, tool calls with output, and a response.
fn events(count: usize) -> Vec<RecordedEvent> {
    (0..count)
        .map(|n| {
            let turn = u32::try_from(n / 20 + 1).unwrap();
            let record = match n % 20 {
                0 => Record::Prompt {
                    text: format!("please do the thing number {n}"),
                    is_again: false,
                    blocks: Vec::new(),
                    pasted: Vec::new(),
                    typed: None,
                },
                19 => Record::TurnEnded(TurnOutcome::Stopped {
                    reason: StopReason::EndTurn,
                    usage: None,
                    took_ms: 100,
                    cost: None,
                }),
                k if k % 2 == 0 => {
                    let mut patch = ToolCallPatch::new(format!("call-{n}").into());
                    patch.is_announcement = true;
                    patch.title = Patch::Set(format!("Read file_{n}.rs"));
                    patch.kind = Patch::Set(ToolKind::Read);
                    patch.status = Patch::Set(ToolStatus::Completed);
                    patch.output_text = Patch::Set("a line of the file, and another one\n".repeat(20).into());
                    Record::Update(SessionUpdate::Tool(Box::new(patch)))
                }
                _ => Record::Update(SessionUpdate::Chunk {
                    role: Role::Agent,
                    message: None,
                    text: format!("I looked at word{n} and at the other places where it stands. "),
                }),
            };
            RecordedEvent { at_ms: i64::try_from(n).unwrap() * 50, turn, record }
        })
        .collect()
}

fn row(uid: &str) -> SessionRow {
    SessionRow {
        uid: uid.to_owned(),
        agent: "bench".to_owned(),
        folder: "/code".into(),
        ..SessionRow::default()
    }
}

fn opening(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.import(&row("large"), &events(100_000)).unwrap();
    c.bench_function("store/open a session of 100,000 updates", |b| {
        b.iter(|| {
            // As at the start of parlor: a new connection, the end of the session, its transcript.
            let store = Store::open(dir.path()).unwrap();
            let saved = store.reopen("large").unwrap();
            let mut session = Session::new(SessionKey(1), SessionWorkspace::default());
            restore(&mut session, saved, Instant::now());
            black_box(session.transcript.items().len())
        });
    });
    c.bench_function("store/read all of it", |b| {
        b.iter(|| {
            let store = Store::open(dir.path()).unwrap();
            let (key, uid) = (SessionKey(1), "large".to_owned());
            let job = StoreJob::Load { key, uid, before: i64::MAX, at: None };
            let mut count = 0;
            store.serve(job, |_, _, _, _| Err(String::new()), &mut |news| {
                if let StoreNews::Loaded { page: Ok(page), .. } = news {
                    count += page.events.len();
                }
            });
            assert!(count > 0);
            black_box(count)
        });
    });
    c.bench_function("store/what the first frame waits for", |b| {
        b.iter(|| {
            let store = Store::open(dir.path()).unwrap();
            let folder = std::path::Path::new("/code");
            black_box((store.last_of(folder).unwrap(), store.agent_for(folder)))
        });
    });
}

fn appending(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.import(&row("large"), &events(100_000)).unwrap();
    let head =
        SessionHead { agent: "bench".to_owned(), command: "bench".to_owned(), ..SessionHead::default() };
    let notes: Vec<Note> = [Note::Head(Box::new(head))]
        .into_iter()
        .chain(
            events(200)
                .into_iter()
                .map(|event| Note::Event { turn: event.turn, record: Box::new(event.record) }),
        )
        .collect();
    c.bench_function("store/write 200 updates to their end", |b| {
        b.iter_batched(
            || notes.clone(),
            |notes| {
                let (services, _told) = tokio::sync::mpsc::unbounded_channel();
                let mut recorder = Recorder::new(store.clone(), services);
                recorder.keep(SessionKey(1), notes);
                assert_eq!(recorder.finish(), None);
            },
            BatchSize::SmallInput,
        );
    });
}

fn searching(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let events = events(100);
    for n in 0..1000 {
        store.import(&row(&format!("s{n}")), &events).unwrap();
    }
    let record = Record::Prompt {
        text: "where is the lighthouse".to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    };
    store.import(&row("rare"), &[RecordedEvent { at_ms: 1, turn: 1, record }]).unwrap();
    let search = |text: &str| ArchiveSearch { text: text.to_owned(), limit: 50, ..ArchiveSearch::default() };
    c.bench_function("store/search a rare word in 1,000 sessions", |b| {
        b.iter(|| assert_eq!(store.search(&search("lighthouse")).unwrap().len(), 1));
    });
    c.bench_function("store/search two words that stand in each session", |b| {
        b.iter(|| assert_eq!(store.search(&search("number 80")).unwrap().len(), 50));
    });
    c.bench_function("store/search a word that stands everywhere", |b| {
        b.iter(|| assert_eq!(store.search(&search("places")).unwrap().len(), 50));
    });
    c.bench_function("store/list 1,000 sessions", |b| {
        b.iter(|| assert_eq!(store.list(&ListFilter::default()).unwrap().len(), 1001));
    });
}

fn searching_prompts(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let words =
        ["fix", "the", "parser", "in", "module", "for", "empty", "lines", "and", "add", "tests", "please"];
    for session in 0..1000 {
        let prompts = (0..100).map(|n| {
            let number = session * 100 + n;
            let count = if n == 0 { 400 } else { 8 + number % 30 };
            let text: Vec<&str> = (0..count).map(|at| words[(number * 7 + at * at) % words.len()]).collect();
            let text = format!("{} number {number}", text.join(" "));
            let record =
                Record::Prompt { text, is_again: false, blocks: Vec::new(), pasted: Vec::new(), typed: None };
            RecordedEvent { at_ms: i64::try_from(number).unwrap(), turn: u32::try_from(n).unwrap(), record }
        });
        store.import(&row(&format!("s{session}")), &prompts.collect::<Vec<_>>()).unwrap();
    }
    let search = |words: &str, is_new| {
        let query = PromptQuery { serial: 1, text: words.to_owned(), folder: None, is_new };
        store.search_prompts(&query).unwrap()
    };
    c.bench_function("store/read 100,000 prompts", |b| b.iter(|| assert_eq!(search("", true).1, 100_000)));
    for (name, words) in [
        ("a letter", "f"),
        ("a word", "parser"),
        ("three words", "parser tests 42"),
        ("a rare word", "99998"),
        ("letters", "fxprsr"),
    ] {
        let name = format!("store/search {name} in 100,000 prompts");
        c.bench_function(&name, |b| b.iter(|| black_box(search(words, false))));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = opening, appending, searching, searching_prompts
}
criterion_main!(benches);
