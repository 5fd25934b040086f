//! Dialogs that set a model provider of an agent. They ask for the provider, API, base URL and headers, one after the
//! other; `operations` sends the result after the last one.
//! Invariant: headers are sent only to the address that they were entered for.

use crate::core::lifecycle::operations;
use crate::core::{Cx, State};
use crate::model::{ConnId, Provider, ProviderRequest, ProviderTarget};
use crate::ui::App;

use super::layer::Flow;
use super::line_dialog::{LineDialog, Purpose};
use super::picker::{List, Picker, PickerRow};
use super::validate;

/// The model providers of an agent.
#[derive(Debug)]
pub struct Providers {
    pub conn: ConnId,
}

impl List for Providers {
    /// The id of the provider.
    type Item = String;

    fn pick(&mut self, id: String, app: &mut App, _cx: &mut Cx) -> Flow {
        open_apis(app, self.conn, id);
        Flow::Close
    }
}

/// The APIs of a provider; `None` disables it.
#[derive(Debug)]
pub struct ProviderApis {
    pub conn: ConnId,
    /// The id of the provider.
    pub provider: String,
}

impl List for ProviderApis {
    type Item = Option<String>;

    /// Asks for the address of the API.
    fn pick(&mut self, api: Option<String>, app: &mut App, cx: &mut Cx) -> Flow {
        let (conn, id) = (self.conn, self.provider.clone());
        let Some(api) = api else {
            operations::change_provider(&mut app.state, conn, ProviderRequest { id, target: None }, cx);
            return Flow::Close;
        };
        let current = provider(&app.state, conn, &id).and_then(|provider| provider.base_url.clone());
        let help = "Base URL, for example https://llm.example.org/v1.";
        let title = format!("Address of {id}");
        app.layers.push(LineDialog::new(
            title,
            help,
            &current.unwrap_or_default(),
            Address { conn, id, api },
        ));
        Flow::Close
    }
}

pub fn open(app: &mut App) {
    let Some(conn) = app.state.conn_of(app.state.active) else { return };
    let rows: Vec<_> = conn.providers.iter().map(provider_row).collect();
    let note = rows.is_empty().then(|| "No providers.".to_owned());
    let list = Picker::new(Providers { conn: conn.id }, "Model providers", rows).noting(note);
    app.layers.open(list);
}

fn provider_row(provider: &Provider) -> (PickerRow, String) {
    let row = PickerRow { detail: endpoint(provider), ..PickerRow::new(provider.id.as_str()) };
    (row, provider.id.clone())
}

/// The address and the API of a provider.
pub(super) fn endpoint(provider: &Provider) -> String {
    match (&provider.base_url, &provider.api_type) {
        (Some(url), Some(api)) => format!("{url} ({api})"),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => "off".to_owned(),
    }
}

fn open_apis(app: &mut App, conn: ConnId, id: String) {
    let Some(provider) = provider(&app.state, conn, &id) else { return };
    let current = &provider.api_type;
    let mut apis = provider.supported.clone();
    if apis.is_empty() {
        apis.extend(current.clone());
    }
    let row = |api: String| {
        let is_current = current.as_ref() == Some(&api);
        (PickerRow { is_current, ..PickerRow::new(api.as_str()) }, Some(api))
    };
    let mut rows: Vec<_> = apis.into_iter().map(row).collect();
    if !provider.is_required && (current.is_some() || provider.base_url.is_some()) {
        rows.push((PickerRow::new("Disable"), None));
    }
    let title = format!("API of {id}");
    let note = rows.is_empty().then(|| "No APIs available.".to_owned());
    let list = Picker::new(ProviderApis { conn, provider: id }, title, rows).noting(note);
    app.layers.open(list);
}

/// The base URL of a provider's API.
#[derive(Debug)]
struct Address {
    conn: ConnId,
    /// The id of the provider.
    id: String,
    api: String,
}

impl Purpose for Address {
    fn verb(&self) -> &'static str {
        "continue"
    }

    /// Asks for headers, unless those for this address are configured.
    fn accept(&self, url: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        let is_http = url.starts_with("https://") || url.starts_with("http://");
        if !is_http || !validate::is_uri(url) {
            return Err("Type a URL that starts with https:// or http://.".to_owned());
        }
        let configured = app.state.conns.get(&self.conn);
        let configured = configured.map(|conn| conn.spec.wire.providers.as_slice()).unwrap_or_default();
        let mut targets = configured.iter().filter(|known| known.id == self.id);
        let known = targets.find_map(|known| {
            known.target.as_ref().filter(|target| target.base_url == url).map(|target| target.headers.clone())
        });
        let is_known = known.is_some();
        let headers = known.unwrap_or_default();
        let target = ProviderTarget { api_type: self.api.clone(), base_url: url.to_owned(), headers };
        let request = ProviderRequest { id: self.id.clone(), target: Some(target) };
        if is_known {
            operations::change_provider(&mut app.state, self.conn, request, cx);
        } else {
            request_header(app, self.conn, request);
        }
        Ok(())
    }
}

/// A header for a provider; earlier ones are already in the request.
#[derive(Debug)]
struct Header {
    conn: ConnId,
    request: ProviderRequest,
}

impl Purpose for Header {
    fn verb(&self) -> &'static str {
        "continue"
    }

    /// Asks for another header; none ends the request.
    fn accept(&self, line: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        let mut request = self.request.clone();
        if line.is_empty() {
            operations::change_provider(&mut app.state, self.conn, request, cx);
            return Ok(());
        }
        let is_name = |name: &str| {
            let is_token = |ch: char| ch.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(ch);
            !name.is_empty() && name.chars().all(is_token)
        };
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name.trim())) else {
            return Err("Type name: value, for example Authorization: Bearer …".to_owned());
        };
        if let Some(target) = &mut request.target {
            target.headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        request_header(app, self.conn, request);
        Ok(())
    }
}

fn request_header(app: &mut App, conn: ConnId, request: ProviderRequest) {
    let count = request.target.as_ref().map_or(0, |target| target.headers.len());
    let help = if count == 0 {
        "HTTP header, for example Authorization: Bearer … Leave empty to continue."
    } else {
        "Another header. Leave empty to finish."
    };
    let title = format!("Credentials of {}", request.id);
    app.layers.push(LineDialog::new(title, help, "", Header { conn, request }).hiding(true));
}

fn provider<'a>(state: &'a State, conn: ConnId, id: &str) -> Option<&'a Provider> {
    state.conns.get(&conn)?.providers.iter().find(|provider| provider.id == id)
}
