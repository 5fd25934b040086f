//! The state of an agent's form while the user fills it in, prefilled with the agent's defaults.
//!
//! Keys are handled in `dialogs::form`, validation in `dialogs::validate`.

use crate::model::{FieldKind, FormField};

use crate::core::state::line::LineInput;

/// A form being filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FormState {
    pub fields: Vec<FieldState>,
    /// Whether the review of all fields is shown before sending.
    pub is_review: bool,
}

/// A field being filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldState {
    pub field: FormField,
    /// Text and numbers as typed.
    pub input: LineInput,
    /// The selected choice; it is chosen only if it is also checked.
    pub choice: usize,
    /// One for each choice; for a boolean one, or none while it is not set.
    pub checked: Vec<bool>,
    pub problem: Option<String>,
    /// Whether it holds a secret, which is masked unless revealed.
    pub is_secret: bool,
    pub is_revealed: bool,
}

impl FormState {
    pub fn new(fields: &[FormField]) -> Self {
        Self { fields: fields.iter().map(FieldState::new).collect(), is_review: false }
    }

    /// Whether it is a single question with choices, and at most a field for a comment. The selected choice is then the
    /// answer, without a review.
    pub fn is_one_question(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.next().is_some_and(|first| matches!(first.field.kind, FieldKind::Choice { .. }))
            && fields
                .all(|other| matches!(other.field.kind, FieldKind::Text { .. }) && !other.field.is_required)
    }

    /// Whether Enter on this field sends the form if it is valid: on the review, and where there is nothing to review.
    pub fn sends_from(&self, selected: usize) -> bool {
        let is_last = selected + 1 >= self.fields.len();
        self.is_review || self.is_one_question() || (is_last && self.fields.len() <= 1)
    }
}

impl FieldState {
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
            // An optional one without a default is omitted unless the user sets it.
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

    pub fn is_masked(&self) -> bool {
        self.is_secret && !self.is_revealed
    }

    pub fn takes_text(&self) -> bool {
        matches!(self.field.kind, FieldKind::Text { .. } | FieldKind::Number { .. })
    }

    /// Number of choices; 0 for other fields.
    pub fn choice_count(&self) -> usize {
        match &self.field.kind {
            FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => choices.len(),
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Boolean { .. } => 0,
        }
    }
}
