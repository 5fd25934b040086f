//! Agents that parlor connects to over the network instead of starting them.

use std::fmt;
use std::path::PathBuf;

/// An agent behind a URL.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Remote {
    /// The URL: `http`, `https`, `ws` or `wss`.
    pub url: String,
    /// The transport; `None` to detect it.
    pub carrier: Option<Carrier>,
    /// The URL of the event stream, for transports with a separate one; `None` for the usual one.
    pub events_url: Option<String>,
    pub headers: Vec<(String, String)>,
    /// The source of the token for `Authorization: Bearer`.
    pub token: Option<TokenSource>,
    /// A PEM file with certificate authorities to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether the user's MCP servers are passed to it, with their headers and variables.
    pub gets_servers: bool,
}

/// Omits header values and the URL's query, which may be secrets.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Remote")
            .field("url", &self.shown_url())
            .field("carrier", &self.carrier)
            .field("headers", &names)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// The URL for display, without parts that may be secrets.
    pub fn shown_url(&self) -> String {
        shown_url(&self.url)
    }
}

/// A URL without user, password, query and fragment.
pub fn shown_url(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = bare.split_once("://") else { return bare.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_end);
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// The transport for an agent behind a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// The protocol's own transport: POST for outgoing messages, event streams for the connection and each
    /// session.
    StreamableHttp,
    /// A WebSocket with one message per text frame.
    WebSocket,
    /// POST for outgoing messages, one event stream per client id for incoming ones (`/acp/rpc`, `/acp/sse`).
    RpcSse,
    /// The response is in the body of the POST, as JSON or as an event stream.
    Post,
    /// POST for outgoing messages, one event stream at the same URL for incoming ones.
    PostSse,
}

impl Carrier {
    pub const ALL: [Self; 5] =
        [Self::StreamableHttp, Self::WebSocket, Self::RpcSse, Self::Post, Self::PostSse];

    pub fn word(self) -> &'static str {
        match self {
            Self::StreamableHttp => "http",
            Self::WebSocket => "websocket",
            Self::RpcSse => "rpc-sse",
            Self::Post => "post",
            Self::PostSse => "post-sse",
        }
    }

    /// The carrier with this name in the configuration.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|carrier| carrier.word() == word)
    }

    /// A short description for display.
    pub fn title(self) -> &'static str {
        match self {
            Self::StreamableHttp => "streamable HTTP",
            Self::WebSocket => "WebSocket",
            Self::RpcSse => "POST and event stream by client id",
            Self::Post => "POST (response in the body)",
            Self::PostSse => "POST and event stream",
        }
    }
}

/// The source of a token. It is read again for each connection, and never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    Env(String),
    File(PathBuf),
    /// The first line of a program's output; the program runs without a shell.
    Command(Vec<String>),
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Command(parts) => {
                write!(f, "the command {}", parts.first().map_or("", String::as_str))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_urls_contain_no_secrets() {
        for (url, shown) in [
            ("https://me:pass@host:8/acp?key=1#x", "https://host:8/acp"),
            ("wss://host", "wss://host"),
            ("host/acp?token=1", "host/acp"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        let remote = Remote {
            url: "https://host/?key=hush".to_owned(),
            headers: vec![("X-Key".to_owned(), "hush".to_owned())],
            ..Remote::default()
        };
        let text = format!("{remote:?}");
        assert!(!text.contains("hush") && text.contains("X-Key"), "{text}");
    }

    #[test]
    fn carriers_are_parsed_from_their_names() {
        for carrier in Carrier::ALL {
            assert_eq!(Carrier::of_word(carrier.word()), Some(carrier));
        }
        assert_eq!(Carrier::of_word("smoke signals"), None);
    }
}
