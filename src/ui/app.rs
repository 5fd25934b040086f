//! The front end of the sessions: their state, the open dialogs and what belongs to the user's view, as one reducer.
//!
//! [`update`] gives each event to the dialogs or to the sessions ([`crate::core`]) and returns the work to do as
//! [`Effect`]s. It never fails, never blocks and reads no clock.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::core::lifecycle::operations;
use crate::core::state::lookup::first_request;
use crate::core::{
    self, Cx, DiffLayout, Effect, MouseOwner, OpenRequest, Setup, State, TimerId, ViewCommand,
};
use crate::guard::{Guard, Input};
use crate::model::{AgentEvent, CopyContent, CopyJob, ServiceEvent, SessionKey, StoreNews};

use super::Event;
use super::dialogs;
use super::dialogs::{InboxDialog, Layers, LogPage, MentionList, RequestView};
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

    /// The request that keys answer, with its session: the one selected in the inbox, otherwise the first of the active
    /// session.
    pub fn shown_request(&self) -> Option<(SessionKey, &OpenRequest)> {
        match self.layers.top::<InboxDialog>() {
            Some(inbox) => inbox.request(&self.state),
            None => Some((self.state.active, first_request(&self.state)?)),
        }
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

/// The first app of the setup, and the effects of its start.
pub fn start(setup: Setup, now: Instant) -> (App, Vec<Effect>) {
    let mut cx = Cx::new(now);
    let mut app = App::new(core::start(setup, &mut cx));
    dialogs::serve(&mut app, &mut cx);
    // The prompt waits until the user has chosen a folder or a session.
    if let Some(text) = app.state.setup.first_prompt.take() {
        cx.effects.push(Effect::View(ViewCommand::SetDraft(text.clone())));
        dialogs::on_draft(&mut app, text, &mut cx);
    }
    dialogs::refresh(&mut app);
    (app, cx.effects)
}

/// Applies an event to the app and returns the effects.
pub fn update(app: &mut App, event: impl Into<Event>, now: Instant) -> Vec<Effect> {
    let event = event.into();
    let mut cx = Cx::new(now);
    let front_before = app.state.active;
    let is_act = |event: &Event| matches!(event, Event::Act(_));
    let is_wanted = match &event {
        Event::Key(events) => events.iter().any(is_act),
        event => is_act(event),
    };
    let face = |app: &App| (app.layers.len(), core::state::tab::face(&app.state));
    let before = may_be_unseen(app, &event).then(|| face(app));
    let is_text =
        matches!(&event, Event::Core(event) if core::lifecycle::updates::is_text_of_turn(&app.state, event));
    if !is_text {
        app.state.chrome_changes = app.state.chrome_changes.wrapping_add(1);
    }
    on_event(app, event, &mut cx);
    dialogs::serve(app, &mut cx);
    if before.is_none_or(|before| core::touches_front(&app.state) || before != face(app)) {
        app.state.changes = app.state.changes.wrapping_add(1);
    }
    if app.state.active != front_before && !is_wanted {
        dialogs::show_draft(app, &mut cx);
    }
    core::tidy(&mut app.state, &mut cx);
    dialogs::refresh(app);
    dialogs::show_left_keys(app, &mut cx);
    dialogs::set_search_timer(app, &mut cx);
    dialogs::send_requests(app, &mut cx);
    core::save(&mut app.state, &mut cx);
    cx.effects
}

fn on_event(app: &mut App, event: Event, cx: &mut Cx) {
    match event {
        Event::Act(action) => dialogs::on_action(app, action, cx),
        Event::Draft(text) => dialogs::on_draft(app, text, cx),
        Event::Mention(typed) => dialogs::on_mention(app, typed, cx),
        Event::Argument(range, path) => dialogs::on_argument(app, (range, path), cx),
        Event::RunCommand(text) => dialogs::on_command_line(app, &text, cx),
        Event::Dropped { text, at, readings } => dialogs::on_dropped(&app.state, text, at, readings, cx),
        Event::Cursor(at) => app.user.cursor = at,
        Event::Reading(first, last) => app.shown_mut().reading = Some((first, last)),
        Event::Line(edit) => dialogs::on_line(app, edit, cx),
        Event::Capturing(key) => dialogs::on_capturing(app, key),
        Event::Captured { keys, label, taken } => {
            dialogs::on_captured(app, keys, &label, taken, cx);
        }
        Event::Config(news) => dialogs::on_config(app, *news, cx),
        Event::Open(target) => dialogs::on_open(&mut app.state, target, cx),
        Event::Letter(key, action) => dialogs::on_letter(app, key, action, cx),
        Event::Backspace => dialogs::on_backspace(app, cx),
        Event::Click(action) => dialogs::on_click(app, action, cx),
        Event::Input => dialogs::on_input(app, Some(Input::Look), cx),
        Event::InputElsewhere => dialogs::on_input(app, Some(Input::Elsewhere), cx),
        Event::Key(events) => on_key(app, events, cx),
        Event::Returned => app.guard.returned(),
        Event::Theme(name) => dialogs::on_terminal_theme(app, name, cx),
        Event::TypeIn(input) => operations::type_in(&app.state, app.state.active, input, cx),
        Event::Copy(text) => {
            let what = "the yanked text".to_owned();
            cx.effects.push(Effect::Copy(CopyJob { what, content: CopyContent::Text(text) }));
        }
        Event::ReadClipboard => {
            cx.effects.push(Effect::ReadClipboard { session: app.state.active, before: None });
        }
        Event::Pasted(attachment) => cx.effects.push(Effect::SaveAttachment(attachment)),
        Event::Message(text) => dialogs::notify(&mut app.state, text, cx),
        Event::Screen(screen) => {
            app.state.screen = Some(screen);
            operations::fit_terminals(&mut app.state, cx);
        }
        Event::Core(core::Event::Service(event)) => on_service(app, event, cx),
        Event::Core(core::Event::Timer(TimerId::Search(key))) => dialogs::on_search_timer(app, key, cx),
        Event::Core(event) => {
            if event == core::Event::Focus(true) {
                app.guard.returned();
            }
            core::on_event(&mut app.state, event, cx);
        }
    }
}

fn on_key(app: &mut App, events: Vec<Event>, cx: &mut Cx) {
    let tells_guard = |event: &Event| {
        matches!(
            event,
            Event::Act(_) | Event::Letter(..) | Event::Backspace | Event::Click(_) | Event::InputElsewhere
        )
    };
    let is_text = events.iter().any(|event| matches!(event, Event::Draft(_)));
    let input = if is_text { Input::Paste } else { Input::Look };
    let is_reported = events.iter().any(tells_guard);
    dialogs::on_input(app, (!is_reported).then_some(input), cx);
    for event in events {
        on_event(app, event, cx);
        dialogs::serve(app, cx);
    }
}

fn on_service(app: &mut App, event: ServiceEvent, cx: &mut Cx) {
    match event {
        ServiceEvent::FilesFound { session, query, files, is_complete } => {
            dialogs::on_found(app, session, query, files, is_complete, cx);
        }
        ServiceEvent::SymbolsFound { session, query, symbols, has_tags } => {
            dialogs::on_symbols_found(app, session, query, symbols, has_tags);
        }
        ServiceEvent::DropRead(job, read) => dialogs::on_drop_read(app, &job, read, cx),
        ServiceEvent::SessionAttached(job, label) => dialogs::on_session_attached(app, &job, label, cx),
        ServiceEvent::ImagePasted { session, before, label } => {
            dialogs::on_image(app, session, &before, label, cx);
        }
        ServiceEvent::Folders(folders) => dialogs::on_folders(app, &folders),
        ServiceEvent::FolderFound { text, found } => dialogs::on_folder_found(app, &text, found),
        ServiceEvent::Store(news) => match *news {
            StoreNews::Prompts { serial, found } => dialogs::on_prompts_found(app, serial, found),
            StoreNews::Mentionable { folder, sessions } => {
                dialogs::on_mentionable(app, &folder, sessions);
            }
            news @ (StoreNews::Listed { .. } | StoreNews::Previewed { .. } | StoreNews::Found { .. }) => {
                dialogs::on_sessions_news(app, news, cx.now);
            }
            news => {
                let event = core::Event::Service(ServiceEvent::Store(Box::new(news)));
                core::on_event(&mut app.state, event, cx);
            }
        },
        ServiceEvent::DraftEdited { session, before, edited } => {
            dialogs::on_draft_edited(app, session, &before, edited, cx);
        }
        ServiceEvent::Copied { what, outcome } => dialogs::on_copied(&mut app.state, &what, &outcome, cx),
        event => core::on_event(&mut app.state, core::Event::Service(event), cx),
    }
}

/// Whether the event is one of the frequent ones that may only affect an inactive tab.
fn may_be_unseen(app: &App, event: &Event) -> bool {
    // These show events of all agents.
    let is_everything_shown =
        app.layers.top::<LogPage>().is_some() || app.layers.top::<InboxDialog>().is_some();
    let Event::Core(event) = event else { return false };
    let is_one_of_many = matches!(
        event,
        core::Event::Agent(_, AgentEvent::Update(..))
            | core::Event::Service(
                ServiceEvent::TerminalOutput { .. }
                    | ServiceEvent::TerminalEnded { .. }
                    | ServiceEvent::TerminalRead { .. }
                    | ServiceEvent::FileDone { .. }
                    | ServiceEvent::DiffsLocated { .. }
                    | ServiceEvent::Git(..)
            )
            | core::Event::Timer(TimerId::Search(_))
    );
    // A single tab is always active; this is checked for every chunk.
    is_one_of_many && !is_everything_shown && core::state::tab::tabs(&app.state).nth(1).is_some()
}
