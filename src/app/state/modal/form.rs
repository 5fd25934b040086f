//! A form of an agent, being filled in.
//!
//! Duty: holds what the user typed and chose, prefilled with the agent's defaults.
//! Not its duty: keys (`dialogs::form`), checking (`dialogs::validate`).

use crate::model::{FieldKind, FieldValue, FormField};

use super::LineInput;

/// A form being filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FormState {
    /// The fields, each with what is in it.
    pub fields: Vec<FieldState>,
    /// Whether all of it is shown once more before it is sent.
    pub is_review: bool,
}

/// A field being filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldState {
    pub field: FormField,
    /// Text and numbers as typed.
    pub input: LineInput,
    /// The marked choice; it is chosen only if it is also checked.
    pub choice: usize,
    /// One for each choice; for a boolean one, or none while it is left open.
    pub checked: Vec<bool>,
    /// Why it cannot be sent yet.
    pub problem: Option<String>,
    /// Whether it holds a secret, which is shown only when the user wants to see it.
    pub is_secret: bool,
    /// Whether the user wants to see the secret.
    pub is_revealed: bool,
}

/// A form's values, ready to send.
pub type FormValues = Vec<(String, FieldValue)>;

impl FormState {
    /// The form as it opens: with the agent's defaults in it.
    pub fn new(fields: &[FormField]) -> Self {
        Self { fields: fields.iter().map(FieldState::new).collect(), is_review: false }
    }

    /// Whether it is one question with answers to choose from, and at most room for words beside it. An answer
    /// that is marked is then the answer that is meant, and nothing is left to review.
    pub fn is_one_question(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.next().is_some_and(|first| matches!(first.field.kind, FieldKind::Choice { .. }))
            && fields
                .all(|other| matches!(other.field.kind, FieldKind::Text { .. }) && !other.field.is_required)
    }

    /// Whether Enter sends it from this field, if all of it is fine: from the review, and where there is nothing
    /// to review.
    pub fn sends_from(&self, selected: usize) -> bool {
        let is_last = selected + 1 >= self.fields.len();
        self.is_review || self.is_one_question() || (is_last && self.fields.len() <= 1)
    }
}

impl FieldState {
    /// The field as it opens.
    pub fn new(field: &FormField) -> Self {
        let mut state = Self {
            field: field.clone(),
            input: LineInput::default(),
            choice: 0,
            checked: Vec::new(),
            problem: None,
            is_secret: field.is_secret(),
            is_revealed: false,
        };
        match &field.kind {
            FieldKind::Text { default, .. } => {
                state.input = LineInput::new(default.as_deref().unwrap_or_default());
            }
            FieldKind::Number { default, .. } => {
                state.input = LineInput::new(&default.map(|number| number.to_string()).unwrap_or_default());
            }
            FieldKind::Choice { choices, default } => {
                state.checked =
                    choices.iter().map(|choice| Some(&choice.value) == default.as_ref()).collect();
                state.choice = state.checked.iter().position(|is_chosen| *is_chosen).unwrap_or(0);
            }
            FieldKind::Choices { choices, default, .. } => {
                state.checked = choices.iter().map(|choice| default.contains(&choice.value)).collect();
            }
            // An optional one without a default is left out unless the user says something.
            FieldKind::Boolean { default } => {
                state.checked = match default {
                    Some(is_on) => vec![*is_on],
                    None if field.is_required => vec![false],
                    None => Vec::new(),
                };
            }
        }
        state
    }

    /// Whether what was typed is not to be shown.
    pub fn is_masked(&self) -> bool {
        self.is_secret && !self.is_revealed
    }

    /// Whether letters are typed into it.
    pub fn takes_text(&self) -> bool {
        matches!(self.field.kind, FieldKind::Text { .. } | FieldKind::Number { .. })
    }

    /// The choices, if it has any.
    pub fn choice_count(&self) -> usize {
        match &self.field.kind {
            FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => choices.len(),
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Boolean { .. } => 0,
        }
    }
}
