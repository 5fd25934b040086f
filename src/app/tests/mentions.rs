//! Tests of prompts that refer to files.

use super::support::*;
use crate::app::dialogs;
use crate::app::*;
use crate::model::*;

/// The jobs to read the files of a prompt.
fn jobs(app: &TestApp) -> Vec<&PromptJob> {
    let jobs = app.fx.iter().filter_map(|effect| match effect {
        Effect::PreparePrompt(job) => Some(job),
        _ => None,
    });
    jobs.collect()
}

/// The blocks of the prompts that were sent.
fn sent(app: &TestApp) -> Vec<&[ContentBlock]> {
    let calls = app.fx.iter().filter_map(|effect| match effect {
        Effect::Send(_, AgentCommand::Call(_, Call::Prompt(_, blocks))) => Some(blocks.as_slice()),
        _ => None,
    });
    calls.collect()
}

fn file() -> ContentBlock {
    ContentBlock::Resource {
        uri: "file:///code/shop/a.rs".into(),
        mime_type: None,
        body: ResourceBody::Text("fn a() {}".into()),
    }
}

fn prepared(text: &str, blocks: Vec<ContentBlock>) -> ServiceEvent {
    let prepared = PreparedPrompt { text: text.into(), blocks, ..PreparedPrompt::default() };
    ServiceEvent::PromptPrepared(KEY, Box::new(prepared))
}

fn type_mention(app: &mut TestApp, draft: &str) {
    app.play(Event::Draft(draft.into()));
    let typed = typed_mention(draft, draft.len()).map(|(range, path)| (range, path.to_owned()));
    app.play(Event::Mention(typed));
}

fn found(app: &mut TestApp, query: &str, paths: &[&str]) {
    let files = paths.iter().map(|path| FoundFile { path: (*path).into() }).collect();
    app.service(ServiceEvent::FilesFound { session: KEY, query: query.into(), files, is_complete: true });
}

fn offered(app: &TestApp) -> Vec<String> {
    dialogs::completions(&app.state).into_iter().map(|offer| offer.name).collect()
}

#[test]
fn a_prompt_with_a_mention_is_sent_when_its_files_were_read() {
    let mut app = TestApp::started();
    let takes = AgentCapabilities {
        prompt_image: true,
        prompt_audio: true,
        prompt_embedded_context: true,
        ..all_capabilities()
    };
    app.handshake(takes).open(ID).submit("see @a.rs");
    let [job] = jobs(&app)[..] else { panic!("{:?}", app.fx) };
    assert_eq!((job.text.as_str(), job.folder.as_deref()), ("see @a.rs", Some("/code/shop".as_ref())));
    assert_eq!(job.takes, PromptTakes { images: true, audio: true, embedded: true });
    assert_eq!(sent(&app), [&[] as &[ContentBlock]; 0]);
    app.submit("second");
    assert_eq!(app.session().queue, ["second"], "the order of prompts is the order of sending");
    app.service(prepared("see @a.rs", vec![file()]));
    assert_eq!(sent(&app), [&[ContentBlock::Text("see @a.rs".into()), file()][..]]);
    let Some(ItemBody::Message(message)) = app.session().transcript.items().last().map(|item| &item.body)
    else {
        panic!("the prompt is in the transcript");
    };
    assert_eq!(message.parts, [MessagePart::Text("see @a.rs".into()), MessagePart::Block(file())]);
    app.service(prepared("see @a.rs", vec![file()]));
    assert_eq!(sent(&app).len(), 1, "an answer is used once");
}

#[test]
fn a_prompt_that_cannot_be_sent_is_given_back() {
    let mut app = TestApp::ready();
    let problem = || {
        let problems = vec!["The agent does not accept images: a.png".to_owned()];
        ServiceEvent::PromptPrepared(KEY, Box::new(PreparedPrompt { problems, ..PreparedPrompt::default() }))
    };
    app.submit("see @a.png").service(problem());
    assert_eq!(app.session().draft, "see @a.png");
    assert!(app.state.flash.as_ref().is_some_and(|text| text.contains("does not accept images")));
    assert!(sent(&app).is_empty());
    app.play(Event::Draft("another".into())).submit("see @b.png").play(Event::Draft("new draft".into()));
    app.service(problem());
    assert_eq!((app.session().draft.as_str(), app.session().queue.len()), ("new draft", 1));
}

#[test]
fn a_prompt_waits_in_the_queue_if_the_agent_exits_while_files_are_read() {
    let mut app = TestApp::ready();
    app.submit("see @a.rs");
    app.agent(AgentEvent::Closed(CloseReason::Stopped));
    app.service(prepared("see @a.rs", vec![file()]));
    assert_eq!(app.session().queue, ["see @a.rs"]);
}

#[test]
fn files_are_offered_while_a_mention_is_typed() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @ma");
    let query = app.fx.iter().find_map(|effect| match effect {
        Effect::FindFiles(query) => Some((query.query.as_str(), query.folder.as_path())),
        _ => None,
    });
    assert_eq!(query, Some(("ma", "/code/shop".as_ref())));
    found(&mut app, "ma", &["src/main.rs", "src/main test.rs", "docs/map.md"]);
    assert_eq!(offered(&app), ["src/main.rs", "src/main test.rs", "docs/map.md"]);
    type_mention(&mut app, "see @map");
    assert_eq!(offered(&app), ["docs/map.md"], "the former files are filtered until the answer is there");
    found(&mut app, "ma", &["late"]);
    assert_eq!(offered(&app), ["docs/map.md"], "a late answer is not used");
    type_mention(&mut app, "see @map and");
    assert_eq!(offered(&app), Vec::<String>::new());
}

#[test]
fn enter_inserts_the_selected_file_and_a_folder_stays_open() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @s");
    found(&mut app, "s", &["src/", "src/main test.rs"]);
    app.play(Event::Act(Action::Submit));
    assert_eq!(app.session().draft, "see @src/");
    assert!(app.fx.contains(&Effect::View(ViewCommand::ReplaceInDraft(4..6, "@src/".into()))));
    found(&mut app, "src/", &["src/main test.rs"]);
    app.play(Event::Act(Action::Complete));
    assert_eq!(app.session().draft, "see @\"src/main test.rs\" ");
    assert_eq!(app.state.user.mention, None);
    app.play(Event::Act(Action::Submit));
    assert_eq!(jobs(&app).len(), 1, "the next Enter sends");
}

#[test]
fn earlier_mentions_are_preferred() {
    let mut app = TestApp::ready();
    app.submit("see @b.rs and @a.rs:3").service(prepared("x", Vec::new())).end_turn(StopReason::EndTurn);
    app.fx.clear();
    type_mention(&mut app, "@");
    let Some(Effect::FindFiles(query)) = app.fx.first() else { panic!("{:?}", app.fx) };
    assert_eq!(query.recent, ["b.rs", "a.rs"]);
}

#[test]
fn the_list_of_files_closes_when_the_draft_changes_otherwise() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @s");
    found(&mut app, "s", &["src/"]);
    assert_eq!(offered(&app), ["src/"]);
    app.play(Event::Act(Action::ClearOrQuit));
    assert_eq!((app.session().draft.as_str(), offered(&app)), ("", Vec::new()));
    type_mention(&mut app, "see @s");
    found(&mut app, "s", &["src/"]);
    app.play(Event::Act(Action::NewSession));
    assert_eq!(offered(&app), Vec::<String>::new(), "the draft of another session has no mention");
}
