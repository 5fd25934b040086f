//! Tests of prompts that refer to files.

use super::support::*;
use crate::core::*;
use crate::model::*;

fn file() -> ContentBlock {
    ContentBlock::Resource {
        uri: "file:///code/shop/a.rs".into(),
        mime_type: None,
        body: ResourceBody::Text("fn a() {}".into()),
    }
}

fn prepared(text: &str, blocks: Vec<ContentBlock>) -> PreparedPrompt {
    PreparedPrompt { text: text.into(), blocks, ..PreparedPrompt::default() }
}

#[test]
fn a_prompt_with_a_mention_is_sent_when_its_files_were_read() {
    let mut app = TestCore::started();
    let takes = AgentCapabilities {
        prompt_image: true,
        prompt_audio: true,
        prompt_embedded_context: true,
        ..all_capabilities()
    };
    app.handshake(takes).open(ID).submit("see @a.rs");
    let [job] = app.prompt_jobs()[..] else { panic!("{:?}", app.fx) };
    assert_eq!((job.text.as_str(), job.folder.as_deref()), ("see @a.rs", Some("/code/shop".as_ref())));
    assert_eq!(job.takes, PromptTakes { images: true, audio: true, embedded: true });
    assert_eq!(app.sent_prompts(), [&[] as &[ContentBlock]; 0]);
    app.submit("second");
    assert_eq!(app.queue(), ["second"], "the order of prompts is the order of sending");
    app.prepared(prepared("see @a.rs", vec![file()]));
    assert_eq!(app.sent_prompts(), [&[ContentBlock::Text("see @a.rs".into()), file()][..]]);
    let Some(ItemBody::Message(message)) = app.session().transcript.items().last().map(|item| &item.body)
    else {
        panic!("the prompt is in the transcript");
    };
    assert_eq!(message.parts, [MessagePart::Text("see @a.rs".into()), MessagePart::Block(file())]);
    app.prepared(prepared("see @a.rs", vec![file()]));
    assert_eq!(app.sent_prompts().len(), 1, "an answer is used once");
}

#[test]
fn a_prompt_that_cannot_be_sent_is_given_back() {
    let mut app = TestCore::ready();
    let problem = || {
        let problems = vec!["The agent does not accept images: a.png".to_owned()];
        PreparedPrompt { problems, ..PreparedPrompt::default() }
    };
    app.submit("see @a.png").prepared(problem());
    assert_eq!(app.session().draft, "see @a.png");
    assert!(app.state.flash.as_ref().is_some_and(|text| text.contains("does not accept images")));
    assert!(app.sent_prompts().is_empty());
    app.draft("another").submit("see @b.png").draft("new draft");
    app.prepared(problem());
    assert_eq!((app.session().draft.as_str(), app.queue().len()), ("new draft", 1));
}

#[test]
fn a_prompt_waits_in_the_queue_if_the_agent_exits_while_files_are_read() {
    let mut app = TestCore::ready();
    app.submit("see @a.rs");
    app.agent(AgentEvent::Closed(CloseReason::Stopped));
    app.prepared(prepared("see @a.rs", vec![file()]));
    assert_eq!(app.queue(), ["see @a.rs"]);
}

#[test]
fn a_typed_path_that_does_not_exist_is_sent_as_text_and_named() {
    let mut app = TestCore::ready();
    app.submit("see @src/mian.rs");
    let text = "see @src/mian.rs".to_owned();
    app.prepared(PreparedPrompt {
        text,
        unread: vec!["src/mian.rs".to_owned()],
        ..PreparedPrompt::default()
    });
    assert_eq!(app.state.flash.as_deref(), Some("Sent as text, because there is no such file: src/mian.rs"));
    assert!(app.session().turn.is_running());
}

/// A session that was just opened in a folder with the template `review`, and a first prompt.
fn opened_with(is_loaded: bool, prompt: &str) -> TestCore {
    let mut app = TestCore::started();
    app.session_mut().templates = TemplateList { is_loaded, ..templates() };
    app.submit(prompt).handshake(all_capabilities()).open(ID);
    app
}

fn templates() -> TemplateList {
    let review = TemplateInfo {
        name: "review".into(),
        source: TemplateSource::User,
        description: String::new(),
        hint: None,
    };
    TemplateList { offered: vec![review], is_loaded: true, ..TemplateList::default() }
}

fn commands(names: &[&str]) -> SessionUpdate {
    let command = |name: &&str| SlashCommand { name: (*name).into(), description: String::new(), hint: None };
    SessionUpdate::Commands(names.iter().map(command).collect())
}

#[test]
fn the_first_prompt_waits_for_the_agent_s_commands_if_a_template_has_its_name() {
    let mut app = opened_with(true, "/review a.rs");
    assert!(app.prompt_jobs().is_empty() && app.sent_prompts().is_empty());
    app.submit("second");
    assert_eq!(app.queue(), ["/review a.rs", "second"], "prompts keep their order");
    app.update(commands(&["review"]));
    assert_eq!(app.sent_prompts(), [&[ContentBlock::Text("/review a.rs".into())][..]], "the agent's command");

    let mut app = opened_with(true, "/review a.rs");
    app.update(commands(&["other"]));
    assert_eq!(app.prompt_jobs().len(), 1, "the template");

    let mut app = opened_with(true, "/review a.rs");
    app.wait(2).play(Event::Timer(TimerId::Commands(KEY)));
    assert_eq!(app.prompt_jobs().len(), 1, "the template, after a limited time");

    for prompt in ["/other", "review", "/user:review"] {
        let app = opened_with(true, prompt);
        assert_eq!(app.prompt_jobs().len() + app.sent_prompts().len(), 1, "{prompt}");
    }
}

#[test]
fn the_first_prompt_waits_for_the_list_of_templates() {
    let mut app = opened_with(false, "/review a.rs");
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::LoadTemplates { .. })));
    app.service(ServiceEvent::TemplatesFound(KEY, TemplateList { offered: Vec::new(), ..templates() }));
    assert_eq!(app.sent_prompts().len(), 1, "no template has this name");
    let mut app = opened_with(false, "/review a.rs");
    app.service(ServiceEvent::TemplatesFound(KEY, templates()));
    assert!(app.prompt_jobs().is_empty() && app.sent_prompts().is_empty());
    app.update(commands(&["review"]));
    assert_eq!(app.sent_prompts().len(), 1);
}

#[test]
fn later_prompts_do_not_wait_for_commands() {
    let mut app = TestCore::ready();
    app.session_mut().templates = templates();
    app.wait(3).submit("/review a.rs");
    assert_eq!(app.prompt_jobs().len(), 1);
}
