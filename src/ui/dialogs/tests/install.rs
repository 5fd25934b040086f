//! Tests of installing agents from the registry.

use super::super::testkit::*;
use crate::core::lifecycle;
use crate::core::{Cx, Effect};
use crate::model::{Action, AgentSource, AgentSpec, ConfigJob, RegistryAgent, RegistryIndex, SourceKind};
use crate::ui::dialogs::{AgentItem, Agents, Picker};

fn entry(id: &str) -> RegistryAgent {
    RegistryAgent {
        id: id.to_owned(),
        title: format!("Agent {id}"),
        version: "1.2.3".to_owned(),
        description: "Does work.\u{202e}".to_owned(),
        page: None,
        source: Some(AgentSource {
            kind: SourceKind::Npm,
            from: format!("{id}@1.2.3"),
            command: None,
            args: vec!["--acp".to_owned()],
            env: Vec::new(),
            sha256: None,
        }),
        quarantine: None,
    }
}

/// The list of agents is open, with these of the registry.
fn listing(ids: &[&str]) -> Rig {
    let mut rig = Rig::new();
    let fx = rig.act(Action::OpenAgents);
    assert!(fx.contains(&Effect::Configure(ConfigJob::Reread)), "{fx:?}");
    assert!(fx.contains(&Effect::ReadRegistry { refresh: false }), "nothing is fetched unasked: {fx:?}");
    let index = RegistryIndex {
        agents: ids.iter().map(|id| entry(id)).collect(),
        origin: "test".to_owned(),
        ..RegistryIndex::default()
    };
    let mut cx = Cx::new(rig.now);
    lifecycle::install::on_registry(&mut rig.state, Ok(index), false, &mut cx);
    super::super::serve(&mut rig, &mut cx);
    assert_eq!(cx.effects, []);
    rig
}

fn dialog(rig: &Rig) -> (&str, String, Vec<&str>) {
    let Some(dialog) = rig.state.questions.last() else { panic!("{:?}", rig.layers) };
    let labels = dialog.answers.iter().map(|choice| choice.label.as_str()).collect();
    (&dialog.title, dialog.body.join("\n"), labels)
}

#[test]
fn agents_are_installed_only_after_a_question_that_shows_everything() {
    let mut rig = listing(&["a", "b"]);
    assert_eq!(rig.shown()[rig.shown().len() - 3..], ["Agent a", "Agent b", "Fetch the registry"]);
    rig.act(Action::Last);
    assert_eq!(rig.act(Action::Accept).last(), Some(&Effect::ReadRegistry { refresh: true }));
    rig.act(Action::Up);
    assert!(!rig.act(Action::Accept).iter().any(|effect| matches!(effect, Effect::InstallAgent { .. })));
    let (title, body, labels) = dialog(&rig);
    assert_eq!((title, labels), ("Install Agent b 1.2.3?", vec!["Install", "Do not install"]));
    for part in ["npm package b@1.2.3", "--ignore-scripts", "Folder: ", "--acp", "your permissions"] {
        assert!(body.contains(part), "{part} in {body}");
    }
    assert!(!body.contains('\u{202e}'));
    let fx = rig.act(Action::Accept);
    let wanted = Effect::InstallAgent { agent: Box::new(entry("b")), scripts: Vec::new() };
    assert_eq!(fx.last(), Some(&wanted));

    lifecycle::install::on_progress(&mut rig.state, "added \u{1b}[31m3 packages");
    let (title, body, labels) = dialog(&rig);
    assert_eq!((title, labels), ("Installing Agent b", vec!["Cancel"]));
    assert!(body.contains("3 packages") && !body.contains('\u{1b}'), "{body}");
    assert_eq!(rig.act(Action::Accept).last(), Some(&Effect::CancelInstall));
}

#[test]
fn an_installed_agent_is_started_unless_a_script_is_missing() {
    let spec = AgentSpec { name: "b".to_owned(), command: "/agents/b".to_owned(), ..AgentSpec::default() };
    let starts = |fx: &[Effect]| {
        fx.iter().any(|effect| matches!(effect, Effect::Connect { spec, .. } if spec.name == "b"))
    };
    let mut rig = listing(&["b"]);
    let now = rig.now;
    let mut cx = Cx::new(now);
    lifecycle::install::on_installed(
        &mut rig.state,
        &entry("b"),
        Ok((Box::new(spec.clone()), Vec::new())),
        &mut cx,
    );
    assert!(starts(&cx.effects) && rig.state.questions.is_empty(), "{:?}", cx.effects);

    let mut rig = listing(&["b"]);
    let mut cx = Cx::new(now);
    lifecycle::install::on_installed(
        &mut rig.state,
        &entry("b"),
        Ok((Box::new(spec), vec!["native".to_owned()])),
        &mut cx,
    );
    assert!(!starts(&cx.effects));
    let (title, body, labels) = dialog(&rig);
    assert_eq!(title, "Run install scripts?");
    assert!(body.contains("not run: native"), "{body}");
    assert_eq!(labels, ["Start without them", "Run the scripts of native"]);
}

#[test]
fn a_failed_installation_names_the_cause_and_can_be_repeated() {
    let mut rig = listing(&["b"]);
    let now = rig.now;
    let mut cx = Cx::new(now);
    let error = Err("npm ended with exit status: 1.\nE404".to_owned());
    lifecycle::install::on_installed(&mut rig.state, &entry("b"), error, &mut cx);
    let (title, body, labels) = dialog(&rig);
    assert_eq!((title, body.as_str()), ("Agent b was not installed", "npm ended with exit status: 1.\nE404"));
    assert_eq!(labels, ["Close", "Try again", "Copy the command"]);
}

#[test]
fn agents_that_are_here_are_not_offered() {
    let mut rig = listing(&["a", "b"]);
    rig.state.setup.agents[0].registry_id = Some("a".to_owned());
    let mut cx = Cx::new(rig.now);
    crate::ui::dialogs::open_agents(&mut rig, &mut cx);
    let list = rig.layers.top::<Picker<Agents>>().unwrap();
    let offered: Vec<_> = list.items().iter().filter(|item| !matches!(item, AgentItem::Agent(_))).collect();
    assert_eq!(offered, [&AgentItem::Install("b".to_owned()), &AgentItem::FetchRegistry]);
}
