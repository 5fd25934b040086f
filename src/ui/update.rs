//! The reducer of the front end: gives each event to the dialogs or to the sessions ([`crate::core`]).
//!
//! It returns the work to do as [`Effect`]s, and never fails, never blocks and reads no clock.

use std::time::Instant;

use crate::core::lifecycle::operations;
use crate::core::{self, Cx, Effect, Setup, TimerId, ViewCommand};
use crate::guard::Input;
use crate::model::{AgentEvent, CopyContent, CopyJob, ServiceEvent, StoreNews};

use super::dialogs::{self, InboxDialog, LogPage};
use super::{App, Event};

/// The first app of the setup, and the effects of its start.
pub fn start(setup: Setup, now: Instant) -> (App, Vec<Effect>) {
    let mut cx = Cx::new(now);
    let mut app = App::new(core::start(setup, &mut cx));
    dialogs::serve(&mut app, &mut cx);
    // The prompt waits until the user has chosen a folder or a session.
    if let Some(text) = app.state.setup.first_prompt.take() {
        cx.effects.push(Effect::View(ViewCommand::SetDraft(text.clone())));
        dialogs::on_draft(&mut app, text, &mut cx);
        dialogs::serve(&mut app, &mut cx);
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
    // A question that was withdrawn may leave something to choose.
    dialogs::serve(app, &mut cx);
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
        Event::Character(key, action) => dialogs::on_character(app, key, action, cx),
        Event::Backspace => dialogs::on_backspace(app, cx),
        Event::Click(action) => dialogs::on_click(app, action, cx),
        Event::Input => dialogs::on_input(app, Some(Input::Look), cx),
        Event::InputElsewhere => dialogs::on_input(app, Some(Input::Elsewhere), cx),
        Event::Key(events) => on_key(app, events, cx),
        Event::Returned => {
            app.guard.returned();
            // Files may have been edited.
            let key = app.state.active;
            operations::refresh_review(&mut app.state, key, cx);
        }
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
            app.screen = Some(screen);
            operations::fit_terminals(&mut app.state, screen.output, cx);
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
            Event::Act(_) | Event::Character(..) | Event::Backspace | Event::Click(_) | Event::InputElsewhere
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
        ServiceEvent::Worktree(key, news) => {
            dialogs::on_worktrees(app, &news);
            core::on_event(&mut app.state, core::Event::Service(ServiceEvent::Worktree(key, news)), cx);
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
