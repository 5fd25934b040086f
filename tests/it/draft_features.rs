//! Optional features, with scripted agents.

use std::fs;

use parlor::core::SessionPhase;
use parlor::model::{
    Action, AgentSpec, AuthState, LineEdit, ProviderRequest, ProviderTarget, SystemPrompt, ToolStatus,
    WireSpec,
};
use parlor::ui::Event;

use super::nonstandard::scripted_agent;
use super::rig::{Rig, agent};

struct Played {
    rig: Rig,
    _folder: tempfile::TempDir,
}

/// Plays a script with these protocol settings.
fn play(script: &str, wire: WireSpec) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, script).unwrap();
    let spec = AgentSpec { wire, ..agent(scripted_agent(), &[file.to_str().unwrap()]) };
    let mut rig = Rig::start(folder.path(), spec);
    rig.wait_ready();
    Played { rig, _folder: folder }
}

/// Each step requires the next message, so nothing else is sent, in this order.
const DRAFTS: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{"providers":{},"auth":{"status":{}},"sessionCapabilities":{"archive":{},"resume":{},"systemPrompt":{}}}}}
? "auth/status"
< {"jsonrpc":"2.0","id":$id,"result":{"state":"authenticated","accounts":[{"label":"ada@example.org"}]}}
? "providers/set"
= set
? "providers/list"
< {"jsonrpc":"2.0","id":$id,"result":{"providers":[{"providerId":"main","supported":["openai"],"required":false,"current":{"apiType":"openai","baseUrl":"https://llm.example"}}]}}
< {"jsonrpc":"2.0","id":$set,"result":{}}
? "systemPrompt":{"mode":"append","content":[{"type":"text","text":"Be brief."}]}
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
? "traceparent":"00-
< {"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"429 Too Many Requests"}}
? "text":"hello"
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"at last"}}}}
< {"jsonrpc":"2.0","method":"auth/status_update","params":{"state":"unauthenticated"}}
< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}
? "session/archive"
< {"jsonrpc":"2.0","id":$id,"result":{}}
? "session/unarchive"
< {"jsonrpc":"2.0","id":$id,"result":{}}
? "session/resume"
< {"jsonrpc":"2.0","id":$id,"result":{}}
"#;

#[test]
fn draft_features_are_used_if_advertised() {
    let target = ProviderTarget {
        api_type: "openai".to_owned(),
        base_url: "https://llm.example".to_owned(),
        headers: Vec::new(),
    };
    let wire = WireSpec {
        providers: vec![ProviderRequest { id: "main".to_owned(), target: Some(target) }],
        system_prompt: Some(SystemPrompt { text: "Be brief.".to_owned(), replaces: false }),
        is_traced: true,
        ..WireSpec::default()
    };
    let mut played = play(DRAFTS, wire);
    let rig = &mut played.rig;
    let conn = rig.state.conn_of(rig.state.active).unwrap();
    assert_eq!(conn.auth.as_ref().map(|auth| auth.state), Some(AuthState::SignedIn));
    assert_eq!(conn.providers[0].base_url.as_deref(), Some("https://llm.example"));

    rig.ask("hello");
    assert!(rig.text().contains("failed: 429 Too Many Requests"), "{}", rig.text());
    rig.act(Action::SendAgain);
    rig.wait_text("agent: at last");
    rig.wait_idle();
    assert_eq!(rig.text().matches("user: hello").count(), 1, "{}", rig.text());
    let conn = rig.state.conn_of(rig.state.active).unwrap();
    assert_eq!(conn.auth.as_ref().map(|auth| auth.state), Some(AuthState::SignedOut));

    rig.act(Action::ArchiveSession);
    rig.wait("the archive", |state| {
        matches!(&state.sessions[&state.active].phase, SessionPhase::Ended { cause } if cause.contains("archived"))
    });
    rig.act(Action::ArchiveSession);
    rig.wait_ready();
}

const SECOND: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":2,"info":{"name":"second","version":"1"},"capabilities":{"session":{}},"authMethods":[]}}
> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s","configOptions":[]}}
> "session/prompt"
< {"jsonrpc":"2.0","id":$id,"result":{"messageId":"u"}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Wait","kind":"execute","status":"in_progress","capabilities":{"cancel":{}}}}}
? "tool_call/cancel","params":{"sessionId":"s","toolCallId":"t"}
< {"jsonrpc":"2.0","id":$id,"result":{}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"cancelled","capabilities":null}}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}
"#;

#[test]
fn acp_v2_a_tool_call_is_cancelled_and_the_turn_continues() {
    let mut played = play(SECOND, WireSpec { protocol: 2, ..WireSpec::default() });
    let rig = &mut played.rig;
    rig.prompt("go");
    rig.wait_text("tool t [Execute InProgress]");
    rig.act(Action::KillCommand);
    rig.wait_idle();
    assert!(rig.text().contains(&format!("{:?}", ToolStatus::Cancelled)), "{}", rig.text());
    assert!(!rig.text().contains("stopped: Cancelled"), "the turn itself was not cancelled: {}", rig.text());
}

const SHELVED: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"providers":{},"sessionCapabilities":{"archive":{},"list":{},"status":{}}}}}
? "providers/list"
< {"jsonrpc":"2.0","id":$id,"result":{"providers":[{"providerId":"main","supported":["openai"],"required":true,"current":{"apiType":"openai","baseUrl":"https://one.example"}}]}}
> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
? "archived":"include"
< {"jsonrpc":"2.0","id":$id,"result":{"sessions":[{"sessionId":"old","cwd":"","title":"Away","archived":true}]}}
? "session/status","params":{"sessionId":"old"}
< {"jsonrpc":"2.0","id":$id,"result":{"status":"saved"}}
? "session/unarchive","params":{"sessionId":"old"}
< {"jsonrpc":"2.0","id":$id,"result":{}}
? "session/load"
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"long ago"}}}}
< {"jsonrpc":"2.0","id":$id,"result":{}}
? {"providerId":"main","apiType":"openai","baseUrl":"https://two.example","headers":{"X-Key":"k"}}
< {"jsonrpc":"2.0","id":$id,"result":{}}
? "providers/list"
< {"jsonrpc":"2.0","id":$id,"result":{"providers":[{"providerId":"main","supported":["openai"],"required":true,"current":{"apiType":"openai","baseUrl":"https://two.example"}}]}}
"#;

#[test]
fn archived_sessions_are_restored_and_providers_are_changed() {
    let mut played = play(SHELVED, WireSpec::default());
    let rig = &mut played.rig;
    rig.act(Action::OpenSessions);
    rig.wait("the list", |state| !state.listed().is_empty());
    assert!(rig.state.listed()[0].is_archived);
    rig.act(Action::NextScope);
    rig.wait("the status", |state| state.listed()[0].is_live == Some(false));
    rig.act(Action::Accept);
    rig.wait_text("agent: long ago");
    rig.wait_ready();

    rig.act(Action::OpenProviders);
    rig.act(Action::Accept);
    rig.act(Action::Accept);
    rig.apply(Event::Line(LineEdit::Clear));
    rig.apply(Event::Line(LineEdit::Insert("https://two.example".to_owned())));
    rig.act(Action::Accept);
    rig.apply(Event::Line(LineEdit::Insert("X-Key: k".to_owned())));
    rig.act(Action::Accept);
    rig.act(Action::Accept);
    rig.wait("the provider", |state| {
        let conn = state.conn_of(state.active);
        conn.is_some_and(|conn| conn.providers[0].base_url.as_deref() == Some("https://two.example"))
    });
}
