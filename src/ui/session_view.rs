//! What a front end shows of a session: the selected item, the search, the filter, and what the user unfolded.
//!
//! The core knows nothing of it: two front ends on one core each have their own views ([`Views`]).
//! Invariants: a view refers only to items that the transcript has, once [`Views::follow`] was called after an event.

pub mod fold;
pub mod search;

use std::collections::{BTreeMap, HashMap};

use crate::core::state::outline::Only;
use crate::core::{Session, State};
use crate::model::{FoldRules, Gap, ItemId, SessionKey};

use search::Search;

#[derive(Debug, Default)]
pub struct Views {
    by_session: BTreeMap<SessionKey, SessionView>,
    /// The view of a session that was not shown yet.
    untouched: SessionView,
}

impl Views {
    pub fn get(&self, key: SessionKey) -> &SessionView {
        self.by_session.get(&key).unwrap_or(&self.untouched)
    }

    /// The view of a session that was not shown yet, such as a preview.
    pub fn untouched(&self) -> &SessionView {
        &self.untouched
    }

    pub fn get_mut(&mut self, key: SessionKey) -> &mut SessionView {
        let folds = self.untouched.folds;
        self.by_session.entry(key).or_insert_with(|| SessionView { folds, ..SessionView::default() })
    }

    /// Adapts the views to what has happened to their sessions.
    pub fn follow(&mut self, state: &State) {
        self.untouched.folds = state.setup.folds;
        self.by_session.retain(|key, view| {
            let Some(session) = state.sessions.get(key) else { return false };
            view.follow(session, state.setup.folds);
            true
        });
    }
}

#[derive(Debug, Clone, Default)]
pub struct SessionView {
    pub folds: FoldRules,
    pub selected: Option<ItemId>,
    pub search: Option<Box<Search>>,
    pub only: Option<Only>,
    /// The first and the last item on the screen at the user's last action.
    pub reading: Option<(ItemId, ItemId)>,
    /// The user's choice whether the plan panel is folded to one line; `None`: see [`Self::is_plan_folded`].
    pub plan_fold: Option<bool>,
    /// Position in the prompt history while browsing it, counted from its end; `None`: not browsing.
    pub history_index: Option<usize>,
    /// The draft before browsing.
    pub history_stash: String,
    items: HashMap<ItemId, ItemView>,
    /// [`crate::core::Transcript::history`] and `order` of the items that it refers to, once known.
    seen: Option<(u64, u64)>,
    was_running: bool,
}

/// What the user chose for one item.
#[derive(Debug, Clone, Default)]
pub struct ItemView {
    /// Whether it is open; `None`: the folding rules apply.
    pub is_open: Option<bool>,
    /// Whether its changes are shown with all unchanged lines.
    pub shows_context: bool,
    pub open_gaps: Vec<Gap>,
    /// Bumped on each change; a cached drawing is valid for one revision.
    pub rev: u32,
}

static UNCHANGED: ItemView = ItemView { is_open: None, shows_context: false, open_gaps: Vec::new(), rev: 0 };

impl SessionView {
    pub fn item(&self, id: ItemId) -> &ItemView {
        self.items.get(&id).unwrap_or(&UNCHANGED)
    }

    pub fn edit(&mut self, id: ItemId, change: impl FnOnce(&mut ItemView)) {
        let item = self.items.entry(id).or_default();
        change(item);
        item.rev = item.rev.wrapping_add(1);
    }

    /// Opens or folds an item; `None`: as the folding rules say.
    pub fn set_open(&mut self, id: ItemId, is_open: Option<bool>) {
        self.edit(id, |item| item.is_open = is_open);
    }

    /// Selects an item, if it is in the transcript. A filter that hides the item is cleared.
    pub fn select(&mut self, session: &Session, id: ItemId) -> bool {
        let Some(item) = session.transcript.get(id) else { return false };
        self.only = self.only.filter(|only| only.shows(item));
        self.selected = Some(id);
        true
    }

    /// Searches the transcript for the matches of a snippet, which are between `\u{2}` and `\u{3}`, from an item on.
    pub fn search_snippet(&mut self, id: ItemId, snippet: &str) {
        let marked = snippet.split('\u{2}').skip(1).filter_map(|part| part.split_once('\u{3}'));
        let mut texts: Vec<String> = marked.map(|(text, _)| text.to_lowercase()).collect();
        texts.sort();
        texts.dedup();
        if !texts.is_empty() {
            self.only = None;
            self.search = Some(Box::new(Search::for_texts(&texts, id)));
        }
    }

    /// Whether the plan panel is folded to one line: the user's choice, otherwise once the turn has ended, unless steps
    /// are open.
    pub fn is_plan_folded(&self, session: &Session) -> bool {
        self.plan_fold.unwrap_or_else(|| !session.turn.is_running() && session.is_plan_over())
    }

    /// Whether the plan panel is shown: the user opened it, or the plan is neither abandoned nor, after the turn, done.
    pub fn is_plan_shown(&self, session: &Session) -> bool {
        let is_pending = !session.is_plan_abandoned && (session.turn.is_running() || !session.is_plan_done());
        self.plan_fold == Some(false) || is_pending
    }

    fn follow(&mut self, session: &Session, folds: FoldRules) {
        self.folds = folds;
        let is_running = session.turn.is_running();
        // A plan panel opened to follow the turn folds again.
        let is_over = std::mem::replace(&mut self.was_running, is_running) && !is_running;
        if session.plans.is_empty() || is_over && self.plan_fold == Some(false) && session.is_plan_done() {
            self.plan_fold = None;
        }
        let transcript = &session.transcript;
        let seen = (transcript.history(), transcript.order());
        let Some(former) = self.seen.replace(seen).filter(|former| *former != seen) else { return };
        if former.0 != seen.0 {
            (self.selected, self.reading) = (None, None);
            self.items.clear();
            self.search.iter_mut().for_each(|search| search.opened = None);
        }
        self.items.retain(|id, _| transcript.index_of(*id).is_some());
        self.selected = self.selected.filter(|id| transcript.index_of(*id).is_some());
    }
}
