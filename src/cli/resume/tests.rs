use super::*;
use crate::host::folder_relocation;
use crate::model::{FolderReason, Record, RecordedEvent};
use crate::store::SessionRow;

/// A store with one session of this folder.
fn store_with_session(root: &Path, folder: &Path) -> Store {
    let store = Store::open(root.join("data")).unwrap();
    let row = SessionRow {
        uid: "k1".to_owned(),
        agent: "fake".to_owned(),
        folder: folder.to_owned(),
        folder_mark: folder_relocation::mark(folder),
        ..SessionRow::default()
    };
    let record = Record::Prompt {
        text: "hello".to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    };
    store.import(&row, &[RecordedEvent { at_ms: 1, turn: 1, record }]).unwrap();
    store
}

#[test]
fn a_renamed_folder_is_reported_and_offered() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (before, after) = (root.join("before"), root.join("after"));
    std::fs::create_dir(&before).unwrap();
    let store = store_with_session(&root, &before);
    std::fs::rename(&before, &after).unwrap();
    let error = find(&store, &ResumeRequest::Last, &after).unwrap_err().to_string();
    assert!(error.contains("the folder was renamed"), "{error}");
    assert!(error.contains("parlor --resume k1"), "{error}");
    let found = find(&store, &ResumeRequest::Named("k1".to_owned()), &root).unwrap().unwrap();
    let offered: Vec<_> = found.offers.iter().map(|offer| (offer.folder.clone(), offer.why)).collect();
    assert_eq!(offered, [(after, FolderReason::Moved), (root, FolderReason::Current)]);
    assert_eq!(store.find("k1").unwrap().owner, None, "it is read-only until the user chooses a folder");
}

#[test]
fn the_sessions_of_a_renamed_folder_are_moved_after_a_question() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (before, after) = (root.join("before"), root.join("after"));
    std::fs::create_dir(&before).unwrap();
    let store = store_with_session(&root, &before);
    let row = SessionRow { uid: "k2".to_owned(), folder: before.clone(), ..SessionRow::default() };
    store.import(&row, &[]).unwrap();
    std::fs::rename(&before, &after).unwrap();
    let offers = find(&store, &ResumeRequest::Named("k1".to_owned()), &root).unwrap().unwrap().offers;
    assert_eq!(offers.iter().map(|offer| offer.others).collect::<Vec<_>>(), [1, 0]);
    let mut asked = Vec::new();
    for answer in [false, true] {
        let mut ask = |question: &str| {
            asked.push(question.to_owned());
            answer
        };
        move_sessions_here(&store, &after, &mut ask).unwrap();
        let is_moved = find(&store, &ResumeRequest::Last, &after).is_ok();
        assert_eq!(is_moved, answer);
    }
    let question = format!("This folder was renamed from {}. Move its 2 sessions here?", before.display());
    assert_eq!(asked, [question.as_str(), question.as_str()]);
    assert_eq!(store.find("k2").unwrap().folder, after);
    move_sessions_here(&store, &after, &mut |_| unreachable!("there is nothing to move")).unwrap();
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
    let record = Record::Prompt {
        text: "hello".to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    };
    store.import(&row, &[RecordedEvent { at_ms: 1, turn: 1, record }]).unwrap();
    // Outside of the folder that the file names, the user chooses first.
    let found = find(&store, &ResumeRequest::Named("k1".to_owned()), &root).unwrap().unwrap();
    let offered: Vec<_> = found.offers.iter().map(|offer| (offer.folder.clone(), offer.why)).collect();
    assert_eq!(offered, [(folder.clone(), FolderReason::Imported), (root.clone(), FolderReason::Current)]);
    assert_eq!((found.folder, store.find("k1").unwrap().owner), (root, None));
    for wish in [ResumeRequest::Last, ResumeRequest::Named("k1".to_owned())] {
        let found = find(&store, &wish, &folder).unwrap().unwrap();
        let default = AgentSpec { name: "other".to_owned(), ..AgentSpec::default() };
        let (agent, message) = agent_for(&found.saved, &[], Some(default), Callbacks::default());
        assert_eq!(agent, None, "the picker opens, regardless of the default agent");
        assert!(message.unwrap().contains("\"gemini-pro\", is not configured"));
        assert!(found.saved.head.workspace.additional_directories.is_empty());
        let known =
            AgentSpec { name: "gemini-pro".to_owned(), command: "gemini".to_owned(), ..AgentSpec::default() };
        let choice = AgentChoice { spec: known.clone(), ..AgentChoice::default() };
        assert_eq!(
            agent_of(&found.saved, &[choice], Callbacks::default()),
            Some(known),
            "the configured agent of the same name"
        );
    }
}

#[test]
fn a_session_is_opened_if_its_folder_exists() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("shop");
    std::fs::create_dir(&folder).unwrap();
    let store = store_with_session(&root, &folder);
    let found = find(&store, &ResumeRequest::Last, &folder).unwrap().unwrap();
    assert!(found.offers.is_empty() && found.folder == folder);
    assert!(store.find("k1").unwrap().owner.is_some());
    assert!(find(&store, &ResumeRequest::New, &folder).unwrap().is_none());
    let error = find(&store, &ResumeRequest::Last, &root).unwrap_err().to_string();
    assert!(error.contains("no saved session in") && error.contains("sessions list --all"), "{error}");
}

#[test]
fn only_long_waits_are_reported_and_once() {
    let (notify, notices) = std::sync::mpsc::channel();
    assert_eq!(with_wait_notice(|| 7, || notify.send(()).unwrap()), 7);
    assert!(notices.try_recv().is_err());
    // The work ends only after the notice was sent.
    with_wait_notice(|| notices.recv().unwrap(), || notify.send(()).unwrap());
    assert!(notices.try_recv().is_err());
}

#[test]
fn continue_skips_what_another_parlor_has_open() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("shop");
    std::fs::create_dir(&folder).unwrap();
    let store = store_with_session(&root, &folder);
    let newer = SessionRow {
        uid: "k2".to_owned(),
        agent: "fake".to_owned(),
        folder: folder.clone(),
        folder_mark: folder_relocation::mark(&folder),
        updated_ms: 5_000,
        ..SessionRow::default()
    };
    let record = Record::Prompt {
        text: "newer".to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    };
    store.import(&newer, &[RecordedEvent { at_ms: 5_000, turn: 1, record }]).unwrap();
    let other = Store::open(root.join("data")).unwrap();
    other.reopen("k2").unwrap();
    let found = find(&store, &ResumeRequest::Last, &folder).unwrap().unwrap();
    assert_eq!(found.saved.head.saved_as.as_deref(), Some("k1"));
    assert!(found.problems[0].contains("open in another parlor: newer"), "{:?}", found.problems);
    let error = find(&Store::open(root.join("data")).unwrap(), &ResumeRequest::Last, &folder).unwrap_err();
    assert!(error.to_string().contains("every saved session"), "{error}");
}

#[test]
fn continue_reopens_read_only_tabs() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("shop");
    std::fs::create_dir(&folder).unwrap();
    let store = store_with_session(&root, &folder);
    let newer = SessionRow {
        uid: "k2".to_owned(),
        folder: folder.clone(),
        folder_mark: folder_relocation::mark(&folder),
        updated_ms: 5_000,
        views: vec!["k1".to_owned(), "deleted".to_owned()],
        ..SessionRow::default()
    };
    let record = Record::Prompt {
        text: "newer".to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: None,
    };
    store.import(&newer, &[RecordedEvent { at_ms: 5_000, turn: 1, record }]).unwrap();
    let found = find(&store, &ResumeRequest::Last, &folder).unwrap().unwrap();
    let tabs: Vec<_> =
        found.tabs.iter().map(|tab| (tab.saved.head.saved_as.as_deref(), tab.is_view)).collect();
    assert_eq!(tabs, [(Some("k1"), true)]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}
