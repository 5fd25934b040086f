//! Files of exports: links, pipes and the exact bytes of diffs.

use std::io::Read as _;

use super::*;
use crate::cli::sessions::export;
use crate::host::os::fixtures;

#[test]
fn an_export_follows_links_and_keeps_pipes() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "fix this", "done");
    let at = |name: &str| fixture.dir.path().join(name);
    std::fs::write(at("target.md"), "old").unwrap();
    fixtures::link("target.md", at("link.md"));
    fixture.run(&["export", &id, "-o", at("link.md").to_str().unwrap(), "--force"]);
    assert!(at("link.md").symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(at("target.md")).unwrap().starts_with("# fix this"));
    fixtures::link("new.md", at("dangling.md"));
    fixture.run(&["export", &id, "-o", at("dangling.md").to_str().unwrap(), "--force"]);
    assert!(at("dangling.md").symlink_metadata().unwrap().is_symlink() && at("new.md").is_file());
    let pipe = at("pipe");
    fixtures::pipe(&pipe);
    let export = ["export", &id, "-o", pipe.to_str().unwrap(), "--force"];
    let refusal = fixture.try_run(&export, None).unwrap_err();
    let refusal = format!("{refusal:#}");
    assert!(refusal.contains("nothing reads from the pipe"), "{refusal}");
    let mut reader = fixtures::open_pipe(&pipe);
    fixture.run(&export);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("# fix this"));
}

#[test]
fn existing_files_are_replaced_only_with_force_or_confirmation() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "fix this", "done");
    let path = fixture.dir.path().join("notes.md");
    let file = path.to_str().unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, "notes of a month").unwrap();
    let error = fixture.try_run(&["export", &id, "-o", file], None).unwrap_err().to_string();
    assert!(error.contains("notes.md already exists") && error.contains("--force"), "{error}");
    assert!(fixture.try_run(&["export", &id, "-o", file], Some(false)).is_err());
    // With --json, the user is not asked.
    assert!(fixture.try_run(&["export", &id, "-o", file, "--json"], Some(true)).is_err());
    assert_eq!(read(), "notes of a month");
    assert!(fixture.try_run(&["export", &id, "-o", file], Some(true)).unwrap().starts_with("Written to"));
    assert!(read().starts_with("# fix this"));
    std::fs::write(&path, "notes").unwrap();
    fixture.run(&["export", &id, "-o", file, "--force"]);
    assert!(read().starts_with("# fix this"));
    // A failed write leaves no partial file.
    let below = fixture.dir.path().join("missing/notes.md");
    let error = fixture.try_run(&["export", &id, "-o", below.to_str().unwrap()], None).unwrap_err();
    assert!(error.to_string().contains("pass another file"), "{error}");
    let into =
        |name: &str| export_into(&fixture.store, &id, ExportForm::Markdown, &fixture.dir.path().join(name));
    std::fs::create_dir(fixture.dir.path().join("out")).unwrap();
    let (first, second) = (into("out").unwrap(), into("out").unwrap());
    assert!(first.exists() && first.ends_with("out/parlor-fix-this.md"), "{first:?}");
    assert!(second.exists() && second.ends_with("out/parlor-fix-this-2.md"), "{second:?}");
    assert_eq!(std::fs::read_dir(fixture.dir.path().join("out")).unwrap().count(), 2, "no partial file");
}

#[test]
fn secrets_are_hidden_in_all_of_a_long_text() {
    let key = format!("ghp_{}", "aB3xK9mQ7zT2pL5wR8cV".repeat(2));
    let long = "line\n".repeat(1 << 20);
    let text = export::hide(&format!("{long}{key}\n{long}"));
    assert_eq!(text, format!("{long}{}\n{long}", "*".repeat(key.len())));
    let cut = format!("-----BEGIN PRIVATE KEY-----\n{}\n", "aB3xK9mQ7zT2pL5w\n".repeat(9));
    assert!(!export::hide(&cut).contains("aB3x"), "without its end");
}

#[test]
fn secrets_are_hidden_in_exports_for_reading() {
    let fixture = Fixture::new();
    let key = format!("ghp_{}", "aB3xK9mQ7zT2pL5wR8cV".repeat(2));
    let mut tool = ToolCallPatch::new("t".into());
    tool.title = Patch::Set(format!("curl {key}"));
    tool.output_text = Patch::Set(format!("token=\"{key}\"").into());
    let id = fixture.record_all(
        "/here",
        &format!("use {key}"),
        vec![Record::Update(SessionUpdate::Tool(Box::new(tool)))],
    );
    for format in ["markdown", "html"] {
        let text = fixture.run(&["export", &id, "--format", format]);
        assert!(text.matches(&key).count() >= 3, "{format}: {text}");
        let text = fixture.run(&["export", &id, "--format", format, "--redact"]);
        assert!(!text.contains("ghp_") && text.contains("use ****"), "{format}: {text}");
    }
    let error = fixture.try_run(&["export", &id, "--format", "json", "--redact"], None).unwrap_err();
    assert_eq!(error.to_string(), "secrets cannot be hidden in JSON; export Markdown or HTML");
    let file = export::export_into(&fixture.store, &id, ExportForm::Redacted, fixture.dir.path()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("use ****") && !text.contains("ghp_"), "{text}");
    assert!(!file.to_string_lossy().to_lowercase().contains("ab3x"), "{file:?}");
}

#[test]
fn exports_say_who_decided() {
    let fixture = Fixture::new();
    let option =
        PermissionOption { id: "y".into(), name: "Go ahead".into(), kind: PermissionKind::AllowOnce };
    let access = Access::Run(CommandAccess { line: "make".into(), cwd: "/here".into(), env: Vec::new() });
    let rule = Some("policy.ask_commands = false".to_owned());
    let allowed = Allowance { rule, ..AllowedBy::Configuration.into() };
    let id = fixture.record_all(
        "/here",
        "go",
        vec![
            Record::Asked { tool: Box::new(ToolCallPatch::new("t".into())), options: vec![option] },
            Record::Decided {
                tool: "t".into(),
                option: Some("Go ahead".to_owned()),
                option_id: Some("y".to_owned()),
                kind: Some(PermissionKind::AllowOnce),
                is_allow: true,
                by: Decider::User,
                rule: None,
            },
            Record::Answered {
                question: "Which port?".to_owned(),
                answer: "accepted: 8080".to_owned(),
                request: None,
                by: Decider::User,
            },
            Record::Access(Box::new(AccessRecord::allowed(access, allowed))),
        ],
    );
    for format in ["markdown", "html"] {
        let text = fixture.run(&["export", &id, "--format", format]);
        for line in [
            "Allowed once by the user: Go ahead",
            "accepted: 8080 (by the user)",
            "allowed by the rule `policy.ask_commands = false` of the configuration",
        ] {
            assert!(text.contains(line), "{format}: {line}\n{text}");
        }
    }
    let json = fixture.run(&["export", &id, "--format", "json"]);
    for part in ["\"option_id\": \"y\"", "\"by\": \"user\"", "\"name\": \"Go ahead\""] {
        assert!(json.contains(part), "{part}\n{json}");
    }
}

#[test]
fn exported_diffs_keep_line_ends_and_blanks() {
    let mut text = String::new();
    export::fence(&mut text, "diff", "-a\r\n+B\r\n+\t");
    assert_eq!(text, "```diff\n-a\r\n+B\r\n+\t\n```\n\n");
    assert_eq!(export::sanitized_line("+B\u{1b}[1m\r\n"), "+B\r\n");
}
