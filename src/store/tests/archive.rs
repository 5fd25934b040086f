//! Recorded sessions in pages, by the agent's id, and the jobs of the app.

use super::*;
use crate::lock::lock;

fn head_of(session: &str, goes_on: bool) -> Note {
    match head("x") {
        Note::Head(mut head) => {
            head.session = Some(session.into());
            head.goes_on = goes_on;
            Note::Head(head)
        }
        other => other,
    }
}

fn prompts_of(store: &Store, uid: &str) -> Vec<String> {
    let events = store.peek(uid).unwrap().1.events;
    let texts = events.into_iter().filter_map(|event| match event.record {
        Record::Prompt { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_session_of_the_agent_continues_its_record() {
    let (dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head_of("theirs", false), prompt(1, "first"), ended(1)]);
    assert_eq!(recorder.finish(), None);
    let first = store.list(&ListFilter::default()).unwrap();
    // Opened from the agent's list by another parlor, without its history.
    let again = another(&dir);
    let (mut recorder, mut received) = super::recorder(&again);
    recorder.keep(SessionKey(9), vec![head_of("theirs", true), prompt(2, "second")]);
    assert_eq!(recorder.finish(), None);
    let rows = again.list(&ListFilter::default()).unwrap();
    assert_eq!(rows.len(), 1, "there is no second record");
    assert_eq!((rows[0].uid.as_str(), rows[0].created_ms), (first[0].uid.as_str(), first[0].created_ms));
    let received = std::iter::from_fn(|| received.try_recv().ok()).collect::<Vec<_>>();
    assert!(received.iter().any(|event| matches!(event, ServiceEvent::Store(news)
        if matches!(&**news, StoreNews::SavedAs { key: SessionKey(9), uid } if *uid == rows[0].uid))));
    assert_eq!(prompts_of(&again, &rows[0].uid), ["first", "second"]);
}

#[test]
fn a_session_in_the_agents_list_is_opened_from_its_record() {
    let (_dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head_of("theirs", false), prompt(1, "first"), ended(1)]);
    assert_eq!(recorder.finish(), None);
    let row = store.list(&ListFilter::default()).unwrap().remove(0);
    let serve = |agent: &str, id: &str| {
        let info = SessionInfo {
            id: id.into(),
            cwd: row.folder.clone(),
            title: None,
            updated_at: None,
            additional_directories: Vec::new(),
            is_archived: false,
            is_live: None,
        };
        let (conn, agent) = (ConnId(1), agent.to_owned());
        let job = StoreJob::OpenListed { conn, agent, info: Box::new(info), folder: row.folder.clone() };
        let mut received = None;
        let export: Export = |_, _, _, _| Err(String::new());
        store.serve(job, export, &mut |news| received = Some(news));
        match received {
            Some(StoreNews::Opened(opening)) => Some(opening.uid),
            Some(StoreNews::NotSaved(ConnId(1), info)) if info.id.as_str() == id => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(serve(&row.agent, "theirs"), Some(row.uid.clone()));
    assert_eq!(serve(&row.agent, "others"), None);
    assert_eq!(serve("another agent", "theirs"), None);
}

#[test]
fn sessions_of_an_agent_that_reuses_ids_are_separate() {
    let (_dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head_of("1", false), prompt(1, "first"), ended(1)]);
    recorder.keep(SessionKey(2), vec![head_of("1", false), prompt(1, "other"), ended(1)]);
    assert_eq!(recorder.finish(), None);
    assert_eq!(store.list(&ListFilter::default()).unwrap().len(), 2);
}

#[test]
fn the_continued_session_is_recorded() {
    let (_dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head_of("a", false), prompt(1, "first"), ended(1)]);
    let from = Note::CameFrom { session: SessionKey(1), saved_as: None, copied_turns: None };
    recorder.keep(SessionKey(2), vec![from, head_of("b", false), prompt(1, "second"), ended(1)]);
    assert_eq!(recorder.finish(), None);
    let rows = store.list(&ListFilter::default()).unwrap();
    let uid = |session: &str| {
        rows.iter()
            .find(|row| row.agent_session.as_deref() == Some(session))
            .map(|row| row.uid.clone())
            .unwrap()
    };
    let saved = store.peek(&uid("b")).unwrap().1;
    assert_eq!(saved.came_from, Some((uid("a"), "first".to_owned())));
}

#[test]
fn a_copy_is_complete_after_its_source_is_deleted() {
    let (_dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head_of("a", false), prompt(1, "first"), ended(1), prompt(2, "second"), ended(2)]);
    let link = Note::CameFrom { session: SessionKey(1), saved_as: None, copied_turns: Some(1) };
    let unnamed = Note::Head(Box::new(SessionHead { agent: "fake".to_owned(), ..SessionHead::default() }));
    writer.keep_for(SessionKey(2), vec![unnamed, link]);
    assert_eq!(
        store.list(&ListFilter::default()).unwrap().len(),
        1,
        "the agent has not created the copy yet"
    );
    writer.keep_for(SessionKey(2), vec![head_of("b", false)]);
    writer.keep_now(vec![prompt(3, "of the source only")]);
    writer.keep_for(SessionKey(2), vec![prompt(2, "of the copy"), ended(2)]);
    let row = store.find("b").unwrap();
    assert_eq!(row.first_prompt.as_deref(), Some("first"));
    let prompts = |uid: &str| -> Vec<(u32, String)> {
        let saved = store.peek(uid).unwrap().1;
        assert!(!saved.has_earlier);
        saved
            .events
            .into_iter()
            .filter_map(|event| match event.record {
                Record::Prompt { text, .. } => Some((event.turn, text)),
                _ => None,
            })
            .collect()
    };
    assert_eq!(prompts(&row.uid), [(1, "first".to_owned()), (2, "of the copy".to_owned())]);
    let source = store.find("a").unwrap().uid;
    assert_eq!(prompts(&source).len(), 3);
    writer.keep_now(vec![Note::Closed]);
    let search = ArchiveSearch { text: "first".to_owned(), limit: 9, ..ArchiveSearch::default() };
    let found = || store.search(&search).unwrap().into_iter().map(|hit| hit.uid).collect::<Vec<_>>();
    assert_eq!(found(), [source.as_str()], "common events are found once");
    store.delete(&source).unwrap();
    assert_eq!(prompts(&row.uid).len(), 2);
    assert_eq!(found(), [row.uid.as_str()]);
}

#[test]
fn lists_are_sent_in_pages_and_jobs_get_responses() {
    let (_dir, store) = store();
    for n in 0..250 {
        let row = SessionRow {
            uid: format!("s{n:03}"),
            agent: "fake".to_owned(),
            folder: "/nowhere".into(),
            updated_ms: n,
            ..SessionRow::default()
        };
        store
            .import(
                &row,
                &[RecordedEvent {
                    at_ms: n,
                    turn: 1,
                    record: Record::Prompt {
                        text: "x".into(),
                        is_again: false,
                        blocks: Vec::new(),
                        pasted: Vec::new(),
                        typed: None,
                    },
                }],
            )
            .unwrap();
    }
    let export: Export = |_, _, _, _| Err("no".to_owned());
    let mut received = Vec::new();
    store
        .serve(StoreJob::List { serial: 7, folder: "/code".into() }, export, &mut |news| received.push(news));
    let pages: Vec<usize> = received
        .iter()
        .map(|news| match news {
            StoreNews::Listed { serial: 7, rows: Ok(rows), .. } => {
                assert!(rows.iter().all(|row| row.is_folder_gone && row.nearness == Nearness::Elsewhere));
                rows.len()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(pages, [100, 150]);
    let serve = |job| {
        let mut received = Vec::new();
        store.serve(job, export, &mut |news| received.push(news));
        assert_eq!(received.len(), 1, "{received:?}");
        received.remove(0)
    };
    let news = serve(StoreJob::Rename { uid: "s001".into(), title: "Mine".into() });
    assert!(matches!(news, StoreNews::Renamed { result: Ok(_), .. }), "{news:?}");
    assert_eq!(
        store.find("s001").map(|row| (row.title, row.has_own_title)).unwrap(),
        (Some("Mine".into()), true)
    );
    let owes = || store.find("s001").unwrap().owes_title;
    assert!(owes(), "the agent does not have the title");
    serve(StoreJob::TitleKnown { uid: "s001".into(), title: "Another".into() });
    assert!(owes(), "the title changed in the meantime");
    let news = serve(StoreJob::TitleKnown { uid: "s001".into(), title: "Mine".into() });
    assert!(matches!(news, StoreNews::TitleKnown { result: Ok(()), .. }) && !owes(), "{news:?}");
    let news = serve(StoreJob::Open { uid: "s001".into(), takes: true, at: None, folder: "/tmp".into() });
    let StoreNews::Opened(opening) = news else { panic!("{news:?}") };
    assert!(!opening.takes, "a session without its folder is read-only at first");
    assert!(opening.offers.unwrap().iter().any(|offer| offer.why == FolderReason::Current));
    assert_eq!(store.find("s001").unwrap().owner, None, "it is not open");
    let news = serve(StoreJob::Take { key: SessionKey(3), uid: "s001".into() });
    assert!(matches!(news, StoreNews::Taken { key: SessionKey(3), saved: Ok(_) }), "{news:?}");
    let news = serve(StoreJob::Delete { uid: "s002".into() });
    assert!(matches!(news, StoreNews::Deleted { result: Ok(()), .. }), "{news:?}");
    let news = serve(StoreJob::Delete { uid: "s002".into() });
    assert!(matches!(news, StoreNews::Deleted { result: Err(_), .. }), "{news:?}");
    // Only the latest search is executed.
    let search = |serial, text: &str| StoreJob::Search {
        serial,
        search: ArchiveSearch { text: text.into(), ..ArchiveSearch::default() },
    };
    store.announce(&search(12, "x"));
    let found = |news: StoreNews| match news {
        StoreNews::Found { hits: Ok(hits), .. } => hits.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!((found(serve(search(11, "x"))), found(serve(search(12, "x")))), (0, 200));
}

#[test]
fn a_session_open_in_another_parlor_can_be_read_but_not_renamed() {
    let (dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SessionKey(1), vec![head_of("a", false), prompt(1, "first"), ended(1)]);
    assert_eq!(recorder.finish(), None);
    let uid = store.list(&ListFilter::default()).unwrap()[0].uid.clone();
    store.reopen(&uid).unwrap();
    let other = another(&dir);
    let (_, saved) = other.peek(&uid).unwrap();
    assert_eq!(saved.open_in, Some(std::process::id()));
    assert!(matches!(other.rename(&uid, "x").unwrap_err().fault(), Fault::InUse(_)));
    assert_eq!(store.peek(&uid).unwrap().1.open_in, None, "own sessions do not count");
}

fn last_of_folder(store: &Store, folder: &Path, wants_session: bool) -> (Option<String>, Option<String>) {
    let (mut agent, mut session) = (None, None);
    let job = StoreJob::Folder { folder: folder.to_owned(), wants_session };
    store.serve(job, |_, _, _, _| Err(String::new()), &mut |news| match news {
        StoreNews::UsedAgents { here, .. } => agent = here,
        StoreNews::FolderSession(row) => session = Some(row.uid),
        other => panic!("{other:?}"),
    });
    (agent, session)
}

#[test]
fn the_last_agent_and_the_last_free_session_of_a_folder_are_found() {
    let (dir, store) = store();
    let folder = Path::new("/code/shop");
    assert_eq!(last_of_folder(&store, folder, true), (None, None));
    let first = record(&store, vec![head("s1"), prompt(1, "one"), ended(1)]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let second = record(&store, vec![head("s2"), prompt(1, "two"), ended(1)]);
    store.save_agent(folder, "fake").unwrap();
    let agent = || Some("fake".to_owned());
    assert_eq!(last_of_folder(&store, folder, true), (agent(), Some(second.clone())));
    assert_eq!(last_of_folder(&store, folder, false), (agent(), None));
    let other = another(&dir);
    other.reopen(&second).unwrap();
    assert_eq!(last_of_folder(&store, folder, true), (agent(), Some(first)));
    assert_eq!(last_of_folder(&store, Path::new("/code"), true), (None, None));
}

#[test]
fn the_session_of_a_renamed_folder_is_found() {
    let (dir, store) = store();
    let root = dir.path().canonicalize().unwrap();
    let (before, after) = (root.join("before"), root.join("after"));
    fs::create_dir(&before).unwrap();
    let Note::Head(mut head) = head("s1") else { unreachable!() };
    head.workspace.cwd.clone_from(&before);
    let uid = record(&store, vec![Note::Head(head), prompt(1, "one"), ended(1)]);
    fs::create_dir(root.join("sibling")).unwrap();
    fs::rename(&before, &after).unwrap();
    assert_eq!(last_of_folder(&store, &after, true).1, Some(uid));
    assert_eq!(last_of_folder(&store, &root.join("sibling"), true).1, None);
}

#[test]
fn a_session_in_a_read_only_file_is_resumed_and_saved_later() {
    let (dir, first) = store();
    let (mut recorder, _received) = recorder(&first);
    // Its parlor dies during the turn.
    recorder.keep(SessionKey(1), vec![head("s1"), prompt(1, "first")]);
    let other = another(&dir);
    super::sessions::wait_for(|| other.count().unwrap() == 1);
    let token = first.owner().unwrap().token.clone();
    let uid = other.find("s1").unwrap().uid;
    let data = dir.path().join("data");
    let read_only = || {
        let db = db::open(&data).unwrap();
        db.conn.pragma_update(None, "query_only", true).unwrap();
        db
    };
    *lock(&other.inner.conn) = Some(read_only());
    let error = other.reopen(&uid).unwrap_err();
    assert!(matches!(error.fault, Fault::InUse(Some(_))), "{error}");
    fs::remove_file(data.join("locks").join(format!("{token}.lock"))).unwrap();
    *lock(&other.inner.conn) = Some(read_only());
    let saved = other.reopen(&uid).unwrap();
    assert!(matches!(saved.events.last().unwrap().record, Record::TurnEnded(TurnOutcome::Cut)));
    assert_eq!(other.find(&uid).unwrap().owner.as_ref(), Some(&token), "the file is unchanged");
    let Note::Head(mut head) = head("s1") else { unreachable!() };
    head.saved_as = Some(uid.clone());
    let (mut again, _received) = super::recorder(&other);
    again.keep(SessionKey(2), vec![Note::Head(head), prompt(2, "second"), ended(2)]);
    assert_eq!(again.finish(), None);
    assert_eq!(other.count().unwrap(), 1, "it is the same session");
    assert_eq!(prompts_of(&other, &uid), ["first", "second"]);
}
