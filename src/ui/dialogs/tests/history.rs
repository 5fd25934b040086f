//! Tests of the search of earlier prompts.

use crate::core::{self, Effect, ViewCommand};
use crate::model::{
    Action, AgentCommand, Call, FoundPrompt, LineEdit, PromptQuery, PromptSource, ServiceEvent, StoreJob,
    StoreNews,
};
use crate::ui::Event;
use crate::ui::dialogs::Picker;
use crate::ui::dialogs::history::History;
use crate::ui::dialogs::testkit::*;
use crate::ui::update;

fn found(text: &str, uid: Option<&str>) -> FoundPrompt {
    FoundPrompt {
        text: text.to_owned(),
        folder: "/home/u/other".into(),
        when: "2 h ago".to_owned(),
        source: uid.map(|uid| PromptSource {
            uid: uid.to_owned(),
            agent: "codex".to_owned(),
            name: "The till".to_owned(),
            seq: 7,
        }),
    }
}

fn queries(fx: &[Effect]) -> Vec<PromptQuery> {
    let query = |effect: &Effect| match effect {
        Effect::Store(StoreJob::Prompts(query)) => Some(query.clone()),
        _ => None,
    };
    fx.iter().filter_map(query).collect()
}

fn tell(rig: &mut Rig, serial: u64, found: Result<(Vec<FoundPrompt>, usize), String>) -> Vec<Effect> {
    let news = StoreNews::Prompts { serial, found };
    update(&mut rig.app, core::Event::Service(ServiceEvent::Store(Box::new(news))), rig.now)
}

#[test]
fn prompts_of_the_folder_are_listed_with_their_session_and_of_all_folders_on_demand() {
    let mut rig = Rig::new();
    rig.session().history = vec!["known".to_owned()];
    let fx = rig.act(Action::OpenHistory);
    assert_eq!(rig.shown(), ["known"], "shown until the store has answered");
    let [query] = &queries(&fx)[..] else { panic!("{fx:?}") };
    assert_eq!((query.folder.as_deref(), query.is_new), (Some("/home/u/shop".as_ref()), true));
    tell(&mut rig, query.serial, Ok((vec![found("fix\n it", Some("u")), found("lost", None)], 300)));
    assert_eq!(rig.shown(), ["fix it", "lost"]);
    assert_eq!(
        (rig.picker().rows[0].detail.as_str(), rig.picker().rows[0].right.as_str()),
        ("codex · The till", "2 h ago")
    );
    assert_eq!(rig.picker().note.as_deref(), Some("Showing 2 of 300. Type to filter."));

    let fx = rig.act(Action::NextScope);
    let [query] = &queries(&fx)[..] else { panic!("{fx:?}") };
    assert_eq!((query.folder.as_deref(), query.is_new), (None, false));
    tell(&mut rig, query.serial, Ok((vec![found("fix it", Some("u"))], 1)));
    assert_eq!(rig.picker().rows[0].detail, "other · codex · The till");
    assert_eq!(rig.picker().title, "Prompts of all folders");
}

#[test]
fn each_key_searches_and_late_answers_are_ignored() {
    let mut rig = Rig::new();
    let first = queries(&rig.act(Action::OpenHistory))[0].serial;
    let fx = rig.type_line("fi");
    let second = queries(&fx)[0].clone();
    assert_eq!(second.text, "fi");
    tell(&mut rig, second.serial, Ok((vec![found("fix", None)], 1)));
    tell(&mut rig, first, Ok((vec![found("old", None)], 1)));
    assert_eq!(rig.shown(), ["fix"]);
    tell(&mut rig, second.serial, Err("The disk is full.".to_owned()));
    assert_eq!((rig.shown(), rig.picker().note.as_deref()), (vec!["fix"], Some("The disk is full.")));
}

#[test]
fn a_chosen_prompt_replaces_the_draft_and_is_not_sent() {
    let mut rig = Rig::new();
    rig.type_draft("half a thought");
    let query = queries(&rig.act(Action::OpenHistory))[0].serial;
    tell(&mut rig, query, Ok((vec![found("of another folder", Some("u"))], 1)));
    let fx = rig.act(Action::Accept);
    assert_eq!(views(&fx), [ViewCommand::SetDraft("of another folder".to_owned())]);
    assert!(!fx.iter().any(|it| matches!(it, Effect::Send(_, AgentCommand::Call(_, Call::Prompt(..))))));
    assert_eq!(rig.session().draft, "of another folder");
    assert_eq!(rig.session().history, ["half a thought"]);
    assert!(!rig.session().turn.is_running());
}

#[test]
fn the_session_of_a_prompt_is_opened_at_it() {
    let mut rig = Rig::new();
    let query = queries(&rig.act(Action::OpenHistory))[0].serial;
    tell(&mut rig, query, Ok((vec![found("saved", Some("u")), found("not saved", None)], 2)));
    rig.act(Action::Down);
    rig.act(Action::ReadSession);
    assert_eq!(rig.state.flash.as_deref(), Some("The session of this prompt is not saved."));
    rig.act(Action::Up);
    let fx = rig.act(Action::ReadSession);
    let is_open = |effect: &Effect| matches!(effect, Effect::Store(StoreJob::Open { uid, takes: false, at: Some(7), .. }) if uid == "u");
    assert!(fx.iter().any(is_open), "{fx:?}");
}

#[test]
fn prompts_are_freed_when_the_list_is_closed() {
    let mut rig = Rig::new();
    let query = queries(&rig.act(Action::OpenHistory))[0].serial;
    let frees = |fx: &[Effect]| fx.contains(&Effect::Store(StoreJob::ForgetPrompts));
    assert!(!frees(&tell(&mut rig, query, Ok((Vec::new(), 0)))));
    rig.edit_line(LineEdit::Insert("x".to_owned()));
    assert!(rig.layers.top::<Picker<History>>().is_some());
    let now = rig.now;
    assert!(frees(&update(&mut rig, Event::Act(Action::Escape), now)));
    assert!(!frees(&update(&mut rig, Event::Act(Action::Escape), now)));
}
