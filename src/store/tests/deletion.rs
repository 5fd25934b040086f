//! What is deleted for good is in no file any more.

use super::recorder::tests::writer;
use super::sessions::texts;
use super::*;

const SECRET: &str = "hunter2-zq\"\u{e9}\\swordfish";

/// The files of the data folder that contain one of these words, whole or in lower case.
fn files_with(dir: &tempfile::TempDir, words: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.path().join("data")).unwrap().map(|entry| entry.unwrap().path());
    let has = |path: &PathBuf| {
        let bytes = if path.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        words.iter().any(|word| memchr::memmem::find(&bytes, word.as_bytes()).is_some())
    };
    entries.filter(has).collect()
}

/// Parts of the secret that have no other form in JSON or in the index.
const WORDS: [&str; 2] = ["hunter2", "swordfish"];

fn tool(raw: &str) -> Note {
    let mut patch = ToolCallPatch::new("t1".into());
    patch.is_announcement = true;
    patch.title = Patch::Set(format!("Use {SECRET}"));
    patch.raw_output = Patch::Set(Raw(raw.into()));
    event(2, Record::Update(SessionUpdate::Tool(Box::new(patch))))
}

/// Filler, so that the secret is on pages of its own and the index has several.
fn filler(turn: u32) -> Vec<Note> {
    (0..40).map(|n| event(turn, answered(&format!("q{n}"), &words(n)))).collect()
}

fn words(seed: u32) -> String {
    let mut random = crate::random::Random::new(seed.into());
    (0..60).map(|_| format!("w{}", random.below(5_000))).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_text_is_removed_from_all_places_and_files() {
    let (dir, store) = store();
    let (mut writer, _received) = writer(&store);
    let folder = Path::new("/code/shop");
    store.append_prompt(folder, &format!("log in with {SECRET}")).unwrap();
    let Note::Head(mut titled) = head("s1") else { unreachable!("a head") };
    titled.title = Some(format!("About {SECRET}"));
    let nested = serde_json::json!({"env": {SECRET: "x"}, "line": format!("login {SECRET}!")}).to_string();
    let nested_twice = serde_json::json!({ "inner": nested, "n": 1.50 }).to_string();
    let long = format!("{}{SECRET}", "y".repeat(195));
    let (start, end) = SECRET.split_at(9);
    let mut notes = vec![Note::Head(titled), prompt(1, &long), says(1, "fine"), ended(1)];
    notes.extend(filler(1));
    notes.extend([prompt(2, "go"), tool(&nested), tool(&nested_twice)]);
    notes.extend([Note::Draft(format!("draft {SECRET}")), Note::Queue(vec![format!("queue {SECRET}")])]);
    let held =
        HeldFile { base: Some(format!("base {SECRET}").into()), text: format!("text {SECRET}").into() };
    notes.extend([
        Note::Stash(vec![format!("stash {SECRET}")]),
        Note::Held("/a".into(), Some(held)),
        ended(2),
    ]);
    writer.keep_now(notes);
    // A message in three parts, with something between them.
    let part = |text: &str| {
        let update =
            SessionUpdate::Chunk { role: Role::Agent, message: Some("m1".into()), text: text.to_owned() };
        event(3, Record::Update(update))
    };
    writer.keep_now(vec![prompt(3, "say it"), part(&format!("it is {start}"))]);
    writer.keep_now(vec![part(&end[..4])]);
    writer.keep_now(vec![event(3, Record::notice(Severity::Info, "ready".into(), None))]);
    writer.keep_now(vec![part(&format!("{} and {SECRET}{start}", &end[4..]))]);
    writer.keep_now(vec![part(&format!("{end}.")), ended(3)]);
    writer.keep_now(filler(3));
    writer.keep_for(SessionKey(2), vec![Note::Spool { of: SessionKey(1) }, prompt(1, &long)]);
    let uid = store.find("s1").unwrap().uid;
    assert!(!files_with(&dir, &WORDS).is_empty() && hits(&store, "swordfish") >= 3);
    let others = number(&store, "SELECT count(*) FROM docs");

    assert_eq!(
        another(&dir).forget_text(SECRET, None).unwrap_err().fault(),
        &Fault::InUse(Some(std::process::id()))
    );
    let changed = store.forget_text(SECRET, None).unwrap();
    // A prompt, two calls and four parts; the row and its held file; the prompt in the spool; the prompt of the folder.
    assert_eq!(changed, 7 + 2 + 1 + 1);
    assert_eq!(files_with(&dir, &WORDS), Vec::<PathBuf>::new());
    assert_eq!((hits(&store, "swordfish"), hits(&store, "w7*") > 0), (0, true));
    assert_eq!(number(&store, "SELECT count(*) FROM docs"), others, "no other text is lost");
    let (events, unreadable_count) = store.events(&uid).unwrap();
    assert_eq!(unreadable_count, 0);
    let saved = RecordedSession { events, ..RecordedSession::default() };
    let said: String =
        texts(&saved).into_iter().filter(|text| !text.contains("Tool(") && !text.starts_with('>')).collect();
    assert!(said.contains("it is [removed]Notice"), "{said}");
    assert!(said.contains(" and [removed][removed].end"), "{said}");
    assert!(format!("{saved:?}").contains("login [removed]!"));
    // What is in memory does not bring it back.
    writer.keep_now(vec![says(3, "on"), prompt(4, "and on"), ended(4)]);
    let row = store.find(&uid).unwrap();
    let first = format!("{}[remo", "y".repeat(195));
    assert_eq!(
        (row.title.as_deref(), row.first_prompt.as_deref()),
        (Some("About [removed]"), Some(first.as_str()))
    );
    assert_eq!((row.draft.as_str(), row.queue.len()), ("draft [removed]", 1));
    assert_eq!(store.history(folder), ["log in with [removed]"]);
    drop(writer);
    assert_eq!(files_with(&dir, &WORDS), Vec::<PathBuf>::new());
    assert_eq!(store.forget_text(SECRET, None).unwrap(), 0);
    assert_eq!(store.forget_text(" ", None).unwrap(), 0);
}

#[test]
fn a_text_is_removed_from_the_old_file_that_is_kept() {
    let (dir, store) = store();
    let conn = Connection::open(dir.path().join("data/sessions.db")).unwrap();
    for sql in former::STEPS {
        conn.execute_batch(sql).unwrap();
    }
    conn.pragma_update(None, "user_version", i64::try_from(former::STEPS.len()).unwrap()).unwrap();
    let body = super::super::format::encode(&recorded(prompt(1, SECRET)).record);
    conn.execute(
        "INSERT INTO sessions (id, uid, agent, command, args, folder, roots, title, first_prompt, is_child, created,
            updated, state, turns, next_seq, draft, queue)
        VALUES (1, 'uid1', 'fake', 'fake', '[]', '/code', '[]', ?1, ?1, 0, 1, 1, 'idle', 1, 1, ?1, '[]')",
        [SECRET],
    )
    .unwrap();
    for sql in [
        "INSERT INTO events VALUES (1, 0, 1, 1, 'prompt', ?1)",
        "INSERT INTO late VALUES (1, 0, 1, 1, 1, ?1)",
        "INSERT INTO staged VALUES (1, 9, 1, 1, 'prompt', ?1)",
    ] {
        conn.execute(sql, [&body]).unwrap();
    }
    let sql = "INSERT INTO docs (session, seq, turn, at, kind, is_error, text) VALUES (1, 0, 1, 1, 'prompt', 0, ?1)";
    conn.execute(sql, [SECRET]).unwrap();
    conn.execute("INSERT INTO prompts (folder, text, at) VALUES ('/code', ?1, 1)", [SECRET]).unwrap();
    drop(conn);
    assert_eq!(store.events("uid1").unwrap().0.len(), 2);
    let former = store.former_files().remove(0);
    assert_eq!(files_with(&dir, &WORDS).len(), 2, "the old file, and the new one or its log");
    store.forget_text(SECRET, None).unwrap();
    assert_eq!(files_with(&dir, &WORDS), Vec::<PathBuf>::new());
    let old = Connection::open(former).unwrap();
    let left: String = old.query_row("SELECT body FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(left, r#"{"prompt":{"text":"[removed]"}}"#);
}

#[test]
fn turns_are_removed_with_what_was_derived_from_them() {
    let (dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    let folder = Path::new("/code/shop");
    for text in ["hunter2 is the word", "oak"] {
        store.append_prompt(folder, text).unwrap();
    }
    writer.keep_now(
        [vec![head("s1"), prompt(1, "hunter2 is the word"), says(1, "swordfish")], filler(1)].concat(),
    );
    writer.keep_now([vec![ended(1), prompt(2, "oak"), says(2, "acorn"), ended(2)], filler(3)].concat());
    let uid = store.find("s1").unwrap().uid;
    let job = |turns| StoreJob::ForgetTurns { key: SessionKey(1), uid: uid.clone(), turns };
    let news = served(&another(&dir), job(1..2)).remove(0);
    assert!(matches!(news, StoreNews::Forgotten { result: Err(_), .. }), "it is open elsewhere: {news:?}");
    let news = served(&store, job(1..2)).remove(0);
    assert_eq!(news, StoreNews::Forgotten { key: SessionKey(1), turns: 1..2, result: Ok(()) });
    assert_eq!(files_with(&dir, &WORDS), Vec::<PathBuf>::new());
    // An event of that turn that was not written yet does not come back, either.
    writer.keep_now(vec![says(4, "more")]);
    let row = store.find(&uid).unwrap();
    assert_eq!((row.first_prompt.as_deref(), row.turn_count), (Some("oak"), 4));
    let (events, _) = store.events(&uid).unwrap();
    assert!(events.iter().all(|event| event.turn != 1) && events.len() == 3 + 40 + 1);
    assert_eq!(["swordfish", "hunter2", "acorn", "more"].map(|word| hits(&store, word)), [0, 0, 1, 1]);
    assert_eq!(store.history(folder), ["oak"]);
    assert!(store_news(&mut received).iter().all(|news| !matches!(news, StoreNews::Unsaved(_))));
}

#[test]
fn search_texts_of_long_messages_are_made_anew() {
    for seed in 0..20 {
        let (dir, store) = store();
        let (mut writer, _received) = writer(&store);
        writer.keep_now(vec![head("s1"), prompt(1, "go"), prompt(2, "say it")]);
        let mut random = crate::random::Random::new(seed);
        let mut text = String::new();
        for n in 0..400 {
            text.extend(["word", &n.to_string(), " "]);
            if random.one_in(4) {
                text += "hunter2-swordfish ";
            }
        }
        // Parts of any length, across which the texts of the index are split.
        while !text.is_empty() {
            let length = text.len().min(1 + usize::try_from(random.below(90)).unwrap());
            writer.keep_now(vec![says(2, &text[..length])]);
            text.drain(..length);
        }
        writer.keep_now([vec![ended(2)], filler(3)].concat());
        assert!(store.forget_text("hunter2-swordfish", None).unwrap() > 50);
        assert_eq!(files_with(&dir, &WORDS), Vec::<PathBuf>::new(), "seed {seed}");
        let missing: Vec<u32> = (0..400).filter(|n| hits(&store, &format!("word{n}")) == 0).collect();
        // Words at the end of a text of the index are split, as they were.
        assert!(missing.len() < 5, "seed {seed}: {missing:?}");
        assert_eq!(hits(&store, "go"), 1);
    }
}

#[test]
fn deleted_sessions_leave_nothing_in_the_file() {
    let (dir, store) = store();
    let uid = record(&store, vec![head("s1"), prompt(1, "hunter2"), says(1, "swordfish"), ended(1)]);
    record(&store, [vec![head("s2")], filler(1)].concat());
    store.delete(&uid).unwrap();
    store.compact().unwrap();
    assert_eq!(files_with(&dir, &WORDS), Vec::<PathBuf>::new());
}
