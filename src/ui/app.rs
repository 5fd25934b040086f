//! The state of the front end: that of the sessions, the open dialogs, and what belongs to the user's view.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::core::state::lookup::first_request;
use crate::core::{MouseOwner, OpenRequest, State};
use crate::guard::Guard;
use crate::model::SessionKey;
use crate::ui::screen::{DiffLayout, Screen};

use super::dialogs::{Layers, MentionList, RequestView};
use super::session_view::{SessionView, Views};

/// The app with its dialogs.
#[derive(Debug)]
pub struct App {
    pub state: State,
    /// What is shown of each session.
    pub views: Views,
    /// The open dialogs of the active tab.
    pub layers: Layers,
    /// The dialogs of inactive tabs.
    pub background: BTreeMap<SessionKey, TabUi>,
    /// The view of the first open request of the active session.
    pub request_view: RequestView,
    /// UI state between keys.
    pub user: UserView,
    /// Decides when the question on top is answered.
    pub guard: Guard,
    /// What the last frame had room for; `None` before the first.
    pub screen: Option<Screen>,
    pub diff_layout: DiffLayout,
    pub shows_thoughts: bool,
    pub mouse: MouseOwner,
}

impl App {
    /// Without dialogs.
    pub fn new(state: State) -> Self {
        Self {
            mouse: state.setup.mouse,
            state,
            views: Views::default(),
            layers: Layers::default(),
            background: BTreeMap::new(),
            request_view: RequestView::default(),
            user: UserView::default(),
            guard: Guard::default(),
            screen: None,
            diff_layout: DiffLayout::default(),
            shows_thoughts: false,
        }
    }

    /// The view of the active session.
    pub fn shown(&self) -> &SessionView {
        self.views.get(self.state.active)
    }

    pub fn shown_mut(&mut self) -> &mut SessionView {
        self.views.get_mut(self.state.active)
    }

    /// The request that keys answer, with its session: the one selected in the top dialog, otherwise the first of the
    /// active session.
    pub fn shown_request(&self) -> Option<(SessionKey, &OpenRequest)> {
        let selected = self.layers.last().and_then(|layer| layer.request(&self.state));
        selected.unwrap_or_else(|| Some((self.state.active, first_request(&self.state)?)))
    }
}

/// UI state between keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserView {
    /// The position that was marked when the question on top appeared.
    pub first_mark: usize,
    /// The session in which the question on top was shown.
    pub asked_in: SessionKey,
    /// Keys pressed at a question that closed, which the prompt does not show yet.
    pub unshown: String,
    /// Whether the user opened the question that appears now, so that it gets the keys.
    pub enters_question: bool,
    /// When Escape last rejected a request; another Escape soon after cancels the turn.
    pub last_reject: Option<Instant>,
    /// Whether the store holds prompts for a search.
    pub has_prompt_index: bool,
    /// When Escape last had nothing to do; another one soon after lists the prompts.
    pub last_escape: Option<Instant>,
    /// The marked completion, a place in `dialogs::completions`.
    pub completion: usize,
    /// The draft for which completions were closed.
    pub dismissed: Option<String>,
    /// The mention of a file that is being typed.
    pub mention: Option<MentionList>,
    /// The session whose draft gets a transcript that is being read.
    pub attaching: Option<SessionKey>,
    /// The cursor's byte in the draft, when an action last depended on it.
    pub cursor: usize,
    /// Partly filled forms of open requests of sessions that are not active.
    pub left_forms: Vec<RequestView>,
    /// Whether keys browse the transcript instead of editing the prompt.
    pub is_browsing: bool,
    pub former_tab: Option<SessionKey>,
    /// The tab whose dialogs are shown.
    pub shown_tab: Option<SessionKey>,
}

/// The UI state of a tab while another one is active.
#[derive(Debug, Default)]
pub struct TabUi {
    pub layers: Layers,
    pub is_browsing: bool,
}
