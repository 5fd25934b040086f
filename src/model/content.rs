//! Content blocks of messages and tool results.

use serde::{Deserialize, Serialize};

use super::{Body, Growing};

/// A JSON value that parlor shows or saves without interpreting it, as compact JSON text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw(pub Body);

/// One block of content. Source: ACP v1 content, `ContentBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentBlock {
    Text(Growing<String>),
    Image {
        /// Base64 data.
        data: Body,
        mime_type: String,
        /// The source, if sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    Audio {
        /// Base64 data.
        data: Body,
        mime_type: String,
    },
    /// A link to a resource that the reader can fetch.
    ResourceLink(ResourceLink),
    /// An embedded resource.
    Resource {
        uri: String,
        /// MIME type, if sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        body: ResourceBody,
    },
    /// An unknown block, shown as raw JSON.
    Unknown(Raw),
}

impl ContentBlock {
    /// Whether the block is an image, by its declared type.
    pub fn is_picture(&self) -> bool {
        match self {
            Self::Image { .. } => true,
            Self::Resource { mime_type, body: ResourceBody::Blob(_), .. } => {
                mime_type.as_deref().is_some_and(|kind| kind.starts_with("image/"))
            }
            _ => false,
        }
    }

    /// The text, or a note such as `[image, image/png]`.
    pub fn description(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Image { mime_type, uri, .. } => {
                let uri = uri.as_ref().map(|uri| format!(", {uri}")).unwrap_or_default();
                format!("[image, {mime_type}{uri}]")
            }
            Self::Audio { mime_type, .. } => format!("[audio, {mime_type}]"),
            Self::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
            Self::Resource { uri, .. } => format!("[{uri}]"),
            Self::Unknown(raw) => raw.0.to_string(),
        }
    }
}

/// The contents of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    Text(Growing<String>),
    /// Base64 data.
    Blob(Body),
}

/// A link to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResourceLink {
    pub uri: String,
    /// A short name, required by the protocol.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user: an echo of a prompt, or replayed history.
    User,
    Agent,
    Thought,
    /// A message between a session and its subagents, from the view of that session.
    #[serde(rename = "letter")]
    SubagentMessage,
}
