use super::*;

pub fn texts(saved: &RecordedSession) -> Vec<String> {
    saved
        .events
        .iter()
        .map(|event| match &event.record {
            Record::Prompt { text, .. } => format!("> {text}"),
            Record::Update(SessionUpdate::Chunk { text, .. }) => text.clone(),
            Record::TurnEnded(TurnOutcome::Cut) => "cut".to_owned(),
            Record::TurnEnded(_) => "end".to_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_session_is_saved_and_restored() {
    let (dir, store) = store();
    let uid = record(
        &store,
        vec![
            head("s1"),
            prompt(1, "fix the tests"),
            says(1, "I "),
            says(1, "look."),
            ended(1),
            event(
                1,
                Record::Update(SessionUpdate::Info {
                    title: Patch::Set("Fixing".to_owned()),
                    updated_at: Patch::Keep,
                }),
            ),
            Note::Draft("half a tho".to_owned()),
            Note::Draft("half a thought".to_owned()),
            Note::Queue(vec!["next".to_owned()]),
        ],
    );
    let saved = another(&dir).reopen(&uid).unwrap();
    assert_eq!(texts(&saved)[..3], ["> fix the tests", "I look.", "end"]);
    assert_eq!((saved.has_earlier, saved.unreadable_count), (false, 0));
    assert_eq!((saved.draft.as_str(), saved.queue.as_slice()), ("half a thought", &["next".to_owned()][..]));
    let head = saved.head;
    assert_eq!(head.title.as_deref(), Some("Fixing"));
    assert_eq!((head.agent.as_str(), head.command.as_str(), head.args.len()), ("fake", "fake-agent", 1));
    assert_eq!(head.session, Some("s1".into()));
    assert_eq!(head.workspace.cwd, Path::new("/code/shop"));
    assert_eq!(head.branch.as_deref(), Some("main"));
}

#[test]
fn a_session_without_content_is_not_saved() {
    let (_dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    let commands = event(0, Record::Update(SessionUpdate::Commands(Vec::new())));
    recorder.keep(SessionKey(1), vec![head("s1"), commands]);
    assert_eq!(recorder.finish(), None);
    assert_eq!(store.count().unwrap(), 0);
}

#[test]
fn a_reopened_session_continues_its_record() {
    let (_dir, store) = store();
    let uid = record(&store, vec![head("s1"), prompt(1, "one"), says(1, "1"), ended(1)]);
    let saved = store.reopen(&uid).unwrap();
    let again = Note::Head(Box::new(saved.head));
    let same = record(&store, vec![again, prompt(2, "two"), says(2, "2"), ended(2)]);
    assert_eq!(same, uid);
    assert_eq!(store.count().unwrap(), 1);
    assert_eq!(texts(&store.reopen(&uid).unwrap()), ["> one", "1", "end", "> two", "2", "end"]);
    let row = store.find(&uid).unwrap();
    assert_eq!((row.turn_count, row.first_prompt.as_deref()), (2, Some("one")));
}

#[test]
fn events_that_an_imported_history_replaced_are_left_out() {
    let (_dir, store) = store();
    let notes = vec![prompt(1, "old"), ended(1), event(1, Record::Replaced), prompt(1, "new"), ended(1)];
    let events: Vec<RecordedEvent> = notes.into_iter().map(recorded).collect();
    let row = SessionRow { uid: "theirs".to_owned(), ..SessionRow::default() };
    store.import(&row, &events).unwrap();
    assert_eq!(texts(&store.reopen("theirs").unwrap()), ["> new", "end"]);
    assert!(store.import(&row, &events).unwrap().was_known);
    let search = ArchiveSearch { text: "old".to_owned(), limit: 5, ..ArchiveSearch::default() };
    assert_eq!(store.search(&search).unwrap(), []);
}

#[test]
fn a_session_is_open_in_one_parlor_only() {
    let (dir, store) = store();
    let uid = record(&store, vec![head("s1"), prompt(1, "one"), ended(1)]);
    store.reopen(&uid).unwrap();
    let other = another(&dir);
    let error = other.reopen(&uid).unwrap_err();
    assert_eq!(*error.fault(), Fault::InUse(Some(std::process::id())));
    assert!(error.to_string().contains("Close it there first"), "{error}");
    assert!(matches!(other.delete(&uid).unwrap_err().fault(), Fault::InUse(_)));
    // The other parlor ends in any way.
    drop(store);
    assert_eq!(other.last_of(Path::new("/code/shop")).unwrap().0[0].uid, uid);
    other.reopen(&uid).unwrap();
}

#[test]
fn a_turn_of_a_dead_parlor_is_marked_as_interrupted_once() {
    let (dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head("s1"), prompt(1, "one"), says(1, "half an ans")]);
    let other = another(&dir);
    wait_for(|| other.count().unwrap() == 1);
    assert_eq!(other.list(&ListFilter::default()).unwrap()[0].state, SessionState::Turn);
    // As after a crash: the mark is gone, and the session was not closed.
    lose_mark(&dir, &store);
    let row = other.list(&ListFilter::default()).unwrap().remove(0);
    assert_eq!(row.state, SessionState::Cut);
    for _ in 0..2 {
        assert_eq!(texts(&other.reopen(&row.uid).unwrap()), ["> one", "half an ans", "cut"]);
    }
}

#[test]
fn sessions_are_found_by_a_prefix_of_their_ids() {
    let (_dir, store) = store();
    let uid = record(&store, vec![head("agent-id-1"), prompt(1, "one"), ended(1)]);
    let second = record(&store, vec![head("agent-id-2"), prompt(1, "two"), ended(1)]);
    assert_eq!(store.find(&uid).unwrap().uid, uid);
    assert_eq!(store.find("agent-id-2").unwrap().uid, second);
    assert!(matches!(store.find("agent-id").unwrap_err().fault(), Fault::Ambiguous(_)));
    assert!(matches!(store.find("nothing").unwrap_err().fault(), Fault::NoSession(_)));
    assert!(matches!(store.find("").unwrap_err().fault(), Fault::NoSession(_)));
}

#[test]
fn all_kinds_of_events_are_found() {
    let (_dir, store) = store();
    let mut edit = ToolCallPatch::new("t1".into());
    edit.kind = Patch::Set(ToolKind::Edit);
    edit.title = Patch::Set("Edit shop.rs".to_owned());
    let change = DiffChange::Texts { old: None, new: "let basket = 1;".into() };
    edit.content = Patch::Set(vec![ToolContent::Diff(FileDiff { path: "/code/shop.rs".into(), change })]);
    let mut run = ToolCallPatch::new("t2".into());
    run.kind = Patch::Set(ToolKind::Execute);
    run.status = Patch::Set(ToolStatus::Failed);
    run.input = Patch::Set(ToolInput { command: Some("cargo test".to_owned()), ..ToolInput::default() });
    run.output_text = Patch::Set("error: no such basket".into());
    let uid = record(
        &store,
        vec![
            head("s1"),
            prompt(1, "Mend the Caf\u{e9} basket"),
            says(1, "I men"),
            event(1, Record::Update(SessionUpdate::Tool(Box::new(edit)))),
            event(1, Record::Update(SessionUpdate::Tool(Box::new(run)))),
            says(1, "All is mended."),
            event(
                1,
                Record::TurnEnded(TurnOutcome::Failed {
                    error: "out of basket tokens".to_owned(),
                    fault: FaultKind::Agent,
                    took_ms: 0,
                    cost: None,
                }),
            ),
        ],
    );
    let find = |text: &str, change: fn(&mut ArchiveSearch)| {
        let mut search = ArchiveSearch { text: text.to_owned(), limit: 50, ..ArchiveSearch::default() };
        change(&mut search);
        let mut kinds: Vec<String> = store.search(&search).unwrap().into_iter().map(|hit| hit.kind).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(find("basket", |_| ()), ["command", "edit", "error", "prompt"]);
    assert_eq!(find("cafe", |_| ()), ["prompt"]);
    assert_eq!(find("mend*", |_| ()), ["answer", "prompt"]);
    assert_eq!(find("\"all is\"", |_| ()), ["answer"]);
    assert_eq!(find("basket", |search| search.kinds = vec!["edit"]), ["edit"]);
    assert_eq!(find("basket", |search| search.only_errors = true), ["command", "error"]);
    assert_eq!(find("basket", |search| search.agent = Some("other".to_owned())), Vec::<String>::new());
    assert_eq!(find("basket", |search| search.folder = Some("/code".into())).len(), 4);
    assert_eq!(find("basket", |search| search.folder = Some("/co".into())).len(), 0);
    assert_eq!(find("basket", |search| search.until_ms = Some(1)).len(), 0);
    // No character has a special meaning that could break the search.
    for text in ["", "*", "\"", "a AND (", "text:x", "-", "\"basket"] {
        find(text, |_| ());
    }
    let search = ArchiveSearch { text: "tokens".to_owned(), limit: 5, ..ArchiveSearch::default() };
    let hit = store.search(&search).unwrap().remove(0);
    assert_eq!((hit.uid.as_str(), hit.turn, hit.is_error), (uid.as_str(), 1, true));
    assert_eq!(hit.snippet, "out of basket \u{2}tokens\u{3}");

    store.delete(&uid).unwrap();
    assert_eq!(find("basket", |_| ()), Vec::<String>::new());
    assert_eq!(store.events(&uid).unwrap().0, Vec::new());
}

#[test]
fn an_export_is_imported_once() {
    let (_dir, here) = store();
    let (_other, there) = super::store();
    let uid = record(&here, vec![head("s1"), prompt(1, "one"), says(1, "answer"), ended(1)]);
    let (row, (events, _)) = (here.find(&uid).unwrap(), here.events(&uid).unwrap());
    let imported = there.import(&row, &events).unwrap();
    assert_eq!(imported, Imported { uid: uid.clone(), was_known: false });
    assert!(there.import(&row, &events).unwrap().was_known);
    let copy = there.find(&uid).unwrap();
    assert_eq!((&copy.name(), copy.created_ms, copy.updated_ms), (&"one", row.created_ms, row.updated_ms));
    assert_eq!(there.events(&uid).unwrap().0, events);
    let search = ArchiveSearch { text: "answer".to_owned(), limit: 5, ..ArchiveSearch::default() };
    assert_eq!(there.search(&search).unwrap().len(), 1);
    // Another session with the same id is not overwritten.
    let stranger = SessionRow { created_ms: 1, ..row };
    let second = there.import(&stranger, &events).unwrap();
    assert_ne!(second.uid, uid);
    assert_eq!(there.count().unwrap(), 2);
}

/// Waits until a condition holds that another thread causes.
pub fn wait_for(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "the condition did not hold in time");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A head of a session in the tab at this place.
fn tab(session: &str, tab: u32, is_front: bool) -> Note {
    let Note::Head(base) = head(session) else { unreachable!() };
    Note::Head(Box::new(SessionHead { tab, is_front, ..*base }))
}

#[test]
fn the_tabs_of_the_last_run_are_found_also_after_a_crash() {
    let folder = Path::new("/code/shop");
    for is_crash in [false, true] {
        let (dir, store) = store();
        let names = |store: &Store| -> Vec<(String, bool)> {
            let (rows, _) = store.last_of(folder).unwrap();
            rows.into_iter().map(|row| (row.first_prompt.unwrap_or_default(), row.is_front)).collect()
        };
        record(&store, vec![head("s0"), prompt(1, "before"), ended(1)]);
        assert_eq!(names(&store), [("before".to_owned(), false)]);
        let second = another(&dir);
        let (mut recorder, _received) = recorder(&second);
        recorder.keep(SessionKey(1), vec![tab("s1", 3, false), prompt(1, "right"), ended(1)]);
        recorder.keep(SessionKey(2), vec![tab("s2", 1, true), prompt(1, "left"), ended(1)]);
        recorder.keep(SessionKey(3), vec![tab("s3", 2, false), prompt(1, "closed"), ended(1), Note::Closed]);
        assert_eq!(recorder.finish(), None);
        if is_crash {
            let token = &second.owner().unwrap().token;
            let mark = |conn: &mut rusqlite::Connection| {
                conn.execute("UPDATE sessions SET owner = ?1 WHERE tab IS NOT NULL AND run = ?1", [token])
            };
            store.with(mark).unwrap();
            lose_mark(&dir, &second);
        }
        let third = another(&dir);
        assert_eq!(names(&third), [("left".to_owned(), true), ("right".to_owned(), false)]);
        // A session that was only opened is not the last one.
        let old = third.find("s0").unwrap();
        third.reopen(&old.uid).unwrap();
        let (mut recorder, _received) = self::recorder(&third);
        let Note::Head(mut again) = tab("s0", 1, true) else { unreachable!() };
        again.saved_as = Some(old.uid);
        recorder.keep(SessionKey(1), vec![Note::Head(again), says(1, "ready")]);
        assert_eq!(recorder.finish(), None);
        assert_eq!(names(&third), [("left".to_owned(), true), ("right".to_owned(), false)]);
    }
}

#[test]
fn a_title_survives_a_long_session() {
    let (_dir, store) = store();
    let Note::Head(mut titled) = head("s1") else { unreachable!("a head") };
    (titled.title, titled.has_own_title) = (Some("The till".to_owned()), true);
    let mut notes = vec![Note::Head(titled), prompt(1, "first")];
    for turn in 2..2_000 {
        notes.extend([prompt(turn, "more"), says(turn, &"word ".repeat(100)), ended(turn)]);
    }
    let uid = record(&store, notes);
    let row = store.find(&uid).unwrap();
    assert_eq!((row.name(), row.has_own_title), ("The till", true));
    let saved = store.reopen(&uid).unwrap();
    assert!(saved.has_earlier, "only the end is loaded");
    assert_eq!((saved.head.title.as_deref(), saved.head.has_own_title), (Some("The till"), true));
}
