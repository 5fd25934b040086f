//! The list of saved permissions, which the user can revoke.

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::{Cx, ListedGrant, granted};
use crate::ui::App;

use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};

#[derive(Debug)]
pub struct Grants;

impl List for Grants {
    /// The id of the permission.
    type Item = String;

    fn pick(&mut self, id: String, app: &mut App, cx: &mut Cx) -> Flow {
        let needs_restart = operations::revoke(&mut app.state, &id, cx);
        let text = if needs_restart {
            "Permission revoked. The path stays open until the agent restarts."
        } else {
            "Permission revoked."
        };
        notify(&mut app.state, text, cx);
        open(app);
        Flow::Close
    }

    fn verb(&self, _item: Option<&String>) -> &'static str {
        "revoke"
    }
}

/// Opens the permissions of the active session, followed by permanent ones.
pub fn open(app: &mut App) {
    let row = |granted: &ListedGrant<'_>| {
        let folder = granted.folder.map(|folder| folder.display().to_string());
        let row = PickerRow {
            detail: granted.agent.to_owned(),
            right: folder.unwrap_or_else(|| "for this session".to_owned()),
            ..PickerRow::new(granted.grant.description())
        };
        (row, granted.id())
    };
    let rows: Vec<_> = granted(&app.state).iter().map(row).collect();
    let note = if rows.is_empty() { "No saved permissions." } else { "Select a permission to revoke it." };
    let list = Picker::new(Grants, "Saved permissions", rows).noting(note.to_owned());
    app.layers.open(list);
}
