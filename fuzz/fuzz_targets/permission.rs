//! Permission requests, from the protocol to the screen: no panic, hidden characters are marked, every key of the input
//! is shown, listed or reported as omitted, and the option to refuse is visible on the smallest screen.
//!
//! The input is the tool call of a request.

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use parlor::acp::codec::Codec;
use parlor::core::{Event, Setup};
use parlor::ui::{App, update};
use parlor::config::keymap::Keymap;
use parlor::model::{AgentEvent, AgentInfo, AgentSpec, RequestId, ConnId, Reply, SessionReply};
use parlor::ui::theme::Theme;
use parlor::ui::{Canvas, ViewState, draw_into};
use serde_json::{Value, json};

const CONN: ConnId = ConnId(1);

/// A session with a ready agent.
fn session(now: Instant) -> App {
    let spec = AgentSpec { name: "fuzz".into(), command: "fuzz".into(), ..AgentSpec::default() };
    let setup = Setup { folder: "/w".into(), start_with: Some(spec), ..Setup::default() };
    let (mut app, _) = parlor::ui::start(setup, now);
    let ready = AgentEvent::Ready(Box::new(AgentInfo::default()));
    for effect in update(&mut app, Event::Agent(CONN, ready), now) {
        if let parlor::core::Effect::Send(conn, parlor::model::AgentCommand::Call(tag, _)) = effect {
            let reply = SessionReply { id: Some("s".into()), ..SessionReply::default() };
            update(&mut app, Event::Agent(conn, AgentEvent::Replied(tag, Ok(Reply::Session(reply)))), now);
        }
    }
    app
}

fn screen(app: &App, now: Instant, cols: u16, rows: u16) -> String {
    let mut view = ViewState::new(&Keymap::defaults(), now);
    let mut canvas = Canvas::new(cols, rows);
    draw_into(app, &mut view, &Theme::plain(), &mut canvas);
    let hidden = |ch: char| {
        ch.is_control()
            || matches!(ch, '\u{ad}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let text: String = canvas.content.iter().map(|cell| cell.symbol()).collect();
    assert!(!text.contains(hidden));
    text.split_whitespace().collect()
}

fuzz_target!(|tool: &str| {
    let Ok(Value::Object(mut tool)) = serde_json::from_str::<Value>(tool) else { return };
    tool.insert("toolCallId".to_owned(), json!("t"));
    let input = tool.get("rawInput").cloned();
    let options = json!([
        {"optionId": "a", "name": "Allow", "kind": "allow_once"},
        {"optionId": "r", "name": "Reject-this", "kind": "reject_once"},
    ]);
    let params = json!({"sessionId": "s", "toolCall": tool, "options": options});
    let now = Instant::now();
    let mut app = session(now);
    let mut codec = Codec::new(&AgentSpec { command: "fuzz".into(), ..AgentSpec::default() });
    let mut events = Vec::new();
    let Ok((request_id, _)) = codec.request("session/request_permission", Some(&params.to_string()), &mut events) else { return };
    events.push(AgentEvent::Request(RequestId(1), Box::new(request_id)));
    for event in events {
        update(&mut app, Event::Agent(CONN, event), now);
    }
    let later = now + Duration::from_secs(5);
    let small = screen(&app, later, 40, 12);
    let has_heading = small.contains("Allowthis") || small.contains("aprotectedfile?");
    assert!(has_heading && small.contains("Reject-this"), "{small}");
    let tall = screen(&app, later, 120, 2000);
    let Some(Value::Object(input)) = input else { return };
    let is_plain = |text: &str| !text.is_empty() && text.len() < 60 && text.bytes().all(|byte| byte.is_ascii_graphic());
    for (key, value) in input.iter().filter(|(key, _)| is_plain(key)) {
        let is_told = value.as_str().is_some_and(|text| !is_plain(text) || tall.contains(text));
        let is_nested = matches!(value, Value::Object(_) | Value::Array(_));
        assert!(is_told || is_nested || tall.contains(key.as_str()) || tall.contains("morevalue"), "{key} in {tall}");
    }
});
