//! Tests of validating fields.

use crate::core::LineInput;
use crate::model::{FieldKind, FieldValue};
use crate::ui::dialogs::FieldState;
use crate::ui::dialogs::testkit::field;
use crate::ui::dialogs::validate::{check, field_hint};

fn typed(kind: FieldKind, text: &str) -> Result<Option<FieldValue>, String> {
    let mut state = FieldState::new(&field("x", true, kind));
    state.input = LineInput::new(text);
    check(&state)
}

fn text(min_chars: Option<u32>, max_chars: Option<u32>, format: Option<&str>) -> FieldKind {
    FieldKind::Text { min_chars, max_chars, pattern: None, format: format.map(str::to_owned), default: None }
}

#[test]
fn lengths_count_characters_not_bytes() {
    let kind = || text(Some(2), Some(3), None);
    assert_eq!(typed(kind(), "äöü"), Ok(Some(FieldValue::Text("äöü".to_owned()))));
    assert_eq!(typed(kind(), "ä"), Err("Must have at least 2 characters; has 1.".to_owned()));
    assert_eq!(typed(kind(), "äöüß"), Err("Must have at most 3 characters; has 4.".to_owned()));
    assert_eq!(typed(kind(), "  "), Err("Required.".to_owned()));
}

#[test]
fn formats_are_checked() {
    let fine = [
        ("email", "a.b+c@mail.example.org"),
        ("email", "jürgen@bücher.example"),
        ("email", "root@localhost"),
        ("uri", "https://example.org/a?b=c#d"),
        ("uri", "urn:isbn:0451450523"),
        ("uri", "mailto:a@b.test"),
        ("date", "2024-02-29"),
        ("date", "2000-02-29"),
        ("date-time", "2026-01-31T09:30:00Z"),
        ("date-time", "2026-01-31t23:59:60.125+05:30"),
        ("date-time", "2026-01-31T00:00:00-08:00"),
        ("shoe-size", "whatever"),
    ];
    for (format, value) in fine {
        assert!(typed(text(None, None, Some(format)), value).is_ok(), "{format} {value}");
    }
    let wrong = [
        ("email", "no-at.example.org"),
        ("email", "@example.org"),
        ("email", "a@"),
        ("email", "a b@example.org"),
        ("email", "a@-x.org"),
        ("email", "a@b@c..org"),
        ("uri", "example.org"),
        ("uri", "1http://x"),
        ("uri", "https://a b"),
        ("uri", "https:"),
        ("date", "2023-02-29"),
        ("date", "1900-02-29"),
        ("date", "2026-13-01"),
        ("date", "2026-04-31"),
        ("date", "2026-1-1"),
        ("date", "26-01-01"),
        ("date", "2026-01-00"),
        ("date", "+026-01-01"),
        ("date", "2026-01-01-01"),
        ("date-time", "2026-01-31"),
        ("date-time", "2026-01-31T09:30:00"),
        ("date-time", "2026-01-31T09:30Z"),
        ("date-time", "2026-01-31T24:00:00Z"),
        ("date-time", "2026-01-31T09:30:00.Z"),
        ("date-time", "2026-01-31T09:30:00+0530"),
        ("date-time", "2026-02-31T09:30:00Z"),
    ];
    for (format, value) in wrong {
        let problem = typed(text(None, None, Some(format)), value);
        assert!(problem.as_ref().is_err_and(|text| text.contains("like")), "{format} {value} {problem:?}");
    }
}

#[test]
fn numbers_are_parsed_and_limited() {
    let number = |is_integer| FieldKind::Number {
        is_integer,
        minimum: Some(-2.5),
        maximum: Some(10.0),
        default: None,
    };
    assert_eq!(typed(number(false), " -2.5 "), Ok(Some(FieldValue::Number(-2.5))));
    assert_eq!(typed(number(false), "1e1"), Ok(Some(FieldValue::Number(10.0))));
    assert_eq!(typed(number(true), "7"), Ok(Some(FieldValue::Integer(7))));
    assert_eq!(typed(number(true), "3.0"), Ok(Some(FieldValue::Integer(3))));
    assert_eq!(typed(number(true), "3.5"), Err("Must be an integer.".to_owned()));
    assert_eq!(typed(number(false), "-3"), Err("Must be at least -2.5.".to_owned()));
    assert_eq!(typed(number(false), "10.01"), Err("Must be at most 10.".to_owned()));
    for text in ["x", "NaN", "inf", "1,5", "0x10"] {
        assert!(typed(number(false), text).is_err(), "{text}");
    }
}

#[test]
fn integers_keep_all_their_digits() {
    let kind = || FieldKind::Number { is_integer: true, minimum: None, maximum: None, default: None };
    assert_eq!(typed(kind(), "9007199254740993"), Ok(Some(FieldValue::Integer(9_007_199_254_740_993))));
    assert!(typed(kind(), "9223372036854775808").is_err());
}

#[test]
fn optional_fields_may_be_empty() {
    let optional = |kind| check(&FieldState::new(&field("x", false, kind)));
    assert_eq!(optional(text(Some(3), None, Some("email"))), Ok(None));
    assert_eq!(optional(FieldKind::Boolean { default: None }), Ok(None));
    assert_eq!(optional(FieldKind::Boolean { default: Some(false) }), Ok(Some(FieldValue::Bool(false))));
    assert_eq!(optional(FieldKind::Choice { choices: Vec::new(), default: None }), Ok(None));
    let needed = check(&FieldState::new(&field("x", true, FieldKind::Boolean { default: None })));
    assert_eq!(needed, Ok(Some(FieldValue::Bool(false))));
    let nothing_to_choose = FieldKind::Choice { choices: Vec::new(), default: Some("gone".to_owned()) };
    assert_eq!(check(&FieldState::new(&field("x", true, nothing_to_choose))), Err("Select one.".to_owned()));
}

#[test]
fn a_pattern_is_checked_if_it_is_valid() {
    let kind = |pattern: &str| FieldKind::Text {
        min_chars: None,
        max_chars: None,
        pattern: Some(pattern.to_owned()),
        format: None,
        default: None,
    };
    let fine = |value: &str| Ok(Some(FieldValue::Text(value.to_owned())));
    assert_eq!(typed(kind("^v[0-9]+$"), "v12"), fine("v12"));
    assert_eq!(typed(kind("^v[0-9]+$"), "x"), Err("Must match ^v[0-9]+$.".to_owned()));
    assert_eq!(typed(kind("b"), "abc"), fine("abc"), "a pattern is not anchored");
    // Patterns in other syntaxes, and too large ones, are left to the agent.
    assert_eq!(typed(kind("^(?=a)"), "b"), fine("b"));
    assert_eq!(typed(kind("(a{1000}){1000}"), "b"), fine("b"));
    let hint = |pattern| field_hint(&field("x", true, kind(pattern))).unwrap();
    assert_eq!(
        (hint("a+"), hint("(?=a)")),
        ("must match a+".to_owned(), "must match (?=a) (checked by the agent)".to_owned())
    );
}
