//! Turns: their updates, requests and endings.

use super::*;

#[test]
fn tour_covers_all_features_step_by_step() {
    let (_dir, mut client, session) = start();
    assert_eq!(client.prompt(&session, "/tour").unwrap(), "end_turn");
    assert!(client.reply().contains("# Welcome") && client.reply().contains("**next**"));
    assert!(!client.text("agent_thought_chunk").is_empty());

    client.prompt(&session, "next").unwrap();
    let plans = client.kind("plan");
    assert!(plans.len() >= 4, "the plan is updated");
    assert_eq!(plans[0]["entries"][0]["status"], "in_progress");
    assert!(plans.last().unwrap()["entries"].as_array().unwrap().iter().all(|e| e["status"] == "completed"));
    assert_eq!(client.requested_methods(), ["fs/read_text_file"]);

    client.prompt(&session, "yes, go on").unwrap();
    assert_eq!(client.requested_methods(), ["session/request_permission"]);

    client.prompt(&session, "next").unwrap();
    let methods = client.requested_methods();
    assert_eq!(methods.first(), Some(&"session/request_permission"));
    assert_eq!(methods.last(), Some(&"terminal/release"));

    client.prompt(&session, "Next").unwrap();
    assert_eq!(client.requested_methods(), ["elicitation/create"]);
    assert!(client.reply().contains("2 cups of green tea") && client.reply().contains("the end of the tour"));
    client.end();
}

#[test]
fn every_offered_command_works() {
    let (_dir, mut client, session) = start();
    client.prompt(&session, "/help").unwrap();
    let help = client.reply();
    for (name, ..) in super::super::offers::COMMANDS {
        assert!(help.contains(&format!("`/{name}`")), "{name} is missing in the help");
        if *name == "help" {
            continue;
        }
        let ended = client.prompt(&session, &format!("/{name}"));
        let reply = client.reply();
        assert!(ended.is_ok() || *name == "fail", "{name}: {ended:?}");
        assert!(!reply.contains("Unknown command"), "{name}");
        assert!(!reply.is_empty(), "{name} sends nothing");
    }
    client.prompt(&session, "/nonsense").unwrap();
    assert!(client.reply().contains("Unknown command `/nonsense`"));
    client.end();
}

#[test]
fn every_kind_of_update_is_sent() {
    let (_dir, mut client, session) = start();
    let mut kinds = std::collections::BTreeSet::new();
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).unwrap();
    kinds.extend(client.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap().to_owned()));
    for prompt in ["/think", "/plan", "/notice", "/compact", "/team", "/title A title"] {
        client.prompt(&session, prompt).unwrap();
        kinds
            .extend(client.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap().to_owned()));
    }
    client.updates.clear();
    client.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    kinds.extend(client.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap().to_owned()));
    let all = [
        "agent_message_chunk",
        "agent_thought_chunk",
        "available_commands_update",
        "compaction_summary_chunk",
        "compaction_update",
        "config_option_update",
        "current_mode_update",
        "notice",
        "plan",
        "plan_removed",
        "plan_update",
        "session_info_update",
        "subagent_update",
        "tool_call",
        "tool_call_update",
        "usage_update",
        "user_message_chunk",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), all);
    client.end();
}

#[test]
fn clients_without_capabilities_get_fallbacks() {
    let (_dir, mut client, session) = start_with(&json!({}));
    client.prompt(&session, "/run").unwrap();
    assert_eq!(client.requested_methods(), ["session/request_permission"]);
    assert!(client.reply().contains("Terminals are disabled"));
    client.prompt(&session, "/edit").unwrap();
    assert_eq!(client.requested_methods(), ["session/request_permission"]);
    assert!(client.reply().contains("Done."));
    client.permission = Some("coffee");
    client.prompt(&session, "/ask").unwrap();
    assert!(client.reply().contains("You chose coffee"));
    for prompt in ["/notice", "/compact", "/team", "/plan"] {
        client.prompt(&session, prompt).unwrap();
        for kind in ["notice", "compaction_update", "subagent_update", "plan_update"] {
            assert!(client.kind(kind).is_empty(), "{prompt} sent {kind}");
        }
    }
    client.end();
}

#[test]
fn edits_need_permission_and_happen_in_the_scratch_folder() {
    let (dir, mut client, session) = start();
    client.permission = Some("no");
    client.prompt(&session, "/edit").unwrap();
    assert!(client.reply().contains("You rejected"));
    let call = &client.requests[0]["params"]["toolCall"];
    let (path, new) = (call["content"][0]["path"].clone(), call["content"][0]["newText"].clone());
    let path = PathBuf::from(path.as_str().unwrap());
    assert_eq!(path.parent().unwrap(), dir.path().join("demo/work").join(&session));
    let old = std::fs::read_to_string(&path).unwrap();
    assert_eq!(call["content"][0]["oldText"], json!(old));
    assert_eq!(client.kind("tool_call_update").last().unwrap()["status"], "failed");

    client.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).unwrap();
    client.prompt(&session, "/edit").unwrap();
    assert_eq!((client.requested_methods().len(), std::fs::read_to_string(&path).unwrap()), (0, old.clone()));

    client.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"})).unwrap();
    client.permission = Some("always");
    client.prompt(&session, "/edit").unwrap();
    assert_eq!(json!(std::fs::read_to_string(&path).unwrap()), new);
    client.prompt(&session, "/edit").unwrap();
    assert!(client.requested_methods().is_empty(), "the answer \"always\" is saved");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), old, "the edit is reverted");

    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["README.md", "demo"], "the session's folder is unchanged");
    client.call("session/delete", json!({"sessionId": session})).unwrap();
    assert!(!path.exists(), "the scratch folder is removed with the session");
    client.end();
}

#[test]
fn acp_v1_cancel_ends_a_turn_inside_a_permission_request() {
    let (_dir, mut client, session) = start();
    client.permission = None;
    let id = client.send_prompt(&session, "/edit");
    while client.requests.is_empty() {
        client.next();
    }
    let second = client.send_prompt(&session, "another");
    assert_eq!(client.wait(second).unwrap_err()["code"], -32600);
    client.cancel(&session);
    assert_eq!(client.wait(id).unwrap()["stopReason"], "cancelled");
    // The client's response to the permission request arrives late.
    let late = json!({"jsonrpc": "2.0", "id": client.requests[0]["id"], "result": {"outcome": {"outcome": "cancelled"}}});
    client.write(&late);
    client.permission = Some("yes");
    assert_eq!(client.prompt(&session, "/edit").unwrap(), "end_turn");
    client.end();
}

#[test]
fn cancel_in_a_command_releases_its_terminal() {
    let (_dir, mut client, session) = start();
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).unwrap();
    client.permission = Some("never ends");
    let id = client.send_prompt(&session, "/run");
    while client.requested_methods().last() != Some(&"terminal/wait_for_exit") {
        client.next();
    }
    client.cancel(&session);
    assert_eq!(client.wait(id).unwrap()["stopReason"], "cancelled");
    assert!(client.requested_methods().contains(&"terminal/release"));
    client.end();
}

#[test]
fn cancel_without_a_turn_has_no_effect() {
    let (_dir, mut client, session) = start();
    client.cancel(&session);
    client.cancel("no such session");
    assert_eq!(client.prompt(&session, "/think").unwrap(), "end_turn");
    client.end();
}

#[test]
fn every_kind_of_failure_can_be_triggered() {
    let (_dir, mut client, session) = start();
    let error = client.prompt(&session, "/fail").unwrap_err();
    assert_eq!(error["code"], -32603);
    assert!(error["data"]["details"].as_str().unwrap().contains("Send another prompt"));
    assert_eq!(client.kind("tool_call_update").last().unwrap()["status"], "failed");
    assert_eq!(client.prompt(&session, "/fail tool").unwrap(), "end_turn");
    assert_eq!(client.prompt(&session, "/fail refusal").unwrap(), "refusal");
    assert_eq!(client.prompt(&session, "/fail tokens").unwrap(), "max_tokens");
    client.end();
}

#[test]
fn elicitations_can_be_declined_cancelled_or_sent_as_url() {
    let (_dir, mut client, session) = start();
    for (answer, expected) in [
        (json!({"action": "decline"}), "declined to answer"),
        (json!({"action": "cancel"}), "closed the form"),
        (
            json!({"action": "accept", "content": {"kind": "none", "cups": 1, "extras": ["milk"], "name": "Ada",
            "hurry": true}}),
            "One cup of coffee with milk for Ada. In a cup to go.",
        ),
    ] {
        client.elicitation = answer;
        client.prompt(&session, "/ask").unwrap();
        assert!(client.reply().contains(expected), "{}", client.reply());
    }
    client.prompt(&session, "/ask link").unwrap();
    assert_eq!(client.requests[0]["params"]["mode"], "url");
    client.end();
}

#[test]
fn paced_output_pauses_between_chunks() {
    let (dir, client, _) = start();
    client.end();
    // The same agent with pacing.
    let (agent_in, mut to_agent) = io::pipe().unwrap();
    let (from_agent, agent_out) = io::pipe().unwrap();
    let settings = Settings { dir: dir.path().join("demo"), scratch_dir: None, is_paced: true };
    thread::spawn(move || serve(BufReader::new(agent_in), agent_out, settings));
    let mut lines = BufReader::new(from_agent).lines();
    writeln!(to_agent, "{}", json!({"id": 1, "method": "session/new", "params": {"cwd": "/"}})).unwrap();
    let created: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let prompt =
        json!({"sessionId": created["result"]["sessionId"], "prompt": [{"type": "text", "text": "/title"}]});
    writeln!(to_agent, "{}", json!({"id": 2, "method": "session/prompt", "params": prompt})).unwrap();
    let before = std::time::Instant::now();
    let mut chunks = 0;
    for line in lines.map_while(Result::ok) {
        chunks += u32::from(line.contains("agent_message_chunk"));
        if line.contains("stopReason") {
            break;
        }
    }
    assert!(chunks >= 5 && before.elapsed() >= Duration::from_millis(16) * chunks);
}

#[test]
fn fix_scene_plans_and_fixes_the_bug() {
    let (_dir, mut client, session) = start();
    client.prompt(&session, "the total is wrong").unwrap();
    assert!(
        client.requested_methods().starts_with(&["session/request_permission", "session/request_permission"])
    );
    let plans = client.kind("plan");
    assert!(plans.last().unwrap()["entries"].as_array().unwrap().iter().all(|e| e["status"] == "completed"));
    assert!(client.reply().contains("370"));
    client.end();
}

#[test]
fn configured_scratch_folder_is_used_and_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().to_owned();
    let settings =
        Settings { dir: dir.path().join("demo"), scratch_dir: Some(scratch.clone()), is_paced: false };
    let agent = Agent::new(std::sync::Arc::new(Peer::new(Box::new(std::io::sink()))), settings);
    assert_eq!(agent.scratch("demo-1").unwrap(), scratch);
    agent.end();
    assert!(scratch.is_dir());
}
