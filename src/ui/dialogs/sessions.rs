//! The keys of the sessions dialog, and the actions on the selected session.
//!
//! `list` has the content, `operations` the implementation.
//! Invariants: nothing is closed or deleted without a confirmation that says what is affected; only advertised methods
//! of the agent are used.

mod draw;
mod list;
pub(super) mod rows;

use ratatui::layout::{Position, Rect};

use super::notice::notify;
use crate::core::state::lookup;
use std::sync::Arc;
use std::time::Instant;

use crate::config::keymap::Context;
use crate::core::lifecycle::operations;
use crate::core::{Consequence, Cx, Effect, LineInput, Question, Session, State, restore, session_title};
use crate::model::{Action, ExportForm, LineEdit, Nearness, SessionId, SessionKey, StoreJob, StoreNews};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::ViewState;

use super::layer::{Flow, Layer};
use super::list::target as list_target;
use super::scroll;
use super::{agents, tab_dialogs, titles};

pub use list::*;

/// Previews are numbered from here on, so that their cached drawings are not confused with those of sessions.
const PREVIEW_KEYS: u64 = u64::MAX / 2;

/// Opens the list, or the full-text search, and requests the data from store and agent.
pub fn open(app: &mut App, is_search: bool, cx: &mut Cx) {
    let conn = app.state.active_session().and_then(|session| session.conn);
    if let Some(conn) = conn.and_then(|conn| app.state.conns.get_mut(&conn)) {
        conn.listing = crate::core::Listing::default();
    }
    let mut dialog = SessionsDialog { is_loading: true, ..SessionsDialog::default() };
    dialog.serial = operations::list_saved(&mut app.state, cx);
    dialog.text = is_search.then(TextSearch::default);
    dialog.join(&app.state);
    if app.state.conn_of(app.state.active).is_some_and(|conn| conn.capabilities().can_list) {
        operations::list_sessions(&mut app.state, cx);
    }
    dialog.show_preview(cx);
    app.layers.open(dialog);
}

/// Applies what the store found for the dialog.
pub fn on_news(app: &mut App, news: StoreNews, now: Instant) {
    let widens = app.state.setup.lists_sessions;
    match news {
        StoreNews::Listed { serial, rows, is_last, today_ms } => rows::change(app, |dialog| {
            if dialog.serial != serial {
                return;
            }
            dialog.is_loading = !is_last;
            dialog.today_ms = today_ms;
            match rows {
                Ok(rows) => dialog.saved.extend(rows.into_iter().map(Arc::new)),
                Err(why) => dialog.problem = Some(why),
            }
            // `parlor --resume` in a folder without sessions lists those of all folders.
            if widens && is_last && dialog.saved.iter().all(|row| row.nearness != Nearness::Here) {
                dialog.scope = Scope::All;
            }
        }),
        StoreNews::Previewed { uid, saved } => {
            app.state.next.store += 1;
            let key = SessionKey(PREVIEW_KEYS + app.state.next.store);
            if let Some(dialog) = app.layers.find_mut::<SessionsDialog>()
                && let Some(Preview { session, .. }) =
                    dialog.preview.as_mut().filter(|preview| preview.uid == uid)
                && let Ok(saved) = saved
            {
                let mut shown = Session::new(key, saved.head.workspace.clone());
                restore(&mut shown, *saved, now);
                *session = Some(Box::new(shown));
            }
        }
        StoreNews::Found { serial, hits } => {
            if let Some(dialog) = app.layers.find_mut::<SessionsDialog>()
                && let Some(text) = dialog.text.as_mut().filter(|text| text.serial == serial)
            {
                text.is_running = false;
                text.selected = 0;
                match hits {
                    Ok(hits) => text.hits = hits,
                    Err(why) => dialog.problem = Some(why),
                }
            }
        }
        _ => {}
    }
}

impl Layer for SessionsDialog {
    fn title(&self, _state: &State) -> String {
        "Sessions".to_owned()
    }

    fn context(&self) -> Context {
        Context::Sessions
    }

    fn line(&self) -> Option<&LineInput> {
        Some(&self.filter)
    }

    fn on_line(&mut self, app: &mut App, edit: &LineEdit, cx: &mut Cx) {
        if !self.filter.apply(edit) {
            return;
        }
        if self.text.is_some() {
            self.search(&mut app.state, cx);
        } else {
            self.is_chosen = true;
            self.refilter();
            self.show_preview(cx);
        }
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        match action {
            Action::Choose(digit) => self.on_line(app, &LineEdit::Insert(digit.to_string()), cx),
            Action::ToggleChoice => self.on_line(app, &LineEdit::Insert(" ".to_owned()), cx),
            Action::Left | Action::Right => {
                self.filter.apply(if action == Action::Left { &LineEdit::Left } else { &LineEdit::Right });
            }
            Action::Accept => return self.accept(app, true, cx),
            Action::ReadSession => return self.accept(app, false, cx),
            Action::OpenSessions => return Flow::Close,
            Action::SearchSessions => self.toggle_search(&mut app.state, cx),
            Action::NextScope => {
                self.scope = match self.scope {
                    // Without other folders of the repository this scope would show the same.
                    Scope::Folder if self.has_kin() => Scope::Repository,
                    Scope::Folder | Scope::Repository => Scope::All,
                    Scope::All => Scope::Folder,
                };
                self.refilter();
                self.show_preview(cx);
            }
            Action::NextSort => {
                self.sort = match self.sort {
                    Sort::Time => Sort::Name,
                    Sort::Name => Sort::Agent,
                    Sort::Agent => Sort::Folder,
                    Sort::Folder => Sort::Time,
                };
                self.join(&app.state);
                self.show_preview(cx);
            }
            Action::Remove
            | Action::CloseSession
            | Action::RenameSession
            | Action::ForkSession
            | Action::ExportSession
            | Action::HandOver => {
                let row = self.marked().filter(|_| self.text.is_none()).cloned();
                return row.map_or(Flow::Stay, |row| act(app, action, &row, cx));
            }
            _ => return self.walk(action, cx),
        }
        Flow::Stay
    }

    fn stays_with_tab(&self) -> bool {
        false
    }

    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        draw::draw(ctx, self, view, area, buf)
    }
}

impl SessionsDialog {
    fn walk(&mut self, action: Action, cx: &mut Cx) -> Flow {
        let (position, count) = match &self.text {
            Some(text) => (text.selected, text.hits.len()),
            None => (self.selected, self.matches.len()),
        };
        let Some(new) = list_target(action, position, count) else { return scroll::scroll_body(action, cx) };
        if let Some(text) = &mut self.text {
            text.selected = new;
        } else {
            self.selected = new;
            self.is_chosen = true;
        }
        if new != position {
            self.show_preview(cx);
        }
        Flow::Stay
    }

    /// Switches between filtering by name and the full-text search.
    fn toggle_search(&mut self, state: &mut State, cx: &mut Cx) {
        if self.text.take().is_none() {
            self.text = Some(TextSearch::default());
            self.search(state, cx);
        } else {
            self.refilter();
            self.show_preview(cx);
        }
    }

    fn search(&mut self, state: &mut State, cx: &mut Cx) {
        state.next.store += 1;
        let serial = state.next.store;
        let Some(text) = &mut self.text else { return };
        let search = read_search(&self.filter.text, &state.setup.folder);
        text.serial = serial;
        text.is_running = !search.text.is_empty();
        if text.is_running {
            cx.effects.push(Effect::Store(StoreJob::Search { serial, search }));
        } else {
            text.hits.clear();
        }
    }

    /// Requests the preview of the selected session, unless it is shown or requested.
    fn show_preview(&mut self, cx: &mut Cx) {
        let uid = match &self.text {
            Some(_) => None,
            None => self.marked().filter(|row| row.open.is_none()).and_then(SessionEntry::uid),
        };
        let Some(uid) = uid.map(str::to_owned) else {
            self.preview = None;
            return;
        };
        if self.preview.as_ref().is_none_or(|preview| preview.uid != uid) {
            self.preview = Some(Preview { uid: uid.clone(), session: None });
            cx.effects.push(Effect::Store(StoreJob::Preview { uid }));
        }
    }

    /// Opens the selected session, or the selected hit.
    fn accept(&self, app: &mut App, takes: bool, cx: &mut Cx) -> Flow {
        if self.text.is_some() {
            let Some(hit) = self.marked_hit() else { return Flow::Stay };
            app.state.searched = Some(hit.snippet.clone());
            // A place is looked up to be read; a key goes on from there.
            operations::open_saved(&mut app.state, &hit.uid, false, Some(hit.seq), cx);
            return Flow::Close;
        }
        let Some(row) = self.marked() else { return Flow::Stay };
        if let Some(open) = &row.open {
            tab_dialogs::show(app, open.key, cx);
            if takes {
                operations::start_reading(&mut app.state, open.key, cx);
            }
        } else if let Some(saved) = &row.saved {
            operations::open_saved(&mut app.state, &saved.uid, takes, None, cx);
        } else if let Some(info) = &row.listed {
            if takes {
                operations::open_session(&mut app.state, info.id.clone(), cx);
            } else {
                let why = "This session is not saved in parlor. Open it to load it from the agent.";
                notify(&mut app.state, why, cx);
            }
        }
        Flow::Close
    }
}

/// Updates the preview after rows were added, because the selection may have changed. Asks the agent whether it has the
/// selected session in memory, unless that was done.
pub fn refresh_preview(app: &mut App, cx: &mut Cx) {
    let Some(dialog) = app.layers.top_mut::<SessionsDialog>() else { return };
    dialog.show_preview(cx);
    let row = dialog.marked().filter(|row| row.open.is_none() && dialog.text.is_none());
    let unasked = row.and_then(|row| row.listed.as_ref()).filter(|info| info.is_live.is_none());
    if let Some(id) = unasked.map(|info| info.id.clone()) {
        operations::request_status(&mut app.state, id, cx);
    }
}

/// Handles an action on the selected session.
fn act(app: &mut App, action: Action, row: &SessionEntry, cx: &mut Cx) -> Flow {
    match (action, row.open.as_ref().map(|open| open.key)) {
        (Action::Remove | Action::CloseSession, Some(key)) => close(&mut app.state, key, cx),
        (Action::Remove, None) => ask_delete(&mut app.state, row, cx),
        (Action::CloseSession, None) => notify(&mut app.state, "This session is not open.", cx),
        (Action::RenameSession, _) => rename(app, row, cx),
        (Action::ForkSession, Some(key)) => {
            fork_session(app, key, cx);
            return Flow::Close;
        }
        (Action::ForkSession, None) => {
            notify(&mut app.state, "Open the session first to fork it.", cx);
        }
        (Action::HandOver, Some(key)) => {
            tab_dialogs::show(app, key, cx);
            agents::open_hand_over(app, cx);
            return Flow::Close;
        }
        (Action::HandOver, None) => {
            notify(&mut app.state, "Open the session first to hand it over.", cx);
        }
        _ => match row.uid() {
            Some(uid) => ask_export(&mut app.state, uid, row.name()),
            None => notify(&mut app.state, NOT_SAVED, cx),
        },
    }
    Flow::Stay
}

/// Closes a session; asks first if work would be interrupted or lost.
pub fn close(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let is_harmless = state.sessions.get(&key).is_some_and(|session| {
        let is_busy = session.turn.is_running() || !session.requests.is_empty();
        let is_recorded = state.setup.saves_sessions || session.transcript.items().is_empty();
        let is_written = session.draft.trim().is_empty() && session.outbox.is_empty();
        let is_saved = lookup::unsaved(state, Some(key)).is_none();
        !is_busy && is_recorded && is_written && is_saved && session.parent.is_none()
    });
    if is_harmless {
        operations::close_session(state, key, cx);
    } else {
        ask_close(state, key, cx);
    }
}

pub fn ask_close(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    if session.parent.is_some() {
        notify(state, "Subagent sessions close with their parent session.", cx);
        return;
    }
    let mut body = vec![session_title(session)];
    if session.turn.is_running() {
        body.push("The running turn will be cancelled.".to_owned());
    }
    let can_come_back =
        state.conn_of(key).is_some_and(|conn| conn.capabilities().can_list && conn.capabilities().can_load);
    let is_recorded =
        state.setup.saves_sessions || session.recorder.saved_as().is_some() || session.read_only.is_some();
    let unsaved = state.unsaved.as_ref().filter(|_| state.setup.saves_sessions);
    body.push(if let Some((what, unsaved)) = lookup::unsaved(state, Some(key)).zip(unsaved) {
        format!("{what} Cannot save: {}. parlor tries again until you quit.", unsaved.why)
    } else if is_recorded {
        "The session is saved. You can resume it later.".to_owned()
    } else if can_come_back {
        "The session is saved by the agent. You can reopen it from the session list.".to_owned()
    } else {
        "The session is not saved.".to_owned()
    });
    ask(state, "Close session?", body, "Close", Consequence::CloseSession(key));
}

fn ask_delete(state: &mut State, row: &SessionEntry, cx: &mut Cx) {
    let can_delete = state.conn_of(state.active).is_some_and(|conn| conn.capabilities().can_delete);
    let agent = state.conn_of(state.active).map(|conn| conn.spec.name.clone()).unwrap_or_default();
    let listed: Option<SessionId> = row.listed.as_ref().map(|info| info.id.clone()).filter(|_| can_delete);
    let mut body = vec![row.name().to_owned()];
    let outcome = match (row.uid(), &listed) {
        (None, None) if row.listed.is_some() => {
            notify(state, "This session is stored by the agent, which cannot delete sessions.", cx);
            return;
        }
        (None, None) => return,
        (None, Some(id)) => {
            body.push(format!("Deletes the session in {agent}. This cannot be undone."));
            Consequence::DeleteSession(id.clone())
        }
        (Some(uid), _) => {
            body.push("Deletes the session in parlor. This cannot be undone.".to_owned());
            body.push(match (&listed, row.agent()) {
                (Some(_), _) => format!("Also deletes the session in {agent}."),
                (None, "") => "The agent may still have a copy.".to_owned(),
                (None, name) => format!("{name} may still have a copy."),
            });
            Consequence::DeleteSaved(uid.to_owned(), listed)
        }
    };
    ask(state, "Delete session?", body, "Delete", outcome);
}

fn ask(state: &mut State, title: &str, body: Vec<String>, label: &str, consequence: Consequence) {
    let answers = [(label, consequence), ("Cancel", Consequence::Close)];
    state.ask(state.active, Question::new(title, body, answers).marking_last());
}

fn rename(app: &mut App, row: &SessionEntry, cx: &mut Cx) {
    match (&row.open, row.uid()) {
        (Some(open), _) => titles::open(app, open.key),
        (None, Some(uid)) => {
            let agent = row.agent();
            let has_name = row.saved.as_ref().is_some_and(|saved| saved.agent_session.is_some());
            let help = if has_name && operations::takes_titles(&app.state, agent) {
                format!("Renames the session in parlor and in {agent}.")
            } else {
                titles::RENAMED_LATER.to_owned()
            };
            titles::open_saved(app, uid, row.name(), help);
        }
        (None, None) => {
            notify(&mut app.state, "This session is stored by the agent only. Open it first.", cx);
        }
    }
}

/// Copies a session. If the agent can copy up to a turn and an earlier one is selected, the user chooses.
pub fn fork_session(app: &mut App, key: SessionKey, cx: &mut Cx) {
    let selected = app.views.get(key).selected;
    let state = &mut app.state;
    let can_branch = state.conn_of(key).is_some_and(|conn| conn.capabilities().can_fork_at_turn);
    let marked = state.sessions.get(&key).and_then(|session| {
        let turn = session.transcript.get(selected?)?.turn;
        (turn > 0 && turn < session.turn_count).then_some((turn, session.turn_count))
    });
    let Some((turn, last)) = marked.filter(|_| can_branch) else {
        operations::fork_session(state, key, None, cx);
        return;
    };
    let body = vec!["Creates an independent copy. This session is not changed.".to_owned()];
    let answers = [
        (format!("Up to the selected turn ({turn} of {last})"), Consequence::Fork(key, Some(turn))),
        ("Everything".to_owned(), Consequence::Fork(key, None)),
    ];
    state.ask(key, Question::new("Fork session", body, answers));
}

const NOT_SAVED: &str = "This session is not saved yet.";

pub fn export_shown(state: &mut State, cx: &mut Cx) {
    let Some(session) = state.active_session() else { return };
    let reading = session.read_only.as_ref().map(|reading| reading.uid.clone());
    match session.recorder.saved_as().map(str::to_owned).or(reading) {
        Some(uid) => {
            let name = session_title(session);
            ask_export(state, &uid, &name);
        }
        None => notify(state, NOT_SAVED, cx),
    }
}

fn ask_export(state: &mut State, uid: &str, name: &str) {
    let folder = state.setup.export_folder.clone();
    let body = vec![name.to_owned(), format!("Target folder: {}", folder.display())];
    let forms = [
        ("Markdown, for reading", ExportForm::Markdown),
        ("JSON with all events, for import", ExportForm::Json),
        ("HTML, single self-contained page", ExportForm::Html),
        ("Markdown, with likely secrets hidden", ExportForm::Redacted),
    ];
    let answers = forms.map(|(label, form)| {
        let job = StoreJob::Export { uid: uid.to_owned(), form, folder: folder.clone() };
        (label, Consequence::effect(Effect::Store(job)))
    });
    state.ask(state.active, Question::new("Export session", body, answers));
}
