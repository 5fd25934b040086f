//! What another process gets to see.

use serde_json::{Value, json};

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

#[test]
fn text_is_sent_once() {
    let mut app = TestCore::running();
    let mut mirror = Mirror::default();
    mirror.follow(app.state());
    app.update(says("The first "));
    let first = mirror.follow(app.state());
    app.update(says("words."));
    let more = mirror.follow(app.state());
    let text = |sent: &Value| sent["sessions"][0]["items"][0]["body"]["message"]["parts"][0]["text"].clone();
    assert_eq!(text(&first), "The first ");
    let id = &first["sessions"][0]["items"][0]["id"];
    let expected = json!({"session": 1, "has_all_items": false, "more_text": [id, "words."]});
    assert_eq!(more["sessions"], json!([expected]));
    assert_eq!(mirror.follow(app.state()), json!({}), "nothing is new");
    mirror.check(app.state());
}

#[test]
fn questions_are_sent_until_they_are_answered() {
    let mut app = TestCore::running();
    let mut mirror = Mirror::default();
    mirror.follow(app.state());
    app.update(call("1", ToolStatus::Pending));
    let call = mirror.follow(app.state());
    app.ask(5, permission("1"));
    let sent = mirror.follow(app.state());
    let question = &sent["overview"]["questions"][0];
    assert_eq!(question["id"], json!({"agent": 5}), "{sent}");
    let answers: Vec<_> = question["answers"].as_array().unwrap().iter().map(Value::as_str).collect();
    assert!(answers.len() > 1, "{answers:?}");
    let item = &call["sessions"][0]["items"][0];
    assert_eq!((&question["item"], &question["title"]), (&item["id"], &json!("do 1")));
    app.play(Event::Answer(QuestionId::Agent(RequestId(5)), UserAnswer::Option(0)));
    assert_eq!(mirror.follow(app.state())["overview"]["questions"], json!([]));
    mirror.check(app.state());
}

#[test]
fn output_is_sent_once_and_in_whole_characters() {
    let mut app = TestCore::running();
    app.ask(1, run_line("make")).choose(Some(0)).terminal_started(1, "x", "make");
    let mut mirror = Mirror::default();
    let mut output = |bytes: &[u8]| {
        app.service(ServiceEvent::TerminalOutput { terminal: "x".into(), bytes: bytes.to_vec() });
        let sent = mirror.follow(app.state());
        mirror.check(app.state());
        sent["sessions"][0]["outputs"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(output(b"caf\xc3"), "caf");
    assert_eq!(output(b"\xa9 "), "\u{e9} ");
    assert_eq!(output(b"\xff."), "\u{fffd}.");
}

#[test]
fn closed_sessions_are_gone() {
    let mut app = TestCore::talked();
    let mut mirror = Mirror::default();
    mirror.follow(app.state());
    app.flow(operations::new_session);
    let sent = mirror.follow(app.state());
    assert_eq!(sent["overview"]["sessions"], json!([1, 2]), "{sent}");
    mirror.check(app.state());
    app.flow(|state, cx| operations::close_session(state, KEY, cx));
    mirror.follow(app.state());
    mirror.check(app.state());
}
