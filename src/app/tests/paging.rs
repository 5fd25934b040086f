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
    Reopen,
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
        1 => Just(Step::Reopen),
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
            more_content: Vec::new(),
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
        Step::Prompt
        | Step::Asks(_)
        | Step::Write
        | Step::ReadUp
        | Step::ServesRead
        | Step::ToEnd
        | Step::Reopen => {}
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
        // A running terminal is shown by one call, and used after its announcement.
        Step::Command(id) if shows_terminal(app, *id) && is_running(session, *id) => return None,
        Step::Wrote(id, _) | Step::Exits(id) if !shows_terminal(app, *id) => return None,
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

fn shows_terminal(app: &TestApp, id: u8) -> bool {
    app.session().index.terminal(&TerminalId::from(format!("term{id}"))).is_some()
}

/// Whether a call of an earlier turn shows the terminal, which has not ended.
fn is_running(session: &Session, id: u8) -> bool {
    let view = session.terminals.get(&TerminalId::from(format!("term{id}")));
    view.is_some_and(|view| view.exit.is_none()) && session.current_tool(&format!("run{id}").into()).is_none()
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

/// Plays the steps in a paged session and in one that never unloads anything.
fn play_both(steps: &[Step], may_reopen: bool) -> (TestApp, Disk, TestApp) {
    let (mut app, mut disk) = app();
    let mut twin = twin();
    for (nth, step) in steps.iter().enumerate() {
        let Some(step) = step_of(&twin, step, nth) else { continue };
        let is_reopened = may_reopen && matches!(step, Step::Reopen);
        if is_reopened {
            // Calls outside of turns: the record does not have their end.
            for id in 0..30 {
                play(&mut app, &Step::Ends(id), nth as u64);
                play(&mut twin, &Step::Ends(id), nth as u64);
            }
        }
        // The tests answer all questions before a turn ends.
        let step = if is_reopened { Step::EndTurn(3) } else { step };
        if let Step::EndTurn(_) = step {
            answer_all(&mut app);
            answer_all(&mut twin);
            // The exit of an agent's terminal is reported within its turn or the next.
            for id in (0..8).filter(|id| shows_terminal(&twin, *id)).collect::<Vec<_>>() {
                let id = TerminalId::from(format!("term{id}"));
                let exit = SessionUpdate::Terminal(AgentTerminal::Exit { id, status: ExitInfo::default() });
                app.update(exit.clone());
                twin.update(exit);
            }
        }
        play(&mut app, &step, nth as u64);
        play(&mut twin, &step, nth as u64);
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
        if is_reopened {
            app.fx.clear();
            disk.reopen(&mut app);
            session::play::close(twin.state.sessions.get_mut(&KEY).unwrap(), twin.now);
            for app in [&mut app, &mut twin] {
                play(app, &Step::Prompt, nth as u64);
            }
        }
        keep_store_jobs(&mut app);
    }
    for app in [&mut app, &mut twin] {
        answer_all(app);
    }
    keep_store_jobs(&mut app);
    disk.write(&mut app);
    disk.serve(&mut app);
    (app, disk, twin)
}

fn expect_same(ours: &Session, theirs: &Session) -> Result<(), TestCaseError> {
    // A restored session has no sessions of subagents.
    let whole = |session| -> Vec<String> {
        let is_key = |word: &&str| word.starts_with("Some(") || *word == "None";
        let line = |line: String| {
            let words = line.split(' ').filter(|word| !line.contains(" subagent ") || !is_key(word));
            words.collect::<Vec<_>>().join(" ")
        };
        whole(session).into_iter().map(line).collect()
    };
    let (ours, theirs) = (whole(ours), whole(theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        prop_assert_eq!(ours, theirs);
    }
    prop_assert_eq!(ours.len(), theirs.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_paged_session_equals_an_unpaged_one(
        steps in prop::collection::vec(step(), 0..500),
        may_reopen in any::<bool>(),
    ) {
        let (mut app, mut disk, twin) = play_both(&steps, may_reopen);
        disk.read_all(&mut app);
        expect_same(app.session(), twin.session())?;
        prop_assert_eq!(app.session().turn_count, twin.session().turn_count);
    }

    #[test]
    fn a_saved_session_read_from_any_page_equals_the_live_one(
        steps in prop::collection::vec(step(), 0..300),
        at in any::<prop::sample::Index>(),
    ) {
        let (app, disk, mut twin) = play_both(&steps, false);
        session::play::close(twin.state.sessions.get_mut(&KEY).unwrap(), twin.now);
        let mut read = Session::new(KEY, SessionWorkspace::default());
        let starts = disk.starts();
        let at = at.index(starts.len());
        restore(&mut read, disk.kept(at), app.now);
        for at in at + 1..starts.len() {
            let next = starts.get(at + 1).map_or(disk.next, |page| page.seq);
            restore::append(&mut read, disk.page(starts[at].seq, next), app.now);
        }
        while let Some(StoreJob::Earlier { from, before, .. }) = loading::earlier_job(&mut read) {
            read.pages.book.earlier.as_mut().unwrap().is_loading = false;
            prop_assert!(loading::insert(&mut read, disk.page(from, before), app.now));
        }
        prop_assert_eq!(read.pages.earlier(), None);
        expect_same(&read, twin.session())?;
    }
}

#[test]
fn an_update_of_a_call_in_a_part_that_was_never_loaded_is_recorded_with_it() {
    let (mut app, mut disk) = app();
    app.update(call("old", ToolStatus::Completed));
    stream(&mut app, 0..100);
    app.end_turn(StopReason::EndTurn);
    disk.reopen(&mut app);
    let left = count(&app);
    assert!(left < 40, "only the last page is loaded: {left}");
    app.submit("next");
    app.update(patch("old", |patch| patch.output_text = Patch::Set("late".into())));
    assert_eq!(count(&app), left + 1, "it is not a new call");
    disk.read_all(&mut app);
    let all = whole(app.session());
    assert!(all[1].contains("tool old Completed") && all[1].contains("late"), "{}", all[1]);
    assert_eq!(all.iter().filter(|line| line.contains("tool old")).count(), 1);
}

#[test]
fn a_very_long_turn_is_opened_with_its_last_page_and_read_page_by_page() {
    let (mut app, mut disk) = app();
    for nth in 0..400 {
        app.update(says_in(&format!("m{nth}"), &lorem(nth)));
        app.update(call(&format!("c{nth}"), ToolStatus::Completed));
        // A call far above is updated.
        app.update(news(&format!("c{}", nth / 2), ToolStatus::Failed));
    }
    disk.reopen(&mut app);
    assert!(count(&app) < 60, "{}", count(&app));
    let ids: Vec<ItemId> = app.session().transcript.items().iter().skip(1).map(|item| item.id).collect();
    go_up(&mut app);
    app.fx.clear();
    for _ in 0..3 {
        let before = count(&app);
        app.play(Event::Act(Action::LoadEarlier));
        assert!(disk.serve(&mut app));
        assert!((1..60).contains(&(count(&app) - before)), "a page at a time");
    }
    assert!(ids.iter().all(|id| app.session().transcript.get(*id).is_some()), "items keep their ids");
    disk.read_all(&mut app);
    let all = whole(app.session());
    assert_eq!(all.len(), 801);
    assert_eq!(all.iter().filter(|line| line.contains(" Failed ")).count(), 200);
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
