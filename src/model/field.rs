//! The fields of updates.

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
