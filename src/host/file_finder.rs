//! Finds the files of a folder by fuzzy search, for mentions in prompts; `symbols` finds those of its tags file.
//!
//! A thread for each folder answers queries from a list of its paths, without files that git ignores. Others walk the
//! folder: queries use the first walk while it runs; a later walk replaces the list when it is complete. The times of
//! the last changes are read at the end of a walk, because that takes longer than the names. Only the latest query is
//! answered. No program is started, and links are not followed.
//! Invariant: a found path contains no control characters.

mod ignored;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio::sync::mpsc::UnboundedSender;

use self::ignored::Rules;
use self::search::{FilePath, STEP, Search, is_hidden};
use super::symbols;
use crate::model::{FileQuery, FoundFile, ServiceEvent};

const FOUND_MAX: usize = 50;
/// Maximum number of files of a folder.
const FILES_MAX: usize = 500_000;
/// Number of latest changed files that are preferred.
const CHANGED_MAX: usize = 30;
/// Number of threads for the first walk of a folder.
const THREADS: usize = 2;
/// Ranks by which a file moves up that was mentioned before, or changed lately.
const RECENT_BONUS: usize = 8;
const CHANGED_BONUS: usize = 3;
/// Time after the last walk and without queries after which the folder is read again.
const STALE: Duration = Duration::from_secs(5);
/// Time without queries after which the files are forgotten.
const IDLE: Duration = Duration::from_secs(300);
/// How long matching may delay the first answer, and the time between further ones.
const FIRST_ANSWER: Duration = Duration::from_millis(6);
const ANSWER_STEP: Duration = Duration::from_millis(50);
/// How long the finder waits for new paths before it looks for a newer query.
const NEWS_STEP: Duration = Duration::from_millis(2);
/// How often a paused walk looks whether to continue.
const PAUSE_STEP: Duration = Duration::from_millis(1);
/// Maximum number of entries of a folder outside of the session's.
const LISTED_MAX: usize = 5_000;

/// Answers queries on a thread of its own. Dropping it ends the thread.
#[derive(Debug)]
pub struct FileFinder {
    folder: PathBuf,
    queries: Sender<FileQuery>,
    symbols: Sender<FileQuery>,
}

impl FileFinder {
    /// Starts a finder; answers are sent as [`ServiceEvent::FilesFound`] and [`ServiceEvent::SymbolsFound`].
    pub fn new(folder: PathBuf, services: UnboundedSender<ServiceEvent>) -> std::io::Result<Self> {
        let (queries, receiver) = channel();
        let (symbols, symbol_receiver) = channel();
        let (root, tags_root, symbol_services) = (folder.clone(), folder.clone(), services.clone());
        let start = |name: &str| thread::Builder::new().name(name.to_owned());
        start("file-finder").spawn(move || run(&root, &receiver, &services))?;
        start("symbol-finder")
            .spawn(move || symbols::run(&tags_root, IDLE, &symbol_receiver, &symbol_services))?;
        Ok(Self { folder, queries, symbols })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a query. Returns false if the finder has ended, which it does after a time without queries.
    pub fn find(&self, query: FileQuery) -> bool {
        self.symbols.send(query.clone()).is_ok() && self.queries.send(query).is_ok()
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
    paths: Vec<FilePath>,
    /// The latest changed files, latest first.
    changed: Vec<String>,
    walk: Option<Walk>,
    /// When the last walk has ended, or was needed by a query.
    used: Option<Instant>,
    search: Search,
}

/// A running walk of the folder. Dropping it ends its threads.
struct Walk {
    news: Receiver<News>,
    is_cancelled: Arc<AtomicBool>,
    is_paused: Arc<AtomicBool>,
    paths: Vec<FilePath>,
}

/// What a walk has found.
enum News {
    Path(FilePath),
    /// The latest changed files; sent last.
    Changed(Vec<String>),
}

impl Files {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            paths: Vec::new(),
            changed: Vec::new(),
            walk: None,
            used: None,
            search: Search::default(),
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
        self.pause_walk(false);
        if let Some(listed) = list_elsewhere(&self.root, &query.query) {
            send(listed, true);
            return None;
        }
        self.refresh();
        self.search.change(&query.query, known(&self.paths, self.walk.as_ref()));
        let began = Instant::now();
        let mut answered_at: Option<Instant> = None;
        let mut is_matched = false;
        loop {
            // Matching must not compete with the walk for processors until the first answer.
            self.pause_walk(answered_at.is_none() && !is_matched && self.search.has_any());
            let is_walked = self.take_news(is_matched);
            let paths = known(&self.paths, self.walk.as_ref());
            is_matched = self.search.advance(paths);
            let is_complete = is_walked && is_matched;
            let is_due = answered_at.map_or_else(
                || is_matched || began.elapsed() >= FIRST_ANSWER,
                |at: Instant| at.elapsed() >= ANSWER_STEP,
            );
            if is_complete || is_due && self.search.has_any() {
                answered_at = Some(Instant::now());
                self.pause_walk(false);
                if !send(self.best(query), is_complete) {
                    return None;
                }
            }
            if is_complete {
                return None;
            }
            match queries.try_recv() {
                Ok(newer) => return Some(newer),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
        }
    }

    /// Walks the folder, and again when the user begins another mention after a time.
    fn refresh(&mut self) {
        let is_fresh = self.used.is_some_and(|at| at.elapsed() < STALE);
        if self.walk.is_none() && !is_fresh {
            // A later walk must not slow down matching.
            let threads = if self.paths.is_empty() { THREADS } else { 1 };
            self.walk = Walk::start(&self.root, threads);
        }
        self.used = Some(Instant::now());
    }

    fn pause_walk(&self, is_paused: bool) {
        if let Some(walk) = &self.walk {
            walk.is_paused.store(is_paused, Ordering::Relaxed);
        }
    }

    /// Takes new paths of a running walk, and may wait for one. Returns whether all are known.
    fn take_news(&mut self, may_wait: bool) -> bool {
        let Some(walk) = &mut self.walk else { return true };
        let mut next = walk.news.recv_timeout(if may_wait { NEWS_STEP } else { Duration::ZERO });
        for _ in 0..STEP {
            match next {
                Ok(News::Path(path)) => walk.paths.push(path),
                Ok(News::Changed(changed)) => self.changed = changed,
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => {
                    self.used = Some(Instant::now());
                    if !self.paths.is_empty() {
                        // The indices of paths have changed.
                        self.search.restart();
                    }
                    self.paths = std::mem::take(&mut walk.paths);
                    self.walk = None;
                    return true;
                }
            }
            next = walk.news.recv_timeout(Duration::ZERO);
        }
        false
    }

    /// The best matches. Files that were mentioned before or changed lately move up; hidden ones are included only if
    /// the query names one.
    fn best(&mut self, query: &FileQuery) -> Vec<FoundFile> {
        let changed = &self.changed;
        let paths = known(&self.paths, self.walk.as_ref());
        let shown = self.search.best(paths);
        let mut ranked: Vec<(usize, &String)> = Vec::new();
        if query.query.is_empty() {
            let preferred = query.recent.iter().chain(changed).filter(|path| !is_hidden(path));
            for path in preferred {
                if ranked.len() < FOUND_MAX && !ranked.iter().any(|(_, known)| *known == path) {
                    ranked.push((0, path));
                }
            }
        }
        for (rank, path) in shown.into_iter().enumerate() {
            let bonus = if query.recent.contains(path) {
                RECENT_BONUS
            } else if changed.contains(path) {
                CHANGED_BONUS
            } else {
                0
            };
            if !query.query.is_empty() || !ranked.iter().any(|(_, known)| *known == path) {
                ranked.push(((rank + RECENT_BONUS).saturating_sub(bonus), path));
            }
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(FOUND_MAX);
        ranked.into_iter().map(|(_, path)| FoundFile { path: path.clone() }).collect()
    }
}

/// The paths that are known: those of the running walk, if it is the first.
fn known<'a>(paths: &'a [FilePath], walk: Option<&'a Walk>) -> &'a [FilePath] {
    if paths.is_empty() { walk.map_or(paths, |walk| &walk.paths) } else { paths }
}

impl Walk {
    fn start(root: &Path, threads: usize) -> Option<Self> {
        let (sender, news) = channel();
        let (is_cancelled, is_paused) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (root, cancelled, paused) = (root.to_owned(), Arc::clone(&is_cancelled), Arc::clone(&is_paused));
        let run = move || walk_files(&root, threads, (&cancelled, &paused), &sender);
        thread::Builder::new().name("file-walk".to_owned()).spawn(run).ok()?;
        Some(Self { news, is_cancelled, is_paused, paths: Vec::new() })
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Release);
    }
}

fn walk_files(
    root: &Path,
    threads: usize,
    (is_cancelled, is_paused): (&AtomicBool, &AtomicBool),
    news: &Sender<News>,
) {
    let rules = Rules::new(root);
    let is_shown = move |entry: &DirEntry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || entry.file_name() != ".git" && !rules.ignores(entry.path(), is_folder)
    };
    let walker = WalkBuilder::new(root)
        .standard_filters(false)
        .threads(threads)
        .filter_entry(is_shown)
        .build_parallel();
    let (sender, files) = channel();
    let count = AtomicUsize::new(0);
    walker.run(|| {
        let (news, files) = (news.clone(), sender.clone());
        let count = &count;
        Box::new(move |entry| {
            while is_paused.load(Ordering::Relaxed) && !is_cancelled.load(Ordering::Relaxed) {
                thread::sleep(PAUSE_STEP);
            }
            if is_cancelled.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else { return WalkState::Continue };
            let Some(path) = path_of(root, &entry) else { return WalkState::Continue };
            if count.fetch_add(1, Ordering::Relaxed) >= FILES_MAX {
                return WalkState::Quit;
            }
            if !path.ends_with('/') {
                let _ = files.send(entry.into_path());
            }
            match news.send(News::Path(FilePath::new(path))) {
                Ok(()) => WalkState::Continue,
                Err(_) => WalkState::Quit,
            }
        })
    });
    drop(sender);
    let mut changed: Vec<(SystemTime, PathBuf)> = Vec::new();
    for path in files {
        if is_cancelled.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(time) = path.symlink_metadata().and_then(|meta| meta.modified()) {
            note_changed(&mut changed, time, path);
        }
    }
    let relative = |path: PathBuf| Some(path.strip_prefix(root).ok()?.to_str()?.to_owned());
    let changed = changed.into_iter().filter_map(|(_, path)| relative(path)).collect();
    // If nobody receives it, the finder has ended.
    let _ = news.send(News::Changed(changed));
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

fn note_changed(changed: &mut Vec<(SystemTime, PathBuf)>, time: SystemTime, path: PathBuf) {
    if changed.len() == CHANGED_MAX && changed.last().is_some_and(|(oldest, _)| time <= *oldest) {
        return;
    }
    let at = changed.partition_point(|(known, _)| *known >= time);
    changed.insert(at, (time, path));
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
    use crate::host::os::fixtures;
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

        fn find(&mut self, query: &str, recent: &[&str]) -> Vec<String> {
            let recent = recent.iter().map(|path| (*path).to_owned()).collect();
            let folder = self.folder.path().to_owned();
            let roots = vec![folder.clone()];
            let sent = FileQuery { session: SessionKey(1), folder, roots, query: query.to_owned(), recent };
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
        fixtures::link("/", rig.folder.path().join("out"));
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
