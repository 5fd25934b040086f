//! Pages of a session, late events, and incomplete histories.

use super::super::recorder::tests::writer;
use super::*;

fn texts(events: &[RecordedEvent]) -> Vec<String> {
    let text = |event: &RecordedEvent| match &event.record {
        Record::Prompt { text, .. } | Record::Update(SessionUpdate::Chunk { text, .. }) => text.clone(),
        Record::Update(SessionUpdate::Tool(patch)) => {
            format!("{} {:?}", patch.id, patch.status.as_set())
        }
        other => format!("{other:?}"),
    };
    events.iter().map(text).collect()
}

fn late(serial: u64, before: EventPosition, id: &str) -> Note {
    let mut patch = ToolCallPatch::new(id.into());
    patch.status = Patch::Set(ToolStatus::Completed);
    let record = Box::new(Record::Update(SessionUpdate::Tool(Box::new(patch))));
    Note::Late { serial, before, turn: 1, record }
}

fn mark(mark: u64) -> Note {
    Note::Mark { mark, subjects: [(mark, 1)].into() }
}

fn call(id: &str) -> Note {
    event(1, Record::Update(SessionUpdate::Tool(Box::new(ToolCallPatch::new(id.into())))))
}

/// The reported marks.
fn written(
    received: &mut tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>,
) -> Vec<(u64, Vec<MarkPosition>)> {
    let received = std::iter::from_fn(|| received.try_recv().ok());
    let written = received.filter_map(|event| match event {
        ServiceEvent::Store(news) => match *news {
            StoreNews::Written { upto, marks, .. } => Some((upto, marks)),
            _ => None,
        },
        _ => None,
    });
    written.collect()
}

fn place(mark: u64, seq: i64) -> MarkPosition {
    MarkPosition { mark, seq, is_whole: true }
}

fn count(store: &Store, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    store.with(|conn| conn.query_row(&sql, [], |row| row.get::<_, i64>(0))).unwrap()
}

fn uid(store: &Store) -> String {
    store.list(&ListFilter::default()).unwrap()[0].uid.clone()
}

#[test]
fn marks_are_reported_once_they_are_on_the_disk() {
    let (_dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    // A session without content is not on the disk.
    writer.keep_now(vec![head("s"), mark(1)]);
    assert_eq!(written(&mut received), []);
    writer.keep_now(vec![prompt(1, "go"), says(1, "a"), mark(2), says(1, "b")]);
    assert_eq!(written(&mut received), [(2, vec![place(1, 0), place(2, 2)])]);
    writer.keep_now(vec![says(1, "c")]);
    assert_eq!(written(&mut received), []);
    writer.keep_now(vec![late(3, EventPosition::Mark(2), "t")]);
    assert_eq!(written(&mut received), [(3, vec![])]);
    let page = store.between(&uid(&store), 0, 2).unwrap();
    assert_eq!(texts(&page.events), ["go", "a", "t Some(Completed)"]);
    assert!(store.between(&uid(&store), 20, 30).is_err(), "a missing range is an error");
}

#[test]
fn unwritten_marks_are_not_reported() {
    let (_dir, store) = store();
    let (mut writer, mut received) = writer(&store);
    writer.keep_now(vec![head("s"), prompt(1, "go"), mark(1)]);
    assert_eq!(written(&mut received).len(), 1);
    writer.on_conn_for_test(|conn| conn.execute_batch("PRAGMA query_only = 1"));
    writer.keep_now(vec![says(1, "a"), mark(2)]);
    assert_eq!(written(&mut received), []);
    writer.drop_conn();
    writer.keep_now(vec![says(1, "b"), mark(3)]);
    assert_eq!(written(&mut received), [(3, vec![place(2, 2), place(3, 3)])]);
    // A record that was replaced by a notice is not reported as complete.
    writer.keep_now(vec![says(1, &"x".repeat(65 << 20)), mark(4), says(1, "c"), mark(5)]);
    let marks = vec![MarkPosition { is_whole: false, ..place(4, 4) }, place(5, 5)];
    assert_eq!(written(&mut received), [(5, marks)]);
}

#[test]
fn late_events_are_read_with_their_items() {
    let (_dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_now(vec![head("s"), mark(1), prompt(1, "go"), call("a"), mark(2), says(1, "x")]);
    writer.keep_now(vec![mark(3), says(1, "y"), late(4, EventPosition::Seq(2), "a"), says(1, "z")]);
    let uid = uid(&store);
    let all = ["go", "a None", "a Some(Completed)", "x", "y", "z"];
    assert_eq!(texts(&store.events(&uid).unwrap().0), all);
    assert_eq!(texts(&store.peek(&uid, None).unwrap().1.events), all[3..]);
    assert_eq!(texts(&store.page_of(&uid, 0).unwrap().events), all[..3]);
    assert_eq!(texts(&store.between(&uid, 1, 3).unwrap().events), all[1..4]);
    let around = store.page_of(&uid, 2).unwrap();
    assert_eq!(around.mark.map(|mark| texts(&around.events)[mark].clone()), Some("x".to_owned()));
    // A hit has the number of the call's own event.
    let search = Search { text: "go".into(), limit: 9, ..Search::default() };
    assert_eq!(store.search(&search).unwrap().iter().map(|hit| hit.seq).collect::<Vec<_>>(), [0]);
    writer.keep_now(vec![Note::Closed]);
    store.delete(&uid).unwrap();
    assert_eq!(count(&store, "late"), 0);
}

#[test]
fn a_session_is_opened_and_read_by_its_pages() {
    let (dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_now(vec![head("s"), mark(1), prompt(1, "go")]);
    // One long turn.
    for page in 2..=5 {
        let calls = (0..40).map(|nth| call(&format!("{page}.{nth}")));
        writer.keep_now(calls.chain([mark(page)]).collect());
    }
    writer.keep_now(vec![late(6, EventPosition::Mark(2), "2.1"), call("last"), Note::Closed]);
    let uid = uid(&store);
    let starts = |kept: &RecordedSession| kept.earlier.iter().map(|page| page.seq).collect::<Vec<_>>();
    let (_, kept) = store.peek(&uid, None).unwrap();
    assert_eq!((starts(&kept), kept.first_seq, kept.events.len()), (vec![0, 41, 81], 121, 41));
    assert_eq!(kept.earlier[1].subjects, Subjects::from([(3, 1)]), "a mark has those of the page before it");
    let (_, kept) = store.peek(&uid, Some(50)).unwrap();
    assert_eq!((starts(&kept), kept.first_seq, kept.later), (vec![0], 41, Some((81, 81))));
    assert_eq!(kept.mark.map(|mark| texts(&kept.events)[mark].clone()), Some("3.9 None".to_owned()));
    let next = store.page_of(&uid, 81).unwrap();
    assert_eq!((next.events.len(), next.next_seq, next.later_count), (40, 121, 41));
    assert_eq!(store.between(&uid, 0, 41).unwrap().events.len(), 42, "with the late event");
    assert_eq!(store.page_of(&uid, 161).unwrap().later_count, 0);

    // The loaded pages are one from now on.
    let again = another(&dir);
    assert_eq!(again.reopen(&uid).unwrap().first_seq, 121);
    assert_eq!(count(&again, "pages"), 4, "0, 41, 81 and 121");
}

fn history() -> Vec<Note> {
    vec![Note::Hold, mark(7), event(0, Record::Replaced), prompt(1, "new"), says(1, "one"), mark(8)]
}

#[test]
fn a_history_applies_once_it_is_complete() {
    for is_whole in [true, false] {
        let (_dir, store) = store();
        let (mut writer, mut received) = writer(&store);
        writer.keep_now(vec![head("s"), prompt(1, "old"), says(1, "was")]);
        writer.keep_now(history());
        let uid = uid(&store);
        let shown = || texts(&store.peek(&uid, None).unwrap().1.events);
        assert_eq!(shown(), ["old", "was"], "others see the previous events");
        assert_eq!(written(&mut received), [(8, vec![place(7, 2), place(8, 5)])]);
        assert_eq!(
            texts(&store.between(&uid, 3, 5).unwrap().events),
            ["new", "one"],
            "it can be read in this session"
        );
        writer.keep_now(vec![
            late(9, EventPosition::Mark(8), "t"),
            says(1, " two"),
            Note::Release { is_whole },
        ]);
        writer.keep_now(vec![prompt(2, "next")]);
        let expected: &[&str] = if is_whole {
            &["new", "one", "t Some(Completed)", " two", "next"]
        } else {
            &["old", "was", "next"]
        };
        assert_eq!(shown(), expected);
        let seqs = store.with(|conn| {
            let mut query = conn.prepare("SELECT seq FROM events ORDER BY seq")?;
            query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()
        });
        assert_eq!(seqs.unwrap(), (0..if is_whole { 7 } else { 3 }).collect::<Vec<_>>());
        let found = |text: &str| {
            let search = Search { text: text.into(), limit: 9, ..Search::default() };
            store.search(&search).unwrap().len()
        };
        assert_eq!((found("old"), found("one")), if is_whole { (0, 1) } else { (1, 0) });
    }
}

#[test]
fn an_incomplete_history_of_a_dead_parlor_is_discarded() {
    let (dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_now(vec![head("s"), prompt(1, "old"), ended(1)]);
    writer.keep_now(history());
    // This session had no events before.
    writer.keep_for(SessionKey(2), [vec![head("other")], history()].concat());
    lose_mark(&dir, &store);
    drop(writer);
    let again = another(&dir);
    let rows = again.list(&ListFilter::default()).unwrap();
    assert_eq!(rows.len(), 1);
    let kept = again.reopen(&rows[0].uid).unwrap();
    assert_eq!((kept.events.len(), kept.end_seq, rows[0].first_prompt.as_deref()), (2, 2, Some("old")));
    assert_eq!(count(&again, "staged"), 0);
}

#[test]
fn a_discarded_history_leaves_no_session() {
    let (_dir, store) = store();
    let (mut writer, _received) = writer(&store);
    writer.keep_now([vec![head("s")], history()].concat());
    assert_eq!(store.list(&ListFilter::default()).unwrap().len(), 1);
    writer.keep_now(vec![Note::Closed]);
    assert_eq!(store.list(&ListFilter::default()).unwrap(), []);
}
