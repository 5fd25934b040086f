//! Permission requests on the entire screen.

use super::*;
use crate::core::{ItemBody, OpenRequestKind};
use crate::model::{DiffChange, FileDiff, Grant, ToolContent, ToolInput, ToolKind};

#[test]
fn requests_name_the_changed_files() {
    let named = |names: &[&str]| {
        let mut stage = permission();
        stage.session(|session| {
            let id = session.transcript.items().last().unwrap().id;
            session.transcript.edit(id, |item| {
                let ItemBody::Tool(tool) = &mut item.body else { unreachable!() };
                (tool.title, tool.input.path) = ("Edit files".into(), None);
                let change = || DiffChange::Texts { old: Some("a\n".into()), new: "b\n".into() };
                let diffs = names.iter().map(|name| FileDiff {
                    path: format!("/home/ada/code/shop/{name}").into(),
                    change: change(),
                });
                tool.content = diffs.map(ToolContent::Diff).collect();
            });
        });
        text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)))
    };
    assert!(named(&["src/a.rs"]).contains("asks to change src/a.rs"));
    assert!(named(&["src/a.rs", "b.rs"]).contains("asks to change src/a.rs, b.rs"));
    let many = named(&["1.rs", "2.rs", "3.rs", "4.rs", "5.rs", "6.rs"]);
    assert!(many.contains("asks to change 1.rs, 2.rs, 3.rs, 4.rs and 2 more"), "{many}");
}

#[test]
fn requests_count_lines_as_tool_calls_do_and_show_many_on_a_low_screen() {
    let mut stage = permission();
    stage.session(|session| {
        drop(session.outbox.take_queue());
        session.plans.clear();
        let id = session.transcript.items().last().unwrap().id;
        session.transcript.edit(id, |item| {
            let ItemBody::Tool(tool) = &mut item.body else { unreachable!() };
            tool.title = String::new();
            let change = DiffChange::Texts { old: None, new: "let x = 1;\n".repeat(60).into() };
            tool.content = vec![ToolContent::Diff(FileDiff { path: "src/new.rs".into(), change })];
        });
    });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    let heading = shown.lines().find(|line| line.contains("asks to")).unwrap_or_default();
    assert!(heading.trim_end().ends_with("  +60"), "{shown}");
    assert!(shown.lines().filter(|line| line.contains("let x = 1;")).count() >= 6, "{shown}");
    assert!(shown.contains("answer required"), "the call stays visible: {shown}");
}

#[test]
fn requests_are_laid_out_once() {
    // A grammar that becomes ready between frames repeats the layout.
    crate::ui::highlight::wait_for(&["rs"]);
    let stage = permission();
    let mut view = stage.view();
    let first = text(&stage.draw(&mut view, &theme("dark"), (120, 40)));
    for _ in 0..5 {
        view.apply(crate::core::ViewCommand::ScrollDialog(1));
        stage.draw(&mut view, &theme("dark"), (120, 40));
    }
    assert_eq!(view.asked.layouts, 1);
    stage.draw(&mut view, &theme("dark"), (70, 40));
    assert_eq!(view.asked.layouts, 2, "different width");
    stage.draw(&mut view, &theme("light"), (70, 40));
    assert_eq!(view.asked.layouts, 3, "different colours");
    let again = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert_eq!(first, again);
}

#[test]
fn requests_with_long_changes_appear_immediately_and_completely() {
    let mut stage = permission();
    let lines = |word: &str| (0..10_000).map(|at| format!("{word} {at}\n")).collect::<Vec<_>>().concat();
    let change = DiffChange::Texts { old: Some(lines("old").into()), new: lines("new").into() };
    stage.session(|session| {
        let Some(OpenRequestKind::Permission { tool, .. }) =
            session.requests.front().map(|request| request.kind.clone())
        else {
            panic!("{:?}", session.requests)
        };
        session.transcript.edit(tool, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                call.content = vec![ToolContent::Diff(FileDiff { path: "a.txt".into(), change })];
            }
        });
    });
    let mut view = stage.view();
    let mut frame = || text(&stage.draw(&mut view, &theme("dark"), (120, 40)));
    let first = frame();
    assert!(first.contains("Computing diff…") && first.contains("Allow this edit?"), "{first}");
    assert_eq!(crate::ui::diff::cache::work_off(), 1);
    let second = frame();
    assert!(second.contains("+10000 −10000") && second.contains("− old 0"), "{second}");
    frame();
    assert_eq!(view.asked.layouts, 2, "laid out again once, when the diff was ready");
    view.apply(crate::core::ViewCommand::ScrollDialog(i32::MAX));
    assert!(text(&stage.draw(&mut view, &theme("dark"), (120, 40))).contains("+ new 9999"));
}

/// The target is never truncated, even if it is long and the screen is small.
#[test]
fn long_targets_of_requests_are_not_truncated() {
    let path = "/srv/projects/shop/backend/services/authentication/src/token/store/production.rs";
    let mut stage = permission();
    stage.session(|session| {
        let item = session.transcript.items().last().map(|item| item.id).unwrap();
        session.transcript.edit(item, |item| {
            if let ItemBody::Tool(tool) = &mut item.body {
                tool.input.path = Some(path.into());
                tool.title = format!("Edit {path}");
                if let Some(ToolContent::Diff(diff)) = tool.content.first_mut() {
                    diff.path = path.into();
                }
            }
        });
    });
    for size in [(40, 16), (80, 24), (200, 60)] {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        let letters: String = shown.split_whitespace().filter(|word| !"│▌▐┃".contains(word)).collect();
        assert!(letters.contains(path), "{size:?}\n{shown}");
        assert!(shown.contains("+2") && shown.contains("Yes, this once"), "{shown}");
    }
    let low = text(&stage.draw(&mut stage.view(), &theme("dark"), (60, 12)));
    assert!(low.contains("…/token/store/production.rs"), "{low}");
}

/// A session with this request of its agent.
fn stage_with(request: crate::model::AgentRequest) -> Stage {
    let mut stage = streaming();
    let request_id = crate::model::AgentEvent::Request(crate::model::RequestId(7), Box::new(request));
    let event = crate::core::Event::Agent(crate::model::ConnId(1), request_id);
    crate::ui::update(&mut stage.app, event, stage.now);
    stage
}

#[test]
fn command_confirmation_shows_folder_variables_and_hidden_characters() {
    let command = crate::model::TerminalCommand {
        command: "sh".into(),
        args: vec!["-c".into(), "make install".into()],
        env: vec![("LD_PRELOAD".into(), "/tmp/\u{202e}x".into())],
        cwd: Some("/opt/other".into()),
        ..crate::model::TerminalCommand::default()
    };
    let stage =
        stage_with(crate::model::AgentRequest::TerminalCreate { session: Some("s-1".into()), command });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    for part in [
        "Run a command outside the session's folders?",
        "make install",
        "/opt/other",
        "LD_PRELOAD=/tmp/⟨U+202E⟩x",
        "1  Allow once",
        "3  Always allow this command for claude in this folder",
        "4  Reject",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
}

#[test]
fn long_commands_leave_the_rejection_visible() {
    let line = format!("true{}\nrm -rf ~", "\n".repeat(300));
    let command = crate::model::TerminalCommand { command: line, ..crate::model::TerminalCommand::default() };
    let stage =
        stage_with(crate::model::AgentRequest::TerminalCreate { session: Some("s-1".into()), command });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    assert!(shown.contains("Reject") && shown.contains("Run a command?"), "{shown}");
}

#[test]
fn a_command_that_begins_with_a_comment_is_shown_in_full_before_it_is_allowed() {
    let line = "# Lists the files.\nls\n# Nothing else.\nrm -rf target".to_owned();
    let command = crate::model::TerminalCommand { command: line, ..crate::model::TerminalCommand::default() };
    let stage =
        stage_with(crate::model::AgentRequest::TerminalCreate { session: Some("s-1".into()), command });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 40)));
    for part in ["# Lists the files.", "# Nothing else.", "rm -rf target"] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
}

#[test]
fn always_is_offered_however_long_the_path_of_a_file_is() {
    let path: std::path::PathBuf = format!("/srv/{}/notes.txt", "very-long-folder/".repeat(40)).into();
    let mut stage = stage_with(crate::model::AgentRequest::ReadFile {
        session: Some("s-1".into()),
        path: path.clone(),
        line: None,
        limit: None,
    });
    let job = crate::model::FileJob {
        conn: crate::model::ConnId(1),
        request_id: crate::model::RequestId(7),
        session: crate::model::SessionKey(1),
        path: path.clone(),
        roots: Vec::new(),
        policy: std::sync::Arc::default(),
        allowed: None,
        missing_reads_empty: false,
        holding: crate::model::held::Holding::default(),
        op: crate::model::FileOp::Read { line: None, limit: None },
    };
    let asked = crate::model::AskedFile {
        access: crate::model::Access::Read { path },
        facts: crate::model::Facts { is_inside: false, protection: None, is_covered: false },
        why: crate::model::AskReason::Outside,
        change: None,
    };
    let event = crate::model::ServiceEvent::FileAsks { job, asked: Box::new(asked) };
    crate::ui::update(&mut stage.app, crate::core::Event::Service(event), stage.now);
    for size in [(40, 20), (80, 24), (120, 40)] {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        for answer in ["Allow once", "2  Allow reads", "3  Always allow", "Reject"] {
            assert!(shown.contains(answer), "{answer:?} is missing at {size:?} in:\n{shown}");
        }
    }
}

#[test]
fn write_confirmation_shows_the_change_and_the_resolved_path() {
    let mut stage = stage_with(crate::model::AgentRequest::WriteFile {
        session: Some("s-1".into()),
        path: "notes.txt".into(),
        content: "#!/bin/sh\n".into(),
    });
    let policy = std::sync::Arc::default();
    let job = crate::model::FileJob {
        conn: crate::model::ConnId(1),
        request_id: crate::model::RequestId(7),
        session: crate::model::SessionKey(1),
        path: "/home/ada/code/shop/notes.txt".into(),
        roots: Vec::new(),
        policy,
        allowed: None,
        missing_reads_empty: false,
        holding: crate::model::held::Holding::default(),
        op: crate::model::FileOp::Write { content: "#!/bin/sh\n".into() },
    };
    let path: std::path::PathBuf = "/home/ada/code/shop/.git/hooks/pre-commit".into();
    let change = DiffChange::Texts { old: Some("exit 0\n".into()), new: "#!/bin/sh\n".into() };
    let diff = Some(FileDiff { path: path.clone(), change });
    let asked = crate::model::AskedFile {
        access: crate::model::Access::Write { path },
        facts: crate::model::Facts {
            is_inside: true,
            protection: Some(crate::model::Protection::Git),
            is_covered: false,
        },
        why: crate::model::AskReason::Protected(crate::model::Protection::Git),
        change: Some(crate::model::WriteChange { diff, line: None, size_bytes: 10 }),
    };
    let event = crate::model::ServiceEvent::FileAsks { job, asked: Box::new(asked) };
    crate::ui::update(&mut stage.app, crate::core::Event::Service(event), stage.now);
    let mut view = stage.view();
    stage.draw(&mut view, &theme("dark"), (120, 40));
    crate::ui::diff::cache::work_off();
    let shown = text(&stage.draw(&mut view, &theme("dark"), (120, 40)));
    for part in [
        "Write to a protected file?",
        "notes.txt",
        "resolves to .git/hooks/pre-commit",
        "Version control runs commands from this file.",
        "exit 0",
        "#!/bin/sh",
        "4  Reject",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
}

#[test]
fn permission_requests_mark_protected_files() {
    let shown = |paths: &[&str], size| {
        let mut stage = permission();
        stage.session(|session| {
            let item = session.transcript.items().last().map(|item| item.id).unwrap();
            session.transcript.edit(item, |item| {
                let ItemBody::Tool(tool) = &mut item.body else { unreachable!() };
                (tool.title, tool.input.path) = ("Edit files".into(), None);
                let diffs = paths.iter().map(|path| FileDiff {
                    path: path.into(),
                    change: DiffChange::Texts { old: None, new: "#!/bin/sh\n".into() },
                });
                tool.content = diffs.map(ToolContent::Diff).collect();
            });
        });
        text(&stage.draw(&mut stage.view(), &theme("dark"), size))
    };
    let hook = shown(&[".git/hooks/pre-commit"], (120, 40));
    let expected = "Protected file: .git/hooks/pre-commit. Version control runs";
    assert!(hook.contains(expected), "{hook}");
    let both = shown(&["src/../.envrc", ".vscode/tasks.json", "src/a.rs"], (120, 40));
    assert!(both.contains("Protected file: .envrc.") && both.contains("Protected file: .vscode/tasks.json."));
    assert!(!shown(&["src/a.rs"], (120, 40)).contains("Protected"));
    let four = [".git/a", ".git/b", ".git/c", ".git/d"];
    let low = shown(&four, (40, 12));
    assert!(low.contains("Edit a protected file?") && low.contains("No"), "{low}");
}

/// A request to run a command.
fn command_request(command: &str) -> Stage {
    let mut stage = permission();
    stage.session(|session| {
        let item = session.transcript.items().last().map(|item| item.id).unwrap();
        session.transcript.edit(item, |item| {
            let ItemBody::Tool(tool) = &mut item.body else { unreachable!() };
            (tool.kind, tool.content, tool.title) = (ToolKind::Execute, Vec::new(), "Run".into());
            tool.input = ToolInput { command: Some(command.into()), ..ToolInput::default() };
        });
    });
    stage
}

#[test]
fn a_request_is_allowed_by_the_rule_that_is_chosen() {
    let mut stage = command_request("ls src");
    let act = |stage: &mut Stage, action| {
        crate::ui::update(&mut stage.app, crate::ui::Event::Act(action), stage.now)
    };
    act(&mut stage, crate::model::Action::AllowByRule);
    let before = stage.app.state.active_session().unwrap().requests.len();
    for title in ["Allow by rule", "Add these rules?"] {
        for size in [(40, 12), (80, 24), (200, 60)] {
            let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
            assert!(shown.contains(title) && shown.contains("allow run \"ls src\""), "{shown}");
        }
        act(&mut stage, crate::model::Action::Accept);
        if title == "Allow by rule" {
            act(&mut stage, crate::model::Action::Down);
        }
    }
    let session = stage.app.state.active_session().unwrap();
    assert_eq!(session.requests.len(), before - 1);
    assert_eq!(stage.app.state.grants[0].grant, Grant::Rule("allow run \"ls src\"".to_owned()));
    assert!(stage.app.layers.is_empty());
}

#[test]
fn commands_are_shown_with_their_risks() {
    let shown = |command: &str, size| {
        let stage = command_request(command);
        text(&stage.draw(&mut stage.view(), &theme("dark"), size))
    };
    let risky = shown("rm -rf build; curl example.com", (100, 30));
    let expected = "Deletes or overwrites: rm -rf build · Uses the network: curl example.com";
    assert!(risky.contains(expected), "{risky}");
    let low = shown("sh -c 'cat ~/.netrc'", (40, 12));
    assert!(low.contains("Uses secrets: ~/.netrc"), "{low}");
    assert!(!shown("cargo test", (100, 30)).contains("Deletes or"));
}

#[test]
fn full_screen_request_leaves_room_for_a_prompt_that_gets_keys() {
    let mut stage = permission();
    stage.request_view.is_full_screen = true;
    let shown = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(!shown(&stage).contains("Fix the test"));

    stage.session(|session| session.draft = "Fix the test".into());
    let beside = shown(&stage);
    assert!(beside.contains("Fix the test"), "{beside}");
    assert!(beside.contains("F10 answer"), "{beside}");
}

/// Presses Tab at the request, and types a reason.
fn with_reason(mut stage: Stage) -> Stage {
    let now = stage.now;
    let tab = crate::ui::Event::Act(crate::model::Action::RejectWithReason);
    crate::ui::update(&mut stage, tab, now);
    let edit = crate::model::LineEdit::Insert("the other file".into());
    crate::ui::update(&mut stage, crate::ui::Event::Line(edit), now);
    stage
}

#[test]
fn a_request_stays_visible_while_its_rejection_is_explained() {
    for size in [(40, 12), (60, 16), (80, 24), (200, 60)] {
        for is_full_screen in [false, true] {
            let mut stage = permission();
            stage.request_view.is_full_screen = is_full_screen;
            let stage = with_reason(stage);
            let mut view = stage.view();
            let shown = text(&stage.draw(&mut view, &theme("dark"), size));
            for part in
                ["Allow this edit?", "1 of 2", "token.rs", "let line_", "› the other file", "Enter reject"]
            {
                assert!(shown.contains(part), "{part:?} at {size:?} in:\n{shown}");
            }
            assert!(!shown.contains("Yes, this once"), "it takes the place of the answers:\n{shown}");
        }
    }
}

#[test]
fn another_request_is_not_shown_with_the_reason_for_the_former() {
    let mut stage = with_reason(permission());
    stage.session(|session| session.requests.clear());
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("Reject with a reason") && !shown.contains("Allow this edit?"), "{shown}");
}

#[test]
fn a_notice_covers_nothing_of_a_request() {
    for size in [(40, 12), (80, 24), (200, 60)] {
        let mut stage = permission();
        stage.request_view.is_full_screen = true;
        stage.state.flash = Some("Not answered.".into());
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.last().unwrap().contains("Not answered."), "{shown}");
        let end = lines.iter().rev().nth(1).unwrap();
        assert!(end.starts_with('╰') || end.contains("Enter answer"), "{shown}");
    }
}

#[test]
fn hints_offer_to_scroll_only_while_lines_are_below() {
    let stage = permission();
    for size in [(40, 16), (80, 24)] {
        let mut view = stage.view();
        let mut shown = || text(&stage.draw(&mut view, &theme("dark"), size));
        let first = shown();
        assert!(first.contains("below"), "{first}");
        view.apply(crate::core::ViewCommand::ScrollDialog(i32::MAX));
        let last = text(&stage.draw(&mut view, &theme("dark"), size));
        assert!(!last.contains("PageDown") && !last.contains("below"), "{last}");
    }
}

#[test]
fn hints_of_the_search_are_shown_while_it_has_the_keys() {
    let mut stage = permission();
    let now = stage.now;
    crate::ui::update(&mut stage, crate::ui::Event::Act(crate::model::Action::OpenSearch), now);
    let shown = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    let has_hints =
        |shown: &str| shown.lines().any(|line| line.contains("find ") && line.contains("Esc close"));
    assert!(has_hints(&shown(&stage)), "{}", shown(&stage));
    crate::ui::update(&mut stage, crate::ui::Event::Act(crate::model::Action::AnswerRequest), now);
    assert!(shown(&stage).contains("find ") && !has_hints(&shown(&stage)), "{}", shown(&stage));
}
