//! Replays in the forms of real agents, for a session that was recorded live: the shown and saved transcript is that of
//! the live session at each moment, and the next prompt continues below it.
//!
//! The forms were observed with real agents; the texts are made up.

use std::fs;
use std::path::Path;
use std::time::Instant;

use parlor::core::Session;
use parlor::core::restore;
use parlor::model::{SessionKey, SessionWorkspace};
use parlor::store::{ListFilter, Store};

use super::nonstandard::scripted_agent;
use super::rig::{Rig, agent, digest};

const ANSWER: &str = "< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}\n";
const END: &str = "< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}}\n";
const PROMPT: &str = "> \"session/prompt\"\n";

/// The supported call to reopen the session.
#[derive(Clone, Copy, PartialEq)]
enum Offers {
    Load,
    Resume,
}

fn initialize(offers: Offers) -> String {
    let capabilities = match offers {
        Offers::Load => r#"{"loadSession":true}"#,
        Offers::Resume => r#"{"sessionCapabilities":{"resume":{}}}"#,
    };
    format!(
        "> \"initialize\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"protocolVersion\":1,\
         \"agentCapabilities\":{capabilities}}}}}\n"
    )
}

fn update(body: &str) -> String {
    format!(
        "< {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{body}}}}}\n"
    )
}

/// A chunk of a message: role, id (none if empty), text.
fn chunk(kind: &str, id: &str, text: &str) -> String {
    let id = if id.is_empty() { String::new() } else { format!("\"messageId\":\"{id}\",") };
    update(&format!(
        "{{\"sessionUpdate\":\"{kind}_chunk\",{id}\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}"
    ))
}

fn user(id: &str, text: &str) -> String {
    chunk("user_message", id, text)
}

fn says(id: &str, text: &str) -> String {
    chunk("agent_message", id, text)
}

fn thinks(id: &str, text: &str) -> String {
    chunk("agent_thought", id, text)
}

fn call(update_kind: &str, status: &str, title: &str) -> String {
    update(&format!(
        "{{\"sessionUpdate\":\"{update_kind}\",\"toolCallId\":\"t-1\",\"title\":\"{title}\",\"kind\":\"execute\",\
         \"status\":\"{status}\",\"content\":[{{\"type\":\"content\",\"content\":{{\"type\":\"text\",\
         \"text\":\"three lines\"}}}}]}}"
    ))
}

/// Two turns as they are sent live, in small chunks; with or without message ids.
fn live(has_ids: bool, offers: Offers) -> String {
    let id = |name: &'static str| if has_ids { name } else { "" };
    [
        initialize(offers),
        "> \"session/new\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s\"}}\n".to_owned(),
        PROMPT.to_owned(),
        thinks(id("a0"), "The lines are "),
        thinks(id("a0"), "to be counted."),
        says(id("a1"), "I count "),
        says(id("a1"), "the lines "),
        says(id("a1"), "of the file."),
        call("tool_call", "pending", "Terminal"),
        call("tool_call_update", "in_progress", "wc notes.txt"),
        call("tool_call_update", "completed", "wc notes.txt"),
        says(id("a2"), "There are "),
        says(id("a2"), "**three** of them."),
        END.to_owned(),
        PROMPT.to_owned(),
        says(id("a3"), "They say:\\n\\n"),
        says(id("a3"), "- one\\n- two\\n"),
        says(id("a3"), "- three, and that is all"),
        END.to_owned(),
    ]
    .concat()
}

const FIRST: &str = "count the lines of notes.txt";
const SECOND: &str = "and what do they say";

/// The same two turns with one chunk for each message.
fn whole(has_ids: bool) -> [String; 2] {
    let id = |name: &'static str| if has_ids { name } else { "" };
    [
        [
            user(id("u1"), FIRST),
            thinks(id("a0"), "The lines are to be counted."),
            says(id("a1"), "I count the lines of the file."),
            call("tool_call", "pending", "wc notes.txt"),
            call("tool_call_update", "completed", "wc notes.txt"),
            says(id("a2"), "There are **three** of them."),
        ]
        .concat(),
        [user(id("u2"), SECOND), says(id("a3"), "They say:\\n\\n- one\\n- two\\n- three, and that is all")]
            .concat(),
    ]
}

/// Reopens the session: the updates before the response to the call, and after it.
fn again(offers: Offers, before: &str, after: &str) -> String {
    let call = if offers == Offers::Load { "session/load" } else { "session/resume" };
    let third = [PROMPT, &says("a9", "I still know all of it."), END].concat();
    format!("{}> \"{call}\"\n{before}{ANSWER}{after}{third}", initialize(offers))
}

struct Case {
    _folder: tempfile::TempDir,
    work: tempfile::TempDir,
    store: Store,
    script: std::path::PathBuf,
}

impl Case {
    fn new() -> Self {
        let (folder, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Store::open(folder.path().join("data")).unwrap();
        let script = folder.path().join("script");
        Self { _folder: folder, work, store, script }
    }

    fn start(&self, script: &str, uid: Option<&str>) -> Rig {
        fs::write(&self.script, script).unwrap();
        let spec = agent(scripted_agent(), &[self.script.to_str().unwrap()]);
        Rig::start_kept(self.work.path(), spec, &self.store, uid)
    }

    /// Plays the two turns live, and returns the session's id in the store and the shown transcript.
    fn live(&self, script: &str) -> (String, String) {
        let mut rig = self.start(script, None);
        rig.wait_ready();
        rig.ask(FIRST);
        rig.ask(SECOND);
        let shown = rig.text();
        rig.quit_and_keep();
        let rows = self.store.list(&ListFilter::default()).unwrap();
        assert_eq!(rows.len(), 1);
        (rows[0].uid.clone(), shown)
    }

    fn saved(&self, uid: &str) -> String {
        let (_, saved) = self.store.peek(uid).unwrap();
        let mut session = Session::new(SessionKey(1), SessionWorkspace::default());
        restore(&mut session, saved, Instant::now());
        digest(&session)
    }
}

fn is_over(rig: &mut Rig) {
    rig.wait("the end of the replay", |state| {
        let session = &state.sessions[&state.active];
        !session.holds_prompts()
    });
}

/// Plays a replay, and sends another prompt.
fn check(live: &str, again: &str) {
    let case = Case::new();
    let (uid, shown) = case.live(live);
    assert_eq!(case.saved(&uid), shown, "the saved transcript is the shown one");
    let mut rig = case.start(again, Some(&uid));
    assert_eq!(rig.text(), shown, "the transcript is shown before the agent has started");
    rig.wait_ready();
    is_over(&mut rig);
    assert_eq!(rig.seen, [shown.as_str()], "the transcript did not change in between");
    rig.ask("do you still know it");
    let longer = format!("{shown}\nuser: do you still know it\nagent: I still know all of it.");
    assert_eq!(rig.text(), longer);
    rig.quit_and_keep();
    assert_eq!(case.saved(&uid), longer);
    assert_eq!(case.store.count().unwrap(), 1);
}

#[test]
fn replay_of_complete_messages_with_their_live_ids() {
    let history = whole(true).concat();
    check(&live(true, Offers::Load), &again(Offers::Load, &history, ""));
}

#[test]
fn replay_of_complete_messages_without_ids() {
    let history = whole(false).concat();
    check(&live(false, Offers::Load), &again(Offers::Load, &history, ""));
}

/// The replay has new message ids; calls have the name of their tool as title and are completed at once.
#[test]
fn replay_of_complete_messages_with_new_ids() {
    let history = [
        user("r1", FIRST),
        thinks("r2", "The lines are to be counted."),
        says("r3", "I count the lines of the file."),
        call("tool_call", "completed", "exec"),
        call("tool_call_update", "completed", "exec"),
        says("r4", "There are **three** of them."),
        user("r5", SECOND),
        says("r6", "They say:\\n\\n- one\\n- two\\n- three, and that is all"),
    ];
    check(&live(true, Offers::Load), &again(Offers::Load, &history.concat(), ""));
}

/// One message for all of a turn, without thoughts and tool calls.
#[test]
fn replay_with_one_message_per_turn() {
    let history = [
        user("", FIRST),
        says("", "I count the lines of the file.\\n\\nThere are **three** of them."),
        user("", SECOND),
        says("", "They say:\\n\\n- one\\n- two\\n- three, and that is all"),
    ];
    check(&live(false, Offers::Load), &again(Offers::Load, &history.concat(), ""));
}

/// First the agent's context, then the response, then the history with thoughts in chunks, and with user messages that
/// are tool results.
#[test]
fn replay_that_continues_after_the_response() {
    let context = user("", "<session_context>\\nThe folder is small. Today is Monday.\\n</session_context>");
    let [_, second] = whole(false);
    let first = [
        user("", FIRST),
        thinks("", "****\\nThe lines "),
        thinks("", "****\\nare to be counted."),
        says("", "I count the lines of the file."),
        call("tool_call", "completed", "Shell"),
        user("", "[Function Response: run_shell_command]"),
        says("", "There are **three** of them."),
    ];
    let after = format!("{}{second}", first.concat());
    check(&live(false, Offers::Load), &again(Offers::Load, &context, &after));
}

#[test]
fn replay_on_resume() {
    let history = whole(false).concat();
    check(&live(false, Offers::Resume), &again(Offers::Resume, &history, ""));
}

/// Messages that the agent adds in each run are not in a replay.
#[test]
fn replay_without_a_warning_of_the_live_session() {
    let warning = says("", "Warning: the model is not known.");
    let live = live(false, Offers::Load).replacen(PROMPT, &format!("{PROMPT}{warning}"), 1);
    let history = whole(false).concat();
    check(&live, &again(Offers::Load, &history, ""));
}

/// The rest of the history follows later, after the user has sent a prompt.
#[test]
fn a_prompt_sent_during_a_replay_waits_for_its_end() {
    let case = Case::new();
    let (uid, shown) = case.live(&live(false, Offers::Load));
    let [first, second] = whole(false);
    let mut rig = case.start(&again(Offers::Load, &first, &format!("@ go\n{second}")), Some(&uid));
    rig.wait_ready();
    rig.prompt("do you still know it");
    assert_eq!(rig.session().outbox.queue_len(), 1, "the prompt is queued");
    fs::write(Path::new(&case.script).with_file_name("go"), "").unwrap();
    rig.wait_text("agent: I still know all of it.");
    rig.wait_idle();
    let longer = format!("{shown}\nuser: do you still know it\nagent: I still know all of it.");
    assert_eq!(rig.text(), longer);
    rig.quit_and_keep();
    assert_eq!(case.saved(&uid), longer);
}
