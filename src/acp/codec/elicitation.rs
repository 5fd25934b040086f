//! Decodes questions to the user (elicitation): forms and pages.
//!
//! A requested schema becomes a list of fields in the agent's order. ACP v1: a property of an unknown type MUST NOT
//! be shown as a known one, so such a form is rejected with an error that names the property.

use serde_json::Value;

use crate::model::{
    ElicitationMode, ElicitationRequest, FieldChoice, FieldKind, FormField, RpcError, SessionId, ToolCallId,
};

use super::errors::invalid;
use super::value::{Object, first, first_text, rename, take, take_list, take_text, texts};

const METHOD: &str = "elicitation/create";
pub const ID: &[&str] = &["elicitationId", "elicitation_id", "id"];
const FORMATS: &[&str] = &["email", "uri", "date", "date-time", "password"];
const UNKNOWN: &str = "has an unknown type";

pub fn decode(session: Option<SessionId>, mut params: Object) -> Result<ElicitationRequest, RpcError> {
    let tool = take_text(&mut params, &["toolCallId", "tool_call_id"]).map(ToolCallId::from);
    let message = take_text(&mut params, &["message", "title"]).unwrap_or_default();
    rename(&mut params, "requestedSchema", &["requested_schema", "schema"]);
    // The first version of MCP had forms only, and no mode.
    let mode = first_text(&params, &["mode"]).unwrap_or_else(|| "form".to_owned());
    let mode = match mode.as_str() {
        "form" => decode_form(&mut params)?,
        "url" => {
            let url = take_text(&mut params, &["url"]).ok_or_else(|| invalid(METHOD, "`url` is missing"))?;
            ElicitationMode::Url { id: take_text(&mut params, ID).unwrap_or_else(|| url.clone()), url }
        }
        other => return Err(invalid(METHOD, &format!("mode `{other}` is unknown; use `form` or `url`"))),
    };
    Ok(ElicitationRequest { session, tool, message, mode })
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
    let fields = properties.into_iter().map(|(key, property)| decode_field(key, property, &required));
    Ok(ElicitationMode::Form {
        fields: fields.collect::<Result<_, _>>()?,
        title: take_text(&mut form, &["title"]),
        description: take_text(&mut form, &["description"]),
    })
}

fn decode_field(key: String, property: Value, required: &[Value]) -> Result<FormField, RpcError> {
    let refuse = |why: &str| {
        let usable = "use string, number, integer, boolean, or an array of strings";
        invalid(METHOD, &format!("property `{key}` {why}; {usable}"))
    };
    let Value::Object(mut property) = property else { return Err(refuse("is not an object")) };
    let mut is_required = required.iter().any(|name| name.as_str() == Some(&key));
    let kind = match take(&mut property, &["type"]) {
        // `["string", "null"]` is an optional string.
        Some(Value::Array(mut types)) => {
            is_required = false;
            types.retain(|kind| kind.as_str() != Some("null"));
            if types.len() != 1 {
                return Err(refuse("has several types"));
            }
            types.remove(0)
        }
        Some(kind) => kind,
        None if property.contains_key("enum") || property.contains_key("oneOf") => "string".into(),
        None => return Err(refuse("has no type")),
    };
    let kind = field_kind(kind.as_str().unwrap_or_default(), &property).map_err(refuse)?;
    let title = first_text(&property, &["title"]).unwrap_or_else(|| key.clone());
    let description = first_text(&property, &["description"]);
    Ok(FormField { key, title, description, is_required, kind })
}

fn field_kind(kind: &str, property: &Object) -> Result<FieldKind, &'static str> {
    let default = property.get("default");
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let count = |value: &Value| Some(u32::try_from(value.as_u64()?).unwrap_or(u32::MAX));
    let is_integer = kind == "integer";
    let number = |value: &Value| {
        #[allow(clippy::cast_precision_loss, reason = "bounds and defaults of form fields are small")]
        if is_integer { value.as_i64().map(|value| value as f64) } else { value.as_f64() }
    };
    // The older form of MCP names the values of `enum` in `enumNames`.
    let names = property.get("enumNames").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(match kind {
        "string" => match choices(property, names)? {
            Some(choices) => FieldKind::Choice { choices, default: default.and_then(text_of) },
            None => FieldKind::Text {
                min_chars: limit(property, "minLength", count)?,
                max_chars: limit(property, "maxLength", count)?,
                pattern: limit(property, "pattern", text_of)?,
                // A write-only field is treated as a password.
                format: match property.get("writeOnly") {
                    Some(Value::Bool(true)) => Some("password".to_owned()),
                    _ => limit(property, "format", |word| {
                        text_of(word).filter(|word| FORMATS.contains(&word.as_str()))
                    })?,
                },
                default: default.and_then(text_of),
            },
        },
        "number" | "integer" => FieldKind::Number {
            is_integer,
            minimum: limit(property, "minimum", number)?,
            maximum: limit(property, "maximum", number)?,
            default: default.and_then(number),
        },
        "boolean" => FieldKind::Boolean { default: default.and_then(Value::as_bool) },
        "array" => {
            let items = property.get("items").and_then(Value::as_object);
            let items = items.filter(|items| items.get("type").is_none_or(|kind| kind == "string"));
            FieldKind::Choices {
                choices: choices(items.ok_or(UNKNOWN)?, names)?.ok_or(UNKNOWN)?,
                min_items: limit(property, "minItems", count)?,
                max_items: limit(property, "maxItems", count)?,
                default: texts(default),
            }
        }
        _ => return Err(UNKNOWN),
    })
}

/// A limit of a field. One that cannot be read refuses the form, because it could not be checked.
fn limit<T>(
    property: &Object,
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, &'static str> {
    first(property, &[key]).map(|value| read(value).ok_or("has an unknown limit or format")).transpose()
}

/// The choices of a field: titled ones, or values that are their own titles unless `names` has others. `None`: no choices.
fn choices(object: &Object, names: &[Value]) -> Result<Option<Vec<FieldChoice>>, &'static str> {
    let titled = |option: &Value| {
        let text_of = |key: &str| Some(option.get(key)?.as_str()?.to_owned());
        let (value, title) = (text_of("const")?, text_of("title")?);
        Some(FieldChoice { value, title, description: text_of("description") })
    };
    let plain = |(at, value): (usize, &Value)| {
        let value = value.as_str()?.to_owned();
        let title = names.get(at).and_then(Value::as_str).unwrap_or(&value).to_owned();
        Some(FieldChoice { value, title, description: None })
    };
    let choices: Option<Vec<_>> = if let Some(options) = first(object, &["oneOf", "anyOf"]) {
        options.as_array().and_then(|options| options.iter().map(titled).collect())
    } else if let Some(values) = first(object, &["enum"]) {
        values.as_array().and_then(|values| values.iter().enumerate().map(plain).collect())
    } else {
        return Ok(None);
    };
    choices.map(Some).ok_or("has choices that are not strings")
}
