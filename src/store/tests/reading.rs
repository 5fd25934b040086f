//! The end of a session, and the rest of it in pages.

use super::*;

/// Saves a session with these sizes of replies, one turn each; returns its events.
fn saved(store: &Store, uid: &str, turns: &[(u32, usize)]) -> Vec<RecordedEvent> {
    let mut events = Vec::new();
    for (turn, (replies, bytes)) in (1..).zip(turns) {
        events.push(recorded(prompt(turn, &format!("prompt {turn}"))));
        for n in 0..*replies {
            let text = format!("{turn}.{n} {}", "x".repeat(*bytes));
            let message = Some(format!("{turn}.{n}").into());
            let update = SessionUpdate::Chunk { role: Role::Agent, message, text };
            events.push(RecordedEvent { at_ms: 1, turn, record: Record::Update(update) });
        }
    }
    store.import(&SessionRow { uid: uid.to_owned(), ..SessionRow::default() }, &events).unwrap();
    events
}

fn end(store: &Store, uid: &str) -> (usize, bool, i64) {
    let (_, saved) = store.peek(uid).unwrap();
    let is_prompt = matches!(saved.events[0].record, Record::Prompt { .. });
    assert!(is_prompt, "the end starts with a turn");
    assert_eq!(store.glance(uid).unwrap().events.last(), saved.events.last());
    (saved.events.len(), saved.has_earlier, saved.end_seq)
}

#[test]
fn the_end_has_enough_turns_for_a_screen_as_long_as_they_are_small() {
    let (_dir, store) = store();
    saved(&store, "small", &vec![(1, 10); 1500]);
    assert_eq!(end(&store, "small"), (40, true, 3000));
    saved(&store, "short", &[(1, 10); 7]);
    assert_eq!(end(&store, "short"), (14, false, 14));
    saved(&store, "uneven", &[(1, 10), (99, 10), (1, 10), (30, 10)]);
    assert_eq!(end(&store, "uneven"), (133, true, 135));
    // A large turn is read whole, and not together with a smaller one.
    saved(&store, "large", &[(1, 10), (20, 100 << 10)]);
    assert_eq!(end(&store, "large"), (21, true, 23));
    saved(&store, "after", &[(20, 100 << 10), (3, 10)]);
    assert_eq!(end(&store, "after"), (4, true, 25));
}

#[test]
fn events_that_were_added_to_an_earlier_turn_do_not_start_the_end() {
    let (_dir, store) = store();
    let mut notes = vec![prompt(1, "first"), ended(1), prompt(2, "second"), says(1, "late"), says(2, "more")];
    notes.extend((0..60).map(|n| event(2, answered("q", &n.to_string()))));
    let events: Vec<RecordedEvent> = notes.into_iter().map(recorded).collect();
    store.import(&SessionRow { uid: "late".to_owned(), ..SessionRow::default() }, &events).unwrap();
    // The last start of a turn is after the late event.
    let (_, saved) = store.peek("late").unwrap();
    assert_eq!((saved.events.len(), saved.has_earlier), (61, true));
}

/// The pages of a session before a number.
fn load(store: &Store, uid: &str, before: i64, at: Option<i64>) -> Vec<EventPage> {
    let job = StoreJob::Load { key: SessionKey(4), uid: uid.to_owned(), before, at };
    let pages = served(store, job).into_iter().map(|news| match news {
        StoreNews::Loaded { key: SessionKey(4), page } => page.unwrap(),
        other => panic!("{other:?}"),
    });
    pages.collect()
}

#[test]
fn the_rest_of_a_session_is_loaded_in_pages_with_a_mark() {
    let (_dir, store) = store();
    let events = saved(&store, "long", &[(40, 10 << 10), (300, 3 << 10), (9, 10)]);
    let (_, saved) = store.peek("long").unwrap();
    let before = i64::try_from(events.len() - saved.events.len()).unwrap();
    let wanted = 222;
    let pages = load(&store, "long", before, Some(wanted));
    assert!(pages.len() > 2, "{}", pages.len());
    let (last, rest) = pages.split_last().unwrap();
    assert!(last.is_last && rest.iter().all(|page| !page.is_last && page.mark.is_none()) || pages.len() > 2);
    let marked: Vec<&EventPage> = pages.iter().filter(|page| page.mark.is_some()).collect();
    let [page] = marked.as_slice() else { panic!("{} marks", marked.len()) };
    assert_eq!(page.events[page.mark.unwrap()], events[222]);
    for page in rest {
        let bytes: usize =
            page.events.iter().map(|event| super::super::format::encode(&event.record).len()).sum();
        assert!((400 << 10..=512 << 10).contains(&bytes), "{bytes}");
    }
    let all: Vec<RecordedEvent> =
        pages.into_iter().flat_map(|page| page.events).chain(saved.events).collect();
    assert_eq!(all, events, "each event once, in order");
}

#[test]
fn a_load_without_events_and_one_of_an_unknown_session_end() {
    let (_dir, store) = store();
    saved(&store, "one", &[(1, 1)]);
    assert_eq!(load(&store, "one", 0, None), [EventPage { is_last: true, ..EventPage::default() }]);
    let job = StoreJob::Load { key: SessionKey(4), uid: "none".to_owned(), before: 9, at: None };
    let news = served(&store, job);
    assert!(matches!(news.as_slice(), [StoreNews::Loaded { page: Err(_), .. }]), "{news:?}");
}

#[test]
fn the_turn_of_an_event_is_loaded_with_its_mark() {
    let (_dir, store) = store();
    let events = saved(&store, "three", &[(2, 9), (3, 9), (1, 9)]);
    let around = |at: i64| {
        let job = StoreJob::Around { key: SessionKey(4), uid: "three".to_owned(), at };
        match served(&store, job).remove(0) {
            StoreNews::Around { page: Ok(page), .. } => page,
            other => panic!("{other:?}"),
        }
    };
    let page = around(5);
    assert_eq!((page.events.as_slice(), page.mark, page.is_last), (&events[3..7], Some(2), true));
    assert_eq!(around(0).events, events[..3]);
    assert_eq!(around(8).events, events[7..]);
    assert_eq!(around(99), EventPage { is_last: true, ..EventPage::default() });
}

#[test]
fn the_last_session_is_the_one_that_was_used_last_whatever_the_clock_said() {
    let (dir, store) = store();
    let first = record(&another(&dir), vec![head("s1"), prompt(1, "one"), ended(1)]);
    store.with(|conn| conn.execute("UPDATE sessions SET updated = ?1", [i64::MAX / 2])).unwrap();
    record(&another(&dir), vec![head("s2"), prompt(1, "two"), ended(1)]);
    let second = store.find("s2").unwrap().uid;
    let order = || -> Vec<String> {
        let listed = store.list(&ListFilter::default()).unwrap();
        let paged = store.list_page(None, 9).unwrap().0;
        assert_eq!(listed, paged);
        listed.into_iter().map(|row| row.uid).collect()
    };
    assert_eq!(order(), [second.clone(), first.clone()]);
    assert_eq!(store.last_of(Path::new("/code/shop")).unwrap().0[0].uid, second);
    // Opening it is no use, a prompt is.
    let head = store.reopen(&first).unwrap().head;
    let (mut writer, _received) = recorder::tests::writer(&store);
    let notice = Record::notice(Severity::Info, "ready".to_owned(), None);
    writer.keep_now(vec![Note::Head(Box::new(head)), event(1, notice)]);
    assert_eq!(order(), [second.clone(), first.clone()]);
    writer.keep_now(vec![prompt(2, "again")]);
    assert_eq!(order(), [first.clone(), second.clone()]);
    let updated = store.find(&first).unwrap().updated_ms;
    assert!((unix_ms() - updated).abs() < 60_000, "a wrong time is replaced");
    // An import is listed by its time.
    let row = SessionRow { uid: "old".to_owned(), updated_ms: 5, ..SessionRow::default() };
    store.import(&row, &[recorded(prompt(1, "imported"))]).unwrap();
    assert_eq!(order(), [first, second, "old".to_owned()]);
}

#[test]
fn sessions_with_nothing_to_continue_are_neither_listed_nor_continued() {
    let (_dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    let drafts = [Note::Draft("half".into()), Note::Queue(vec!["q".into()]), Note::Stash(vec!["s".into()])];
    let empties = [Note::Draft(String::new()), Note::Queue(Vec::new()), Note::Stash(Vec::new())];
    for ((key, draft), empty) in (1..).zip(drafts).zip(empties) {
        let count = || (store.count().unwrap(), store.list(&ListFilter::default()).unwrap().len());
        writer.keep_for(SessionKey(key), vec![head(&format!("s{key}")), draft]);
        assert_eq!(count(), (1, 1));
        assert_eq!(store.last_of(Path::new("/code/shop")).unwrap().0.len(), 1);
        writer.keep_for(SessionKey(key), vec![empty]);
        assert_eq!(count(), (0, 0));
        assert_eq!(store.list_page(None, 9).unwrap().0, []);
        assert_eq!(store.last_of(Path::new("/code/shop")).unwrap(), (vec![], vec![]));
    }
    // Activity of the agent without a prompt is content, too.
    writer.keep_for(SessionKey(9), vec![head("s9"), says(0, "I was woken")]);
    assert_eq!(store.count().unwrap(), 1);
}

#[test]
fn held_files_are_saved_until_they_are_applied() {
    let (_dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    let file = |base: Option<&str>, text: &str| HeldFile { base: base.map(Into::into), text: text.into() };
    let held = |path: &str, file| Note::Held(path.into(), file);
    let notes = [held("/a", Some(file(None, "one"))), held("/b", Some(file(Some("old"), "new")))];
    writer.keep_for(SessionKey(1), [vec![head("s1"), prompt(1, "go")], notes.into()].concat());
    writer.keep_for(SessionKey(1), vec![held("/a", Some(file(None, "two")))]);
    writer.keep_for(SessionKey(1), vec![held("/b", None), Note::Closed]);
    let uid = store.find("s1").unwrap().uid;
    let saved = store.reopen(&uid).unwrap();
    assert_eq!(saved.held, [("/a".into(), file(None, "two"))].into());
    assert_eq!(store.forget_text("two", None).unwrap(), 1);
    assert_eq!(store.peek(&uid).unwrap().1.held, [("/a".into(), file(None, "[removed]"))].into());
}

#[test]
fn a_stash_and_what_was_told_are_saved() {
    let (_dir, store) = store();
    let stash = vec!["one".to_owned(), "two".to_owned()];
    let uid = record(&store, vec![head("s1"), Note::Stash(stash.clone()), Note::Reported(vec![1, u64::MAX])]);
    let saved = store.reopen(&uid).unwrap();
    assert_eq!((saved.stash, saved.reported), (stash, vec![1, u64::MAX]));
    assert_eq!(store.find(&uid).unwrap().name(), "two");
    assert!(store.unsent_prompts().unwrap().contains(&"[\"one\",\"two\"]".to_owned()));
}
