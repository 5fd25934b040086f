//! The search of earlier prompts, in this folder or in all folders.
//!
//! The store finds them. Until it has answered, the prompts that the session knows are shown.
//! Invariant: a chosen prompt goes into the composer, and is sent only when the user sends it.

use super::notice::notify;
use crate::app::lifecycle::operations;
use crate::app::{Cx, Effect};
use crate::model::{FoundPrompt, LineEdit, PromptQuery, StoreJob, numbered_labels};
use crate::ui::{App, Modal, Picker, PickerKind, PickerRow, PickerValue};

use super::picker;

/// Maximum number of characters of a row.
const MAX_CHARS: usize = 300;

/// Opens the list of the folder's prompts, or of all prompts if there are none in this folder.
pub fn open(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let mut seen = std::collections::HashSet::new();
    let prompts = session.history.iter().rev().filter(|text| seen.insert(text.as_str()));
    let prompts = prompts.map(|text| FoundPrompt { text: text.clone(), ..FoundPrompt::default() });
    let rows: Vec<PickerRow> = prompts.map(|prompt| row(prompt, false)).collect();
    let kind = PickerKind::History { serial: 0, is_everywhere: rows.is_empty() };
    let title = title(rows.is_empty());
    picker::push(app, picker::new(kind, title, rows));
    search(app, true, cx);
}

pub fn on_filter(app: &mut App, edit: &LineEdit, cx: &mut Cx) {
    let Some(Modal::Picker(picker)) = app.modals.last_mut() else { return };
    if picker.filter.apply(edit) {
        picker::refilter(picker, &app.state.setup);
        search(app, false, cx);
    }
}

/// Switches between this folder and all folders.
pub fn toggle(app: &mut App, cx: &mut Cx) {
    let Some(picker) = top(app) else { return };
    if let PickerKind::History { is_everywhere, .. } = &mut picker.kind {
        *is_everywhere = !*is_everywhere;
        title(*is_everywhere).clone_into(&mut picker.title);
        search(app, false, cx);
    }
}

pub fn on_found(app: &mut App, serial: u64, found: Result<(Vec<FoundPrompt>, usize), String>) {
    let is_it = |picker: &&mut Picker| matches!(picker.kind, PickerKind::History { serial: asked, .. } if asked == serial);
    let pickers = app.modals.iter_mut().filter_map(|modal| match modal {
        Modal::Picker(picker) => Some(picker),
        _ => None,
    });
    let Some(picker) = pickers.into_iter().find(is_it) else { return };
    let is_everywhere = matches!(picker.kind, PickerKind::History { is_everywhere: true, .. });
    let (rows, note) = match found {
        Ok((prompts, count)) => {
            let is_cut = prompts.len() < count;
            let note = is_cut.then(|| format!("Showing {} of {count}. Type to filter.", prompts.len()));
            (prompts.into_iter().map(|prompt| row(prompt, is_everywhere)).collect(), note)
        }
        Err(why) => (std::mem::take(&mut picker.rows), Some(why)),
    };
    picker.matches = (0..rows.len()).collect();
    picker.selected = picker.selected.min(rows.len().saturating_sub(1));
    (picker.rows, picker.note) = (rows, note);
}

/// Opens the session of the selected prompt, at that prompt.
pub fn open_session(app: &mut App, cx: &mut Cx) {
    let Some(picker) = top(app) else { return };
    let Some(PickerValue::Prompt(prompt)) = picker::marked_row(picker).map(|row| row.value.clone()) else {
        return;
    };
    let Some(source) = prompt.source else {
        notify(&mut app.state, "The session of this prompt is not saved.", cx);
        return;
    };
    app.modals.pop();
    operations::open_saved(&mut app.state, &source.uid, false, Some(source.seq), cx);
}

/// Frees the prompts in the store once the list is closed.
pub fn free_prompts(app: &mut App, cx: &mut Cx) {
    let is_open =
        |modal: &Modal| matches!(modal, Modal::Picker(it) if matches!(it.kind, PickerKind::History { .. }));
    if app.user.has_prompt_index && !app.modals.iter().any(is_open) {
        app.user.has_prompt_index = false;
        cx.effects.push(Effect::Store(StoreJob::ForgetPrompts));
    }
}

fn search(app: &mut App, is_new: bool, cx: &mut Cx) {
    let here = app.state.active_session().map(|session| session.workspace.cwd.clone());
    app.state.next.store += 1;
    let next = app.state.next.store;
    let Some(picker) = top(app) else { return };
    let PickerKind::History { serial, is_everywhere } = &mut picker.kind else { return };
    *serial = next;
    let folder = here.filter(|_| !*is_everywhere);
    picker.selected = 0;
    let text = picker.filter.text.clone();
    app.user.has_prompt_index = true;
    cx.effects.push(Effect::Store(StoreJob::Prompts(PromptQuery { serial: next, text, folder, is_new })));
}

fn top(app: &mut App) -> Option<&mut Picker> {
    match app.modals.last_mut() {
        Some(Modal::Picker(picker)) if matches!(picker.kind, PickerKind::History { .. }) => Some(picker),
        _ => None,
    }
}

fn title(is_everywhere: bool) -> &'static str {
    if is_everywhere { "Prompts of all folders" } else { "Prompts of this folder" }
}

/// `prompt   title, agent, folder   time`.
fn row(prompt: FoundPrompt, is_everywhere: bool) -> PickerRow {
    let label = numbered_labels(&prompt.text).split_whitespace().collect::<Vec<_>>().join(" ");
    let folder = prompt.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let (name, agent) =
        prompt.source.as_ref().map(|it| (it.name.clone(), it.agent.clone())).unwrap_or_default();
    // A session is often named after its first prompt.
    let name = Some(name).filter(|name| !prompt.text.starts_with(name.trim_end_matches('…')));
    let parts = [folder.filter(|_| is_everywhere), Some(agent), name];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    PickerRow {
        detail: parts.join(" · "),
        right: prompt.when.clone(),
        ..PickerRow::new(
            PickerValue::Prompt(Box::new(prompt)),
            label.chars().take(MAX_CHARS).collect::<String>(),
        )
    }
}
