//! `parlor usage`: what each agent took and cost, by day.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::sessions::time;
use crate::host::when;
use crate::model::{Cost, Used};
use crate::store::{Store, UsedAt, pretty};
use crate::ui::render_context::{cost_text, duration, with_commas};
use crate::ui::text::{self, one_line, truncate};

/// Maximum width of an agent's name, in columns.
const NAME_COLS: usize = 24;

#[derive(Serialize)]
struct JsonRow<'a> {
    date: &'a str,
    agent: &'a str,
    #[serde(flatten)]
    used: &'a Used,
}

/// A table, or a JSON array, of the turns since a date or an age.
pub fn report(store: &Store, since: &str, is_json: bool) -> anyhow::Result<String> {
    let since_ms = time::parse(since, time::now_ms())?;
    Ok(text_of(&store.usage(since_ms)?, is_json))
}

fn text_of(entries: &[UsedAt], is_json: bool) -> String {
    let mut days: BTreeMap<(String, &str), Used> = BTreeMap::new();
    let mut agents: BTreeMap<&str, Used> = BTreeMap::new();
    for (agent, at_ms, used) in entries {
        days.entry((when::date(*at_ms), agent)).or_default().add(used);
        agents.entry(agent).or_default().add(used);
    }
    if is_json {
        let rows = days.iter().map(|((date, agent), used)| JsonRow { date, agent, used });
        return pretty(&rows.collect::<Vec<_>>());
    }
    if days.is_empty() {
        return "No turns in this period.\n".to_owned();
    }
    let head = ["Date", "Agent", "Turns", "Calls", "Time", "Input", "Cached", "Output", "Cost"];
    let days = days.iter().map(|((date, agent), used)| row(date, agent, used));
    let agents = agents.iter().map(|(agent, used)| row("Total", agent, used));
    table(&[head.map(str::to_owned)].into_iter().chain(days).chain(agents).collect::<Vec<_>>())
}

fn row(date: &str, agent: &str, used: &Used) -> [String; 9] {
    let number = |count: u64| with_commas(usize::try_from(count).unwrap_or(usize::MAX));
    let tokens = |count: Option<u64>| count.map_or("-".to_owned(), number);
    let cost = |(currency, amount): (&String, &f64)| {
        cost_text(&Cost { amount: *amount, currency: currency.clone() })
    };
    let costs: Vec<String> = used.costs.iter().map(cost).collect();
    [
        date.to_owned(),
        truncate(&one_line(agent), NAME_COLS),
        number(used.turns),
        number(used.calls),
        duration(Duration::from_millis(used.took_ms)),
        tokens(used.input_tokens),
        tokens(used.cached_tokens),
        tokens(used.output_tokens),
        if costs.is_empty() { "-".to_owned() } else { costs.join(", ") },
    ]
}

/// Aligns date and agent to the left, and numbers to the right.
fn table(rows: &[[String; 9]]) -> String {
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| text::width(cell)).max();
    let widths: Vec<usize> = (0..9).map(|column| width(column).unwrap_or(0)).collect();
    let mut table = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let space = " ".repeat(width.saturating_sub(text::width(cell)));
            if column < 2 { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::sessions::tests::Fixture;
    use crate::model::*;
    use crate::store::{ListFilter, Recorder};

    fn turn(agent: &str, at_ms: i64, tokens: Option<u64>, cost: Option<(f64, &str)>) -> UsedAt {
        let mut used = Used { turns: 1, took_ms: 90_000, input_tokens: tokens, ..Used::default() };
        let cost = cost.map(|(amount, currency)| Cost { amount, currency: currency.to_owned() });
        used.add_cost(cost.as_ref());
        (agent.to_owned(), at_ms, used)
    }

    #[test]
    fn turns_are_added_by_day_and_agent() {
        let day = 86_400_000;
        let turns = [
            turn("codex", day, None, None),
            turn("claude\u{1b}[31m", day, Some(1_234), Some((0.5, "USD"))),
            turn("claude\u{1b}[31m", day, None, Some((0.25, "USD"))),
            turn("codex", 3 * day, Some(7), Some((2.0, "credits"))),
        ];
        insta::assert_snapshot!(text_of(&turns, false));
        let json: serde_json::Value = serde_json::from_str(&text_of(&turns, true)).unwrap();
        assert_eq!(json[0]["turns"], 2);
        assert_eq!(json[0]["costs"]["USD"], 0.75);
        assert!(json[1]["input_tokens"].is_null());
    }

    #[test]
    fn a_period_without_turns_says_so() {
        assert_eq!(text_of(&[], false), "No turns in this period.\n");
        assert_eq!(text_of(&[], true), "[]\n");
    }

    #[test]
    fn turns_and_calls_of_the_store_are_counted() {
        let fixture = Fixture::new();
        let call = |id: &str| Record::Update(SessionUpdate::Tool(Box::new(ToolCallPatch::new(id.into()))));
        let usage = TurnUsage { input_tokens: 100, output_tokens: 20, ..TurnUsage::default() };
        let cost = Some(Cost { amount: 0.5, currency: "USD".to_owned() });
        let outcome =
            TurnOutcome::Stopped { reason: StopReason::EndTurn, usage: Some(usage), took_ms: 60_000, cost };
        let records = vec![call("a"), call("b"), call("a"), Record::TurnEnded(outcome)];
        let saved_as = fixture.record_all("/w", "go", records);
        // A fork has a copy of the turn.
        let (services, _events) = tokio::sync::mpsc::unbounded_channel();
        let mut recorder = Recorder::new(fixture.store.clone(), services);
        let head = SessionHead { agent: "fake".to_owned(), ..SessionHead::default() };
        let came_from =
            Note::CameFrom { session: SessionKey(1), saved_as: Some(saved_as), copied_turns: Some(1) };
        let more = Note::Event { turn: 2, record: Box::new(call("d")) };
        recorder.keep(SessionKey(2), vec![Note::Head(Box::new(head)), came_from, more]);
        assert_eq!(recorder.finish(), None);
        let copies = fixture.store.list(&ListFilter::default()).unwrap();
        assert_eq!(copies.len(), 2, "{copies:?}");
        let mut sum = Used::default();
        for (_, _, used) in fixture.store.usage(0).unwrap() {
            sum.add(&used);
        }
        assert_eq!((sum.turns, sum.calls, sum.took_ms), (1, 2, 60_000));
        assert_eq!((sum.input_tokens, sum.output_tokens), (Some(100), Some(20)));
        assert_eq!(fixture.store.used_since(0).unwrap(), sum);
        assert_eq!(fixture.store.used_since(i64::MAX).unwrap(), Used::default());
        // A running turn and its calls do not count yet.
        fixture.record_all("/w", "run", vec![call("c")]);
        assert_eq!(fixture.store.used_since(0).unwrap().calls, 2);
    }
}
