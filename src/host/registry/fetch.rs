//! Fetches the index and archives over HTTPS, with the proxies of the environment and the certificates of the system.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use reqwest::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use reqwest::{Client, Response, StatusCode, Url};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{CANCELLED, Stop, index};
use crate::host::os::private;
use crate::model::{RegistryIndex, hex, shown_url};
use crate::tls::{self, innermost};

/// The index at the time of the build; `scripts/registry.sh` updates it.
const BUILT_IN: &str = include_str!("snapshot.json");

/// Maximum size of an index in bytes.
const MAX_INDEX_BYTES: u64 = 8 << 20;

/// Maximum size of an archive in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

/// How often a download checks whether it was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time to connect, and between two parts of a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// The index that was fetched last.
#[derive(Serialize, Deserialize)]
struct Saved {
    url: String,
    etag: Option<String>,
    day: String,
    index: String,
}

impl Saved {
    fn path(agents: &Path) -> PathBuf {
        agents.join("registry.json")
    }

    fn read(agents: &Path, url: &str) -> Option<Self> {
        let text = std::fs::read(Self::path(agents)).ok()?;
        serde_json::from_slice(&text).ok().filter(|saved: &Self| saved.url == url)
    }

    fn write(&self, agents: &Path) -> std::io::Result<()> {
        private::make_folder(agents)?;
        private::replace(&Self::path(agents), &serde_json::to_vec(self)?)
    }

    fn index(&self) -> Option<RegistryIndex> {
        let agents = index::read(&self.index)?;
        Some(RegistryIndex {
            agents,
            origin: format!("registry of {}", self.day),
            ..RegistryIndex::default()
        })
    }
}

/// The index that was fetched last from this URL.
pub fn saved(agents: &Path, url: &str) -> Option<RegistryIndex> {
    Saved::read(agents, url)?.index()
}

pub fn built_in() -> &'static RegistryIndex {
    static INDEX: LazyLock<RegistryIndex> = LazyLock::new(|| {
        let day = serde_json::from_str::<serde_json::Value>(BUILT_IN).ok();
        let day = day.as_ref().and_then(|index| index.get("day")?.as_str()).unwrap_or("the build");
        let agents = index::read(BUILT_IN).unwrap_or_default();
        RegistryIndex { agents, origin: format!("built-in list of {day}"), ..RegistryIndex::default() }
    });
    &INDEX
}

/// Fetches the index if it has changed.
pub fn refresh(agents: &Path, url: &str) -> Result<RegistryIndex, String> {
    let saved = Saved::read(agents, url);
    let etag = saved.as_ref().and_then(|saved| saved.etag.clone());
    let fetched = block_on(async {
        let mut request = client()?.get(parsed(url)?);
        if let Some(etag) = etag.as_deref().and_then(|etag| HeaderValue::from_str(etag).ok()) {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let mut response = answer(request, url).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let etag = response.headers().get(ETAG).and_then(|etag| Some(etag.to_str().ok()?.to_owned()));
        let mut text = Vec::new();
        read(&mut response, url, MAX_INDEX_BYTES, &Stop::default(), |part, _| {
            text.extend_from_slice(part);
            Ok(())
        })
        .await?;
        Ok(Some((etag, String::from_utf8_lossy(&text).into_owned())))
    })?;
    let day = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
    let fresh = match (fetched, saved) {
        (Some((etag, index)), _) => Saved { url: url.to_owned(), etag, day, index },
        (None, Some(saved)) => Saved { day, ..saved },
        (None, None) => return Err(format!("{} did not send the registry.", shown_url(url))),
    };
    let index = fresh.index().ok_or_else(|| {
        format!("{} is not a registry of agents. Correct `registry` in the configuration.", shown_url(url))
    })?;
    fresh.write(agents).map_err(|error| format!("The registry could not be saved: {error}."))?;
    Ok(index)
}

/// Downloads a file, and returns its SHA-256 in hexadecimal.
pub fn download(url: &str, into: &Path, stop: &Stop, say: &dyn Fn(String)) -> Result<String, String> {
    let mut file =
        private::create_new(into).map_err(|error| format!("Cannot write {}: {error}.", into.display()))?;
    let mut digest = Context::new(&SHA256);
    let mut shown_mib = 0;
    block_on(async {
        let mut response = answer(client()?.get(parsed(url)?), url).await?;
        let total = response.content_length();
        read(&mut response, url, MAX_ARCHIVE_BYTES, stop, |part, done| {
            digest.update(part);
            file.write_all(part).map_err(|error| format!("Cannot write {}: {error}.", into.display()))?;
            if done >> 20 > shown_mib {
                shown_mib = done >> 20;
                say(match total {
                    Some(total) => format!("{shown_mib} of {} MiB", total.div_ceil(1 << 20)),
                    None => format!("{shown_mib} MiB"),
                });
            }
            Ok(())
        })
        .await
    })?;
    Ok(hex(digest.finish().as_ref()))
}

/// Whether a URL may be fetched: HTTPS, or a server on this machine.
pub fn is_allowed(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || url.scheme() == "http" && is_here(&url))
}

fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn parsed(url: &str) -> Result<Url, String> {
    if !is_allowed(url) {
        return Err(format!("{} cannot be fetched: only https:// is used.", shown_url(url)));
    }
    Url::parse(url).map_err(|error| format!("Invalid URL {}: {error}.", shown_url(url)))
}

fn client() -> Result<Client, String> {
    // A server elsewhere cannot redirect to one on this machine.
    let same_or_safe = reqwest::redirect::Policy::custom(|attempt| {
        let was_safe = attempt.previous().iter().any(|url| url.scheme() == "https");
        let is_safe = attempt.url().scheme() == "https" && !is_here(attempt.url());
        if attempt.previous().len() < 8 && (is_safe || !was_safe && is_allowed(attempt.url().as_str())) {
            attempt.follow()
        } else {
            attempt.error("a redirect to a URL that is not fetched")
        }
    });
    Client::builder()
        .tls_backend_preconfigured(tls::config(true, false, None)?)
        .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")))
        .redirect(same_or_safe)
        .connect_timeout(PATIENCE)
        .build()
        .map_err(|error| format!("Could not create the HTTP client: {error}."))
}

async fn answer(request: reqwest::RequestBuilder, url: &str) -> Result<Response, String> {
    let shown = shown_url(url);
    let help = "Check the network and the proxy (HTTPS_PROXY), then try again.";
    let response = match timeout(PATIENCE, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let cause = innermost(&error);
            return Err(format!("{shown} could not be reached: {cause}. {help}"));
        }
        Err(_) => return Err(format!("{shown} did not respond within {} s. {help}", PATIENCE.as_secs())),
    };
    let status = response.status();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    Err(format!("{shown} responded with {status}. Try again later, or refresh the registry."))
}

async fn read(
    response: &mut Response,
    url: &str,
    max: u64,
    stop: &Stop,
    mut take: impl FnMut(&[u8], u64) -> Result<(), String>,
) -> Result<(), String> {
    let (mut done, mut silent_since) = (0, Instant::now());
    loop {
        if stop.is_set() {
            return Err(CANCELLED.to_owned());
        }
        let part = match timeout(POLL_INTERVAL, response.chunk()).await {
            Ok(Ok(Some(part))) => part,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => {
                return Err(format!(
                    "The download from {} failed: {}. Try again.",
                    shown_url(url),
                    innermost(&error)
                ));
            }
            Err(_) if silent_since.elapsed() < PATIENCE => continue,
            Err(_) => return Err(format!("{} stopped sending. Try again.", shown_url(url))),
        };
        silent_since = Instant::now();
        done += part.len() as u64;
        if done > max {
            return Err(format!("{} is larger than {} MiB.", shown_url(url), max >> 20));
        }
        take(&part, done)?;
    }
}

/// Runs on a runtime of its own, because the caller is on a thread for blocking work.
fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("Could not start the download: {error}."))?.block_on(work)
}
