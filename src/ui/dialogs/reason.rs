//! Rejecting a request with a reason, which is the next prompt.

use crate::core::lifecycle::operations;
use crate::core::{Cx, OpenRequestKind, QuestionId, UserAnswer};
use crate::model::{RequestId, SessionKey};
use crate::ui::App;

use super::line_dialog::{LineDialog, Purpose};

#[derive(Debug)]
struct Reason {
    session: SessionKey,
    request_id: RequestId,
}

impl Purpose for Reason {
    fn verb(&self) -> &'static str {
        "reject and send"
    }

    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        super::notice::answer(&mut app.state, QuestionId::Agent(self.request_id), UserAnswer::Dismiss, cx);
        operations::send_reason(&mut app.state, self.session, text.to_owned(), cx);
        Ok(())
    }

    fn rejected(&self) -> Option<(SessionKey, RequestId)> {
        Some((self.session, self.request_id))
    }
}

/// Asks why the shown permission request, file or command is rejected.
pub fn open(app: &mut App) {
    let Some((session, open)) = app.shown_request() else { return };
    if matches!(open.kind, OpenRequestKind::Elicitation(_)) {
        return;
    }
    let reason = Reason { session, request_id: open.request_id };
    let help = "Rejects the request and sends this text as the next prompt.";
    app.layers.push(LineDialog::new("Reject with a reason", help, "", reason));
}
