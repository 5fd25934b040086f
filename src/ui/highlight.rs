//! Line-based syntax highlighting in theme roles.
//!
//! [`Highlighter`] turns a line of code and the state of the previous line into runs of text with a syntax
//! [`Role`] each. A background thread, started by the first request, loads the grammars and warms up each
//! language; until then, code is drawn without highlighting. Each language that becomes ready increments
//! [`epoch`], so that earlier drawings can be repeated.
//!
//! Invariants: no grammar is compiled while a frame is drawn.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::text::boundary_before;
use super::theme::Role;
use crate::lock::lock;

/// Longer lines are not highlighted, because minified code is too expensive.
const LINE_MAX_BYTES: usize = 2000;

/// Maximum size of the sample that warms up a language.
const SAMPLE_MAX_BYTES: usize = 4000;

/// Common syntax, to warm up expressions that the sample does not use.
const COMMON_SAMPLE: &str = "# x\n// y\n/* z */\nfn f(a: int) { return 1.5 + \"s\\n\" + 's'; }\n\
    if (x == None) then\nend\n<a b=\"c\">d</a>\nkey: value\n[section]\nclass A(B): pass\n";

static READY: OnceLock<Ready> = OnceLock::new();
static EPOCH: AtomicU32 = AtomicU32::new(0);
static QUEUE: Mutex<HighlightQueue> =
    Mutex::new(HighlightQueue { orders: None, asked: None, callbacks: Vec::new() });

/// The data of the background thread.
struct Ready {
    syntaxes: SyntaxSet,
    warm: Mutex<HashSet<String>>,
    known: Mutex<HashMap<String, Option<&'static SyntaxReference>>>,
}

/// Jobs for the background thread, and the callbacks.
struct HighlightQueue {
    orders: Option<Sender<(String, String)>>,
    asked: Option<HashSet<String>>,
    callbacks: Vec<Box<dyn Fn() + Send>>,
}

/// Incremented whenever a language becomes ready.
pub fn epoch() -> u32 {
    #[cfg(not(test))]
    let epoch = EPOCH.load(Ordering::Acquire);
    #[cfg(test)]
    let epoch = tests::epoch_of_thread();
    epoch
}

/// Whether [`start`] returns a highlighter for this language. Never changes back to false.
pub fn is_warm(language: &str) -> bool {
    let key = language.to_ascii_lowercase();
    READY.get().is_some_and(|ready| lock(&ready.warm).contains(&key))
}

/// Registers a callback that the background thread calls whenever a language becomes ready. It must not call
/// into this module.
pub fn on_ready(callback: Box<dyn Fn() + Send>) {
    lock(&QUEUE).callbacks.push(callback);
}

/// A highlighter for the start of a text in this language (the word of a fence, or a file extension). `None`
/// if the language is unknown or not ready yet; `sample`, the start of the text, then warms it up.
pub fn start(language: &str, sample: &str) -> Option<Highlighter> {
    if language.is_empty() || language.len() > 40 {
        return None;
    }
    let key = language.to_ascii_lowercase();
    if matches!(key.as_str(), "text" | "txt" | "plain" | "plaintext" | "console" | "output" | "log") {
        return None;
    }
    if let Some(ready) = READY.get()
        && lock(&ready.warm).contains(&key)
    {
        return ready.find(&key).map(Highlighter::new);
    }
    #[cfg(test)]
    tests::note_missing(&key);
    order(key, sample);
    None
}

/// The language for [`start`], from a file name.
pub fn language_of(path: &std::path::Path) -> String {
    let name = path.extension().or_else(|| path.file_name());
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn order(key: String, sample: &str) {
    let mut queue = lock(&QUEUE);
    if !queue.asked.get_or_insert_default().insert(key.clone()) {
        return;
    }
    let sample = sample.get(..boundary_before(sample, SAMPLE_MAX_BYTES)).unwrap_or_default().to_owned();
    if queue.orders.is_none() {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("highlight".to_owned());
        if thread.spawn(move || serve(&receiver)).is_ok() {
            queue.orders = Some(sender);
        }
    }
    if let Some(orders) = &queue.orders {
        // The thread runs until the program exits.
        let _ = orders.send((key, sample));
    }
}

/// The background thread: loads all grammars, then warms up requested languages.
fn serve(orders: &Receiver<(String, String)>) {
    let ready = READY.get_or_init(|| Ready {
        syntaxes: two_face::syntax::extra_newlines(),
        warm: Mutex::default(),
        known: Mutex::default(),
    });
    while let Ok((key, sample)) = orders.recv() {
        let Some(syntax) = ready.find(&key) else { continue };
        for text in [sample.as_str(), COMMON_SAMPLE] {
            let mut highlighter = Highlighter::new(syntax);
            for line in text.lines() {
                highlighter.line(line);
            }
        }
        lock(&ready.warm).insert(key);
        EPOCH.fetch_add(1, Ordering::Release);
        for callback in &lock(&QUEUE).callbacks {
            callback();
        }
    }
}

impl Ready {
    /// The grammar for a language name. `self` is static.
    fn find(&'static self, key: &str) -> Option<&'static SyntaxReference> {
        let mut known = lock(&self.known);
        if let Some(found) = known.get(key) {
            return *found;
        }
        // Names that models use, but grammars do not list.
        let word = match key {
            "shell" | "sh" | "shellscript" | "zsh" | "shell-session" => "bash",
            "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
            "golang" => "go",
            "c++" | "h++" => "cpp",
            "c#" => "cs",
            "py3" | "python3" => "python",
            "node" | "mjs" | "cjs" | "jsx" => "js",
            "mts" | "cts" => "ts",
            "dockerfile" => "Dockerfile",
            "makefile" => "Makefile",
            word => word,
        };
        let found = self
            .syntaxes
            .find_syntax_by_token(word)
            .or_else(|| self.syntaxes.find_syntax_by_extension(word))
            .filter(|syntax| syntax.name != "Plain Text");
        known.insert(key.to_owned(), found);
        found
    }
}

/// The state between two lines of a text. Cheap to clone.
#[derive(Clone)]
pub struct Highlighter {
    state: ParseState,
    stack: ScopeStack,
    is_broken: bool,
}

impl Highlighter {
    fn new(syntax: &SyntaxReference) -> Self {
        Self { state: ParseState::new(syntax), stack: ScopeStack::new(), is_broken: false }
    }

    /// Highlights the next line (without its line end). Returns ordered byte ranges that cover the line, with
    /// a role each; `None` for plain code.
    pub fn line(&mut self, line: &str) -> Vec<(Range<usize>, Option<Role>)> {
        let plain = || vec![(0..line.len(), None)];
        let (Some(ready), false) = (READY.get(), self.is_broken) else { return plain() };
        if line.len() > LINE_MAX_BYTES {
            return plain();
        }
        let mut text = String::with_capacity(line.len() + 1);
        text.push_str(line);
        text.push('\n');
        let Ok(ops) = self.state.parse_line(&text, &ready.syntaxes) else {
            // A grammar that fails once is not used again.
            self.is_broken = true;
            return plain();
        };
        let mut runs: Vec<(Range<usize>, Option<Role>)> = Vec::new();
        let mut from = 0;
        for (at, op) in ops {
            let at = at.min(line.len());
            self.push(&mut runs, from..at, line);
            from = from.max(at);
            if self.stack.apply(&op).is_err() {
                self.is_broken = true;
                break;
            }
        }
        self.push(&mut runs, from..line.len(), line);
        runs
    }

    fn push(&self, runs: &mut Vec<(Range<usize>, Option<Role>)>, range: Range<usize>, line: &str) {
        if range.is_empty() || !line.is_char_boundary(range.start) || !line.is_char_boundary(range.end) {
            return;
        }
        let role = self.stack.as_slice().iter().rev().find_map(|scope| role_of(*scope));
        match runs.last_mut() {
            Some((last, same)) if *same == role && last.end == range.start => last.end = range.end,
            _ => runs.push((range, role)),
        }
    }
}

/// Roles by prefix of the scope; the first match is used.
const ROLES: &[(&str, Role)] = &[
    ("comment", Role::SyntaxComment),
    ("punctuation.definition.comment", Role::SyntaxComment),
    ("punctuation.definition.string", Role::SyntaxString),
    ("string", Role::SyntaxString),
    ("constant", Role::SyntaxConstant),
    ("keyword.operator.word", Role::SyntaxKeyword),
    ("keyword.operator", Role::SyntaxPunctuation),
    ("keyword", Role::SyntaxKeyword),
    ("storage.type.function", Role::SyntaxKeyword),
    ("storage", Role::SyntaxKeyword),
    ("entity.name.function", Role::SyntaxFunction),
    ("support.function", Role::SyntaxFunction),
    ("variable.function", Role::SyntaxFunction),
    ("entity.name.tag", Role::SyntaxAttribute),
    ("entity.other.attribute-name", Role::SyntaxAttribute),
    ("meta.annotation", Role::SyntaxAttribute),
    ("entity.name", Role::SyntaxType),
    ("entity.other.inherited-class", Role::SyntaxType),
    ("support.type", Role::SyntaxType),
    ("support.class", Role::SyntaxType),
    ("support.macro", Role::SyntaxAttribute),
    ("variable", Role::SyntaxVariable),
    ("punctuation", Role::SyntaxPunctuation),
    ("markup.heading", Role::SyntaxKeyword),
    ("markup.inserted", Role::DiffPlus),
    ("markup.deleted", Role::DiffMinus),
];

thread_local! {
    static SCOPES: RefCell<HashMap<Scope, Option<Role>>> = RefCell::default();
}

fn role_of(scope: Scope) -> Option<Role> {
    SCOPES.with_borrow_mut(|known| {
        *known.entry(scope).or_insert_with(|| {
            let name = scope.build_string();
            let fits = |prefix: &str| {
                name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            ROLES.iter().find(|(prefix, _)| fits(prefix)).map(|(_, role)| *role)
        })
    })
}

/// Waits until these languages are ready.
#[cfg(test)]
pub(crate) fn wait_for(languages: &[&str]) {
    for language in languages {
        for _ in 0..2000 {
            if start(language, "").is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(start(language, "").is_some(), "{language}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        /// The languages that were not ready when this thread asked for them.
        static MISSING: std::cell::RefCell<HashSet<String>> = std::cell::RefCell::default();
    }

    pub(super) fn note_missing(language: &str) {
        MISSING.with_borrow_mut(|missing| missing.insert(language.to_owned()));
    }

    /// The epoch without the languages of other tests in the same process, which would repeat layouts that a test counts.
    pub(super) fn epoch_of_thread() -> u32 {
        let count = MISSING.with_borrow(|missing| missing.iter().filter(|key| is_warm(key)).count());
        u32::try_from(count).unwrap()
    }

    fn roles(highlighter: &mut Highlighter, line: &str) -> Vec<(String, Option<Role>)> {
        highlighter.line(line).into_iter().map(|(range, role)| (line[range].to_owned(), role)).collect()
    }

    #[test]
    fn rust_is_highlighted_across_lines() {
        wait_for(&["rust"]);
        let mut rust = start("rust", "").unwrap();
        let line = roles(&mut rust, "fn main() { /* open");
        assert!(line.contains(&("fn".to_owned(), Some(Role::SyntaxKeyword))), "{line:?}");
        assert!(line.contains(&("main".to_owned(), Some(Role::SyntaxFunction))), "{line:?}");
        let mut fork = rust.clone();
        assert_eq!(roles(&mut fork, "still"), [("still".to_owned(), Some(Role::SyntaxComment))]);
        assert_eq!(roles(&mut rust, "*/ 1").last().unwrap().1, Some(Role::SyntaxConstant));
    }

    #[test]
    fn runs_cover_the_line() {
        wait_for(&["rust", "py", "sh", "tsx", "dockerfile"]);
        for (language, line) in
            [("rust", "let s = \"日本\";"), ("py", "def f(): # ü"), ("sh", "echo \"$A\" | cat")]
        {
            let runs = start(language, "").unwrap().line(line);
            let joined: String = runs.iter().map(|(range, _)| &line[range.clone()]).collect();
            assert_eq!(joined, line);
        }
    }

    #[test]
    fn unknown_languages_and_long_lines_are_plain() {
        wait_for(&["rust"]);
        assert!(start("no such language", "").is_none());
        assert!(start("text", "").is_none());
        let long = "let a = 1;".repeat(500);
        assert_eq!(start("rust", "").unwrap().line(&long), [(0..long.len(), None)]);
    }
}
