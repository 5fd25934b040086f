//! Sessions: saving, listing, loading, forking, deleting; modes, models and options.

use super::*;

fn place(session: &str, cwd: &Path) -> Value {
    json!({"sessionId": session, "cwd": cwd, "mcpServers": []})
}

fn list(client: &mut Client, params: Value) -> Vec<v1::SessionInfo> {
    let mut all = Vec::new();
    let mut params = params;
    loop {
        let page = client.call("session/list", params.clone()).unwrap();
        let typed: v1::ListSessionsResponse = serde_json::from_value(page.clone()).unwrap();
        assert_eq!(typed.sessions.len(), page["sessions"].as_array().unwrap().len());
        all.extend(typed.sessions);
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => return all,
        }
    }
}

#[test]
fn acp_v1_load_replays_the_history_in_another_process() {
    let (dir, mut client, session) = start();
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).unwrap();
    let mut reply = String::new();
    for prompt in ["/think", "/run", "/edit"] {
        client.prompt(&session, prompt).unwrap();
        reply.push_str(&client.reply());
    }
    client.end();

    let mut client = Client::start(dir.path(), &everything());
    let result = client.call("session/load", place(&session, dir.path())).unwrap();
    assert_eq!(result["modes"]["currentModeId"], "auto");
    let _: v1::LoadSessionResponse = serde_json::from_value(result).unwrap();
    assert_eq!(client.reply(), reply);
    assert_eq!(client.text("user_message_chunk"), "/think/run/edit");
    let terminals: Vec<_> = client
        .kind("tool_call_update")
        .into_iter()
        .filter(|update| update["content"][0]["type"] == "terminal")
        .collect();
    assert!(terminals.is_empty(), "a replay contains no old terminals");
    let texts = client.updates.iter().map(Value::to_string).collect::<String>();
    assert!(texts.contains("ok check 5"), "but contains their output");
    let chunks = client.kind("agent_message_chunk").len();
    assert!(chunks < 10, "messages are not split into chunks: {chunks}");
    // Ids continue after the replayed ones.
    let before = client.updates.len();
    client.prompt(&session, "/think").unwrap();
    assert!(before > 0 && client.updates.iter().all(|update| update["messageId"] != "message-1"));
    client.end();
}

#[test]
fn acp_v1_resume_does_not_replay() {
    let (dir, mut client, session) = start();
    client.prompt(&session, "hello").unwrap();
    client.end();
    let mut client = Client::start(dir.path(), &everything());
    client.call("session/resume", place(&session, dir.path())).unwrap();
    assert_eq!(client.reply(), "");
    assert_eq!(client.prompt(&session, "hello").unwrap(), "end_turn");
    client.end();
}

#[test]
fn sessions_are_listed_by_folder_and_page() {
    let (dir, mut client, session) = start();
    client.prompt(&session, "/think about lists").unwrap();
    for _ in 0..24 {
        client.new_session(Path::new("/elsewhere"));
    }
    let all = list(&mut client, json!({}));
    assert_eq!(all.len(), 25);
    let here = list(&mut client, json!({"cwd": dir.path()}));
    assert_eq!(here.len(), 1);
    assert_eq!(here[0].title.as_deref(), Some("think about lists"));
    assert!(here[0].updated_at.as_deref().unwrap().ends_with('Z'));
    assert_eq!(client.call("session/list", json!({"cursor": "x"})).unwrap_err()["code"], -32602);
    client.end();
}

#[test]
fn sessions_can_be_renamed_forked_closed_and_deleted() {
    let (dir, mut client, session) = start();
    client.prompt(&session, "hello").unwrap();
    let reply = client.reply();
    client.updates.clear();
    let titled = client.call("session/set_title", json!({"sessionId": session, "title": " Mine "})).unwrap();
    assert_eq!(titled["title"], "Mine");
    assert_eq!(client.kind("session_info_update")[0]["title"], "Mine");

    let copy = client.call("session/fork", place(&session, dir.path())).unwrap();
    let copy = copy["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, session);
    client.updates.clear();
    client.call("session/load", place(&copy, dir.path())).unwrap();
    assert_eq!(client.reply(), reply);
    client.prompt(&copy, "/think").unwrap();

    client.call("session/close", json!({"sessionId": session})).unwrap();
    let params = json!({"sessionId": session, "prompt": []});
    assert_eq!(client.call("session/prompt", params).unwrap_err()["code"], -32002);
    client.call("session/set_title", json!({"sessionId": session, "title": "Put away"})).unwrap();
    let listed = client.call("session/list", json!({})).unwrap();
    let titles: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().filter_map(|info| info["title"].as_str()).collect();
    assert!(titles.contains(&"Put away"), "{titles:?}");
    let unknown = json!({"sessionId": "nobody", "title": "x"});
    assert_eq!(client.call("session/set_title", unknown).unwrap_err()["code"], -32002);
    client.call("session/resume", place(&session, dir.path())).unwrap();

    for _ in 0..2 {
        client.call("session/delete", json!({"sessionId": session})).unwrap();
    }
    let left = list(&mut client, json!({}));
    assert_eq!(left.iter().map(|info| info.title.as_deref().unwrap()).collect::<Vec<_>>(), ["Mine (copy)"]);
    assert_eq!(client.call("session/load", place(&session, dir.path())).unwrap_err()["code"], -32002);
    client.end();
}

#[test]
fn closing_a_session_cancels_its_turn() {
    let (_dir, mut client, session) = start();
    client.permission = None;
    let id = client.send_prompt(&session, "/edit");
    while client.requests.is_empty() {
        client.next();
    }
    let close = client.send("session/close", &json!({"sessionId": session}));
    let (mut is_closed, mut reason) = (false, Value::Null);
    while !is_closed || reason.is_null() {
        let message = client.next();
        is_closed |= message["id"] == json!(close);
        if message["id"] == json!(id) && message.get("method").is_none() {
            reason = message["result"]["stopReason"].clone();
        }
    }
    assert_eq!(reason, "cancelled");
    client.end();
}

#[test]
fn modes_and_models_are_also_config_options() {
    let (_dir, mut client, session) = start();
    let set = |client: &mut Client, id: &str, value: Value| {
        let mut params = json!({"sessionId": session, "configId": id, "value": value});
        if value.is_boolean() {
            params["type"] = json!("boolean");
        }
        let _: v1::SetSessionConfigOptionRequest = serde_json::from_value(params.clone()).unwrap();
        client.call("session/set_config_option", params)
    };
    let value = |result: &Value, id: &str| {
        let options = result["configOptions"].as_array().unwrap();
        options.iter().find(|option| option["id"] == id).unwrap()["currentValue"].clone()
    };
    let result = set(&mut client, "mode", json!("plan")).unwrap();
    assert_eq!((value(&result, "mode"), value(&result, "model")), (json!("plan"), json!("chatty")));
    assert_eq!(client.kind("current_mode_update")[0]["currentModeId"], "plan");
    assert_eq!(value(&set(&mut client, "model", json!("careful")).unwrap(), "model"), "careful");
    assert_eq!(value(&set(&mut client, "speed", json!("brisk")).unwrap(), "speed"), "brisk");
    assert_eq!(value(&set(&mut client, "thoughts", json!(false)).unwrap(), "thoughts"), json!(false));
    for (id, bad) in [("mode", "x"), ("model", "x"), ("speed", "x"), ("thoughts", "x"), ("none", "x")] {
        assert_eq!(set(&mut client, id, json!(bad)).unwrap_err()["code"], -32602);
    }
    client.prompt(&session, "/think").unwrap();
    assert_eq!(client.text("agent_thought_chunk"), "", "thoughts are disabled");
    let usage = client.kind("usage_update");
    assert_eq!(usage.last().unwrap()["size"], 200_000, "the model determines the context size");

    client.updates.clear();
    client.call("session/set_model", json!({"sessionId": session, "modelId": "terse"})).unwrap();
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).unwrap();
    client.prompt(&session, "/modes").unwrap();
    assert!(client.reply().contains("mode is `auto`") && client.reply().contains("model is `terse`"));
    assert_eq!(
        client.call("session/set_mode", json!({"sessionId": session, "modeId": "x"})).unwrap_err()["code"],
        -32602
    );
    client.end();
}

#[test]
fn boolean_options_require_client_support() {
    let (dir, mut client, _) = start_with(&json!({}));
    let result = client.call("session/new", json!({"cwd": dir.path(), "mcpServers": []})).unwrap();
    let options = result["configOptions"].as_array().unwrap();
    assert!(options.iter().all(|option| option["type"] == "select"));
    client.end();
}

#[test]
fn unwritable_folder_only_prevents_saving() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("demo"), "in the way").unwrap();
    let mut client = Client::start(dir.path(), &everything());
    let session = client.new_session(dir.path());
    assert_eq!(client.prompt(&session, "/think").unwrap(), "end_turn");
    assert_eq!(client.kind("notice")[0]["title"], "This session is not saved.");
    client.end();
}
