//! The list of files for mentions, in a folder of 100,000 files: the time from the first key to the first files, and from
//! each further key to the list on the screen.

#![allow(clippy::unwrap_used, reason = "a benchmark")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parlor::core::{self, Effect, Setup};

use parlor::config::keymap::Keymap;
use parlor::host::file_finder::FileFinder;
use parlor::model::ServiceEvent;
use parlor::ui::theme::Theme;
use parlor::ui::{self, Canvas, ViewState};
use parlor::ui::{App, Event};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What a user types after `@`.
const TYPED: [&str; 6] = ["main", "serv/user", "module_42", "readme", "handler_3", "src/t"];

/// The time between two keys of a fast typist.
const BETWEEN_KEYS: Duration = Duration::from_millis(60);

fn main() {
    // `cargo bench -- --test` only checks that it runs.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (folders, starts, rounds) = if is_test { (20, 1, 1) } else { (1_000, 20, 10) };
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), folders);

    for (name, query) in [("the list after @", ""), ("the list after a pasted @main", "main")] {
        let times = (0..starts).map(|_| Bench::new(folder.path()).key(query).first).collect();
        report(&format!("{name}, first files"), times);
    }

    let mut bench = Bench::new(folder.path());
    let [mut while_reading, mut keys, mut sends] = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..rounds {
        for words in TYPED {
            if round % 2 == 0 {
                bench = Bench::new(folder.path());
            }
            let times = if round % 2 == 0 { &mut while_reading } else { &mut keys };
            for end in 0..=words.len() {
                let Key { first, send } = bench.key(&words[..end]);
                times.push(first);
                sends.push(send);
                std::thread::sleep(BETWEEN_KEYS.saturating_sub(first));
            }
        }
    }
    report("key to list while the folder is read", while_reading);
    report("key to list", keys);
    report("time that a key takes in the main loop", sends);
}

/// Creates 100 files in each of these folders.
fn create(root: &Path, folders: usize) {
    let areas = ["src", "services", "tests", "docs", "vendor"];
    for number in 0..folders {
        let area = areas[number % areas.len()];
        let folder = root.join(format!("{area}/part_{}/module_{number}", number % 50));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            let name = ["main", "user", "README", "types", "handler"][file % 5];
            std::fs::write(folder.join(format!("{name}_{file}.rs")), "").unwrap();
        }
    }
}

/// The times of a key.
struct Key {
    /// Until the first list of files is drawn.
    first: Duration,
    /// Until the query is sent.
    send: Duration,
}

/// A finder, and a screen that shows what it finds.
struct Bench {
    finder: FileFinder,
    events: UnboundedReceiver<ServiceEvent>,
    app: App,
    view: ViewState,
    canvas: Canvas,
    theme: Theme,
    folder: PathBuf,
}

impl Bench {
    fn new(folder: &Path) -> Self {
        let (services, events) = unbounded_channel();
        let setup = Setup { folder: folder.to_owned(), ..Setup::default() };
        let (mut app, _) = ui::start(setup, Instant::now());
        app.layers.clear();
        let mut bench = Self {
            finder: FileFinder::new(folder.to_owned(), services).unwrap(),
            events,
            app,
            view: ViewState::new(&Keymap::defaults(), Instant::now()),
            canvas: Canvas::new(120, 40),
            theme: Theme::plain(),
            folder: folder.to_owned(),
        };
        bench.draw();
        bench
    }

    fn draw(&mut self) {
        self.view.set_now(Instant::now());
        black_box(ui::draw_into(&self.app, &mut self.view, &self.theme, &mut self.canvas));
    }

    /// Types the last letter of a mention, as the main loop does: applies the effects, then waits for files and draws.
    fn key(&mut self, query: &str) -> Key {
        let began = Instant::now();
        let draft = format!("@{query}");
        let typed = (0..draft.len(), query.to_owned());
        ui::update(&mut self.app, Event::Draft(draft), began);
        let effects = ui::update(&mut self.app, Event::Mention(Some(typed)), began);
        for effect in effects {
            if let Effect::FindFiles(query) = effect {
                assert!(query.folder == self.folder && self.finder.find(query));
            }
        }
        self.draw();
        let send = began.elapsed();
        loop {
            let event = self.events.blocking_recv().unwrap();
            let is_answer = matches!(&event, ServiceEvent::FilesFound { query: of, .. } if of == query);
            ui::update(&mut self.app, core::Event::Service(event), Instant::now());
            if is_answer {
                self.draw();
                return Key { first: began.elapsed(), send };
            }
        }
    }
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1_000.0;
    let (half, late, last) = (at(50), at(99), at(100));
    println!("{name:50} p50 {half:7.2} ms   p99 {late:7.2} ms   max {last:7.2} ms   of {}", times.len());
}
