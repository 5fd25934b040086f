//! Tests of prompts that refer to files.

use super::bench::TestApp;
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;
use crate::ui::dialogs;

fn type_mention(app: &mut TestApp, draft: &str) {
    app.draft(draft);
    let typed = typed_mention(draft, draft.len()).map(|(range, path)| (range, path.to_owned()));
    app.play(Event::Mention(typed));
}

fn found(app: &mut TestApp, query: &str, paths: &[&str]) {
    let files = paths.iter().map(|path| FoundFile { path: (*path).into() }).collect();
    app.service(ServiceEvent::FilesFound { session: KEY, query: query.into(), files, is_complete: true });
}

fn offered(app: &TestApp) -> Vec<String> {
    dialogs::completions(app).into_iter().map(|offer| offer.name).collect()
}

#[test]
fn files_are_offered_while_a_mention_is_typed() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @ma");
    let query = app.fx.iter().find_map(|effect| match effect {
        Effect::FindFiles(query) => Some((query.query.as_str(), query.folder.as_path())),
        _ => None,
    });
    assert_eq!(query, Some(("ma", "/code/shop".as_ref())));
    found(&mut app, "ma", &["src/main.rs", "src/main test.rs", "docs/map.md"]);
    assert_eq!(offered(&app), ["src/main.rs", "src/main test.rs", "docs/map.md"]);
    type_mention(&mut app, "see @map");
    assert_eq!(offered(&app), ["docs/map.md"], "the former files are filtered until the answer is there");
    found(&mut app, "ma", &["late"]);
    assert_eq!(offered(&app), ["docs/map.md"], "a late answer is not used");
    type_mention(&mut app, "see @map and");
    assert_eq!(offered(&app), Vec::<String>::new());
}

#[test]
fn enter_inserts_the_selected_file_and_a_folder_stays_open() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @s");
    found(&mut app, "s", &["src/", "src/main test.rs"]);
    app.act(Action::Submit);
    assert_eq!(app.session().draft, "see @src/");
    assert!(app.fx.contains(&Effect::View(ViewCommand::ReplaceInDraft(4..6, "@src/".into()))));
    found(&mut app, "src/", &["src/main test.rs"]);
    app.act(Action::Complete);
    assert_eq!(app.session().draft, "see @\"src/main test.rs\" ");
    assert_eq!(app.user.mention, None);
    app.act(Action::Submit);
    assert_eq!(app.prompt_jobs().len(), 1, "the next Enter sends");
}

#[test]
fn earlier_mentions_are_preferred() {
    let mut app = TestApp::ready();
    app.submit("see @b.rs and @a.rs:3").prepared(PreparedPrompt::default()).end_turn(StopReason::EndTurn);
    app.fx.clear();
    type_mention(&mut app, "@");
    let Some(Effect::FindFiles(query)) = app.fx.first() else { panic!("{:?}", app.fx) };
    assert_eq!(query.recent, ["b.rs", "a.rs"]);
}

#[test]
fn the_list_of_files_closes_when_the_draft_changes_otherwise() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @s");
    found(&mut app, "s", &["src/"]);
    assert_eq!(offered(&app), ["src/"]);
    app.act(Action::ClearOrQuit);
    assert_eq!((app.session().draft.as_str(), offered(&app)), ("", Vec::new()));
    type_mention(&mut app, "see @s");
    found(&mut app, "s", &["src/"]);
    app.act(Action::NewSession);
    assert_eq!(offered(&app), Vec::<String>::new(), "the draft of another session has no mention");
}

#[test]
fn a_listed_file_that_was_removed_is_reported_once() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @ma");
    found(&mut app, "ma", &["src/main.rs"]);
    app.act(Action::Complete);
    type_mention(&mut app, "see @src/main.rs @b.rs");
    found(&mut app, "b.rs", &["b.rs"]);
    type_mention(&mut app, "see @src/main.rs @b.rs @other");
    app.act(Action::Submit);
    let [job] = app.prompt_jobs()[..] else { panic!("{:?}", app.fx) };
    assert_eq!(job.listed, ["src/main.rs", "b.rs"], "one was chosen, the other typed completely");
    let missing = vec!["src/main.rs".to_owned()];
    let prepared = PreparedPrompt { missing, ..PreparedPrompt::default() };
    app.prepared(prepared);
    assert_eq!(app.session().draft, "see @src/main.rs @b.rs @other");
    assert!(app.state.flash.as_ref().is_some_and(|text| text.contains("src/main.rs does not exist")));
    assert!(app.sent_prompts().is_empty());
    app.play(Event::Mention(None)).act(Action::Submit);
    let [_, again] = app.prompt_jobs()[..] else { panic!("{:?}", app.fx) };
    assert_eq!(again.listed, ["b.rs"], "the user knows it");
}

fn symbol(name: &str, path: &str, lines: Option<(u32, u32)>) -> FoundSymbol {
    let lines = lines.map(|(first, last)| first..=last);
    FoundSymbol { name: name.into(), kind: "function".into(), path: path.into(), lines }
}

fn found_symbols(app: &mut TestApp, query: &str, symbols: Vec<FoundSymbol>) {
    let query = query.to_owned();
    app.service(ServiceEvent::SymbolsFound { session: KEY, query, symbols, has_tags: true });
}

#[test]
fn symbols_are_listed_below_files_and_inserted_as_lines_of_their_file() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "@");
    found(&mut app, "", &["a", "b", "c", "d"]);
    found_symbols(&mut app, "", Vec::new());
    assert_eq!(offered(&app), ["a", "b", "c", "symbol:", "d"]);
    type_mention(&mut app, "@pa");
    found(&mut app, "pa", &["src/pa.rs"]);
    found_symbols(
        &mut app,
        "pa",
        vec![symbol("parse", "src/my a.rs", Some((3, 9))), symbol("path", "a.rs", None)],
    );
    let rows: Vec<_> = dialogs::completions(&app).into_iter().map(|it| (it.name, it.description)).collect();
    let row = |name: &str, about: &str| (name.to_owned(), about.to_owned());
    assert_eq!(
        rows,
        [row("src/pa.rs", ""), row("parse", "function  src/my a.rs:3"), row("path", "function  a.rs"),]
    );
    type_mention(&mut app, "@par");
    assert_eq!(
        offered(&app),
        ["src/pa.rs", "parse"],
        "the former ones are filtered until the answer is there"
    );
    app.act(Action::HistoryNext).act(Action::Complete);
    assert_eq!(app.session().draft, "@\"src/my a.rs\":3-9 ");
    type_mention(&mut app, "@symbol:pa");
    found_symbols(&mut app, "symbol:pa", vec![symbol("path", "a.rs", Some((7, 7)))]);
    assert_eq!(offered(&app), ["path"], "symbols only");
    app.act(Action::Complete);
    assert_eq!(app.session().draft, "@a.rs:7 ");
}

fn saved(uid: &str, name: &str) -> MentionedSession {
    MentionedSession { uid: uid.into(), agent: "fake".into(), name: name.into(), when: "2 h ago".into() }
}

fn list_sessions(app: &mut TestApp, folder: &str, sessions: Vec<MentionedSession>) {
    app.tell(StoreNews::Mentionable { folder: folder.into(), sessions });
}

#[test]
fn sessions_of_the_folder_are_listed_except_the_own_one() {
    let mut app = TestApp::ready();
    app.tell(StoreNews::SavedAs { key: KEY, uid: "own".into() });
    type_mention(&mut app, "@");
    assert!(app.fx.contains(&Effect::Store(StoreJob::Mentionable { folder: "/code/shop".into() })));
    found(&mut app, "", &["a"]);
    list_sessions(&mut app, "/elsewhere", vec![saved("3", "Other")]);
    assert_eq!(offered(&app), ["a"], "not those of another folder");
    list_sessions(
        &mut app,
        "/code/shop",
        vec![saved("own", "This"), saved("1", "Fix the parser"), saved("2", "Tea")],
    );
    assert_eq!(offered(&app), ["a", "session:"]);
    app.act(Action::HistoryNext).act(Action::Complete);
    assert_eq!(app.session().draft, "@session:");
    let rows = dialogs::completions(&app);
    assert_eq!(rows.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["Fix the parser", "Tea"]);
    assert_eq!(rows[0].description, "session  2 h ago, fake");
    type_mention(&mut app, "@session:te");
    assert_eq!(offered(&app), ["Tea"]);
    type_mention(&mut app, "@parser");
    found(&mut app, "parser", &["parser.rs"]);
    assert_eq!(offered(&app), ["parser.rs", "Fix the parser"], "a name is found without the prefix");
}

#[test]
fn a_chosen_session_becomes_a_label_before_the_prompt_is_sent() {
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @session:fix");
    list_sessions(&mut app, "/code/shop", vec![saved("1", "Fix the parser")]);
    app.act(Action::Submit);
    let job = app.fx.iter().find_map(|effect| match effect {
        Effect::AttachSession(job) => Some(job.clone()),
        _ => None,
    });
    let job = job.expect("the transcript is read");
    assert_eq!((job.uid.as_str(), job.text.as_str(), job.at), ("1", "@session:fix", 4));
    app.act(Action::Submit);
    assert!(app.prompt_jobs().is_empty() && app.sent_prompts().is_empty(), "it waits for the transcript");
    assert_eq!(app.session().draft, "see @session:fix");
    let label = "[Session #0123456789: Fix the parser, 3 KiB]".to_owned();
    app.service(ServiceEvent::SessionAttached(Box::new(job.clone()), Ok(label.clone())));
    assert_eq!(app.session().draft, format!("see {label} "));
    app.act(Action::Submit);
    assert_eq!(app.prompt_jobs().len(), 1);
    // If it cannot be read, the draft stays.
    let mut app = TestApp::ready();
    type_mention(&mut app, "see @session:fix");
    list_sessions(&mut app, "/code/shop", vec![saved("1", "Fix the parser")]);
    app.act(Action::Submit);
    app.service(ServiceEvent::SessionAttached(
        Box::new(job),
        Err("Could not read the session: gone.".into()),
    ));
    assert_eq!(app.session().draft, "see @session:fix");
    assert!(app.state.flash.as_ref().is_some_and(|text| text.contains("gone")));
}
