//! The transport that is used by a connection.

use super::client::Client;
use super::http::Streamable;
use super::http_context::HttpContext;
use super::http_error::HttpError;
use super::post::Post;
use super::probe::{Probe, with_path};
use super::socket::Socket;
use crate::acp::dialects::StreamUrls;
use crate::acp::transport::{LinkEnd, OutboundFrame};
use crate::model::{Carrier, Profile, Remote};

#[derive(Debug)]
pub enum Route {
    /// Not detected yet.
    Probe(Box<Probe>),
    Streamable(Box<Streamable>),
    Socket(Box<Socket>),
    /// POST, with or without an event stream.
    Post(Box<Post>),
}

impl Route {
    /// Opens the transport that the URL or the configuration names, or a probe.
    pub async fn open(
        context: HttpContext,
        remote: &Remote,
        profile: Option<Profile>,
    ) -> Result<Self, HttpError> {
        let url = context.client.url().clone();
        Ok(match carrier_of(remote) {
            Some(Carrier::WebSocket) => {
                let (url, is_bare) = with_path(&url);
                match Socket::open(context.clone(), &url).await {
                    Err(HttpError::Refused { .. }) if is_bare => {
                        let socket = Socket::open(context.clone(), context.client.url()).await?;
                        Self::Socket(Box::new(socket))
                    }
                    socket => Self::Socket(Box::new(socket?)),
                }
            }
            Some(carrier @ Carrier::RpcSse) => {
                let urls = StreamUrls::with_client_id(&url, remote);
                Self::Post(Box::new(Post::with_stream(context, urls, carrier, None)))
            }
            Some(carrier @ Carrier::PostSse) => {
                let urls = StreamUrls::at_one_url(&url, remote);
                Self::Post(Box::new(Post::with_stream(context, urls, carrier, None)))
            }
            Some(Carrier::Post) => {
                let urls = StreamUrls::at_one_url(&with_path(&url).0, remote);
                Self::Post(Box::new(Post::new(context, urls, profile)))
            }
            Some(Carrier::StreamableHttp) | None => {
                Self::Probe(Box::new(Probe::new(context, remote.clone(), profile)))
            }
        })
    }

    /// Sends a message. An error ends the connection.
    pub async fn send(&mut self, frame: &OutboundFrame) -> Result<(), LinkEnd> {
        match self {
            Self::Probe(probe) => {
                if let Some(route) = probe.send(&frame.bytes).await? {
                    *self = route;
                }
                Ok(())
            }
            Self::Streamable(route) => route.send(frame).await,
            Self::Socket(route) => route.send(&frame.bytes).await,
            Self::Post(route) => route.send(&frame.bytes).await,
        }
    }

    /// Opens the event stream of a new session, if the transport has such streams.
    pub fn open_session(&mut self, session: &str) {
        if let Self::Streamable(route) = self {
            route.open_session(session);
        }
    }

    pub fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Sends a ping if one is due.
    pub async fn ping(&mut self) -> Result<(), LinkEnd> {
        match self {
            Self::Socket(route) => route.ping().await,
            _ => Ok(()),
        }
    }

    /// Waits until the server has received all notifications and responses.
    pub async fn drained(&self) {
        match self {
            Self::Streamable(route) => route.outbox.drained().await,
            Self::Post(route) => route.outbox.drained().await,
            Self::Probe(_) | Self::Socket(_) => {}
        }
    }

    /// Ends the connection on the server.
    pub async fn farewell(&mut self) {
        match self {
            Self::Streamable(route) => route.farewell().await,
            Self::Socket(route) => route.farewell().await,
            Self::Probe(_) | Self::Post(_) => {}
        }
    }
}

/// The transport that the configuration or the URL names.
pub fn carrier_of(remote: &Remote) -> Option<Carrier> {
    let url = remote.url.to_ascii_lowercase();
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let by_url = if url.starts_with("ws://") || url.starts_with("wss://") {
        Some(Carrier::WebSocket)
    } else if path.ends_with("/acp/rpc") || path.ends_with("/acp/sse") {
        Some(Carrier::RpcSse)
    } else {
        None
    };
    remote.carrier.or(by_url)
}

pub async fn client_for(remote: &Remote) -> Result<std::sync::Arc<Client>, HttpError> {
    Client::open(remote, carrier_of(remote) == Some(Carrier::WebSocket)).await
}
