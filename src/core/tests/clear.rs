//! Tests of `/clear`.

use super::recorder::{answered, items, reopened, saved_session};
use super::support::*;
use crate::core::*;
use crate::model::*;

/// An app whose agent has a `/clear` command.
fn clearing() -> TestCore {
    let mut app = TestCore::talked();
    let command = SlashCommand { name: "clear".into(), description: String::new(), hint: None };
    app.update(SessionUpdate::Commands(vec![command]));
    app.fx.clear();
    app
}

#[test]
fn clear_replaces_the_session_if_the_agent_has_no_such_command() {
    let mut app = TestCore::talked();
    app.session_mut().settings.choose(Setting::Mode("plan".into()));
    app.draft("a thought");
    app.submit("go").submit("/clear").submit("and then").fx.clear();
    app.end_turn(StopReason::EndTurn).expect_sent("call close s\ncall new");
    let [session] = app.state.sessions.values().collect::<Vec<_>>()[..] else { panic!("one session") };
    let key = session.key;
    assert_ne!(key, KEY);
    assert_eq!((session.rank, session.draft.as_str(), app.state.active), (KEY.0, "a thought", key));
    assert_eq!(session.settings.chosen(), [Setting::Mode("plan".into())]);
    assert_eq!(
        digest(session),
        "opening · idle · queue [\"and then\"]\nnotice Info: New session with an empty context. Previous session: hello"
    );
    // The queued prompt is the first one of the new session, with the chosen mode.
    let mut answer = |reply, expected| {
        app.reply_to(CONN, Ok(reply)).expect_sent(expected);
    };
    let opened = SessionReply { id: Some("t".into()), ..SessionReply::default() };
    answer(Reply::Session(opened), "call mode plan");
    answer(Reply::Done, "call prompt \"and then\"");
}

#[test]
fn an_empty_session_is_not_replaced() {
    let mut app = TestCore::ready();
    app.submit("/clear").expect_sent("");
    assert_eq!(app.state.active, KEY);
    assert_eq!(app.state.flash.as_deref(), Some("The context is already empty."));
    // Other texts are prompts.
    app.submit("/clear the cache").expect_sent("call prompt \"/clear the cache\"");
}

#[test]
fn clear_of_the_agent_is_sent_and_marked() {
    let mut app = clearing();
    app.submit("/clear").expect_sent("call prompt \"/clear\"");
    app.end_turn(StopReason::EndTurn);
    app.expect("ready · idle\nuser* \"hello\"\nnotice Info: The agent returned an empty response.\nuser* \"/clear\"\nnotice Info: Context cleared");
    // It is recorded.
    let mut again = Session::new(KEY, SessionWorkspace::default());
    restore(&mut again, saved_session(&mut app), app.now);
    assert_eq!(items(&again).last().map(String::as_str), Some("notice Info: Context cleared"));
    // A failed command has cleared nothing.
    let mut app = clearing();
    app.submit("/clear").fail(-32603, "overloaded");
    assert!(!digest(app.session()).contains("Context cleared"));
}

#[test]
fn after_clear_the_history_is_compared_and_what_the_agent_lacks_is_marked() {
    let reported = |prompt: &str| vec![text(Role::User, prompt), says(&format!("Reply to {prompt}"))];
    let saved = |prompts: &[&str]| {
        let mut app = TestCore::started();
        app.handshake(all_capabilities()).open(ID);
        let clear = SlashCommand { name: "clear".into(), description: String::new(), hint: None };
        app.update(SessionUpdate::Commands(vec![clear]));
        for prompt in prompts {
            app.submit(prompt).update(says(&format!("Reply to {prompt}"))).end_turn(StopReason::EndTurn);
        }
        saved_session(&mut app)
    };
    let cleared = saved(&["the word is blue", "/clear", "the word is green"]);
    let mut app = reopened(cleared.clone(), "fake");
    app.fx.clear();
    app.handshake(all_capabilities()).expect_sent("call load s");
    app.updates(reported("the word is blue"));
    answered(&mut app);
    app.wait(3).play(Event::Timer(TimerId::History(KEY)));
    for _ in 0..8 {
        app.play(Event::Timer(TimerId::History(KEY)));
    }
    let last = items(app.session()).pop().unwrap();
    assert_eq!(last, "notice Info: The agent's history could not be matched with this record.");
}

#[test]
fn a_plan_in_a_new_context_is_marked() {
    let usage = |used_tokens| SessionUpdate::Usage(Usage { used_tokens, size_tokens: 200_000, cost: None });
    let call = |kind| {
        let mut patch = ToolCallPatch::new("t".into());
        (patch.kind, patch.status) = (Patch::Set(kind), Patch::Set(ToolStatus::Completed));
        SessionUpdate::Tool(Box::new(patch))
    };
    let run = |kind, reports: &[u64]| {
        let mut app = TestCore::talked();
        app.submit("plan it").update(call(kind));
        for used in reports {
            app.update(usage(*used));
        }
        app.update(says("Done.")).end_turn(StopReason::EndTurn);
        app
    };
    let mut app = run(ToolKind::SwitchMode, &[5000, 0, 0, 4000]);
    let shown = items(app.session());
    assert_eq!(shown.iter().filter(|item| item.contains("Context cleared")).count(), 1, "{shown:?}");
    let [.., mark, reply] = shown.as_slice() else { panic!("{shown:?}") };
    assert!(mark.contains("Context cleared") && reply.contains("Done."), "{shown:?}");
    // It is recorded, and the agent's history is compared when the session is resumed.
    let mut again = reopened(saved_session(&mut app), "fake");
    again.fx.clear();
    again.handshake(all_capabilities()).expect_sent("call load s");
    // An empty context means nothing else elsewhere.
    for (kind, reports) in [(ToolKind::Execute, [5000, 0]), (ToolKind::SwitchMode, [0, 0])] {
        let app = run(kind, &reports);
        assert!(!digest(app.session()).contains("Context cleared"), "{kind:?}");
    }
}
