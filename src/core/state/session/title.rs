//! Where the title of a session comes from: the user or the agent.

/// Whether the user gave the title, and whether the agent has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TitleState {
    is_own: bool,
    is_owed: bool,
}

impl TitleState {
    pub(in crate::core) fn saved(is_own: bool, is_owed: bool) -> Self {
        Self { is_own, is_owed }
    }

    pub(in crate::core) fn set_by_user(&mut self, is_owed: bool) {
        *self = Self { is_own: true, is_owed };
    }

    pub(in crate::core) fn agent_has_it(&mut self) {
        self.is_owed = false;
    }

    /// The session has another agent, or another session id, which do not have a title of the user.
    pub(in crate::core) fn clear_agent_state(&mut self) {
        self.is_owed = self.is_own;
    }

    /// A title was saved while the agent was not informed of it.
    pub(in crate::core) fn owe(&mut self, is_owed: bool) {
        self.is_owed |= is_owed;
    }

    pub fn is_own(self) -> bool {
        self.is_own
    }

    /// Whether the agent does not have the title.
    pub fn is_owed(self) -> bool {
        self.is_owed
    }
}
