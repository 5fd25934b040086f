//! Validates the fields of a form. Source: ACP v1 elicitation, the restricted JSON schema of forms.
//!
//! A `pattern` is checked in linear time if it is valid here. Schemas use another regex dialect: other patterns are
//! shown, and left to the agent to check.

use regex::{Regex, RegexBuilder};

use super::fields::FieldState;
use crate::model::{FieldKind, FieldValue, FormField};

/// Compiled patterns above this size are left to the agent.
const MAX_PATTERN_BYTES: usize = 1 << 18;

/// The value of a field; `None` if it is omitted; the problem in one sentence if it is invalid.
pub fn check(state: &FieldState) -> Result<Option<FieldValue>, String> {
    let is_required = state.field.is_required;
    let typed = state.input.text.as_str();
    match &state.field.kind {
        FieldKind::Text { .. } | FieldKind::Number { .. } if typed.trim().is_empty() => {
            if is_required {
                Err("Required.".to_owned())
            } else {
                Ok(None)
            }
        }
        FieldKind::Text { min_chars, max_chars, format, pattern, .. } => {
            check_length(typed, *min_chars, *max_chars)?;
            check_format(typed, format.as_deref())?;
            if let (Some(source), Some(pattern)) = (pattern, pattern.as_deref().and_then(readable))
                && !pattern.is_match(typed)
            {
                return Err(format!("Must match {source}."));
            }
            Ok(Some(FieldValue::Text(typed.to_owned())))
        }
        FieldKind::Number { is_integer, minimum, maximum, .. } => {
            check_number(typed.trim(), *is_integer, *minimum, *maximum).map(Some)
        }
        FieldKind::Choice { choices, .. } => {
            let chosen = state.checked.iter().position(|is_chosen| *is_chosen);
            match chosen.and_then(|position| choices.get(position)) {
                Some(choice) => Ok(Some(FieldValue::Text(choice.value.clone()))),
                None if is_required => Err("Select one.".to_owned()),
                None => Ok(None),
            }
        }
        FieldKind::Choices { choices, min_items, max_items, .. } => {
            let chosen: Vec<String> = choices
                .iter()
                .zip(&state.checked)
                .filter(|(_, is_chosen)| **is_chosen)
                .map(|(choice, _)| choice.value.clone())
                .collect();
            if chosen.is_empty() && !is_required {
                return Ok(None);
            }
            let count = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
            match (min_items, max_items) {
                (Some(min), _) if count < *min => Err(format!("Select at least {min}.")),
                (_, Some(max)) if count > *max => Err(format!("Select at most {max}.")),
                _ => Ok(Some(FieldValue::Texts(chosen))),
            }
        }
        FieldKind::Boolean { .. } => Ok(state.checked.first().map(|is_on| FieldValue::Bool(*is_on))),
    }
}

/// The constraints of a field in one line, shown below it; `None` if there are none.
pub fn field_hint(field: &FormField) -> Option<String> {
    let mut parts = Vec::new();
    match &field.kind {
        FieldKind::Text { min_chars, max_chars, pattern, format, .. } => {
            parts.extend(range("characters", *min_chars, *max_chars));
            parts.extend(format.as_deref().and_then(format_example).map(str::to_owned));
            parts.extend(pattern.as_ref().map(|pattern| match readable(pattern) {
                Some(_) => format!("must match {pattern}"),
                None => format!("must match {pattern} (checked by the agent)"),
            }));
        }
        FieldKind::Number { is_integer, minimum, maximum, .. } => {
            parts.push(if *is_integer { "integer".to_owned() } else { "number".to_owned() });
            parts.extend(range("", *minimum, *maximum));
        }
        FieldKind::Choices { min_items, max_items, .. } => {
            parts.extend(range("choices", *min_items, *max_items));
        }
        FieldKind::Choice { .. } | FieldKind::Boolean { .. } => {}
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Compiles a pattern that has the same meaning here as in the schema. Source: JSON Schema, `pattern`: not anchored.
fn readable(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build().ok()
}

pub fn shown_value(state: &FieldState) -> String {
    match &state.field.kind {
        // The length of a secret is not shown either.
        FieldKind::Text { .. } | FieldKind::Number { .. }
            if state.is_masked() && !state.input.text.is_empty() =>
        {
            "hidden".to_owned()
        }
        FieldKind::Text { .. } | FieldKind::Number { .. } => state.input.text.clone(),
        FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => {
            let chosen = choices.iter().zip(&state.checked).filter(|(_, is_chosen)| **is_chosen);
            chosen.map(|(choice, _)| choice.title.as_str()).collect::<Vec<_>>().join(", ")
        }
        FieldKind::Boolean { .. } => match state.checked.first() {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => String::new(),
        },
    }
}

/// Lengths are in code points, as in the schema.
fn check_length(text: &str, min: Option<u32>, max: Option<u32>) -> Result<(), String> {
    let count = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    match (min, max) {
        (Some(min), _) if count < min => Err(format!("Must have at least {min} characters; has {count}.")),
        (_, Some(max)) if count > max => Err(format!("Must have at most {max} characters; has {count}.")),
        _ => Ok(()),
    }
}

fn check_format(text: &str, format: Option<&str>) -> Result<(), String> {
    let is_fine = match format {
        Some("email") => is_email(text),
        Some("uri") => is_uri(text),
        Some("date") => is_date(text),
        Some("date-time") => is_date_time(text),
        // Unknown formats are left to the agent.
        _ => true,
    };
    match format.and_then(format_example) {
        Some(example) if !is_fine => Err(format!("Must be {example}.")),
        _ => Ok(()),
    }
}

fn format_example(format: &str) -> Option<&'static str> {
    match format {
        "email" => Some("an address like name@example.org"),
        "uri" => Some("an address like https://example.org/page"),
        "date" => Some("a date like 2026-01-31"),
        "date-time" => Some("a date and time like 2026-01-31T09:30:00Z"),
        _ => None,
    }
}

fn check_number(
    text: &str,
    is_integer: bool,
    minimum: Option<f64>,
    maximum: Option<f64>,
) -> Result<FieldValue, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let Some(number) = number else {
        return Err(format!("Not a number: {text}."));
    };
    match (minimum, maximum) {
        (Some(min), _) if number < min => return Err(format!("Must be at least {min}.")),
        (_, Some(max)) if number > max => return Err(format!("Must be at most {max}.")),
        _ => {}
    }
    if !is_integer {
        return Ok(FieldValue::Number(number));
    }
    // 3.0 is an integer; the part before the point is parsed, because not every i64 fits an f64.
    let whole = match text.split_once('.') {
        Some((whole, rest)) if rest.chars().all(|digit| digit == '0') => whole,
        _ => text,
    };
    whole.parse().map(FieldValue::Integer).map_err(|_| "Must be an integer.".to_owned())
}

fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|ch| ch.is_alphanumeric() || ch == '-')
    };
    !name.is_empty()
        && !name.chars().any(|ch| ch.is_whitespace() || ch.is_control() || ch == '@')
        && host.split('.').all(is_label)
}

pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|ch| ch.is_ascii_alphanumeric() || "+-.".contains(ch));
    is_scheme
        && !rest.is_empty()
        && !rest
            .chars()
            .any(|ch| ch.is_whitespace() || ch.is_control() || !ch.is_ascii() || "<>\"{}|\\^`".contains(ch))
}

fn is_date(text: &str) -> bool {
    let lengths = text.split('-').map(|part| digits(part, part.len()).map(|_| part.len()));
    lengths.eq([4, 2, 2].map(Some)) && text.parse::<jiff::civil::Date>().is_ok()
}

/// RFC 3339, as required by the schema's `date-time`: with seconds and an offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (clock, is_offset_fine) = if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        (clock, true)
    } else if let Some((clock, offset)) = time.rsplit_once(['+', '-']) {
        (clock, is_clock(offset, false))
    } else {
        return false;
    };
    let (clock, fraction) = clock.split_once('.').map_or((clock, "0"), |(clock, fraction)| (clock, fraction));
    let is_fraction = !fraction.is_empty() && fraction.chars().all(|digit| digit.is_ascii_digit());
    is_date(date) && is_clock(clock, true) && is_fraction && is_offset_fine
}

fn is_clock(text: &str, has_seconds: bool) -> bool {
    let parts: Vec<Option<u32>> = text.split(':').map(|part| digits(part, 2)).collect();
    match (parts.as_slice(), has_seconds) {
        // 60 is a leap second.
        ([Some(hour), Some(minute), Some(second)], true) => *hour < 24 && *minute < 60 && *second <= 60,
        ([Some(hour), Some(minute)], false) => *hour < 24 && *minute < 60,
        _ => false,
    }
}

fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.chars().all(|digit| digit.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn range<T: std::fmt::Display + PartialEq>(of_what: &str, min: Option<T>, max: Option<T>) -> Option<String> {
    let text = match (min, max) {
        (Some(min), Some(max)) if min == max => format!("exactly {min} {of_what}"),
        (Some(min), Some(max)) => format!("{min} to {max} {of_what}"),
        (Some(min), None) => format!("at least {min} {of_what}"),
        (None, Some(max)) => format!("at most {max} {of_what}"),
        (None, None) => return None,
    };
    Some(text.trim_end().to_owned())
}
