//! What cannot be saved is written to files.

use std::collections::BTreeSet;

use super::*;
use crate::host::os::fixtures;

/// Makes every write of an event fail, or ends that. Everything can be read.
fn fail(dir: &tempfile::TempDir, fails: bool) {
    let trigger = "CREATE TRIGGER fail BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'no'); END";
    let sql = if fails { trigger } else { "DROP TRIGGER fail" };
    faults::outside(dir).execute_batch(sql).unwrap();
}

/// The files for unsaved changes in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().contains("parlor-unsaved-")).collect()
}

fn read(path: &Path) -> Document {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn prompts(document: &Document) -> Vec<&str> {
    let prompts = document.events.iter().filter_map(|event| match &event.record {
        Record::Prompt { text, .. } => Some(text.as_str()),
        _ => None,
    });
    prompts.collect()
}

fn unsaved(news: &[StoreNews]) -> Vec<&Option<Unsaved>> {
    news.iter().filter_map(|news| if let StoreNews::Unsaved(it) = news { Some(it) } else { None }).collect()
}

#[test]
fn a_failure_reports_the_unsaved_turns() {
    let (dir, store) = store();
    store.count().unwrap();
    fail(&dir, true);
    let (mut writer, mut received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), ended(1)]);
    writer.keep_now(vec![prompt(2, "two")]);
    writer.keep_for(SessionKey(2), vec![head("s2"), Note::Draft("half".to_owned())]);
    writer.keep_now(vec![ended(2)]);
    let news = store_news(&mut received);
    let reports: Vec<_> = unsaved(&news).into_iter().flatten().collect();
    let turns: Vec<Vec<usize>> =
        reports.iter().map(|report| report.turns.values().map(BTreeSet::len).collect()).collect();
    assert_eq!(turns, [vec![1], vec![2], vec![2, 0]], "reported again when it changed");
    assert_eq!(reports[2].folder.as_deref(), Some(store.root()));
    let is_saved = |news: &StoreNews| matches!(news, StoreNews::SavedAs { .. });
    assert!(!news.iter().any(is_saved), "nothing is in the store");
    fail(&dir, false);
    writer.keep_now(vec![Note::Draft("after".to_owned())]);
    let news = store_news(&mut received);
    assert_eq!(unsaved(&news), [&None]);
    assert_eq!(news.iter().filter(|news| is_saved(news)).count(), 2);
    assert_eq!(writer.finish_now(&[]), None);
    assert_eq!(files(store.root()), Vec::<PathBuf>::new());
}

#[test]
fn a_file_has_the_saved_turns_as_well() {
    let (dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), ended(1)]);
    let saved = store.list(&ListFilter::default()).unwrap().remove(0).uid;
    fail(&dir, true);
    writer.keep_now(vec![prompt(2, "two"), ended(2), Note::Draft("half".to_owned())]);
    writer.keep_now(vec![prompt(3, "three")]);
    let reported = writer.finish_now(&[]).unwrap();
    let [file] = files(store.root()).try_into().unwrap();
    let document = read(&file);
    assert_eq!(prompts(&document), ["one", "two", "three"]);
    assert_eq!(document.session.draft, "half");
    assert_ne!(document.session.id, saved, "the import adds a session");
    assert_eq!(document.session.came_from, None);
    assert_eq!(fixtures::mode(&file), 0o600);
    let quoted = shell_word(file.to_str().unwrap());
    assert!(reported.starts_with("2 turns were not saved: a row does not fit"), "{reported}");
    assert!(reported.contains(&format!("parlor sessions import {quoted}\n")), "{reported}");
    assert!(reported.contains(&format!("not imported; they are in: {quoted}")), "{reported}");
}

#[test]
fn only_the_rest_is_written_if_the_store_is_unreadable() {
    let (dir, store) = store();
    let uid = record(&store, vec![head("s1"), prompt(1, "one"), ended(1)]);
    store.reopen(&uid).unwrap();
    faults::outside(&dir).pragma_update(None, "user_version", 999).unwrap();
    let (mut writer, _received) = recorder::tests::writer(&another(&dir));
    let Note::Head(mut known) = head("s1") else { unreachable!() };
    known.saved_as = Some(uid.clone());
    let reopened = SessionRow { uid: uid.clone(), next_seq: 2, ..SessionRow::default() };
    writer.reopen(reopened);
    writer.keep_now(vec![Note::Head(known), prompt(2, "two"), ended(2)]);
    let reported = writer.finish_now(&[]).unwrap();
    let [file] = files(store.root()).try_into().unwrap();
    let document = read(&file);
    assert_eq!(prompts(&document), ["two"]);
    assert_eq!(document.session.came_from, Some(uid));
    assert!(reported.contains("Earlier turns could not be read"), "{reported}");
}

#[test]
fn a_copy_is_written_with_its_source() {
    let (dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), ended(1), prompt(2, "two"), ended(2)]);
    fail(&dir, true);
    let link = Note::CameFrom { session: SessionKey(1), saved_as: None, copied_turns: Some(1) };
    writer.keep_for(SessionKey(2), vec![link, head("s2"), prompt(2, "other")]);
    writer.finish_now(&[]).unwrap();
    let [file] = files(store.root()).try_into().unwrap();
    assert_eq!(prompts(&read(&file)), ["one", "other"]);
}

#[test]
fn files_are_never_overwritten() {
    let (dir, store) = store();
    store.count().unwrap();
    fail(&dir, true);
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one")]);
    let other = dir.path().join("other");
    let name = format!("parlor-unsaved-{}.json", writer.uid(SessionKey(1)));
    fs::write(store.root().join(&name), "mine").unwrap();
    let reported = writer.finish_now(std::slice::from_ref(&other)).unwrap();
    assert_eq!(fs::read_to_string(store.root().join(&name)).unwrap(), "mine");
    assert!(reported.contains(other.to_str().unwrap()), "{reported}");
    assert_eq!(prompts(&read(&other.join(&name))), ["one"]);
}

#[test]
fn lost_turns_are_reported_if_no_file_can_be_written() {
    let (dir, store) = store();
    store.count().unwrap();
    fail(&dir, true);
    let (mut writer, mut received) = recorder::tests::writer(&store);
    writer.use_folders(vec![dir.path().join("data").join(db::FILE).join("below")]);
    writer.keep_now(vec![head("s1"), prompt(1, "one")]);
    let news = store_news(&mut received);
    assert_eq!(unsaved(&news)[0].as_ref().unwrap().folder, None);
    let reported = writer.finish_now(&[]).unwrap();
    assert!(
        reported.starts_with("1 turn was not saved: ") && reported.ends_with("so they are lost."),
        "{reported}"
    );
}

#[test]
fn closing_marks_alone_need_no_file() {
    let (dir, store) = store();
    let (mut writer, _received) = recorder::tests::writer(&store);
    writer.keep_now(vec![head("s1"), prompt(1, "one"), ended(1), Note::Draft("half".to_owned())]);
    let trigger = "CREATE TRIGGER stop BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'no'); END";
    faults::outside(&dir).execute_batch(trigger).unwrap();
    let reported = writer.finish_now(&[]).unwrap();
    assert!(reported.ends_with("No turns or drafts are lost."), "{reported}");
    assert_eq!(files(store.root()), Vec::<PathBuf>::new());
}
