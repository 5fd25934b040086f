//! The list of worktrees, and where the name of one is shown.

use super::bench::TestApp;
use super::fixture::{SIZES, Stage, ready, text, theme};
use crate::core;
use crate::core::lifecycle::operations;
use crate::core::tests::support::KEY;
use crate::core::*;
use crate::model::*;
use crate::ui::{Event, update};

fn trees() -> Vec<Worktree> {
    let tree = |name: &str| Worktree {
        name: name.into(),
        folder: format!("/data-worktrees/shop-1234/{name}").into(),
        branch: Some(format!("parlor/{name}")),
        changed: Some(0),
        ..Worktree::default()
    };
    vec![
        Worktree { is_in_use: true, ..tree("till") },
        Worktree { changed: Some(3), unpushed: 1, ..tree("session-04afe1") },
        Worktree { branch: Some("topic".into()), ..tree("parser") },
    ]
}

fn listed(trees: Result<Vec<Worktree>, String>) -> Event {
    Event::Core(core::Event::Service(ServiceEvent::Worktree(KEY, Box::new(trees.map(WorktreeNews::Listed)))))
}

fn shots(stage: &mut Stage, name: &str) {
    for (cols, rows) in SIZES {
        let file = format!("worktrees-{name}-{cols}x{rows}.txt");
        insta::assert_snapshot!(file, text(&stage.draw(&mut stage.view(), &theme("dark"), (cols, rows))));
    }
}

#[test]
fn the_list_and_its_steps_fit() {
    let mut stage = ready();
    let now = stage.now;
    update(&mut stage.app, Event::Act(Action::OpenWorktrees), now);
    update(&mut stage.app, listed(Ok(trees())), now);
    shots(&mut stage, "list");
    update(&mut stage.app, Event::Act(Action::Down), now);
    update(&mut stage.app, Event::Act(Action::Accept), now);
    shots(&mut stage, "steps");
}

#[test]
fn a_worktree_is_merged_and_removed_by_name() {
    let mut app = TestApp::ready();
    let mut chosen = |steps: usize| {
        app.act(Action::OpenWorktrees).play(listed(Ok(trees())));
        app.act(Action::Down).act(Action::Accept);
        (0..steps).for_each(|_| _ = app.act(Action::Down));
        app.fx.clear();
        app.act(Action::Accept);
        if let Some(question) = app.state.questions.last().map(|question| question.id) {
            assert!(app.fx.is_empty(), "it asks first");
            app.flow(|state, cx| operations::answer(state, question, UserAnswer::Option(1), cx).unwrap());
        }
        app.fx.clone()
    };
    let job = |job: fn(String) -> WorktreeJob| {
        let job = job("session-04afe1".to_owned());
        Effect::Worktree { session: KEY, folder: "/code/shop".into(), job }
    };
    assert!(chosen(1).contains(&job(WorktreeJob::Merge)));
    assert!(chosen(2).contains(&job(WorktreeJob::Remove)));
}

#[test]
fn a_list_without_worktrees_says_why() {
    let mut stage = ready();
    let now = stage.now;
    let mut shown = |trees| {
        update(&mut stage.app, Event::Act(Action::OpenWorktrees), now);
        update(&mut stage.app, listed(trees), now);
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
        update(&mut stage.app, Event::Act(Action::Escape), now);
        shown
    };
    assert!(shown(Ok(Vec::new())).contains("parlor has made no worktrees in this repository."));
    assert!(shown(Err("/code is not in a git repository.".into())).contains("is not in a git repository"));
}

#[test]
fn the_title_shows_the_worktree() {
    let mut stage = ready();
    stage.state.setup.worktree_dir = "/data-worktrees".into();
    let key = stage.state.add_session_in("/data-worktrees/shop-1234/till".into());
    let session = stage.state.sessions.get_mut(&key).unwrap();
    (session.title, session.phase) = (Some("Cents".into()), SessionPhase::Ready);
    session.git = Some(GitInfo { branch: "parlor/till".into(), is_dirty: false });
    stage.state.active = key;
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.lines().nth(1).unwrap().contains("worktree till (parlor/till)"), "{shown}");
}

#[test]
fn a_slash_command_names_the_worktree() {
    let mut app = TestApp::ready();
    app.fx.clear();
    app.draft("/worktree fix").act(Action::Submit);
    let made = |name: Option<&str>| {
        let job = WorktreeJob::Make(name.map(str::to_owned));
        Effect::Worktree { session: KEY, folder: "/code/shop".into(), job }
    };
    assert!(app.fx.contains(&made(Some("fix"))), "{:?}", app.fx);
    app.fx.clear();
    app.draft("/worktree").act(Action::Submit);
    assert!(app.fx.contains(&made(None)), "{:?}", app.fx);
}
