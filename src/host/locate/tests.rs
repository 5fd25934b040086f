use std::fs;
use std::path::Path;

use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::host::os::fixtures;
use crate::model::{DiffChange, FileDiff, ItemId, SessionKey};

fn texts(path: &Path, old: &str, new: &str) -> FileDiff {
    FileDiff { path: path.into(), change: DiffChange::Texts { old: Some(old.into()), new: new.into() } }
}

fn ask(diff: FileDiff, near: Option<u32>) -> LocateRequest {
    LocateRequest { path: diff.path.clone(), pieces: diff.pieces(), diff, near }
}

fn job(root: &Path, is_done: bool, requests: Vec<LocateRequest>) -> LocateJob {
    LocateJob { session: SessionKey(1), item: ItemId(2), roots: vec![root.into()], is_done, requests }
}

/// The result for a change in a file with this text.
fn place(file: &str, old: &str, new: &str, near: Option<u32>, is_done: bool) -> DiffPosition {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, file).unwrap();
    serve(job(dir.path(), is_done, vec![ask(texts(&path, old, new), near)])).remove(0).position
}

/// The same without the lines around it.
fn start(file: &str, old: &str, new: &str, near: Option<u32>, is_done: bool) -> DiffPosition {
    without_around(place(file, old, new, near, is_done))
}

fn without_around(mut position: DiffPosition) -> DiffPosition {
    if let DiffPosition::Lines(starts) = &mut position {
        starts.iter_mut().flatten().for_each(|start| start.around = None);
    }
    position
}

#[test]
fn the_lines_around_a_change_complete_it() {
    let file = "1\n2\n3\n4\n5 old;\n6\n7\n8\n9\n";
    let around = |file: &str, old: &str, new: &str| match place(file, old, new, None, false) {
        DiffPosition::Lines(starts) => starts[0].clone().unwrap().around,
        other => panic!("{other:?}"),
    };
    let texts = |file: &str, old: &str, new: &str| {
        around(file, old, new).map(|around| (around.before.to_string(), around.after.to_string()))
    };
    let some = |before: &str, after: &str| Some((before.to_owned(), after.to_owned()));
    assert_eq!(texts(file, "old", "new"), some("2\n3\n4\n5 ", ";\n6\n7\n8\n"));
    assert_eq!(texts(file, "5 old;", "new"), some("2\n3\n4\n", "\n6\n7\n8\n"));
    assert_eq!(texts(file, "5 old;\n", "new\n"), some("2\n3\n4\n", "6\n7\n8\n"));
    assert_eq!(texts(file, "1\n2", "x"), some("", "\n3\n4\n5 old;\n"));
    assert_eq!(texts(file, "9", "x"), some("6\n7\n8\n", ""));
    assert_eq!(texts("a\r\nb\r\nc\r\nd", "c", "x"), some("a\nb\n", "\nd"));
    // Line ends of the agent that differ from those of the context, and lines that are not for reading.
    assert_eq!(texts("a\r\nb\r\nc\r\nd", "b\r\nc", "x"), None);
    assert_eq!(texts(&format!("{}\nold\nx", "a".repeat(2000)), "old", "new"), None);
}

fn line(line: u32, is_new: bool) -> DiffPosition {
    DiffPosition::Lines(vec![Some(PieceStart::at(line, is_new))])
}

const NOWHERE: fn() -> DiffPosition = || DiffPosition::Lines(vec![None]);

const FILE: &str = "one\ntwo\nthree\nfour\ntwo\nfive\n";

#[test]
fn texts_are_found_before_and_after_the_change() {
    assert_eq!(start(FILE, "three\nfour", "drei\nvier", None, false), line(3, false));
    assert_eq!(start(FILE, "3\n4\n", "three\nfour\n", None, true), line(3, true));
    assert_eq!(start(FILE, "nothing", "like it", None, true), NOWHERE());
    // Line ends may differ, and the last one may be missing.
    assert_eq!(start("a\r\nb\r\nc\r\nd", "c\nd\n", "x\n", None, false), line(3, false));
}

#[test]
fn complete_files_are_recognized() {
    assert_eq!(start(FILE, FILE, "gone", None, false), DiffPosition::Whole);
    assert_eq!(start(FILE, "was", FILE.trim_end(), None, true), DiffPosition::Whole);
}

#[test]
fn the_line_of_the_agent_selects_among_several_places() {
    assert_eq!(start(FILE, "two", "zwei", None, false), NOWHERE());
    assert_eq!(start(FILE, "two", "zwei", Some(1), false), line(2, false));
    assert_eq!(start(FILE, "two", "zwei", Some(6), false), line(5, false));
    // Complete lines take precedence over parts of lines.
    assert_eq!(start("anew\nnew\n", "old", "new", None, true), line(2, true));
}

#[test]
fn the_longer_text_is_searched_first() {
    // "b" occurs elsewhere too, so the text before the change is more specific.
    assert_eq!(start("b\nx\na\nb\n", "a\nb", "b", None, false), line(3, false));
    // The change is already in the file although the call has not ended; "a" alone would yield the wrong line.
    assert_eq!(start("x\nnew\na\n", "a", "new\na", None, false), line(2, true));
}

#[test]
fn hunks_are_found_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, FILE).unwrap();
    let hunks = "@@\n three\n-four\n+vier\n@@\n-two\n+zwei\n";
    let diff = FileDiff { path: path.clone(), change: DiffChange::Patch(hunks.into()) };
    let found = without_around(serve(job(dir.path(), false, vec![ask(diff, None)])).remove(0).position);
    let start = |line| Some(PieceStart::at(line, false));
    assert_eq!(found, DiffPosition::Lines(vec![start(3), start(5)]));
}

#[test]
fn only_regular_files_in_the_folders_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("in");
    fs::create_dir(&inside).unwrap();
    let secret = dir.path().join("secret.txt");
    fs::write(&secret, FILE).unwrap();
    let link = inside.join("link.txt");
    fixtures::link(&secret, &link);
    let large = inside.join("large.txt");
    fs::write(&large, vec![b'\n'; usize::try_from(MAX_FILE_BYTES).unwrap() + 1]).unwrap();
    for path in [&secret, &link, &large, &inside, Path::new("/dev/zero")].map(Path::to_path_buf) {
        let found = serve(job(&inside, true, vec![ask(texts(&path, "three", "drei"), None)]));
        assert_eq!(found[0].position, DiffPosition::Unreadable, "{}", path.display());
    }
    let found = serve(job(&inside, true, vec![ask(texts(&inside.join("none"), "three", "drei"), None)]));
    assert_eq!(found[0].position, DiffPosition::Gone);
    // Line 1 does not depend on the content of the file.
    let found = serve(job(&inside, true, vec![ask(texts(&secret, "three", "drei"), Some(1))]));
    assert_eq!(found[0].position, line(1, false));
}

#[tokio::test]
async fn results_are_sent_as_events_and_obsolete_jobs_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, FILE).unwrap();
    let (events, mut receiver) = unbounded_channel();
    let mut locator = Locator::new(events);
    let diff = texts(&path, "three", "drei");
    locator.look(job(dir.path(), false, vec![ask(diff.clone(), None)]));
    let event = receiver.recv().await.unwrap();
    let ServiceEvent::DiffsLocated { session, item, mut found } = event else { panic!("{event:?}") };
    found[0].position = without_around(found[0].position.clone());
    let located = LocatedDiff { diff: diff.clone(), position: line(3, false), is_done: false };
    assert_eq!((session, item, found), (SessionKey(1), ItemId(2), vec![located]));

    let of = |item, is_done| LocateJob { item: ItemId(item), ..job(dir.path(), is_done, Vec::new()) };
    let saved = latest(vec![of(1, false), of(2, false), of(1, true)]);
    assert_eq!(saved, [of(2, false), of(1, true)]);
}
