//! Trace context of requests: `traceparent` and `tracestate` in `_meta`, if the user enables it.
//!
//! The trace id is taken from the environment, or is generated once per connection.
//! Source: ACP v1 extensibility, reserved keys of `_meta`; W3C Trace Context, `traceparent`, version 00.

use std::env;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use serde_json::json;
use serde_json::map::Entry;

use super::value::{Object, without_nulls};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    trace_id: String,
    state: Option<String>,
}

impl Trace {
    pub fn begin() -> Self {
        Self::of(env::var("TRACEPARENT").ok().as_deref(), env::var("TRACESTATE").ok())
    }

    fn of(parent: Option<&str>, state: Option<String>) -> Self {
        let known = parent.and_then(trace_id);
        let is_known = known.is_some();
        let trace_id = known.map_or_else(|| format!("{:016x}{:016x}", random(), random()), str::to_owned);
        Self { trace_id, state: state.filter(|state| is_known && !state.trim().is_empty()) }
    }

    /// Adds the trace to the params of a call, unless they already have a `_meta`.
    pub fn mark(&self, params: &mut Object) {
        if let Entry::Vacant(free) = params.entry("_meta") {
            let parent = format!("00-{}-{:016x}-01", self.trace_id, random());
            free.insert(without_nulls(json!({"traceparent": parent, "tracestate": self.state})));
        }
    }
}

fn trace_id(parent: &str) -> Option<&str> {
    let mut parts = parent.trim().split('-');
    let (version, id, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            && text.bytes().any(|byte| byte != b'0')
    };
    (version.len() == 2 && version != "ff" && is_hex(id, 32) && is_hex(span, 16)).then_some(id)
}

/// A random nonzero number. It is not used for anything secret.
fn random() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn calls_continue_the_trace_of_the_environment() {
        let parent = format!("00-{ID}-b7ad6b7169203331-01");
        let trace = Trace::of(Some(&parent), Some("a=1".to_owned()));
        let marked = |mut params: serde_json::Value| {
            trace.mark(params.as_object_mut().unwrap());
            params
        };
        let value = marked(json!({"cwd": "/w"}));
        let reported = value["_meta"]["traceparent"].as_str().unwrap();
        assert!(
            reported.starts_with(&format!("00-{ID}-")) && reported.ends_with("-01") && reported.len() == 55,
            "{reported}"
        );
        assert_eq!((value["_meta"]["tracestate"].as_str(), value["cwd"].as_str()), (Some("a=1"), Some("/w")));
        assert_ne!(marked(json!({})), marked(json!({})), "each call has its own span");
        let own = json!({"_meta": {}, "a": 1});
        assert_eq!(marked(own.clone()), own);
    }

    #[test]
    fn an_invalid_trace_is_replaced_by_a_new_one() {
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for parent in [None, Some(""), Some("00-xyz-1-01"), Some(zeros.as_str())] {
            let trace = Trace::of(parent, Some("a=1".to_owned()));
            assert_eq!((trace.trace_id.len(), &trace.state), (32, &None), "{parent:?}");
            assert_ne!(trace.trace_id, "0".repeat(32));
        }
    }
}
