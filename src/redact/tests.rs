//! Tests of hiding secrets.

use super::redact;

#[test]
fn secrets_are_redacted() {
    for (text, expected) in [
        (
            r#"{"env":[{"name":"KEY","value":"abc"}],"cwd":"/w"}"#,
            r#"{"env":[{"name":"KEY","value":"[hidden]"}],"cwd":"/w"}"#,
        ),
        (r#"{"env":{"A":"b\"c"},"x":"y"}"#, r#"{"env":{"A":"[hidden]"},"x":"y"}"#),
        (r#"{"env":["A=b"],"args":["c"]}"#, r#"{"env":["[hidden]"],"args":["c"]}"#),
        (
            r#"{"headers":[{"name":"Authorization","value":"Bearer abc"}]}"#,
            r#"{"headers":[{"name":"Authorization","value":"[hidden]"}]}"#,
        ),
        (r#"{"Authorization": "Bearer abc"}"#, r#"{"Authorization": "[hidden]"}"#),
        (r#"{"api_key":"k","maxTokens":5}"#, r#"{"api_key":"[hidden]","maxTokens":5}"#),
        (r#"{"accessToken":"cut in the mid"#, r#"{"accessToken":"[hidden]"#),
        (
            r#"{"id":3,"result":{"action":"accept","content":{"pin":"97","n":{"a":[12, true]},"x":-4.5}},"k":1}"#,
            r#"{"id":3,"result":{"action":"accept","content":{"pin":"[hidden]","n":{"a":["[hidden]", "[hidden]"]},"x":"[hidden]"}},"k":1}"#,
        ),
        ("Authorization: Bearer abc.def done", "Authorization: Bearer [hidden] done"),
        ("curl -H x-api-key: abc", "curl -H x-api-key: [hidden]"),
        ("OPENAI_API_KEY=abc run", "OPENAI_API_KEY=[hidden] run"),
        (
            r#"{"args":["--api-key","abc","--verbose","x"]}"#,
            r#"{"args":["--api-key","[hidden]","--verbose","x"]}"#,
        ),
        ("tool --token abc -v", "tool --token [hidden] -v"),
        (
            r#"{"url":"https://me:pw@x.example/mcp?a=b&sig=abc"}"#,
            r#"{"url":"https://[hidden]@x.example/mcp?a=b&sig=[hidden]"}"#,
        ),
        (r#"{"text":"use sk-abcdefghijklmnopqrstuvwx now"}"#, r#"{"text":"use sk-[hidden] now"}"#),
    ] {
        assert_eq!(redact(text), expected);
    }
}

#[test]
fn text_without_secrets_is_unchanged() {
    for text in [
        r#"{"text":"the tokens of the environment: key, token and secret","used":3}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"basic ask-me a \"quote\" \\"}}"#,
        "a task-force of disk-shaped risk-takers",
        r#"["env","headers"]"#,
        r#"{"method":"x","params":{"action":"accept","content":{"text":"plain"}}}"#,
    ] {
        assert_eq!(redact(text), text);
    }
}
