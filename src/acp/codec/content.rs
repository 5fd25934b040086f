//! Decodes and encodes content blocks.
//!
//! Invariant: an unknown block becomes [`ContentBlock::Unknown`] with all of its JSON.

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use crate::model::{AgentCapabilities, ContentBlock, ResourceBody, ResourceLink};

use super::value::{fill, list, raw, without_nulls};

pub const BLOCK_TYPES: &[&str] = &["text", "image", "audio", "resource_link", "resource"];

pub fn decode(value: Value) -> ContentBlock {
    let value = shape(value);
    read(&value).unwrap_or_else(|| ContentBlock::Unknown(raw(&value)))
}

/// Decodes a message's content: a block, a list of blocks, a text, or an object with one of these in `text` or `delta`.
pub fn decode_many(value: Value) -> Vec<ContentBlock> {
    list(value).into_iter().map(decode).collect()
}

/// Converts a block into the official shape.
fn shape(value: Value) -> Value {
    let mut block = match value {
        Value::String(text) => return encode_text(&text),
        Value::Object(block) => block,
        other => return other,
    };
    if block.get("text").is_some_and(Value::is_string) {
        fill(&mut block, "type", || "text".into());
    } else if block.get("type").is_some_and(|kind| kind == "resource_link") {
        // `name` is required, but some agents omit it.
        let name = block.get("uri").and_then(Value::as_str).map(last_segment).unwrap_or_default().to_owned();
        fill(&mut block, "name", || name.into());
    }
    Value::Object(block)
}

pub fn last_segment(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

/// Reads a block in the official shape; `None`: invalid, or a kind of a later version of the protocol.
fn read(value: &Value) -> Option<ContentBlock> {
    let text_of = |key: &str| value.get(key)?.as_str().map(str::to_owned);
    Some(match value.get("type")?.as_str()? {
        "text" => ContentBlock::Text(text_of("text")?.into()),
        "image" => {
            let uri = text_of("uri");
            ContentBlock::Image { data: text_of("data")?.into(), mime_type: text_of("mimeType")?, uri }
        }
        "audio" => ContentBlock::Audio { data: text_of("data")?.into(), mime_type: text_of("mimeType")? },
        "resource_link" => ContentBlock::ResourceLink(ResourceLink {
            uri: text_of("uri")?,
            name: text_of("name")?,
            title: text_of("title"),
            description: text_of("description"),
            mime_type: text_of("mimeType"),
            size_bytes: value.get("size").and_then(Value::as_u64),
        }),
        "resource" => {
            let text_of = |key: &str| value.get("resource")?.get(key)?.as_str().map(str::to_owned);
            let body = match text_of("text") {
                Some(text) => ResourceBody::Text(text.into()),
                None => ResourceBody::Blob(text_of("blob")?.into()),
            };
            ContentBlock::Resource { uri: text_of("uri")?, mime_type: text_of("mimeType"), body }
        }
        _ => return None,
    })
}

/// Encodes a block of a prompt. ACP v1 prompt-turn: only kinds that the agent's `promptCapabilities` allow; others
/// become a link, or a note that they were omitted.
pub fn encode(block: &ContentBlock, can: &AgentCapabilities) -> Value {
    match block {
        ContentBlock::Text(text) => encode_text(text),
        ContentBlock::Image { data, mime_type, uri } if can.prompt_image => {
            without_nulls(json!({"type": "image", "data": data.as_str(), "mimeType": mime_type, "uri": uri}))
        }
        ContentBlock::Image { uri: Some(uri), mime_type, .. } => link(uri, Some(mime_type)),
        ContentBlock::Image { .. } => encode_text("[Image omitted: the agent does not support images.]"),
        ContentBlock::Audio { data, mime_type } if can.prompt_audio => {
            json!({"type": "audio", "data": data.as_str(), "mimeType": mime_type})
        }
        ContentBlock::Audio { .. } => encode_text("[Audio omitted: the agent does not support audio.]"),
        ContentBlock::ResourceLink(link) => without_nulls(json!({
            "type": "resource_link",
            "name": if link.name.is_empty() { last_segment(&link.uri) } else { &link.name },
            "uri": link.uri,
            "title": link.title,
            "description": link.description,
            "mimeType": link.mime_type,
            "size": link.size_bytes.and_then(|size| i64::try_from(size).ok()),
        })),
        ContentBlock::Resource { uri, mime_type, body } if can.prompt_embedded_context => {
            let (key, body) = match body {
                ResourceBody::Text(text) => ("text", text.as_str()),
                ResourceBody::Blob(blob) => ("blob", blob.as_str()),
            };
            let resource = without_nulls(json!({"uri": uri, "mimeType": mime_type, key: body}));
            json!({"type": "resource", "resource": resource})
        }
        ContentBlock::Resource { uri, mime_type, .. } => link(uri, mime_type.as_deref()),
        ContentBlock::Unknown(raw) => match serde_json::from_str::<schema::ContentBlock>(&raw.0) {
            Ok(block) => json!(block),
            Err(_) => encode_text(&raw.0),
        },
    }
}

fn encode_text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn link(uri: &str, mime_type: Option<&str>) -> Value {
    let name = last_segment(uri);
    without_nulls(json!({"type": "resource_link", "name": name, "uri": uri, "mimeType": mime_type}))
}
