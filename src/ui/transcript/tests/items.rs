//! Each kind of item, folded and expanded, at three widths: text and styles.

#![allow(clippy::format_push_string, clippy::format_collect, reason = "shorter code is preferred in tests")]

use super::*;
use crate::config::keymap::Keymap;
use crate::ui::cells::{ToolBody, diffs_of};
use crate::ui::render_context::HistoryKeys;

/// Draws a session folded by rule, expanded and closed at each width, and compares the snapshots.
fn snap(name: &str, session: &Viewed) {
    crate::ui::highlight::wait_for(&["rs", "rust"]);
    let mut out = String::new();
    for cols in [40, 80, 200] {
        for (word, is_open) in [("by rule", None), ("open", Some(true)), ("closed", Some(false))] {
            let mut session = session.clone();
            let ids: Vec<ItemId> = session.transcript.items().iter().map(|item| item.id).collect();
            for id in ids {
                session.view.set_open(id, is_open);
            }
            let buf = render(&session, &mut TranscriptView::default(), cols, 60);
            out.push_str(&format!("== {cols} columns, {word}\n{}\n", digest(&buf)));
        }
    }
    insta::assert_snapshot!(name, out);
}

fn texts(path: &str, old: Option<&str>, new: &str) -> FileDiff {
    FileDiff { path: path.into(), change: DiffChange::Texts { old: old.map(Into::into), new: new.into() } }
}

fn edit() -> ToolCall {
    let mut call = tool(ToolKind::Edit, ToolStatus::Completed, "Edit token.rs");
    let old = "impl Token {\n    fn refresh(&mut self) -> Result<Token> {\n        if self.expires < now() {\n            return self.renew();\n        }\n        Ok(self.clone())\n    }\n}\n";
    let new =
        old.replace("< now() {", "<= now() + SKEW {").replace("self.clone()", "self.clone() // still good");
    call.content = vec![ToolContent::Diff(texts("/home/ada/shop/src/auth/token.rs", Some(old), &new))];
    call
}

#[test]
fn messages() {
    let mut session = session();
    push(
        &mut session,
        message(
            Role::User,
            "fix the failing test in src/auth.rs\nand say why it failed, please, in one short sentence",
        ),
    );
    push(
        &mut session,
        message(
            Role::Agent,
            "I'll look at the **test** first.\n\n1. a test for the boundary\n2. the same check in `session.rs`\n\n\
             ```rust\nfn main() {\n    let skew = 30; // seconds\n}\n```\n\n> see [the book](https://doc.rust-lang.org)\n\n\
             | file | change |\n|---|---|\n| token.rs | compares with the clock skew |\n",
        ),
    );
    snap("messages", &session);
}

#[test]
fn blocks() {
    let mut session = session();
    let image = ContentBlock::Image {
        data: "AAAA".repeat(9000).into(),
        mime_type: "image/png".into(),
        uri: Some("shot.png".into()),
    };
    let link = ContentBlock::ResourceLink(ResourceLink {
        uri: "file:///home/ada/shop/README.md".into(),
        name: "README.md".into(),
        size_bytes: Some(2048),
        ..ResourceLink::default()
    });
    let ItemBody::Message(mut with_blocks) = message(Role::Agent, "Here it is:") else { unreachable!() };
    with_blocks.parts.push(MessagePart::Block(image));
    with_blocks.parts.push(MessagePart::Text("and its source".into()));
    with_blocks.parts.push(MessagePart::Block(link));
    push(&mut session, ItemBody::Message(with_blocks));
    snap("blocks", &session);
}

#[test]
fn attached_files_are_shown_without_their_content() {
    let mut session = session();
    let file = ContentBlock::Resource {
        uri: "file:///home/ada/shop/src/auth.rs".into(),
        mime_type: Some("text/plain".into()),
        body: ResourceBody::Text("fn refresh() {}\n".into()),
    };
    for is_local in [true, false] {
        let ItemBody::Message(mut prompt) = message(Role::User, "see @src/auth.rs") else { unreachable!() };
        prompt.is_local = is_local;
        prompt.parts.push(MessagePart::Block(file.clone()));
        push(&mut session, ItemBody::Message(prompt));
    }
    snap("attached_files", &session);
}

#[test]
fn long_prompts() {
    let mut session = session();
    let text: String = (1..=48).map(|n| format!("a line that was pasted, number {n} of many\n")).collect();
    push(&mut session, message(Role::User, &text));
    snap("long_prompts", &session);
}

#[test]
fn pasted_texts_are_labels_until_the_prompt_is_opened() {
    let mut session = session();
    let pasted: String = (1..=12).map(|n| format!("line {n} of a paste\n")).collect();
    let text = format!("fix {pasted} and reply");
    let ItemBody::Message(mut prompt) = message(Role::User, &text) else { unreachable!() };
    prompt.pasted.push(4..4 + pasted.len());
    push(&mut session, ItemBody::Message(prompt));
    snap("pasted_text", &session);
}

#[test]
fn tables_formulas_and_diagrams() {
    let mut session = session();
    let head: String = (1..=9).map(|n| format!("| column {n} ")).collect();
    let cells: String = (1..=9).map(|n| format!("| the value of column {n} ")).collect();
    let text = format!(
        "Let \\(a_b * c_d\\) and $x_1$ be.\n\n{head}|\n{}|\n{cells}|\n{cells}|\n\n```mermaid\ngraph TD\n  A --> B\n```\n",
        "|---".repeat(9)
    );
    push(&mut session, message(Role::Agent, &text));
    snap("tables_formulas_and_diagrams", &session);
}

#[test]
fn pictures() {
    use crate::ui::picture::{self, Drawn, Facts, Grid, PictureRows};
    picture::show(Some(Grid { cell: (1, 2), max_pixels: u32::MAX }));
    let mut session = session();
    let image =
        ContentBlock::Image { data: "AAAA".repeat(9).into(), mime_type: "image/png".into(), uri: None };
    let ItemBody::Message(mut with_picture) = message(Role::Agent, "Look:") else { unreachable!() };
    with_picture.parts.push(MessagePart::Block(image.clone()));
    push(&mut session, ItemBody::Message(with_picture));
    let mut call = tool(ToolKind::Read, ToolStatus::Completed, "Read shot.png");
    call.content = vec![ToolContent::Block(image)];
    push_tool(&mut session, call);
    // Each width queues its own image.
    for cols in [40, 80, 200] {
        for item in [None, Some(true)] {
            session.view.set_open(ItemId(1), item);
            let mut view = TranscriptView::default();
            render(&session, &mut view, cols, 60);
            while let Some(wanted) = picture::take_wanted() {
                let facts = Facts { pixels: (6, 4), format: "png", bytes: 27 };
                let rows = ["█▀▀▀▀█", "█▄▄▄▄█"].map(crate::ui::text::Line::raw).to_vec();
                picture::put(
                    wanted.key,
                    Ok(Drawn { facts, rows: PictureRows::Text(rows), saved_as: None, weight: 9 }),
                );
                render(&session, &mut view, cols, 60);
            }
        }
    }
    snap("pictures", &session);
}

#[test]
fn images_of_a_prompt_are_thumbnails_until_it_is_opened() {
    use crate::ui::picture::{self, Grid};
    picture::show(Some(Grid { cell: (1, 2), max_pixels: u32::MAX }));
    let cols_of = |is_local: bool, is_open: Option<bool>| {
        let image = ContentBlock::Image { data: "AAAA".into(), mime_type: "image/png".into(), uri: None };
        let mut session = session();
        let ItemBody::Message(mut prompt) = message(Role::User, "see") else { unreachable!() };
        prompt.is_local = is_local;
        prompt.parts.push(MessagePart::Block(image));
        let id = session.transcript.push(1, ItemBody::Message(prompt));
        session.view.set_open(id, is_open);
        render(&session, &mut TranscriptView::default(), 80, 60);
        picture::take_wanted().map(|wanted| wanted.cols)
    };
    assert_eq!(cols_of(true, None), Some(32));
    assert!(cols_of(true, Some(true)) > Some(60));
    assert!(cols_of(false, None) > Some(60));
}

#[test]
fn decided_requests_without_a_call_use_no_row() {
    let mut session = session();
    push(&mut session, message(Role::User, "one"));
    let before = rows_of(&render(&session, &mut TranscriptView::default(), 60, 10));
    let mut call = tool(ToolKind::Execute, ToolStatus::Cancelled, "asked only");
    (call.from_ask_only, call.decision) =
        (true, Some(crate::core::Decision::Cancelled(crate::model::Decider::User)));
    push_tool(&mut session, call);
    assert_eq!(rows_of(&render(&session, &mut TranscriptView::default(), 60, 10)), before);
}

#[test]
fn lines_of_read_files_are_preserved() {
    let mut session = session();
    let mut call = tool(ToolKind::Read, ToolStatus::Completed, "Read receipt.sh");
    call.content =
        vec![ToolContent::Block(ContentBlock::Text("# Prints a receipt.\ntotal=0\ncount=1\n".into()))];
    let id = push_tool(&mut session, call);
    session.view.set_open(id, Some(true));
    let rows = rows_of(&render(&session, &mut TranscriptView::default(), 60, 10));
    for line in ["# Prints a receipt.", "total=0", "count=1"] {
        assert!(rows.iter().any(|row| row.trim() == line), "{line}: {rows:?}");
    }
}

#[test]
fn thoughts() {
    let mut session = session();
    let text = "The check compares with now.\n\nPerhaps the clocks differ by a few seconds, so a token that is about to \
        expire is still taken as good.\n\n- look at token.rs\n- look at session.rs";
    push(&mut session, message(Role::Thought, text));
    push(&mut session, open_message(Role::Thought, text));
    push(&mut session, message(Role::SubagentMessage, "Find all callers.\nTell only their names."));
    snap("thoughts", &session);
}

#[test]
fn edits() {
    let mut session = session();
    push_tool(&mut session, edit());
    let mut new = tool(ToolKind::Edit, ToolStatus::Completed, "");
    let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    new.content = vec![ToolContent::Diff(texts("/home/ada/shop/notes.txt", None, &text))];
    push_tool(&mut session, new);
    snap("edits", &session);
}

#[test]
fn patches() {
    let mut session = session();
    let moved = "diff --git a/old.txt b/new.txt\nsimilarity index 90%\nrename from old.txt\nrename to new.txt\n\
                 --- a/old.txt\n+++ b/new.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    let gone = "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n\
                @@ -1 +0,0 @@\n-bye\n";
    let calls: [&[(&str, &str)]; 4] = [
        &[(
            "src/a.rs",
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -7,2 +7,2 @@ fn a() {\n     one();\n-    two();\n+    three();\n",
        )],
        &[("new.txt", moved)],
        &[
            ("run.sh", "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"),
            ("logo.png", "diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n"),
        ],
        &[("gone.txt", gone)],
    ];
    for files in calls {
        let mut call = tool(ToolKind::Edit, ToolStatus::Completed, "Apply a patch");
        let diff = |(path, patch): &(&str, &str)| FileDiff {
            path: format!("/home/ada/shop/{path}").into(),
            change: DiffChange::Patch((*patch).into()),
        };
        call.input.diffs = files.iter().map(diff).collect();
        push_tool(&mut session, call);
    }
    snap("patches", &session);
}

#[test]
fn other_calls() {
    let mut session = session();
    let position = |path: &str| Location { path: format!("/home/ada/shop/{path}").into(), line: None };
    let mut delete = tool(ToolKind::Delete, ToolStatus::Completed, "Delete old.rs");
    delete.locations = vec![position("src/old.rs")];
    push_tool(&mut session, delete);
    push_tool(&mut session, tool(ToolKind::Move, ToolStatus::Completed, "Move a.rs to b.rs"));
    let mut think = tool(ToolKind::Think, ToolStatus::Completed, "Weigh both ways");
    think.content =
        vec![ToolContent::Block(ContentBlock::Text("The first is shorter.\nThe second is safer.".into()))];
    push_tool(&mut session, think);
    push_tool(&mut session, tool(ToolKind::SwitchMode, ToolStatus::Completed, "Plan first"));
    let mut task = tool(ToolKind::Other, ToolStatus::InProgress, "Find all callers");
    task.id = "task".into();
    task.calls = 3;
    push_tool(&mut session, task);
    for (name, status) in
        [("a", ToolStatus::Completed), ("b", ToolStatus::Completed), ("c", ToolStatus::Failed)]
    {
        let mut child = tool(ToolKind::Read, status, "Read a file");
        (child.id, child.parent) = (name.into(), Some("task".into()));
        child.locations = vec![position(&format!("src/{name}.rs"))];
        if status == ToolStatus::Failed {
            child.content = vec![ToolContent::Block(ContentBlock::Text("There is no such file.".into()))];
        }
        push_tool(&mut session, child);
    }
    // A progress bar that overwrote itself is one line.
    let mut pull = tool(ToolKind::Execute, ToolStatus::Completed, "Fetch");
    pull.input.command = Some("make fetch".into());
    let bars: String = (0..=10).map(|n| format!("\r\x1b[K[{:10}] {n}0%", "#".repeat(n))).collect();
    pull.content =
        vec![ToolContent::Block(ContentBlock::Text(format!("begin\n{bars}\n\x1b[32mdone\x1b[0m\n").into()))];
    push_tool(&mut session, pull);
    snap("other_calls", &session);
}

#[test]
fn commands() {
    let mut session = session();
    let view = TerminalView {
        command: Some("cargo test auth".into()),
        output: (1..=20)
            .flat_map(|n| format!("test auth::case_{n} ... \x1b[32mok\x1b[0m\r\n").into_bytes())
            .collect::<Vec<u8>>()
            .into(),
        ..TerminalView::new(true, start())
    };
    session.terminals.insert("t1".into(), view.clone());
    let exit = Some(ExitInfo { code: Some(101), signal: None });
    session.terminals.insert("t2".into(), TerminalView { exit, ..view });
    let mut running = tool(ToolKind::Execute, ToolStatus::InProgress, "Run the tests");
    running.input.command = Some("cargo test auth".into());
    running.content = vec![ToolContent::Terminal("t1".into())];
    push_tool(&mut session, running.clone());
    let mut failed = running;
    (failed.status, failed.took) = (ToolStatus::Failed, Some(Duration::from_secs(75)));
    failed.content = vec![ToolContent::Terminal("t2".into())];
    push_tool(&mut session, failed);
    let mut listing = tool(ToolKind::Execute, ToolStatus::Completed, "`ls`");
    listing.content = vec![ToolContent::Block(ContentBlock::Text("```console\nCargo.toml\nsrc\n```".into()))];
    push_tool(&mut session, listing);
    snap("commands", &session);
}

#[test]
fn output_of_the_users_command_is_not_cut() {
    let shown = |number| {
        let mut session = session();
        let output = (1..=40).flat_map(|n| format!("line {n}\r\n").into_bytes()).collect::<Vec<u8>>().into();
        let exit = Some(ExitInfo { code: Some(0), signal: None });
        let view = TerminalView { output, exit, number, ..TerminalView::new(true, start()) };
        session.terminals.insert("t1".into(), view);
        let mut call = tool(ToolKind::Execute, ToolStatus::Completed, "seq");
        call.content = vec![ToolContent::Terminal("t1".into())];
        push_tool(&mut session, call);
        let rows = rows_of(&render(&session, &mut TranscriptView::default(), 80, 60)).join("\n");
        rows.matches("line ").count()
    };
    assert_eq!(shown(Some(1)), 40);
    assert!(shown(None) < 12, "a command of the agent");
}

#[test]
fn reads_and_searches() {
    let mut session = session();
    for path in
        ["src/auth.rs", "src/auth/token.rs", "src/auth/session.rs", "src/a/very/long/path/to/some/file.rs"]
    {
        let mut read = tool(ToolKind::Read, ToolStatus::Completed, "Read a file");
        read.locations = vec![Location { path: format!("/home/ada/shop/{path}").into(), line: None }];
        push_tool(&mut session, read);
    }
    push_tool(&mut session, tool(ToolKind::Search, ToolStatus::Completed, "\"fn refresh\" in src"));
    let mut child = tool(ToolKind::Read, ToolStatus::InProgress, "Read");
    child.parent = Some("task".into());
    child.locations = vec![Location { path: "/etc/hosts".into(), line: Some(12) }];
    push_tool(&mut session, child);
    snap("reads_and_searches", &session);
}

#[test]
fn failures_and_decisions() {
    let mut session = session();
    let mut failed = tool(ToolKind::Fetch, ToolStatus::Failed, "");
    failed.input.url = Some("https://example.org/a".into());
    failed.content = vec![ToolContent::Block(ContentBlock::Text(
        "The server answered 503.\n1\n2\n3\n4\n5\n6\n7\n8".into(),
    ))];
    push_tool(&mut session, failed);
    let mut rejected = edit();
    rejected.status = ToolStatus::Failed;
    rejected.decision =
        Some(crate::core::Decision::Chosen { name: "No".into(), kind: None, is_allow: false, rule: None });
    push_tool(&mut session, rejected);
    push_tool(&mut session, tool(ToolKind::Other, ToolStatus::Cancelled, "something else"));
    let mut raw = tool(ToolKind::Other, ToolStatus::Completed, "with raw input");
    raw.raw_input = Some(Raw("{\"a\":1,\"b\":\"two\"}".into()));
    raw.content = vec![ToolContent::Unknown(Raw("{\"type\":\"hologram\"}".into()))];
    push_tool(&mut session, raw);
    snap("failures_and_decisions", &session);
}

#[test]
fn everything_else() {
    let mut session = session();
    let took = Duration::from_secs(12);
    for reason in [StopReason::Cancelled, StopReason::Refusal, StopReason::MaxTokens] {
        push(&mut session, ItemBody::TurnEnd(TurnEnd::Stopped { reason, usage: None, took }));
    }
    let error = "Rate limit reached.\nTry again in a minute.".into();
    push(&mut session, ItemBody::TurnEnd(TurnEnd::Failed { error, fault: FaultKind::Busy }));
    push(
        &mut session,
        ItemBody::TurnEnd(TurnEnd::AgentDied {
            cause: "The agent exited with signal 9.".into(),
            stderr_tail: (1..9).map(|n| format!("stderr line {n}")).collect(),
        }),
    );
    for severity in [Severity::Info, Severity::Warning, Severity::Error] {
        let detail = Some("More about it.".into());
        push(&mut session, ItemBody::notice(severity, "Something to know".into(), detail));
    }
    for (status, error) in
        [("in_progress", None), ("completed", None), ("failed", Some("too long".to_owned()))]
    {
        let summary = "We **fixed** the token.".into();
        push(&mut session, ItemBody::Compaction { id: "c".into(), status: status.into(), summary, error });
    }
    push(
        &mut session,
        ItemBody::Subagent {
            session: "child".into(),
            key: None,
            title: "Look for callers".into(),
            description: Some("Find all callers of refresh.".into()),
            state: Some("running".into()),
            calls: 3,
        },
    );
    push(
        &mut session,
        ItemBody::Answered {
            question: "Which port?".into(),
            answer: "accepted: 8080".into(),
            by: crate::model::Decider::User,
        },
    );
    push(&mut session, ItemBody::Raw { name: "hologram".into(), raw: Raw("{\"x\":1}".into()) });
    snap("everything_else", &session);
}

#[test]
fn selection_and_open_requests_are_marked() {
    let mut session = session();
    push(&mut session, message(Role::User, "do it"));
    let mut call = edit();
    // One agent reports that the call runs while it waits for its permission.
    call.status = ToolStatus::InProgress;
    let id = push_tool(&mut session, call);
    session.view.selected = Some(id);
    let request =
        PermissionRequest { session: None, tool: ToolCallPatch::new("call".into()), options: Vec::new() };
    session.requests.push_back(crate::core::OpenRequest {
        conn: ConnId(1),
        request_id: RequestId(1),
        kind: crate::core::OpenRequestKind::Permission { request, tool: id },
        since: start(),
    });
    let rows = rows_of(&render(&session, &mut TranscriptView::default(), 90, 20));
    assert!(rows.iter().any(|row| row.starts_with(" ▌ do it")), "{rows:?}");
    let head = rows.iter().find(|row| row.contains("edit")).unwrap();
    assert!(head.starts_with(" ▸ ○ edit") && head.contains("answer required"), "{head}");
}

#[test]
fn lines_about_the_agents_history_show_their_key() {
    let mut session = session();
    for (kind, title) in [(NoticeKind::HistoryDiffers, "It differs."), (NoticeKind::Taken(1), "1 turn")] {
        let (severity, title) = (Severity::Info, title.to_owned());
        push(&mut session, ItemBody::Notice { kind, severity, title, detail: None });
    }
    let theme = dark();
    let mut view = TranscriptView::default();
    let mut shown = |history_keys| {
        let context = RenderContext { history_keys, ..context(&theme) };
        rows_of(&render_with(&session, &mut view, &context, 60, 8)).join("\n")
    };
    let defaults = Keymap::defaults();
    let rows = shown(HistoryKeys::of(&defaults));
    assert!(rows.contains("Ctrl+X h: Show the agent's version"), "{rows}");
    assert!(rows.contains("Ctrl+X z: Put back turns of the agent"), "{rows}");
    let text =
        "[keys.main]\n\"ctrl+x h\" = \"none\"\n\"f11\" = \"open-agent-history\"\n\"ctrl+x z\" = \"none\"";
    let paths = crate::config::Paths::find(Some("/c.toml".into()), Some("/tmp".into())).unwrap();
    let keymap = crate::config::read(&paths, text, &crate::config::Surroundings::default()).0.keymap;
    let rows = shown(HistoryKeys::of(&keymap));
    assert!(rows.contains("F11: Show the agent's version"), "a changed key is shown at once: {rows}");
    assert!(rows.contains("Command palette: Put back turns of the agent"), "{rows}");
}

#[test]
fn plain_glyphs_are_ascii() {
    let mut session = session();
    push(&mut session, message(Role::User, "hello"));
    push(&mut session, message(Role::Agent, "- a\n\n> b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n---"));
    push_tool(&mut session, edit());
    push(&mut session, message(Role::Thought, "hm"));
    let theme = Theme::plain();
    let plain = RenderContext { glyphs: Glyphs::plain(), ..context(&theme) };
    let buf = render_with(&session, &mut TranscriptView::default(), &plain, 80, 40);
    for row in rows_of(&buf) {
        assert!(row.is_ascii(), "{row}");
    }
}

#[test]
fn dialogs_show_the_entire_change_and_command() {
    let theme = dark();
    let mut run = tool(ToolKind::Execute, ToolStatus::Pending, "rm");
    run.input.command = Some("# tidy up\nrm -rf target".into());
    let whole = |tool: &ToolCall, cols: u16| {
        let mut body = ToolBody::of(tool, &session(), &context(&theme), cols);
        body.lines(0..body.len(), &context(&theme))
    };
    let lines = whole(&run, 40);
    let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["$ # tidy up", "  rm -rf target"]);
    assert_eq!(whole(&edit(), 60).len(), 10);
}

#[test]
fn duplicate_changes_are_shown_once() {
    let mut call = edit();
    call.content.push(call.content[0].clone());
    let diffs = diffs_of(&call).unwrap();
    assert_eq!((diffs.len(), diffs[0].added, diffs[0].removed), (1, 2, 2));
}
