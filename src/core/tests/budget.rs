//! Limits for a turn or a day.

use std::time::Duration;

use super::rules::{edits, runs};
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

/// A running turn with limits.
fn limited(limits: &[&str]) -> TestCore {
    let mut app = TestCore::ready();
    app.state.setup.saves_sessions = true;
    app.state.setup.budget = limits.iter().map(|text| Limit::parse(text).unwrap()).collect();
    app.submit("go");
    app
}

/// Lets time pass, and the timer of the limits run out.
fn after(app: &mut TestCore, seconds: u64) -> &mut TestCore {
    app.wait(seconds).play(Event::Timer(TimerId::Budget))
}

/// The notices about limits.
fn notices(app: &TestCore) -> Vec<&str> {
    let items = app.session().transcript.items().iter();
    let titles = items.filter_map(|item| match &item.body {
        ItemBody::Notice { title, .. } => Some(title.as_str()),
        _ => None,
    });
    titles.filter(|title| title.contains("limit")).collect()
}

fn call(id: &str) -> SessionUpdate {
    SessionUpdate::Tool(Box::new(ToolCallPatch::new(id.into())))
}

fn cost(amount: f64) -> SessionUpdate {
    let cost = Some(Cost { amount, currency: "USD".to_owned() });
    SessionUpdate::Usage(Usage { used_tokens: 1, size_tokens: 2, cost })
}

fn today(took_min: u64) -> StoreNews {
    StoreNews::UsedToday { day_ms: 1, used: Used { took_ms: took_min * 60_000, ..Used::default() } }
}

#[test]
fn a_turn_is_paused_at_its_limit_after_a_warning() {
    let mut app = limited(&["turn 10 min"]);
    let due = Duration::from_secs(480);
    assert!(app.fx.contains(&Effect::Timer(TimerId::Budget, due)), "{:?}", app.fx);
    after(&mut app, 480);
    assert_eq!(notices(&app), ["Near the limit of 10 min for a turn: 8 min used."]);
    assert!(app.state.questions.is_empty());
    after(&mut app, 120);
    assert_eq!(notices(&app)[1], "The limit of 10 min for a turn is reached: 10 min used.");
    assert_eq!(app.state.questions[0].title, "Limit of 10 min for a turn reached");
    assert_eq!(app.state.questions[0].answers[0].consequence, Consequence::Close);
}

#[test]
fn time_in_which_the_user_decides_does_not_count() {
    let mut app = limited(&["turn 10 min"]);
    app.wait(60).ask(1, edits("/code/shop/a.rs"));
    after(&mut app, 3600);
    assert!(notices(&app).is_empty());
    app.choose(Some(1));
    after(&mut app, 60);
    assert!(notices(&app).is_empty());
    after(&mut app, 600);
    assert_eq!(app.state.questions.len(), 1);
}

#[test]
fn while_a_turn_is_paused_nothing_is_changed() {
    let mut app = limited(&["turn 2 calls"]);
    app.update(call("a")).update(call("a"));
    assert!(app.state.questions.is_empty(), "the same call counts once");
    app.update(call("b"));
    app.sent();
    let write = AgentRequest::WriteFile {
        session: Some(ID.into()),
        path: "/code/shop/a".into(),
        content: "x".to_owned(),
    };
    app.ask(1, write).ask(2, runs("make"));
    app.choose(Some(1));
    assert_eq!(app.sent(), "", "neither the file nor the answer");
    app.decide(1);
    let sent = app.sent();
    assert!(sent.contains("file 1 /code/shop/a") && sent.contains("answer 2: selected once"), "{sent}");
    app.update(call("c"));
    assert!(app.state.questions.is_empty(), "the user chose to continue without this limit");
}

#[test]
fn a_paused_turn_can_be_decided_about_later_or_cancelled() {
    let mut app = limited(&["turn 1 call"]);
    app.update(call("a")).decide(0);
    assert!(app.state.questions.is_empty());
    app.submit("");
    assert_eq!(app.state.questions.len(), 1);
    app.sent();
    app.decide(2);
    assert!(app.sent().contains("cancel"));
    assert!(matches!(app.session().turn, Turn::Cancelling { .. }));
    app.end_turn(StopReason::Cancelled);
    assert!(app.session().budget.paused.is_none());
}

#[test]
fn the_question_goes_with_its_turn() {
    let mut app = limited(&["turn 1 call"]);
    app.update(call("a"));
    app.end_turn(StopReason::EndTurn);
    assert!(app.state.questions.is_empty());
    app.submit("again").update(call("b"));
    assert_eq!(app.state.questions.len(), 1, "each turn has its own count");
}

#[test]
fn the_cost_of_the_turn_counts_not_that_of_the_session() {
    let mut app = limited(&["turn 1 USD"]);
    app.update(cost(0.9)).end_turn(StopReason::EndTurn);
    app.submit("again").update(cost(1.5));
    assert_eq!(notices(&app), ["Near the limit of 1.00 USD for a turn: 0.90 USD used."]);
    app.update(cost(1.9));
    assert_eq!(app.state.questions.len(), 1);
}

#[test]
fn a_day_counts_all_turns_of_all_parlors() {
    let mut app = limited(&["day 100 min"]);
    assert!(app.fx.contains(&Effect::Store(StoreJob::UsedToday)));
    app.wait(600).end_turn(StopReason::EndTurn);
    // Another parlor has used 85 min; the store does not have the turn above yet.
    app.tell(today(85));
    app.submit("second");
    assert!(
        notices(&app)[0].starts_with("Near the limit of 100 min for a day: 85 min"),
        "{:?}",
        notices(&app)
    );
    after(&mut app, 15 * 60);
    assert_eq!(app.state.questions.len(), 1);
}

#[test]
fn at_the_limit_of_a_day_a_prompt_waits() {
    let mut app = limited(&["day 100 min"]);
    app.end_turn(StopReason::EndTurn).tell(today(100));
    app.sent();
    app.submit("more");
    assert_eq!(app.sent(), "");
    assert_eq!(app.session().outbox.queued(0).unwrap().text, "more");
    app.decide(0);
    assert_eq!(app.sent(), "", "it stays in the queue");
    app.submit("");
    app.decide(1);
    assert!(app.sent().contains("more"), "sent once the user says so");
    app.end_turn(StopReason::EndTurn).submit("third");
    assert!(app.sent().contains("third"), "the limit is passed for today");
}

#[test]
fn a_new_day_begins_anew() {
    let mut app = limited(&["day 100 min"]);
    app.end_turn(StopReason::EndTurn).tell(today(100));
    app.submit("more").decide(1);
    app.end_turn(StopReason::EndTurn);
    app.tell(StoreNews::UsedToday { day_ms: 2, used: Used::default() });
    app.submit("tomorrow");
    assert!(app.state.questions.is_empty());
    app.tell(StoreNews::UsedToday { day_ms: 2, used: Used { took_ms: 100 * 60_000, ..Used::default() } });
    after(&mut app, 1);
    assert_eq!(app.state.questions.len(), 1, "what was passed yesterday is not passed today");
}

#[test]
fn without_limits_nothing_is_read_or_timed() {
    let mut app = TestCore::running();
    app.update(call("a"));
    app.flow(|state, cx| operations::submit(state, KEY, "next".to_owned(), cx));
    let is_ours = |effect: &&Effect| {
        matches!(effect, Effect::Timer(TimerId::Budget, _) | Effect::Store(StoreJob::UsedToday))
    };
    assert_eq!(app.fx.iter().find(is_ours), None);
}
