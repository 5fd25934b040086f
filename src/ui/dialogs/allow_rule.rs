//! The list of rules that would allow the shown request.

use super::layer::Flow;
use super::notice::notify;
use super::picker::{List, Picker, PickerRow};
use crate::core::lifecycle::operations;
use crate::core::{Cx, rule_suggestions};
use crate::model::{GrantScope, RequestId};
use crate::ui::App;

#[derive(Debug)]
struct SuggestedRules(RequestId);

impl List for SuggestedRules {
    type Item = (Vec<String>, GrantScope);

    fn pick(&mut self, (rules, scope): Self::Item, app: &mut App, cx: &mut Cx) -> Flow {
        if let Err(why) = operations::allow_by_rules(&mut app.state, self.0, (&rules, scope), cx) {
            notify(&mut app.state, why, cx);
        }
        Flow::Close
    }

    fn verb(&self, _item: Option<&Self::Item>) -> &'static str {
        "allow"
    }
}

/// Opens the list for the shown request.
pub fn open(app: &mut App, cx: &mut Cx) {
    let Some((key, request)) = app.shown_request() else { return };
    let id = request.request_id;
    let sets = match rule_suggestions(&app.state, key, request) {
        Ok(sets) => sets,
        Err(why) => return notify(&mut app.state, why, cx),
    };
    let row = |set: &Vec<String>, scope| {
        // It comes first, so that it is visible on any screen.
        let lifetime = match scope {
            GrantScope::Session => "Session",
            GrantScope::Folder => "Always",
        };
        (PickerRow::new(format!("{lifetime}: {}", set.join(", "))), (set.clone(), scope))
    };
    let scopes = [GrantScope::Session, GrantScope::Folder];
    let rows = sets.iter().flat_map(|set| scopes.map(|scope| row(set, scope))).collect();
    let note = "Allows this request and all that the rule matches: for this session, or always for this agent in this folder.";
    app.layers.push(Picker::new(SuggestedRules(id), "Allow by rule", rows).noting(note.to_owned()));
}
