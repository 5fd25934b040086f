//! What is kept of a session makes the same session again.

use super::support::*;
use crate::app::*;
use crate::model::*;

/// What was to be kept since the last look, for the first session.
fn kept_notes(desk: &mut Desk) -> Vec<Note> {
    // What flows did is handed out with the next event.
    desk.play(Event::Input);
    std::mem::take(&mut desk.kept)
}

/// What a store would give back.
fn kept_session(desk: &mut Desk) -> KeptSession {
    let mut kept = KeptSession::default();
    for note in kept_notes(desk) {
        match note {
            Note::Head(head) => kept.head = SessionHead { kept_as: Some("k".into()), ..*head },
            Note::Event { turn, record } => kept.events.push(KeptEvent { at_ms: 0, turn, record: *record }),
            Note::Draft(draft) => kept.draft = draft,
            Note::Queue(queue) => kept.queue = queue,
            Note::Closed => {}
        }
    }
    kept
}

fn items(session: &Session) -> Vec<String> {
    let text = digest(session);
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_session_made_of_its_records_looks_the_same() {
    let mut desk = Desk::started();
    desk.handshake(all_capabilities()).open(ID);
    desk.submit("fix it");
    desk.updates(vec![
        text(Role::User, "fix it"),
        text(Role::Thought, "hm"),
        says("I look "),
        says("at it."),
        call("a", ToolStatus::InProgress),
        news("a", ToolStatus::Completed),
        says_in("m2", "One more."),
        call("b", ToolStatus::Pending),
    ]);
    desk.ask(1, permission("b"));
    desk.choose(Some(0));
    desk.update(SessionUpdate::Unknown { name: "odd".into(), raw: Raw("{}".into()) });
    desk.update(SessionUpdate::Usage(Usage { used_tokens: 1, size_tokens: 2, cost: None }));
    desk.update(SessionUpdate::Info { title: Patch::Set("Fixing".into()), updated_at: Patch::Keep });
    desk.end_turn(StopReason::EndTurn);
    desk.submit("more");
    desk.submit("and then");
    desk.update(says("half"));
    desk.update(call("a", ToolStatus::InProgress));
    desk.end_turn(StopReason::MaxTokens);
    desk.play(Event::Draft("a tho".into()));
    let kept = kept_session(&mut desk);
    assert_eq!(kept.head.session, Some(ID.into()));
    assert_eq!((kept.draft.as_str(), kept.queue.as_slice()), ("a tho", &["and then".to_owned()][..]));

    let mut again = Session::new(KEY, SessionPlace::default());
    restore(&mut again, kept, desk.now);
    assert_eq!(items(&again), items(desk.session()));
    assert_eq!((again.turn_count, again.id.clone()), (2, Some(ID.into())));
    assert_eq!(
        (again.title.as_deref(), again.usage.as_ref()),
        (Some("Fixing"), desk.session().usage.as_ref())
    );
    assert_eq!((again.draft, again.queue), ("a tho".to_owned(), desk.session().queue.clone()));
}

#[test]
fn a_piece_of_text_is_kept_as_that_piece() {
    let mut desk = Desk::running();
    kept_notes(&mut desk);
    desk.update(says(&"long ".repeat(1000)));
    kept_notes(&mut desk);
    desk.update(says("word"));
    let record = Box::new(Record::Update(says("word")));
    assert_eq!(kept_notes(&mut desk), [Note::Event { turn: 1, record }]);
    // Nothing happened, nothing is kept.
    assert_eq!(kept_notes(&mut desk), Vec::new());
}

#[test]
fn a_cut_turn_says_so_and_its_calls_are_closed() {
    let mut desk = Desk::ready();
    desk.submit("go");
    desk.updates(vec![says("half an ans"), call("a", ToolStatus::InProgress)]);
    let mut kept = kept_session(&mut desk);
    kept.events.push(KeptEvent { at_ms: 0, turn: 1, record: Record::TurnEnded(TurnOutcome::Cut) });
    kept.left_out_count = 7;
    let mut again = Session::new(KEY, SessionPlace::default());
    restore(&mut again, kept, desk.now);
    assert_eq!(
        items(&again),
        [
            "notice Info: What came before is kept, but not shown here: 7 events.",
            "user* \"go\"",
            "agent \"half an ans\"",
            "tool a Cancelled? \"do a\"",
            "notice Warning: This turn was cut: parlor ended in the middle of it.",
        ]
    );
    assert!(!again.turn.is_running());
}
