//! Decodes questions to the user (elicitation): forms and pages.
//!
//! A requested schema becomes a list of fields in the agent's order. ACP v1: a property of an unknown type MUST NOT
//! be shown as a known one, so such a form is rejected with an error that names the property.

use agent_client_protocol_schema::v1 as schema;
use serde_json::Value;

use crate::model::{
    ElicitationMode, ElicitationRequest, FieldChoice, FieldKind, FormField, RpcError, SessionId, ToolCallId,
};

use super::errors::invalid;
use super::value::{
    Object, fill, first, first_text, parse_object, rename, take, take_list, take_text, typed, word_of,
};

const METHOD: &str = "elicitation/create";

/// Decodes `elicitation/create`.
pub(super) fn decode(session: Option<SessionId>, mut params: Object) -> Result<ElicitationRequest, RpcError> {
    let tool = take_text(&mut params, &["toolCallId", "tool_call_id"]).map(ToolCallId::from);
    let message = take_text(&mut params, &["message", "title"]).unwrap_or_default();
    rename(&mut params, "requestedSchema", &["requested_schema", "schema"]);
    let mode = first_text(&params, &["mode"]).unwrap_or_else(|| {
        // The first version of MCP had forms only, and no mode.
        let is_url = first(&params, &["url"]).is_some() && first(&params, &["requestedSchema"]).is_none();
        if is_url { "url" } else { "form" }.to_owned()
    });
    let mode = match mode.as_str() {
        "form" => decode_form(&mut params)?,
        "url" => {
            let url = take_text(&mut params, &["url"]).ok_or_else(|| invalid(METHOD, "`url` is missing"))?;
            let id = take_text(&mut params, &["elicitationId", "elicitation_id", "id"])
                .unwrap_or_else(|| url.clone());
            ElicitationMode::Url { id, url }
        }
        other => {
            return Err(invalid(METHOD, &format!("mode `{other}` is unknown; use `form` or `url`")));
        }
    };
    Ok(ElicitationRequest { session, tool, message, mode })
}

/// Decodes `elicitation/complete`: the id of the completed request.
pub(super) fn decode_complete(params: &str) -> Option<String> {
    let mut params = parse_object(params)?;
    rename(&mut params, "elicitationId", &["elicitation_id", "id"]);
    let notice: schema::CompleteElicitationNotification = typed(Value::Object(params)).ok()?;
    Some(notice.elicitation_id.to_string())
}

fn decode_form(params: &mut Object) -> Result<ElicitationMode, RpcError> {
    let Some(Value::Object(mut form)) = take(params, &["requestedSchema"]) else {
        return Err(invalid(METHOD, "`requestedSchema` must be an object"));
    };
    let required = take_list(&mut form, &["required"]);
    let properties = match take(&mut form, &["properties"]) {
        Some(Value::Object(properties)) => properties,
        None => Object::new(),
        Some(_) => return Err(invalid(METHOD, "`properties` must be an object")),
    };
    // Decoded manually, because the official map sorts by key and would lose the agent's order.
    let fields = properties
        .into_iter()
        .map(|(key, property)| decode_field(key, property, &required))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ElicitationMode::Form {
        title: take_text(&mut form, &["title"]),
        description: take_text(&mut form, &["description"]),
        fields,
    })
}

fn decode_field(key: String, property: Value, required: &[Value]) -> Result<FormField, RpcError> {
    let refuse = |why: &str| {
        invalid(
            METHOD,
            &format!("property `{key}` {why}; use string, number, integer, boolean, or an array of strings"),
        )
    };
    let Value::Object(mut property) = property else { return Err(refuse("is not an object")) };
    let mut is_required = required.iter().any(|name| name.as_str() == Some(&key));
    if let Some(Value::Array(types)) = property.get("type") {
        // `["string", "null"]` is an optional string.
        let types: Vec<Value> = types.iter().filter(|kind| kind.as_str() != Some("null")).cloned().collect();
        let [only] = types.as_slice() else { return Err(refuse("has several types")) };
        property.insert("type".to_owned(), only.clone());
        is_required = false;
    }
    if property.get("type").is_none_or(Value::is_null) {
        if !property.contains_key("enum") && !property.contains_key("oneOf") {
            return Err(refuse("has no type"));
        }
        property.insert("type".to_owned(), "string".into());
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string") => rename(&mut property, "oneOf", &["anyOf"]),
        Some("array") => shape_items(&mut property),
        _ => {}
    }
    // The official decoder supports neither.
    let is_password = property.get("format").and_then(Value::as_str) == Some("password");
    let is_write_only = take(&mut property, &["writeOnly"]) == Some(Value::Bool(true)) || is_password;
    if is_password {
        property.remove("format");
    }
    let promised = promised_choices(&property);
    let names = take_list(&mut property, &["enumNames"]);
    let title = first_text(&property, &["title"]).unwrap_or_else(|| key.clone());
    let description = first_text(&property, &["description"]);
    let property: schema::ElicitationPropertySchema =
        typed(Value::Object(property)).map_err(|error| refuse(&format!("is invalid: {error}")))?;
    let mut kind = field_kind(property, &names).ok_or_else(|| refuse("has an unknown type"))?;
    if let FieldKind::Text { format, .. } = &mut kind
        && is_write_only
    {
        // A write-only field is treated as a password.
        *format = Some("password".to_owned());
    }
    let found = match &kind {
        FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => choices.len(),
        _ => 0,
    };
    // The official decoder drops choices that it cannot decode, which would turn a choice into free text.
    if found != promised {
        return Err(refuse("has choices that are not strings"));
    }
    Ok(FormField { key, title, description, is_required, kind })
}

/// Converts the choices of an array into the official shape: strings with their type, titled ones under `anyOf`.
fn shape_items(property: &mut Object) {
    let Some(Value::Object(items)) = property.get_mut("items") else { return };
    rename(items, "anyOf", &["oneOf"]);
    if items.contains_key("enum") {
        fill(items, "type", || "string".into());
    }
}

fn promised_choices(property: &Object) -> usize {
    let of = |object: &Object| {
        ["oneOf", "enum", "anyOf"].iter().find_map(|key| object.get(*key)?.as_array()).map_or(0, Vec::len)
    };
    match property.get("items").and_then(Value::as_object) {
        Some(items) => of(items),
        None => of(property),
    }
}

fn field_kind(property: schema::ElicitationPropertySchema, names: &[Value]) -> Option<FieldKind> {
    use schema::ElicitationPropertySchema as Property;
    Some(match property {
        Property::String(text) => {
            let choices = match (text.one_of, text.enum_values) {
                (Some(options), _) => Some(titled(options)),
                (None, Some(values)) => Some(plain(values, names)),
                (None, None) => None,
            };
            match choices {
                Some(choices) => FieldKind::Choice { choices, default: text.default },
                None => FieldKind::Text {
                    min_chars: text.min_length,
                    max_chars: text.max_length,
                    pattern: text.pattern,
                    format: text.format.as_ref().and_then(word_of),
                    default: text.default,
                },
            }
        }
        Property::Number(number) => FieldKind::Number {
            is_integer: false,
            minimum: number.minimum,
            maximum: number.maximum,
            default: number.default,
        },
        #[allow(clippy::cast_precision_loss, reason = "bounds and defaults of form fields are small")]
        Property::Integer(number) => FieldKind::Number {
            is_integer: true,
            minimum: number.minimum.map(|value| value as f64),
            maximum: number.maximum.map(|value| value as f64),
            default: number.default.map(|value| value as f64),
        },
        Property::Boolean(boolean) => FieldKind::Boolean { default: boolean.default },
        Property::Array(array) => {
            let choices = match array.items {
                schema::MultiSelectItems::String(items) => plain(items.values, names),
                schema::MultiSelectItems::Titled(items) => titled(items.options),
                _ => return None,
            };
            FieldKind::Choices {
                choices,
                min_items: array.min_items.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
                max_items: array.max_items.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
                default: array.default.unwrap_or_default(),
            }
        }
        _ => return None,
    })
}

fn titled(options: Vec<schema::EnumOption>) -> Vec<FieldChoice> {
    options
        .into_iter()
        .map(|option| FieldChoice {
            value: option.value,
            title: option.title,
            description: option.description,
        })
        .collect()
}

/// Values that are their own titles, unless `enumNames` (the older form of MCP) provides them.
fn plain(values: Vec<String>, names: &[Value]) -> Vec<FieldChoice> {
    values
        .into_iter()
        .enumerate()
        .map(|(at, value)| {
            let title = names.get(at).and_then(Value::as_str).map_or_else(|| value.clone(), str::to_owned);
            FieldChoice { value, title, description: None }
        })
        .collect()
}
