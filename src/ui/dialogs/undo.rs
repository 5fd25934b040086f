//! The page before an undo or redo: the files that would be restored, with the difference to what is on the disk.
//!
//! Invariant: a file that somebody else changed since is not chosen unless the user chooses it.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::path::PathBuf;

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::lifecycle::operations;
use crate::core::state::changes::{ChangePart, ChangedFile};
use crate::core::{Cx, Effect, RestoreOf, RewindWay, Session, State, ViewCommand};
use crate::model::snapshot::{Action as Restore, Part, Preview, Step, shown_path};
use crate::model::{Action, DiffPosition, FileDiff, ItemId, SessionKey};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::changes::{ChangesView, count};
use crate::ui::frame_context::FrameContext;
use crate::ui::text::counted;
use crate::ui::view_state::ViewState;

use super::changes::{Files, begin_page, draw_files, draw_hints, write_file};
use super::layer::{Flow, Layer, PlainPage};
use super::list::moved;
use super::notice::notify;
use super::{jump, rewind, scroll};

/// Maximum number of paths that are named in a line.
const MAX_NAMED: usize = 3;

/// What can be restored.
#[derive(Debug)]
pub struct UndoPage {
    key: SessionKey,
    /// The number of its offer.
    number: u64,
    title: String,
    /// Notes about the whole restore.
    notes: Vec<String>,
    files: Vec<RestoredFile>,
    selected: usize,
    /// The files as text, once they were needed.
    plain: OnceCell<Vec<String>>,
}

#[derive(Debug)]
struct RestoredFile {
    /// Relative to the folder.
    path: PathBuf,
    shown: ChangedFile,
    is_chosen: bool,
    /// It cannot be chosen.
    is_refused: bool,
    /// A note about this file.
    note: String,
}

/// Plans to undo the last turn that changed files.
pub fn undo(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    if let Some(why) = operations::undo_obstacle(&app.state, session) {
        return notify(&mut app.state, why, cx);
    }
    if session.undo.after.is_some() {
        return operations::undo_when_captured(&mut app.state, cx);
    }
    let (key, last) = (session.key, session.undo.undoable().next().map(|changes| changes.turn));
    operations::offer_undo(&mut app.state, key, RestoreOf::Turns(last.into_iter().collect()), None, cx);
}

/// Plans to redo what was undone last.
pub fn redo(app: &mut App, cx: &mut Cx) {
    let key = app.state.active;
    operations::offer_undo(&mut app.state, key, RestoreOf::Undo, None, cx);
}

/// Plans to undo the turn of a prompt, and all later ones if that is the way.
pub fn undo_since(app: &mut App, key: SessionKey, id: ItemId, way: RewindWay, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get(&key) else { return };
    let mut turns = turns_since(session, id);
    if way == RewindWay::FilesOfTurn {
        turns.truncate(1);
    }
    let then = if let RewindWay::FilesAndFork(turn) = way { Some((id, RewindWay::Fork(turn))) } else { None };
    operations::offer_undo(&mut app.state, key, RestoreOf::Turns(turns), then, cx);
}

/// The turns whose changes can be undone, starting with that of a prompt.
pub(super) fn turns_since(session: &Session, id: ItemId) -> Vec<u32> {
    let first = session.transcript.get(id).map_or(u32::MAX, |item| item.turn);
    let mut turns: Vec<u32> =
        session.undo.undoable().map(|changes| changes.turn).filter(|turn| *turn >= first).collect();
    turns.sort_unstable();
    turns.dedup();
    turns
}

/// Shows what was planned, unless another tab is active.
pub fn open(app: &mut App, key: SessionKey) {
    if app.state.active != key {
        return;
    }
    let Some(session) = app.state.sessions.get(&key) else { return };
    let Some(offer) = &session.undo.offer else { return };
    let (RestoreOf::Turns(_) | RestoreOf::Undo, Some(preview)) = (&offer.what, &offer.preview) else {
        return;
    };
    let page = UndoPage {
        key,
        number: offer.number,
        title: title(session, &offer.what),
        notes: restore_notes(
            &app.state,
            session,
            if let RestoreOf::Turns(turns) = &offer.what { turns } else { &[] },
        ),
        files: files(preview, key),
        selected: 0,
        plain: OnceCell::new(),
    };
    app.layers.open(page);
}

fn title(session: &Session, what: &RestoreOf) -> String {
    let RestoreOf::Turns(turns) = what else { return "Redo".to_owned() };
    let first = turns.first().copied().unwrap_or_default();
    let mut prompts =
        session.transcript.items().iter().filter(|item| item.turn == first && jump::is_prompt(item));
    let prompt = prompts.next().and_then(|item| rewind::prompt_of(session, item.id));
    let prompt =
        prompt.map_or_else(|| format!("turn {first}"), |text| format!("“{}”", rewind::shortened(&text)));
    match turns.len() {
        0 | 1 => format!("Undo {prompt}"),
        count => format!("Undo {count} turns, from {prompt}"),
    }
}

fn files(preview: &Preview, key: SessionKey) -> Vec<RestoredFile> {
    let steps = preview.plan.steps.iter().zip(&preview.diffs);
    let is_change = |(step, _): &(&Step, _)| step.action != Restore::Nothing;
    let file = |(step, diff): (&Step, &Option<FileDiff>)| {
        let note = match &step.action {
            Restore::Conflict => {
                "It was changed by somebody else since. Restoring it replaces that.".to_owned()
            }
            Restore::Merge => {
                "It was changed by somebody else since. Restoring it keeps that change.".to_owned()
            }
            Restore::Refused(why) => format!("It cannot be restored: {why}."),
            Restore::Delete => "It did not exist. Restoring deletes it.".to_owned(),
            Restore::Write | Restore::Nothing if diff.is_none() => {
                "It is not text, or too large to be shown.".to_owned()
            }
            Restore::Write if step.disk.is_none() => "It was deleted. Restoring writes it again.".to_owned(),
            Restore::Write | Restore::Nothing => String::new(),
        };
        RestoredFile {
            path: step.path.clone(),
            shown: shown_file(step, diff.as_ref(), key),
            is_chosen: matches!(step.action, Restore::Write | Restore::Delete),
            is_refused: matches!(step.action, Restore::Refused(_)),
            note,
        }
    };
    steps.filter(is_change).map(file).collect()
}

/// The file of a step as pages of changes show it.
pub(super) fn shown_file(step: &Step, diff: Option<&FileDiff>, key: SessionKey) -> ChangedFile {
    let part = |diff: &FileDiff| ChangePart {
        diff: diff.clone(),
        position: Some(DiffPosition::Whole),
        item: (key, ItemId(0)),
    };
    let path = diff.map_or(&step.path, |diff| &diff.path).clone();
    ChangedFile { path, parts: diff.map(part).into_iter().collect() }
}

/// What a plan for these turns cannot know.
pub(super) fn restore_notes(state: &State, session: &Session, turns: &[u32]) -> Vec<String> {
    let mut notes = Vec::new();
    let of_it = session.undo.turns.iter().filter(|changes| turns.contains(&changes.turn));
    for changes in of_it {
        if changes.is_late {
            notes.push(format!(
                "Turn {}: the agent had begun before the snapshot was complete. Earlier changes are not included.",
                changes.turn
            ));
        }
        if changes.files.is_none() {
            notes.push(format!(
                "Turn {}: without a snapshot at its end. What was changed until the next prompt is included.",
                changes.turn
            ));
        }
    }
    let folder = session.workspace.folder();
    let is_busy = |other: &&Session| {
        other.key != session.key && other.turn.is_running() && other.workspace.folder() == folder
    };
    if state.sessions.values().any(|other| is_busy(&other) && other.parent.is_none()) {
        notes.push("Another session is working in this folder.".to_owned());
    }
    if !session.undo.left_out.is_empty() {
        let count = session.undo.left_out.len();
        let named = session.undo.left_out.iter().take(MAX_NAMED);
        let named =
            named.map(|(path, why)| format!("{} ({why})", path.display())).collect::<Vec<_>>().join(", ");
        let more = if count > MAX_NAMED { ", …" } else { "" };
        notes.push(format!("Never restored: {}, {named}{more}.", counted(count, "path", "paths")));
    }
    notes
}

/// Ends an offer when its page is closed.
pub(super) fn drop_offer(app: &mut App, key: SessionKey) {
    if let Some(session) = app.state.sessions.get_mut(&key) {
        session.undo.offer = None;
    }
}

/// The view of the page of an offer, which begins anew for another offer.
pub(super) fn take_view(view: &mut ViewState, number: u64) -> Box<ChangesView> {
    let mut page = std::mem::take(&mut view.restore);
    if page.number != number {
        *page = ChangesView::default();
        page.number = number;
    }
    page
}

impl UndoPage {
    fn chosen(&self) -> Vec<PathBuf> {
        self.files.iter().filter(|file| file.is_chosen).map(|file| file.path.clone()).collect()
    }
}

impl Layer for UndoPage {
    fn title(&self, _state: &State) -> String {
        self.title.clone()
    }

    fn context(&self) -> Context {
        Context::Restore
    }

    fn plain(&self) -> Option<PlainPage> {
        let mut text = format!("{}\n", self.title);
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        let shown = self.plain.get_or_init(|| {
            let shown = |file: &RestoredFile| {
                let mut text = String::new();
                write_file(&mut text, &file.shown, None, &file.note);
                text
            };
            self.files.iter().map(shown).collect()
        });
        for (file, shown) in self.files.iter().zip(shown) {
            text.push_str(if file.is_chosen { "[x] " } else { "[ ] " });
            text.push_str(shown);
        }
        let count = self.files.iter().filter(|file| file.is_chosen).count();
        let restore = (format!("Restore {}", counted(count, "file", "files")), vec![Action::RestoreFiles]);
        let choices = self.files.iter().enumerate().filter(|(_, file)| !file.is_refused);
        let choices = choices.filter_map(|(position, file)| {
            let verb = if file.is_chosen { "Leave out" } else { "Choose" };
            let mark = Action::Mark(u16::try_from(position).ok()?);
            Some((format!("{verb} {}", shown_path(&file.path)), vec![mark, Action::ToggleChoice]))
        });
        Some(PlainPage { text, answers: [restore].into_iter().chain(choices).collect() })
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let count = self.files.len();
        match action {
            Action::NextField => self.selected = moved(self.selected, 1, count),
            Action::PreviousField => self.selected = moved(self.selected, -1, count),
            Action::Mark(position) => self.selected = moved(usize::from(position), 0, count),
            Action::NextHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(1))),
            Action::PreviousHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(-1))),
            Action::ToggleChoice => {
                if let Some(file) = self.files.get_mut(self.selected).filter(|file| !file.is_refused) {
                    file.is_chosen = !file.is_chosen;
                }
            }
            Action::ToggleAllChoices => {
                let may = |file: &&mut RestoredFile| !file.is_refused;
                let is_all = self.files.iter().filter(|file| !file.is_refused).all(|file| file.is_chosen);
                self.files.iter_mut().filter(may).for_each(|file| file.is_chosen = !is_all);
            }
            Action::RestoreFiles => {
                let paths = self.chosen();
                if paths.is_empty() {
                    notify(&mut app.state, "No file is chosen.", cx);
                    return Flow::Stay;
                }
                let parts = paths.into_iter().map(Part::from).collect();
                operations::restore_files(&mut app.state, self.key, parts, cx);
                return Flow::Close;
            }
            _ => return scroll::scroll_page(action, cx),
        }
        Flow::Stay
    }

    fn on_close(&self, app: &mut App, _cx: &mut Cx) {
        drop_offer(app, self.key);
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
        if !begin_page(ctx, view, area, buf) {
            return None;
        }
        let shown: Vec<&ChangedFile> = self.files.iter().map(|file| &file.shown).collect();
        let mut page = take_view(view, self.number);
        page.jump = std::mem::take(&mut view.changes.jump);
        count(&mut page, &shown);
        let selected = self.files.get(self.selected);
        let of_file = selected.map(|file| &file.note).filter(|note| !note.is_empty());
        let mut notes: Vec<String> = of_file.into_iter().chain(&self.notes).cloned().collect();
        // The changes stay in their place while files are selected.
        let has_file_note = self.files.iter().any(|file| !file.note.is_empty());
        notes.resize(self.notes.len() + usize::from(has_file_note), String::new());
        let mark = |file: &RestoredFile| match file {
            file if file.is_refused => " !  ",
            file if file.is_chosen => "[x] ",
            _ => "[ ] ",
        };
        let marks: Vec<&'static str> = self.files.iter().map(mark).collect();
        let files = Files {
            title: &self.title,
            shown: &shown,
            all: shown.len(),
            selected: self.selected,
            marks: &marks,
            notes: &notes,
        };
        draw_files(ctx, &mut page, &files, (area, view), buf);
        let hint = |action: Action, does: &str| ctx.hint(Context::Restore, action, does);
        let chosen = self.files.iter().filter(|file| file.is_chosen).count();
        let hints = [
            hint(Action::RestoreFiles, &format!("restore {}", counted(chosen, "file", "files"))),
            hint(Action::Escape, "cancel"),
            hint(Action::ToggleChoice, "choose"),
            hint(Action::ToggleAllChoices, "all"),
            hint(Action::NextField, "next file"),
            hint(Action::NextHunk, "next hunk"),
        ];
        draw_hints(ctx, &hints, area.width.saturating_sub(2), area, buf);
        view.restore = page;
        None
    }
}

#[cfg(test)]
pub(super) mod tests;
