use super::*;

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("data")).unwrap();
    (dir, store)
}

fn broken_files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".broken-"))
        .collect()
}

#[test]
fn prompts_are_kept_by_folder() {
    let (dir, store) = store();
    let (one, two) = (Path::new("/here/one"), Path::new("/other/one"));
    assert_eq!(store.history(one), Vec::<String>::new());
    for text in ["first", "two\nlines \u{1f980}", "two\nlines \u{1f980}", "  ", "first"] {
        store.append_prompt(one, text).unwrap();
    }
    store.append_prompt(two, "elsewhere").unwrap();
    store.append_prompt(one, &"x".repeat(300 << 10)).unwrap();
    let again = Store::open(dir.path().join("data")).unwrap();
    assert_eq!(again.history(one), ["first", "two\nlines \u{1f980}", "first"]);
    assert_eq!(again.history(two), ["elsewhere"]);
    assert_eq!(again.take_troubles(), Vec::<String>::new());
}

#[test]
fn history_is_bounded() {
    let (_dir, store) = store();
    let folder = Path::new("/f");
    let many = history::MAX_PROMPTS + history::SLACK_PROMPTS;
    let line = |n: usize| format!("{{\"folder\":\"/f\",\"text\":\"p{n}\",\"at\":1}}\n");
    let lines: Vec<String> = (0..many).map(line).collect();
    fs::write(history::file_of(&store, folder), lines.concat()).unwrap();
    assert_eq!(store.history(folder).len(), history::MAX_PROMPTS);
    store.append_prompt(folder, "last").unwrap();
    let kept = fs::read_to_string(history::file_of(&store, folder)).unwrap().lines().count();
    assert_eq!(kept, history::MAX_PROMPTS);
    let prompts = store.history(folder);
    assert_eq!(prompts.first().unwrap(), &format!("p{}", many + 1 - history::MAX_PROMPTS));
    assert_eq!(prompts.last().unwrap(), "last");
}

#[test]
fn a_damaged_history_is_kept_aside_and_told() {
    let (dir, store) = store();
    let folder = Path::new("/f");
    store.append_prompt(folder, "one").unwrap();
    let path = history::file_of(&store, folder);
    // The machine stopped in the middle of a line.
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"folder\":\"/f\",\"te");
    fs::write(&path, &bytes).unwrap();
    store.append_prompt(folder, "two").unwrap();
    assert_eq!(store.history(folder), ["one", "two"]);
    let troubles = store.take_troubles();
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(troubles[0].contains("1 line is damaged") && troubles[0].contains(".broken-"), "{troubles:?}");
    let aside = broken_files(&dir.path().join("data/history"));
    assert_eq!(aside.len(), 1);
    assert_eq!(fs::read(&aside[0]).unwrap(), bytes);

    fs::write(&path, b"\xff\xfe nonsense\n").unwrap();
    assert_eq!(store.history(folder), Vec::<String>::new());
    assert_eq!(store.take_troubles().len(), 1);
    assert_eq!(broken_files(&dir.path().join("data/history")).len(), 2);
}

#[test]
fn several_processes_lose_nothing() {
    let (dir, _) = store();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            // A store of its own has a lock of its own, as a process would.
            let store = Store::open(dir.path().join("data")).unwrap();
            std::thread::spawn(move || {
                for i in 0..40 {
                    store.append_prompt(Path::new("/f"), &format!("{n}-{i}")).unwrap();
                    store.save_agent(&PathBuf::from(format!("/f{n}-{i}")), "demo").unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let store = Store::open(dir.path().join("data")).unwrap();
    let prompts = store.history(Path::new("/f"));
    assert_eq!(prompts.len(), 160);
    for n in 0..4 {
        let own: Vec<_> = prompts.iter().filter(|text| text.starts_with(&format!("{n}-"))).collect();
        assert_eq!(own.len(), 40);
        assert!(own.iter().enumerate().all(|(i, text)| **text == format!("{n}-{i}")));
        assert_eq!(store.agent_for(&PathBuf::from(format!("/f{n}-39"))).as_deref(), Some("demo"));
    }
}

#[test]
fn the_last_agent_of_a_folder_is_remembered() {
    let (dir, store) = store();
    assert_eq!(store.agent_for(Path::new("/f")), None);
    store.save_agent(Path::new("/f"), "claude").unwrap();
    store.save_agent(Path::new("/g"), "codex").unwrap();
    store.save_agent(Path::new("/f"), "gemini").unwrap();
    assert_eq!(store.agent_for(Path::new("/f")).as_deref(), Some("gemini"));
    assert_eq!(store.agent_for(Path::new("/g")).as_deref(), Some("codex"));

    let path = dir.path().join("data/agents.json");
    fs::write(&path, "{ not json").unwrap();
    assert_eq!(store.agent_for(Path::new("/f")), None);
    assert!(store.take_troubles()[0].contains("agents.json"));
    let aside = broken_files(&dir.path().join("data"));
    assert_eq!(fs::read_to_string(&aside[0]).unwrap(), "{ not json");
    store.save_agent(Path::new("/f"), "claude").unwrap();
    assert_eq!(store.agent_for(Path::new("/f")).as_deref(), Some("claude"));
}

#[test]
fn a_folder_that_cannot_be_used_is_said_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = Store::open(dir.path().join("file/below")).unwrap_err();
    assert!(error.to_string().contains("file/below cannot be used"), "{error}");
    let store = Store::open(dir.path().join("data")).unwrap();
    // A folder where a file should be.
    fs::create_dir(history::file_of(&store, Path::new("/f"))).unwrap();
    assert!(matches!(store.append_prompt(Path::new("/f"), "x"), Err(StoreError::Io { .. })));
    assert_eq!(store.history(Path::new("/f")), Vec::<String>::new());
    assert_eq!(store.take_troubles().len(), 1);
}

#[test]
fn a_lock_that_is_never_given_back_is_told() {
    let (_dir, store) = store();
    let held = store.lock().unwrap();
    assert!(matches!(store.append_prompt(Path::new("/f"), "x"), Err(StoreError::Busy { .. })));
    drop(held);
    store.append_prompt(Path::new("/f"), "x").unwrap();
}
