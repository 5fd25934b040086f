//! What is shown of an agent's request between keys: the selected answer, the form, and the tool call as it was shown.

use std::path::Path;

use crate::core::{OpenRequest, OpenRequestKind, ToolCall};
use crate::model::{ElicitationMode, Plan, Raw, RequestId, ToolInput, input_keys};

use super::fields::FormState;

/// The view of the shown request; reset when another one is shown.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct RequestView {
    /// The selected option (permission, outside file) or field (form).
    pub selected: usize,
    pub is_full_screen: bool,
    /// Increases when what is asked changes.
    pub revision: u64,
    pub form: Option<FormState>,
    /// The tool call as shown; a change of what is asked makes a new revision.
    pub seen: Option<Box<SeenCall>>,
    /// Whether the call changed while it was shown.
    pub has_changed: bool,
    /// The request of this view; `dialogs::refresh` resets it for another one.
    pub request_id: Option<RequestId>,
}

impl RequestView {
    /// A request that has just been shown.
    pub fn new(open: &OpenRequest) -> Self {
        let mut view = Self { request_id: Some(open.request_id), ..Self::default() };
        match &open.kind {
            // If all options are permanent, none is selected, so Enter alone does nothing.
            OpenRequestKind::Permission { request, .. } => {
                view.selected = request.first_marked().unwrap_or(request.options.len());
            }
            // The first answer allows this once.
            OpenRequestKind::Access(_) => {}
            OpenRequestKind::Elicitation(elicitation) => {
                if let ElicitationMode::Form { fields, .. } = &elicitation.mode {
                    view.form = Some(FormState::new(fields));
                }
            }
        }
        view
    }
}

/// A tool call and the plans as shown with its permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenCall {
    pub rev: u32,
    pub call: ToolCall,
    pub plans: Vec<Plan>,
}

impl SeenCall {
    /// Whether another state of the call requests the same: ignores its progress, and whether the session's folder is named,
    /// where the call happens in any case.
    pub fn asks_the_same(&self, other: &ToolCall, folder: &Path) -> bool {
        let call = &self.call;
        let input = |call: &ToolCall| ToolInput {
            cwd: call.input.cwd.clone().filter(|cwd| cwd != folder),
            ..call.input.clone()
        };
        call.kind == other.kind
            && call.title == other.title
            && call.name == other.name
            && input(call) == input(other)
            && without_folder(call.raw_input.as_ref(), folder)
                == without_folder(other.raw_input.as_ref(), folder)
            && call.content == other.content
            && call.locations == other.locations
    }
}

/// The input without the keys that name the folder. It is compact JSON, in which no string contains a plain quote.
fn without_folder(input: Option<&Raw>, folder: &Path) -> Option<String> {
    let mut input = input?.0.to_string();
    for key in input_keys::CWD {
        let named = format!("\"{key}\":\"{}\"", folder.display());
        for part in [format!(",{named}"), format!("{named},"), named] {
            input = input.replace(&part, "");
        }
    }
    Some(input)
}
