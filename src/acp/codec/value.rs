//! Helpers for JSON values: fields with alternative keys.
//!
//! Invariant: `null` counts as absent, as in the official decoders.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::model::Raw;

pub type Object = Map<String, Value>;

/// Parses JSON; `None`: invalid. Of several values with one key the last counts; the others are `KEY (duplicate)`.
pub fn parse(text: &str) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Tree.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

struct Tree;

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! visit {
    ($($name:ident: $scalar:ty),*) => {
        $(fn $name<E>(self, value: $scalar) -> Result<Value, E> {
            Ok(value.into())
        })*
    };
}

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    visit!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String);

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        std::iter::from_fn(|| items.next_element_seed(Self).transpose()).collect()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some(key) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(Self)?;
            match object.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(mut taken) => {
                    let earlier = (taken.key().clone(), taken.insert(value));
                    keep_duplicate(&mut object, earlier);
                }
            }
        }
        Ok(Value::Object(object))
    }
}

/// Inserts the earlier value of a key under a name of its own, or counts it.
fn keep_duplicate(object: &mut Object, (key, value): (String, Value)) {
    const MAX_KEPT: usize = 20;
    let names = (1..=MAX_KEPT).map(|number| match number {
        1 => format!("{key} (duplicate)"),
        number => format!("{key} (duplicate {number})"),
    });
    if let Some(free) = names.into_iter().find(|name| !object.contains_key(name)) {
        object.insert(free, value);
        return;
    }
    let count = object.entry(format!("{key} (more duplicates)")).or_insert_with(|| 0.into());
    *count = count.as_u64().unwrap_or(0).saturating_add(1).into();
}

pub fn parse_object(text: &str) -> Option<Object> {
    if let Value::Object(object) = parse(text)? { Some(object) } else { None }
}

pub fn into_object(value: Value) -> Object {
    if let Value::Object(object) = value { object } else { Object::new() }
}

pub fn without_nulls(value: Value) -> Value {
    let mut object = into_object(value);
    object.retain(|_, value| !value.is_null());
    object.into()
}

/// The object in a value; a string becomes the field `key` of one.
pub fn object_with(value: Value, key: &str) -> Option<Object> {
    match value {
        Value::Object(object) => Some(object),
        text @ Value::String(_) => Some(Object::from_iter([(key.to_owned(), text)])),
        _ => None,
    }
}

pub fn raw(value: &Value) -> Raw {
    Raw(value.to_string().into())
}

pub fn first<'a>(object: &'a Object, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().filter_map(|key| object.get(*key)).find(|value| !value.is_null())
}

pub fn take(object: &mut Object, keys: &[&str]) -> Option<Value> {
    keys.iter().find_map(|key| match object.get(*key) {
        None | Some(Value::Null) => None,
        Some(_) => object.shift_remove(*key),
    })
}

/// Moves the value of the first alternative key to the official key, unless that is present.
pub fn rename(object: &mut Object, official: &str, others: &[&str]) {
    if object.get(official).is_some_and(|value| !value.is_null()) {
        return;
    }
    if let Some(value) = take(object, others) {
        object.insert(official.to_owned(), value);
    }
}

pub fn fill(object: &mut Object, key: &str, value: impl FnOnce() -> Value) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value());
    }
}

pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

pub fn first_text(object: &Object, keys: &[&str]) -> Option<String> {
    keys.iter().filter_map(|key| object.get(*key)).filter_map(text).find(|text| !text.is_empty())
}

pub fn take_text(object: &mut Object, keys: &[&str]) -> Option<String> {
    match take(object, keys)? {
        Value::String(text) => Some(text),
        other => text(&other),
    }
}

/// A list, with a single value wrapped in a list of one, and `null` as an empty list.
pub fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

/// The items of an array; none for any other value.
pub fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The strings of an array.
pub fn texts<T: FromIterator<String>>(value: Option<&Value>) -> T {
    items(value).filter_map(Value::as_str).map(str::to_owned).collect()
}

pub fn take_list(object: &mut Object, keys: &[&str]) -> Vec<Value> {
    take(object, keys).map(list).unwrap_or_default()
}

/// An integer, also if it is encoded as a float or a string.
pub fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            // Floats represent integers exactly only up to 2^53.
            #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
            (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn earlier_values_of_a_key_are_kept() {
        let text = r#"{"command":"rm","command":"ls","a":[{"b":1,"b":2,"b":3}]}"#;
        let wanted = json!({
            "command": "ls",
            "command (duplicate)": "rm",
            "a": [{"b": 3, "b (duplicate)": 1, "b (duplicate 2)": 2}],
        });
        assert_eq!(parse(text), Some(wanted));
        let many = format!("{{{}}}", vec![r#""a":7"#; 100].join(","));
        assert_eq!(parse(&many).unwrap()["a (more duplicates)"], json!(79));
        assert_eq!(parse("{} {}"), None);
        assert_eq!(
            parse(r#"{"a": 1.5, "b": -1, "c": null, "d": "\u0041"}"#),
            Some(json!({"a": 1.5, "b": -1, "c": null, "d": "A"}))
        );
    }
}
