//! The search of earlier prompts, in this folder or in all folders.
//!
//! The store finds them. Until it has answered, the prompts that the session knows are shown.
//! Invariant: a chosen prompt goes into the composer, and is sent only when the user sends it.

use super::notice::notify;
use crate::config::keymap::Context;
use crate::core::lifecycle::operations;
use crate::core::{Cx, Effect, State};
use crate::model::{Action, FoundPrompt, PromptQuery, StoreJob, numbered_labels};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;

use super::draft;
use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};

/// Maximum number of characters of a row.
const MAX_CHARS: usize = 300;

/// Earlier prompts.
#[derive(Debug)]
pub struct History {
    /// The number of the last search.
    pub serial: u64,
    /// Whether prompts of all folders are listed.
    pub is_everywhere: bool,
}

impl List for History {
    type Item = FoundPrompt;

    fn pick(&mut self, prompt: FoundPrompt, app: &mut App, cx: &mut Cx) -> Flow {
        draft::recall(app, prompt.text, cx);
        Flow::Close
    }

    fn verb(&self, _item: Option<&FoundPrompt>) -> &'static str {
        "edit"
    }

    fn on_action(picker: &mut Picker<Self>, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        match action {
            Action::NextScope => {
                let list = &mut picker.list;
                list.is_everywhere = !list.is_everywhere;
                title(list.is_everywhere).clone_into(&mut picker.view.title);
                search(picker, app, false, cx);
                Flow::Stay
            }
            Action::ReadSession => open_session(picker.marked(), &mut app.state, cx),
            _ => Flow::Pass,
        }
    }

    fn on_filtered(picker: &mut Picker<Self>, app: &mut App, cx: &mut Cx) {
        search(picker, app, false, cx);
    }

    fn hints(&self, ctx: &FrameContext) -> Vec<(String, String)> {
        let other = if self.is_everywhere { "this folder" } else { "all folders" };
        let scope = ctx.hint(Context::List, Action::NextScope, other);
        let session = ctx.hint(Context::List, Action::ReadSession, "open session");
        scope.into_iter().chain(session).collect()
    }
}

/// Opens the list of the folder's prompts, or of all prompts if there are none in this folder.
pub fn open(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let mut seen = std::collections::HashSet::new();
    let prompts = session.history.iter().rev().filter(|text| seen.insert(text.as_str()));
    let prompts = prompts.map(|text| FoundPrompt { text: text.clone(), ..FoundPrompt::default() });
    let rows: Vec<_> = prompts.map(|prompt| row(prompt, false)).collect();
    let list = History { serial: 0, is_everywhere: rows.is_empty() };
    let mut picker = Picker::new(list, title(rows.is_empty()), rows);
    search(&mut picker, app, true, cx);
    app.layers.open(picker);
}

/// Shows what the store has found, if it is for the last search of an open list.
pub fn on_found(app: &mut App, serial: u64, found: Result<(Vec<FoundPrompt>, usize), String>) {
    let Some(picker) = app.layers.find_mut::<Picker<History>>() else { return };
    if picker.list.serial != serial {
        return;
    }
    match found {
        Ok((prompts, count)) => {
            let is_cut = prompts.len() < count;
            picker.view.note =
                is_cut.then(|| format!("Showing {} of {count}. Type to filter.", prompts.len()));
            let is_everywhere = picker.list.is_everywhere;
            picker.set_found(prompts.into_iter().map(|prompt| row(prompt, is_everywhere)).collect());
        }
        Err(why) => {
            picker.view.note = Some(why);
            picker.show_all();
        }
    }
}

/// Opens the session of a prompt, at that prompt.
fn open_session(prompt: Option<&FoundPrompt>, state: &mut State, cx: &mut Cx) -> Flow {
    let Some(prompt) = prompt else { return Flow::Stay };
    let Some(source) = &prompt.source else {
        notify(state, "The session of this prompt is not saved.", cx);
        return Flow::Stay;
    };
    operations::open_saved(state, &source.uid, false, Some(source.seq), cx);
    Flow::Close
}

/// Frees the prompts in the store once the list is closed.
pub fn free_prompts(app: &mut App, cx: &mut Cx) {
    if app.user.has_prompt_index && !app.layers.has::<Picker<History>>() {
        app.user.has_prompt_index = false;
        cx.effects.push(Effect::Store(StoreJob::ForgetPrompts));
    }
}

fn search(picker: &mut Picker<History>, app: &mut App, is_new: bool, cx: &mut Cx) {
    let here = app.state.active_session().map(|session| session.workspace.cwd.clone());
    app.state.next.store += 1;
    let serial = app.state.next.store;
    picker.list.serial = serial;
    picker.view.selected = 0;
    let folder = here.filter(|_| !picker.list.is_everywhere);
    let text = picker.view.filter.text.clone();
    app.user.has_prompt_index = true;
    cx.effects.push(Effect::Store(StoreJob::Prompts(PromptQuery { serial, text, folder, is_new })));
}

fn title(is_everywhere: bool) -> &'static str {
    if is_everywhere { "Prompts of all folders" } else { "Prompts of this folder" }
}

/// `prompt   title, agent, folder   time`.
fn row(prompt: FoundPrompt, is_everywhere: bool) -> (PickerRow, FoundPrompt) {
    let label = numbered_labels(&prompt.text).split_whitespace().collect::<Vec<_>>().join(" ");
    let folder = prompt.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let (name, agent) =
        prompt.source.as_ref().map(|it| (it.name.clone(), it.agent.clone())).unwrap_or_default();
    // A session is often named after its first prompt.
    let name = Some(name).filter(|name| !prompt.text.starts_with(name.trim_end_matches('…')));
    let parts = [folder.filter(|_| is_everywhere), Some(agent), name];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    let row = PickerRow {
        detail: parts.join(" · "),
        right: prompt.when.clone(),
        ..PickerRow::new(label.chars().take(MAX_CHARS).collect::<String>())
    };
    (row, prompt)
}
