//! Slash commands of agents and of parlor, and templates.

use super::composer::{command, names, rig_with_commands};
use crate::config::keymap::Context;
use crate::core::{self, Cx, Effect};
use crate::model::{
    Action, FoundFile, PreparedPrompt, ServiceEvent, TemplateInfo, TemplateList, TemplateSource,
    UnreviewedTemplate,
};
use crate::ui::dialogs::Layer;
use crate::ui::dialogs::testkit::Rig;
use crate::ui::dialogs::{argument_hint, completions, focus};

fn rig_with_palette() -> Rig {
    let mut rig = rig_with_commands();
    rig.state.setup.palette = crate::config::keymap::Keymap::defaults().palette();
    rig
}

#[test]
fn commands_of_parlor_follow_those_of_the_agent_and_are_marked() {
    let mut rig = rig_with_palette();
    rig.type_draft("/");
    assert_eq!(names(&rig)[..4], ["compact", "plan", "plan-review", "help"]);
    rig.type_draft("/co");
    assert_eq!(names(&rig), ["compact", "cost"], "nothing to copy or to continue, and no options");
    rig.type_draft("/q");
    let offered = completions(&rig);
    assert_eq!((offered[0].name.as_str(), offered[0].description.as_str()), ("quit", "parlor: Quit"));
    rig.type_draft("/exi");
    assert_eq!(names(&rig), ["exit"], "an alias is offered when it is typed");
    rig.act(Action::Submit);
    assert_eq!(rig.session().draft, "/exit");
    rig.act(Action::Submit);
    assert!(rig.state.is_quitting);
}

#[test]
fn a_whole_name_is_listed_with_the_reason_against_it() {
    let mut rig = rig_with_palette();
    rig.session().commands = vec![command("tasks-board", "Boards", None)];
    rig.type_draft("/tas");
    assert_eq!(names(&rig), ["tasks-board"]);
    rig.type_draft("/tasks");
    let offered = completions(&rig);
    assert_eq!(
        (offered[0].name.as_str(), offered[0].description.as_str()),
        ("tasks", "parlor: Nothing is running.")
    );
}

#[test]
fn a_command_of_the_agent_wins_over_one_of_parlor() {
    let mut rig = rig_with_palette();
    rig.session().commands =
        vec![command("clear", "Clear the context", None), command("quit", "Leave", None)];
    rig.type_draft("/clear");
    let offered = completions(&rig);
    assert_eq!(
        offered.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect::<Vec<_>>(),
        [("clear", "Clear the context"), ("parlor:clear", "parlor: New session with this agent")],
        "the list shows both"
    );
    let shown = rig.state.active;
    for text in ["/clear", "/quit"] {
        rig.type_draft(text);
        rig.act(Action::Submit);
        assert_eq!(rig.session().history.last().map(String::as_str), Some(text));
    }
    assert!(!rig.state.is_quitting && rig.state.active == shown);
    rig.session().turn = crate::core::Turn::Idle;
    rig.type_draft("/parlor:clear");
    rig.act(Action::Submit);
    assert_ne!(rig.state.active, shown, "the prefix selects the command of parlor");
}

#[test]
fn list_of_models_goes_before_the_command_of_the_agent() {
    let mut rig = rig_with_palette();
    rig.session().commands = vec![command("model", "Print the usage", None)];
    rig.type_draft("/model");
    assert_eq!(completions(&rig)[0].description, "Print the usage", "no list of models");
    let available = vec![crate::model::Model { id: "m".into(), name: "M".into(), description: None }];
    rig.session().models = Some(crate::model::Models { current: "m".into(), available });
    rig.type_draft("/mode");
    rig.type_draft("/model");
    let names: Vec<String> = completions(&rig).into_iter().map(|offer| offer.name).collect();
    assert_eq!(names, ["model"]);
    rig.act(Action::Submit);
    assert!(rig.layers.last().and_then(Layer::list).is_some());
}

#[test]
fn whole_word_is_not_replaced_by_another_command() {
    let mut rig = rig_with_palette();
    rig.session().commands = vec![command("plugin-authoring", "Write a plugin", None)];
    rig.type_draft("/path");
    assert_eq!(completions(&rig)[0].name, "plugin-authoring");
    rig.act(Action::Submit);
    assert_eq!(rig.session().history.last().map(String::as_str), Some("/path"));
    rig.type_draft("/plug");
    rig.act(Action::Submit);
    assert_eq!(rig.session().draft, "/plugin-authoring");
}

fn template(name: &str, source: TemplateSource) -> TemplateInfo {
    let hint = Some("<file>".to_owned());
    TemplateInfo { name: name.to_owned(), source, description: "Review a file".to_owned(), hint }
}

fn rig_with_templates() -> Rig {
    let mut rig = rig_with_palette();
    rig.session().templates.offered = vec![
        template("diff", TemplateSource::User),
        template("plan", TemplateSource::User),
        template("review", TemplateSource::User),
        template("fix", TemplateSource::Project),
        template("review", TemplateSource::Project),
    ];
    rig
}

#[test]
fn templates_are_offered_with_their_source_and_a_prefix_where_a_name_is_taken() {
    let mut rig = rig_with_templates();
    rig.type_draft("/review");
    assert_eq!(names(&rig), ["review", "plan-review", "project:review", "review-changes"]);
    let offered = completions(&rig);
    assert_eq!(offered[2].description, "project: Review a file");
    rig.type_draft("/fi");
    assert_eq!(names(&rig), ["fix"]);
    rig.type_draft("/user");
    assert_eq!(names(&rig), ["user:diff", "user:plan"], "the agent's and parlor's commands win");
    rig.act(Action::Submit);
    assert_eq!(rig.session().draft, "/user:diff ");
}

#[test]
fn the_hint_for_arguments_stays_while_they_are_typed() {
    let mut rig = rig_with_templates();
    let mut hint = |draft: &str| {
        rig.type_draft(draft);
        argument_hint(&rig.state).and_then(|offer| offer.hint)
    };
    for (draft, expected) in [
        ("/plan ", Some("what for")),
        ("/plan the next\nweek", Some("what for")),
        ("/review a.rs", Some("<file>")),
        ("/project:fix a.rs", Some("<file>")),
        ("/theme ", Some("[name]")),
        ("/parlor:theme pa", Some("[name]")),
        ("/compact x", None),
        ("/plan", None),
        ("/unknown x", None),
        ("see /plan x", None),
    ] {
        assert_eq!(hint(draft).as_deref(), expected, "{draft}");
    }
}

#[test]
fn a_call_of_a_template_is_sent_when_its_file_was_read() {
    let mut rig = rig_with_templates();
    let call = |fx: &[Effect]| {
        fx.iter().find_map(|effect| match effect {
            Effect::PreparePrompt(job) => job.template.clone(),
            _ => None,
        })
    };
    for (text, name, source) in [
        ("/review a.rs b", "review", None),
        ("/project:review a.rs b", "review", Some(TemplateSource::Project)),
        ("/user:diff a.rs b", "diff", Some(TemplateSource::User)),
    ] {
        let mut rig = rig_with_templates();
        rig.type_draft(text);
        let found = call(&rig.act(Action::Submit)).unwrap();
        assert_eq!((found.name.as_str(), found.source), (name, source), "{text}");
        assert_eq!(found.arguments, "a.rs b");
        assert_eq!(found.project, Some("/home/u/shop".into()));
        assert!(!rig.session().turn.is_running());
    }
    for text in ["/plan a.rs", "/unknown a.rs", "/project:unknown", "/diff it"] {
        let mut rig = rig_with_templates();
        rig.type_draft(text);
        assert_eq!(call(&rig.act(Action::Submit)), None, "{text} is sent as it is");
        assert!(rig.session().turn.is_running());
    }
    // Before the folders were read, the service decides.
    rig.session().templates = TemplateList::default();
    rig.type_draft("/unknown x");
    assert!(call(&rig.act(Action::Submit)).is_some());
}

#[test]
fn a_slash_lists_the_templates_again() {
    let mut rig = Rig::new();
    let is_load = |effect: &Effect| {
        matches!(effect, Effect::LoadTemplates { project: Some(folder), .. }
            if folder.as_os_str() == "/home/u/shop")
    };
    assert!(rig.type_draft("/").iter().any(is_load));
    assert!(!rig.type_draft("/r").iter().any(is_load), "once per list");
    rig.type_draft("");
    assert!(rig.type_draft("/r").iter().any(is_load));
    assert!(!rig.type_draft("text").iter().any(is_load));
}

fn unreviewed(name: &str) -> UnreviewedTemplate {
    UnreviewedTemplate {
        name: name.to_owned(),
        file: format!("/home/u/shop/.parlor/prompts/{name}.md").into(),
        text: format!("Fix {name}\nhidden \u{202e}text"),
        answer_file: format!("/data/templates/{name}").into(),
    }
}

#[test]
fn new_templates_of_a_project_are_reviewed_before_they_are_offered() {
    let mut rig = Rig::new();
    rig.session().templates.unreviewed = vec![unreviewed("fix"), unreviewed("lint")];
    rig.type_draft("/");
    assert_eq!(names(&rig), ["Review templates"]);
    for (draft, expected) in [("/zzz", 0), ("/proj", 1), ("/fi", 1), ("/project:lint", 1)] {
        rig.type_draft(draft);
        assert_eq!(names(&rig).len(), expected, "{draft}");
    }
    rig.type_draft("/project:li");
    rig.act(Action::Submit);
    let Some(dialog) = rig.state.questions.last().cloned() else { panic!("the user is asked") };
    let body = dialog.body.join("\n");
    assert!(body.contains("/project:fix  .parlor/prompts/fix.md\n· Fix fix"), "{body}");
    assert!(body.contains("hidden ⟨U+202E⟩text"), "{body}");
    assert_eq!(rig.session().draft, "/project:li");
    // The first choice is to decide later.
    assert!(rig.act(Action::Accept).is_empty());
    rig.act(Action::Submit);
    // The user opened it, so it has the keys.
    rig.act(Action::Choose(2));
    let fx = rig.act(Action::Accept);
    let saved = fx.iter().find_map(|effect| match effect {
        Effect::LoadTemplates { answers, allows, .. } => Some((answers.len(), *allows)),
        _ => None,
    });
    assert_eq!(saved, Some((2, true)));
}

#[test]
fn a_prompt_with_an_unreviewed_template_is_given_back_and_asked_about() {
    for is_plain in [false, true] {
        let mut rig = Rig::new();
        rig.state.setup.is_plain = is_plain;
        rig.session().templates.unreviewed = vec![unreviewed("fix")];
        rig.type_draft("/fix it");
        rig.act(Action::Submit);
        let prepared = PreparedPrompt {
            problems: vec!["The template /fix is new.".to_owned()],
            unreviewed: Some(unreviewed("fix")),
            ..PreparedPrompt::default()
        };
        let key = rig.state.active;
        let event = core::Event::Service(ServiceEvent::PromptPrepared(
            key,
            crate::model::PromptId(1),
            Box::new(prepared),
        ));
        crate::ui::update(&mut rig.app, event, rig.now);
        assert_eq!(rig.session().draft, "/fix it");
        assert_eq!(rig.layers.len(), usize::from(!is_plain), "plain mode cannot show the text");
        assert!(rig.state.flash.as_ref().unwrap().contains("Not sent. The template /fix is new."));
    }
}

#[test]
fn tab_completes_an_argument_as_a_path() {
    let found = |rig: &mut Rig, files: &[FoundFile]| {
        let (key, query) = (rig.state.active, "src/m".to_owned());
        crate::ui::dialogs::on_found(&mut rig.app, key, query, files.to_vec(), true, &mut Cx::new(rig.now));
    };
    let mut rig = rig_with_templates();
    rig.type_draft("/review src/m");
    let mut cx = Cx::new(rig.now);
    crate::ui::dialogs::on_argument(&mut rig, (8..13, "src/m".to_owned()), &mut cx);
    assert!(
        matches!(&cx.effects[..], [Effect::FindFiles(query)] if query.query == "src/m"),
        "{:?}",
        cx.effects
    );
    let files =
        ["src/main.rs", "src/my file.rs", "src/more/"].map(|path| FoundFile { path: path.to_owned() });
    found(&mut rig, &files);
    assert_eq!(names(&rig), ["src/main.rs", "src/my file.rs", "src/more/"]);
    rig.act(Action::Mark(2));
    rig.act(Action::Complete);
    assert_eq!(rig.session().draft, "/review src/more/", "a folder stays open");
    assert!(rig.user.mention.as_ref().is_some_and(|list| list.is_argument));
    rig.type_draft("/review src/m");
    crate::ui::dialogs::on_argument(&mut rig.app, (8..13, "src/m".to_owned()), &mut Cx::new(rig.now));
    found(&mut rig, &files);
    rig.act(Action::Mark(1));
    rig.act(Action::Submit);
    assert_eq!(rig.session().draft, "/review \"src/my file.rs\" ", "without @, and quoted");
}

#[test]
fn tab_inserts_the_only_match_of_an_argument_once_all_files_are_known() {
    let mut rig = rig_with_templates();
    let found = |rig: &mut Rig, query: &str, is_complete| {
        let files = vec![FoundFile { path: "src/main.rs".to_owned() }];
        let (key, query) = (rig.state.active, query.to_owned());
        crate::ui::dialogs::on_found(&mut rig.app, key, query, files, is_complete, &mut Cx::new(rig.now));
        rig.session().draft.clone()
    };
    let look_up = |rig: &mut Rig, draft: &str| {
        rig.type_draft(draft);
        let typed = (8..draft.len(), draft[8..].to_owned());
        crate::ui::dialogs::on_argument(&mut rig.app, typed, &mut Cx::new(rig.now));
    };
    look_up(&mut rig, "/review src/m");
    assert_eq!(found(&mut rig, "src/m", false), "/review src/m");
    look_up(&mut rig, "/review src/ma");
    assert_eq!(found(&mut rig, "src/ma", true), "/review src/ma", "the list is open while typing");
    rig.act(Action::Escape);
    rig.user.mention = None;
    look_up(&mut rig, "/review src/m");
    assert_eq!(found(&mut rig, "src/m", true), "/review src/main.rs ");
}

#[test]
fn clear_starts_a_new_session_where_the_agent_has_no_such_command() {
    let mut rig = rig_with_palette();
    let shown = rig.state.active;
    rig.session().turn_count = 1;
    rig.type_draft("/clear");
    rig.act(Action::Submit);
    assert_ne!(rig.state.active, shown);
    assert_eq!(rig.state.sessions.len(), 1, "the former session is closed");
    assert!(rig.session().draft.is_empty() && rig.session().history.is_empty());
    // During a turn, it waits for its end.
    let shown = rig.state.active;
    rig.session().phase = crate::core::SessionPhase::Ready;
    rig.session().turn_count = 1;
    rig.run_turn();
    rig.type_draft("/clear");
    rig.act(Action::Submit);
    assert_eq!((rig.state.active, rig.queue().len()), (shown, 1));
}

#[test]
fn commands_of_parlor_open_lists_filtered_by_their_argument() {
    let mut rig = rig_with_palette();
    rig.type_draft("/theme pap");
    rig.act(Action::Submit);
    assert_eq!(rig.shown(), ["paper"]);
    assert_eq!(rig.session().draft, "");
    rig.act(Action::Escape);
    for (text, wanted) in
        [("/help", Context::Text), ("/resume", Context::Sessions), ("/debug", Context::Text)]
    {
        rig.type_draft(text);
        rig.act(Action::Submit);
        assert_eq!(focus(&rig), wanted, "{text}");
        rig.act(Action::Escape);
    }
}

#[test]
fn a_command_of_parlor_that_makes_no_sense_now_keeps_the_draft_and_says_why() {
    let mut rig = rig_with_palette();
    rig.type_draft("/model");
    assert_eq!(names(&rig), ["model"]);
    rig.act(Action::Submit);
    assert_eq!(rig.state.flash.as_deref(), Some("The agent offers no models."));
    assert_eq!(rig.session().draft, "/model");
}

#[test]
fn what_is_no_command_is_sent_as_text() {
    for text in
        ["/init", "/help me with this", "/clear the cache", "/usr/bin/quit", "/model\nis wrong", " /quit"]
    {
        let mut rig = rig_with_palette();
        rig.session().commands.clear();
        rig.type_draft(text);
        rig.act(Action::Submit);
        assert_eq!(rig.session().history.last().map(|text| text.trim()), Some(text.trim()), "{text}");
        assert!(rig.session().turn.is_running(), "{text}");
    }
}

#[test]
fn commands_of_parlor_are_sent_to_the_agent_without_a_screen() {
    let mut rig = rig_with_palette();
    rig.state.setup.is_plain = true;
    rig.type_draft("/help");
    rig.act(Action::Submit);
    assert_eq!(focus(&rig), Context::Main);
    assert_eq!(rig.session().history.last().map(String::as_str), Some("/help"));
}
