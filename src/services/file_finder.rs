//! Finds the files of a folder by fuzzy search, for mentions in prompts.
//!
//! A thread for each folder walks it without files that git ignores, and answers queries while the walk is running.
//! Only the latest query is answered. No program is started, and links are not followed.
//! Invariant: a found path contains no control characters.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ignore::{DirEntry, WalkBuilder, WalkState};
use nucleo::pattern::{CaseMatching, Normalization};
use nucleo::{Config, Injector, Nucleo, Utf32String};
use tokio::sync::mpsc::UnboundedSender;

use crate::model::{FileQuery, FoundFile, ServiceEvent};

/// Maximum number of found files.
const FOUND_MAX: usize = 50;
/// Maximum number of files of a folder.
const FILES_MAX: usize = 500_000;
/// Number of latest changed files that are preferred.
const CHANGED_MAX: usize = 30;
/// Number of threads for walking and for matching.
const THREADS: usize = 2;
/// Ranks by which a file moves up that was mentioned before, or changed lately.
const RECENT_BONUS: usize = 8;
const CHANGED_BONUS: usize = 3;
/// Time after which the folder is read again before a query is answered.
const STALE: Duration = Duration::from_secs(5);
/// Time without queries after which the files are forgotten.
const IDLE: Duration = Duration::from_secs(300);
/// How long matching waits before it looks for a newer query, in milliseconds.
const TICK_MS: u64 = 10;
/// Time between two answers to the same query.
const ANSWER_STEP: Duration = Duration::from_millis(50);
/// Maximum number of entries of a folder outside of the session's.
const LISTED_MAX: usize = 5_000;

/// Answers queries on a thread of its own. Dropping it ends the thread.
#[derive(Debug)]
pub struct FileFinder {
    folder: PathBuf,
    queries: Sender<FileQuery>,
}

impl FileFinder {
    /// Starts a finder; answers are sent as [`ServiceEvent::FilesFound`].
    pub fn new(folder: PathBuf, services: UnboundedSender<ServiceEvent>) -> std::io::Result<Self> {
        let (queries, receiver) = channel();
        let root = folder.clone();
        thread::Builder::new()
            .name("file-finder".to_owned())
            .spawn(move || run(&root, &receiver, &services))?;
        Ok(Self { folder, queries })
    }

    /// The folder that is searched.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a query. Returns false if the finder has ended, which it does after a time without queries.
    pub fn find(&self, query: FileQuery) -> bool {
        self.queries.send(query).is_ok()
    }
}

fn run(root: &Path, queries: &Receiver<FileQuery>, services: &UnboundedSender<ServiceEvent>) {
    let mut files = Files::new(root);
    let mut next = queries.recv().ok();
    while let Some(query) = next {
        next = files.answer(&newest(query, queries), queries, services);
        if next.is_none() {
            next = queries.recv_timeout(IDLE).ok();
        }
    }
}

fn newest(mut query: FileQuery, queries: &Receiver<FileQuery>) -> FileQuery {
    while let Ok(newer) = queries.try_recv() {
        query = newer;
    }
    query
}

/// The files of a folder.
struct Files {
    root: PathBuf,
    matcher: Nucleo<String>,
    walk: Arc<Walk>,
    walked_at: Option<Instant>,
    pattern: String,
}

/// The state of a walk, shared with its threads.
#[derive(Debug, Default)]
struct Walk {
    is_cancelled: AtomicBool,
    is_complete: AtomicBool,
    count: AtomicUsize,
    /// The latest changed files, latest first.
    changed: Mutex<Vec<(SystemTime, String)>>,
}

impl Files {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            matcher: Nucleo::new(Config::DEFAULT.match_paths(), Arc::new(|| {}), Some(THREADS), 1),
            walk: Arc::default(),
            walked_at: None,
            pattern: String::new(),
        }
    }

    /// Answers a query. Returns a newer one that arrived meanwhile.
    fn answer(
        &mut self,
        query: &FileQuery,
        queries: &Receiver<FileQuery>,
        services: &UnboundedSender<ServiceEvent>,
    ) -> Option<FileQuery> {
        let send = |files, is_complete| {
            let FileQuery { session, query, .. } = query.clone();
            services.send(ServiceEvent::FilesFound { session, query, files, is_complete }).is_ok()
        };
        if let Some(listed) = list_elsewhere(&self.root, &query.query) {
            send(listed, true);
            return None;
        }
        self.refresh();
        let is_append = query.query.starts_with(&self.pattern);
        self.matcher.pattern.reparse(0, &query.query, CaseMatching::Smart, Normalization::Smart, is_append);
        self.pattern.clone_from(&query.query);
        let mut answered_at: Option<Instant> = None;
        loop {
            let was_complete = self.walk.is_complete.load(Ordering::Acquire);
            let status = self.matcher.tick(TICK_MS);
            let is_complete = was_complete && !status.running;
            let is_due = answered_at.is_none_or(|at| at.elapsed() >= ANSWER_STEP);
            let has_any = self.matcher.snapshot().matched_item_count() > 0;
            if is_complete || is_due && has_any && !status.running {
                answered_at = Some(Instant::now());
                if !send(self.best(query), is_complete) {
                    self.walk.is_cancelled.store(true, Ordering::Release);
                    return None;
                }
            }
            if is_complete {
                return None;
            }
            match queries.try_recv() {
                Ok(newer) => return Some(newer),
                Err(TryRecvError::Disconnected) => {
                    self.walk.is_cancelled.store(true, Ordering::Release);
                    return None;
                }
                Err(TryRecvError::Empty) => {}
            }
        }
    }

    /// Walks the folder, again if the last walk is too long ago.
    fn refresh(&mut self) {
        let is_complete = self.walk.is_complete.load(Ordering::Acquire);
        if self.walked_at.is_some_and(|at| !is_complete || at.elapsed() < STALE) {
            return;
        }
        self.matcher.restart(false);
        self.walk = Arc::default();
        self.walked_at = Some(Instant::now());
        let (root, walk, injector) = (self.root.clone(), Arc::clone(&self.walk), self.matcher.injector());
        let started = thread::Builder::new().name("file-walk".to_owned()).spawn({
            let walk = Arc::clone(&walk);
            move || {
                walk_files(&root, &walk, &injector);
                walk.is_complete.store(true, Ordering::Release);
            }
        });
        if started.is_err() {
            walk.is_complete.store(true, Ordering::Release);
        }
    }

    /// The best matches. Files that were mentioned before or changed lately move up; hidden ones are included only if
    /// the query names one.
    fn best(&self, query: &FileQuery) -> Vec<FoundFile> {
        let shows_hidden = is_hidden(&query.query);
        let changed: Vec<String> = {
            let changed = self.walk.changed.lock().unwrap_or_else(PoisonError::into_inner);
            changed.iter().map(|(_, path)| path.clone()).collect()
        };
        let matched = self.matcher.snapshot().matched_items(..).map(|item| item.data);
        let shown = matched.filter(|path| shows_hidden || !is_hidden(path));
        let mut ranked: Vec<(usize, String)> = Vec::new();
        if query.query.is_empty() {
            let preferred = query.recent.iter().chain(&changed).filter(|path| !is_hidden(path));
            for path in preferred {
                if ranked.len() < FOUND_MAX && !ranked.iter().any(|(_, known)| known == path) {
                    ranked.push((0, path.clone()));
                }
            }
        }
        for (rank, path) in shown.take(FOUND_MAX * 4).enumerate() {
            let bonus = if query.recent.contains(path) {
                RECENT_BONUS
            } else if changed.contains(path) {
                CHANGED_BONUS
            } else {
                0
            };
            if !query.query.is_empty() || !ranked.iter().any(|(_, known)| known == path) {
                ranked.push(((rank + RECENT_BONUS).saturating_sub(bonus), path.clone()));
            }
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(FOUND_MAX);
        ranked.into_iter().map(|(_, path)| FoundFile { path }).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.walk.is_cancelled.store(true, Ordering::Release);
    }
}

/// Whether a part of the path begins with a dot.
fn is_hidden(path: &str) -> bool {
    path.starts_with('.') || path.contains("/.")
}

fn walk_files(root: &Path, walk: &Walk, injector: &Injector<String>) {
    let is_git = |entry: &DirEntry| entry.depth() > 0 && entry.file_name() == ".git";
    let walker = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .threads(THREADS)
        .filter_entry(move |entry| !is_git(entry))
        .build_parallel();
    walker.run(|| {
        Box::new(|entry| {
            if walk.is_cancelled.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            let Some(path) = path_of(root, &entry) else { return WalkState::Continue };
            if walk.count.fetch_add(1, Ordering::Relaxed) >= FILES_MAX {
                return WalkState::Quit;
            }
            if !path.ends_with('/')
                && let Some(time) = entry.metadata().ok().and_then(|meta| meta.modified().ok())
            {
                note_changed(walk, time, &path);
            }
            injector.push(path, |path, columns| {
                if let Some(column) = columns.first_mut() {
                    *column = Utf32String::from(path.as_str());
                }
            });
            WalkState::Continue
        })
    });
}

/// The path of an entry below the root; `None` for the root and for names that cannot be typed.
fn path_of(root: &Path, entry: &DirEntry) -> Option<String> {
    let path = entry.path().strip_prefix(root).ok()?.to_str()?;
    if path.is_empty() || path.chars().any(char::is_control) {
        return None;
    }
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    Some(if is_folder { format!("{path}/") } else { path.to_owned() })
}

fn note_changed(walk: &Walk, time: SystemTime, path: &str) {
    let mut changed = walk.changed.lock().unwrap_or_else(PoisonError::into_inner);
    if changed.len() == CHANGED_MAX && changed.last().is_some_and(|(oldest, _)| time <= *oldest) {
        return;
    }
    let at = changed.partition_point(|(known, _)| *known >= time);
    changed.insert(at, (time, path.to_owned()));
    changed.truncate(CHANGED_MAX);
}

/// The entries of the folder that is being typed, if the path leads out of the session's folder; `None` if it does not.
fn list_elsewhere(root: &Path, typed: &str) -> Option<Vec<FoundFile>> {
    let is_elsewhere = typed.starts_with('/') || typed.starts_with("~/") || typed.starts_with("../");
    let (folder, name) = typed.rsplit_once('/').filter(|_| is_elsewhere)?;
    let path = match folder.strip_prefix('~') {
        Some(rest) => directories::BaseDirs::new()?.home_dir().join(rest.trim_start_matches('/')),
        None if folder.is_empty() => PathBuf::from("/"),
        None => root.join(folder),
    };
    let name = name.to_lowercase();
    let entries = std::fs::read_dir(path).into_iter().flatten().take(LISTED_MAX).flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let file_name = entry.file_name().into_string().ok()?;
            let is_match = file_name.to_lowercase().contains(&name);
            let is_shown = name.starts_with('.') || !file_name.starts_with('.');
            if !is_match || !is_shown || file_name.chars().any(char::is_control) {
                return None;
            }
            let end = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
            Some(format!("{folder}/{file_name}{end}"))
        })
        .collect();
    let starts = |path: &String| path[folder.len() + 1..].to_lowercase().starts_with(&name);
    found.sort_by_key(|path| (!starts(path), path.clone()));
    found.truncate(FOUND_MAX);
    Some(found.into_iter().map(|path| FoundFile { path }).collect())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::model::SessionKey;

    struct Rig {
        folder: tempfile::TempDir,
        finder: FileFinder,
        events: UnboundedReceiver<ServiceEvent>,
    }

    impl Rig {
        fn new(files: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "x").unwrap();
            }
            let (services, events) = unbounded_channel();
            let finder = FileFinder::new(folder.path().to_owned(), services).unwrap();
            Self { folder, finder, events }
        }

        /// The complete answer to a query.
        fn find(&mut self, query: &str, recent: &[&str]) -> Vec<String> {
            let recent = recent.iter().map(|path| (*path).to_owned()).collect();
            let folder = self.folder.path().to_owned();
            let sent = FileQuery { session: SessionKey(1), folder, query: query.to_owned(), recent };
            assert!(self.finder.find(sent));
            loop {
                match self.events.blocking_recv().unwrap() {
                    ServiceEvent::FilesFound { query: of, files, is_complete: true, .. } if of == query => {
                        return files.into_iter().map(|file| file.path).collect();
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn files_and_folders_are_found_by_parts_of_their_path() {
        let mut rig = Rig::new(&["src/main.rs", "src/app/state.rs", "docs/main page.md", "дом/файл.md"]);
        assert_eq!(rig.find("stat", &[]), ["src/app/state.rs"]);
        assert_eq!(rig.find("srcmain", &[]), ["src/main.rs"]);
        assert_eq!(rig.find("main page", &[]), ["docs/main page.md"]);
        assert_eq!(rig.find("файл", &[]), ["дом/файл.md"]);
        assert!(rig.find("app/", &[]).contains(&"src/app/".to_owned()));
        assert_eq!(rig.find("nothing-like-this", &[]), Vec::<String>::new());
    }

    #[test]
    fn ignored_files_are_not_found_and_hidden_ones_only_on_demand() {
        let mut rig = Rig::new(&[".gitignore", "target/a.rs", "a.rs", ".env/a.rs", ".git/a.rs"]);
        std::fs::write(rig.folder.path().join(".gitignore"), "target/\n").unwrap();
        assert_eq!(rig.find("a.rs", &[]), ["a.rs"]);
        assert_eq!(rig.find(".env/a", &[]), [".env/a.rs"]);
    }

    #[test]
    fn mentioned_and_changed_files_come_first() {
        let mut rig = Rig::new(&["a1.rs", "a2.rs", "a3.rs"]);
        let old = SystemTime::UNIX_EPOCH;
        for file in ["a1.rs", "a2.rs"] {
            let file = std::fs::File::options().write(true).open(rig.folder.path().join(file)).unwrap();
            file.set_modified(old).unwrap();
        }
        assert_eq!(rig.find("", &["a2.rs"])[..2], ["a2.rs", "a3.rs"]);
        assert_eq!(rig.find("a", &["a2.rs"])[0], "a2.rs");
    }

    #[test]
    fn links_are_not_followed_and_odd_names_are_left_out() {
        let mut rig = Rig::new(&["a.rs", "new\nline.rs"]);
        std::os::unix::fs::symlink("/", rig.folder.path().join("out")).unwrap();
        let found = rig.find("", &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.contains(&"out".to_owned()) && found.contains(&"a.rs".to_owned()));
    }

    #[test]
    fn other_folders_are_listed_as_they_are_typed() {
        let mut rig = Rig::new(&["in/a.rs"]);
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(outside.path().join("alpha")).unwrap();
        std::fs::write(outside.path().join("beta.txt"), "").unwrap();
        let base = outside.path().to_str().unwrap();
        assert_eq!(
            rig.find(&format!("{base}/"), &[]),
            [format!("{base}/alpha/"), format!("{base}/beta.txt")]
        );
        assert_eq!(rig.find(&format!("{base}/BET"), &[]), [format!("{base}/beta.txt")]);
    }
}
