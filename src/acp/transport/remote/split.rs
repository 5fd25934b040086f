//! POST for what we say, one event stream for all that the agent says.
//!
//! Duty: two dialects of the same shape: with a client id and paths of their own (`/acp/rpc`, `/acp/sse`), and
//! with one URL for both.
//! Invariants: the stream is open before the first message is sent; it is opened again with the same id, unless the
//! server was away: it has no connections that could be unknown to it, so the end is told, and the app opens the
//! session anew.
//! Source: the document of elephant.ai (`alex acp serve`), 1; the client page of `OpenOxide`, "remote agent".

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::sync::watch;

use super::desk::{Desk, Posted, body};
use super::events::{EventReader, EventStream, Opening, StreamEnd};
use super::letter;
use super::trouble::host_of;
use crate::acp::transport::LinkEnd;
use crate::model::{Carrier, Remote};

/// The server with client ids takes no longer bodies.
const MAX_BODY_BYTES: usize = 4 << 20;

const RPC_PATH: &str = "/acp/rpc";
const SSE_PATH: &str = "/acp/sse";

/// Where such a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Where messages go.
    pub post: Url,
    /// Where the event stream is.
    pub events: Url,
}

impl Places {
    /// Those of the dialect with client ids, from any URL of it; the id is a new one.
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

    /// Those of the dialect with one URL, unless the stream's is named.
    pub fn at_one_url(base: &Url, remote: &Remote) -> Self {
        Self { post: base.clone(), events: events_url(remote).unwrap_or_else(|| base.clone()) }
    }
}

fn events_url(remote: &Remote) -> Option<Url> {
    remote.events_url.as_deref().and_then(|url| Url::parse(url).ok())
}

/// A connection of this shape.
#[derive(Debug)]
pub struct Split {
    desk: Desk,
    places: Places,
    opening: watch::Receiver<Opening>,
    max_body_bytes: usize,
}

impl Split {
    /// Opens the stream; that it cannot be opened is told as the end of the connection.
    pub fn start(desk: Desk, places: Places, carrier: Carrier) -> Self {
        let (opening, receiver) = watch::channel(Opening::Waiting);
        let has_client_id = carrier == Carrier::RpcSse;
        // A server without a keep-alive of its own may be silent for as long as it likes.
        let idle = has_client_id.then_some(desk.patience.idle);
        let stream = EventStream {
            desk: desk.clone(),
            url: places.events.clone(),
            headers: HeaderMap::new(),
            name: "event stream",
            reader: EventReader::new(desk.inlet.clone(), std::sync::Arc::new(|_| {}), idle),
            opening,
            is_first_final: true,
            is_forgetful: true,
        };
        let (task_desk, url) = (desk.clone(), places.events.clone());
        desk.spawn(async move {
            let host = host_of(url.as_str());
            let end = match stream.run().await {
                StreamEnd::Gone { was_open: true } => {
                    LinkEnd::Io(format!("{host} does not know this connection any more"))
                }
                StreamEnd::Gone { .. } | StreamEnd::None(_) => LinkEnd::Refused(format!(
                    "There is no event stream at {}. Correct the address, or name another `transport` or `events_url`.",
                    crate::model::shown_url(url.as_str())
                )),
                StreamEnd::Refused(trouble) | StreamEnd::Lost(trouble) => trouble.into(),
                StreamEnd::Unheard => return,
            };
            task_desk.end(end);
        });
        let max_body_bytes = if has_client_id { MAX_BODY_BYTES } else { super::http::MAX_BODY_BYTES };
        Self { desk, places, opening: receiver, max_body_bytes }
    }

    /// Sends a message, once the stream is open.
    pub async fn send(&mut self, frame: &Bytes) -> Result<(), LinkEnd> {
        let opening = self.opening.wait_for(|now| *now != Opening::Waiting).await.map(|now| *now);
        if !matches!(opening, Ok(Opening::Open)) {
            // Why not is on its way.
            return std::future::pending().await;
        }
        let text = String::from_utf8_lossy(frame);
        let Some(letter) = letter::read(&text) else { return Ok(()) };
        let host = host_of(self.places.post.as_str());
        if frame.len() > self.max_body_bytes {
            let text = format!(
                "The message has {} KiB, and {host} takes at most {} MiB. Send less at once.",
                frame.len() >> 10,
                self.max_body_bytes >> 20
            );
            return Ok(self.desk.unsent(&letter, &text).await?);
        }
        match self.desk.post(&self.places.post, &HeaderMap::new(), frame, &letter).await? {
            Posted::Done(response) if response.content_length() != Some(0) => {
                let desk = self.desk.clone();
                self.desk.spawn(async move {
                    if let Ok(body) = body(response, desk.inlet.max_bytes).await
                        && letter::read(&String::from_utf8_lossy(&body)).is_some()
                    {
                        let _ = desk.inlet.message(&body).await;
                    }
                });
                Ok(())
            }
            Posted::Done(_) | Posted::Failed => Ok(()),
            Posted::NotFound => {
                let text = format!(
                    "There is nothing at {} (404). Correct the address.",
                    crate::model::shown_url(self.places.post.as_str())
                );
                Ok(self.desk.undelivered(&letter, &text).await?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_paths_follow_from_any_of_them() {
        for url in ["http://h:1/", "http://h:1/acp", "http://h:1/acp/rpc", "http://h:1/acp/sse"] {
            let places = Places::with_client_id(&Url::parse(url).unwrap(), &Remote::default());
            assert_eq!((places.post.path(), places.events.path()), ("/acp/rpc", "/acp/sse"), "{url}");
            assert_eq!(places.post.query(), places.events.query());
            assert_eq!(places.post.query().unwrap().len(), "client_id=".len() + 36);
        }
        let places =
            Places::with_client_id(&Url::parse("http://h/x/acp/rpc?k=1").unwrap(), &Remote::default());
        assert_eq!(places.events.path(), "/x/acp/sse");
        assert!(places.events.query().unwrap().starts_with("k=1&client_id="));
    }

    #[test]
    fn the_streams_own_url_can_be_named() {
        let remote = Remote { events_url: Some("http://h/events".to_owned()), ..Remote::default() };
        let base = Url::parse("http://h/prompt").unwrap();
        let places = Places::at_one_url(&base, &remote);
        assert_eq!((places.post.path(), places.events.path()), ("/prompt", "/events"));
        assert_eq!(Places::at_one_url(&base, &Remote::default()).events, base);
    }
}
