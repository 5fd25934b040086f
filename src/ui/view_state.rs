//! What the screen remembers between frames.
//!
//! Duty: scroll places, the composer's text area, the log's lines, and where on the screen things can be
//! clicked. Not its duty: anything that must survive (`app`); all of this can be thrown away.
//! Data: [`ViewCommand`]s of the reducer come in by [`ViewState::apply`], clocks and lines by the setters.
//! Invariants: one composer, which holds the draft of the session that was drawn last; the hit map belongs to
//! the last frame.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::layout::{Position, Rect};

use crate::app::{DiffLayout, State, ViewCommand};
use crate::config::keymap::Keymap;
use crate::model::{Action, AskId, ConnId, SessionKey};

use super::cells::ToolBody;
use super::changes::ChangesView;
use super::composer::Composer;
use super::log::{LogLine, LogView};
use super::render_context::Glyphs;
use super::rows::RowCache;
use super::transcript::TranscriptView;

/// How long a step of the spinner lasts.
pub const SPINNER_STEP: Duration = Duration::from_millis(100);

/// All that the screen remembers.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ViewState {
    /// The time of the frame.
    pub now: Instant,
    /// The step of the spinner.
    pub spinner: usize,
    /// The marks: rich, or plain where terminal or locale cannot show them.
    pub glyphs: Glyphs,
    /// Whether things may move; `false` stills the spinner.
    pub has_motion: bool,
    /// Whether lines of code blocks are numbered.
    pub numbers_code: bool,
    /// Whether what the mouse selects is copied when the button goes up; else a key copies it.
    pub copies_on_select: bool,
    /// The user's home, shown as `~`.
    pub home: Option<PathBuf>,
    pub(super) keymap: Arc<Keymap>,
    pub(super) composer: Composer,
    pub(super) transcripts: BTreeMap<SessionKey, TranscriptView>,
    pub(super) dialog: DialogView,
    /// The end of a session that is looked at before it is opened.
    pub(super) preview: TranscriptView,
    pub(super) log: LogView,
    pub(super) asked: RetainedBody,
    pub(super) changes: ChangesView,
    pub(super) hits: HitMap,
    pub(super) rows: RowCache,
    /// The session of the last frame.
    active: Option<SessionKey>,
    /// The marked item is to be brought into view, perhaps to the top.
    wants_selected: Option<bool>,
    wants_clear: bool,
    began: Instant,
}

/// How the top dialog is looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct DialogView {
    /// Which dialog; a new one begins at its top.
    pub identity: Option<DialogId>,
    /// First shown row of the body.
    pub scroll: usize,
    /// It began at the row that matters; from then on the reader scrolls.
    pub is_placed: bool,
    /// Rows of the body in the last frame.
    pub page: usize,
    /// The row that was marked in the last frame: the view follows it only when it moves.
    pub marked: Option<usize>,
    /// The shape of the list that is shown.
    pub shape: ListShape,
}

/// What depends on all rows of a list, found once for each list.
#[derive(Debug, Clone, Default)]
pub(super) struct ListShape {
    /// Where the rows lie, how many they are, and where the text of the last one lies and how long it is.
    pub of: (usize, usize, (usize, usize)),
    /// Columns of the widest label.
    pub label_cols: usize,
    /// Columns of the widest row.
    pub cols: u16,
    /// The rows that begin a group, from 0.
    pub groups: Vec<usize>,
    /// How often it was found.
    pub measured: usize,
}

/// What a request is about, laid out once: a dialog asks for it in each frame.
#[derive(Debug, Clone, Default)]
pub(super) struct RetainedBody {
    key: Option<BodyKey>,
    pub body: Rc<RefCell<ToolBody>>,
    /// How often it was laid out.
    pub layouts: usize,
}

/// All that the lines of a request depend on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BodyKey {
    pub conn: ConnId,
    pub ask: AskId,
    /// The revision of its tool call.
    pub rev: u32,
    /// Bytes of the terminals that it shows.
    pub output_bytes: u64,
    pub cols: u16,
    pub layout: DiffLayout,
    pub theme: String,
    /// When grammars and pictures came.
    pub epochs: (u32, u64),
}

impl RetainedBody {
    /// Makes the body anew if something that it depends on has changed, or is still awaited.
    pub fn follow(&mut self, key: BodyKey, make: impl FnOnce() -> ToolBody) {
        if self.key.as_ref() != Some(&key) || self.body.borrow().is_coming {
            self.body = Rc::new(RefCell::new(make()));
            self.key = Some(key);
            self.layouts += 1;
        }
    }
}

/// Tells one dialog from the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DialogId {
    /// A dialog by its depth and heading.
    Modal(usize, String),
    Ask(AskId),
}

/// What a click does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    Act(Action),
    /// Marks the row at this place, from 0, then does this with it.
    MarkAnd(u16, Action),
    /// Opens or folds the item whose head is there.
    Transcript,
    /// Sets the cursor.
    Composer,
    /// Nothing; it hides what is below.
    Nothing,
}

/// Where things can be clicked; later ones lie on top.
#[derive(Debug, Clone, Default)]
pub(super) struct HitMap {
    areas: Vec<(Rect, Hit)>,
}

impl HitMap {
    /// Adds an area on top of those before.
    pub fn add(&mut self, area: Rect, hit: Hit) {
        self.areas.push((area, hit));
    }

    /// How many rows can be marked by a click, for measurements.
    #[cfg(test)]
    pub(super) fn count_rows(&self) -> usize {
        self.areas.iter().filter(|(_, hit)| matches!(hit, Hit::MarkAnd(..))).count()
    }

    /// What lies at a place.
    pub fn at(&self, place: Position) -> Option<(Rect, Hit)> {
        self.areas.iter().rev().find(|(area, _)| area.contains(place)).copied()
    }

    pub(super) fn clear(&mut self) {
        self.areas.clear();
    }
}

impl ViewState {
    /// The view before the first frame.
    pub fn new(keymap: &Keymap, now: Instant) -> Self {
        Self {
            now,
            spinner: 0,
            glyphs: Glyphs::rich(),
            has_motion: true,
            numbers_code: false,
            copies_on_select: true,
            home: None,
            keymap: Arc::new(keymap.clone()),
            composer: Composer::default(),
            transcripts: BTreeMap::new(),
            dialog: DialogView::default(),
            preview: TranscriptView::default(),
            changes: ChangesView::default(),
            log: LogView::default(),
            asked: RetainedBody::default(),
            hits: HitMap::default(),
            rows: RowCache::default(),
            active: None,
            wants_selected: None,
            wants_clear: false,
            began: now,
        }
    }

    /// Sets the clock before a frame; the spinner follows it.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
        let steps = now.saturating_duration_since(self.began).as_millis() / SPINNER_STEP.as_millis();
        self.spinner = if self.has_motion { usize::try_from(steps).unwrap_or(0) } else { 0 };
    }

    /// Takes over changed keys, for hints and help.
    pub fn set_keymap(&mut self, keymap: &Keymap) {
        self.keymap = Arc::new(keymap.clone());
    }

    /// Which rows of the screen the last frame kept, and which it moved.
    pub fn rows(&self) -> &RowCache {
        &self.rows
    }

    /// Replaces the lines of the log view. A reader who looks back stays where they are.
    pub fn set_log(&mut self, lines: Vec<LogLine>) {
        self.log.set_lines(lines);
    }

    /// The text in the composer.
    pub fn draft(&self) -> String {
        self.composer.text()
    }

    /// Whether everything is to be repainted; asking takes the wish back.
    pub fn take_clear(&mut self) -> bool {
        std::mem::take(&mut self.wants_clear)
    }

    /// Does what the reducer says.
    pub fn apply(&mut self, command: ViewCommand) {
        match command {
            ViewCommand::ScrollLines(lines) => self.with_transcript(|view| view.scroll_lines(lines)),
            ViewCommand::ScrollPages(pages) => self.with_transcript(|view| view.scroll_pages(pages)),
            ViewCommand::ScrollSideways(columns) => {
                self.with_transcript(|view| view.scroll_sideways(columns));
            }
            ViewCommand::ScrollTop => self.with_transcript(TranscriptView::scroll_top),
            ViewCommand::ScrollEnd => self.with_transcript(TranscriptView::scroll_end),
            ViewCommand::ShowSelected => self.wants_selected = Some(false),
            ViewCommand::ShowSelectedAtTop => self.wants_selected = Some(true),
            ViewCommand::ShowHit => self.with_transcript(TranscriptView::show_hit),
            ViewCommand::SetDraft(text) => self.composer.set_text(&text),
            ViewCommand::ClearDraft => self.composer.clear(),
            ViewCommand::ScrollDialog(rows) => self.scroll_dialog(i64::from(rows)),
            ViewCommand::ScrollDialogPages(pages) => {
                let page = i64::try_from(self.dialog.page.saturating_sub(1).max(1)).unwrap_or(1);
                self.scroll_dialog(i64::from(pages).saturating_mul(page));
            }
            ViewCommand::JumpHunk(steps) => self.changes.jump(steps),
            ViewCommand::Redraw => self.wants_clear = true,
        }
    }

    /// Follows the state into a frame: the session on the screen, the dialog on top.
    pub(super) fn begin_frame(&mut self, state: &State) {
        self.hits.clear();
        if self.active != Some(state.active) {
            self.active = Some(state.active);
            let draft = state.active_session().map(|session| session.draft.as_str()).unwrap_or_default();
            if self.composer.text() != draft {
                self.composer.set_text(draft);
            }
        }
        let transcripts = &mut self.transcripts;
        transcripts.retain(|key, _| state.sessions.contains_key(key));
        let view = transcripts.entry(state.active).or_default();
        let selected = state.active_session().and_then(|session| session.selected);
        match (self.wants_selected.take(), selected) {
            (Some(true), Some(item)) => view.show_at_top(item),
            (Some(false), Some(item)) => view.show(item),
            _ => {}
        }
    }

    /// Begins at the top when another dialog is shown.
    pub(super) fn show_dialog(&mut self, identity: DialogId) {
        if self.dialog.identity.as_ref() != Some(&identity) {
            self.dialog = DialogView { identity: Some(identity), ..DialogView::default() };
            self.log.follow();
        }
    }

    pub(super) fn hide_dialog(&mut self) {
        self.dialog = DialogView::default();
        self.asked = RetainedBody::default();
    }

    pub(super) fn transcript(&self) -> Option<&TranscriptView> {
        self.active.and_then(|key| self.transcripts.get(&key))
    }

    /// Selects nothing any more. Returns whether something was selected.
    pub fn clear_selection(&mut self) -> bool {
        self.transcript_mut().is_some_and(TranscriptView::clear_selection)
    }

    pub(super) fn transcript_mut(&mut self) -> Option<&mut TranscriptView> {
        self.active.and_then(|key| self.transcripts.get_mut(&key))
    }

    fn with_transcript(&mut self, change: impl FnOnce(&mut TranscriptView)) {
        if let Some(key) = self.active {
            change(self.transcripts.entry(key).or_default());
        }
    }

    fn scroll_dialog(&mut self, rows: i64) {
        // The frame clamps to what the dialog holds; here only the sign matters for the log, which counts
        // from its end.
        self.log.scroll(rows);
        let steps = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
        let scroll = self.dialog.scroll;
        self.dialog.scroll =
            if rows < 0 { scroll.saturating_sub(steps) } else { scroll.saturating_add(steps) };
    }
}
