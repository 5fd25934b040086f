//! Finds text, exit code and failures in the raw output of a tool call, whose keys differ between agents.

use serde_json::Value;

use super::value::{Object, whole};

/// Keys of the output text, in order of preference.
const TEXT: &[&str] =
    &["formatted_output", "aggregated_output", "output", "text", "content", "result", "message", "error"];
const EXIT_CODE: &[&str] =
    &["exit_code", "exitCode", "exit_status", "exitStatus", "returncode", "returnCode", "exit"];

/// Maximum nesting depth that is searched.
const DEPTH: u8 = 4;

/// The text of an output: a string, the text under a common key, or the texts of a list of blocks.
pub fn text(output: &Value) -> Option<String> {
    text_within(output, DEPTH).filter(|text| !text.is_empty())
}

fn text_within(output: &Value, depth: u8) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match output {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(|item| text_within(item, depth)).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        Value::Object(object) => {
            let found = |key: &&str| text_within(object.get(*key)?, depth).filter(|text| !text.is_empty());
            // The two streams take precedence over `output`, which may only be a summary of them.
            let (whole, rest) = TEXT.split_at(2);
            whole.iter().find_map(found).or_else(|| streams(object)).or_else(|| rest.iter().find_map(found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn streams(object: &Object) -> Option<String> {
    let stream = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (stream("stdout"), stream("stderr")) {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => Some(only.to_owned()),
        (Some(out), Some(err)) if out.ends_with('\n') => Some(format!("{out}{err}")),
        (Some(out), Some(err)) => Some(format!("{out}\n{err}")),
    }
}

pub fn exit_code(output: &Value) -> Option<i32> {
    let object = output.as_object()?;
    let code = |object: &Object| {
        let found = EXIT_CODE.iter().filter_map(|key| object.get(*key)).find_map(whole)?;
        i32::try_from(found).ok()
    };
    code(object).or_else(|| {
        ["metadata", "exitStatus", "exit_status"].iter().find_map(|key| code(object.get(*key)?.as_object()?))
    })
}

/// Whether the output reports a failure, regardless of the call's status.
pub fn is_failure(output: &Value) -> bool {
    if let Value::Array(parts) = output {
        return !parts.is_empty() && parts.iter().all(is_failure);
    }
    let Some(object) = output.as_object() else { return false };
    let has_error = object.get("error").is_some_and(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    object.get("success") == Some(&Value::Bool(false)) && has_error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_found_under_common_keys() {
        for (output, expected) in [
            (json!("plain"), Some("plain")),
            (json!({"stdout": "a\n", "stderr": "b"}), Some("a\nb")),
            (json!({"stdout": "a", "stderr": "b", "output": "short"}), Some("a\nb")),
            (json!({"formatted_output": "f", "stdout": "raw"}), Some("f")),
            (json!({"formatted_output": "", "aggregated_output": "agg"}), Some("agg")),
            (json!({"output": {"text": "deep"}}), Some("deep")),
            (json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), Some("one\ntwo")),
            (json!([{"type": "content", "content": {"type": "text", "text": "in"}}]), Some("in")),
            (json!({"error": {"message": "bad"}, "success": false}), Some("bad")),
            (json!({"exit_code": 0}), None),
            (json!({"stdout": "", "stderr": ""}), None),
            (json!(null), None),
        ] {
            assert_eq!(text(&output).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn exit_codes_and_failures_are_found_in_the_output() {
        assert_eq!(exit_code(&json!({"exit_code": 3})), Some(3));
        assert_eq!(exit_code(&json!({"exitCode": "1"})), Some(1));
        assert_eq!(exit_code(&json!({"output": "x", "metadata": {"exit": 2}})), Some(2));
        assert_eq!(exit_code(&json!({"exitStatus": {"exitCode": 7}})), Some(7));
        assert_eq!(exit_code(&json!("exit_code 3")), None);
        assert!(is_failure(&json!({"success": false, "error": "no such file"})));
        assert!(!is_failure(&json!({"success": true, "error": null})));
        let failed = json!({"success": false, "error": "exit code 3"});
        assert!(is_failure(&json!([failed])));
        assert!(!is_failure(&json!([failed, {"success": true}])) && !is_failure(&json!([])));
    }
}
