//! The review of changes, hunk by hunk: of what the turns of a session have changed on the disk, or of writes that are held.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::lifecycle::operations;
use crate::core::state::changes::{ChangePart, ChangedFile};
use crate::core::state::lookup;
use crate::core::{Cx, HeldReview, Offer, RestoreOf, Session, State};
use crate::guard;
use crate::model::held::{Fit, HeldChange};
use crate::model::hunk::Hunk;
use crate::model::snapshot::{Action as Restore, Part, Preview, Step, shown_path};
use crate::model::{Action, DiffChange, DiffPosition, FileDiff, ItemId, Location, SessionKey, Target};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::changes::count;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::ViewState;

use super::changes::{Files, begin_page, draw_files, draw_hints, write_file};
use super::layer::{Flow, Layer, PlainPage};
use super::line_dialog::{LineDialog, Purpose};
use super::list::moved;
use super::notice::notify;
use super::undo::{drop_offer, restore_notes, shown_file, take_view};
use super::{open as open_target, scroll};

/// Maximum number of lines that are shown above a comment.
const MAX_SHOWN: usize = 6;

/// The changes that were neither accepted nor rejected.
#[derive(Debug)]
pub struct ReviewPage {
    key: SessionKey,
    of: Of,
    /// The number of its offer.
    number: u64,
    notes: Vec<String>,
    files: Vec<ReviewedFile>,
    selected: usize,
    /// The selected hunk of the selected file.
    hunk: usize,
    /// When the agent changed the selected hunk while it was shown.
    changed_at: Option<Instant>,
}

/// What is reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Changes that are on the disk: accepted, or reverted.
    Disk,
    /// Writes that are not: applied, or discarded.
    Held,
}

#[derive(Debug)]
struct ReviewedFile {
    /// Relative to the folder.
    path: PathBuf,
    shown: ChangedFile,
    hunks: Vec<Hunk>,
    is_refused: bool,
    note: String,
}

/// A comment on a part of the changes.
#[derive(Debug)]
struct Comment {
    key: SessionKey,
    part: Part,
}

impl Purpose for Comment {
    fn verb(&self) -> &'static str {
        "add to the prompt"
    }

    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        if text.is_empty() {
            return Err("The comment is empty.".to_owned());
        }
        let (part, text) = narrowed(&self.part, text)?;
        if text.is_empty() {
            return Err("The comment has no text after the line number.".to_owned());
        }
        operations::comment_on_part(&mut app.state, self.key, &part, text, cx);
        Ok(())
    }
}

/// The lines that a comment is about, and its text: it may begin with their numbers, as in `12: why?` or `12-14: why?`.
fn narrowed<'t>(part: &Part, comment: &'t str) -> Result<(Part, &'t str), String> {
    let numbers = comment.split_once(':').and_then(|(lines, text)| {
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        Some((first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?, text.trim()))
    });
    let (Some((first, last, text)), [Hunk { new, .. }]) = (numbers, part.hunks.as_slice()) else {
        return Ok((part.clone(), comment));
    };
    if first > last || first <= new.start || last > new.end {
        if new.is_empty() {
            return Err("This hunk only deletes lines. Remove the line number to comment on it.".to_owned());
        }
        let lines = format!("{}-{}", new.start + 1, new.end);
        return Err(format!("This hunk has the lines {lines}. Use one of them, or no number."));
    }
    let hunk = Hunk { old: 0..0, new: first - 1..last };
    Ok((Part { path: part.path.clone(), hunks: vec![hunk] }, text))
}

/// Plans a review of what the turns have changed and was not accepted.
pub fn start(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let key = session.key;
    if let Some(why) = operations::undo_obstacle(&app.state, session) {
        return notify(&mut app.state, why, cx);
    }
    operations::review_changes(&mut app.state, key, cx);
}

/// Shows what was planned, or updates the page that shows it; closes the page if nothing is left.
pub fn open(app: &mut App, key: SessionKey) {
    let Some(session) = app.state.sessions.get(&key).filter(|_| app.state.active == key) else {
        return app.layers.retain::<ReviewPage>(|page| page.key != key);
    };
    match &session.undo.offer {
        None => app.layers.retain::<ReviewPage>(|page| page.key != key || page.of != Of::Disk),
        Some(Offer { what: RestoreOf::Unaccepted { through }, preview: Some(preview), number, .. }) => {
            let (notes, files) = (notes(&app.state, session, *through), files(preview, session));
            show(app, ReviewPage::new(key, Of::Disk, *number, notes, files));
            if let Some(session) = app.state.sessions.get_mut(&key) {
                session.undo.unseen.clear();
            }
        }
        Some(_) => {}
    }
}

/// The same for the writes that are held. Only the user opens the page, and in the session or in one of its subagents.
pub fn open_held(app: &mut App, key: SessionKey, now: Instant) {
    let is_open = app.layers.all::<ReviewPage>().any(|page| (page.key, page.of) == (key, Of::Held));
    let is_active = lookup::root_of(&app.state, app.state.active) == key;
    let Some(session) = app.state.sessions.get_mut(&key) else { return };
    let may_open =
        is_active && session.held.review.as_ref().is_some_and(|review| is_open || review.is_opening);
    if !may_open {
        operations::close_held(&mut app.state, key);
        return app.layers.retain::<ReviewPage>(|page| (page.key, page.of) != (key, Of::Held));
    }
    let Some(HeldReview { changes: Some(changes), number, is_opening, is_unasked, .. }) =
        &mut session.held.review
    else {
        return;
    };
    let (number, changes) = (*number, changes.clone());
    *is_opening = false;
    let is_unasked = std::mem::take(is_unasked);
    let files = changes.iter().map(|change| held_file(change, key)).collect();
    let notes = vec!["Not on disk: commands do not see it.".to_owned()];
    let page = ReviewPage::new(key, Of::Held, number, notes, files);
    show(app, ReviewPage { changed_at: is_unasked.then_some(now), ..page });
}

/// Shows a page, or updates it. There is only one.
fn show(app: &mut App, mut page: ReviewPage) {
    let shown = app.layers.find_mut::<ReviewPage>();
    if let Some(shown) = shown.filter(|shown| (shown.key, shown.of) == (page.key, page.of)) {
        page.follow(shown);
        let is_same = page.shown_part() == shown.shown_part();
        page.changed_at = if is_same { shown.changed_at } else { page.changed_at };
        *shown = page;
        return;
    }
    if let Some((key, of)) = app.layers.find_mut::<ReviewPage>().map(|other| (other.key, other.of)) {
        end(app, key, of);
        app.layers.close::<ReviewPage>();
    }
    app.layers.push(page);
    app.state.clear_flash();
}

fn end(app: &mut App, key: SessionKey, of: Of) {
    match of {
        Of::Disk => drop_offer(app, key),
        Of::Held => operations::close_held(&mut app.state, key),
    }
}

fn held_file(change: &HeldChange, key: SessionKey) -> ReviewedFile {
    let diff = FileDiff {
        path: change.path.clone(),
        change: DiffChange::Texts { old: change.disk.clone(), new: change.text.clone() },
    };
    let part = ChangePart { diff, position: Some(DiffPosition::Whole), item: (key, ItemId(0)) };
    let note = match &change.fit {
        Fit::Clean => String::new(),
        Fit::Merged => "The file has changed on the disk since. Those changes stay.".to_owned(),
        Fit::Conflict => {
            "The file has changed on the disk since, in the same lines. Applying all of it replaces those changes."
                .to_owned()
        }
        Fit::Refused(why) => format!("It can only be discarded: {why}."),
    };
    ReviewedFile {
        path: change.path.clone(),
        shown: ChangedFile { path: change.path.clone(), parts: vec![part] },
        hunks: change.hunks.clone(),
        is_refused: matches!(change.fit, Fit::Refused(_)),
        note,
    }
}

fn notes(state: &State, session: &Session, through: u32) -> Vec<String> {
    let turns: Vec<u32> =
        session.undo.undoable().map(|changes| changes.turn).filter(|turn| *turn <= through).collect();
    let mut notes = restore_notes(state, session, &turns);
    if session.turn.is_running() {
        notes.push("A turn is running. Its changes will be listed when it ends.".to_owned());
    }
    notes
}

fn files(preview: &Preview, session: &Session) -> Vec<ReviewedFile> {
    let file = |(position, step): (usize, &Step)| {
        let diff = preview.diffs.get(position).and_then(Option::as_ref);
        let hunks = preview.hunks.get(position).cloned().unwrap_or_default();
        let note = match (&step.action, diff) {
            (Restore::Refused(why), _) => format!("It can only be accepted: {why}."),
            (_, None) => "It is not text, or too large to be shown.".to_owned(),
            (Restore::Conflict | Restore::Merge, _) => {
                "Also changed after the turns, perhaps by you or by a rejection.".to_owned()
            }
            _ if step.to.as_ref().zip(step.disk.as_ref()).is_some_and(|(to, disk)| to.kind != disk.kind) => {
                "Its kind or its executable bit has changed.".to_owned()
            }
            _ => String::new(),
        };
        let cause = session.undo.unreported.get(&step.path);
        let unreported = cause.map(|cause| format!("Changed without a report from the agent, {cause}."));
        let note = unreported.into_iter().chain(Some(note).filter(|note| !note.is_empty()));
        ReviewedFile {
            path: step.path.clone(),
            shown: shown_file(step, diff, session.key),
            hunks,
            is_refused: matches!(step.action, Restore::Refused(_)),
            note: note.collect::<Vec<_>>().join(" "),
        }
    };
    let steps = preview.plan.steps.iter().enumerate().filter(|(_, step)| step.action != Restore::Nothing);
    steps.map(file).collect()
}

impl ReviewPage {
    fn new(key: SessionKey, of: Of, number: u64, notes: Vec<String>, files: Vec<ReviewedFile>) -> Self {
        Self { key, of, number, notes, files, selected: 0, hunk: 0, changed_at: None }
    }

    /// What a key would decide about.
    fn shown_part(&self) -> Option<(&Path, &ChangedFile, Option<&Hunk>)> {
        let file = self.files.get(self.selected)?;
        Some((&file.path, &file.shown, file.hunks.get(self.hunk)))
    }

    /// Selects what the page before it had selected, or what comes after that.
    fn follow(&mut self, before: &Self) {
        let Some(file) = before.files.get(before.selected) else { return };
        let same = self.files.iter().position(|other| other.path == file.path);
        let after = || self.files.iter().position(|other| other.path > file.path);
        self.selected = same.or_else(after).unwrap_or(self.files.len().saturating_sub(1));
        if same.is_some() {
            self.hunk = before.hunk.min(self.last_hunk());
        }
    }

    fn last_hunk(&self) -> usize {
        self.files.get(self.selected).map_or(0, |file| file.hunks.len().saturating_sub(1))
    }

    /// The selected hunk, or the whole file; a file without hunks is always treated as a whole.
    fn part(&self, is_whole: bool) -> Option<(&ReviewedFile, Part)> {
        let file = self.files.get(self.selected)?;
        let hunk = file.hunks.get(self.hunk).filter(|_| !is_whole);
        Some((file, Part { path: file.path.clone(), hunks: hunk.cloned().into_iter().collect() }))
    }

    fn select(&mut self, selected: usize) {
        (self.selected, self.hunk) = (selected, 0);
    }

    /// Goes to another hunk, also of another file.
    fn step(&mut self, forward: bool) {
        match (forward, self.hunk) {
            (true, hunk) if hunk < self.last_hunk() => self.hunk += 1,
            (true, _) if self.selected + 1 < self.files.len() => self.select(self.selected + 1),
            (false, 0) if self.selected > 0 => {
                self.selected -= 1;
                self.hunk = self.last_hunk();
            }
            (false, hunk) => self.hunk = hunk.saturating_sub(1),
            (true, _) => {}
        }
    }

    fn accept(&self, app: &mut App, is_whole: bool, cx: &mut Cx) {
        match (self.part(is_whole), self.of) {
            (Some((_, part)), Of::Disk) => operations::accept_part(&mut app.state, self.key, part, cx),
            (Some((_, part)), Of::Held) => operations::apply_held(&mut app.state, self.key, &part, cx),
            (None, _) => {}
        }
    }

    fn reject(&self, app: &mut App, is_whole: bool, cx: &mut Cx) {
        match self.part(is_whole) {
            Some((_, part)) if self.of == Of::Held => {
                operations::discard_held(&mut app.state, self.key, &part, cx);
            }
            Some((file, _)) if file.is_refused => {
                notify(&mut app.state, file.note.clone(), cx);
            }
            Some((_, part)) => operations::reject_part(&mut app.state, self.key, part, cx),
            None => {}
        }
    }

    fn comment(&self, app: &mut App) {
        let Some((file, part)) = self.part(false) else { return };
        let title = format!("Comment on {}", shown_path(&file.path));
        let mut help = "The comment is added to the prompt with these lines. Nothing is sent yet.".to_owned();
        if let Some(new) = part.hunks.first().map(|hunk| &hunk.new).filter(|new| new.len() > 1) {
            let (first, last) = (new.start + 1, new.end);
            let _ = write!(help, " Lines {first}-{last}: begin with {first}: to comment on one line.");
        }
        let quote = operations::quoted_part(&app.state, self.key, &part);
        help.extend(quote.lines().take(MAX_SHOWN).map(|line| format!("\n{line}")));
        app.layers.push(LineDialog::new(title, help, "", Comment { key: self.key, part }));
    }

    fn edit(&self, app: &mut App, cx: &mut Cx) {
        if self.of == Of::Held {
            notify(&mut app.state, "The file is not on the disk yet. Apply it first.", cx);
        } else if let Some((file, part)) = self.part(false) {
            let line = part.hunks.first().map(|hunk| hunk.new.start + 1);
            let location = Location { path: file.shown.path.clone(), line };
            open_target::on_open(&mut app.state, Target::File(location), cx);
        }
    }
}

impl ReviewPage {
    fn title(&self) -> &'static str {
        if self.of == Of::Held { "Review of the held writes" } else { "Review of the changes" }
    }

    /// What is done with a hunk or a file.
    fn verbs(&self) -> (&'static str, &'static str) {
        if self.of == Of::Held { ("apply", "discard") } else { ("accept", "reject") }
    }
}

impl Layer for ReviewPage {
    fn title(&self, _state: &State) -> String {
        "Review".to_owned()
    }

    fn context(&self) -> Context {
        Context::Review
    }

    fn plain(&self) -> Option<PlainPage> {
        let file = self.files.get(self.selected)?;
        let hunk = file.hunks.get(self.hunk);
        let mut text = format!("{}, file {} of {}", self.title(), self.selected + 1, self.files.len());
        if hunk.is_some() {
            let _ = write!(text, ", hunk {} of {}", self.hunk + 1, file.hunks.len());
        }
        text.push('\n');
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        let is_shown = write_file(&mut text, &file.shown, hunk, &file.note);
        let what = if hunk.is_some() { "hunk" } else { "file" };
        let (accept, reject) = self.verbs();
        let label = |verb: &str, what: &str| format!("{}{} {what}", verb[..1].to_uppercase(), &verb[1..]);
        let mut answers = vec![(label(reject, what), vec![Action::RejectHunk])];
        // What was not printed is not accepted.
        if is_shown {
            answers.insert(0, (label(accept, what), vec![Action::AcceptHunk]));
        }
        if file.hunks.len() > 1 {
            answers.push((label(reject, "file"), vec![Action::RejectFile]));
        }
        answers.push(("Next".to_owned(), vec![Action::NextHunk]));
        answers.push(("Previous".to_owned(), vec![Action::PreviousHunk]));
        Some(PlainPage { text, answers })
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let count = self.files.len();
        let decides = matches!(
            action,
            Action::AcceptHunk | Action::AcceptFile | Action::RejectHunk | Action::RejectFile
        );
        if decides && self.changed_at.is_some_and(|at| !guard::has_passed(Some(at), cx.now)) {
            notify(&mut app.state, "The agent has just changed this. Check it again.", cx);
            return Flow::Stay;
        }
        match action {
            Action::NextField => self.select(moved(self.selected, 1, count)),
            Action::PreviousField => self.select(moved(self.selected, -1, count)),
            Action::Mark(position) => self.select(moved(usize::from(position), 0, count)),
            Action::NextHunk => self.step(true),
            Action::PreviousHunk => self.step(false),
            Action::AcceptHunk => self.accept(app, false, cx),
            Action::AcceptFile => self.accept(app, true, cx),
            Action::RejectHunk => self.reject(app, false, cx),
            Action::RejectFile => self.reject(app, true, cx),
            Action::CommentOnHunk => self.comment(app),
            Action::Accept => self.edit(app, cx),
            _ => return scroll::scroll_page(action, cx),
        }
        Flow::Stay
    }

    fn on_close(&self, app: &mut App, _cx: &mut Cx) {
        end(app, self.key, self.of);
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
        let mut page = take_view(view, self.number);
        let shown: Vec<&ChangedFile> = self.files.iter().map(|file| &file.shown).collect();
        count(&mut page, &shown);
        let file = self.files.get(self.selected);
        let hunk = file.and_then(|file| file.hunks.get(self.hunk));
        page.select(hunk);
        let is_queued = self.part(false).is_some_and(|(_, part)| ctx.session.undo.is_queued(&part));
        let of_file = file.map(|file| {
            let count = file.hunks.len();
            let hunk = (count > 0).then(|| format!("Hunk {} of {count}.", self.hunk + 1));
            let queued = is_queued.then(|| "It will be reverted when the turn ends.".to_owned());
            let note = Some(file.note.clone()).filter(|note| !note.is_empty());
            [hunk, queued, note].into_iter().flatten().collect::<Vec<_>>().join(" ")
        });
        let of_file = of_file.filter(|note| !note.is_empty());
        let notes: Vec<String> = of_file.into_iter().chain(self.notes.iter().cloned()).collect();
        let files = Files {
            title: self.title(),
            shown: &shown,
            all: shown.len(),
            selected: self.selected,
            marks: &[],
            notes: &notes,
        };
        draw_files(ctx, &mut page, &files, (area, view), buf);
        let hint = |action: Action, does: &str| ctx.hint(Context::Review, action, does);
        let what = if hunk.is_some() { "hunk" } else { "file" };
        let (accept, reject) = self.verbs();
        let mut hints = vec![
            hint(Action::AcceptHunk, &format!("{accept} {what}")),
            hint(Action::RejectHunk, &format!("{reject} {what}")),
            hint(Action::CommentOnHunk, "comment"),
            hint(Action::Escape, "close"),
            hint(Action::NextHunk, "next"),
        ];
        if hunk.is_some() {
            hints.push(hint(Action::AcceptFile, &format!("{accept} file")));
            hints.push(hint(Action::RejectFile, &format!("{reject} file")));
        }
        if self.of == Of::Disk {
            hints.push(hint(Action::Accept, "edit"));
        }
        draw_hints(ctx, &hints, area.width.saturating_sub(2), area, buf);
        view.restore = page;
        None
    }
}

#[cfg(test)]
mod tests;
