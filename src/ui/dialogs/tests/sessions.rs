//! Tests of the sessions dialog: joining, hiding, filtering, sorting, and actions on a row.

use super::super::sessions::rows::refresh;
use crate::config::keymap::Context;
use crate::core::{self, Effect};
use crate::model::{
    Action, AgentCommand, ArchiveHit, ArchiveRow, Call, ExportForm, LineEdit, Nearness, ServiceEvent,
    SessionInfo, StoreJob, StoreNews,
};
use crate::ui::Event;
use crate::ui::dialogs::focus;
use crate::ui::dialogs::testkit::Rig;
use crate::ui::dialogs::{SessionEntry, SessionsDialog};
use crate::ui::update;

fn listed(id: &str, title: Option<&str>) -> SessionInfo {
    SessionInfo {
        id: id.into(),
        cwd: "/home/u/shop".into(),
        title: title.map(str::to_owned),
        updated_at: Some("2026-11-20T14:03:22Z".to_owned()),
        additional_directories: Vec::new(),
        is_archived: false,
        is_live: None,
    }
}

fn saved(uid: &str, title: &str, nearness: Nearness) -> ArchiveRow {
    ArchiveRow {
        uid: uid.to_owned(),
        agent: "one".to_owned(),
        folder: if nearness == Nearness::Here { "/home/u/shop".into() } else { "/home/u/other".into() },
        title: title.to_owned(),
        first_prompt: format!("first prompt of {uid}"),
        when: "2 h ago".to_owned(),
        turn_count: 3,
        nearness,
        ..ArchiveRow::default()
    }
}

fn dialog(rig: &Rig) -> &SessionsDialog {
    match rig.layers.top::<SessionsDialog>() {
        Some(dialog) => dialog,
        other => panic!("the list of sessions is on top, not {other:?}"),
    }
}

fn shown(rig: &Rig) -> Vec<&str> {
    let dialog = dialog(rig);
    dialog.matches.iter().map(|position| dialog.rows[*position].name()).collect()
}

fn marked(rig: &Rig) -> &str {
    dialog(rig).marked().map(SessionEntry::name).unwrap_or_default()
}

fn tell(rig: &mut Rig, news: StoreNews) -> Vec<Effect> {
    update(&mut rig.app, core::Event::Service(ServiceEvent::Store(Box::new(news))), rig.now)
}

/// Opens the dialog and adds these rows.
fn open(rig: &mut Rig, rows: Vec<ArchiveRow>) -> Vec<Effect> {
    let fx = rig.act(Action::OpenSessions);
    let serial = dialog(rig).serial;
    assert!(fx.iter().any(|effect| matches!(effect, Effect::Store(StoreJob::List { .. }))), "{fx:?}");
    tell(rig, StoreNews::Listed { serial, rows: Ok(rows), is_last: true, today_ms: 0 })
}

fn jobs(fx: &[Effect]) -> Vec<&StoreJob> {
    fn job(effect: &Effect) -> Option<&StoreJob> {
        match effect {
            Effect::Store(job) => Some(job),
            _ => None,
        }
    }
    fx.iter().filter_map(job).collect()
}

fn calls(fx: &[Effect]) -> Vec<&Call> {
    fn call(effect: &Effect) -> Option<&Call> {
        match effect {
            Effect::Send(_, AgentCommand::Call(_, call)) => Some(call),
            _ => None,
        }
    }
    fx.iter().filter_map(call).collect()
}

fn capabilities(rig: &mut Rig) -> &mut crate::model::AgentCapabilities {
    let conn = rig.session().conn.unwrap();
    &mut rig.state.conns.get_mut(&conn).unwrap().info.as_mut().unwrap().capabilities
}

#[test]
fn an_open_stored_and_listed_session_is_listed_once() {
    let mut rig = Rig::new();
    rig.session().recorder.saved_as = Some("k1".to_owned());
    let mut both = saved("k2", "", Nearness::Here);
    both.agent_session = Some("s9".into());
    let mut of_another = saved("k3", "Of another agent", Nearness::Here);
    of_another.agent = "two".to_owned();
    of_another.agent_session = Some("s9".into());
    rig.state.listed_mut().clear();
    open(&mut rig, vec![saved("k1", "Shown now", Nearness::Here), both, of_another]);
    *rig.state.listed_mut() =
        vec![listed("s9", Some("Fix the till")), listed("s1", None), listed("s4", None)];
    refresh(&mut rig);
    assert_eq!(shown(&rig), ["New session", "Untitled", "Fix the till", "Of another agent"]);
    let rows = &dialog(&rig).rows;
    assert!(rows[0].open.is_some() && rows[0].saved.is_some() && rows[0].listed.is_some());
    let both = rows.iter().find(|row| row.uid() == Some("k2")).unwrap();
    assert!(both.listed.is_some(), "the agent's title names it");
    // A later page keeps filter and selection.
    rig.type_line("till");
    assert_eq!((shown(&rig), marked(&rig)), (vec!["Fix the till"], "Fix the till"));
    let serial = dialog(&rig).serial;
    let more = vec![saved("k4", "till again", Nearness::Here)];
    tell(&mut rig, StoreNews::Listed { serial, rows: Ok(more), is_last: true, today_ms: 0 });
    assert_eq!((shown(&rig).len(), marked(&rig)), (2, "Fix the till"));
    // Pages of a closed list are ignored.
    tell(
        &mut rig,
        StoreNews::Listed {
            serial: 0,
            rows: Ok(vec![saved("k5", "x", Nearness::Here)]),
            is_last: true,
            today_ms: 0,
        },
    );
    assert_eq!(dialog(&rig).saved.len(), 4);
}

#[test]
fn sessions_of_earlier_days_without_a_reply_come_last() {
    let mut rig = Rig::new();
    let row = |uid: &str, at: i64, reply: &str| ArchiveRow {
        updated_ms: at,
        last_reply: reply.to_owned(),
        ..saved(uid, uid, Nearness::Here)
    };
    rig.act(Action::OpenSessions);
    let serial = dialog(&rig).serial;
    let rows = vec![row("unsent today", 900, ""), row("failed", 400, ""), row("old", 300, "Done.")];
    tell(&mut rig, StoreNews::Listed { serial, rows: Ok(rows), is_last: true, today_ms: 800 });
    assert_eq!(shown(&rig)[1..], ["unsent today", "old", "failed"]);
    let groups: Vec<&str> = dialog(&rig).rows.iter().map(|row| row.group(800)).collect();
    assert_eq!((groups[1], groups[3]), ("Today", "No reply"));
}

#[test]
fn a_filter_without_matches_counts_those_in_other_folders() {
    let mut rig = Rig::new();
    open(&mut rig, vec![saved("k1", "parser", Nearness::Here), saved("k2", "till", Nearness::Elsewhere)]);
    rig.type_line("till");
    assert_eq!((shown(&rig).len(), dialog(&rig).hidden_matches), (0, 1));
    rig.act(Action::NextScope);
    assert_eq!((shown(&rig), dialog(&rig).hidden_matches), (vec!["till"], 0));
}

#[test]
fn a_key_widens_the_scope_and_hidden_sessions_are_counted() {
    let mut rig = Rig::new();
    let rows = [Nearness::Here, Nearness::SameRepository, Nearness::Elsewhere, Nearness::Elsewhere];
    let rows = rows.iter().enumerate().map(|(n, near)| saved(&format!("k{n}"), &format!("row {n}"), *near));
    open(&mut rig, rows.collect());
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push((shown(&rig).len(), dialog(&rig).hidden_count));
        rig.act(Action::NextScope);
    }
    // The open one is always listed.
    assert_eq!(seen, [(2, 3), (3, 2), (5, 0), (2, 3)]);
    // Without another worktree the middle scope would show the same.
    let mut rig = Rig::new();
    open(&mut rig, vec![saved("k1", "here", Nearness::Here), saved("k2", "there", Nearness::Elsewhere)]);
    rig.act(Action::NextScope);
    assert_eq!((shown(&rig).len(), dialog(&rig).hidden_count), (3, 0));
}

#[test]
fn the_preview_is_that_of_the_selected_session() {
    let mut rig = Rig::new();
    let fx = open(&mut rig, vec![saved("k1", "Kept", Nearness::Here)]);
    assert!(jobs(&fx).contains(&&StoreJob::Preview { uid: "k1".into() }), "{fx:?}");
    let end = || StoreNews::Previewed { uid: "k1".into(), saved: Ok(Box::default()) };
    tell(&mut rig, end());
    assert!(dialog(&rig).marked_preview().is_some());
    // The agent's list is received, and its session is the latest: it becomes the selected one.
    *rig.state.listed_mut() = vec![listed("s9", None)];
    refresh(&mut rig);
    assert_eq!((marked(&rig), dialog(&rig).marked().unwrap().agent()), ("Untitled", "one"));
    assert!(dialog(&rig).marked_preview().is_none());
    let now = rig.now;
    update(&mut rig, Event::Input, now);
    assert_eq!(dialog(&rig).preview, None);
    // A preview of another session is ignored.
    tell(&mut rig, end());
    assert!(dialog(&rig).marked_preview().is_none());
    let fx = rig.act(Action::Down);
    assert!(jobs(&fx).contains(&&StoreJob::Preview { uid: "k1".into() }), "{fx:?}");
}

#[test]
fn the_filter_matches_title_prompt_agent_branch_and_folder() {
    let mut rig = Rig::new();
    let mut row = saved("k1", "Fix the till", Nearness::Here);
    row.first_prompt = "please mend rounding".to_owned();
    row.branch = Some("topic/cents".to_owned());
    open(&mut rig, vec![row, saved("k2", "Something else", Nearness::Here)]);
    for filter in ["till", "rounding", "cents", "one till", "shop cents"] {
        rig.edit_line(LineEdit::Clear);
        rig.type_line(filter);
        assert!(shown(&rig).contains(&"Fix the till"), "{filter}");
        assert_eq!(marked(&rig), "Fix the till", "{filter}");
    }
    rig.edit_line(LineEdit::Clear);
    rig.type_line("zzzz");
    assert!(shown(&rig).is_empty());
    assert!(jobs(&rig.act(Action::Accept)).is_empty(), "nothing is selected");
}

#[test]
fn rows_are_sorted_in_four_ways() {
    let mut rig = Rig::new();
    let row = |uid: &str, title: &str, agent: &str, updated_ms| ArchiveRow {
        agent: agent.to_owned(),
        updated_ms,
        ..saved(uid, title, Nearness::Here)
    };
    open(
        &mut rig,
        vec![row("a", "banana", "two", 30), row("b", "Apple", "two", 20), row("c", "cherry", "one", 10)],
    );
    let order = |rig: &Rig| shown(rig)[1..].join(" ");
    assert_eq!(order(&rig), "banana Apple cherry");
    rig.act(Action::NextSort);
    assert_eq!(order(&rig), "Apple banana cherry");
    rig.act(Action::NextSort);
    assert_eq!(order(&rig), "cherry banana Apple");
}

#[test]
fn the_selected_session_is_opened_read_or_loaded_by_the_agent() {
    let mut rig = Rig::new();
    open(&mut rig, vec![saved("k1", "Kept", Nearness::Here)]);
    let fx = rig.act(Action::Accept);
    let expected =
        |takes| StoreJob::Open { uid: "k1".into(), takes, at: None, folder: "/home/u/shop".into() };
    assert_eq!(jobs(&fx), [&expected(true)]);
    assert!(rig.layers.is_empty());
    open(&mut rig, vec![saved("k1", "Kept", Nearness::Here)]);
    assert_eq!(jobs(&rig.act(Action::ReadSession)), [&expected(false)]);
    // A session that only the agent has is loaded by it, and cannot be read without it.
    capabilities(&mut rig).can_load = true;
    open(&mut rig, Vec::new());
    *rig.state.listed_mut() = vec![listed("s9", Some("Theirs"))];
    refresh(&mut rig);
    rig.act(Action::Last);
    assert!(rig.act(Action::ReadSession).iter().all(|effect| !matches!(effect, Effect::Send(..))));
    *rig.state.listed_mut() = vec![listed("s9", Some("Theirs"))];
    rig.act(Action::OpenSessions);
    *rig.state.listed_mut() = vec![listed("s9", Some("Theirs"))];
    refresh(&mut rig);
    rig.act(Action::Last);
    let fx = rig.act(Action::Accept);
    assert!(matches!(calls(&fx).as_slice(), [Call::LoadSession(..)]), "{fx:?}");
}

#[test]
fn deleting_asks_first_and_names_what_is_deleted() {
    let mut rig = Rig::new();
    let mut row = saved("k1", "Kept", Nearness::Here);
    row.agent_session = Some("s9".into());
    open(&mut rig, vec![row.clone()]);
    *rig.state.listed_mut() = vec![listed("s9", None)];
    refresh(&mut rig);
    let question = |rig: &Rig| match rig.state.questions.last() {
        Some(dialog) => dialog.body.join("\n"),
        other => panic!("a question, not {other:?}"),
    };
    rig.act(Action::Last);
    assert!(rig.act(Action::Remove).is_empty(), "it asks first");
    assert!(question(&rig).contains("one may still have a copy"), "{}", question(&rig));
    assert!(jobs(&rig.act(Action::Accept)).is_empty(), "the default answer keeps it");
    capabilities(&mut rig).can_delete = true;
    rig.act(Action::Remove);
    assert!(question(&rig).contains("Also deletes the session in one"), "{}", question(&rig));
    let fx = rig.act(Action::Choose(1));
    assert_eq!(jobs(&fx), [&StoreJob::Delete { uid: "k1".into() }]);
    assert!(matches!(calls(&fx).as_slice(), [Call::DeleteSession(_)]), "{fx:?}");
    tell(&mut rig, StoreNews::Deleted { uid: "k1".into(), result: Err("It is open elsewhere.".into()) });
    assert_eq!(rig.state.flash.as_deref(), Some("Delete failed: It is open elsewhere."));
    assert_eq!(dialog(&rig).saved.len(), 1);
    tell(&mut rig, StoreNews::Deleted { uid: "k1".into(), result: Ok(()) });
    assert!(dialog(&rig).saved.is_empty());
}

#[test]
fn an_open_session_is_closed_after_a_question_and_the_last_one_stays() {
    let mut rig = Rig::new();
    let first = rig.state.active;
    let other = rig.state.add_session();
    rig.state.sessions.get_mut(&other).unwrap().phase = crate::core::SessionPhase::Ready;
    open(&mut rig, Vec::new());
    assert_eq!(shown(&rig).len(), 2);
    rig.act(Action::First);
    rig.act(Action::Down);
    rig.act(Action::Accept);
    assert_eq!(rig.state.active, other, "an open session is activated");
    rig.act(Action::OpenSessions);
    rig.act(Action::Last);
    rig.act(Action::Remove);
    rig.act(Action::Yes);
    assert_eq!((rig.state.active, rig.state.sessions.len()), (first, 1));
    rig.act(Action::Escape);
    rig.act(Action::CloseSession);
    assert!(rig.layers.is_empty(), "the only session stays");
}

#[test]
fn a_session_that_is_not_open_is_renamed_in_the_store() {
    let mut rig = Rig::new();
    open(&mut rig, vec![saved("k1", "Kept", Nearness::Here)]);
    rig.act(Action::RenameSession);
    assert_eq!(focus(&rig), Context::Line);
    rig.type_line(" well");
    let fx = rig.act(Action::Accept);
    assert_eq!(jobs(&fx), [&StoreJob::Rename { uid: "k1".into(), title: "Kept well".into() }]);
    tell(&mut rig, StoreNews::Renamed { uid: "k1".into(), title: "Kept well".into(), result: Ok(None) });
    assert_eq!(shown(&rig), ["New session", "Kept well"]);
    assert!(dialog(&rig).marked().unwrap().owes_title());
    tell(&mut rig, StoreNews::TitleKnown { uid: "k1".into(), result: Ok(()) });
    assert!(!dialog(&rig).marked().unwrap().owes_title());
}

#[test]
fn the_title_of_an_open_session_is_saved_without_support_by_the_agent() {
    let mut rig = Rig::new();
    capabilities(&mut rig).can_set_title = false;
    rig.act(Action::RenameSession);
    rig.type_line("Mine");
    assert!(calls(&rig.act(Action::Accept)).is_empty());
    assert_eq!(rig.session().title.as_deref(), Some("Mine"));
    assert!(rig.session().title_state.is_own());
}

#[test]
fn an_export_asks_for_the_format_and_shows_the_path() {
    let mut rig = Rig::new();
    rig.state.setup.export_folder = "/home/u/Downloads".into();
    open(&mut rig, vec![saved("k1", "Kept", Nearness::Here)]);
    rig.act(Action::ExportSession);
    let fx = rig.act(Action::Choose(3));
    let job =
        StoreJob::Export { uid: "k1".into(), form: ExportForm::Html, folder: "/home/u/Downloads".into() };
    assert_eq!(jobs(&fx), [&job]);
    tell(&mut rig, StoreNews::Exported(Ok("/home/u/Downloads/parlor-kept.html".into())));
    assert_eq!(rig.state.flash.as_deref(), Some("Exported to /home/u/Downloads/parlor-kept.html"));
}

#[test]
fn the_full_text_is_searched_and_a_hit_is_opened_read_only() {
    let mut rig = Rig::new();
    rig.act(Action::SearchSessions);
    let fx = rig.type_line("rounding kind:edit is:error agent:one days:7 in:here");
    let [StoreJob::Search { serial, search }] = jobs(&fx)[..] else { panic!("{fx:?}") };
    assert_eq!(search.text, "rounding*");
    assert_eq!((search.kinds.as_slice(), search.only_errors, search.days), (&["edit"][..], true, Some(7)));
    assert_eq!(
        (search.agent.as_deref(), search.folder.as_deref()),
        (Some("one"), Some("/home/u/shop".as_ref()))
    );
    let hit = ArchiveHit {
        uid: "k1".into(),
        name: "Kept".into(),
        agent: "one".into(),
        folder: "/home/u/shop".into(),
        seq: 41,
        turn: 1,
        at_ms: 0,
        kind: "edit".into(),
        when: "2 h ago".into(),
        is_error: true,
        snippet: "the \u{2}rounding\u{3}".into(),
    };
    let serial = *serial;
    tell(&mut rig, StoreNews::Found { serial: serial - 1, hits: Ok(vec![hit.clone(), hit.clone()]) });
    assert!(dialog(&rig).text.as_ref().unwrap().hits.is_empty(), "results of an older search are ignored");
    tell(&mut rig, StoreNews::Found { serial, hits: Ok(vec![hit]) });
    let fx = rig.act(Action::Accept);
    let job = StoreJob::Open { uid: "k1".into(), takes: false, at: Some(41), folder: "/home/u/shop".into() };
    assert_eq!(jobs(&fx), [&job]);
}

#[test]
fn the_preview_of_the_selected_session_is_requested_once() {
    let mut rig = Rig::new();
    let fx = open(&mut rig, vec![saved("k1", "a", Nearness::Here), saved("k2", "b", Nearness::Here)]);
    assert_eq!(jobs(&fx), [&StoreJob::Preview { uid: "k1".into() }], "the first that is not active");
    assert!(jobs(&rig.act(Action::Up)).is_empty(), "an open session needs no preview");
    assert_eq!(jobs(&rig.act(Action::Down)), [&StoreJob::Preview { uid: "k1".into() }]);
    assert_eq!(jobs(&rig.act(Action::Down)), [&StoreJob::Preview { uid: "k2".into() }]);
    tell(&mut rig, StoreNews::Previewed { uid: "k1".into(), saved: Ok(Box::default()) });
    assert!(dialog(&rig).preview.as_ref().unwrap().session.is_none(), "the selection has moved on");
    tell(&mut rig, StoreNews::Previewed { uid: "k2".into(), saved: Ok(Box::default()) });
    assert!(dialog(&rig).preview.as_ref().unwrap().session.is_some());
}

/// Joined rows are shared, so that their texts are not copied.
#[test]
fn thousands_of_rows_are_shared_not_copied() {
    let mut rig = Rig::new();
    let rows: Vec<ArchiveRow> = (0..10_000)
        .map(|n| saved(&format!("k{n}"), &format!("session number {n}"), Nearness::Here))
        .collect();
    open(&mut rig, rows);
    let dialog_of = |rig: &Rig| dialog(rig).rows.iter().filter(|row| row.saved.is_some()).count();
    assert_eq!(dialog_of(&rig), 10_000);
    for row in dialog(&rig).rows.iter().filter_map(|row| row.saved.as_ref()) {
        assert_eq!(std::sync::Arc::strong_count(row), 2, "the store's page and the list");
    }
    rig.type_line("number 9999");
    assert_eq!(marked(&rig), "session number 9999");
}

#[test]
fn archived_sessions_are_hidden_and_the_status_of_the_selected_one_is_requested() {
    let mut rig = Rig::new();
    let can = capabilities(&mut rig);
    (can.can_archive, can.tells_status, can.can_load) = (true, true, true);
    open(&mut rig, Vec::new());
    *rig.state.listed_mut() =
        vec![listed("a", Some("Near")), SessionInfo { is_archived: true, ..listed("b", Some("Away")) }];
    refresh(&mut rig);
    assert_eq!(shown(&rig), ["New session", "Near"]);
    assert_eq!(dialog(&rig).hidden_count, 1);
    let now = rig.now;
    let fx = update(&mut rig, Event::Input, now);
    assert!(matches!(calls(&fx)[..], [Call::SessionStatus(id)] if id.as_str() == "a"), "{fx:?}");
    assert!(calls(&update(&mut rig, Event::Input, now)).is_empty(), "it was requested already");
    rig.act(Action::NextScope);
    assert!(shown(&rig).contains(&"Away"), "{:?}", shown(&rig));
}
