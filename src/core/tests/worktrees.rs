//! Tests of sessions in worktrees.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::state::lookup;
use crate::core::*;
use crate::model::*;

const TREE: &str = "/data-worktrees/shop-1234/fix";

fn made() -> NewWorktree {
    NewWorktree {
        folder: TREE.into(),
        title: "Worktree fix on branch parlor/fix".into(),
        details: TREE.into(),
    }
}

fn ready() -> TestCore {
    let mut app = TestCore::ready();
    app.state.setup.worktree_dir = "/data-worktrees".into();
    app.fx.clear();
    app
}

fn news(app: &mut TestCore, news: Result<WorktreeNews, String>) {
    app.service(ServiceEvent::Worktree(KEY, Box::new(news)));
}

/// A session in a worktree that was just made.
fn in_worktree() -> (TestCore, SessionKey) {
    let mut app = ready();
    news(&mut app, Ok(WorktreeNews::Made(made())));
    let key = app.state.active;
    (app, key)
}

/// The worktrees that the host was asked to lock, each time.
fn locked(app: &TestCore) -> Vec<BTreeSet<PathBuf>> {
    let of = |effect: &Effect| {
        if let Effect::Worktree { job: WorktreeJob::Lock(folders), .. } = effect {
            Some(folders.clone())
        } else {
            None
        }
    };
    app.fx.iter().filter_map(of).collect()
}

#[test]
fn a_worktree_session_has_the_same_agent() {
    let mut app = ready();
    app.flow(|state, cx| operations::new_worktree(state, Some("fix".into()), cx));
    let job = WorktreeJob::Make(Some("fix".into()));
    let effect = Effect::Worktree { session: KEY, folder: "/code/shop".into(), job };
    assert!(app.fx.contains(&effect), "{:?}", app.fx);
    let (mut app, key) = in_worktree();
    assert_eq!(app.state.sessions[&key].workspace.cwd, PathBuf::from(TREE));
    app.expect_sent("connect 2 after 0 ms");
    let ItemBody::Notice { title, detail, .. } = &app.state.sessions[&key].transcript.items()[0].body else {
        panic!("no notice")
    };
    assert_eq!((title.as_str(), detail.as_deref()), ("Worktree fix on branch parlor/fix", Some(TREE)));
}

#[test]
fn a_failure_opens_no_session() {
    let mut app = ready();
    news(&mut app, Err("The folder exists.".to_owned()));
    assert_eq!((app.state.sessions.len(), app.last_notice().trim_end()), (1, "The folder exists."));
}

#[test]
fn remote_agents_get_no_worktree() {
    let mut app = ready();
    app.state.conns.get_mut(&CONN).unwrap().spec.remote = Some(Remote::default());
    app.flow(|state, cx| operations::new_worktree(state, None, cx));
    assert!(!app.fx.iter().any(|effect| matches!(effect, Effect::Worktree { .. })));
    assert!(app.state.flash.as_deref().unwrap().contains("another machine"));
}

#[test]
fn worktrees_are_locked_while_sessions_use_them() {
    let (mut app, key) = in_worktree();
    assert_eq!(locked(&app), [BTreeSet::from([TREE.into()])]);
    app.fx.clear();
    let second = app.open_tab(&format!("{TREE}/sub"), fake());
    app.update(says("text"));
    app.flow(|state, cx| operations::close_session(state, key, cx));
    assert!(locked(&app).is_empty(), "the other session is in the same worktree");
    app.flow(|state, cx| operations::close_session(state, second, cx));
    assert_eq!(locked(&app), [BTreeSet::new()]);
}

#[test]
fn closing_an_empty_session_removes_no_worktree() {
    let (mut app, key) = in_worktree();
    app.flow(|state, cx| operations::close_session(state, key, cx));
    assert_eq!(locked(&app), [BTreeSet::from([TREE.into()]), BTreeSet::new()]);
}

#[test]
fn worktrees_are_known_by_their_path() {
    let app = ready();
    let of = |folder: &str| lookup::worktree_of(&app.state, folder.as_ref());
    assert_eq!(of("/data-worktrees/shop-1234/fix/src"), Some(TREE.into()));
    for folder in ["/data-worktrees", "/data-worktrees/shop-1234", "/code/shop", "/data-worktrees2/a/b"] {
        assert_eq!(of(folder), None, "{folder}");
    }
}

#[test]
fn an_open_worktree_is_shown_and_not_opened_again() {
    let (mut app, key) = in_worktree();
    app.flow(|state, _| operations::activate(state, KEY));
    app.flow(|state, cx| operations::open_worktree(state, TREE.into(), cx));
    assert_eq!((app.state.active, app.state.sessions.len()), (key, 2));
    app.flow(|state, cx| operations::open_worktree(state, "/data-worktrees/shop-1234/b".into(), cx));
    let cwd = &app.state.active_session().unwrap().workspace.cwd;
    assert_eq!(cwd, &PathBuf::from("/data-worktrees/shop-1234/b"));
}
