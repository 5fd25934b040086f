//! Identifiers. An id that a peer made is an opaque string; an id that we made is a number.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The id as the peer spelled it; not sanitised for display.
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
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

text_id! {
    /// A session, as the agent names it.
    SessionId
}
text_id! {
    /// A tool call, as the agent names it. Unique within a turn only: some agents start again each turn.
    ToolCallId
}
text_id! {
    /// A message of which chunks are parts.
    MessageId
}
text_id! {
    /// A terminal: ours (`terminal/create`) or one that the agent owns and tells about.
    TerminalId
}
text_id! {
    /// A plan, where an agent keeps several.
    PlanId
}
text_id! {
    /// A session mode.
    ModeId
}
text_id! {
    /// A model in the legacy `models` list.
    ModelId
}

number_id! {
    /// One life of one agent process (a restart makes a new one).
    ConnId
}
number_id! {
    /// A session as parlor counts it: it exists before the agent has named it, and outlives a restart.
    SessionKey
}
number_id! {
    /// An open request of an agent. Unique over all connections of this process.
    AskId
}

/// An item of a transcript: a name that is given once and never reused, also after the item went and came back.
///
/// It says nothing about where the item stands; `Transcript::index_of` does. Items are numbered upwards from 0 as they
/// come, and downwards from -1 where they are put in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ItemId(pub i64);

impl ItemId {
    /// The line above all items that says how much is not shown.
    pub const HEAD: Self = Self(i64::MIN);
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
