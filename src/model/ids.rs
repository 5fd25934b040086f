//! Identifiers. An id from a peer is an opaque string; an id from parlor is a number.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* pub struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The id as the peer sent it; not sanitised for display.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

macro_rules! number_id {
    ($(#[$doc:meta])* pub struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

text_id! {
    pub struct SessionId;
}
text_id! {
    /// The agent's id of a tool call. Unique only within a turn: some agents restart the numbers each turn.
    pub struct ToolCallId;
}
text_id! {
    pub struct MessageId;
}
text_id! {
    /// A terminal: created with `terminal/create`, or owned and reported by the agent.
    pub struct TerminalId;
}
text_id! {
    /// A plan, if an agent has several.
    pub struct PlanId;
}
text_id! {
    pub struct ModeId;
}
text_id! {
    /// A model in the legacy `models` list.
    pub struct ModelId;
}

impl TerminalId {
    /// The id of a command that the user typed; `unique` is unique across runs of parlor.
    pub fn of_user(unique: &str, number: u32) -> Self {
        Self::from(format!("user-{unique}-{number}"))
    }

    /// The number of the user's command in its session. An agent may choose such an id for a terminal of its own.
    pub fn user_number(&self) -> Option<u32> {
        self.as_str().strip_prefix("user-")?.rsplit_once('-')?.1.parse().ok()
    }
}

number_id! {
    /// One run of an agent process; a restart has a new id.
    pub struct ConnId;
}
number_id! {
    /// parlor's id of a session. It exists before the agent assigns an id, and survives a restart.
    pub struct SessionKey;
}
number_id! {
    /// An open request of an agent. Unique over all connections of this process.
    pub struct RequestId;
}

/// An item of a transcript. An id is never reused for another item, even after its item was unloaded and
/// loaded again.
///
/// It does not encode a position; `Transcript::index_of` returns it. New items are numbered upwards from 0,
/// and items that are inserted at the start downwards from -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct ItemId(pub i64);

impl ItemId {
    /// The line above all items that shows how much is not loaded.
    pub const HEAD: Self = Self(i64::MIN);
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
