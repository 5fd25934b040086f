use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::app::{Session, Setup};
use crate::model::{ToolContent, ToolKind};

struct TestApp(State);

impl TestApp {
    fn new() -> Self {
        let setup = Setup { folder: "/code/shop".into(), ..Setup::default() };
        Self(crate::app::start(setup, Instant::now()).0)
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
        let start = line.map(|line| PieceStart { line, is_new: true });
        let place = DiffPlace::Lines(vec![start]);
        call.places = vec![crate::model::LocatedDiff { diff, place, is_done: true }];
        self.session().transcript.push(1, ItemBody::Tool(Box::new(call)));
    }

    fn edit(&mut self, path: &str, old: &str, new: &str, line: Option<u32>) {
        let old = (!old.is_empty()).then(|| old.into());
        self.call(ToolStatus::Completed, path, DiffChange::Texts { old, new: new.into() }, line);
    }

    /// `path: line old>new, …` for each file.
    fn told(&self) -> Vec<String> {
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
fn changes_stand_by_file_and_line() {
    let mut desk = TestApp::new();
    desk.edit("/code/shop/b.rs", "x", "y", Some(9));
    desk.edit("./src/../a.rs", "one", "two", None);
    desk.edit("b.rs", "v", "w", Some(3));
    assert_eq!(desk.told(), ["/code/shop/a.rs: ? one>two", "/code/shop/b.rs: 3 v>w, 9 x>y"]);
}

#[test]
fn an_edit_of_an_edit_is_one_change() {
    let mut desk = TestApp::new();
    desk.edit("a", "one\n", "two\nthree\n", Some(5));
    desk.edit("a", "three\n", "four\n", Some(6));
    assert_eq!(desk.told(), ["/code/shop/a: 5 one/>two/four/"]);
    // A larger change holds the smaller one.
    desk.edit("a", "zero\ntwo\nfour\n", "zero\nfive\n", Some(4));
    assert_eq!(desk.told(), ["/code/shop/a: 4 zero/one/>zero/five/"]);
    // One that begins in what was written before and ends behind it.
    desk.edit("p", "a\n", "b\nc\n", Some(5));
    desk.edit("p", "c\nz\n", "d\n", Some(6));
    assert_eq!(desk.told()[1], "/code/shop/p: 5 a/z/>b/d/");
    // A new file that is edited is still new.
    desk.edit("n", "", "first\n", None);
    desk.edit("n", "first", "second", Some(1));
    assert_eq!(desk.told()[1], "/code/shop/n: 1 ->second/");
}

#[test]
fn what_was_undone_is_gone_and_what_cannot_be_joined_stays() {
    let mut desk = TestApp::new();
    desk.edit("a", "one", "two", Some(3));
    desk.edit("a", "two", "one", Some(3));
    assert_eq!(desk.told(), Vec::<String>::new());
    desk.edit("a", "p", "q q", None);
    desk.edit("a", "q", "r", None);
    desk.call(ToolStatus::Completed, "a", DiffChange::Patch("@@\n-x".into()), None);
    desk.call(ToolStatus::Completed, "a", DiffChange::Patch("@@\n-x".into()), None);
    assert_eq!(desk.told(), ["/code/shop/a: ? p>q q, ? q>r, ? patch @@/-x"]);
}

#[test]
fn changes_at_different_places_are_not_joined_however_alike() {
    let mut desk = TestApp::new();
    desk.edit("m", "def a():\n    pass\n", "def a():\n    return None\n", Some(1));
    desk.edit("m", "    return None\n", "    return 42\n", Some(44));
    assert_eq!(
        desk.told(),
        ["/code/shop/m: 1 def a():/    pass/>def a():/    return None/, 44     return None/>    return 42/"]
    );
    // Nor where it is not known that the place is the same.
    desk.edit("u", "one", "two", None);
    desk.edit("u", "two", "three", None);
    assert_eq!(desk.told()[1], "/code/shop/u: ? one>two, ? two>three");
}

proptest! {
    /// What is shown, undone from the end of the file to its beginning, gives the file as it was before all edits.
    #[test]
    fn the_changes_of_a_file_are_the_sum_of_its_edits(
        lines in prop::collection::vec("[ab]", 1..8),
        edits in prop::collection::vec((0..8_usize, 0..4_usize, prop::collection::vec("[abc]", 0..4)), 1..8),
    ) {
        let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let mut desk = TestApp::new();
        let mut now = lines.clone();
        for (at, count, new) in &edits {
            let at = *at.min(&now.len());
            let end = (at + count).min(now.len());
            let old = join(&now[at..end]);
            if old.is_empty() && new.is_empty() {
                continue;
            }
            desk.edit("f", &old, &join(new), u32::try_from(at + 1).ok());
            now.splice(at..end, new.clone());
        }
        let files = changed_files(&desk.0, desk.0.active);
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
fn lines_that_came_above_move_what_stands_below() {
    let mut desk = TestApp::new();
    desk.edit("a", "x", "y", Some(20));
    desk.edit("a", "v", "w\nw\nw", Some(3));
    assert_eq!(desk.told(), ["/code/shop/a: 3 v>w/w/w, 22 x>y"]);
}

#[test]
fn only_calls_that_went_well_count_and_helpers_count_too() {
    let mut desk = TestApp::new();
    let texts = || DiffChange::Texts { old: None, new: "x".into() };
    for status in [ToolStatus::Pending, ToolStatus::InProgress, ToolStatus::Failed, ToolStatus::Cancelled] {
        desk.call(status, "a", texts(), None);
    }
    assert!(changes_key(&desk.0, desk.0.active).is_empty());
    let root = desk.0.active;
    let child = desk.0.add_session();
    desk.0.active = child;
    desk.session().parent = Some(root);
    desk.call(ToolStatus::Completed, "c", texts(), None);
    desk.0.active = root;
    assert_eq!(desk.told(), ["/code/shop/c: ? ->x"]);
    assert_eq!(changes_key(&desk.0, root), [(child, ItemId(0), 0)]);
}
