//! Tests of restoring chosen settings when a session is reopened.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn modes(current: &str) -> Modes {
    let mode = |id: &str| Mode { id: id.into(), name: id.to_owned(), description: None };
    Modes { current: current.into(), available: vec![mode("full"), mode("read-only"), mode("plan")] }
}

fn reported(current: &str) -> Reply {
    let id = Some(SessionId::from(ID));
    Reply::Session(SessionReply { id, modes: Some(modes(current)), ..SessionReply::default() })
}

/// A session in a mode chosen by the user.
fn read_only() -> TestCore {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(reported("full")));
    app.flow(|state, cx| operations::set_mode(state, KEY, "read-only".into(), cx));
    app.reply(Ok(Reply::Done)).submit("look").end_turn(StopReason::EndTurn);
    app.fx.clear();
    app
}

fn again(app: &mut TestCore, reply: Reply) {
    app.crash().handshake(all_capabilities());
    app.fx.clear();
    app.reply(Ok(reply));
}

fn current(app: &TestCore) -> String {
    app.session().modes.as_ref().map(|modes| modes.current.to_string()).unwrap_or_default()
}

#[test]
fn a_chosen_mode_is_restored_after_a_crash_before_prompts_are_sent() {
    for reply in [Reply::Done, reported("full")] {
        let mut app = read_only();
        again(&mut app, reply);
        app.submit("go on").expect_sent("call mode read-only");
        app.reply(Ok(Reply::Done)).expect_sent("call prompt \"go on\"");
        assert_eq!(current(&app), "read-only");
    }
    // Nothing is sent if the agent reports it as current.
    let mut app = read_only();
    again(&mut app, reported("read-only"));
    app.submit("go on").expect_sent("call prompt \"go on\"");
}

#[test]
fn only_chosen_settings_and_changes_of_the_agent_are_restored() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(reported("full")));
    app.submit("look").end_turn(StopReason::EndTurn);
    again(&mut app, reported("plan"));
    app.expect_sent("");
    assert_eq!(current(&app), "plan");
    let mut app = read_only();
    app.update(SessionUpdate::Mode("plan".into()));
    again(&mut app, Reply::Done);
    app.expect_sent("call mode plan");
}

#[test]
fn a_setting_that_cannot_be_restored_is_reported_and_holds_prompts() {
    let mut app = read_only();
    app.submit("change it").crash().handshake(all_capabilities());
    app.submit("and more").reply(Ok(Reply::Done));
    app.fx.clear();
    app.fail(-32602, "no such mode").expect_sent("");
    let reported = digest(app.session());
    assert!(reported.contains("Some settings could not be set."), "{reported}");
    assert_eq!(app.queue(), ["and more"]);
    app.submit("all the same").expect_sent("call prompt \"all the same\"");
}

#[test]
fn a_replacement_session_gets_the_settings_of_the_previous_one() {
    let mut app = read_only();
    app.crash().handshake(AgentCapabilities::default());
    app.fx.clear();
    app.reply(Ok(reported("full"))).expect_sent("call mode read-only");
    // Another agent has separate settings.
    let mut app = read_only();
    let other = spec("other");
    app.flow(|state, cx| operations::start_agent(state, KEY, other, cx));
    app.handshake(all_capabilities());
    app.fx.clear();
    app.reply(Ok(reported("full"))).expect_sent("");
}

#[test]
fn a_chosen_option_is_restored_with_its_last_reported_value() {
    let option = |current: &str| ConfigOption {
        id: "effort".into(),
        name: "Effort".into(),
        description: None,
        category: None,
        kind: ConfigKind::Select {
            current: current.to_owned(),
            choices: ["low", "high", "most"]
                .map(|value| ConfigChoice {
                    value: value.to_owned(),
                    name: value.to_owned(),
                    description: None,
                    group: None,
                })
                .to_vec(),
        },
    };
    let session = |current| {
        let id = Some(SessionId::from(ID));
        Reply::Session(SessionReply { id, options: vec![option(current)], ..SessionReply::default() })
    };
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(session("low")));
    let high = ConfigValue::Text("high".to_owned());
    app.flow(|state, cx| operations::set_option(state, KEY, "effort".into(), high, cx));
    app.reply(Ok(Reply::Options(vec![option("most")])));
    app.submit("look").end_turn(StopReason::EndTurn);
    again(&mut app, session("low"));
    app.expect_sent("call option effort Text(\"most\")");
}

#[test]
fn restoring_settings_detects_a_lost_session_and_continues_in_the_replacement() {
    let mut app = read_only();
    app.submit("change it").crash().handshake(all_capabilities());
    let doubtful = SessionReply { is_provisional: true, ..SessionReply::default() };
    app.reply(Ok(Reply::Session(doubtful)));
    app.fx.clear();
    app.fail(-32600, "Session not found: s").expect_sent("call new");
    app.reply(Ok(reported("full"))).expect_sent("call mode read-only");
    app.reply(Ok(Reply::Done));
    assert_eq!(current(&app), "read-only");
    let reported = digest(app.session());
    assert!(reported.contains("The agent could not restore this conversation."), "{reported}");
    assert!(!reported.contains("could be set again"), "{reported}");
}

#[test]
fn a_prompt_waits_for_the_mode_chosen_before_it() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(reported("full")));
    app.fx.clear();
    let choose = |app: &mut TestCore, mode: &str| {
        let mode = ModeId::from(mode.to_owned());
        app.flow(|state, cx| operations::set_mode(state, KEY, mode, cx));
    };
    choose(&mut app, "read-only");
    app.submit("look").expect_sent("call mode read-only");
    app.reply(Ok(Reply::Done)).expect_sent("call prompt \"look\"");
    // During a turn the queue waits for the end of the turn.
    choose(&mut app, "full");
    app.submit("more").expect_sent("call mode full");
    app.reply(Ok(Reply::Done)).expect_sent("");
    app.end_turn(StopReason::EndTurn);
    assert!(app.sent().contains("prompt \"more\""));
    app.end_turn(StopReason::EndTurn);
    app.fx.clear();
    // Prompts for a mode that could not be set stay in the queue.
    choose(&mut app, "plan");
    app.submit("plan it").fail(-32602, "not now").expect_sent("call mode plan");
    assert_eq!(app.queue(), ["plan it"]);
    assert!(app.state.flash.as_deref().is_some_and(|text| text.contains("not now")), "{:?}", app.state.flash);
    // A title does not hold prompts, and requests to a crashed agent are dropped.
    choose(&mut app, "plan");
    app.crash().handshake(all_capabilities()).reply(Ok(reported("full")));
    app.fx.clear();
    app.flow(|state, cx| operations::set_title(state, KEY, "T".to_owned(), cx));
    app.submit("again");
    assert!(app.sent().contains("prompt \"again\""));
}

#[test]
fn a_setting_no_longer_offered_is_reported_and_holds_prompts() {
    let mut app = read_only();
    app.crash().submit("change it").handshake(all_capabilities());
    app.fx.clear();
    let mode = Mode { id: "full".into(), name: "full".to_owned(), description: None };
    let modes = Modes { current: "full".into(), available: vec![mode] };
    app.reply(Ok(Reply::Session(SessionReply { modes: Some(modes), ..SessionReply::default() })));
    app.expect_sent("");
    let is_reported = |notice: &String| notice.contains(" The agent no longer offers: mode read-only.");
    assert!(app.notices().iter().any(is_reported), "{:?}", app.notices());
    assert_eq!(app.queue(), ["change it"]);
}

#[test]
fn a_model_reported_by_the_agent_is_not_restored() {
    let model = |id: &str| Model { id: id.into(), name: id.to_owned(), description: None };
    let session = |current: &str| {
        let models = Models { current: current.into(), available: vec![model("old"), model("new")] };
        let id = Some(SessionId::from(ID));
        Reply::Session(SessionReply { id, models: Some(models), ..SessionReply::default() })
    };
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(session("old")));
    app.update(SessionUpdate::Model("old".into()));
    app.submit("look").end_turn(StopReason::EndTurn);
    again(&mut app, session("new"));
    app.expect_sent("");
    // A chosen one is restored, even if the agent changed it later.
    app.flow(|state, cx| operations::set_model(state, KEY, "old".into(), cx));
    app.reply(Ok(Reply::Done));
    app.update(SessionUpdate::Model("new".into()));
    again(&mut app, session("old"));
    app.expect_sent("call model new");
}

/// A mode was chosen, followed by a prompt.
fn waiting() -> TestCore {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(reported("full")));
    app.flow(|state, cx| operations::set_mode(state, KEY, "read-only".into(), cx));
    let timer = Effect::Timer(TimerId::SettingOverdue(KEY), std::time::Duration::from_secs(10));
    assert!(app.fx.contains(&timer), "{:?}", app.fx);
    app.fx.clear();
    app.submit("look").expect_sent("");
    app
}

#[test]
fn a_prompt_waits_ten_seconds_for_a_mode_and_is_then_sent() {
    let mut app = waiting();
    assert_eq!(app.session().pending_setting(), Some("mode"));
    app.play(Event::Timer(TimerId::SettingOverdue(KEY))).expect_sent("call prompt \"look\"");
    assert_eq!(app.session().pending_setting(), None);
    let reported = digest(app.session());
    assert!(reported.contains("The agent has not confirmed the new mode."), "{reported}");
    // A late response is applied, without holding prompts.
    app.fx.clear();
    app.end_turn(StopReason::EndTurn);
    app.submit("more").expect_sent("call prompt \"more\"");
}

#[test]
fn a_timer_of_an_answered_change_sends_nothing() {
    let mut app = waiting();
    app.reply(Ok(Reply::Done)).expect_sent("call prompt \"look\"");
    let before = digest(app.session());
    app.play(Event::Timer(TimerId::SettingOverdue(KEY))).expect_sent("");
    assert_eq!(digest(app.session()), before);
}

#[test]
fn a_refused_mode_holds_the_prompt_and_shows_how_to_send_it() {
    let mut app = waiting();
    app.fail(-32602, "not now").expect_sent("");
    assert_eq!(
        app.state.flash.as_deref(),
        Some("Change failed: not now. Send an empty prompt to run the queue")
    );
    app.submit("").expect_sent("call prompt \"look\"");
}

#[test]
fn settings_restored_after_a_crash_hold_prompts_without_a_limit() {
    let mut app = read_only();
    again(&mut app, Reply::Done);
    app.submit("go on").expect_sent("call mode read-only");
    app.play(Event::Timer(TimerId::SettingOverdue(KEY))).expect_sent("");
    assert_eq!(app.session().pending_setting(), Some("mode"));
    app.reply(Ok(Reply::Done)).expect_sent("call prompt \"go on\"");
}

/// A session that opens with these settings of the command line, and a prompt that waits for them.
fn named(model: Option<&str>, mode: Option<&str>) -> TestCore {
    let mut app = TestCore::started();
    let named = NamedSettings { model: model.map(str::to_owned), mode: mode.map(str::to_owned) };
    app.session_mut().settings.name(named);
    app.handshake(all_capabilities()).submit("go");
    app.fx.clear();
    app
}

#[test]
fn a_named_mode_is_set_before_the_first_prompt() {
    for name in ["read-only", "READ-ONLY", "read"] {
        let mut app = named(None, Some(name));
        app.reply(Ok(reported("full"))).expect_sent("call mode read-only");
        app.reply(Ok(Reply::Done)).expect_sent("call prompt \"go\"");
        assert_eq!(current(&app), "read-only");
    }
    let mut app = named(None, Some("full"));
    app.reply(Ok(reported("full"))).expect_sent("call prompt \"go\"");
}

#[test]
fn a_named_setting_that_is_not_offered_holds_the_prompt() {
    let cases = [
        (None, Some("yolo"), "The agent has no mode “yolo”. It offers: full, read-only, plan."),
        (None, Some("l"), "Several modes match “l”: full, read-only, plan."),
        (Some("opus"), None, "This agent has no list of models. Configure the model in the agent itself."),
    ];
    for (model, mode, problem) in cases {
        let mut app = named(model, mode);
        app.reply(Ok(reported("full"))).expect_sent("");
        let expected = format!("Some settings could not be set. {problem}");
        let is_reported = |notice: &String| notice.starts_with(&expected);
        assert!(app.notices().iter().any(is_reported), "{:?}", app.notices());
        app.submit("all the same").expect_sent("call prompt \"all the same\"");
    }
}

#[test]
fn a_named_model_is_looked_up_in_the_option_that_takes_precedence() {
    let option = ConfigOption {
        id: "m".into(),
        name: "Model".into(),
        description: None,
        category: Some("model".into()),
        kind: ConfigKind::Select {
            current: "a-1".into(),
            choices: [("a-1", "Fast"), ("b-2", "Best")]
                .map(|(value, name)| ConfigChoice {
                    value: value.to_owned(),
                    name: name.to_owned(),
                    description: None,
                    group: None,
                })
                .into(),
        },
    };
    let mut app = named(Some("best"), None);
    let id = Some(SessionId::from(ID));
    let reply = SessionReply { id, options: vec![option], ..SessionReply::default() };
    app.reply(Ok(Reply::Session(reply)));
    app.expect_sent("call option m Text(\"b-2\")");
}
