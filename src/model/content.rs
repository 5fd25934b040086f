//! Content blocks: what messages and tool results are made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A JSON value that parlor shows or keeps without reading it, as compact JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw(pub Arc<str>);

/// One block of content. Source: ACP v1 content, `ContentBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text, to be read as Markdown.
    Text(String),
    /// An image, still in base64.
    Image {
        /// Base64 data.
        data: Arc<str>,
        /// MIME type as told.
        mime_type: String,
        /// Where it came from, if told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    /// A sound, still in base64.
    Audio {
        /// Base64 data.
        data: Arc<str>,
        /// MIME type as told.
        mime_type: String,
    },
    /// A link to something that the reader can fetch.
    ResourceLink(ResourceLink),
    /// A resource with its contents.
    Resource {
        uri: String,
        /// MIME type, if told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// The contents.
        body: ResourceBody,
    },
    /// A block that parlor does not know, shown as it came.
    Unknown(Raw),
}

impl ContentBlock {
    /// Whether it is a picture, by what it claims to be.
    pub fn is_picture(&self) -> bool {
        match self {
            Self::Image { .. } => true,
            Self::Resource { mime_type, body: ResourceBody::Blob(_), .. } => {
                mime_type.as_deref().is_some_and(|kind| kind.starts_with("image/"))
            }
            _ => false,
        }
    }
}

/// The contents of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    Text(String),
    /// Base64 data.
    Blob(Arc<str>),
}

/// A link to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResourceLink {
    pub uri: String,
    /// A short name, required by the protocol.
    pub name: String,
    /// A longer name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user: an echo of a prompt, or replayed history.
    User,
    /// The agent's answer.
    Agent,
    /// The agent's reasoning.
    Thought,
    /// What a session and its subagents write to each other, seen from that session.
    Letter,
}
