//! Tests of the search of earlier prompts.

use std::path::Path;

use super::super::*;
use super::*;

fn head_in(folder: &str) -> Note {
    let Note::Head(mut head) = head("s1") else { unreachable!("a head") };
    head.workspace.cwd = folder.into();
    head.title = Some(format!("Session in {folder}"));
    Note::Head(head)
}

fn search(store: &Store, text: &str, folder: Option<&str>) -> Vec<FoundPrompt> {
    let folder = folder.map(Into::into);
    let query = PromptQuery { text: text.to_owned(), folder, is_new: true, serial: 1 };
    store.search_prompts(&query).unwrap().0
}

fn texts(found: &[FoundPrompt]) -> Vec<&str> {
    found.iter().map(|prompt| prompt.text.as_str()).collect()
}

#[test]
fn prompts_of_sessions_and_folders_are_merged_latest_first() {
    let (_dir, store) = store();
    store.append_prompt(Path::new("/one"), "fix the till").unwrap();
    store.append_prompt(Path::new("/one"), "never sent").unwrap();
    let uid = record(&store, vec![head_in("/one"), prompt(1, "fix the till"), says(1, "ok"), ended(1)]);
    record(&store, vec![head_in("/two"), prompt(1, "elsewhere"), prompt(2, "fix the till"), ended(2)]);

    let here = search(&store, "", Some("/one"));
    assert_eq!(texts(&here), ["fix the till", "never sent"]);
    let source = here[0].source.as_ref().unwrap();
    assert_eq!(
        (source.uid.as_str(), source.agent.as_str(), source.name.as_str(), source.seq),
        (uid.as_str(), "fake", "Session in /one", 0)
    );
    assert_eq!((here[0].when.as_str(), &here[1].source), ("just now", &None));

    let all = search(&store, "", None);
    assert_eq!(all.len(), 3, "a text is listed once: {all:?}");
    assert_eq!(all[0].folder, Path::new("/two"), "with its latest session");
}

#[test]
fn a_prompt_that_was_not_sent_here_names_the_session_it_was_sent_in() {
    let (_dir, store) = store();
    let uid = record(&store, vec![head_in("/one"), prompt(1, "fix the till"), ended(1)]);
    store.with(|conn| folders::insert_prompt(conn, "/two", "fix the till", i64::MAX)).unwrap();
    let all = search(&store, "", None);
    assert_eq!((all.len(), all[0].source.as_ref().unwrap().uid.as_str()), (1, uid.as_str()));
    assert_eq!(search(&store, "", Some("/two"))[0].source, None);
}

#[test]
fn words_are_found_anywhere_and_letters_only_if_there_are_no_words() {
    let (_dir, store) = store();
    for text in ["deploy the server", "render the second row", "server: deploy it", "xyz"] {
        store.append_prompt(Path::new("/one"), text).unwrap();
    }
    assert_eq!(texts(&search(&store, "Deploy serv", None)), ["server: deploy it", "deploy the server"]);
    assert_eq!(texts(&search(&store, "dpl", None)).len(), 2);
    assert_eq!(texts(&search(&store, "nothing like it", None)), [""; 0]);
}

#[test]
fn long_prompts_are_found_complete_and_answers_are_left_out() {
    let (_dir, store) = store();
    let long = "word ".repeat(30_000);
    let answered = super::answered("word?", "yes");
    record(&store, vec![head_in("/one"), prompt(1, &long), event(1, answered), ended(1)]);
    let found = search(&store, "word", None);
    assert_eq!((found.len(), found[0].text.len()), (1, long.len()));
}

#[test]
fn a_prompt_with_a_pasted_text_is_listed_once_as_it_was_typed() {
    let (_dir, store) = store();
    let pasted = |note: &str, text: &str| {
        let text = format!("{text}{note}");
        let pasted = std::iter::once(0..text.len() - note.len()).collect();
        Record::Prompt { text, is_again: false, blocks: Vec::new(), pasted, typed: None }
    };
    let label = Attachment::of_text("one\ntwo").label();
    store.append_prompt(Path::new("/one"), &format!("{label} please")).unwrap();
    let notes = vec![
        head_in("/one"),
        event(1, pasted(" please", "one\ntwo")),
        event(2, pasted(" imported", "three\nfour")),
        prompt(3, "typed\nin two lines"),
        ended(3),
    ];
    record(&store, notes);
    let found = search(&store, "", None);
    let mut listed = texts(&found);
    listed.sort_unstable();
    let typed = format!("{label} please");
    assert_eq!(listed, [typed.as_str(), "three\nfour imported", "typed\nin two lines"]);
    assert!(found.iter().all(|prompt| prompt.source.is_some()), "{found:?}");
}

#[test]
fn a_prompt_that_called_a_template_is_listed_once_as_it_was_typed() {
    let (_dir, store) = store();
    store.append_prompt(Path::new("/one"), "/fix \"typed\": tests").unwrap();
    let expanded = Record::Prompt {
        text: "Fix the tests. Begin with \"typed\":".to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: Vec::new(),
        typed: Some("/fix \"typed\": tests".to_owned()),
    };
    record(&store, vec![head_in("/one"), event(1, expanded), prompt(2, "say \"typed\":"), ended(2)]);
    let found = search(&store, "", Some("/one"));
    let mut listed = texts(&found);
    listed.sort_unstable();
    assert_eq!(listed, ["/fix \"typed\": tests", "say \"typed\":"]);
    assert!(found.iter().all(|prompt| prompt.source.is_some()), "{found:?}");
}

#[test]
fn a_prompt_with_a_label_that_no_folder_knows_is_listed_with_its_text() {
    let (_dir, store) = store();
    let (label, text) = (Attachment::of_text("one\ntwo").label(), "one\ntwo please");
    let sent = Record::Prompt {
        text: text.to_owned(),
        is_again: false,
        blocks: Vec::new(),
        pasted: std::iter::once(0..7).collect(),
        typed: Some(format!("{label} please")),
    };
    record(&store, vec![head_in("/one"), event(1, sent), ended(1)]);
    assert_eq!(texts(&search(&store, "", Some("/one"))), [text]);
}

#[test]
fn prompts_of_subagents_and_of_deleted_sessions_are_left_out() {
    let (_dir, store) = store();
    let Note::Head(mut child) = head_in("/one") else { unreachable!("a head") };
    child.is_child = true;
    record(&store, vec![Note::Head(child), prompt(1, "of the agent"), ended(1)]);
    let uid = record(&store, vec![head_in("/one"), prompt(1, "mine"), ended(1)]);
    assert_eq!(texts(&search(&store, "", None)), ["mine"]);
    store.delete(&uid).unwrap();
    assert_eq!(texts(&search(&store, "", None)), [""; 0]);
}

#[test]
fn a_prompt_that_was_added_to_a_turn_is_found() {
    let (_dir, store) = store();
    let block = ContentBlock::Text("also this".into());
    let added = Record::Update(SessionUpdate::Block { role: Role::User, message: None, block });
    record(&store, vec![head_in("/one"), prompt(1, "first"), event(1, added), ended(1)]);
    assert_eq!(texts(&search(&store, "also", None)), ["also this"]);
}

#[test]
fn many_prompts_are_counted_and_the_latest_are_returned() {
    let (_dir, store) = store();
    let add = |conn: &mut rusqlite::Connection| {
        let change = conn.transaction()?;
        for n in 0..5_000 {
            folders::insert_prompt(&change, &format!("/f{}", n % 7), &format!("prompt {n}"), n)?;
        }
        change.commit()
    };
    store.with(add).unwrap();
    let query = PromptQuery { is_new: true, ..PromptQuery::default() };
    let (found, count) = store.search_prompts(&query).unwrap();
    assert_eq!((found.len(), count, found[0].text.as_str()), (200, 5_000, "prompt 4999"));
    let query = PromptQuery { text: "prompt 17".to_owned(), ..PromptQuery::default() };
    assert_eq!(store.search_prompts(&query).unwrap().1, 199);
    store.forget_prompts();
    assert_eq!(store.search_prompts(&query).unwrap().1, 199, "they are read again");
}
