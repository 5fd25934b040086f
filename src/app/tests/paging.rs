//! Property tests: a paged session equals an unpaged one, whatever is received, unloaded and loaded again.

#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "few events"
)]

use crate::app::lifecycle::operations;
use crate::app::recording::{loading, restore};
use proptest::prelude::*;

use super::paging_window::*;
use super::support::*;
use crate::app::*;
use crate::model::*;

/// An event of an agent, a user, the store or the reader.
#[derive(Debug, Clone)]
enum Step {
    Says(u8, u16),
    SaysOn(u16),
    Thinks(u16),
    Steers(u8),
    Echoes,
    Call(u8, bool),
    Ends(u8),
    Output(u8, u16),
    Asks(u8),
    AsksAbout(String),
    Answers(bool),
    Questions,
    Replies(bool),
    Command(u8),
    Wrote(u8, u16),
    Exits(u8),
    Rewrites(bool, u8),
    Compacts(u8, bool),
    CompactsOn(u8),
    Subagent(u8, bool),
    Plans(u8),
    Unknown,
    Warns(u8),
    EndTurn(u8),
    Prompt,
    Write,
    ReadUp,
    ServesRead,
    ToEnd,
}

fn step() -> impl Strategy<Value = Step> {
    let said = prop_oneof![
        12 => (any::<u8>(), 200..3_000_u16).prop_map(|(id, size)| Step::Says(id, size)),
        3 => (200..3_000_u16).prop_map(Step::SaysOn),
        3 => (200..3_000_u16).prop_map(Step::Thinks),
        3 => any::<u8>().prop_map(Step::Steers),
        1 => Just(Step::Echoes),
        1 => any::<u8>().prop_map(Step::Plans),
        1 => Just(Step::Unknown),
        1 => any::<u8>().prop_map(Step::Warns),
        2 => (any::<bool>(), any::<u8>()).prop_map(|(is_user, id)| Step::Rewrites(is_user, id)),
        2 => (0..6_u8, any::<bool>()).prop_map(|(id, is_over)| Step::Compacts(id, is_over)),
        1 => (0..6_u8).prop_map(Step::CompactsOn),
        2 => (0..4_u8, any::<bool>()).prop_map(|(id, is_named)| Step::Subagent(id, is_named)),
    ];
    let called = prop_oneof![
        8 => (0..30_u8, any::<bool>()).prop_map(|(id, ends)| Step::Call(id, ends)),
        8 => (0..30_u8).prop_map(Step::Ends),
        8 => (0..30_u8, 0..3_000_u16).prop_map(|(id, size)| Step::Output(id, size)),
        2 => (0..30_u8).prop_map(Step::Asks),
        3 => any::<bool>().prop_map(Step::Answers),
        1 => Just(Step::Questions),
        2 => any::<bool>().prop_map(Step::Replies),
        3 => (0..8_u8).prop_map(Step::Command),
        4 => (0..8_u8, 0..2_000_u16).prop_map(|(id, size)| Step::Wrote(id, size)),
        4 => (0..8_u8).prop_map(Step::Exits),
    ];
    let other = prop_oneof![
        2 => (0..4_u8).prop_map(Step::EndTurn),
        3 => Just(Step::Prompt),
        6 => Just(Step::Write),
        2 => Just(Step::ReadUp),
        2 => Just(Step::ServesRead),
        2 => Just(Step::ToEnd),
    ];
    prop_oneof![30 => said, 40 => called, 18 => other]
}

fn text_of(size: u16) -> String {
    "x".repeat(usize::from(size))
}

fn subagent(id: u8, title: Patch<String>) -> SessionUpdate {
    SessionUpdate::Subagent(SubagentPatch {
        session: format!("child{id}").as_str().into(),
        title,
        description: Patch::Keep,
        state: Patch::Set("running".into()),
        can_cancel: Patch::Keep,
    })
}

fn play(app: &mut TestApp, step: &Step, nth: u64) {
    let terminal = |id: &u8| TerminalId::from(format!("term{id}"));
    match step {
        Step::Says(id, size) => drop(app.update(says_in(&format!("m{id}"), &text_of(*size)))),
        Step::SaysOn(size) => drop(app.update(says(&text_of(*size)))),
        Step::Thinks(size) => drop(app.update(text(Role::Thought, &text_of(*size)))),
        Step::Steers(id) => drop(app.update(text(Role::User, &format!("steer {id}")))),
        Step::Echoes => drop(app.update(text(Role::User, "next"))),
        Step::Call(id, ends) => {
            let status = if *ends { ToolStatus::Completed } else { ToolStatus::InProgress };
            app.update(call(&format!("c{id}"), status));
        }
        Step::Ends(id) => drop(app.update(news(&format!("c{id}"), ToolStatus::Completed))),
        Step::Output(id, size) => drop(app.update(patch(&format!("c{id}"), |patch| {
            patch.more_content = vec![ToolContent::Block(ContentBlock::Text(text_of(*size)))];
        }))),
        Step::AsksAbout(id) => drop(app.ask(nth + 1, permission(id))),
        Step::Answers(is_allow) => drop(app.choose(is_allow.then_some(0))),
        Step::Questions => drop(app.ask(nth + 1, question())),
        Step::Replies(is_yes) => {
            use crate::app::ElicitationOutcome::{Cancel, Decline};
            let outcome = if *is_yes { Decline } else { Cancel };
            app.flow(|state, now, fx| operations::answer_elicitation(state, KEY, outcome, now, fx));
        }
        Step::Command(id) => drop(app.update(patch(&format!("run{id}"), |patch| {
            patch.is_announcement = true;
            patch.status = Patch::Set(ToolStatus::Completed);
            patch.content = Patch::Set(vec![ToolContent::Terminal(terminal(id))]);
            patch.terminals = vec![AgentTerminal::Info { id: terminal(id), cwd: None }];
        }))),
        Step::Wrote(id, size) => drop(app.update(patch(&format!("run{id}"), |patch| {
            patch.terminals = vec![AgentTerminal::Output { id: terminal(id), data: text_of(*size) }];
        }))),
        Step::Exits(id) => drop(app.update(patch(&format!("run{id}"), |patch| {
            patch.terminals = vec![AgentTerminal::Exit { id: terminal(id), status: ExitInfo::default() }];
        }))),
        Step::Rewrites(is_user, id) => drop(app.update(SessionUpdate::Message {
            role: if *is_user { Role::User } else { Role::Agent },
            message: format!("m{id}").as_str().into(),
            content: Patch::Set(vec![ContentBlock::Text("written anew".into())]),
        })),
        Step::Compacts(id, is_over) => drop(app.update(SessionUpdate::Compaction {
            id: format!("compact{id}"),
            status: if *is_over { "completed" } else { "in_progress" }.into(),
            summary: Patch::Set(text_of(300)),
            error: Patch::Keep,
        })),
        Step::CompactsOn(id) => drop(
            app.update(SessionUpdate::CompactionChunk { id: format!("compact{id}"), text: text_of(200) }),
        ),
        Step::Subagent(id, is_named) => {
            let title = if *is_named { Patch::Set(format!("look {id}")) } else { Patch::Keep };
            app.update(subagent(*id, title));
        }
        Step::Plans(id) => drop(app.update(SessionUpdate::PlanRemoved(format!("p{id}").as_str().into()))),
        Step::Unknown => {
            app.update(SessionUpdate::Unknown { name: "news".into(), raw: Raw("{}".into()) });
        }
        Step::Warns(id) => {
            app.update(SessionUpdate::notice(Severity::Warning, format!("mind {}", id % 3), None));
        }
        Step::EndTurn(how) => {
            // The exit of an agent's terminal is reported within its turn or the next.
            for id in 0..8 {
                let id = terminal(&id);
                app.update(SessionUpdate::Terminal(AgentTerminal::Exit { id, status: ExitInfo::default() }));
            }
            if app.session().turn.is_running() {
                match how {
                    0 => drop(app.cancel().end_turn(StopReason::Cancelled)),
                    1 => drop(app.fail(-1, "no luck")),
                    2 => drop(app.end_turn(StopReason::MaxTokens)),
                    _ => drop(app.end_turn(StopReason::EndTurn)),
                }
            }
        }
        Step::Prompt if !app.session().turn.is_running() => drop(app.submit("next")),
        Step::Prompt | Step::Asks(_) | Step::Write | Step::ReadUp | Step::ServesRead | Step::ToEnd => {}
    }
}

/// A session that never unloads anything.
fn twin() -> TestApp {
    let mut twin = TestApp::ready();
    twin.state.setup.keeps_sessions = true;
    twin.submit("the first prompt");
    twin.fx.clear();
    twin
}

/// The step as applicable now: a permission request is about a call of this turn, once, or about a separate one.
fn step_of(app: &TestApp, step: &Step, nth: usize) -> Option<Step> {
    let session = app.session();
    let id = match step {
        Step::Asks(id) => ToolCallId::from(format!("c{id}")),
        Step::Questions if !session.turn.is_running() => return None,
        step => return Some(step.clone()),
    };
    let call = session.current_tool(&id).and_then(|at| session.tool_call(at));
    let is_about_it = call.is_some_and(|call| !call.status.is_final() && call.decision.is_none());
    let is_asked = session.requests.iter().any(
        |open| matches!(&open.kind, OpenRequestKind::Permission { request, .. } if request.tool.id == id),
    );
    let id = if is_about_it { id.to_string() } else { format!("asked{nth}") };
    (session.turn.is_running() && !is_asked).then_some(Step::AsksAbout(id))
}

fn answer_all(app: &mut TestApp) {
    while !app.session().requests.is_empty() {
        play(app, &Step::Answers(true), 0);
        play(app, &Step::Replies(true), 0);
    }
}

fn keep_store_jobs(app: &mut TestApp) {
    app.fx.retain(|effect| matches!(effect, Effect::Store(_)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_paged_session_equals_an_unpaged_one(
        steps in prop::collection::vec(step(), 0..500),
    ) {
        let (mut app, mut disk) = app();
        let mut twin = twin();
        for (nth, step) in steps.iter().enumerate() {
            let Some(step) = step_of(&twin, step, nth) else { continue };
            let step = &step;
            if let Step::EndTurn(_) = step {
                answer_all(&mut app);
                answer_all(&mut twin);
            }
            play(&mut app, step, nth as u64);
            play(&mut twin, step, nth as u64);
            match step {
                Step::Write => disk.write(&mut app),
                Step::ReadUp => {
                    go_up(&mut app);
                    app.play(Event::Act(Action::LoadEarlier));
                }
                Step::ServesRead => drop(disk.serve(&mut app)),
                Step::ToEnd => drop(app.play(Event::Reader(None))),
                _ => {}
            }
            keep_store_jobs(&mut app);
        }
        for app in [&mut app, &mut twin] {
            answer_all(app);
        }
        keep_store_jobs(&mut app);
        disk.write(&mut app);
        disk.serve(&mut app);
        disk.read_all(&mut app);
        let (ours, theirs) = (whole(app.session()), whole(twin.session()));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            prop_assert_eq!(ours, theirs);
        }
        prop_assert_eq!(ours.len(), theirs.len());
        prop_assert_eq!(app.session().turn_count, twin.session().turn_count);
    }

    #[test]
    fn a_session_read_in_parts_equals_one_read_at_once(
        steps in prop::collection::vec(step(), 0..120),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        is_forward in any::<bool>(),
    ) {
        let mut app = twin();
        for (nth, step) in steps.iter().enumerate() {
            let Some(step) = step_of(&app, step, nth) else { continue };
            if let Step::EndTurn(_) = step {
                answer_all(&mut app);
            }
            play(&mut app, &step, nth as u64);
            keep_store_jobs(&mut app);
        }
        answer_all(&mut app);
        app.play(Event::Input);
        let mut events: Vec<RecordedEvent> = Vec::new();
        for note in std::mem::take(&mut app.kept) {
            if let Note::Event { turn, record } = note {
                events.push(RecordedEvent { at_ms: events.len() as i64, turn, record: *record });
            }
        }
        let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut.index(events.len())).collect();
        bounds.extend([0, events.len()]);
        bounds.sort_unstable();
        bounds.dedup();
        let parts: Vec<(usize, &[RecordedEvent])> =
            bounds.windows(2).map(|bounds| (bounds[0], &events[bounds[0]..bounds[1]])).collect();
        let read = |session: &mut Session, events: &[RecordedEvent], first: usize, later: usize| {
            let kept = RecordedSession {
                head: SessionHead { kept_as: Some("k".into()), ..SessionHead::default() },
                events: events.to_vec(),
                left_out_count: first as u64,
                first_seq: first as i64,
                end_seq: (first + events.len()) as i64,
                later: (later > 0).then_some(((first + events.len()) as i64, later as u64)),
                ..RecordedSession::default()
            };
            restore(session, kept, app.now);
        };
        let fresh = || Session::new(KEY, SessionWorkspace::default());
        let mut by_parts = fresh();
        let mut all = fresh();
        read(&mut all, &events, 0, 0);
        if is_forward {
            let (_, first) = parts[0];
            read(&mut by_parts, first, 0, events.len() - first.len());
            for (at, part) in parts.iter().skip(1) {
                let next = at + part.len();
                let window = EventPage {
                    events: part.to_vec(),
                    first_seq: *at as i64,
                    next_seq: next as i64,
                    later_count: (events.len() - next) as u64,
                    ..EventPage::default()
                };
                restore::append(&mut by_parts, window, app.now);
            }
        } else if let Some((at, last)) = parts.last() {
            read(&mut by_parts, last, *at, 0);
            while let Some(StoreJob::Earlier { before, from, .. }) = loading::earlier_job(&mut by_parts) {
                let before = before as usize;
                let from = from.map(|from| from as usize);
                let from = from.or_else(|| bounds.iter().rev().find(|at| **at < before).copied()).unwrap_or(0);
                let page = EventPage {
                    events: events[from..before].to_vec(),
                    first_seq: from as i64,
                    left_out_count: from as u64,
                    ..EventPage::default()
                };
                by_parts.pages.book.earlier.as_mut().unwrap().is_loading = false;
                loading::insert(&mut by_parts, page, app.now);
            }
        }
        let (ours, theirs) = (whole(&by_parts), whole(&all));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            prop_assert_eq!(ours, theirs);
        }
        prop_assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn only_dependent_parts_are_read_again() {
    let mut app = twin();
    for nth in 0..6 {
        app.update(says_in(&format!("m{nth}"), "said")).update(call("c", ToolStatus::Completed));
        app.end_turn(StopReason::EndTurn).submit("next");
    }
    // A call with an update in a later turn.
    app.update(patch("c0", |patch| patch.output_text = Patch::Set("late".into())));
    app.update(SessionUpdate::Message {
        role: Role::Agent,
        message: "m3".into(),
        content: Patch::Set(vec![ContentBlock::Text("written anew".into())]),
    });
    app.end_turn(StopReason::EndTurn).play(Event::Input);
    let mut events: Vec<RecordedEvent> = Vec::new();
    for note in std::mem::take(&mut app.kept) {
        if let Note::Event { turn, record } = note {
            events.push(RecordedEvent { at_ms: 0, turn, record: *record });
        }
    }
    let begin = |turn: u32| events.iter().position(|event| event.turn == turn).unwrap();
    let mut session = Session::new(KEY, SessionWorkspace::default());
    let kept = RecordedSession {
        head: SessionHead { kept_as: Some("k".into()), ..SessionHead::default() },
        events: events[begin(7)..].to_vec(),
        left_out_count: begin(7) as u64,
        first_seq: begin(7) as i64,
        end_seq: events.len() as i64,
        ..RecordedSession::default()
    };
    restore(&mut session, kept, app.now);
    let end = session.transcript.items().last().map(|item| item.id);
    let mut read = Vec::new();
    for turn in [6, 5, 4, 4, 3, 2, 1, 1] {
        let Some(StoreJob::Earlier { before, from, .. }) = loading::earlier_job(&mut session) else { break };
        read.push((turn, before as usize, from.map(|from| from as usize)));
        let page = EventPage {
            events: events[begin(turn)..before as usize].to_vec(),
            first_seq: begin(turn) as i64,
            left_out_count: begin(turn) as u64,
            ..EventPage::default()
        };
        session.pages.book.earlier.as_mut().unwrap().is_loading = false;
        loading::insert(&mut session, page, app.now);
    }
    let end_seq = events.len();
    let expected = [
        (6, begin(7), None),
        (5, begin(6), None),
        (4, begin(5), None),
        // The message that was overwritten.
        (4, end_seq, Some(begin(4))),
        (3, begin(4), None),
        (2, begin(3), None),
        (1, begin(2), None),
        // The call without a title.
        (1, end_seq, Some(begin(1))),
    ];
    assert_eq!(read, expected);
    assert_eq!(session.pages.book.earlier, None);
    assert_eq!(session.transcript.items().last().map(|item| item.id), end, "items keep their ids");
    let mut all = Session::new(KEY, SessionWorkspace::default());
    crate::app::play(&mut all, events, app.now);
    assert_eq!(whole(&session), whole(&all));
}

#[test]
fn a_late_update_reaches_its_call_in_memory_and_on_disk() {
    let (mut app, mut disk) = app();
    app.update(call("old", ToolStatus::Completed));
    for _ in 0..3 {
        app.end_turn(StopReason::EndTurn).submit("next");
    }
    app.update(patch("old", |patch| patch.output_text = Patch::Set("turns later".into())));
    assert!(whole(app.session())[1].contains("turns later"), "{:?}", whole(app.session()));
    stream(&mut app, 0..300);
    disk.write(&mut app);
    let left = count(&app);
    app.update(patch("old", |patch| patch.output_text = Patch::Set("from the disk".into())));
    assert_eq!(count(&app), left, "it is not a new call");
    app.update(call("old", ToolStatus::Completed));
    assert_eq!(count(&app), left + 1, "a call announced in another turn is new");
    disk.read_all(&mut app);
    let all = whole(app.session());
    assert!(all[1].contains("from the disk"), "{}", all[1]);
    assert_eq!(all.iter().filter(|line| line.contains("tool old")).count(), 2);
}

#[test]
fn the_exit_of_a_command_is_known_until_its_release_also_if_its_call_is_on_disk() {
    let (mut app, mut disk) = app();
    let conn = app.conn();
    let command = TerminalCommand { command: "make".into(), ..TerminalCommand::default() };
    app.ask(1, AgentRequest::TerminalCreate { session: Some(ID.into()), command }).choose(Some(0));
    let started = ServiceEvent::TerminalStarted {
        conn,
        request_id: RequestId(1),
        session: KEY,
        command: "make".into(),
        result: Ok("t".into()),
    };
    app.service(started);
    app.update(patch("run", |patch| {
        patch.is_announcement = true;
        patch.status = Patch::Set(ToolStatus::Completed);
        patch.content = Patch::Set(vec![ToolContent::Terminal("t".into())]);
    }));
    let exit = ExitInfo { code: Some(3), signal: None };
    app.service(ServiceEvent::TerminalEnded { terminal: "t".into(), exit });
    stream(&mut app, 0..300);
    disk.write(&mut app);
    assert!(!app.session().terminals.contains_key(&"t".into()), "its call is unloaded");
    app.fx.clear();
    app.ask(2, AgentRequest::TerminalWait("t".into()));
    assert!(app.sent().contains("answer 2: exit"), "it is answered");
    app.ask(3, AgentRequest::TerminalRelease("t".into())).fx.clear();
    app.ask(4, AgentRequest::TerminalWait("t".into()));
    assert!(app.sent().contains("answer 4: error"));
}
