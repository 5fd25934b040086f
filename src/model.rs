//! Plain data that every layer shares: session updates, requests, responses and commands.
//!
//! The types are shaped like ACP v2 (items upserted by id, three-state patches, the end of a turn separate
//! from the response to the prompt), so that v1, v2 and the dialects are adapters to them. They can be
//! cloned, compared and printed; nothing here does IO.

pub mod access;
pub mod action;
pub mod agent;
pub mod archive;
pub mod attachment;
pub mod body;
pub mod bounded;
pub mod byte_size;
pub mod command;
pub mod content;
pub mod copy;
pub mod diff;
pub mod dropped;
pub mod event;
pub mod fault;
pub mod fold;
pub mod ids;
pub mod input_keys;
pub mod options;
pub mod patch;
pub mod plan;
pub mod policy;
pub mod prompt;
pub mod record;
pub mod registry;
pub mod remote;
pub mod request;
pub mod root;
pub mod secret;
pub mod service;
pub mod setting;
pub mod sign_in;
pub mod spec;
pub mod ssh;
pub mod target;
pub mod template;
pub mod terminal_modes;
pub mod tool;
pub mod update;
pub mod weight;

pub use access::*;
pub use action::*;
pub use agent::*;
pub use archive::*;
pub use attachment::*;
pub use body::*;
pub use bounded::*;
pub use byte_size::*;
pub use command::*;
pub use content::*;
pub use copy::*;
pub use diff::*;
pub use dropped::*;
pub use event::*;
pub use fault::*;
pub use fold::*;
pub use ids::*;
pub use options::*;
pub use plan::*;
pub use policy::*;
pub use prompt::*;
pub use record::*;
pub use registry::*;
pub use remote::*;
pub use request::*;
pub use root::*;
pub use secret::*;
pub use service::*;
pub use setting::*;
pub use sign_in::*;
pub use spec::*;
pub use ssh::*;
pub use target::*;
pub use template::*;
pub use terminal_modes::*;
pub use tool::*;
pub use update::*;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field of an update: unchanged, cleared, or set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The update does not mention the field.
    #[default]
    Keep,
    /// The update clears the field (`null` where the protocol defines it as "clear").
    Clear,
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the field is unchanged; records omit such a field.
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// `Set` for a value, `Keep` for none, as in v1, where `null` and absent both mean "unchanged".
    pub fn from_option(value: Option<T>) -> Self {
        value.map_or(Self::Keep, Self::Set)
    }

    /// The new value, if there is one.
    pub fn as_set(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }

    /// Applies the patch to a field that always has a value; `Clear` means its default.
    pub fn apply_or_default(self, field: &mut T)
    where
        T: Default,
    {
        match self {
            Self::Keep => {}
            Self::Clear => *field = T::default(),
            Self::Set(value) => *field = value,
        }
    }
}

/// On disk, a missing field means `Keep` and `null` means `Clear`.
impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_set().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}
