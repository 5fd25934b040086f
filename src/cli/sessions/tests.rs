mod attachments;
mod export;
mod forget;
mod named;
mod rescue;

use super::*;
use crate::host::os::fixtures;
use crate::model::*;
use crate::store::Recorder;

pub(in crate::cli) struct Fixture {
    dir: tempfile::TempDir,
    pub store: Store,
    /// Standard input.
    input: &'static str,
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        Self { dir, store, input: "" }
    }

    /// Records a session in a folder, and returns its id.
    fn record(&self, folder: &str, prompt: &str, answer: &str) -> String {
        let mut run = ToolCallPatch::new("t1".into());
        run.title = Patch::Set("Run the tests".to_owned());
        run.status = Patch::Set(ToolStatus::Failed);
        run.kind = Patch::Set(ToolKind::Execute);
        run.input = Patch::Set(ToolInput { command: Some("cargo test".to_owned()), ..ToolInput::default() });
        run.output_text = Patch::Set("1 failed ``` \u{1b}[31mred".into());
        let change = DiffChange::Texts { old: Some("a\n".into()), new: "b\n".into() };
        let diff = FileDiff { path: "/x.rs".into(), change };
        run.content = Patch::Set(vec![ToolContent::Diff(diff)]);
        let reply = SessionUpdate::Chunk { role: Role::Agent, message: None, text: answer.to_owned() };
        let records = vec![
            Record::Update(SessionUpdate::Tool(Box::new(run))),
            Record::Update(reply),
            Record::TurnEnded(TurnOutcome::Failed {
                error: "no more tokens".to_owned(),
                fault: crate::model::FaultKind::Agent,
                took_ms: 0,
                cost: None,
            }),
        ];
        self.record_all(folder, prompt, records)
    }

    /// Records a session with these events after the prompt, and returns its id.
    pub fn record_all(&self, folder: &str, prompt: &str, records: Vec<Record>) -> String {
        let (services, _events) = tokio::sync::mpsc::unbounded_channel();
        let mut recorder = Recorder::new(self.store.clone(), services);
        let head = SessionHead {
            agent: "fake".to_owned(),
            command: "fake".to_owned(),
            session: Some("s".into()),
            workspace: SessionWorkspace { cwd: folder.into(), ..SessionWorkspace::default() },
            ..SessionHead::default()
        };
        let first = Record::Prompt {
            text: prompt.to_owned(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        };
        let records = [first].into_iter().chain(records);
        let events = records.map(|record| Note::Event { turn: 1, record: Box::new(record) });
        recorder.keep(SessionKey(1), [Note::Head(Box::new(head))].into_iter().chain(events).collect());
        assert_eq!(recorder.finish(), None);
        let all = self.store.list(&ListFilter::default()).unwrap();
        all.into_iter().find(|row| row.first_prompt.as_deref() == Some(prompt)).unwrap().uid
    }

    fn try_run(&self, args: &[&str], answer: Option<bool>) -> anyhow::Result<String> {
        let args = ["parlor", "sessions"].iter().chain(args);
        let cli = <super::super::Cli as clap::Parser>::try_parse_from(args).unwrap();
        let Some(super::super::Command::Sessions { job }) = cli.subcommand else { unreachable!() };
        let mut out = Vec::new();
        let mut ask = |_: &str| answer.unwrap_or_default();
        let world = World {
            out: Printer::new(&mut out),
            err: Printer::new(std::io::sink()),
            folder: "/here".into(),
            now_ms: time::now_ms(),
            read_text: &mut || Ok(self.input.to_owned()),
            ask: answer.is_some().then_some(&mut ask as &mut dyn FnMut(&str) -> bool),
        };
        serve(&job, self.dir.path(), world)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn run(&self, args: &[&str]) -> String {
        self.try_run(args, None).unwrap()
    }
}

#[test]
fn list_shows_the_current_folder_and_counts_other_sessions() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run(&["list"]), "No sessions in this folder.\n");
    let here = fixture.record("/here", "fix\nthis", "done");
    fixture.record("/there", "fix that", "done");
    assert_eq!(
        fixture.run(&["list"]),
        format!(
            "  1  {here}  just now  fake  fix this\n\n1 session in other folders: `parlor sessions list --all`\n"
        )
    );
    let all = fixture.run(&["list", "--all"]);
    assert!(all.lines().count() == 2 && all.contains("fix that  /there"), "{all}");
    assert_eq!(fixture.run(&["list", "--all", "--agent", "other"]), "No sessions with other.\n");
    let json: serde_json::Value = serde_json::from_str(&fixture.run(&["list", "--json"])).unwrap();
    assert_eq!((&json[0]["id"], &json[0]["turns"]), (&here.into(), &1.into()));
}

#[test]
fn sessions_are_shown_as_markdown() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "fix this", "It is **fixed**.\u{1b}]0;title\u{7}");
    let shown = fixture.run(&["show", id.get(..4).unwrap()]);
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
    let error = fixture.try_run(&["show", "nothing"], None).unwrap_err().to_string();
    assert!(error.starts_with("Session nothing not found."), "{error}");
}

#[test]
fn html_export_contains_no_code_of_the_agent() {
    let fixture = Fixture::new();
    let answer = "**strong** <b onclick=x()>bold</b> [link](javascript:x()) ![i](http://e.org/i.png)\n\n\
                  <script>x()</script>";
    let id = fixture.record("/here", "<script>y()</script>", answer);
    let file = fixture.dir.path().join("out.html");
    let output = fixture.run(&["export", &id, "--format", "html", "-o", file.to_str().unwrap()]);
    assert_eq!(output, format!("Written to {}.\n", file.display()));
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("<strong>strong</strong>") && page.contains("&lt;script&gt;y()"), "{page}");
    assert!(page.contains("<span class=\"plus\">+b</span>"), "{page}");
    for word in ["<script", "<b ", "javascript:", "src=\"http"] {
        assert!(!page.contains(word), "{word} in {page}");
    }
}

#[test]
fn html_export_embeds_images_only() {
    let fixture = Fixture::new();
    let (services, _events) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::new(fixture.store.clone(), services);
    let image = |mime: &str, data: &str| {
        let block = ContentBlock::Image { data: data.into(), mime_type: mime.to_owned(), uri: None };
        Record::Update(SessionUpdate::Block { role: Role::Agent, message: Some("m".into()), block })
    };
    let chunk = |text: &str| {
        let (role, text) = (Role::Agent, text.to_owned());
        Record::Update(SessionUpdate::Chunk { role, message: Some("m".into()), text })
    };
    let records = [
        chunk("before it"),
        image("image/png", "iVBORw0KGgo="),
        chunk("after it"),
        image("image/svg+xml", "PHN2Zz4="),
        image("image/png", "\"><script>x()</script>"),
    ];
    let head = SessionHead { agent: "fake".to_owned(), session: Some("s".into()), ..SessionHead::default() };
    let events = records.map(|record| Note::Event { turn: 1, record: Box::new(record) });
    recorder.keep(SessionKey(1), [Note::Head(Box::new(head))].into_iter().chain(events).collect());
    assert_eq!(recorder.finish(), None);
    let page = fixture.run(&["export", "s", "--format", "html"]);
    let picture = "<img alt=\"[image, image/png]\" src=\"data:image/png;base64,iVBORw0KGgo=\">";
    let locations = ["before it", picture, "after it", "[image, image/svg+xml]"].map(|part| page.find(part));
    assert!(locations.iter().all(Option::is_some) && locations.is_sorted(), "{locations:?} in {page}");
    assert_eq!((page.matches("<img").count(), page.matches("<script").count()), (1, 0), "{page}");
    // The page loads nothing.
    assert!(page.contains("default-src 'none'") && !page.contains("://"), "{page}");
    assert!(fixture.run(&["show", "s"]).contains("before it\n\n[image, image/png]\n\nafter it"));
}

#[test]
fn exports_can_be_imported_into_another_store() {
    let (here, there) = (Fixture::new(), Fixture::new());
    let id = here.record("/here", "fix this", "done");
    let file = here.dir.path().join("out.json");
    here.run(&["export", &id, "--format", "json", "--output", file.to_str().unwrap()]);
    let file = file.to_str().unwrap();
    assert!(there.run(&["import", file]).ends_with(&format!("imported as session {id}.\n")));
    assert!(there.run(&["import", file]).ends_with("already exists.\n"));
    let (mine, copy) = (here.run(&["show", &id]), there.run(&["show", &id]));
    assert_eq!(mine, copy);
    // If one file is invalid, none is imported.
    let elsewhere = Fixture::new();
    let missing = elsewhere.dir.path().join("missing.json");
    let error =
        elsewhere.try_run(&["import", file, missing.to_str().unwrap()], None).unwrap_err().to_string();
    assert!(error.contains("pass an existing file"), "{error}");
    assert_eq!(elsewhere.store.count().unwrap(), 0);
    std::fs::write(file, "{\"format\":\"else\"}").unwrap();
    let error = there.try_run(&["import", file], None).unwrap_err().to_string();
    assert!(error.contains("is not a JSON export"), "{error}");
}

/// Records with every kind of value, including unusual ones of an agent.
fn all_sorts() -> Vec<Record> {
    let update = |update| Record::Update(update);
    let raw = |text: &str| Raw(text.into());
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
        Record::Prompt {
            text: "look\nat \u{1f980} this".to_owned(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        },
        update(SessionUpdate::Block { role: Role::User, message: Some("u1".into()), block: image }),
        update(SessionUpdate::Chunk { role: Role::Thought, message: None, text: "hm \u{202e}".to_owned() }),
        update(SessionUpdate::Tool(Box::new(call))),
        Record::Decided {
            tool: "t1".into(),
            option: Some("Yes".to_owned()),
            option_id: Some("y".to_owned()),
            kind: Some(PermissionKind::AllowAlways),
            is_allow: true,
            by: Decider::User,
            rule: None,
        },
        Record::Answered {
            question: "q?".to_owned(),
            answer: "a".to_owned(),
            request: None,
            by: Decider::User,
        },
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
            cost: None,
        }),
        Record::Archived { is_away: true },
        Record::Prompt {
            text: "again".to_owned(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        },
        update(SessionUpdate::Chunk {
            role: Role::Agent,
            message: Some("m".into()),
            text: "words".to_owned(),
        }),
    ]
}

#[test]
fn imported_sessions_are_complete() {
    let (here, there) = (Fixture::new(), Fixture::new());
    let (services, _events) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::new(here.store.clone(), services);
    let head = SessionHead {
        agent: "fake".to_owned(),
        command: "fake".to_owned(),
        args: vec!["--acp".to_owned()],
        session: Some("theirs".into()),
        workspace: SessionWorkspace {
            cwd: "/here".into(),
            additional_directories: vec![crate::model::UserRoot::given("/lib")],
            ..SessionWorkspace::default()
        },
        branch: Some("main".to_owned()),
        title: Some("Mine".to_owned()),
        has_own_title: true,
        is_child: true,
        ..SessionHead::default()
    };
    let events = all_sorts().into_iter().map(|record| Note::Event { turn: 1, record: Box::new(record) });
    let link =
        Note::CameFrom { session: SessionKey(7), saved_as: Some("0ther".to_owned()), copied_turns: None };
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
    // Text for the agent that the user has not seen is not imported.
    let mut events = here.store.events(&mine.uid).unwrap();
    events.0.retain(|event| !matches!(event.record, Record::HandedOver { .. }));
    assert_eq!(there.store.events(&mine.uid).unwrap(), events);
    // A turn that runs there is interrupted here.
    assert_eq!((mine.state.word(), copy.state.word()), ("turn", "cut"));
    // Programs, arguments and queued prompts are not imported.
    assert!(copy.is_imported && copy.command.is_empty() && copy.args.is_empty());
    assert!(copy.roots.is_empty() && copy.queue.is_empty() && copy.draft.is_empty());
    let same = SessionRow {
        is_imported: false,
        command: mine.command.clone(),
        args: mine.args.clone(),
        roots: mine.roots.clone(),
        queue: mine.queue.clone(),
        draft: mine.draft.clone(),
        next_seq: mine.next_seq,
        state: mine.state,
        folder_mark: mine.folder_mark.clone(),
        // The import has no tab.
        run: mine.run.clone(),
        opened_ms: mine.opened_ms,
        tab: mine.tab,
        ..copy
    };
    assert_eq!(same, mine);
    for query in ["look", "words"] {
        let found = [&here, &there].map(|location| location.run(&["search", query, "--json"]));
        assert_eq!(found[0], found[1]);
    }
}

#[test]
fn json_field_names_are_stable() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "mend the basket", "The basket holds.");
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&fixture.run(args)).unwrap() };
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
    let file = fixture.dir.path().join("out.json");
    let file = file.to_str().unwrap();
    let written = json(&["export", &id, "--format", "json", "-o", file, "--json"]);
    let bytes = std::fs::metadata(file).unwrap().len();
    let wanted = serde_json::json!({"session": id, "format": "json", "file": file, "bytes": bytes});
    assert_eq!(written, wanted);
    let taken = serde_json::json!([{"file": file, "session": id, "was_known": true}]);
    assert_eq!(json(&["import", file, "--json"]), taken);
    let other = Fixture::new();
    assert!(other.run(&["import", file, "--json"]).contains("\"was_known\": false"));
    let pruned = json(&["prune", "--keep", "0", "--yes", "--json"]);
    assert_eq!((names(&pruned[0]).as_str(), &pruned[0]["id"]), (row, &id.as_str().into()));
    other.run(&["import", file]);
    let deleted: serde_json::Value =
        serde_json::from_str(&other.run(&["delete", &id, "--yes", "--json"])).unwrap();
    assert_eq!(names(&deleted[0]), row);
    // Without a terminal, commands that ask require --yes; clap reports the missing option.
    for args in
        [&["delete", "x", "--json"][..], &["prune", "--keep", "1", "--json"], &["export", "x", "--json"]]
    {
        let args = ["parlor", "sessions"].iter().chain(args);
        let error = <super::super::Cli as clap::Parser>::try_parse_from(args).unwrap_err().to_string();
        assert!(error.contains("--yes") || error.contains("--output"), "{error}");
    }
}

#[test]
fn search_results_show_the_session_and_the_match() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "mend the basket", "The basket holds.");
    let found = fixture.run(&["search", "basket"]);
    assert!(found.starts_with(&format!("{id}  just now  fake  mend the basket  /here\n")), "{found}");
    assert!(found.contains("    turn 1, prompt: mend the «basket»\n"), "{found}");
    assert!(found.contains("    turn 1, answer: The «basket» holds.\n"), "{found}");
    assert_eq!(fixture.run(&["search", "basket", "--edits"]), "No matches.\n");
    let failed = fixture.run(&["search", "cargo", "--errors"]);
    assert!(failed.contains("turn 1, edit, failed:"), "{failed}");
    assert_eq!(fixture.run(&["search", "basket", "--until", "1h"]), "No matches.\n");
    assert!(
        fixture
            .run(&["search", "basket", "--since", "1h", "--json"])
            .contains("\"snippet\": \"mend the basket\"")
    );
    let error = fixture.try_run(&["search", "x", "--since", "soon"], None).unwrap_err().to_string();
    assert!(error.contains("invalid time soon; use a date"), "{error}");
}

#[test]
fn nothing_is_deleted_without_confirmation() {
    let fixture = Fixture::new();
    let one = fixture.record("/here", "one", "1");
    fixture.record("/here", "two", "2");
    let error = fixture.try_run(&["delete", &one], None).unwrap_err().to_string();
    assert!(error.contains("pass --yes"), "{error}");
    assert!(fixture.try_run(&["delete", &one], Some(false)).unwrap().ends_with("Nothing was deleted.\n"));
    assert_eq!(fixture.store.count().unwrap(), 2);
    assert!(fixture.try_run(&["delete", &one], Some(true)).unwrap().contains("Deleted 1 session;"));
    assert_eq!(fixture.store.count().unwrap(), 1);

    let error = fixture.try_run(&["prune", "--yes"], None).unwrap_err().to_string();
    assert!(error.contains("pass --older-than"), "{error}");
    assert!(fixture.run(&["prune", "--older-than", "1d", "--yes"]).starts_with("Nothing to delete"));
    assert!(fixture.try_run(&["prune", "--keep", "0"], Some(false)).unwrap().contains("Nothing was deleted"));
    assert_eq!(fixture.run(&["prune", "--older-than", "1d", "--yes", "--json"]).trim(), "[]");
    let deleted: serde_json::Value =
        serde_json::from_str(&fixture.run(&["prune", "--keep", "0", "--yes", "--json"])).unwrap();
    assert_eq!(deleted.as_array().unwrap().len(), 1, "{deleted}");
    assert_eq!(fixture.store.count().unwrap(), 0);
    let two = fixture.record("/here", "two", "done");
    let deleted: serde_json::Value =
        serde_json::from_str(&fixture.run(&["delete", &two, &two, "--yes", "--json"])).unwrap();
    assert_eq!(deleted[0]["id"], two.as_str(), "{deleted}");
    assert_eq!(deleted.as_array().unwrap().len(), 1, "{deleted}");
}

#[test]
fn prune_deletes_the_oldest_sessions_that_are_not_open() {
    let fixture = Fixture::new();
    let large = "word ".repeat(40_000);
    let open = fixture.record("/here", "open", &large);
    fixture.store.reopen(&open).unwrap();
    for prompt in ["one", "two", "three"] {
        fixture.record("/here", prompt, &large);
    }
    let last = fixture.record("/here", "last", "small");
    assert!(fixture.run(&["prune", "--down-to", "1G", "--yes"]).starts_with("Nothing to delete"));
    let before = fixture.store.used_bytes().unwrap();
    let target = before - before / 3;
    let output = fixture.run(&["prune", "--down-to", &target.to_string(), "--yes"]);
    assert!(output.contains("  one") && !output.contains("  three"), "{output}");
    assert!(fixture.store.used_bytes().unwrap() <= target, "{output}");
    fixture.run(&["prune", "--down-to", "0", "--yes"]);
    let left: Vec<String> =
        fixture.store.list(&ListFilter::default()).unwrap().into_iter().map(|row| row.uid).collect();
    assert_eq!(left, std::slice::from_ref(&open), "not even {last} fits");
    let error = fixture.try_run(&["delete", &open, "--yes"], None).unwrap_err().to_string();
    assert!(error.contains("close it there first"), "{error}");
    for (text, wanted) in [("500m", 500 << 20), ("2GiB", 2 << 30), (" 12 kb", 12 << 10), ("7", 7)] {
        assert_eq!(bytes(text).unwrap(), wanted);
    }
    assert!(bytes("many").is_err() && bytes("").is_err() && bytes("99999999999G").is_err());
}

#[test]
fn dates_and_ages_are_parsed() {
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
fn errors_are_not_printed_to_standard_output() {
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
        read_text: &mut || Ok(String::new()),
        ask: None,
    };
    serve(&job, dir.path(), world).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), serde_json::json!([]));
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains("Could not read") && err.contains("It was renamed to"), "{err}");
}

/// Whether a character controls a terminal, or hides or reorders text.
fn is_harmful(c: char) -> bool {
    let hides =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    hides || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[test]
fn printed_text_contains_no_control_characters() {
    let evil = "a\u{1b}]52;c;UFdORUQ=\u{7}\u{9d}0;own\u{9c}\u{202e}b\u{7f}\u{85}c\u{feff}";
    // Markdown decodes entities, and each of these parts is sanitised separately.
    let answer = format!(
        "{evil} &#27;]52;c;x&#7; &#x202e; `{evil}` [l{evil}](http://e.org/{evil} \"{evil}&#27;]0;\")\n\n\
         ```{evil}\n{evil}\n```\n\n![{evil}]({evil})\n\n[x](http://a \"&#27;]\") &#7;\" onmouseover=alert(1) x=\""
    );
    let fixture = Fixture::new();
    let id = fixture.record(&format!("/here{evil}"), &format!("prompt {evil}"), &answer);
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
        let printed = fixture.run(args);
        assert!(printed.contains('a'), "{args:?} prints something");
        let found: Vec<char> = printed.chars().filter(|c| is_harmful(*c)).collect();
        assert!(found.is_empty(), "{args:?}: {found:?} in {printed:?}");
    }
    let page = fixture.run(&["export", &id, "--format", "html"]);
    let whole = "<a href=\"http://a\">x</a>";
    assert!(page.contains(whole), "no markup is lost between two parts: {page}");
    // The escaped form is valid JSON.
    let json: serde_json::Value = serde_json::from_str(&fixture.run(&["show", &id, "--json"])).unwrap();
    assert_eq!(json["session"]["folder"], format!("/here{evil}"));
    assert!(json["events"].to_string().contains("UFdORUQ"));
}

#[test]
fn exports_are_private_and_omit_arguments() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "hello", "hi");
    let row =
        SessionRow { args: vec!["--api-key".into(), "sk-SECRET".into()], ..fixture.store.find(&id).unwrap() };
    let other = fixture.store.import(&SessionRow { uid: "with-args".into(), ..row }, &[]).unwrap();
    for format in ["json", "markdown", "html"] {
        assert!(!fixture.run(&["export", &other.uid, "--format", format]).contains("SECRET"), "{format}");
        let file = fixture.dir.path().join(format);
        fixture.run(&["export", &id, "--format", format, "-o", file.to_str().unwrap()]);
        assert_eq!(fixtures::mode(&file), 0o600, "{format}");
    }
}
