//! The state of the screen between frames: scroll offsets, the composer's text area, the lines of the log,
//! and clickable areas.
//!
//! The reducer sends [`ViewCommand`]s to [`ViewState::apply`]; setters provide the clock and the log. All of
//! it can be discarded at any time.
//!
//! Invariants: there is one composer, with the draft of the session that was drawn last; the hit map belongs
//! to the last frame.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::keymap::Keymap;
use crate::config::{DEFAULT_PASTE_LINES, DEFAULT_WHICH_KEY_DELAY_MS};
use crate::core::{Session, State, ViewCommand};
use crate::model::{ConnId, ItemId, Plan, RequestId, Risk, SessionKey};
use crate::ui::screen::{DiffLayout, Screen};

use super::cells::ToolBody;
use super::changes::ChangesView;
use super::composer::Composer;
use super::hits::HitMap;
use super::log::{LogLine, LogView};
use super::render_context::Glyphs;
use super::transcript::TranscriptView;
use super::which_key::PendingKeys;

pub const SPINNER_STEP: Duration = Duration::from_millis(100);

pub const WHICH_KEY_DELAY: Duration = Duration::from_millis(DEFAULT_WHICH_KEY_DELAY_MS);

#[allow(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub struct ViewState {
    pub now: Instant,
    pub spinner: usize,
    /// The symbols: Unicode, or ASCII for other terminals and locales.
    pub glyphs: Glyphs,
    /// Whether animations are enabled; `false` stops the spinner.
    pub has_motion: bool,
    /// Whether code blocks have line numbers.
    pub numbers_code: bool,
    /// Whether long lines of diffs and code are wrapped in the transcript and in the changes of a session.
    pub wraps: bool,
    /// Whether a mouse selection is copied on release; otherwise a key copies it.
    pub copies_on_select: bool,
    /// The user's home folder, shown as `~`.
    pub home: Option<PathBuf>,
    /// Delay after which the keys that continue a sequence are listed.
    pub which_key_delay: Duration,
    /// Longer pastes become attachments; 0: none does.
    pub paste_lines: usize,
    pub(super) keymap: Arc<Keymap>,
    pub(super) pending: Option<PendingKeys>,
    pub(super) composer: Composer,
    pub(super) transcripts: BTreeMap<SessionKey, TranscriptView>,
    pub(super) dialog: DialogView,
    pub(super) preview: TranscriptView,
    pub(super) log: LogView,
    pub(super) asked: RetainedBody,
    pub(super) changes: ChangesView,
    /// The page before an undo.
    pub(super) restore: Box<ChangesView>,
    /// The changed files beside the transcript.
    pub(super) side: ChangesView,
    pub(super) hits: HitMap,
    /// What the last frame had room for.
    pub(super) screen: Option<Screen>,
    /// The session of the last frame.
    active: Option<SessionKey>,
    /// Whether to scroll the selected item into view, and whether to the top.
    wants_selected: Option<bool>,
    wants_clear: bool,
    began: Instant,
}

#[derive(Debug, Clone, Default)]
pub(super) struct DialogView {
    /// The current dialog; a new one starts at its top.
    pub identity: Option<DialogId>,
    /// First visible row of the body.
    pub scroll: usize,
    /// Whether the initial row was scrolled into view; afterwards the user scrolls.
    pub is_placed: bool,
    /// Number of body rows in the last frame.
    pub page: usize,
    /// Number of body rows below the visible ones in the last frame.
    pub below: usize,
    /// The selected row in the last frame: the view only follows it when it moves.
    pub marked: Option<usize>,
    pub shape: ListShape,
    pub sample: Option<Box<Session>>,
}

/// Measurements that depend on all rows of a list, cached per list.
#[derive(Debug, Clone, Default)]
pub(super) struct ListShape {
    /// The cache key: address and number of rows, and address and length of the last row's text.
    pub of: (usize, usize, (usize, usize)),
    pub label_cols: usize,
    /// Width of the widest row.
    pub cols: u16,
    /// Indexes of the rows that start a group.
    pub groups: Vec<usize>,
    pub measured: usize,
}

/// The body of a request, cached because dialogs draw it in each frame.
#[derive(Debug, Clone, Default)]
pub(super) struct RetainedBody {
    key: Option<BodyKey>,
    pub body: Rc<RefCell<ToolBody>>,
    pub risks: Vec<Risk>,
    pub layouts: usize,
}

/// The cache key of a request's body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BodyKey {
    pub conn: ConnId,
    pub request_id: RequestId,
    /// The revision of its tool call.
    pub rev: u32,
    pub plans: Vec<Plan>,
    /// Size of its terminals' output in bytes.
    pub output_bytes: u64,
    pub cols: u16,
    pub layout: DiffLayout,
    pub theme: String,
    /// Versions of the loaded grammars and images.
    pub epochs: (u32, u64),
}

impl RetainedBody {
    /// Rebuilds the body if its key has changed, or if a diff of it is being computed.
    pub fn follow(&mut self, key: BodyKey, make: impl FnOnce() -> (ToolBody, Vec<Risk>)) {
        if self.key.as_ref() != Some(&key) || self.body.borrow().is_coming {
            let (body, risks) = make();
            (self.body, self.risks) = (Rc::new(RefCell::new(body)), risks);
            self.key = Some(key);
            self.layouts += 1;
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DialogId {
    /// A dialog by its depth and heading.
    Layer(usize, String),
    Ask(RequestId),
}

impl ViewState {
    /// The state before the first frame.
    pub fn new(keymap: &Keymap, now: Instant) -> Self {
        Self {
            now,
            spinner: 0,
            glyphs: Glyphs::rich(),
            has_motion: true,
            numbers_code: false,
            wraps: true,
            copies_on_select: true,
            home: None,
            which_key_delay: WHICH_KEY_DELAY,
            paste_lines: DEFAULT_PASTE_LINES,
            keymap: Arc::new(keymap.clone()),
            pending: None,
            composer: Composer::default(),
            transcripts: BTreeMap::new(),
            dialog: DialogView::default(),
            preview: TranscriptView::default(),
            changes: ChangesView::default(),
            restore: Box::default(),
            side: ChangesView::default(),
            log: LogView::default(),
            asked: RetainedBody::default(),
            hits: HitMap::default(),
            screen: None,
            active: None,
            wants_selected: None,
            wants_clear: false,
            began: now,
        }
    }

    /// Sets the clock before a frame, which also advances the spinner.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
        let steps = now.saturating_duration_since(self.began).as_millis() / SPINNER_STEP.as_millis();
        self.spinner = if self.has_motion { usize::try_from(steps).unwrap_or(0) } else { 0 };
    }

    pub fn set_keymap(&mut self, keymap: &Keymap) {
        self.keymap = Arc::new(keymap.clone());
        self.pending = None;
    }

    /// Discards everything that was laid out, because the width of characters has changed.
    pub fn forget_layouts(&mut self) {
        self.transcripts.clear();
        self.hide_dialog();
        self.changes = ChangesView::default();
        self.side = ChangesView::default();
        self.preview = TranscriptView::default();
    }

    /// Replaces the lines of the log view; a scrolled view does not move.
    pub fn set_log(&mut self, lines: Vec<LogLine>) {
        self.log.set_lines(lines);
    }

    pub fn draft(&self) -> String {
        self.composer.text()
    }

    /// Enables or disables vim keys in the composer.
    pub fn set_vim(&mut self, is_on: bool) {
        self.composer.set_vim(is_on);
    }

    /// Whether the last frame showed the end of the top dialog.
    pub fn shows_end(&self) -> bool {
        self.dialog.below == 0
    }

    /// Returns whether the screen must be repainted, and resets the flag.
    pub fn take_clear(&mut self) -> bool {
        std::mem::take(&mut self.wants_clear)
    }

    pub fn apply(&mut self, command: ViewCommand) {
        match command {
            ViewCommand::ScrollLines(lines) => self.with_transcript(|view| view.scroll_lines(lines)),
            ViewCommand::ScrollPages(pages) => self.with_transcript(|view| view.scroll_pages(pages)),
            ViewCommand::ScrollSideways(columns) => {
                self.with_transcript(|view| view.scroll_sideways(columns));
            }
            ViewCommand::ToggleWrap => self.wraps = !self.wraps,
            ViewCommand::ScrollTop => self.with_transcript(TranscriptView::scroll_top),
            ViewCommand::ScrollEnd => self.with_transcript(TranscriptView::scroll_end),
            ViewCommand::ShowSelected => self.wants_selected = Some(false),
            ViewCommand::ShowSelectedAtTop => self.wants_selected = Some(true),
            ViewCommand::ShowHit => self.with_transcript(TranscriptView::show_hit),
            ViewCommand::SetDraft(text) => self.composer.set_text(&text),
            ViewCommand::ShowDraft(key, text) => self.composer.show_session(key, &text),
            ViewCommand::ToggleFullComposer => self.composer.is_full = !self.composer.is_full,
            ViewCommand::ReplaceInDraft(range, text) => self.composer.replace_range(range, &text),
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

    /// Prepares a frame: switches to the active session and the top dialog.
    pub(super) fn begin_frame(&mut self, state: &State, selected: Option<ItemId>) {
        if self.active != Some(state.active) {
            self.active = Some(state.active);
            let draft = state.active_session().map(|session| session.draft.as_str()).unwrap_or_default();
            self.composer.show_session(state.active, draft);
            self.composer.retain_sessions(|key| state.sessions.contains_key(&key));
        }
        let transcripts = &mut self.transcripts;
        transcripts.retain(|key, _| state.sessions.contains_key(key));
        let view = transcripts.entry(state.active).or_default();
        match (self.wants_selected.take(), selected) {
            (Some(true), Some(item)) => view.show_at_top(item),
            (Some(false), Some(item)) => view.show(item),
            _ => {}
        }
    }

    /// Scrolls to the top if another dialog is shown.
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

    /// Clears the selection. Returns whether there was one.
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
        // The frame limits the offset to the contents; here only the sign matters for the log, which counts
        // from its end.
        self.log.scroll(rows);
        let steps = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
        let scroll = self.dialog.scroll;
        self.dialog.scroll =
            if rows < 0 { scroll.saturating_sub(steps) } else { scroll.saturating_add(steps) };
    }
}
