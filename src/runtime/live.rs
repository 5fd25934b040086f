//! The configuration while parlor runs: changes it, and reads it again after its files changed.
//!
//! `cli` provides the function that reads and writes ([`Configure`]); it runs on a thread for blocking work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::pictures::GraphicsSetting;
use super::{Loop, attention};
use crate::config::keymap::Keymap;
use crate::core::ConfigNews;
use crate::host::watch::{Watched, Watcher};
use crate::model::ConfigJob;
use crate::ui;
use crate::ui::Event;
use crate::ui::text::WideAmbiguous;
use crate::ui::theme::Theme;

/// An editor may write a file in several steps.
const QUIET: Duration = Duration::from_millis(80);

/// Returns a theme by name.
pub type Themes = Arc<dyn Fn(&str) -> Theme + Send + Sync>;

/// The settings of the runtime, which the configuration can change at any time.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct Live {
    pub keymap: Keymap,
    /// Returns a theme by name.
    pub themes: Themes,
    /// Whether text selected with the mouse is copied when the button is released.
    pub copies_on_select: bool,
    pub reduced_motion: bool,
    /// Delay after which the keys that continue a sequence are listed.
    pub which_key_delay: Duration,
    /// Pasted texts of more lines become attachments; 0: none does.
    pub paste_lines: usize,
    /// Whether code blocks have line numbers.
    pub numbers_code: bool,
    pub has_vim_keys: bool,
    pub attention: attention::Settings,
    pub images: GraphicsSetting,
    /// Whether the terminal supports links (OSC 8).
    pub has_links: bool,
    pub ambiguous: WideAmbiguous,
    /// The command of the user's editor; `None`: `vi`.
    pub editor: Option<String>,
}

/// The outcome of a job.
pub struct Reloaded {
    /// The new values; `None`: they did not change.
    pub live: Option<Live>,
    pub news: ConfigNews,
}

/// Does a job; `None`: nothing changed. May block.
pub type Configure = Arc<dyn Fn(ConfigJob) -> Option<Reloaded> + Send + Sync>;

/// Runs jobs, and watches the files.
pub struct LiveConfig {
    configure: Configure,
    watched: Watched,
    watcher: Option<Watcher>,
    changed: Arc<Notify>,
    sender: UnboundedSender<Reloaded>,
    receiver: UnboundedReceiver<Reloaded>,
}

impl LiveConfig {
    pub fn new(configure: Configure, watched: Watched) -> Self {
        let (sender, receiver) = unbounded_channel();
        let changed = Arc::new(Notify::new());
        let mut this = Self { configure, watched, watcher: None, changed, sender, receiver };
        this.watch();
        let (changed, configure, sender) =
            (Arc::clone(&this.changed), Arc::clone(&this.configure), this.sender.clone());
        tokio::spawn(async move {
            loop {
                changed.notified().await;
                tokio::time::sleep(QUIET).await;
                run(&configure, &sender, ConfigJob::Reread);
            }
        });
        this
    }

    /// Watches the files, unless that is the case. The folder may not exist yet.
    fn watch(&mut self) {
        if self.watcher.is_none() {
            let changed = Arc::clone(&self.changed);
            self.watcher = Watcher::start(&self.watched, move || changed.notify_one());
        }
    }

    pub fn run(&mut self, job: ConfigJob) {
        run(&self.configure, &self.sender, job);
    }

    /// The next outcome. Pending while there is none.
    pub async fn next(&mut self) -> Option<Reloaded> {
        let outcome = self.receiver.recv().await;
        // The job may have created the folder.
        self.watch();
        outcome
    }
}

fn run(configure: &Configure, sender: &UnboundedSender<Reloaded>, job: ConfigJob) {
    let (configure, sender) = (Arc::clone(configure), sender.clone());
    tokio::task::spawn_blocking(move || {
        if let Some(outcome) = configure(job) {
            let _ = sender.send(outcome);
        }
    });
}

impl Loop {
    /// Applies a configuration that was read again.
    pub(super) fn on_reloaded(&mut self, reloaded: Reloaded, now: Instant) {
        if let Some(live) = reloaded.live {
            self.use_settings(live);
            self.clock.want_frame_at_once();
        }
        self.apply(Event::Config(Box::new(reloaded.news)), now);
    }

    pub(super) fn use_settings(&mut self, live: Live) {
        ui::text::link::show(live.has_links);
        self.view.set_keymap(&live.keymap);
        self.view.has_motion = !live.reduced_motion;
        self.view.which_key_delay = live.which_key_delay;
        self.view.paste_lines = live.paste_lines;
        self.view.numbers_code = live.numbers_code;
        self.view.set_vim(live.has_vim_keys);
        self.view.copies_on_select = live.copies_on_select;
        self.keymap = live.keymap;
        self.attention.set(live.attention);
        self.executor.editor = live.editor;
        self.themes = live.themes;
        self.images = live.images;
        self.ambiguous = live.ambiguous;
        self.use_width();
    }
}
