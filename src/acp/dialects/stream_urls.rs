//! URLs of messages and of the event stream, for servers with one stream.
//!
//! Source: the documentation of elephant.ai (`alex acp serve`), 1; the client page of `OpenOxide`, "remote agent".

use reqwest::Url;

use crate::model::Remote;

const RPC_PATH: &str = "/acp/rpc";
const SSE_PATH: &str = "/acp/sse";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamUrls {
    pub post: Url,
    pub events: Url,
}

impl StreamUrls {
    /// The URLs of the dialect with client ids, derived from any URL of the server, with a new id.
    pub fn with_client_id(base: &Url, remote: &Remote) -> Self {
        let path = base.path().trim_end_matches('/');
        let root = [RPC_PATH, SSE_PATH, "/acp"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
        let at = |path: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{root}{path}"));
            url
        };
        let id = uuid::Uuid::new_v4().to_string();
        let (mut post, mut events) = (at(RPC_PATH), events_url(remote).unwrap_or_else(|| at(SSE_PATH)));
        for url in [&mut post, &mut events] {
            url.query_pairs_mut().append_pair("client_id", &id);
        }
        Self { post, events }
    }

    /// The URLs of the dialect with one URL, unless the configuration names another URL for the stream.
    pub fn at_one_url(base: &Url, remote: &Remote) -> Self {
        Self { post: base.clone(), events: events_url(remote).unwrap_or_else(|| base.clone()) }
    }
}

fn events_url(remote: &Remote) -> Option<Url> {
    remote.events_url.as_deref().and_then(|url| Url::parse(url).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_paths_are_derived_from_any_url() {
        for url in ["http://h:1/", "http://h:1/acp", "http://h:1/acp/rpc", "http://h:1/acp/sse"] {
            let urls = StreamUrls::with_client_id(&Url::parse(url).unwrap(), &Remote::default());
            assert_eq!((urls.post.path(), urls.events.path()), ("/acp/rpc", "/acp/sse"), "{url}");
            assert_eq!(urls.post.query(), urls.events.query());
            assert_eq!(urls.post.query().unwrap().len(), "client_id=".len() + 36);
        }
        let urls =
            StreamUrls::with_client_id(&Url::parse("http://h/x/acp/rpc?k=1").unwrap(), &Remote::default());
        assert_eq!(urls.events.path(), "/x/acp/sse");
        assert!(urls.events.query().unwrap().starts_with("k=1&client_id="));
    }

    #[test]
    fn the_url_of_the_stream_can_be_configured() {
        let remote = Remote { events_url: Some("http://h/events".to_owned()), ..Remote::default() };
        let base = Url::parse("http://h/prompt").unwrap();
        let urls = StreamUrls::at_one_url(&base, &remote);
        assert_eq!((urls.post.path(), urls.events.path()), ("/prompt", "/events"));
        assert_eq!(StreamUrls::at_one_url(&base, &Remote::default()).events, base);
    }
}
