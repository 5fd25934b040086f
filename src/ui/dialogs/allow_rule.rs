//! The list of rules that would allow the shown request.

use super::layer::Flow;
use super::notice::notify;
use super::picker::{List, Picker, PickerRow};
use crate::core::lifecycle::operations;
use crate::core::{Cx, rule_suggestions};
use crate::model::RequestId;
use crate::ui::App;

#[derive(Debug)]
struct SuggestedRules(RequestId);

impl List for SuggestedRules {
    type Item = Vec<String>;

    fn pick(&mut self, rules: Self::Item, app: &mut App, cx: &mut Cx) -> Flow {
        operations::ask_to_allow_by_rules(&mut app.state, self.0, rules, cx);
        Flow::Close
    }
}

/// Opens the list for the shown request.
pub fn open(app: &mut App, cx: &mut Cx) {
    let Some((key, request)) = app.shown_request() else { return };
    let id = request.request_id;
    match rule_suggestions(&app.state, key, request) {
        Ok(sets) => {
            let rows = sets.into_iter().map(|set| (PickerRow::new(set.join(", ")), set)).collect();
            let note = "Allows this request and all that the rules match.";
            app.layers.push(Picker::new(SuggestedRules(id), "Allow by rule", rows).noting(note.to_owned()));
        }
        Err(why) => notify(&mut app.state, why, cx),
    }
}
