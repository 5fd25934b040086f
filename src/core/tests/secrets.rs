//! Secrets in prompts: nothing is sent before the user has decided.

use super::support::*;
use crate::core::*;
use crate::model::*;

/// A value that no scanner of repositories takes for a key.
fn key() -> String {
    format!("ghp_{}", "aB3xK9mQ7zT2".repeat(3))
}

fn question(app: &TestCore) -> Option<&Question> {
    app.state.questions.iter().find(|question| question.title.starts_with("Send what looks like"))
}

#[test]
fn a_prompt_with_a_secret_is_asked_about_first() {
    let mut app = TestCore::ready();
    app.submit(&format!("Use\n{} now", key())).expect_sent("");
    let body = &question(&app).unwrap().body;
    assert_eq!(body[0], "GitHub token in the prompt, line 2: ghp_… (40 characters)");
    assert!(!body.join(" ").contains(&key()));
    app.decide(0);
    assert!(app.session().draft.contains(&key()), "it is edited");
    assert!(app.session().outbox.is_empty());
}

#[test]
fn a_secret_that_is_hidden_stays_hidden() {
    let mut app = TestCore::ready();
    app.submit(&format!("Use {}", key())).decide(1);
    app.expect_sent(&format!("call prompt \"Use {}\"", "*".repeat(40)));
    app.end_turn(StopReason::EndTurn);
    app.submit(&format!("Again {}", key()));
    app.expect_sent(&format!("call prompt \"Again {}\"", "*".repeat(40)));
    let sent = app.recorded().into_iter().rev().find_map(|event| match event.record {
        Record::Prompt { text, typed, .. } => Some((text, typed)),
        _ => None,
    });
    assert_eq!(sent, Some((format!("Again {}", "*".repeat(40)), Some(format!("Again {}", key())))));
}

#[test]
fn a_secret_that_is_sent_is_not_asked_about_again() {
    let mut app = TestCore::ready();
    app.submit(&format!("Use {}", key())).decide(2);
    app.expect_sent(&format!("call prompt \"Use {}\"", key()));
    app.end_turn(StopReason::EndTurn);
    app.submit(&format!("Again {}", key()));
    app.expect_sent(&format!("call prompt \"Again {}\"", key()));
}

#[test]
fn a_closed_question_leaves_the_prompt_in_the_queue() {
    let mut app = TestCore::ready();
    let text = format!("Use {}", key());
    app.submit(&text).answer_last(UserAnswer::Dismiss).expect_sent("");
    assert_eq!(app.queue(), [text.as_str()]);
}

#[test]
fn files_that_a_prompt_mentions_are_checked() {
    let mut app = TestCore::ready();
    app.submit("Explain @src/a.rs");
    let body =
        ResourceBody::Text(format!("let x = 1;\nlet api_key = \"{}\";", "aB3xK9mQ7zT2".repeat(3)).into());
    let file = ContentBlock::Resource { uri: "file:///code/shop/src/a.rs".into(), mime_type: None, body };
    let prepared =
        PreparedPrompt { text: "Explain src/a.rs".into(), blocks: vec![file], ..Default::default() };
    app.prepared(prepared).expect_sent("");
    let body = &question(&app).unwrap().body;
    assert_eq!(body[0], "secret value in a.rs, line 2: aB3x… (36 characters)");
}

#[test]
fn a_conversation_that_is_handed_over_is_checked() {
    let mut app = TestCore::ready();
    app.session_mut().resume.hand_over(format!("The key is {}", key()), "other".into());
    app.submit("Go on").expect_sent("");
    let body = &question(&app).unwrap().body;
    assert!(body[0].contains("in the conversation that is handed over"), "{body:?}");
    app.decide(1);
    let sent = app.sent();
    assert!(sent.contains(&"*".repeat(40)) && !sent.contains(&key()), "{sent}");
}

#[test]
fn many_secrets_are_all_hidden() {
    let mut app = TestCore::ready();
    let keys: Vec<String> = (0..2000).map(|number| format!("{}{number:06}", key())).collect();
    app.submit(&keys.join("\n"));
    let body = &question(&app).unwrap().body;
    assert_eq!(body[5], "1995 more");
    app.decide(1);
    assert!(!app.sent().contains("ghp_"));
}

#[test]
fn the_check_can_be_switched_off() {
    let mut app = TestCore::ready();
    app.state.setup.policy.check_secrets = false;
    app.submit(&key()).expect_sent(&format!("call prompt \"{}\"", key()));
}
