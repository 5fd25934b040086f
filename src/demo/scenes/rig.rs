//! Scenes that test a client: speed, floods, silence, a crash, garbage.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::super::turn::{Step, Turn};

/// Chunks as fast as they go.
pub(super) fn stream(turn: &Turn, count: &str) -> Step {
    let count: u64 = count.parse().unwrap_or(1000);
    let message = turn.new_id("message");
    for n in 0..count {
        let end = if n % 12 == 11 { "\n" } else { " " };
        turn.update(&json!({
            "sessionUpdate": "agent_message_chunk", "messageId": message,
            "content": {"type": "text", "text": format!("chunk{n}{end}")},
        }))?;
    }
    turn.say(&format!("\n\nThose were {count} chunks.\n"))
}

/// Updates of many kinds until the turn is cancelled. Not kept: a replay would be a flood too.
pub(super) fn flood(turn: &Turn) -> Step {
    let message = turn.new_id("message");
    let call = turn.new_id("call");
    turn.tell(&json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": "Flood", "kind": "other"}))?;
    for n in 0_u64.. {
        let update = match n % 4 {
            0 => json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
                "content": {"type": "text", "text": format!("wave {n} ")}}),
            1 => json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "in_progress",
                "title": format!("Flood, wave {n}")}),
            2 => json!({"sessionUpdate": "plan", "entries": [
                {"content": format!("Wave {n}"), "priority": "low", "status": "in_progress"}]}),
            _ => json!({"sessionUpdate": "usage_update", "used": n % 32_000, "size": 32_000}),
        };
        turn.tell(&update)?;
    }
    Ok(())
}

/// Neither answers nor hears a cancel, until the process ends.
pub(super) fn hang() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

pub(super) fn crash(turn: &Turn) -> Step {
    turn.say("I end now, without an answer and with words on stderr.\n")?;
    turn.pause(300)?;
    turn.save();
    (turn.agent.settings.crash)();
    turn.check()
}

/// Lines that are no messages, and messages that nobody knows.
pub(super) fn garbage(turn: &Turn) -> Step {
    let peer = &turn.agent.peer;
    turn.say("Here comes garbage.\n\n")?;
    let lines: &[&[u8]] = &[
        b"this line is no JSON\n",
        b"\n",
        b"   \r\n",
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"_demo/after_a_bom\",\"params\":{}}\n",
        b"bytes that are no UTF-8: \xff\xfe\xfa\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"session/upd\n",
        b"[]\n",
        b"42\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\"}\n",
    ];
    for line in lines {
        turn.check()?;
        peer.send_bytes(line);
    }
    peer.notify("demo/unheard_of", &json!({}));
    turn.tell(&json!({"sessionUpdate": "demo_surprise", "text": "An update that nobody knows."}))?;
    turn.tell(
        &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "data": "?"}}),
    )?;
    turn.tell(&json!({"sessionUpdate": "plan", "entries": [{"content": 7}, "not an entry"]}))?;
    turn.tell(&json!("an update that is no object"))?;
    let refused = turn.request("demo/unheard_of_request", json!({}))?;
    let heard = match refused {
        Err(why) => format!("refused it: *{why}*"),
        Ok(_) => "answered it, which is odd".to_owned(),
    };
    turn.say(&format!(
        "Ten lines that are no messages, and five messages that make no sense. I also asked something \
         that no client knows; this one {heard}. If you can read this, the connection survived.\n"
    ))
}
