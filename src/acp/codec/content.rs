//! Decodes and encodes content blocks.
//!
//! Invariant: an unknown block becomes [`ContentBlock::Unknown`] with all of its JSON.

use agent_client_protocol_schema::v1 as schema;
use serde::Deserialize;
use serde_json::Value;

use crate::model::{AgentCapabilities, ContentBlock, ResourceBody, ResourceLink};

use super::value::{Object, fill, raw, rename};

pub(super) const BLOCK_TYPES: &[&str] = &["text", "image", "audio", "resource_link", "resource"];

/// Non-standard types of text blocks.
const TEXT_TYPES: &[&str] = &["markdown", "output_text", "input_text", "text_delta"];

pub(super) fn decode(value: Value) -> ContentBlock {
    let value = shape(value);
    match schema::ContentBlock::deserialize(&value) {
        Ok(block) => from_official(block).unwrap_or_else(|| ContentBlock::Unknown(raw(&value))),
        Err(_) => ContentBlock::Unknown(raw(&value)),
    }
}

/// Decodes a message's content: a block, a list of blocks, a text, or an object that holds one of these under `text` or
/// `delta`.
pub(super) fn decode_many(value: Value) -> Vec<ContentBlock> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.into_iter().map(decode).collect(),
        other => vec![decode(other)],
    }
}

/// The Markdown of the text blocks, and the number of other blocks.
pub(super) fn text_of_many(blocks: Vec<ContentBlock>) -> (String, usize) {
    let mut text = String::new();
    let mut others = 0;
    for block in blocks {
        match block {
            ContentBlock::Text(part) => text.push_str(&part),
            _ => others += 1,
        }
    }
    (text, others)
}

/// Converts a block into the official shape, where its kind is unambiguous.
fn shape(value: Value) -> Value {
    let mut block = match value {
        Value::String(text) => return serde_json::json!({ "type": "text", "text": text }),
        Value::Object(block) => block,
        other => return other,
    };
    rename(&mut block, "mimeType", &["mime_type", "media_type", "mediaType"]);
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if TEXT_TYPES.contains(&kind) || (kind.is_empty() && has_string(&block, "text")) {
        block.insert("type".to_owned(), "text".into());
    } else if kind.is_empty() {
        let guess = guess_type(&block);
        if let Some(guess) = guess {
            block.insert("type".to_owned(), guess.into());
        }
    } else if kind == "resource_link" {
        // `name` is required, but some agents omit it.
        let name = block.get("uri").and_then(Value::as_str).map(last_segment).unwrap_or_default().to_owned();
        fill(&mut block, "name", || name.into());
    } else if kind == "resource"
        && let Some(Value::Object(resource)) = block.get_mut("resource")
    {
        rename(resource, "mimeType", &["mime_type"]);
    }
    Value::Object(block)
}

fn guess_type(block: &Object) -> Option<&'static str> {
    if block.get("resource").is_some_and(Value::is_object) {
        return Some("resource");
    }
    let mime_type = block.get("mimeType").and_then(Value::as_str).unwrap_or_default();
    if has_string(block, "data") && mime_type.starts_with("image/") {
        Some("image")
    } else if has_string(block, "data") && mime_type.starts_with("audio/") {
        Some("audio")
    } else if has_string(block, "uri") && has_string(block, "name") {
        Some("resource_link")
    } else {
        None
    }
}

fn has_string(block: &Object, key: &str) -> bool {
    block.get(key).is_some_and(Value::is_string)
}

/// The part of a URI after the last slash.
pub(super) fn last_segment(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

/// Converts a block; `None`: a kind of a later version of the protocol.
pub(super) fn from_official(block: schema::ContentBlock) -> Option<ContentBlock> {
    Some(match block {
        schema::ContentBlock::Text(text) => ContentBlock::Text(text.text.into()),
        schema::ContentBlock::Image(image) => {
            ContentBlock::Image { data: image.data.into(), mime_type: image.mime_type, uri: image.uri }
        }
        schema::ContentBlock::Audio(audio) => {
            ContentBlock::Audio { data: audio.data.into(), mime_type: audio.mime_type }
        }
        schema::ContentBlock::ResourceLink(link) => ContentBlock::ResourceLink(ResourceLink {
            uri: link.uri,
            name: link.name,
            title: link.title,
            description: link.description,
            mime_type: link.mime_type,
            size_bytes: link.size.and_then(|size| u64::try_from(size).ok()),
        }),
        schema::ContentBlock::Resource(resource) => match resource.resource {
            schema::EmbeddedResourceResource::TextResourceContents(text) => ContentBlock::Resource {
                uri: text.uri,
                mime_type: text.mime_type,
                body: ResourceBody::Text(text.text.into()),
            },
            schema::EmbeddedResourceResource::BlobResourceContents(blob) => ContentBlock::Resource {
                uri: blob.uri,
                mime_type: blob.mime_type,
                body: ResourceBody::Blob(blob.blob.into()),
            },
            _ => return None,
        },
        _ => return None,
    })
}

/// Encodes a block of a prompt. ACP v1 prompt-turn: only kinds that the agent's `promptCapabilities` allow; others
/// become a link, or a note that they were omitted.
pub(in crate::acp) fn encode(block: &ContentBlock, can: &AgentCapabilities) -> schema::ContentBlock {
    match block {
        ContentBlock::Text(text) => text.as_str().into(),
        ContentBlock::Image { data, mime_type, uri } if can.prompt_image => schema::ContentBlock::Image(
            schema::ImageContent::new(data.as_str(), mime_type.as_str()).uri(uri.clone()),
        ),
        ContentBlock::Image { uri: Some(uri), mime_type, .. } => link(uri, Some(mime_type)),
        ContentBlock::Image { .. } => "[Image omitted: the agent does not support images.]".into(),
        ContentBlock::Audio { data, mime_type } if can.prompt_audio => {
            schema::ContentBlock::Audio(schema::AudioContent::new(data.as_str(), mime_type.as_str()))
        }
        ContentBlock::Audio { .. } => "[Audio omitted: the agent does not support audio.]".into(),
        ContentBlock::ResourceLink(link) => {
            let name = if link.name.is_empty() { last_segment(&link.uri) } else { &link.name };
            schema::ContentBlock::ResourceLink(
                schema::ResourceLink::new(name, link.uri.as_str())
                    .title(link.title.clone())
                    .description(link.description.clone())
                    .mime_type(link.mime_type.clone())
                    .size(link.size_bytes.and_then(|size| i64::try_from(size).ok())),
            )
        }
        ContentBlock::Resource { uri, mime_type, body } if can.prompt_embedded_context => {
            schema::ContentBlock::Resource(schema::EmbeddedResource::new(encode_resource(
                uri,
                mime_type.as_deref(),
                body,
            )))
        }
        ContentBlock::Resource { uri, mime_type, .. } => link(uri, mime_type.as_deref()),
        ContentBlock::Unknown(raw) => serde_json::from_str(&raw.0).unwrap_or_else(|_| raw.0.as_str().into()),
    }
}

fn encode_resource(
    uri: &str,
    mime_type: Option<&str>,
    body: &ResourceBody,
) -> schema::EmbeddedResourceResource {
    match body {
        ResourceBody::Text(text) => schema::EmbeddedResourceResource::TextResourceContents(
            schema::TextResourceContents::new(text.as_str(), uri).mime_type(mime_type.map(str::to_owned)),
        ),
        ResourceBody::Blob(blob) => schema::EmbeddedResourceResource::BlobResourceContents(
            schema::BlobResourceContents::new(blob.as_str(), uri).mime_type(mime_type.map(str::to_owned)),
        ),
    }
}

fn link(uri: &str, mime_type: Option<&str>) -> schema::ContentBlock {
    schema::ContentBlock::ResourceLink(
        schema::ResourceLink::new(last_segment(uri), uri).mime_type(mime_type.map(str::to_owned)),
    )
}
