//! How a session was opened, and what its agent has of the conversation.

use crate::app::Handover;
use crate::model::{SessionId, SessionKey};

/// Why an agent may not hold a session whose id is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeConfidence {
    /// The id was found in the folder, where the agent saves that of its last session.
    Hinted,
    /// The agent said nothing when the session was opened again; the next prompt shows it.
    Provisional,
}

/// What is known of the session's life before it was opened.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ResumeState {
    /// Whether it is being reopened after its agent was lost; otherwise it is opened for the first time.
    is_reopening: bool,
    /// Whether it was opened from the agent's list and its history has not come yet.
    wants_history: bool,
    /// Why the agent may not hold the session after all.
    doubt: Option<ResumeConfidence>,
    /// Whether the agent had the session before it was opened here.
    is_continued: bool,
    /// Whether the agent does not have the history above.
    has_lost_history: bool,
    /// The agent's id of the session that could not be restored. It is tried again until something was said in the
    /// session that took its place.
    former_id: Option<SessionId>,
    /// The conversation that the next prompt sends along.
    handover: Option<Handover>,
    /// The session that this one is being copied from.
    copied_from: Option<SessionKey>,
}

impl ResumeState {
    /// For a copy of this session.
    pub(in crate::app) fn copy_of(source: SessionKey) -> Self {
        Self { copied_from: Some(source), ..Self::default() }
    }

    pub(in crate::app) fn copied_from(&self) -> Option<SessionKey> {
        self.copied_from
    }

    /// The session was selected in the agent's list.
    pub(in crate::app) fn begin_listed(&mut self) {
        self.wants_history = true;
        self.is_continued = true;
    }

    /// A connection is used. A session with a past is reopened, unless its history comes from the agent.
    pub(in crate::app) fn begin_connecting(&mut self, has_past: bool) {
        self.is_reopening = has_past && !self.wants_history;
    }

    /// The session is opened again on the same connection.
    pub(in crate::app) fn reopen(&mut self) {
        self.is_reopening = true;
    }

    /// The agent was set up anew: the session is opened again, unless its history comes from the agent.
    pub(in crate::app) fn reopen_after_setup(&mut self) {
        self.is_reopening |= !self.wants_history;
    }

    /// The agent named the id of its last session.
    pub(in crate::app) fn hint(&mut self) {
        self.doubt = Some(ResumeConfidence::Hinted);
    }

    /// The agent has opened the session. Returns whether it restored one that it could not restore before.
    pub(in crate::app) fn opened(&mut self, is_fresh: bool, is_provisional: bool) -> bool {
        self.is_reopening = false;
        self.wants_history = false;
        self.is_continued = !is_fresh;
        self.doubt = is_provisional.then_some(ResumeConfidence::Provisional);
        let is_restored = !is_fresh && self.former_id.take().is_some();
        if is_restored {
            self.has_lost_history = false;
        }
        is_restored
    }

    /// The agent is gone for good, or another one takes its place.
    pub(in crate::app) fn forget_agent(&mut self) {
        self.wants_history = false;
        self.doubt = None;
        self.former_id = None;
    }

    /// A new session takes the place of one that the agent could not restore.
    pub(in crate::app) fn not_restored(&mut self, former: Option<SessionId>, has_talked: bool) {
        self.former_id = former;
        self.has_lost_history = has_talked;
    }

    /// The agent replays the history.
    pub(in crate::app) fn begin_replay(&mut self) {
        self.is_continued = true;
    }

    pub(in crate::app) fn is_reopening(&self) -> bool {
        self.is_reopening
    }

    /// Whether what is shown stays while the session is opened.
    pub(in crate::app) fn keeps_view(&self) -> bool {
        self.is_reopening && !self.wants_history
    }

    pub(in crate::app) fn doubt(&self) -> Option<ResumeConfidence> {
        self.doubt
    }

    /// Whether the agent had the session before it was opened here.
    pub(in crate::app) fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Whether the agent does not have the history above.
    pub fn has_lost_history(&self) -> bool {
        self.has_lost_history
    }

    pub(in crate::app) fn former_id(&self) -> Option<&SessionId> {
        self.former_id.as_ref()
    }

    /// The conversation that the next prompt sends along.
    pub fn handover(&self) -> Option<&Handover> {
        self.handover.as_ref()
    }

    /// The next prompt sends a conversation along.
    pub(in crate::app) fn hand_over(&mut self, text: String, agent: String) {
        self.handover = Some(Handover { text, agent, is_sent: false });
    }

    /// The conversation has reached the agent in an earlier life of the session.
    pub(in crate::app) fn handed_over(&mut self) {
        self.handover = None;
    }

    /// A prompt was sent: the session is not tried under its former id again.
    pub(in crate::app) fn prompt_sent(&mut self) {
        self.former_id = None;
        if let Some(handover) = &mut self.handover {
            handover.is_sent = true;
        }
    }

    /// The turn has ended. `is_answered`: by the agent, so that it has what the prompt sent along.
    pub(in crate::app) fn turn_ended(&mut self, is_answered: bool) {
        if is_answered && self.handover.take_if(|told| told.is_sent).is_some() {
            self.has_lost_history = false;
        }
        if let Some(handover) = &mut self.handover {
            handover.is_sent = false;
        }
    }

    /// A turn ended well: the agent has the session.
    pub(in crate::app) fn confirm(&mut self) {
        self.doubt = None;
    }
}
