use super::*;
use crate::model::{FolderReason, Record, RecordedEvent};
use crate::services::folder_relocation;
use crate::services::store::SessionRow;

/// A store with one session of this folder.
fn kept_in(root: &Path, folder: &Path) -> Store {
    let store = Store::open(root.join("data")).unwrap();
    let row = SessionRow {
        uid: "k1".to_owned(),
        agent: "fake".to_owned(),
        folder: folder.to_owned(),
        folder_mark: folder_relocation::mark(folder),
        ..SessionRow::default()
    };
    let record = Record::Prompt { text: "hello".to_owned(), is_again: false };
    store.import(&row, &[RecordedEvent { at_ms: 1, turn: 1, record }]).unwrap();
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
    let told = find(&store, &ResumeRequest::Last, &after).unwrap_err().to_string();
    assert!(told.contains("the folder was renamed"), "{told}");
    assert!(told.contains("parlor --resume k1"), "{told}");
    let found = find(&store, &ResumeRequest::Id("k1".to_owned()), &root).unwrap().unwrap();
    let offered: Vec<_> = found.offers.iter().map(|offer| (offer.folder.clone(), offer.why)).collect();
    assert_eq!(offered, [(after, FolderReason::Moved), (root, FolderReason::Current)]);
    assert_eq!(store.find("k1").unwrap().owner, None, "it is only read until the user has said where");
}

#[test]
fn an_imported_session_names_no_program_and_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("shop");
    std::fs::create_dir(&folder).unwrap();
    let store = Store::open(root.join("data")).unwrap();
    let row = SessionRow {
        uid: "k1".to_owned(),
        agent: "gemini-pro".to_owned(),
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), "id".to_owned()],
        folder: folder.clone(),
        roots: vec!["/".into()],
        ..SessionRow::default()
    };
    let record = Record::Prompt { text: "hello".to_owned(), is_again: false };
    store.import(&row, &[RecordedEvent { at_ms: 1, turn: 1, record }]).unwrap();
    // In another folder than the file names, the user is asked; nothing is taken until then.
    let found = find(&store, &ResumeRequest::Id("k1".to_owned()), &root).unwrap().unwrap();
    let offered: Vec<_> = found.offers.iter().map(|offer| (offer.folder.clone(), offer.why)).collect();
    assert_eq!(offered, [(folder.clone(), FolderReason::Imported), (root.clone(), FolderReason::Current)]);
    assert_eq!((found.folder, store.find("k1").unwrap().owner), (root, None));
    for wish in [ResumeRequest::Last, ResumeRequest::Id("k1".to_owned())] {
        let found = find(&store, &wish, &folder).unwrap().unwrap();
        let default = AgentSpec { name: "other".to_owned(), ..AgentSpec::default() };
        let (agent, told) = agent_for(&found.kept, &[], Some(default), Callbacks::default());
        assert_eq!(agent, None, "the picker opens, whatever agent is the default");
        assert!(told.unwrap().contains("\"gemini-pro\", is not configured"));
        assert!(found.kept.head.place.additional_directories.is_empty());
        let known =
            AgentSpec { name: "gemini-pro".to_owned(), command: "gemini".to_owned(), ..AgentSpec::default() };
        let choice = AgentChoice { spec: known.clone(), title: String::new(), source: String::new() };
        assert_eq!(
            agent_of(&found.kept, &[choice], Callbacks::default()),
            Some(known),
            "the one of that name here"
        );
    }
}

#[test]
fn a_session_whose_folder_is_there_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("shop");
    std::fs::create_dir(&folder).unwrap();
    let store = kept_in(&root, &folder);
    let found = find(&store, &ResumeRequest::Last, &folder).unwrap().unwrap();
    assert!(found.offers.is_empty() && found.folder == folder);
    assert!(store.find("k1").unwrap().owner.is_some());
    assert!(find(&store, &ResumeRequest::New, &folder).unwrap().is_none());
    let told = find(&store, &ResumeRequest::Last, &root).unwrap_err().to_string();
    assert!(told.contains("no saved session in") && told.contains("sessions list --all"), "{told}");
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
