//! `ActiveContext`: sessions that end with a cancelled turn, and a list of sessions that is not advertised.
//!
//! Its flat updates and permission options are among the shapes that `codec` accepts from any agent.
//! Source: the documentation and the code of `ActiveContext`.

use std::collections::BTreeSet;

use super::{Dialect, Method, Translation};
use crate::model::{AgentInfo, Call, Profile};

#[derive(Debug, Default)]
pub struct ActiveContext {
    resuming: BTreeSet<u64>,
}

impl Dialect for ActiveContext {
    fn describe(&self, info: &mut AgentInfo) {
        info.profile = Some(Profile::ActiveContext);
        info.capabilities.can_list = true;
        info.capabilities.dies_on_cancel = true;
        info.quirks.extend([
            "The session is reopened after a cancelled turn.".to_owned(),
            "An empty response to session/resume means that the session does not exist.".to_owned(),
            "The agent can list sessions without advertising it.".to_owned(),
        ]);
    }

    fn call(&mut self, id: u64, call: &Call, _message: &mut Method) -> Result<(), String> {
        if let Call::ResumeSession(..) = call {
            self.resuming.insert(id);
        }
        Ok(())
    }

    fn on_response(&mut self, id: u64, outcome: Result<&str, &str>, out: &mut Translation) -> bool {
        let is_gone = self.resuming.remove(&id) && outcome == Ok("null");
        if is_gone {
            out.respond(id, Err(super::no_session()));
        }
        is_gone
    }
}
