//! Histories that agents replay, and answers to notes.

use super::recorder::tests::{TestWriter, writer};
use super::sessions::texts;
use super::*;

const SESSION: SessionKey = SessionKey(1);
const SPOOL: SessionKey = SessionKey(2);

fn asks(turn: u32, text: &str) -> Note {
    let update = SessionUpdate::Chunk { role: Role::User, message: None, text: text.to_owned() };
    event(turn, Record::Update(update))
}

/// The start of a spool with two turns.
fn replay() -> Vec<Note> {
    vec![
        Note::Spool { of: SESSION },
        head("theirs"),
        prompt(1, "walnut"),
        says(1, "a nut"),
        ended(1),
        prompt(2, "hazel"),
        says(2, "a bush"),
        ended(2),
    ]
}

fn goes_on(session: &str) -> Note {
    let Note::Head(base) = head(session) else { unreachable!("a head") };
    Note::Head(Box::new(SessionHead { goes_on: true, ..*base }))
}

fn saved_as(news: &[StoreNews], of: SessionKey) -> Vec<String> {
    let saved = news.iter().filter_map(|news| match news {
        StoreNews::SavedAs { key, uid } if *key == of => Some(uid.clone()),
        _ => None,
    });
    saved.collect()
}

fn spool_events(store: &Store, uid: &str, from: u32) -> Vec<RecordedEvent> {
    let job = StoreJob::ReadSpool { key: SPOOL, uid: uid.to_owned(), from };
    match served(store, job).remove(0) {
        StoreNews::SpoolRead { events: Ok(events), .. } => events,
        other => panic!("{other:?}"),
    }
}

fn rows(store: &Store) -> (i64, i64, i64) {
    let count = |table: &str| number(store, &format!("SELECT count(*) FROM {table}"));
    (count("sessions"), count("log"), count("docs"))
}

#[test]
fn a_spool_is_read_but_not_listed_and_deleted_when_it_is_closed() {
    let (_dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    writer.keep_for(SESSION, vec![head("theirs"), prompt(1, "mine"), ended(1)]);
    let before = rows(&store);
    writer.keep_for(SPOOL, replay());
    let news = store_news(&mut received);
    let [uid] = saved_as(&news, SPOOL).try_into().unwrap();
    let of: String = store
        .with(|conn| conn.query_row("SELECT spool_of FROM sessions WHERE uid = ?1", [&uid], |row| row.get(0)))
        .unwrap();
    assert_eq!([of], saved_as(&news, SESSION).as_slice());
    assert_eq!(spool_events(&store, &uid, 0).len(), 6);
    assert_eq!(spool_events(&store, &uid, 2).len(), 3);
    assert_eq!((store.count().unwrap(), store.list(&ListFilter::default()).unwrap().len()), (1, 1));
    assert_eq!((store.list_page(None, 9).unwrap().0.len(), hits(&store, "walnut")), (1, 0));
    assert!(store.find(&uid).is_err());
    assert_eq!(store.find("theirs").unwrap().first_prompt.as_deref(), Some("mine"));
    let prompts = store.search_prompts(&PromptQuery { is_new: true, ..PromptQuery::default() }).unwrap();
    assert_eq!(prompts.1, 1);
    assert_eq!(store.last_of(Path::new("/code/shop")).unwrap().0.len(), 1);
    writer.keep_for(SPOOL, vec![Note::Closed]);
    assert_eq!(rows(&store), before);
    // One that is closed before it is written.
    writer.keep_for(SPOOL, [replay(), vec![Note::Closed]].concat());
    assert_eq!(rows(&store), before);
}

#[test]
fn parts_of_user_messages_are_kept_apart_in_a_spool_only() {
    let (_dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    let parts = || vec![asks(1, "a"), asks(1, "b"), says(1, "c"), says(1, "d"), says(2, "e")];
    writer.keep_for(SPOOL, [vec![Note::Spool { of: SESSION }], parts()].concat());
    let [uid] = saved_as(&store_news(&mut received), SPOOL).try_into().unwrap();
    let saved = RecordedSession { events: spool_events(&store, &uid, 0), ..RecordedSession::default() };
    assert_eq!(texts(&saved), ["a", "b", "cd", "e"]);
    writer.keep_for(SESSION, [vec![head("s")], parts()].concat());
    assert_eq!(texts(&store.peek(&store.find("s").unwrap().uid).unwrap().1), ["ab", "cd", "e"]);
}

#[test]
fn spools_of_a_dead_parlor_are_deleted() {
    let (dir, store) = store();
    let (mut first, _received) = writer(&store);
    first.keep_for(SESSION, vec![head("theirs"), prompt(1, "mine"), ended(1)]);
    first.keep_for(SPOOL, replay());
    let other = another(&dir);
    other.list(&ListFilter::default()).unwrap();
    assert_eq!(number(&other, "SELECT count(*) FROM sessions"), 2, "its parlor is running");
    lose_mark(&dir, &store);
    other.list(&ListFilter::default()).unwrap();
    assert_eq!(rows(&other), (1, 2, 1));
}

#[test]
fn a_spool_is_deleted_when_parlor_ends() {
    let (_dir, store) = store();
    let (mut recorder, _received) = recorder(&store);
    recorder.keep(SESSION, vec![head("theirs"), prompt(1, "mine"), ended(1)]);
    recorder.keep(SPOOL, replay());
    assert_eq!(recorder.finish(), None);
    assert_eq!(rows(&store), (1, 2, 1));
}

/// Takes the spool as the record, in one batch or in several.
fn take(writer: &mut TestWriter, is_one: bool, before: Vec<Note>) {
    let session =
        [before, vec![head("theirs"), prompt(9, "mine"), ended(9), Note::Draft("half".into())]].concat();
    let then = vec![Note::TakeSpool { spool: SPOOL }, prompt(3, "oak"), ended(3)];
    if is_one {
        let all = [(SESSION, session), (SPOOL, replay()), (SESSION, then)];
        writer.keep_all(
            all.into_iter().flat_map(|(key, notes)| notes.into_iter().map(move |note| (key, note))),
        );
    } else {
        writer.keep_for(SESSION, session);
        writer.keep_for(SPOOL, replay());
        writer.keep_for(SESSION, then);
    }
}

#[test]
fn a_spool_becomes_the_record_of_its_session() {
    for is_one in [true, false] {
        let (_dir, store) = store();
        let (mut writer, mut received) = writer(&store);
        take(&mut writer, is_one, Vec::new());
        let uid = saved_as(&store_news(&mut received), SESSION).remove(0);
        let (row, saved) = store.peek(&uid).unwrap();
        let expected = ["> walnut", "a nut", "end", "> hazel", "a bush", "end", "> oak", "end"];
        assert_eq!(texts(&saved), expected);
        assert_eq!((row.first_prompt.as_deref(), row.turn_count, row.next_seq), (Some("walnut"), 3, 8));
        assert_eq!((row.draft.as_str(), row.state), ("half", SessionState::Idle));
        assert_eq!(rows(&store), (1, 8, 5));
        assert_eq!(["mine", "walnut", "bush", "oak"].map(|word| hits(&store, word)), [0, 1, 1, 1]);
        // The spool's end changes nothing.
        writer.keep_for(SPOOL, vec![Note::Closed]);
        writer.keep_for(SESSION, vec![says(3, "acorn"), Note::Closed]);
        assert_eq!(store.events(&uid).unwrap().0.len(), 9);
        assert_eq!((hits(&store, "acorn"), number(&store, "SELECT count(*) FROM sessions")), (1, 1));
    }
}

#[test]
fn a_replay_without_prompts_is_named_by_the_first_message_of_the_user() {
    let (_dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_for(SESSION, vec![head("theirs")]);
    writer.keep_for(
        SPOOL,
        vec![Note::Spool { of: SESSION }, says(0, "hello"), asks(1, "walnut"), asks(1, " pie")],
    );
    writer.keep_for(SESSION, vec![Note::TakeSpool { spool: SPOOL }]);
    let [row] = store.list(&ListFilter::default()).unwrap().try_into().unwrap();
    assert_eq!(
        (row.name(), row.agent_session.as_deref(), hits(&store, "pie")),
        ("walnut", Some("theirs"), 1)
    );
}

#[test]
fn a_spool_is_taken_once_writing_works_again() {
    let (_dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_for(SESSION, vec![head("theirs"), prompt(9, "mine"), ended(9)]);
    writer.on_conn_for_test(|conn| conn.execute_batch("PRAGMA query_only = 1"));
    let all = [(SPOOL, replay()), (SESSION, vec![Note::TakeSpool { spool: SPOOL }])];
    writer.keep_all(all.into_iter().flat_map(|(key, notes)| notes.into_iter().map(move |note| (key, note))));
    assert_eq!(number(&store, "SELECT count(*) FROM log"), 2);
    writer.keep_for(SESSION, vec![prompt(3, "oak")]);
    let saved = store.peek(&store.find("theirs").unwrap().uid).unwrap().1;
    assert_eq!((texts(&saved).len(), rows(&store)), (7, (1, 7, 5)));
}

#[test]
fn a_spool_that_is_not_saved_does_not_replace_a_record() {
    let (_dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_for(SESSION, vec![head("theirs"), prompt(1, "mine")]);
    for notes in [vec![Note::Spool { of: SESSION }], vec![head("an ordinary one"), prompt(1, "x")]] {
        writer.keep_for(SPOOL, notes);
        writer.keep_for(SESSION, vec![Note::TakeSpool { spool: SPOOL }]);
        writer.keep_for(SPOOL, vec![Note::Closed]);
    }
    writer.keep_for(SESSION, vec![Note::TakeSpool { spool: SESSION }, says(1, "still here")]);
    let uid = store.find("theirs").unwrap().uid;
    assert_eq!(texts(&store.peek(&uid).unwrap().1), ["> mine", "still here"]);
}

#[test]
fn an_adopted_record_stays_as_it_is() {
    for is_one in [true, false] {
        let (dir, store) = store();
        let mine = record(&store, vec![head("theirs"), prompt(1, "acorn"), ended(1)]);
        let again = another(&dir);
        let (mut writer, mut received) = writer(&again);
        let mut then = vec![goes_on("theirs")];
        if is_one {
            then.push(Note::TakeSpool { spool: SPOOL });
            writer.keep_for(SPOOL, replay());
        } else {
            writer.keep_for(SESSION, then);
            writer.keep_for(SPOOL, replay());
            then = vec![Note::TakeSpool { spool: SPOOL }];
        }
        writer.keep_for(SESSION, [then, vec![says(2, "more"), Note::Closed]].concat());
        assert_eq!(texts(&again.peek(&mine).unwrap().1), ["> acorn", "end"]);
        let theirs = saved_as(&store_news(&mut received), SESSION).pop().unwrap();
        assert_ne!(theirs, mine);
        let (row, saved) = again.peek(&theirs).unwrap();
        assert_eq!((texts(&saved).len(), row.agent_session.as_deref()), (7, Some("theirs")));
        assert_eq!((row.spool_of, row.first_prompt.as_deref()), (None, Some("walnut")));
        assert_eq!((again.count().unwrap(), hits(&again, "acorn"), hits(&again, "hazel")), (2, 1, 1));
        again.reopen(&mine).unwrap();
    }
}

#[test]
fn a_spool_that_is_kept_is_an_ordinary_session_without_the_agents_id() {
    let (_dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    writer.keep_for(SESSION, vec![head("theirs"), prompt(1, "mine"), ended(1)]);
    writer.keep_for(SPOOL, replay());
    writer.keep_for(SPOOL, vec![Note::KeepSpool { title: "What the agent has".into() }, says(2, "and oak")]);
    writer.keep_for(SPOOL, vec![Note::Closed]);
    let [uid] = saved_as(&store_news(&mut received), SPOOL).try_into().unwrap();
    let row = store.find(&uid).unwrap();
    assert_eq!(
        (row.name(), row.has_own_title, row.agent_session.as_deref()),
        ("What the agent has", true, None)
    );
    assert_eq!((store.count().unwrap(), store.events(&uid).unwrap().0.len()), (2, 7));
    assert_eq!(["walnut", "bush", "oak"].map(|word| hits(&store, word)), [1, 1, 1]);
    assert_eq!(store.list(&ListFilter::default()).unwrap()[0].uid, uid);
}

fn written(received: &mut tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>) -> Vec<(SessionKey, u64)> {
    let written = store_news(received).into_iter().filter_map(|news| match news {
        StoreNews::Written { key, upto } => Some((key, upto)),
        _ => None,
    });
    written.collect()
}

#[test]
fn a_note_is_answered_once_everything_before_it_is_on_the_disk() {
    let (_dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    // A session without content is not on the disk.
    writer.keep_now(vec![head("s"), Note::Sync(1)]);
    assert_eq!(written(&mut received), []);
    writer.keep_now(vec![prompt(1, "go"), Note::Sync(2), says(1, "a")]);
    assert_eq!(written(&mut received), [(SESSION, 2)]);
    writer.keep_now(vec![Note::Sync(3)]);
    assert_eq!(written(&mut received), [(SESSION, 3)], "there is nothing to write");
    writer.on_conn_for_test(|conn| conn.execute_batch("PRAGMA query_only = 1"));
    writer.keep_now(vec![says(1, "b"), Note::Sync(4)]);
    assert_eq!(written(&mut received), []);
    writer.drop_conn();
    writer.keep_now(vec![says(1, "c"), Note::Sync(5), Note::Closed]);
    assert_eq!(written(&mut received), [(SESSION, 5)]);
    writer.keep_now(vec![head("never saved"), Note::Sync(6), Note::Closed]);
    assert_eq!(written(&mut received), []);
}
