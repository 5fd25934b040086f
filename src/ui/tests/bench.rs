//! The test bench of the front end: that of the core, with dialogs and keys.

use std::time::Instant;

use crate::core::tests::support::{Bench, Driven};
use crate::core::{self, Cx, Setup, State};
use crate::model::Action;
use crate::ui::Event;
use crate::ui::{App, dialogs, start, update};

pub type TestApp = Bench<App>;

impl Driven for App {
    type Event = Event;

    fn start(setup: Setup, cx: &mut Cx) -> Self {
        let (app, fx) = start(setup, cx.now);
        cx.effects.extend(fx);
        app
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn apply(&mut self, event: Event, cx: &mut Cx) {
        cx.effects.extend(update(self, event, cx.now));
    }

    fn complete(&mut self, cx: &mut Cx) {
        dialogs::serve(self, cx);
        core::tidy(&mut self.state, cx);
        dialogs::refresh(self);
        core::save(&mut self.state, cx);
    }

    fn show(&mut self, now: Instant) {
        dialogs::refresh(self);
        dialogs::on_frame(self, true, now);
    }
}

impl TestApp {
    pub fn act(&mut self, action: Action) -> &mut Self {
        self.play(Event::Act(action))
    }

    /// The user types this into the prompt.
    pub fn draft(&mut self, text: &str) -> &mut Self {
        self.play(Event::Draft(text.to_owned()))
    }

    /// The key of an answer; a question that the user did not open needs Enter too.
    pub fn answer(&mut self, position: u8) -> &mut Self {
        let asks = dialogs::has_keys(self);
        self.act(Action::Choose(position));
        if asks { self.act(Action::Accept) } else { self }
    }
}
