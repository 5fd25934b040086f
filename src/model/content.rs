//! Content blocks: what messages and tool results are made of.

use std::sync::Arc;

/// A JSON value that parlor shows or keeps without reading it, as compact JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(pub Arc<str>);

/// One block of content. Source: ACP v1 content, `ContentBlock`.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        /// Its URI.
        uri: String,
        /// MIME type, if told.
        mime_type: Option<String>,
        /// The contents.
        body: ResourceBody,
    },
    /// A block that parlor does not know, shown as it came.
    Unknown(Raw),
}

/// The contents of an embedded resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Base64 data.
    Blob(Arc<str>),
}

/// A link to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceLink {
    /// Its URI.
    pub uri: String,
    /// A short name, required by the protocol.
    pub name: String,
    /// A longer name.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// MIME type.
    pub mime_type: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
