//! How a session was opened, and how much of the conversation its agent has.

use crate::core::Handover;
use crate::model::{SessionId, SessionKey};

/// Why an agent may not have a session whose id is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeConfidence {
    /// The id was found in the folder, where the agent saves the id of its last session.
    Hinted,
    /// The response to reopening did not confirm the session; the next prompt will.
    Provisional,
}

/// How a session was opened, for the notice in the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Opened {
    AsUsual,
    /// An earlier attempt to restore it had failed.
    Restored,
    /// It was open in this run, and its connection had ended.
    Reconnected,
}

/// How the session was opened, and what its agent has of it.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ResumeState {
    /// Whether it is being reopened after its agent exited; otherwise it is opened for the first time.
    is_reopening: bool,
    /// Whether it was opened from the agent's list and its history was not received yet.
    wants_history: bool,
    /// Whether the connection in which it was open has ended.
    is_reconnecting: bool,
    was_open: bool,
    /// Why the agent may not have the session.
    doubt: Option<ResumeConfidence>,
    /// Whether the agent had the session before it was opened here.
    is_continued: bool,
    /// Whether the agent does not have the history above.
    has_lost_history: bool,
    /// The agent's id of the session that could not be restored. Retried until a prompt was sent in the session that
    /// replaced it.
    former_id: Option<SessionId>,
    /// The conversation that is sent with the next prompt.
    handover: Option<Handover>,
    copied_from: Option<SessionKey>,
}

impl ResumeState {
    pub(in crate::core) fn copy_of(source: SessionKey) -> Self {
        Self { copied_from: Some(source), ..Self::default() }
    }

    pub(in crate::core) fn copied_from(&self) -> Option<SessionKey> {
        self.copied_from
    }

    pub(in crate::core) fn begin_listed(&mut self) {
        self.wants_history = true;
        self.is_continued = true;
    }

    /// A connection is used. A session with a history is reopened, unless the agent replays it.
    pub(in crate::core) fn begin_connecting(&mut self, has_past: bool) {
        self.is_reopening = has_past && !self.wants_history;
        self.is_reconnecting = self.is_reopening && self.was_open;
    }

    /// The session is opened again on the same connection.
    pub(in crate::core) fn reopen(&mut self) {
        self.is_reopening = true;
    }

    /// The agent was set up again: the session is reopened, unless the agent replays its history.
    pub(in crate::core) fn reopen_after_setup(&mut self) {
        self.is_reopening |= !self.wants_history;
    }

    /// The id was found as that of the agent's last session.
    pub(in crate::core) fn hint(&mut self) {
        self.doubt = Some(ResumeConfidence::Hinted);
    }

    pub(in crate::core) fn opened(&mut self, is_fresh: bool, is_provisional: bool) -> Opened {
        self.is_reopening = false;
        self.wants_history = false;
        self.was_open = true;
        self.is_continued = !is_fresh;
        self.doubt = is_provisional.then_some(ResumeConfidence::Provisional);
        let is_reconnected = std::mem::take(&mut self.is_reconnecting);
        if is_fresh {
            return Opened::AsUsual;
        }
        if self.former_id.take().is_some() {
            self.has_lost_history = false;
            return Opened::Restored;
        }
        if is_reconnected { Opened::Reconnected } else { Opened::AsUsual }
    }

    pub(in crate::core) fn clear_agent_state(&mut self) {
        self.wants_history = false;
        self.doubt = None;
        self.former_id = None;
    }

    /// A new session replaces one that the agent could not restore.
    pub(in crate::core) fn not_restored(&mut self, former: Option<SessionId>, has_talked: bool) {
        self.former_id = former;
        self.has_lost_history = has_talked;
    }

    pub(in crate::core) fn begin_replay(&mut self) {
        self.is_continued = true;
    }

    pub(in crate::core) fn was_open(&self) -> bool {
        self.was_open
    }

    pub(in crate::core) fn is_reopening(&self) -> bool {
        self.is_reopening
    }

    /// Whether the transcript stays as it is while the session is opened.
    pub(in crate::core) fn keeps_view(&self) -> bool {
        self.is_reopening && !self.wants_history
    }

    pub(in crate::core) fn doubt(&self) -> Option<ResumeConfidence> {
        self.doubt
    }

    /// Whether the agent had the session before it was opened here.
    pub(in crate::core) fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Whether the agent does not have the history above.
    pub fn has_lost_history(&self) -> bool {
        self.has_lost_history
    }

    pub(in crate::core) fn former_id(&self) -> Option<&SessionId> {
        self.former_id.as_ref()
    }

    /// The conversation that is sent with the next prompt.
    pub fn handover(&self) -> Option<&Handover> {
        self.handover.as_ref()
    }

    /// Sends a conversation with the next prompt.
    pub(in crate::core) fn hand_over(&mut self, text: String, agent: String) {
        self.handover = Some(Handover { text, agent, is_sent: false });
    }

    /// Takes the conversation to hand over from the state after all events were read.
    pub(in crate::core) fn adopt_handover(&mut self, whole: Self) {
        self.handover = self.handover.take().or(whole.handover);
    }

    /// The recorded session has already handed the conversation over.
    pub(in crate::core) fn handed_over(&mut self) {
        self.handover = None;
    }

    /// A prompt was sent: the former id is not retried.
    pub(in crate::core) fn prompt_sent(&mut self) {
        self.former_id = None;
        if let Some(handover) = &mut self.handover {
            handover.is_sent = true;
        }
    }

    /// The turn has ended. `is_answered`: by the agent, so that it has received the handover.
    pub(in crate::core) fn turn_ended(&mut self, is_answered: bool) {
        if is_answered && self.handover.take_if(|handover| handover.is_sent).is_some() {
            self.has_lost_history = false;
        }
        if let Some(handover) = &mut self.handover {
            handover.is_sent = false;
        }
    }

    /// A turn has succeeded: the agent has the session.
    pub(in crate::core) fn confirm(&mut self) {
        self.doubt = None;
    }
}
