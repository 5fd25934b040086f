//! Dialogs that set a model provider of an agent. They ask for the provider, API, base URL and headers, one after the
//! other; `operations` sends the result after the last one.
//! Invariant: headers are sent only to the address that they were entered for.

use crate::app::lifecycle::operations;
use crate::app::{Cx, LineInput, State};
use crate::model::{ConnId, Provider, ProviderRequest, ProviderTarget};
use crate::ui::{App, LineDialog, LinePurpose, Modal, PickerKind, PickerRow, PickerValue};

use super::{picker, validate};

/// The value of the row that disables a provider; no API has this name.
const OFF: &str = "";

pub fn open(app: &mut App) {
    let Some(conn) = app.state.conn_of(app.state.active) else { return };
    let rows: Vec<PickerRow> = conn.providers.iter().map(provider_row).collect();
    let id = conn.id;
    let mut list = picker::new(PickerKind::Provider, "Model providers", rows);
    list.conn = Some(id);
    if list.rows.is_empty() {
        list.note = Some("No providers.".to_owned());
    }
    picker::push(app, list);
}

fn provider_row(provider: &Provider) -> PickerRow {
    let detail = match (&provider.base_url, &provider.api_type) {
        (Some(url), Some(api)) => format!("{url} ({api})"),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (None, None) => "off".to_owned(),
    };
    PickerRow { detail, ..row(&provider.id, &provider.id) }
}

fn row(value: &str, label: &str) -> PickerRow {
    PickerRow::new(PickerValue::Id(value.to_owned()), label)
}

/// A provider was picked: asks for its API.
pub fn pick(app: &mut App, conn: ConnId, id: &str) {
    let Some(provider) = provider(&app.state, conn, id) else { return };
    let current = provider.api_type.clone();
    let mut apis = provider.supported.clone();
    if apis.is_empty() {
        apis.extend(current.clone());
    }
    let mut rows: Vec<PickerRow> = apis
        .iter()
        .map(|api| PickerRow { is_current: current.as_ref() == Some(api), ..row(api, api) })
        .collect();
    if !provider.is_required && (current.is_some() || provider.base_url.is_some()) {
        rows.push(row(OFF, "Disable"));
    }
    let title = format!("API of {id}");
    let mut list = picker::new(PickerKind::ProviderApi(id.to_owned()), title, rows);
    list.conn = Some(conn);
    if list.rows.is_empty() {
        list.note = Some("No APIs available.".to_owned());
    }
    picker::push(app, list);
}

/// An API was picked: asks for its address.
pub fn pick_api(app: &mut App, conn: ConnId, id: String, api: String, cx: &mut Cx) {
    if api == OFF {
        operations::change_provider(&mut app.state, conn, ProviderRequest { id, target: None }, cx);
        return;
    }
    let current = provider(&app.state, conn, &id).and_then(|provider| provider.base_url.clone());
    app.modals.push(Modal::Line(LineDialog {
        title: format!("Address of {id}"),
        help: "Base URL, for example https://llm.example.org/v1.".to_owned(),
        input: LineInput::new(&current.unwrap_or_default()),
        is_secret: false,
        problem: None,
        purpose: LinePurpose::ProviderUrl { conn, id, api },
    }));
}

/// A base URL was entered: asks for headers. Returns an error message if the URL is invalid.
pub fn take_url(
    app: &mut App,
    conn: ConnId,
    id: String,
    api: String,
    url: &str,
    cx: &mut Cx,
) -> Result<(), String> {
    let is_http = url.starts_with("https://") || url.starts_with("http://");
    if !is_http || !validate::is_uri(url) {
        return Err("Type a URL that starts with https:// or http://.".to_owned());
    }
    app.modals.pop();
    let configured =
        app.state.conns.get(&conn).map(|conn| conn.spec.wire.providers.as_slice()).unwrap_or_default();
    let known = configured.iter().filter(|provider| provider.id == id).find_map(|provider| {
        provider.target.as_ref().filter(|target| target.base_url == url).map(|target| target.headers.clone())
    });
    let is_known = known.is_some();
    let target =
        ProviderTarget { api_type: api, base_url: url.to_owned(), headers: known.unwrap_or_default() };
    let request = ProviderRequest { id, target: Some(target) };
    if is_known {
        operations::change_provider(&mut app.state, conn, request, cx);
    } else {
        request_header(app, conn, request);
    }
    Ok(())
}

/// A header was entered, or none. Returns an error message if the header is invalid.
pub fn take_header(
    app: &mut App,
    conn: ConnId,
    mut request: ProviderRequest,
    line: &str,
    cx: &mut Cx,
) -> Result<(), String> {
    if line.is_empty() {
        app.modals.pop();
        operations::change_provider(&mut app.state, conn, request, cx);
        return Ok(());
    }
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter))
    };
    let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name.trim())) else {
        return Err("Type name: value, for example Authorization: Bearer …".to_owned());
    };
    if let Some(target) = &mut request.target {
        target.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    app.modals.pop();
    request_header(app, conn, request);
    Ok(())
}

fn request_header(app: &mut App, conn: ConnId, request: ProviderRequest) {
    let count = request.target.as_ref().map_or(0, |target| target.headers.len());
    let help = if count == 0 {
        "HTTP header, for example Authorization: Bearer … Leave empty to continue."
    } else {
        "Another header. Leave empty to finish."
    };
    app.modals.push(Modal::Line(LineDialog {
        title: format!("Credentials of {}", request.id),
        help: help.to_owned(),
        input: LineInput::default(),
        is_secret: true,
        problem: None,
        purpose: LinePurpose::ProviderHeader { conn, request },
    }));
}

fn provider<'a>(state: &'a State, conn: ConnId, id: &str) -> Option<&'a Provider> {
    state.conns.get(&conn)?.providers.iter().find(|provider| provider.id == id)
}
