//! Tests of the configuration of a project.

use std::path::PathBuf;

use super::support::*;
use crate::core::*;
use crate::model::*;

fn question(agent: Option<&str>) -> ProjectQuestion {
    ProjectQuestion {
        file: "/code/shop/.parlor/config.toml".into(),
        lines: vec!["theme = \"paper\"".into()],
        theme: Some("paper".into()),
        agent: agent.map(spec),
        templates: Some(false),
        answer_file: "/data/project/00".into(),
    }
}

fn app(question: ProjectQuestion, start_with: Option<AgentSpec>) -> TestCore {
    let setup = Setup {
        folder: PathBuf::from("/code/shop"),
        start_with,
        project: Some(Box::new(question)),
        theme: "dark".into(),
        ..Setup::default()
    };
    TestCore::start(setup)
}

/// The agents that were started.
fn started(app: &TestCore) -> Vec<&str> {
    let names = app.fx.iter().filter_map(|effect| match effect {
        Effect::Connect { spec, .. } => Some(spec.name.as_str()),
        _ => None,
    });
    names.collect()
}

fn saved(app: &TestCore) -> Option<bool> {
    app.fx.iter().find_map(|effect| match effect {
        Effect::KeepTrust { location, allows, .. } if location.starts_with("/data/project") => Some(*allows),
        _ => None,
    })
}

#[test]
fn settings_of_a_project_apply_after_the_user_agreed() {
    let mut app = app(question(Some("theirs")), Some(spec("mine")));
    let Some(dialog) = app.state.questions.last() else { panic!("the user is asked") };
    assert!(dialog.body.join("\n").contains("theme = \"paper\""), "{dialog:?}");
    assert_eq!(dialog.answers[0].consequence, Consequence::Project(TrustAnswer::NotNow), "the default");
    assert_eq!(started(&app), [""; 0], "the agent depends on the answer");
    app.decide_trust(TrustAnswer::Use);
    assert_eq!((started(&app), saved(&app)), (vec!["theirs"], Some(true)));
    assert!(app.fx.contains(&Effect::SetTheme("paper".into())));
    assert_eq!(app.state.setup.without_templates, Some("/code/shop".into()));
}

#[test]
fn settings_of_a_project_are_ignored_without_consent() {
    for (given, expected) in [(TrustAnswer::LeaveOut, Some(false)), (TrustAnswer::NotNow, None)] {
        let mut app = app(question(Some("theirs")), Some(spec("mine")));
        app.decide_trust(given);
        assert_eq!((started(&app), saved(&app)), (vec!["mine"], expected));
        assert!(!app.fx.contains(&Effect::SetTheme("paper".into())));
        assert_eq!(app.state.setup.without_templates, None);
    }
    // A closed question is not an answer.
    let mut app = app(question(Some("theirs")), Some(spec("mine")));
    app.answer_last(UserAnswer::Dismiss);
    assert_eq!((started(&app), saved(&app), app.state.project.is_none()), (vec!["mine"], None, true));
}

#[test]
fn a_project_without_an_agent_does_not_delay_the_start() {
    let mut app = app(question(None), Some(spec("mine")));
    assert_eq!((started(&app), app.state.questions.len()), (vec!["mine"], 1));
    app.decide_trust(TrustAnswer::Use);
    assert_eq!(started(&app), ["mine"]);
    assert_eq!(app.state.setup.theme, "paper");
}

#[test]
fn without_another_agent_the_list_opens_after_a_refusal() {
    let mut app = app(question(Some("theirs")), None);
    assert_eq!((app.state.questions.len(), app.requests.len()), (1, 0));
    app.decide_trust(TrustAnswer::LeaveOut);
    assert_eq!(app.requests, [UiRequest::AgentPicker]);
}
