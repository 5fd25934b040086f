use super::*;
use crate::model::{FolderReason, KeptEvent, Record};
use crate::services::store::SessionRow;
use crate::services::whereabouts;

/// A store with one session of this folder.
fn kept_in(root: &Path, folder: &Path) -> Store {
    let store = Store::open(root.join("data")).unwrap();
    let row = SessionRow {
        uid: "k1".to_owned(),
        agent: "fake".to_owned(),
        folder: folder.to_owned(),
        folder_mark: whereabouts::mark(folder),
        ..SessionRow::default()
    };
    let record = Record::Prompt { text: "hello".to_owned(), is_again: false };
    store.import(&row, &[KeptEvent { at_ms: 1, turn: 1, record }]).unwrap();
    store
}

#[test]
fn a_folder_under_another_name_is_told_and_offered() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (before, after) = (root.join("before"), root.join("after"));
    std::fs::create_dir(&before).unwrap();
    let store = kept_in(&root, &before);
    std::fs::rename(&before, &after).unwrap();
    let told = find(&store, &Wish::Last, &after).unwrap_err().to_string();
    assert!(told.contains("the same folder under its old name"), "{told}");
    assert!(told.contains("parlor --resume k1"), "{told}");
    let found = find(&store, &Wish::Id("k1".to_owned()), &root).unwrap().unwrap();
    let offered: Vec<_> = found.offers.iter().map(|offer| (offer.folder.clone(), offer.why)).collect();
    assert_eq!(offered, [(after, FolderReason::Moved), (root, FolderReason::Current)]);
    assert_eq!(store.find("k1").unwrap().owner, None, "it is only read until the user has said where");
}

#[test]
fn a_session_whose_folder_is_there_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("shop");
    std::fs::create_dir(&folder).unwrap();
    let store = kept_in(&root, &folder);
    let found = find(&store, &Wish::Last, &folder).unwrap().unwrap();
    assert!(found.offers.is_empty() && found.folder == folder);
    assert!(store.find("k1").unwrap().owner.is_some());
    assert!(find(&store, &Wish::New, &folder).unwrap().is_none());
    let told = find(&store, &Wish::Last, &root).unwrap_err().to_string();
    assert!(told.contains("no session of") && told.contains("sessions list --all"), "{told}");
}

#[test]
fn a_long_wait_is_told_once_and_a_short_one_is_not() {
    let (tell, told) = std::sync::mpsc::channel();
    assert_eq!(telling_a_wait(|| 7, || tell.send(()).unwrap()), 7);
    assert!(told.try_recv().is_err());
    // The work goes on only when the wait was told.
    telling_a_wait(|| told.recv().unwrap(), || tell.send(()).unwrap());
    assert!(told.try_recv().is_err());
}
