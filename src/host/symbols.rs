//! Finds symbols in the `tags` file of a folder, for mentions in prompts.
//!
//! Reads the plain and the extended format of ctags, sorted or not, when the first name is searched and after each
//! change. Source: the man page tags(5) of Universal Ctags.
//! Invariants: the tags file and the files that it names are read inside the session's roots only; sizes are limited; a
//! found symbol contains no control characters.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tokio::sync::mpsc::UnboundedSender;

use super::fs::{Glance, glance};
use crate::escape;
use crate::model::{FileQuery, FoundSymbol, ServiceEvent, symbol_name};

const TAGS_FILE: &str = "tags";
/// Maximum size of the tags file.
const TAGS_MAX_BYTES: u64 = 32 << 20;
/// Maximum number of symbols, and of bytes in the line of one.
const TAGS_MAX: usize = 1_000_000;
const LINE_MAX_BYTES: usize = 4 << 10;
/// Maximum number of symbols in an answer, and of matches whose files are read.
const FOUND_MAX: usize = 20;
const LOOKED_AT_MAX: usize = 60;
/// Maximum size of a source file in which a line is looked up, and of all for an answer.
const SOURCE_MAX_BYTES: u64 = 16 << 20;
const SOURCES_MAX_BYTES: usize = 32 << 20;
/// The kinds that most languages abbreviate by the same letter, for files without descriptions.
const KINDS: [(&str, &str); 12] = [
    ("c", "class"),
    ("d", "macro"),
    ("e", "enumerator"),
    ("f", "function"),
    ("g", "enum"),
    ("i", "interface"),
    ("m", "member"),
    ("n", "module"),
    ("p", "prototype"),
    ("s", "struct"),
    ("t", "type"),
    ("v", "variable"),
];
/// Number of symbols that are matched before a newer query is looked for.
const STEP: usize = 20_000;

/// Answers queries until none arrives for a time; answers are sent as [`ServiceEvent::SymbolsFound`].
pub(super) fn run(
    root: &Path,
    idle: Duration,
    queries: &Receiver<FileQuery>,
    services: &UnboundedSender<ServiceEvent>,
) {
    let mut tags = Tags::default();
    let mut next = queries.recv().map_err(|_| RecvTimeoutError::Disconnected);
    while let Ok(mut query) = next {
        while let Ok(newer) = queries.try_recv() {
            query = newer;
        }
        if let Some(problem) = tags.refresh(root, &query.roots) {
            let _ = services.send(ServiceEvent::Problem(problem));
        }
        let mut newer = None;
        let mut is_obsolete = || {
            newer = queries.try_recv().ok();
            newer.is_some()
        };
        let found = symbol_name(&query.query).map(|name| tags.find(name, &mut is_obsolete));
        if newer.is_none() {
            let symbols = Sources::new(root, &query.roots).locate(&tags, found.unwrap_or_default());
            let FileQuery { session, query, .. } = query;
            let has_tags = !tags.lines.is_empty();
            if services.send(ServiceEvent::SymbolsFound { session, query, symbols, has_tags }).is_err() {
                return;
            }
        }
        next = newer.map_or_else(|| queries.recv_timeout(idle), Ok);
    }
}

/// The content of a tags file.
#[derive(Debug, Default)]
struct Tags {
    /// When the file was changed, and its size.
    stamp: Option<(Option<SystemTime>, u64)>,
    bytes: Vec<u8>,
    lines: Vec<usize>,
    /// Whether names and paths contain escape sequences.
    is_escaped: bool,
    /// The names of kinds by their letter; `None` if they differ between languages.
    kinds: BTreeMap<String, Option<String>>,
}

impl Tags {
    /// Reads the file again if it has changed. Returns a problem that the user should know.
    fn refresh(&mut self, root: &Path, roots: &[PathBuf]) -> Option<String> {
        let path = root.join(TAGS_FILE);
        let meta = path.metadata().ok().filter(std::fs::Metadata::is_file);
        let stamp = meta.map(|meta| (meta.modified().ok(), meta.len()));
        if stamp == self.stamp {
            return None;
        }
        *self = Self { stamp, ..Self::default() };
        if stamp.is_some_and(|(_, bytes)| bytes > TAGS_MAX_BYTES) {
            let max = TAGS_MAX_BYTES >> 20;
            return Some(format!("The file `tags` is larger than {max} MiB; its symbols are not listed."));
        }
        if let Glance::Text(bytes) = glance(&path, roots, TAGS_MAX_BYTES) {
            self.read(bytes);
        }
        None
    }

    fn read(&mut self, bytes: Vec<u8>) {
        if bytes.contains(&0) {
            return;
        }
        let mut start = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b"!_TAG_") {
                self.read_header(&String::from_utf8_lossy(line));
            } else if line.len() <= LINE_MAX_BYTES && memchr::memchr_iter(b'\t', line).nth(1).is_some() {
                self.lines.push(start);
                if self.lines.len() == TAGS_MAX {
                    break;
                }
            }
            start += line.len();
        }
        self.bytes = bytes;
    }

    /// Reads a pseudo tag, which describes the file.
    fn read_header(&mut self, line: &str) {
        let mut parts = line.trim_end().split('\t');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else { return };
        if name == "!_TAG_OUTPUT_MODE" {
            self.is_escaped = value == "u-ctags";
        } else if name.starts_with("!_TAG_KIND_DESCRIPTION")
            && let Some((ch, kind)) = value.split_once(',')
        {
            let known = self.kinds.entry(ch.to_owned()).or_insert_with(|| Some(kind.to_owned()));
            if known.as_deref() != Some(kind) {
                *known = None;
            }
        }
    }

    fn line(&self, start: usize) -> Option<&str> {
        let rest = self.bytes.get(start..)?;
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        std::str::from_utf8(rest.get(..end)?).ok()
    }

    fn name(&self, start: usize) -> Option<&str> {
        let rest = self.bytes.get(start..)?;
        std::str::from_utf8(rest.get(..memchr::memchr(b'\t', rest)?)?).ok()
    }

    /// The starts of the best matching lines, best first. Stops without a result if the query is obsolete.
    fn find(&self, name: &str, is_obsolete: &mut dyn FnMut() -> bool) -> Vec<usize> {
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::new(name, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let mut letters = Vec::new();
        let mut found: Vec<(Reverse<u32>, usize, usize)> = Vec::new();
        for lines in self.lines.chunks(STEP) {
            for start in lines {
                let Some(name) = self.name(*start) else { continue };
                if let Some(score) = pattern.score(Utf32Str::new(name, &mut letters), &mut matcher) {
                    found.push((Reverse(score), name.len(), *start));
                }
            }
            if is_obsolete() {
                return Vec::new();
            }
        }
        if found.len() > LOOKED_AT_MAX {
            found.select_nth_unstable(LOOKED_AT_MAX);
            found.truncate(LOOKED_AT_MAX);
        }
        found.sort_unstable();
        found.into_iter().map(|(_, _, start)| start).collect()
    }

    fn kind(&self, kind: &str) -> String {
        let common = || KINDS.iter().find(|(ch, _)| *ch == kind).map(|(_, kind)| (*kind).to_owned());
        let described = self.kinds.get(kind).cloned().unwrap_or_else(common);
        described.unwrap_or_else(|| kind.to_owned())
    }

    fn unescaped(&self, text: &str) -> String {
        if !self.is_escaped || !text.contains('\\') {
            return text.to_owned();
        }
        // The escape sequences of control characters lead to a name that is not offered.
        text.replace("\\t", "\t").replace("\\\\", "\\")
    }
}

/// A line of the tags file.
#[derive(Debug, PartialEq, Eq)]
struct Tag<'a> {
    name: &'a str,
    file: &'a str,
    pattern: Option<LinePattern>,
    kind: &'a str,
    line: Option<u32>,
    /// The last line of what the symbol names.
    end: Option<u32>,
}

impl<'a> Tag<'a> {
    /// Parses `name<Tab>file<Tab>address`, and in the extended format `;"` and fields after that.
    fn parse(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('\t')?;
        let (file, mut rest) = rest.split_once('\t')?;
        let mut tag = Tag { name, file, pattern: None, kind: "", line: None, end: None };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            tag.line = rest.get(..digits)?.parse().ok();
            rest = rest.get(digits..)?;
            // The combined form `12;/pattern/`.
            rest = rest.strip_prefix(';').filter(|rest| rest.starts_with(['/', '?'])).unwrap_or(rest);
        }
        if rest.starts_with(['/', '?']) {
            let (pattern, after) = LinePattern::parse(rest)?;
            (tag.pattern, rest) = (Some(pattern), after);
        }
        let fields = rest.strip_prefix(";\"").unwrap_or_default();
        for field in fields.split('\t').filter(|field| !field.is_empty()) {
            match field.split_once(':') {
                None => tag.kind = field,
                Some(("kind", kind)) => tag.kind = kind,
                Some(("line", line)) => tag.line = line.parse().ok(),
                Some(("end", end)) => tag.end = end.parse().ok(),
                Some(_) => {}
            }
        }
        (tag.line.is_some() || tag.pattern.is_some()).then_some(tag)
    }
}

/// The search pattern of a tag. Except for anchors, it is plain text.
#[derive(Debug, PartialEq, Eq)]
struct LinePattern {
    text: String,
    is_at_start: bool,
    is_at_end: bool,
}

impl LinePattern {
    /// Parses `/^text$/` or `?^text$?`, and returns the rest after it. A backslash escapes the next character.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let mut letters = text.char_indices();
        let (_, delimiter) = letters.next()?;
        let mut pattern = Self { text: String::new(), is_at_start: false, is_at_end: false };
        while let Some((at, ch)) = letters.next() {
            match ch {
                '\\' => pattern.text.push(letters.next()?.1),
                '^' if at == 1 => pattern.is_at_start = true,
                '$' if text.get(at + 1..)?.starts_with(delimiter) => pattern.is_at_end = true,
                _ if ch == delimiter => {
                    let rest = text.get(at + 1..)?;
                    return (!pattern.text.trim().is_empty()).then_some((pattern, rest));
                }
                _ => pattern.text.push(ch),
            }
        }
        None
    }

    fn is_match(&self, line: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match (self.is_at_start, self.is_at_end) {
            (true, true) => line == text,
            (true, false) => line.starts_with(text),
            (false, true) => line.ends_with(text),
            (false, false) => memchr::memmem::find(line, text).is_some(),
        }
    }
}

/// The files in which the lines of symbols are looked up.
struct Sources<'a> {
    root: &'a Path,
    roots: &'a [PathBuf],
    files: HashMap<String, Option<Vec<u8>>>,
    left_bytes: usize,
}

impl<'a> Sources<'a> {
    fn new(root: &'a Path, roots: &'a [PathBuf]) -> Self {
        Self { root, roots, files: HashMap::new(), left_bytes: SOURCES_MAX_BYTES }
    }

    /// The symbols of these lines whose files are inside the roots.
    fn locate(&mut self, tags: &Tags, starts: Vec<usize>) -> Vec<FoundSymbol> {
        let symbols = starts.into_iter().filter_map(|start| {
            let tag = Tag::parse(tags.line(start)?)?;
            let (name, path) = (tags.unescaped(tag.name), self.path(&tags.unescaped(tag.file))?);
            let kind = tags.kind(tag.kind);
            let is_plain =
                |text: &String| text.chars().all(|c| escape::is_plain(c) && c != '\n' && c != '\t');
            if ![&name, &path, &kind].into_iter().all(is_plain) {
                return None;
            }
            let lines = lines_of(&tag, self.read(&path)?);
            Some(FoundSymbol { name, kind, path, lines })
        });
        symbols.take(FOUND_MAX).collect()
    }

    /// A path of the tags file relative to the folder; `None` if it leads out of it.
    fn path(&self, file: &str) -> Option<String> {
        let file = Path::new(file);
        let relative = if file.is_absolute() {
            let real = self.root.canonicalize().ok();
            let folders = [Some(self.root), real.as_deref()];
            folders.into_iter().flatten().find_map(|folder| file.strip_prefix(folder).ok())?
        } else {
            file
        };
        let mut path = String::new();
        for part in relative.components() {
            match part {
                Component::Normal(name) if path.is_empty() => path.push_str(name.to_str()?),
                Component::Normal(name) => path.extend(["/", name.to_str()?]),
                Component::CurDir => {}
                _ => return None,
            }
        }
        Some(path).filter(|path| !path.is_empty())
    }

    /// The content of a file; `None` if it is missing, outside of the roots, or too large.
    fn read(&mut self, path: &str) -> Option<&[u8]> {
        if !self.files.contains_key(path) {
            let max = SOURCE_MAX_BYTES.min(self.left_bytes as u64);
            let content = match glance(&self.root.join(path), self.roots, max) {
                Glance::Text(bytes) => Some(bytes),
                Glance::Missing | Glance::Refused => None,
            };
            self.left_bytes -= content.as_ref().map_or(0, Vec::len).min(self.left_bytes);
            self.files.insert(path.to_owned(), content);
        }
        self.files.get(path)?.as_deref()
    }
}

/// The lines of a symbol in its file: where its pattern is, the match next to the known line if there are several.
fn lines_of(tag: &Tag<'_>, file: &[u8]) -> Option<RangeInclusive<u32>> {
    let lines = || (1_u32..).zip(file.split(|byte| *byte == b'\n'));
    let count = u32::try_from(file.split(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX);
    let noted = tag.line.filter(|line| (1..=count).contains(line));
    let found = tag.pattern.as_ref().and_then(|pattern| {
        let is_match = |line: &[u8]| pattern.is_match(line.strip_suffix(b"\r").unwrap_or(line));
        let matches = lines().filter(|(_, line)| is_match(line)).map(|(number, _)| number);
        matches.min_by_key(|number| number.abs_diff(tag.line.unwrap_or(1)))
    });
    let first = found.or(noted)?;
    let length = tag.end.zip(tag.line).map_or(0, |(end, line)| end.saturating_sub(line));
    Some(first..=first.saturating_add(length).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;

    struct Rig {
        folder: tempfile::TempDir,
        tags: Tags,
    }

    impl Rig {
        fn new(files: &[(&str, &str)]) -> Self {
            let rig = Self { folder: tempfile::tempdir().unwrap(), tags: Tags::default() };
            std::fs::create_dir(rig.root()).unwrap();
            for (path, text) in files {
                rig.write(path, text);
            }
            rig
        }

        fn root(&self) -> PathBuf {
            self.folder.path().canonicalize().unwrap().join("w")
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.root().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn symbols(&mut self, name: &str) -> Vec<FoundSymbol> {
            let root = self.root();
            let roots = [root.clone()];
            assert_eq!(self.tags.refresh(&root, &roots), None);
            let found = self.tags.find(name, &mut || false);
            Sources::new(&root, &roots).locate(&self.tags, found)
        }

        /// The symbols as `kind name path:lines`.
        fn find(&mut self, name: &str) -> Vec<String> {
            let lines =
                |symbol: &FoundSymbol| symbol.lines.as_ref().map(|lines| (*lines.start(), *lines.end()));
            let line = |it: FoundSymbol| format!("{} {} {} {:?}", it.kind, it.name, it.path, lines(&it));
            self.symbols(name).into_iter().map(line).collect()
        }
    }

    const SOURCE: &str = "use x;\n\nfn parse(a: u8) {\n    a / 2\n}\n\nfn run() {}\n";

    #[test]
    fn extended_and_plain_tags_are_read_in_any_order() {
        let tags = "!_TAG_FILE_FORMAT\t2\t/extended format/\n\
            !_TAG_KIND_DESCRIPTION!Rust\tf,function\t/Function/\n\
            run\tsrc/a.rs\t/^fn run() {}$/;\"\tf\tline:7\n\
            parse\t./src/a.rs\t/^fn parse(a: u8) {$/;\"\tkind:function\tline:3\tend:5\n\
            half\tsrc/a.rs\t?a \\/ 2?\n\
            use\tsrc/a.rs\t1;\"\tmodule\n\
            both\tsrc/a.rs\t7;/^fn run() {}$/;\"\tf\n";
        let mut rig = Rig::new(&[("src/a.rs", SOURCE), ("tags", tags)]);
        assert_eq!(rig.find("run"), ["function run src/a.rs Some((7, 7))"]);
        assert_eq!(rig.find("parse"), ["function parse src/a.rs Some((3, 5))"]);
        assert_eq!(rig.find("half"), [" half src/a.rs Some((4, 4))"]);
        assert_eq!(rig.find("use"), ["module use src/a.rs Some((1, 1))"]);
        assert_eq!(rig.find("both"), ["function both src/a.rs Some((7, 7))"]);
        assert_eq!(rig.find("prs"), ["function parse src/a.rs Some((3, 5))"], "a part of the letters");
        assert_eq!(rig.find("").len(), 5);
    }

    #[test]
    fn a_symbol_that_moved_is_found_by_its_pattern() {
        let tags = "parse\ta.rs\t/^fn parse(a: u8) {$/;\"\tf\tline:3\tend:5\n\
            gone\ta.rs\t/^fn gone() {}$/;\"\tf\nold\ta.rs\t/^fn old() {}$/;\"\tf\tline:2\n";
        let mut rig = Rig::new(&[("a.rs", &format!("// new\r\n{SOURCE}")), ("tags", tags)]);
        assert_eq!(rig.find("parse"), ["function parse a.rs Some((4, 6))"]);
        assert_eq!(rig.find("gone"), ["function gone a.rs None"]);
        assert_eq!(rig.find("old"), ["function old a.rs Some((2, 2))"]);
        rig.write("a.rs", format!("{SOURCE}{SOURCE}"));
        assert_eq!(rig.find("parse"), ["function parse a.rs Some((3, 5))"], "the nearest of several");
    }

    #[test]
    fn a_changed_tags_file_is_read_again() {
        let mut rig = Rig::new(&[("a.rs", SOURCE), ("tags", "one\ta.rs\t1\n")]);
        assert_eq!(rig.find("one").len(), 1);
        rig.write("tags", "three\ta.rs\t3\n");
        assert_eq!((rig.find("one").len(), rig.find("three").len()), (0, 1));
        std::fs::remove_file(rig.root().join("tags")).unwrap();
        assert_eq!(rig.find("three").len(), 0);
    }

    #[test]
    fn symbols_never_lead_out_of_the_roots() {
        let mut rig = Rig::new(&[("a.rs", SOURCE), ("my file.rs", SOURCE)]);
        std::fs::write(rig.folder.path().join("secret"), SOURCE).unwrap();
        fixtures::link("../secret", rig.root().join("link.rs"));
        let root = rig.root();
        let (root, above) = (root.display(), rig.folder.path().display());
        let tags = ["../secret", "link.rs", "src/../../secret", "/etc/passwd", "", ".", "missing.rs"]
            .map(|path| format!("sym\t{path}\t1\n"));
        let inside = format!("sym\t{root}/my file.rs\t3\nsym\t{above}/secret\t3\nsym\ta.rs\t9\n");
        rig.write("tags", tags.concat() + &inside);
        let mut found = rig.find("sym");
        found.sort();
        assert_eq!(found, [" sym a.rs None", " sym my file.rs Some((3, 3))"]);
        // The tags file may be a link as well.
        std::fs::remove_file(rig.root().join("tags")).unwrap();
        std::fs::write(rig.folder.path().join("tags"), "sym\ta.rs\t1\n").unwrap();
        fixtures::link("../tags", rig.root().join("tags"));
        assert_eq!(rig.find("sym"), Vec::<String>::new());
    }

    #[test]
    fn damaged_and_hostile_tags_are_left_out() {
        let lines = [
            "sym\ta.rs\t/open",
            "sym\ta.rs\t//;\"\tf",
            "sym\ta.rs\t/^$/;\"\tf",
            "sym\ta.rs\t/\\",
            "sym\ta.rs\tcall system('x')",
            "sym\ta.rs",
            "sym\u{1b}[31m\ta.rs\t1",
            "sym\u{202e}\ta.rs\t1",
            "sym\ta.rs\t1;\"\tf\u{7}",
            "sym\ta.rs\t99999999999999",
            "\t\t\t",
            "",
        ];
        let long = format!("sym\ta.rs\t1;\"\tf\t{}\n", "x".repeat(LINE_MAX_BYTES));
        let mut rig = Rig::new(&[("a.rs", SOURCE), ("tags", &(lines.join("\n") + "\n" + &long))]);
        assert_eq!(rig.find("sym"), Vec::<String>::new());
        rig.write("tags", b"sym\ta.rs\t1\nb\xff\ta.rs\t1\nsym2\ta.rs\t1\n");
        assert_eq!(rig.find("sym").len(), 2, "other lines than the damaged one are used");
        rig.write("tags", b"sym\ta.rs\t1\n\0\n");
        assert_eq!(rig.find("sym").len(), 0, "not a text file");
    }

    #[test]
    fn a_tags_file_that_is_too_large_is_reported_once() {
        let mut rig = Rig::new(&[("a.rs", SOURCE)]);
        let file = std::fs::File::create(rig.root().join("tags")).unwrap();
        file.set_len(TAGS_MAX_BYTES + 1).unwrap();
        let (root, roots) = (rig.root(), [rig.root()]);
        assert!(rig.tags.refresh(&root, &roots).is_some_and(|problem| problem.contains("32 MiB")));
        assert_eq!(rig.tags.refresh(&root, &roots), None);
    }

    #[test]
    fn names_of_kinds_that_differ_between_languages_are_not_used() {
        let tags = "!_TAG_KIND_DESCRIPTION!C\tf,function\t/x/\n!_TAG_KIND_DESCRIPTION!Vue\tf,field\t/x/\n\
            !_TAG_KIND_DESCRIPTION!C\tm,member\t/x/\n!_TAG_OUTPUT_MODE\tu-ctags\t/x/\n\
            a\\\\b\ta.rs\t1;\"\tf\nbee\ta.rs\t1;\"\tm\n";
        let mut rig = Rig::new(&[("a.rs", SOURCE), ("tags", tags)]);
        let mut found = rig.find("");
        found.sort();
        assert_eq!(found, ["f a\\b a.rs Some((1, 1))", "member bee a.rs Some((1, 1))"]);
    }
}
