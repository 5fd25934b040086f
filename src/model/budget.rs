//! Limits for the time, tool calls, tokens and cost of a turn or a day, and what was used of them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::{Cost, TurnOutcome};

const MINUTE_MS: f64 = 60_000.0;

/// What turns took and cost, as far as the agents reported it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Used {
    pub turns: u64,
    /// Tool calls.
    pub calls: u64,
    /// Running time without waiting for the user.
    pub took_ms: u64,
    /// `None`: no agent reported tokens.
    pub input_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Amounts by currency.
    pub costs: BTreeMap<String, f64>,
}

impl Used {
    pub fn of_call() -> Self {
        Self { calls: 1, ..Self::default() }
    }

    pub fn of_turn(outcome: &TurnOutcome) -> Self {
        let usage = outcome.usage();
        let cached = usage.and_then(|usage| sum(usage.cached_read_tokens, usage.cached_write_tokens));
        let mut used = Self {
            turns: 1,
            took_ms: outcome.took_ms(),
            input_tokens: usage.map(|usage| usage.input_tokens),
            cached_tokens: cached,
            output_tokens: usage.map(|usage| usage.output_tokens),
            ..Self::default()
        };
        used.add_cost(outcome.cost());
        used
    }

    pub fn add_cost(&mut self, cost: Option<&Cost>) {
        if let Some(cost) = cost.filter(|cost| cost.amount.is_finite() && cost.amount > 0.0) {
            *self.costs.entry(cost.currency.clone()).or_default() += cost.amount;
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.turns = self.turns.saturating_add(other.turns);
        self.calls = self.calls.saturating_add(other.calls);
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
        self.input_tokens = sum(self.input_tokens, other.input_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
        self.output_tokens = sum(self.output_tokens, other.output_tokens);
        for (currency, amount) in &other.costs {
            *self.costs.entry(currency.clone()).or_default() += amount;
        }
    }

    /// The larger value of each: two counts of the same turns, of which one or the other may lack the last ones.
    pub fn extend_to(&mut self, other: Self) {
        self.turns = self.turns.max(other.turns);
        self.calls = self.calls.max(other.calls);
        self.took_ms = self.took_ms.max(other.took_ms);
        self.input_tokens = self.input_tokens.max(other.input_tokens);
        self.cached_tokens = self.cached_tokens.max(other.cached_tokens);
        self.output_tokens = self.output_tokens.max(other.output_tokens);
        for (currency, amount) in other.costs {
            let known = self.costs.entry(currency).or_default();
            *known = known.max(amount);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
    fn amount(&self, measure: &Measure) -> f64 {
        match measure {
            Measure::Minutes => self.took_ms as f64 / MINUTE_MS,
            Measure::Calls => self.calls as f64,
            Measure::Tokens => {
                let tokens = [self.input_tokens, self.cached_tokens, self.output_tokens];
                tokens.into_iter().flatten().fold(0, u64::saturating_add) as f64
            }
            Measure::Cost(currency) => {
                let same = self.costs.iter().filter(|(known, _)| known.eq_ignore_ascii_case(currency));
                same.map(|(_, amount)| amount).sum()
            }
        }
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().reduce(u64::saturating_add)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSpan {
    Turn,
    /// All turns of a day of the local calendar, of all agents.
    Day,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Measure {
    Minutes,
    Calls,
    Tokens,
    /// ISO 4217, or a unit of the agent.
    Cost(String),
}

/// A limit of the user, such as `turn 30 min` or `day 20 USD`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    pub span: LimitSpan,
    amount: f64,
    measure: Measure,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitState {
    Below,
    /// At least 80 %.
    Near,
    Reached,
}

/// The part of a limit at which the user is warned.
const WARN_AT: f64 = 0.8;

impl Limit {
    /// # Errors
    /// What is wrong with the text, and an example.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| Err(format!("{why}; use for example `turn 30 min` or `day 20 USD`"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let [span, amount, unit] = words[..] else {
            return wrong("expected `turn` or `day`, a number and a unit".to_owned());
        };
        let span = match span {
            "turn" => LimitSpan::Turn,
            "day" => LimitSpan::Day,
            other => return wrong(format!("unknown span `{other}`")),
        };
        let Some(amount) = amount.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0)
        else {
            return wrong(format!("`{amount}` is not a number above 0"));
        };
        let (amount, measure) = match unit {
            "min" => (amount, Measure::Minutes),
            "h" => (amount * 60.0, Measure::Minutes),
            "call" | "calls" => (amount, Measure::Calls),
            "token" | "tokens" => (amount, Measure::Tokens),
            unit if unit.len() > 2 && unit.chars().all(|c| c.is_ascii_alphabetic()) => {
                (amount, Measure::Cost(unit.to_owned()))
            }
            unit => return wrong(format!("unknown unit `{unit}`")),
        };
        Ok(Self { span, amount, measure })
    }

    pub fn state(&self, used: &Used) -> LimitState {
        // Differences of costs are not exact.
        let part = used.amount(&self.measure) / self.amount + 1e-9;
        match part {
            part if part >= 1.0 => LimitState::Reached,
            part if part >= WARN_AT => LimitState::Near,
            _ => LimitState::Below,
        }
    }

    /// As in the configuration.
    pub fn written(&self) -> String {
        let span = match self.span {
            LimitSpan::Turn => "turn",
            LimitSpan::Day => "day",
        };
        let unit = match &self.measure {
            Measure::Minutes => "min",
            Measure::Calls => "calls",
            Measure::Tokens => "tokens",
            Measure::Cost(currency) => currency,
        };
        format!("{span} {} {unit}", self.amount)
    }

    /// The running time until the next state; `None` if the limit is not one of time, or is reached.
    pub fn due_in(&self, used: &Used) -> Option<Duration> {
        if self.measure != Measure::Minutes {
            return None;
        }
        let used = used.amount(&self.measure);
        let next = [self.amount * WARN_AT, self.amount].into_iter().find(|at| *at > used)?;
        Duration::try_from_secs_f64((next - used) * 60.0).ok()
    }

    /// What was used, in the unit of the limit.
    pub fn used_text(&self, used: &Used) -> String {
        self.measure.text(used.amount(&self.measure))
    }
}

impl Measure {
    fn text(&self, amount: f64) -> String {
        match self {
            Self::Minutes => format!("{} min", rounded(amount)),
            Self::Calls if amount > 1.0 => format!("{amount} tool calls"),
            Self::Calls => format!("{amount} tool call"),
            Self::Tokens => format!("{amount} tokens"),
            Self::Cost(currency) => format!("{amount:.2} {currency}"),
        }
    }
}

/// With at most one decimal, rounded down: a limit is not shown as reached before it is.
fn rounded(amount: f64) -> f64 {
    (amount * 10.0).floor() / 10.0
}

/// As in a sentence: "30 min for a turn".
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = match self.span {
            LimitSpan::Turn => "a turn",
            LimitSpan::Day => "a day",
        };
        write!(f, "{} for {span}", self.measure.text(self.amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{StopReason, TurnUsage};

    fn limit(text: &str) -> Limit {
        Limit::parse(text).unwrap()
    }

    #[test]
    fn limits_are_read_and_shown() {
        for (text, shown) in [
            ("turn 30 min", "30 min for a turn"),
            ("day 1.5 h", "90 min for a day"),
            ("turn 1 call", "1 tool call for a turn"),
            ("  day   200  calls ", "200 tool calls for a day"),
            ("day 5000000 tokens", "5000000 tokens for a day"),
            ("day 20 USD", "20.00 USD for a day"),
            ("turn 3 credits", "3.00 credits for a turn"),
        ] {
            assert_eq!(limit(text).to_string(), shown);
        }
        for text in
            ["", "turn 30", "week 3 h", "turn 0 min", "turn -1 min", "turn inf min", "turn x min", "day 3 $"]
        {
            assert!(Limit::parse(text).unwrap_err().contains("use for example"), "{text}");
        }
    }

    #[test]
    fn a_limit_is_near_at_four_fifths() {
        let used = |minutes: u64| Used { took_ms: minutes * 60_000, ..Used::default() };
        let limit = limit("turn 10 min");
        let states = [7, 8, 9, 10].map(|minutes| limit.state(&used(minutes)));
        assert_eq!(states, [LimitState::Below, LimitState::Near, LimitState::Near, LimitState::Reached]);
        let due = [0, 8, 10].map(|minutes| limit.due_in(&used(minutes)));
        assert_eq!(due, [Some(Duration::from_secs(480)), Some(Duration::from_secs(120)), None]);
        assert_eq!(limit.used_text(&used(8)), "8 min");
    }

    #[test]
    fn tokens_and_costs_are_added_per_unit() {
        let outcome = |amount: f64, currency: &str| TurnOutcome::Stopped {
            reason: StopReason::EndTurn,
            usage: Some(TurnUsage { input_tokens: 10, output_tokens: 5, ..TurnUsage::default() }),
            took_ms: 1,
            cost: Some(Cost { amount, currency: currency.to_owned() }),
        };
        let mut used = Used::of_turn(&outcome(1.0, "USD"));
        used.add(&Used::of_turn(&outcome(2.0, "EUR")));
        used.add(&Used::of_turn(&TurnOutcome::Cut));
        used.add(&Used::of_turn(&outcome(f64::NAN, "USD")));
        used.add(&Used::of_call());
        assert_eq!((used.turns, used.calls, used.took_ms), (4, 1, 3));
        assert_eq!(limit("day 45 tokens").state(&used), LimitState::Reached);
        assert_eq!(limit("day 46 tokens").state(&used), LimitState::Near);
        assert_eq!(limit("day 1 usd").state(&used), LimitState::Reached);
        assert_eq!(limit("day 2.1 EUR").state(&used), LimitState::Near);
        assert_eq!(limit("day 1 GBP").state(&used), LimitState::Below);
    }

    #[test]
    fn two_counts_of_the_same_turns_are_not_added() {
        let cost = |amount| {
            let mut used = Used { turns: 2, ..Used::default() };
            used.add_cost(Some(&Cost { amount, currency: "USD".to_owned() }));
            used
        };
        let mut used = cost(1.0);
        used.extend_to(Used { turns: 1, ..cost(3.0) });
        assert_eq!(used, Used { turns: 2, ..cost(3.0) });
    }
}
