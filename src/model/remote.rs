//! Where an agent is that parlor reaches over the network instead of starting it.

use std::fmt;
use std::path::PathBuf;

/// An agent behind a URL.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Remote {
    /// Its address: `http`, `https`, `ws` or `wss`.
    pub url: String,
    /// How messages are carried; `None`: detected.
    pub carrier: Option<Carrier>,
    /// Where the event stream is, for carriers that have one apart; `None`: where such servers have it.
    pub events_url: Option<String>,
    /// Headers for every request.
    pub headers: Vec<(String, String)>,
    /// Where the token comes from that is sent as `Authorization: Bearer`.
    pub token: Option<TokenSource>,
    /// A file, in PEM form, with authorities that are trusted besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// Whether the user's MCP servers are passed to it, with their headers and variables.
    pub gets_servers: bool,
}

/// Header values may be secrets, and a URL may hold one behind its `?`.
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
    /// The URL for people: without what may be a secret.
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

/// How messages are carried to an agent behind a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// The protocol's own: POST for what we say, event streams for the connection and each session.
    StreamableHttp,
    /// A web socket, one message per text frame.
    WebSocket,
    /// POST for what we say, one event stream by a client id for all that the agent says (`/acp/rpc`, `/acp/sse`).
    RpcSse,
    /// The answer comes in the POST itself, as JSON or as an event stream.
    Post,
    /// POST for what we say, one event stream at the same URL for all that the agent says.
    PostSse,
}

impl Carrier {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::StreamableHttp, Self::WebSocket, Self::RpcSse, Self::Post, Self::PostSse];

    /// The word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::StreamableHttp => "http",
            Self::WebSocket => "websocket",
            Self::RpcSse => "rpc-sse",
            Self::Post => "post",
            Self::PostSse => "post-sse",
        }
    }

    /// The carrier of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|carrier| carrier.word() == word)
    }

    /// A few words for people.
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

/// Where a token comes from. It is asked anew for every connection, and kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// A variable of the environment.
    Env(String),
    /// The text of a file, without white space around it.
    File(PathBuf),
    /// The first line that a program writes, run without a shell.
    Command(Vec<String>),
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Command(words) => {
                write!(f, "the command {}", words.first().map_or("", String::as_str))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_holds_no_secret() {
        for (url, shown) in [
            ("https://me:pass@host:8/acp?key=1#x", "https://host:8/acp"),
            ("wss://host", "wss://host"),
            ("host/acp?token=1", "host/acp"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let remote = Remote {
            url: "https://host/?key=hush".to_owned(),
            headers: vec![("X-Key".to_owned(), "hush".to_owned())],
            ..Remote::default()
        };
        let text = format!("{remote:?}");
        assert!(!text.contains("hush") && text.contains("X-Key"), "{text}");
    }

    #[test]
    fn every_carrier_has_its_word() {
        for carrier in Carrier::ALL {
            assert_eq!(Carrier::of_word(carrier.word()), Some(carrier));
        }
        assert_eq!(Carrier::of_word("smoke signals"), None);
    }
}
