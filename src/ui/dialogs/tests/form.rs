//! Tests of forms: defaults, moving, choosing, review, sending.

use crate::core::ViewCommand;
use crate::model::{Action, ElicitationMode, FieldChoice, FieldKind, FieldValue, FormField, Response};
use crate::ui::dialogs::FormState;
use crate::ui::dialogs::testkit::{Rig, answers, elicitation, field, text_kind, views};
use crate::ui::dialogs::{field_hint, line_input, shown_value};

fn choices(values: &[&str]) -> Vec<FieldChoice> {
    let choice = |value: &&str| FieldChoice {
        value: (*value).to_owned(),
        title: value.to_uppercase(),
        description: None,
    };
    values.iter().map(choice).collect()
}

fn one_of(values: &[&str], default: Option<&str>) -> FieldKind {
    FieldKind::Choice { choices: choices(values), default: default.map(str::to_owned) }
}

fn some_of(values: &[&str], min_items: Option<u32>, max_items: Option<u32>) -> FieldKind {
    FieldKind::Choices { choices: choices(values), min_items, max_items, default: Vec::new() }
}

fn number(is_integer: bool, default: Option<f64>) -> FieldKind {
    FieldKind::Number { is_integer, minimum: Some(1.0), maximum: Some(9.0), default }
}

fn sent(values: &[(&str, FieldValue)]) -> Vec<(u64, Response)> {
    let values = values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    vec![(1, Response::ElicitationAccepted(Some(values)))]
}

fn text(value: &str) -> FieldValue {
    FieldValue::Text(value.to_owned())
}

fn form(rig: &Rig) -> &FormState {
    rig.request_view.form.as_ref().expect("a form is open")
}

fn rig(fields: Vec<FormField>) -> Rig {
    let mut rig = Rig::new();
    rig.request_form(fields);
    rig
}

#[test]
fn defaults_are_filled_in_and_sent_after_a_review() {
    let mut rig = rig(vec![
        field("name", true, text_kind(Some("Ada"))),
        field("size", false, number(true, Some(3.0))),
        field("colour", true, one_of(&["red", "blue"], Some("blue"))),
        field("ok", false, FieldKind::Boolean { default: Some(true) }),
        field(
            "tags",
            false,
            FieldKind::Choices {
                choices: choices(&["a", "b", "c"]),
                min_items: None,
                max_items: None,
                default: vec!["a".to_owned(), "c".to_owned()],
            },
        ),
    ]);
    let shown: Vec<_> = form(&rig).fields.iter().map(shown_value).collect();
    assert_eq!(shown, ["Ada", "3", "BLUE", "yes", "A, C"]);
    for position in 1..=4 {
        assert!(answers(&rig.act(Action::Accept)).is_empty());
        assert_eq!(rig.request_view.selected, position);
    }
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert!(form(&rig).is_review);
    let expected = sent(&[
        ("name", text("Ada")),
        ("size", FieldValue::Integer(3)),
        ("colour", text("blue")),
        ("ok", FieldValue::Bool(true)),
        ("tags", FieldValue::Texts(vec!["a".to_owned(), "c".to_owned()])),
    ]);
    assert_eq!(answers(&rig.act(Action::Accept)), expected);
    assert!(rig.open_requests().is_empty());
}

#[test]
fn a_single_question_is_answered_by_enter() {
    for is_required in [true, false] {
        let ask = || rig(vec![field("answer", is_required, one_of(&["yes", "no"], None))]);
        let mut numbered = ask();
        assert!(answers(&numbered.act(Action::Choose(2))).is_empty(), "a number only marks");
        assert_eq!(answers(&numbered.act(Action::Accept)), sent(&[("answer", text("no"))]));
        assert_eq!(answers(&ask().act(Action::Accept)), sent(&[("answer", text("yes"))]));
        let mut rig = ask();
        assert!(answers(&rig.act(Action::Choose(9))).is_empty(), "there is no ninth answer");
        rig.act(Action::Down);
        assert_eq!(answers(&rig.act(Action::Accept)), sent(&[("answer", text("no"))]));
    }
}

#[test]
fn a_question_with_a_comment_field_is_sent_by_one_enter() {
    let ask = || {
        rig(vec![field("a", false, one_of(&["red", "blue"], None)), field("other", false, text_kind(None))])
    };
    let mut chosen = ask();
    chosen.act(Action::Down);
    assert_eq!(answers(&chosen.act(Action::Accept)), sent(&[("a", text("blue"))]));
    let mut numbered = ask();
    assert!(answers(&numbered.act(Action::Choose(1))).is_empty(), "a comment may still be added");
    numbered.act(Action::NextField);
    numbered.type_line("dark");
    let both = sent(&[("a", text("red")), ("other", text("dark"))]);
    assert_eq!(answers(&numbered.act(Action::Accept)), both);
    // Moving over the answers to the comment field does not choose one.
    let mut own = ask();
    own.act(Action::Down);
    own.act(Action::Down);
    own.type_line("green");
    assert_eq!(answers(&own.act(Action::Accept)), sent(&[("other", text("green"))]));
}

#[test]
fn in_a_longer_form_enter_chooses_the_selected_answer_only_if_required() {
    let ask = |is_required| {
        let fields = vec![
            field("a", is_required, one_of(&["x", "y"], None)),
            field("b", false, FieldKind::Boolean { default: None }),
        ];
        let mut rig = rig(fields);
        for _ in 0..2 {
            assert!(answers(&rig.act(Action::Accept)).is_empty());
        }
        assert!(form(&rig).is_review);
        answers(&rig.act(Action::Accept))
    };
    assert_eq!(ask(true), sent(&[("a", text("x"))]));
    assert_eq!(ask(false), sent(&[]));
}

#[test]
fn a_problem_stops_the_form_and_is_shown_at_its_field() {
    let mut rig = rig(vec![field("name", true, text_kind(None)), field("n", true, number(true, None))]);
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert_eq!(form(&rig).fields[0].problem.as_deref(), Some("Required."));
    assert_eq!(rig.request_view.selected, 0);
    rig.type_line("Ada");
    assert_eq!(form(&rig).fields[0].problem, None);
    rig.act(Action::Accept);
    rig.type_line("12");
    rig.act(Action::Accept);
    assert_eq!(form(&rig).fields[1].problem.as_deref(), Some("Must be at most 9."));
    assert!(!form(&rig).is_review);
}

#[test]
fn sending_moves_the_focus_to_the_first_invalid_field() {
    let mut rig = rig(vec![field("name", true, text_kind(None)), field("note", false, text_kind(None))]);
    rig.act(Action::NextField);
    assert!(form(&rig).fields[0].problem.is_some());
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert_eq!((rig.request_view.selected, form(&rig).is_review), (0, false));
}

#[test]
fn the_review_scrolls_and_returns() {
    let mut rig = rig(vec![field("a", false, text_kind(None)), field("b", false, text_kind(None))]);
    rig.act(Action::Accept);
    rig.act(Action::Accept);
    assert!(form(&rig).is_review && line_input(&rig).is_none());
    assert_eq!(views(&rig.act(Action::Down)), [ViewCommand::ScrollDialog(1)]);
    rig.type_line("lost");
    assert_eq!(form(&rig).fields[1].input.text, "");
    rig.act(Action::PreviousField);
    assert!(!form(&rig).is_review);
    rig.type_line("kept");
    rig.act(Action::Accept);
    assert_eq!(answers(&rig.act(Action::Accept)), sent(&[("b", text("kept"))]));
}

#[test]
fn keys_move_between_fields_and_choices() {
    let mut rig = rig(vec![
        field("a", false, text_kind(None)),
        field("b", false, one_of(&["x", "y"], None)),
        field("c", false, some_of(&["p", "q"], None, None)),
        field("d", false, FieldKind::Boolean { default: None }),
    ]);
    rig.act(Action::Down);
    assert_eq!(rig.request_view.selected, 1);
    rig.act(Action::Down);
    assert_eq!(shown_value(&form(&rig).fields[1]), "Y");
    rig.act(Action::Down);
    assert_eq!(rig.request_view.selected, 2);
    rig.act(Action::Down);
    rig.act(Action::ToggleChoice);
    assert_eq!(shown_value(&form(&rig).fields[2]), "Q");
    rig.act(Action::Choose(1));
    assert_eq!(shown_value(&form(&rig).fields[2]), "P, Q");
    rig.act(Action::NextField);
    rig.act(Action::Right);
    assert_eq!(shown_value(&form(&rig).fields[3]), "yes");
    rig.act(Action::Choose(2));
    assert_eq!(shown_value(&form(&rig).fields[3]), "no");
    rig.act(Action::NextField);
    assert_eq!(rig.request_view.selected, 3);
    rig.act(Action::Up);
    rig.act(Action::Mark(1));
    rig.act(Action::ToggleChoice);
    assert_eq!(shown_value(&form(&rig).fields[1]), "");
}

#[test]
fn letters_and_digits_are_typed_into_the_focused_field() {
    let mut rig = rig(vec![field("a", false, text_kind(None)), field("b", false, number(false, None))]);
    rig.type_line("ad");
    rig.act(Action::Left);
    rig.act(Action::Choose(7));
    rig.act(Action::ToggleChoice);
    assert_eq!(line_input(&rig).map(|input| input.text.as_str()), Some("a7 d"));
    rig.act(Action::NextField);
    rig.act(Action::Choose(2));
    rig.type_line(".5");
    rig.act(Action::Accept);
    let expected = sent(&[("a", text("a7 d")), ("b", FieldValue::Number(2.5))]);
    assert_eq!(answers(&rig.act(Action::Accept)), expected);
}

#[test]
fn counts_of_choices_are_checked() {
    let mut rig = rig(vec![field("c", true, some_of(&["p", "q", "r"], Some(1), Some(2)))]);
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert_eq!(form(&rig).fields[0].problem.as_deref(), Some("Select at least 1."));
    for position in 1..=3 {
        rig.act(Action::Choose(position));
    }
    assert!(answers(&rig.act(Action::Accept)).is_empty());
    assert_eq!(form(&rig).fields[0].problem.as_deref(), Some("Select at most 2."));
    rig.act(Action::Choose(2));
    let expected = sent(&[("c", FieldValue::Texts(vec!["p".to_owned(), "r".to_owned()]))]);
    assert_eq!(answers(&rig.act(Action::Accept)), expected);
}

#[test]
fn a_form_is_declined_or_cancelled() {
    let mut declined = rig(vec![field("a", true, text_kind(None))]);
    assert_eq!(answers(&declined.act(Action::Decline)), [(1, Response::ElicitationDeclined)]);
    let mut cancelled = rig(vec![field("a", true, text_kind(None))]);
    assert_eq!(answers(&cancelled.act(Action::Escape)), [(1, Response::ElicitationCancelled)]);
}

#[test]
fn a_form_without_fields_is_sent_empty() {
    let mut rig = rig(Vec::new());
    rig.act(Action::Down);
    assert_eq!(answers(&rig.act(Action::Accept)), sent(&[]));
}

#[test]
fn typed_text_stays_when_another_request_is_queued() {
    let mut rig = rig(vec![field("a", true, text_kind(None))]);
    rig.type_line("typed");
    rig.ask_permission(2, &[]);
    assert_eq!(form(&rig).fields[0].input.text, "typed");
}

#[test]
fn typed_text_stays_while_another_session_is_active() {
    let mut rig = rig(vec![field("a", true, text_kind(None)), field("b", true, text_kind(None))]);
    rig.type_line("typed");
    let asked = rig.state.active;
    rig.act(Action::OpenSessions);
    rig.act(Action::Escape);
    rig.act(Action::NewSession);
    assert_ne!(rig.state.active, asked);
    assert_eq!(rig.request_view.form, None);
    rig.act(Action::OpenSessions);
    rig.act(Action::First);
    rig.act(Action::Accept);
    assert_eq!(rig.state.active, asked);
    assert_eq!(form(&rig).fields[0].input.text, "typed");
    rig.act(Action::Escape);
    rig.act(Action::NewSession);
    assert!(rig.user.left_forms.is_empty(), "answered forms are dropped");
}

#[test]
fn hints_show_the_constraints() {
    let hint = |kind| field_hint(&field("x", false, kind));
    assert_eq!(hint(text_kind(None)), None);
    assert_eq!(hint(number(true, None)).as_deref(), Some("integer, 1 to 9"));
    assert_eq!(hint(some_of(&["a"], Some(1), None)).as_deref(), Some("at least 1 choices"));
    let kind = FieldKind::Text {
        min_chars: Some(2),
        max_chars: Some(2),
        pattern: Some("^[a-z]+$".to_owned()),
        format: None,
        default: None,
    };
    let wanted = "exactly 2 characters, must match ^[a-z]+$";
    assert_eq!(hint(kind).as_deref(), Some(wanted));
}

#[test]
fn a_secret_is_masked_until_revealed_and_not_recorded() {
    let mut rig = rig(vec![field("password", true, text_kind(None)), field("user", true, text_kind(None))]);
    rig.type_line("hunter2");
    assert_eq!(shown_value(&form(&rig).fields[0]), "hidden");
    rig.act(Action::ToggleSecret);
    assert_eq!(shown_value(&form(&rig).fields[0]), "hunter2");
    rig.act(Action::ToggleSecret);
    assert!(form(&rig).fields[0].is_masked() && !form(&rig).fields[1].is_masked());
    rig.act(Action::NextField);
    rig.type_line("ada");
    rig.act(Action::Accept);
    assert_eq!(
        answers(&rig.act(Action::Accept)),
        sent(&[("password", text("hunter2")), ("user", text("ada"))])
    );
    let said = rig.session().transcript.items().last().map(|item| item.body.clone());
    let Some(crate::core::ItemBody::Answered { answer, .. }) = said else { panic!("{said:?}") };
    assert_eq!(answer, "accepted: password: answered, user: ada");
}

#[test]
fn a_single_secret_is_not_recorded() {
    let mut rig = rig(vec![field("pin", true, number(true, None))]);
    rig.type_line("7");
    assert_eq!(answers(&rig.act(Action::Accept)), sent(&[("pin", FieldValue::Integer(7))]));
    let said = rig.session().transcript.items().last().map(|item| item.body.clone());
    let Some(crate::core::ItemBody::Answered { answer, .. }) = said else { panic!("{said:?}") };
    assert_eq!(answer, "accepted: answered");
}

/// A form that was shown for long enough, without any key.
fn unentered(fields: Vec<FormField>) -> Rig {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.ask(1, elicitation(ElicitationMode::Form { title: None, description: None, fields }));
    rig.wait(600);
    rig
}

#[test]
fn a_single_question_is_answered_like_a_request() {
    let question = || {
        let comment = field("other", false, text_kind(None));
        unentered(vec![field("colour", true, one_of(&["red", "green", "blue"], None)), comment])
    };
    assert_eq!(answers(&question().act_now(Action::Accept)), sent(&[("colour", text("red"))]));
    let mut rig = question();
    assert!(answers(&rig.act_now(Action::Choose(2))).is_empty());
    assert_eq!(answers(&rig.act_now(Action::Accept)), sent(&[("colour", text("green"))]));
    let mut rig = question();
    rig.act_now(Action::Down);
    rig.act_now(Action::Down);
    assert_eq!(answers(&rig.act_now(Action::Accept)), sent(&[("colour", text("blue"))]));
    assert_eq!(rig.session().draft, "");
}

#[test]
fn an_early_arrow_at_a_form_is_dropped_with_its_enter() {
    let mut rig = unentered(vec![field("colour", true, one_of(&["red", "blue"], None))]);
    // The question is new when the user returns to the tab.
    rig.guard.returned();
    rig.wait(100).act_now(Action::Down);
    assert!(answers(&rig.wait(900).act_now(Action::Accept)).is_empty());
    assert_eq!(answers(&rig.act_now(Action::Accept)), sent(&[("colour", text("red"))]));
}

#[test]
fn tab_moves_the_keys_to_the_fields_of_a_form() {
    let mut rig =
        unentered(vec![field("name", true, text_kind(None)), field("size", true, number(true, None))]);
    assert!(!rig.guard.is_entered());
    rig.act_now(Action::NextField);
    assert!(rig.guard.is_entered());
    assert_eq!(rig.request_view.selected, 1);
}
