//! The HTTP client of one connection, with proxies from the environment, cookies, the user's headers and the token.
//!
//! Invariants: headers and token are sent only to the origin of the agent's URL, so redirects to other origins are not
//! followed; TLS certificates are always verified; a rejected token is fetched from its source once more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode, Url};

use super::http_error::{HttpError, host_of};
use crate::acp::transport::secret;
use crate::lock::lock;
use crate::model::{Remote, TokenSource};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// With these settings the system detects a lost peer within about a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_STEP: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TRIES: u32 = 3;
const MAX_REDIRECTS: usize = 5;

#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    #[cfg(test)]
    pub simulation: Option<super::tests::Simulation>,
    /// The agent's URL, with an HTTP scheme.
    pub url: Url,
    headers: HeaderMap,
    source: Option<TokenSource>,
    authorization: Mutex<Option<HeaderValue>>,
}

impl Client {
    /// Creates the client of an agent, and fetches its token. `is_upgrade`: for connections that become a WebSocket.
    pub async fn open(remote: &Remote, is_upgrade: bool) -> Result<Arc<Self>, HttpError> {
        let refused = HttpError::refused;
        let url = http_url(remote).map_err(refused)?;
        let headers = user_headers(remote).map_err(refused)?;
        let authorization = match &remote.token {
            Some(source) => Some(authorization(source).await.map_err(refused)?),
            None => None,
        };
        let (is_safe, ca_file) = (url.scheme() == "https", remote.ca_file.clone());
        let tls = move || crate::tls::config(is_safe, is_upgrade, ca_file.as_deref());
        let tls = tokio::task::spawn_blocking(tls).await;
        let tls = tls.map_err(|error| error.to_string()).and_then(|tls| tls).map_err(refused)?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")))
            .cookie_store(true)
            .referer(false)
            .redirect(same_origin_only())
            .connect_timeout(CONNECT_TIME)
            .tcp_keepalive(KEEP_ALIVE)
            .tcp_keepalive_interval(KEEP_ALIVE_STEP)
            .tcp_keepalive_retries(KEEP_ALIVE_TRIES)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .http2_keep_alive_timeout(KEEP_ALIVE_STEP * KEEP_ALIVE_TRIES)
            .http2_keep_alive_while_idle(true);
        if is_upgrade {
            builder = builder.http1_only();
        }
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let failed = |error| format!("Could not create the HTTP client: {}.", crate::tls::innermost(&error));
        let http = builder.build().map_err(|error| refused(failed(error)))?;
        let (source, authorization) = (remote.token.clone(), Mutex::new(authorization));
        Ok(Arc::new(Self {
            http,
            url,
            headers,
            source,
            authorization,
            #[cfg(test)]
            simulation: None,
        }))
    }

    pub fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        let mut request = self.http.request(method, url.clone());
        if url.origin() == self.url.origin() {
            request = request.headers(self.headers.clone());
            if let Some(value) = lock(&self.authorization).clone() {
                request = request.header(AUTHORIZATION, value);
            }
        }
        request
    }

    /// Sends a request. Returns responses with success, or with a status that the caller `wants`.
    pub async fn send(
        &self,
        request: RequestBuilder,
        wants: impl Fn(StatusCode) -> bool,
    ) -> Result<Response, HttpError> {
        let request = request.build().map_err(|error| HttpError::of_error(&error, self.url.as_str()))?;
        let again = self.source.is_some().then(|| request.try_clone()).flatten();
        let url = request.url().to_string();
        let mut response = self.execute(request, &url).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(mut again) = again
            && self.renew_token(&mut again).await
        {
            response = self.execute(again, &url).await?;
        }
        if !response.status().is_success() && !wants(response.status()) {
            return Err(HttpError::of_status(response, &url, self.token_origin()).await);
        }
        // No compression was offered to the server.
        match response.headers().get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => {
                let advice = "which is not supported. Turn off compression on the server or its proxy.";
                Err(HttpError::refused(format!("{} compressed its response, {advice}", host_of(&url))))
            }
            _ => Ok(response),
        }
    }

    pub fn token_origin(&self) -> Option<String> {
        self.source.as_ref().map(ToString::to_string)
    }

    async fn execute(&self, request: Request, url: &str) -> Result<Response, HttpError> {
        #[cfg(test)]
        if let Some(simulation) = &self.simulation {
            return simulation.carry_out(request).await;
        }
        self.http.execute(request).await.map_err(|error| HttpError::of_error(&error, url))
    }

    async fn renew_token(&self, request: &mut Request) -> bool {
        let Some(source) = &self.source else { return false };
        let Ok(fresh) = authorization(source).await else { return false };
        if request.headers().get(AUTHORIZATION) == Some(&fresh) {
            return false;
        }
        request.headers_mut().insert(AUTHORIZATION, fresh.clone());
        *lock(&self.authorization) = Some(fresh);
        true
    }
}

async fn authorization(source: &TokenSource) -> Result<HeaderValue, String> {
    let secret = secret::token(source).await?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", secret.reveal()))
        .map_err(|_| format!("{source} does not contain a valid token."))?;
    value.set_sensitive(true);
    Ok(value)
}

pub fn http_url(remote: &Remote) -> Result<Url, String> {
    let shown = remote.shown_url();
    let wrong = |why: &str| format!("Invalid agent URL {shown}: {why}.");
    let unreadable = |error| wrong(&format!("{error}; use https://host/path"));
    let mut url = Url::parse(&remote.url).map_err(unreadable)?;
    let scheme = match url.scheme() {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => return Err(wrong("it must start with https://, http://, wss:// or ws://")),
    };
    // Replaced in the text and parsed again, because parsing depends on the scheme.
    if scheme != url.scheme() {
        let rest = url.as_str().split_once(':').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        url = Url::parse(&format!("{scheme}:{rest}")).map_err(|error| wrong(&error.to_string()))?;
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it contains credentials; use `headers` or a token instead"));
    }
    url.set_fragment(None);
    Ok(url)
}

fn user_headers(remote: &Remote) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &remote.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("Invalid header name `{name}`. Correct it in `headers`."))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("The value of the header `{name}` contains invalid characters."))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

/// Follows redirects within the server only, and only those that repeat the request unchanged.
fn same_origin_only() -> Policy {
    Policy::custom(|attempt| {
        let is_same_message = matches!(attempt.status().as_u16(), 307 | 308);
        let mut previous = attempt.previous().iter();
        let is_same_origin = previous.next().is_some_and(|first| first.origin() == attempt.url().origin());
        let may_follow = is_same_message && is_same_origin && previous.len() < MAX_REDIRECTS;
        if may_follow { attempt.follow() } else { attempt.stop() }
    })
}

/// Whether the server is on this machine, which needs no proxy.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str) -> Remote {
        Remote { url: url.to_owned(), ..Remote::default() }
    }

    #[test]
    fn urls_are_converted_to_http() {
        for (url, expected) in [
            ("ws://host:90/acp?a=1", "http://host:90/acp?a=1"),
            ("wss://host", "https://host/"),
            ("HTTPS://Host/x#y", "https://host/x"),
        ] {
            assert_eq!(http_url(&remote(url)).unwrap().as_str(), expected);
        }
        for url in ["host", "ftp://host", "https://me:secret@host/", ""] {
            let error = http_url(&remote(url)).unwrap_err();
            assert!(error.contains("Invalid agent URL") && !error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn headers_and_token_go_to_the_agents_origin_only() {
        let remote = Remote {
            headers: vec![("X-Team".to_owned(), "blue".to_owned())],
            token: Some(TokenSource::Env("CARGO_PKG_NAME".to_owned())),
            ..remote("http://127.0.0.1:1/acp")
        };
        let client = Client::open(&remote, false).await.unwrap();
        let headers = |url: &str| {
            let url = Url::parse(url).unwrap();
            client.request(Method::GET, &url).build().unwrap().headers().clone()
        };
        let own = headers("http://127.0.0.1:1/other");
        assert_eq!(own.get("x-team").unwrap(), "blue");
        assert_eq!(own.get(AUTHORIZATION).unwrap(), "Bearer parlor");
        for other in ["http://127.0.0.1:2/acp", "https://127.0.0.1:1/acp", "http://localhost:1/acp"] {
            assert!(headers(other).is_empty(), "{other}");
        }
        assert!(!format!("{client:?}").contains("Bearer"), "the debug output contains the token");
    }
}
