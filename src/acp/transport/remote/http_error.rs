//! Error messages for HTTP and TLS failures.
//!
//! Invariant: messages contain no token, header or query; text from the server is shortened and has no control
//! characters.

use std::io;
use std::time::Duration;

use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};

use crate::model::shown_url;
use crate::tls::{self, chain, innermost};

const MAX_EXPLANATION_BYTES: usize = 4 << 10;
const MAX_EXPLANATION_CHARS: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpError {
    pub text: String,
    pub is_temporary: bool,
    /// Whether the request was certainly not sent.
    pub is_unsent: bool,
    /// Whether the server is down: its port is closed, or a proxy reports it.
    pub is_down: bool,
    /// The delay that the server asks for. Source: RFC 9110, `Retry-After`, in seconds.
    pub retry_after: Option<Duration>,
    pub status: Option<StatusCode>,
}

impl HttpError {
    /// A permanent failure without a response.
    pub fn refused(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    pub fn on_the_way(text: String) -> Self {
        Self { is_temporary: true, ..Self::refused(text) }
    }

    pub fn unanswered(url: &Url, after: Duration) -> Self {
        let (host, seconds) = (host_of(url.as_str()), after.as_secs());
        let text = format!("{host} did not respond within {seconds} s. Check the network, or try again.");
        Self::on_the_way(text)
    }

    pub fn of_error(error: &reqwest::Error, url: &str) -> Self {
        let host = host_of(url);
        if let Some(error) = chain(error).find_map(|error| error.downcast_ref::<rustls::Error>()) {
            return Self::refused(tls::describe(error, &host));
        }
        let innermost = innermost(error);
        let mut texts = chain(error).map(|error| error.to_string().to_lowercase());
        if texts.any(|text| text.contains("proxy") || text.contains("tunnel")) {
            let text = format!(
                "The proxy for {host} rejected the connection: {innermost}. Check HTTPS_PROXY, HTTP_PROXY \
                 and ALL_PROXY, or add the host to NO_PROXY."
            );
            return Self::refused(text);
        }
        let mut errors = chain(error).filter_map(|error| error.downcast_ref::<io::Error>());
        let refused = errors.any(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        let text = if error.is_dns() {
            format!("Cannot resolve {host}. Correct the URL, or check the network.")
        } else if refused {
            format!("{host} refused the connection. Start the server, or correct the URL.")
        } else if error.is_timeout() {
            format!("The connection to {host} timed out. Check the network, or try again later.")
        } else {
            format!("The connection to {host} failed: {innermost}. Check the network, or try again.")
        };
        Self { is_unsent: error.is_connect(), is_down: refused, ..Self::on_the_way(text) }
    }

    /// Converts a response without success and the explanation in it. `token`: its source, if one was sent.
    pub async fn of_status(response: Response, url: &str, token: Option<String>) -> Self {
        let status = response.status();
        let header = |name| response.headers().get(name)?.to_str().ok();
        let location = header(LOCATION).map(shown_url);
        let retry_after = header(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
        let retry_after = retry_after.map(Duration::from_secs);
        let explanation = explanation(response).await;
        let text = status_text(status.as_u16(), &shown_url(url), token, location.as_deref(), &explanation);
        let is_temporary = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let is_down = matches!(status.as_u16(), 502..=504);
        Self { is_temporary, is_down, retry_after, status: Some(status), ..Self::refused(text) }
    }
}

fn status_text(code: u16, url: &str, token: Option<String>, location: Option<&str>, reason: &str) -> String {
    let host = host_of(url);
    let says = if reason.is_empty() { String::new() } else { format!(" The server responded: {reason}") };
    match code {
        300..=399 => {
            let to = location.unwrap_or("another URL");
            // Redirects within the server are followed, up to a limit.
            let is_here = location.is_some_and(|to| !to.contains("://") || host_of(to) == host);
            if is_here && matches!(code, 307 | 308) {
                return format!("{host} redirects in a loop ({code}). Correct the URL, or check the server.");
            }
            format!(
                "{host} redirects to {to} ({code}). Redirects are not followed, so that no token reaches \
                 another server. If that URL is right, use it instead of {url}."
            )
        }
        401 => match token {
            Some(source) => format!("{host} rejected the token from {source} (401). Renew the token.{says}"),
            None => format!(
                "{host} requires a token (401). Set `token_env`, `token_file` or `token_command` of this \
                 agent in the configuration, or pass --token-env, --token-file or --token-command.{says}"
            ),
        },
        403 => {
            let way = if token.is_some() { "use another token" } else { "configure a token" };
            format!("{host} denied access (403). Ask its administrator for access, or {way}.{says}")
        }
        404 | 405 => format!("No agent at {url} ({code}). Correct the path of the URL.{says}"),
        407 => format!(
            "The proxy for {host} requires authentication (407). Set user and password in HTTPS_PROXY or \
             HTTP_PROXY, or add the host to NO_PROXY."
        ),
        413 => format!("The message is too large for {host} (413). Send less at once.{says}"),
        429 => format!("Too many requests to {host} (429). Wait before you try again.{says}"),
        500..=599 => format!("Server error of {host} ({code}). Try again, or check its log.{says}"),
        _ => format!("{host} rejected the message ({code}).{says}"),
    }
}

async fn explanation(mut response: Response) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_EXPLANATION_BYTES {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(MAX_EXPLANATION_BYTES);
    plain_explanation(&String::from_utf8_lossy(&body))
}

/// The message in a JSON error, or a short plain text; empty for a web page.
fn plain_explanation(body: &str) -> String {
    let body = body.trim();
    let reported = serde_json::from_str::<serde_json::Value>(body).ok().and_then(|json| {
        let at = |pointer: &str| json.pointer(pointer).and_then(serde_json::Value::as_str);
        at("/error/message").or(at("/message")).or(at("/error")).or(at("/detail")).map(str::to_owned)
    });
    let text = match reported {
        Some(text) => text,
        None if body.starts_with(['<', '{', '[']) => return String::new(),
        None => body.to_owned(),
    };
    let words = text.split(|ch: char| ch.is_whitespace() || ch.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(MAX_EXPLANATION_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    crate::redact::redact(&short).into_owned()
}

pub fn host_of(url: &str) -> String {
    let url = shown_url(url);
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_messages_name_the_remedy() {
        let text = |code: u16, token: Option<&str>, location: Option<&str>| {
            status_text(code, "https://host:8/acp", token.map(str::to_owned), location, "because")
        };
        for (code, token, expected) in [
            (401, None, "host:8 requires a token (401)"),
            (401, Some("the variable T"), "rejected the token from the variable T"),
            (403, None, "denied access"),
            (404, None, "No agent at https://host:8/acp"),
            (407, None, "HTTPS_PROXY"),
            (413, None, "Send less"),
            (500, None, "The server responded: because"),
            (418, None, "(418)"),
        ] {
            assert!(text(code, token, None).contains(expected), "{}", text(code, token, None));
        }
        assert!(text(307, None, Some("https://other/")).contains("redirects to https://other/"));
    }

    #[test]
    fn explanations_are_short_and_plain() {
        for (body, expected) in [
            (
                r#"{"jsonrpc":"2.0","error":{"code":1,"message":"too\u001b[31m  many"},"id":null}"#,
                "too [31m many",
            ),
            (r#"{"error":"no"}"#, "no"),
            ("<html>long</html>", ""),
            ("plain\r\ntext", "plain text"),
            ("Bearer abcdef is wrong", "Bearer [hidden] is wrong"),
            ("", ""),
        ] {
            assert_eq!(plain_explanation(body), expected);
        }
        assert_eq!(plain_explanation(&"x".repeat(5000)).chars().count(), MAX_EXPLANATION_CHARS + 1);
    }
}
