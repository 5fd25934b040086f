//! Detects the end of turns: with the response to their prompt, or with a later event.

use super::Peer;
use crate::acp::codec::TurnNews;
use crate::acp::peer::calls::{Asked, Pending};
use crate::acp::peer::messages;
use crate::model::{AgentEvent, Call};

impl Peer {
    /// Handles the turn events of the last messages.
    pub(super) fn on_turn_news(&mut self) {
        for news in self.codec.take_turn_news() {
            match news {
                TurnNews::Went(session) => self.calls.note_news(&session, self.now),
                TurnNews::Failing(session, error) => {
                    self.calls.note_failing(&session, error, self.now);
                }
                // A turn may have two end messages; the second one is ignored.
                TurnNews::Ended(session, outcome) => {
                    let is_early = self.codec.accepts_before_end() && !self.calls.has_begun(&session);
                    let ended = if is_early { None } else { self.calls.end_prompt(&session) };
                    if let Some(Pending { asked: Asked::Call { tag, .. }, failing, .. }) = ended {
                        self.events.push(AgentEvent::Replied(tag, messages::turn_end(failing, outcome)));
                    }
                }
            }
        }
    }

    /// Puts a prompt back if its turn continues after the response. Returns any other call.
    pub(super) fn take_answered(
        &mut self,
        id: u64,
        mut pending: Pending,
        outcome: Result<&str, &str>,
    ) -> Option<Pending> {
        let Asked::Call { call: call @ Call::Prompt(..), .. } = &pending.asked else { return Some(pending) };
        if self.codec.is_only_receipt(outcome, pending.has_news) {
            pending.is_answered = true;
            self.calls.put_back(id, pending);
            return None;
        }
        if self.codec.may_be_receipt(outcome)
            && let Ok(result) = outcome
            && let Ok(end) = self.codec.reply(call, result, &mut self.events)
        {
            self.calls.presume_end(id, pending, end, self.now);
            return None;
        }
        Some(pending)
    }
}
