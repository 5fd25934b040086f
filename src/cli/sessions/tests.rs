use super::*;
use crate::model::*;
use crate::services::store::Recorder;

struct Place {
    dir: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        Self { dir, store }
    }

    /// Records a session in a folder, and gives its id.
    fn record(&self, folder: &str, prompt: &str, answer: &str) -> String {
        let (services, _told) = tokio::sync::mpsc::unbounded_channel();
        let mut recorder = Recorder::new(self.store.clone(), services);
        let head = SessionHead {
            agent: "fake".to_owned(),
            command: "fake".to_owned(),
            session: Some("s".into()),
            place: SessionPlace { cwd: folder.into(), ..SessionPlace::default() },
            ..SessionHead::default()
        };
        let mut run = ToolCallPatch::new("t1".into());
        run.title = Patch::Set("Run the tests".to_owned());
        run.status = Patch::Set(ToolStatus::Failed);
        run.kind = Patch::Set(ToolKind::Execute);
        run.input = Patch::Set(ToolInput { command: Some("cargo test".to_owned()), ..ToolInput::default() });
        run.output_text = Patch::Set("1 failed ``` \u{1b}[31mred".to_owned());
        let change = DiffChange::Texts { old: Some("a\n".into()), new: "b\n".into() };
        let diff = FileDiff { path: "/x.rs".into(), change };
        run.content = Patch::Set(vec![ToolContent::Diff(diff)]);
        let says = SessionUpdate::Chunk { role: Role::Agent, message: None, text: answer.to_owned() };
        let records = [
            Record::Prompt { text: prompt.to_owned(), is_again: false },
            Record::Update(SessionUpdate::Tool(Box::new(run))),
            Record::Update(says),
            Record::TurnEnded(TurnOutcome::Failed {
                error: "no more tokens".to_owned(),
                fault: crate::model::FaultKind::Agent,
            }),
        ];
        let events = records.map(|record| Note::Event { turn: 1, record: Box::new(record) });
        recorder.keep(SessionKey(1), [Note::Head(Box::new(head))].into_iter().chain(events).collect());
        assert_eq!(recorder.finish(), None);
        let all = self.store.list(&ListFilter::default()).unwrap();
        all.into_iter().find(|row| row.first_prompt.as_deref() == Some(prompt)).unwrap().uid
    }

    fn try_run(&self, args: &[&str], answer: Option<bool>) -> anyhow::Result<String> {
        let words = ["parlor", "sessions"].iter().chain(args);
        let cli = <super::super::Cli as clap::Parser>::try_parse_from(words).unwrap();
        let Some(super::super::Command::Sessions { job }) = cli.subcommand else { unreachable!() };
        let mut out = Vec::new();
        let mut says = |_: &str| answer.unwrap_or_default();
        let world = World {
            out: Printer::new(&mut out),
            err: Printer::new(std::io::sink()),
            folder: "/here".into(),
            now_ms: time::now_ms(),
            ask: answer.is_some().then_some(&mut says as &mut dyn FnMut(&str) -> bool),
        };
        serve(&job, self.dir.path(), world)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn run(&self, args: &[&str]) -> String {
        self.try_run(args, None).unwrap()
    }
}

#[test]
fn a_list_shows_this_folder_and_says_what_it_hides() {
    let place = Place::new();
    assert_eq!(place.run(&["list"]), "No sessions in this folder.\n");
    let here = place.record("/here", "fix\nthis", "done");
    place.record("/there", "fix that", "done");
    assert_eq!(
        place.run(&["list"]),
        format!(
            "{here}  just now  fake  fix this\n\n1 session in other folders: `parlor sessions list --all`\n"
        )
    );
    let all = place.run(&["list", "--all"]);
    assert!(all.lines().count() == 2 && all.contains("fix that  /there"), "{all}");
    assert_eq!(place.run(&["list", "--all", "--agent", "other"]), "No sessions with other.\n");
    let json: serde_json::Value = serde_json::from_str(&place.run(&["list", "--json"])).unwrap();
    assert_eq!((&json[0]["id"], &json[0]["turns"]), (&here.into(), &1.into()));
}

#[test]
fn a_session_is_shown_as_a_document() {
    let place = Place::new();
    let id = place.record("/here", "fix this", "It is **fixed**.\u{1b}]0;title\u{7}");
    let shown = place.run(&["show", id.get(..4).unwrap()]);
    assert!(shown.starts_with("# fix this\n\n- Session: "), "{shown}");
    for part in [
        "## Prompt\n\n> fix this\n",
        "### Run the tests (failed)\n\n```sh\ncargo test\n```\n",
        "`/x.rs`\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n",
        "````\n1 failed ``` red\n````\n",
        "\nIt is **fixed**.",
        "\n**The agent reported an error: no more tokens**\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing:\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let error = place.try_run(&["show", "nothing"], None).unwrap_err().to_string();
    assert!(error.starts_with("Session nothing not found."), "{error}");
}

#[test]
fn a_page_holds_no_code_of_the_agents() {
    let place = Place::new();
    let answer = "**strong** <b onclick=x()>bold</b> [link](javascript:x()) ![i](http://e.org/i.png)\n\n\
                  <script>x()</script>";
    let id = place.record("/here", "<script>y()</script>", answer);
    let file = place.dir.path().join("out.html");
    let told = place.run(&["export", &id, "--format", "html", "-o", file.to_str().unwrap()]);
    assert_eq!(told, format!("Written to {}.\n", file.display()));
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("<strong>strong</strong>") && page.contains("&lt;script&gt;y()"), "{page}");
    assert!(page.contains("<span class=\"plus\">+b</span>"), "{page}");
    for word in ["<script", "<b ", "javascript:", "src=\"http"] {
        assert!(!page.contains(word), "{word} in {page}");
    }
}

#[test]
fn a_page_shows_the_pictures_themselves_and_nothing_that_is_none() {
    let place = Place::new();
    let (services, _told) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::new(place.store.clone(), services);
    let image = |mime: &str, data: &str| {
        let block = ContentBlock::Image { data: data.into(), mime_type: mime.to_owned(), uri: None };
        Record::Update(SessionUpdate::Block { role: Role::Agent, message: Some("m".into()), block })
    };
    let said = |text: &str| {
        let (role, text) = (Role::Agent, text.to_owned());
        Record::Update(SessionUpdate::Chunk { role, message: Some("m".into()), text })
    };
    let records = [
        said("before it"),
        image("image/png", "iVBORw0KGgo="),
        said("after it"),
        image("image/svg+xml", "PHN2Zz4="),
        image("image/png", "\"><script>x()</script>"),
    ];
    let head = SessionHead { agent: "fake".to_owned(), session: Some("s".into()), ..SessionHead::default() };
    let events = records.map(|record| Note::Event { turn: 1, record: Box::new(record) });
    recorder.keep(SessionKey(1), [Note::Head(Box::new(head))].into_iter().chain(events).collect());
    assert_eq!(recorder.finish(), None);
    let page = place.run(&["export", "s", "--format", "html"]);
    let picture = "<img alt=\"[image, image/png]\" src=\"data:image/png;base64,iVBORw0KGgo=\">";
    let places = ["before it", picture, "after it", "[image, image/svg+xml]"].map(|part| page.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {page}");
    assert_eq!((page.matches("<img").count(), page.matches("<script").count()), (1, 0), "{page}");
    // Nothing is loaded from anywhere.
    assert!(page.contains("default-src 'none'") && !page.contains("://"), "{page}");
    assert!(place.run(&["show", "s"]).contains("before it\n\n[image, image/png]\n\nafter it"));
}

#[test]
fn an_export_is_imported_elsewhere() {
    let (here, there) = (Place::new(), Place::new());
    let id = here.record("/here", "fix this", "done");
    let file = here.dir.path().join("out.json");
    here.run(&["export", &id, "--format", "json", "--output", file.to_str().unwrap()]);
    let file = file.to_str().unwrap();
    assert!(there.run(&["import", file]).ends_with(&format!("imported as session {id}.\n")));
    assert!(there.run(&["import", file]).ends_with("already exists.\n"));
    let (mine, copy) = (here.run(&["show", &id]), there.run(&["show", &id]));
    assert_eq!(mine, copy);
    // A file that cannot be taken over keeps those beside it from being so, too.
    let elsewhere = Place::new();
    let missing = elsewhere.dir.path().join("missing.json");
    let error =
        elsewhere.try_run(&["import", file, missing.to_str().unwrap()], None).unwrap_err().to_string();
    assert!(error.contains("pass an existing file"), "{error}");
    assert_eq!(elsewhere.store.count().unwrap(), 0);
    std::fs::write(file, "{\"format\":\"else\"}").unwrap();
    let error = there.try_run(&["import", file], None).unwrap_err().to_string();
    assert!(error.contains("is not a JSON export"), "{error}");
}

#[test]
fn a_file_that_is_there_is_replaced_only_where_that_was_said() {
    let place = Place::new();
    let id = place.record("/here", "fix this", "done");
    let path = place.dir.path().join("notes.md");
    let file = path.to_str().unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, "notes of a month").unwrap();
    let error = place.try_run(&["export", &id, "-o", file], None).unwrap_err().to_string();
    assert!(error.contains("notes.md already exists") && error.contains("--force"), "{error}");
    assert!(place.try_run(&["export", &id, "-o", file], Some(false)).is_err());
    // A program that reads JSON is not asked.
    assert!(place.try_run(&["export", &id, "-o", file, "--json"], Some(true)).is_err());
    assert_eq!(read(), "notes of a month");
    assert!(place.try_run(&["export", &id, "-o", file], Some(true)).unwrap().starts_with("Written to"));
    assert!(read().starts_with("# fix this"));
    std::fs::write(&path, "notes").unwrap();
    place.run(&["export", &id, "-o", file, "--force"]);
    assert!(read().starts_with("# fix this"));
    // What cannot be written whole leaves nothing behind.
    let below = place.dir.path().join("missing/notes.md");
    let error = place.try_run(&["export", &id, "-o", below.to_str().unwrap()], None).unwrap_err();
    assert!(error.to_string().contains("pass another file"), "{error}");
    let into =
        |name: &str| export_into(&place.store, &id, ExportForm::Markdown, &place.dir.path().join(name));
    std::fs::create_dir(place.dir.path().join("out")).unwrap();
    let (first, second) = (into("out").unwrap(), into("out").unwrap());
    assert!(first != second && first.exists() && second.exists(), "{first:?} {second:?}");
    assert_eq!(std::fs::read_dir(place.dir.path().join("out")).unwrap().count(), 2, "nothing half written");
}

/// Every kind of value that a session may hold, and what an agent may have made of them.
fn all_sorts() -> Vec<Record> {
    let update = |update| Record::Update(update);
    let raw = |text: &str| Raw(std::sync::Arc::from(text));
    let image = ContentBlock::Image {
        data: "iVBORw0KGgo=".into(),
        mime_type: "image/png".to_owned(),
        uri: Some("file:///a.png".to_owned()),
    };
    let mut call = ToolCallPatch::new("t\u{0}\"1".into());
    call.is_announcement = true;
    call.title = Patch::Set("Look \u{1b}[31m at <it>".to_owned());
    call.name = Patch::Clear;
    call.raw_input = Patch::Set(raw("{\"n\":12345678901234567890,\"x\":1e400}"));
    call.raw_output = Patch::Set(raw("[null]"));
    call.content = Patch::Set(vec![
        ToolContent::Block(image.clone()),
        ToolContent::Diff(FileDiff {
            path: "/a b.rs".into(),
            change: DiffChange::Texts { old: None, new: "x\r\n".into() },
        }),
        ToolContent::Unknown(raw("{\"type\":\"hologram\"}")),
    ]);
    vec![
        Record::Prompt { text: "look\nat \u{1f980} this".to_owned(), is_again: false },
        update(SessionUpdate::Block { role: Role::User, message: Some("u1".into()), block: image }),
        update(SessionUpdate::Chunk { role: Role::Thought, message: None, text: "hm \u{202e}".to_owned() }),
        update(SessionUpdate::Tool(Box::new(call))),
        Record::Decided { tool: "t1".into(), option: Some("Yes".to_owned()), is_allow: true },
        Record::Answered { question: "q?".to_owned(), answer: "a".to_owned() },
        Record::Command {
            terminal: "x1".into(),
            command: Some("ls".to_owned()),
            cwd: Some("/code".into()),
            output: "\u{1b}[1mred\u{7}".to_owned(),
            dropped_bytes: 7,
            exit: ExitInfo { code: None, signal: Some("SIGKILL".to_owned()) },
        },
        update(SessionUpdate::Unknown {
            name: "new_thing".to_owned(),
            raw: raw("{\"deep\":[{\"a\":1.10}]}"),
        }),
        update(SessionUpdate::Usage(Usage { used_tokens: 5, size_tokens: 10, cost: None })),
        update(SessionUpdate::Info { title: Patch::Set("Theirs".to_owned()), updated_at: Patch::Clear }),
        Record::notice(Severity::Warning, "w".to_owned(), None),
        Record::TurnEnded(TurnOutcome::Stopped {
            reason: StopReason::Other("odd".to_owned()),
            usage: None,
            took_ms: 3,
        }),
        Record::Archived { is_away: true },
        Record::Replaced,
        Record::Prompt { text: "again".to_owned(), is_again: false },
        update(SessionUpdate::Chunk {
            role: Role::Agent,
            message: Some("m".into()),
            text: "words".to_owned(),
        }),
    ]
}

#[test]
fn nothing_of_a_session_is_lost_on_its_way_to_another_machine() {
    let (here, there) = (Place::new(), Place::new());
    let (services, _told) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::new(here.store.clone(), services);
    let head = SessionHead {
        agent: "fake".to_owned(),
        command: "fake".to_owned(),
        args: vec!["--acp".to_owned()],
        session: Some("theirs".into()),
        place: SessionPlace {
            cwd: "/here".into(),
            additional_directories: vec![crate::model::UserRoot::given("/lib")],
            ..SessionPlace::default()
        },
        branch: Some("main".to_owned()),
        title: Some("Mine".to_owned()),
        has_own_title: true,
        is_child: true,
        ..SessionHead::default()
    };
    let events = all_sorts().into_iter().map(|record| Note::Event { turn: 1, record: Box::new(record) });
    let link =
        Note::CameFrom { session: SessionKey(7), kept_as: Some("0ther".to_owned()), copied_turns: None };
    let mut notes = vec![link, Note::Head(Box::new(head))];
    notes.extend(events);
    notes.push(Note::Draft("half a \u{1f980} thought".to_owned()));
    notes.push(Note::Queue(vec!["one".to_owned(), "two\nlines".to_owned()]));
    recorder.keep(SessionKey(1), notes);
    assert_eq!(recorder.finish(), None);
    let mine = here.store.find("theirs").unwrap();
    let file = here.dir.path().join("out.json");
    let file = file.to_str().unwrap();
    here.run(&["export", &mine.uid, "--format", "json", "-o", file]);
    there.run(&["import", file]);

    let copy = there.store.find("theirs").unwrap();
    assert_eq!(here.store.events(&mine.uid).unwrap().0.len(), all_sorts().len());
    // What the agent would be told unseen stays behind.
    let mut events = here.store.events(&mine.uid).unwrap();
    events.0.retain(|event| !matches!(event.record, Record::HandedOver { .. }));
    assert_eq!(there.store.events(&mine.uid).unwrap(), events);
    // A turn that runs there does not run here.
    assert_eq!((mine.state.word(), copy.state.word()), ("turn", "cut"));
    // So does what would run, be opened or be sent.
    assert!(copy.is_imported && copy.command.is_empty() && copy.args.is_empty());
    assert!(copy.roots.is_empty() && copy.queue.is_empty());
    let same = SessionRow {
        is_imported: false,
        command: mine.command.clone(),
        args: mine.args.clone(),
        roots: mine.roots.clone(),
        queue: mine.queue.clone(),
        next_seq: mine.next_seq,
        state: mine.state,
        folder_mark: mine.folder_mark.clone(),
        ..copy
    };
    assert_eq!(same, mine);
    for words in ["look", "words"] {
        let found = [&here, &there].map(|place| place.run(&["search", words, "--json"]));
        assert_eq!(found[0], found[1]);
    }
}

#[test]
fn what_is_written_for_other_programs_keeps_its_names() {
    let place = Place::new();
    let id = place.record("/here", "mend the basket", "The basket holds.");
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&place.run(args)).unwrap() };
    let names = |value: &serde_json::Value| -> String {
        let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names.join(" ")
    };
    let row = "agent agent_session branch created_at first_prompt folder id is_subagent state title turns updated_at";
    assert_eq!(names(&json(&["list", "--json"])[0]), row);
    let hit = &json(&["search", "basket", "--json"])[0];
    assert_eq!(names(hit), "agent at folder is_error kind name session snippet turn");
    let shown = json(&["show", &id, "--json"]);
    assert_eq!(names(&shown), "events format session version");
    assert_eq!((&shown["format"], &shown["version"]), (&"parlor-session".into(), &1.into()));
    assert_eq!(
        names(&shown["session"]),
        "agent agent_session branch command created_ms folder id roots title updated_ms"
    );
    assert_eq!(names(&shown["events"][0]), "at_ms record turn");
    let file = place.dir.path().join("out.json");
    let file = file.to_str().unwrap();
    let written = json(&["export", &id, "--format", "json", "-o", file, "--json"]);
    let bytes = std::fs::metadata(file).unwrap().len();
    let wanted = serde_json::json!({"session": id, "format": "json", "file": file, "bytes": bytes});
    assert_eq!(written, wanted);
    let taken = serde_json::json!([{"file": file, "session": id, "was_known": true}]);
    assert_eq!(json(&["import", file, "--json"]), taken);
    let other = Place::new();
    assert!(other.run(&["import", file, "--json"]).contains("\"was_known\": false"));
    let pruned = json(&["prune", "--keep", "0", "--yes", "--json"]);
    assert_eq!((names(&pruned[0]).as_str(), &pruned[0]["id"]), (row, &id.as_str().into()));
    other.run(&["import", file]);
    let deleted: serde_json::Value =
        serde_json::from_str(&other.run(&["delete", &id, "--yes", "--json"])).unwrap();
    assert_eq!(names(&deleted[0]), row);
    // What asks needs a yes where nobody can be asked; clap says which word is missing.
    for args in
        [&["delete", "x", "--json"][..], &["prune", "--keep", "1", "--json"], &["export", "x", "--json"]]
    {
        let words = ["parlor", "sessions"].iter().chain(args);
        let error = <super::super::Cli as clap::Parser>::try_parse_from(words).unwrap_err().to_string();
        assert!(error.contains("--yes") || error.contains("--output"), "{error}");
    }
}

#[test]
fn a_search_names_the_session_and_the_place() {
    let place = Place::new();
    let id = place.record("/here", "mend the basket", "The basket holds.");
    let found = place.run(&["search", "basket"]);
    assert!(found.starts_with(&format!("{id}  just now  fake  mend the basket  /here\n")), "{found}");
    assert!(found.contains("    turn 1, prompt: mend the «basket»\n"), "{found}");
    assert!(found.contains("    turn 1, answer: The «basket» holds.\n"), "{found}");
    assert_eq!(place.run(&["search", "basket", "--edits"]), "No matches.\n");
    let failed = place.run(&["search", "cargo", "--errors"]);
    assert!(failed.contains("turn 1, edit, failed:"), "{failed}");
    assert_eq!(place.run(&["search", "basket", "--until", "1h"]), "No matches.\n");
    assert!(
        place
            .run(&["search", "basket", "--since", "1h", "--json"])
            .contains("\"snippet\": \"mend the basket\"")
    );
    let error = place.try_run(&["search", "x", "--since", "soon"], None).unwrap_err().to_string();
    assert!(error.contains("invalid time soon; use a date"), "{error}");
}

#[test]
fn nothing_is_deleted_without_a_yes() {
    let place = Place::new();
    let one = place.record("/here", "one", "1");
    place.record("/here", "two", "2");
    let error = place.try_run(&["delete", &one], None).unwrap_err().to_string();
    assert!(error.contains("pass --yes"), "{error}");
    assert!(place.try_run(&["delete", &one], Some(false)).unwrap().ends_with("Nothing was deleted.\n"));
    assert_eq!(place.store.count().unwrap(), 2);
    assert!(place.try_run(&["delete", &one], Some(true)).unwrap().contains("Deleted 1 session;"));
    assert_eq!(place.store.count().unwrap(), 1);

    let error = place.try_run(&["prune", "--yes"], None).unwrap_err().to_string();
    assert!(error.contains("pass --older-than"), "{error}");
    assert!(place.run(&["prune", "--older-than", "1d", "--yes"]).starts_with("Nothing to delete"));
    assert!(place.try_run(&["prune", "--keep", "0"], Some(false)).unwrap().contains("Nothing was deleted"));
    assert_eq!(place.run(&["prune", "--older-than", "1d", "--yes", "--json"]).trim(), "[]");
    let gone: serde_json::Value =
        serde_json::from_str(&place.run(&["prune", "--keep", "0", "--yes", "--json"])).unwrap();
    assert_eq!(gone.as_array().unwrap().len(), 1, "{gone}");
    assert_eq!(place.store.count().unwrap(), 0);
    let two = place.record("/here", "two", "done");
    let gone: serde_json::Value =
        serde_json::from_str(&place.run(&["delete", &two, &two, "--yes", "--json"])).unwrap();
    assert_eq!(gone[0]["id"], two.as_str(), "{gone}");
    assert_eq!(gone.as_array().unwrap().len(), 1, "{gone}");
}

#[test]
fn the_oldest_go_until_the_rest_is_small_enough_and_what_is_open_stays() {
    let place = Place::new();
    let large = "word ".repeat(40_000);
    let open = place.record("/here", "open", &large);
    place.store.reopen(&open).unwrap();
    for prompt in ["one", "two", "three"] {
        place.record("/here", prompt, &large);
    }
    let last = place.record("/here", "last", "small");
    assert!(place.run(&["prune", "--down-to", "1G", "--yes"]).starts_with("Nothing to delete"));
    let before = place.store.used_bytes().unwrap();
    let target = before - before / 3;
    let told = place.run(&["prune", "--down-to", &target.to_string(), "--yes"]);
    assert!(told.contains("  one") && !told.contains("  three"), "{told}");
    assert!(place.store.used_bytes().unwrap() <= target, "{told}");
    place.run(&["prune", "--down-to", "0", "--yes"]);
    let left: Vec<String> =
        place.store.list(&ListFilter::default()).unwrap().into_iter().map(|row| row.uid).collect();
    assert_eq!(left, std::slice::from_ref(&open), "not even {last} has room");
    let error = place.try_run(&["delete", &open, "--yes"], None).unwrap_err().to_string();
    assert!(error.contains("close it there first"), "{error}");
    for (text, wanted) in [("500m", 500 << 20), ("2GiB", 2 << 30), (" 12 kb", 12 << 10), ("7", 7)] {
        assert_eq!(bytes(text).unwrap(), wanted);
    }
    assert!(bytes("many").is_err() && bytes("").is_err() && bytes("99999999999G").is_err());
}

#[test]
fn times_are_read_as_people_write_them() {
    let now = 1_800_000_000_000;
    assert_eq!(time::parse("2h", now).unwrap(), now - 7_200_000);
    assert_eq!(time::parse(" 3w ", now).unwrap(), now - 3 * 604_800_000);
    let day = time::parse("2026-01-31", now).unwrap();
    assert_eq!(time::full(day), "2026-01-31 00:00");
    for wrong in ["", "d", "-1d", "31.1.2026", "99999999999d"] {
        assert!(time::parse(wrong, now).is_err(), "{wrong}");
    }
    assert_eq!(time::ago(now - 61_000, now), "1 min ago");
    assert_eq!(time::ago(now - 3 * 86_400_000, now), "3 d ago");
}

#[test]
fn what_went_wrong_does_not_stand_in_what_another_program_reads() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sessions.db"), "no database, and long enough to be none ".repeat(40))
        .unwrap();
    let job = SessionsJob::List(ListArgs { all: true, json: true, ..ListArgs::default() });
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let world = World {
        out: Printer::new(&mut out),
        err: Printer::new(&mut err),
        folder: "/here".into(),
        now_ms: time::now_ms(),
        ask: None,
    };
    serve(&job, dir.path(), world).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), serde_json::json!([]));
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains("Could not read") && err.contains("It was renamed to"), "{err}");
}

/// Acts on a terminal, hides or reorders text.
fn is_harmful(c: char) -> bool {
    let hides =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    hides || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[test]
fn nothing_that_is_printed_acts_on_a_terminal() {
    let evil = "a\u{1b}]52;c;UFdORUQ=\u{7}\u{9d}0;own\u{9c}\u{202e}b\u{7f}\u{85}c\u{feff}";
    // Markdown decodes entities, and each of these parts is another place of a page.
    let answer = format!(
        "{evil} &#27;]52;c;x&#7; &#x202e; `{evil}` [l{evil}](http://e.org/{evil} \"{evil}&#27;]0;\")\n\n\
         ```{evil}\n{evil}\n```\n\n![{evil}]({evil})\n\n[x](http://a \"&#27;]\") &#7;\" onmouseover=alert(1) x=\""
    );
    let place = Place::new();
    let id = place.record(&format!("/here{evil}"), &format!("prompt {evil}"), &answer);
    let uses: [&[&str]; 9] = [
        &["list", "--all"],
        &["list", "--all", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["search", "prompt"],
        &["search", "prompt", "--json"],
        &["export", &id, "--format", "html"],
        &["export", &id, "--format", "markdown"],
        &["export", &id, "--format", "json"],
    ];
    for args in uses {
        let printed = place.run(args);
        assert!(printed.contains('a'), "{args:?} says something");
        let found: Vec<char> = printed.chars().filter(|c| is_harmful(*c)).collect();
        assert!(found.is_empty(), "{args:?}: {found:?} in {printed:?}");
    }
    let page = place.run(&["export", &id, "--format", "html"]);
    let whole = "<a href=\"http://a\">x</a>";
    assert!(page.contains(whole), "no markup is lost between two pieces: {page}");
    // The escaped form is the same JSON.
    let json: serde_json::Value = serde_json::from_str(&place.run(&["show", &id, "--json"])).unwrap();
    assert_eq!(json["session"]["folder"], format!("/here{evil}"));
    assert!(json["events"].to_string().contains("UFdORUQ"));
}

#[test]
fn exports_are_the_users_alone_and_tell_no_arguments() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let id = place.record("/here", "hello", "hi");
    let row =
        SessionRow { args: vec!["--api-key".into(), "sk-SECRET".into()], ..place.store.find(&id).unwrap() };
    let other = place.store.import(&SessionRow { uid: "with-args".into(), ..row }, &[]).unwrap();
    for format in ["json", "markdown", "html"] {
        assert!(!place.run(&["export", &other.uid, "--format", format]).contains("SECRET"), "{format}");
        let file = place.dir.path().join(format);
        place.run(&["export", &id, "--format", format, "-o", file.to_str().unwrap()]);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{format}");
    }
}
