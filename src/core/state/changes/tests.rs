use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::core::{Cx, Session, Setup};
use crate::model::{ToolContent, ToolKind};

struct TestApp(State);

impl TestApp {
    fn new() -> Self {
        let setup = Setup { folder: "/code/shop".into(), ..Setup::default() };
        Self(crate::core::start(setup, &mut Cx::new(Instant::now())))
    }

    fn session(&mut self) -> &mut Session {
        let key = self.0.active;
        self.0.sessions.get_mut(&key).unwrap()
    }

    fn call(&mut self, status: ToolStatus, path: &str, change: DiffChange, line: Option<u32>) {
        let diff = FileDiff { path: path.into(), change };
        let mut call = ToolCall::new("t".into(), Instant::now());
        (call.status, call.kind) = (status, ToolKind::Edit);
        call.content = vec![ToolContent::Diff(diff.clone())];
        let start = line.map(|line| PieceStart::at(line, true));
        let position = DiffPosition::Lines(vec![start]);
        call.positions = vec![crate::model::LocatedDiff { diff, position, is_done: true }];
        self.session().transcript.push(1, ItemBody::Tool(Box::new(call)));
    }

    fn edit(&mut self, path: &str, old: &str, new: &str, line: Option<u32>) {
        let old = (!old.is_empty()).then(|| old.into());
        self.call(ToolStatus::Completed, path, DiffChange::Texts { old, new: new.into() }, line);
    }

    /// Each file as `path: line old>new, …`.
    fn changes(&self) -> Vec<String> {
        let part = |part: &ChangePart| {
            let line = first_line(part).map_or("?".to_owned(), |line| line.to_string());
            match &part.diff.change {
                DiffChange::Texts { old, new } => format!("{line} {}>{new}", old.as_deref().unwrap_or("-")),
                DiffChange::Patch(text) => format!("{line} patch {text}"),
            }
        };
        let file = |file: &ChangedFile| {
            let parts: Vec<String> = file.parts.iter().map(part).collect();
            format!("{}: {}", file.path.display(), parts.join(", ")).replace('\n', "/")
        };
        changed_files(&self.0, self.0.active).iter().map(file).collect()
    }
}

#[test]
fn changes_are_ordered_by_file_and_line() {
    let mut app = TestApp::new();
    app.edit("/code/shop/b.rs", "x", "y", Some(9));
    app.edit("./src/../a.rs", "one", "two", None);
    app.edit("b.rs", "v", "w", Some(3));
    assert_eq!(app.changes(), ["/code/shop/a.rs: ? one>two", "/code/shop/b.rs: 3 v>w, 9 x>y"]);
}

#[test]
fn an_edit_of_an_edit_is_one_change() {
    let mut app = TestApp::new();
    app.edit("a", "one\n", "two\nthree\n", Some(5));
    app.edit("a", "three\n", "four\n", Some(6));
    assert_eq!(app.changes(), ["/code/shop/a: 5 one/>two/four/"]);
    // A larger change that contains the smaller one.
    app.edit("a", "zero\ntwo\nfour\n", "zero\nfive\n", Some(4));
    assert_eq!(app.changes(), ["/code/shop/a: 4 zero/one/>zero/five/"]);
    // One that begins in text written before and ends after it.
    app.edit("p", "a\n", "b\nc\n", Some(5));
    app.edit("p", "c\nz\n", "d\n", Some(6));
    assert_eq!(app.changes()[1], "/code/shop/p: 5 a/z/>b/d/");
    // An edited new file is still new.
    app.edit("n", "", "first\n", None);
    app.edit("n", "first", "second", Some(1));
    assert_eq!(app.changes()[1], "/code/shop/n: 1 ->second/");
}

#[test]
fn undone_changes_are_removed_and_others_stay() {
    let mut app = TestApp::new();
    app.edit("a", "one", "two", Some(3));
    app.edit("a", "two", "one", Some(3));
    assert_eq!(app.changes(), Vec::<String>::new());
    app.edit("a", "p", "q q", None);
    app.edit("a", "q", "r", None);
    app.call(ToolStatus::Completed, "a", DiffChange::Patch("@@\n-x".into()), None);
    app.call(ToolStatus::Completed, "a", DiffChange::Patch("@@\n-x".into()), None);
    assert_eq!(app.changes(), ["/code/shop/a: ? p>q q, ? q>r, ? patch @@/-x"]);
}

#[test]
fn equal_changes_at_different_places_are_not_joined() {
    let mut app = TestApp::new();
    app.edit("m", "def a():\n    pass\n", "def a():\n    return None\n", Some(1));
    app.edit("m", "    return None\n", "    return 42\n", Some(44));
    assert_eq!(
        app.changes(),
        ["/code/shop/m: 1 def a():/    pass/>def a():/    return None/, 44     return None/>    return 42/"]
    );
    // Nor where it is unknown whether the place is the same.
    app.edit("u", "one", "two", None);
    app.edit("u", "two", "three", None);
    assert_eq!(app.changes()[1], "/code/shop/u: ? one>two, ? two>three");
}

proptest! {
    /// Undoing the listed changes from the end of the file to its start gives the file before all edits.
    #[test]
    fn the_changes_of_a_file_are_the_sum_of_its_edits(
        lines in prop::collection::vec("[ab]", 1..8),
        edits in prop::collection::vec((0..8_usize, 0..4_usize, prop::collection::vec("[abc]", 0..4)), 1..8),
    ) {
        let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let mut app = TestApp::new();
        let mut now = lines.clone();
        for (at, count, new) in &edits {
            let at = *at.min(&now.len());
            let end = (at + count).min(now.len());
            let old = join(&now[at..end]);
            if old.is_empty() && new.is_empty() {
                continue;
            }
            app.edit("f", &old, &join(new), u32::try_from(at + 1).ok());
            now.splice(at..end, new.clone());
        }
        let files = changed_files(&app.0, app.0.active);
        let mut text = join(&now);
        for part in files.iter().flat_map(|file| file.parts.iter().rev()) {
            let (old, new) = texts(part).unwrap();
            let at = line_start(&text, first_line(part).unwrap() - 1).unwrap();
            prop_assert!(text[at..].starts_with(&*new), "{new:?} at {at} of {text:?}");
            text.replace_range(at..at + new.len(), &old);
        }
        prop_assert_eq!(text, join(&lines));
    }
}

#[test]
fn lines_added_above_move_later_changes() {
    let mut app = TestApp::new();
    app.edit("a", "x", "y", Some(20));
    app.edit("a", "v", "w\nw\nw", Some(3));
    assert_eq!(app.changes(), ["/code/shop/a: 3 v>w/w/w, 22 x>y"]);
}

#[test]
fn successful_calls_count_including_those_of_subagents() {
    let mut app = TestApp::new();
    let texts = || DiffChange::Texts { old: None, new: "x".into() };
    for status in [ToolStatus::Pending, ToolStatus::InProgress, ToolStatus::Failed, ToolStatus::Cancelled] {
        app.call(status, "a", texts(), None);
    }
    assert!(changes_key(&app.0, app.0.active).is_empty());
    let root = app.0.active;
    let child = app.0.add_session();
    app.0.active = child;
    app.session().parent = Some(root);
    app.call(ToolStatus::Completed, "c", texts(), None);
    app.0.active = root;
    assert_eq!(app.changes(), ["/code/shop/c: ? ->x"]);
    assert_eq!(changes_key(&app.0, root), [(child, ItemId(0), 0)]);
}
