//! Tests of the front end: snapshots of screens, as text and styles, at three sizes, in the dark and the light theme;
//! and what keys, actions and dialogs do to the sessions, on the bench of [`bench`].

mod archive;
mod attachments;
mod bench;
mod composer;
mod delete_turn;
mod dialogs;
mod edges;
pub(super) mod fixture;
mod inbox;
mod mentions;
mod once;
mod prompts;
mod queue;
mod remote;
mod requests;
mod review;
mod settings;
mod shell;
mod sign_in;
mod slash;
mod start;
mod tabs;
mod turns;
mod unsaved;
mod worktrees;
mod wrap;

use std::time::Duration;

use fixture::*;

use crate::core::{SessionPhase, Turn};
use crate::model::{ArchiveRow, Unsaved};
use crate::ui::dialogs::{AgentItem, Agents};
use crate::ui::dialogs::{
    ConnectionPage, FormState, HelpPage, LineDialog, LogPage, Picker, PickerRow, QueueDialog,
};
use crate::ui::log::{LogDirection, LogLine};
use crate::ui::{ViewState, is_animating, next_frame_in};

fn check(name: &str, stage: &Stage, prepare: impl Fn(&mut ViewState)) {
    for size in SIZES {
        let label = format!("{name}-{}x{}", size.0, size.1);
        insta::assert_snapshot!(label, stage.digest(&prepare, size));
    }
}

#[test]
fn the_first_screen() {
    check("first-screen", &first_screen(), |_| {});
}

#[test]
fn a_ready_session() {
    check("ready", &ready(), |_| {});
}

#[test]
fn a_session_that_streams() {
    check("streaming", &streaming(), |_| {});
}

#[test]
fn a_permission_with_a_diff() {
    crate::ui::highlight::wait_for(&["rs"]);
    check("permission", &permission(), |_| {});
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn any_size_can_be_drawn(sizes in proptest::collection::vec((0_u16..300, 0_u16..300, 0_usize..6), 1..4)) {
        let stages = vec![first_screen(), ready(), streaming(), permission(), form(), picker("")];
        let theme = theme("dark");
        for stage in &stages {
            let mut view = stage.view();
            for (cols, rows, edge) in &sizes {
                // Small sizes are the most likely to fail.
                let (cols, rows) = match edge {
                    0 => (*cols, rows % 4),
                    1 => (cols % 4, *rows),
                    2 => (cols % 24, rows % 8),
                    _ => (*cols, *rows)};
                stage.draw(&mut view, &theme, (cols, rows));
            }
        }
    }
}

#[test]
fn long_lists_create_only_visible_rows() {
    let mut stage = ready();
    let row = |index: usize| {
        let group = Some(format!("group {}", index / 100));
        let item = AgentItem::Agent(index.to_string());
        (PickerRow { group, ..PickerRow::new(format!("model {index}")) }, item)
    };
    let mut list = Picker::new(Agents, "Models", (0..5000).map(row).collect());
    list.view.selected = 4321;
    stage.layers.push(list);
    let mut view = stage.view();
    let shown = text(&stage.draw(&mut view, &theme("dark"), (80, 24)));
    let marked = shown.lines().find(|line| line.contains('▸')).unwrap_or_default();
    assert!(marked.contains("model 4321"), "{shown}");
    assert!(view.hits.count_rows() <= 24, "{}", view.hits.count_rows());
}

#[test]
fn images_are_hidden_behind_dialogs() {
    use crate::core::{ItemBody, Message, MessagePart};
    use crate::model::{ContentBlock, Role};
    use crate::ui::picture::{self, Drawn, Facts, Grid, PictureRows};
    picture::show(Some(Grid { cell: (1, 2), max_pixels: u32::MAX }));
    let mut stage = ready();
    let now = stage.now;
    let image = ContentBlock::Image { data: "AAAA".into(), mime_type: "image/png".into(), uri: None };
    stage.session(|session| {
        let parts = vec![MessagePart::Block(image.clone())];
        let message = Message { parts, ..message(Role::Agent, "", now) };
        session.transcript.push(1, ItemBody::Message(message));
    });
    let mut view = stage.view();
    let shown = |stage: &Stage, view: &mut ViewState| text(&stage.draw(view, &theme("dark"), (100, 30)));
    shown(&stage, &mut view);
    let wanted = picture::take_wanted().expect("a visible image is queued");
    let facts = Facts { pixels: (8, 2), format: "png", bytes: 3 };
    let rows = PictureRows::Text(vec![crate::ui::text::Line::raw("▀▀▀▄▄▄▀▀")]);
    picture::put(wanted.key, Ok(Drawn { facts, rows, saved_as: None, weight: 9 }));
    assert!(shown(&stage, &mut view).contains("▀▀▀▄▄▄▀▀"));
    stage.layers.push(HelpPage::default());
    assert!(!shown(&stage, &mut view).contains(['▀', '▄']));
    stage.layers.pop();
    assert!(shown(&stage, &mut view).contains("▀▀▀▄▄▄▀▀"), "it is shown again");
}

#[test]
fn a_form() {
    check("form", &form(), |_| {});
}

#[test]
fn a_picker() {
    check("picker", &picker(""), |_| {});
}

#[test]
fn a_choice() {
    check("choice", &choice(), |_| {});
}

#[test]
fn the_palette_in_groups_and_filtered_by_a_synonym() {
    let mut stage = streaming();
    stage.state.setup.palette = crate::config::keymap::Keymap::defaults().palette();
    let now = stage.now;
    stage.session(|session| {
        session.outbox.enqueue("and then the docs".into());
    });
    crate::ui::update(&mut stage, crate::ui::Event::Act(crate::model::Action::OpenPalette), now);
    check("palette", &stage, |_| {});
    let filter = crate::model::LineEdit::Insert("exit".into());
    crate::ui::update(&mut stage, crate::ui::Event::Line(filter), now);
    check("palette-filtered", &stage, |_| {});
}

#[test]
fn the_help() {
    let mut stage = ready();
    stage.layers.push(HelpPage::default());
    check("help", &stage, |_| {});
}

#[test]
fn the_log() {
    let mut stage = ready();
    stage.layers.push(LogPage::default());
    check("log", &stage, |view| view.set_log(log_lines()));
}

fn log_lines() -> Vec<LogLine> {
    let line = |time_ms, direction, text: &str| LogLine { time_ms, direction, text: text.into() };
    let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}}"#;
    vec![
        line(12, LogDirection::ToAgent, prompt),
        line(310, LogDirection::Stderr, "warning: \u{1b}[31mcache\u{1b}[0m is cold"),
        line(904, LogDirection::FromAgent, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#),
    ]
}

#[test]
fn no_frame_is_scheduled_when_idle() {
    let mut stage = ready();
    assert!(!is_animating(&stage.state));
    assert_eq!(next_frame_in(&stage, &stage.view()), None);
    let now = stage.now;
    stage.session(|session| session.turn = Turn::Running { since: now, last_news: now });
    assert_eq!(next_frame_in(&stage, &stage.view()), Some(Duration::from_millis(100)));
    let mut still = stage.view();
    still.has_motion = false;
    assert_eq!(next_frame_in(&stage, &still), Some(Duration::from_secs(1)));
    assert!(!is_animating(&permission().state), "parlor waits for the user");
}

#[test]
fn spinner_is_animated_while_an_agent_starts() {
    let mut stage = first_screen();
    let since = ago(stage.now, 3);
    stage.session(|session| session.phase = SessionPhase::Starting { since });
    assert!(is_animating(&stage.state));
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("starting the agent 3 s"), "{shown}");
    // A program that never responds may not be an agent.
    let since = ago(stage.now, 42);
    stage.session(|session| session.phase = SessionPhase::Starting { since });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    for expected in
        ["the agent has not responded for 42 s", "no response from the agent for 42 s · Alt+R restart"]
    {
        assert!(shown.contains(expected), "{expected}:\n{shown}");
    }
}

#[test]
fn status_line_shows_the_activity() {
    let mut stage = streaming();
    let now = stage.now;
    let cancelling =
        |is_overdue| Turn::Cancelling { since: ago(now, 30), cancelled_at: ago(now, 12), is_overdue };
    let quiet = Turn::Running { since: ago(now, 90), last_news: ago(now, 45) };
    let turns = [
        (quiet, "working 1 min 30 s, no activity for 45 s"),
        (cancelling(false), "cancelling 12 s"),
        (cancelling(true), "! claude has not responded to cancel for 12 s"),
    ];
    for (turn, expected) in turns {
        stage.session(|session| session.turn = turn);
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
        assert!(shown.contains(expected), "{expected}:\n{shown}");
    }
    for conn in stage.state.conns.values_mut() {
        conn.interrupted = Some(ago(now, 12));
    }
    stage.session(|session| session.turn = Turn::Running { since: ago(now, 90), last_news: now });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert!(shown.contains("reconnecting to claude 12 s · Alt+R retry now · Esc stop"), "{shown}");
    stage.state.flash = Some("Copied \u{1b}[31mthree lines.".into());
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert!(shown.lines().last().unwrap().contains("Copied three lines."), "{shown}");
}

#[test]
fn ended_agent_shows_the_cause_and_the_next_step() {
    let mut stage = ready();
    let cause = "The agent exited with signal 9 (out of memory?).".to_owned();
    stage.session(|session| session.phase = SessionPhase::Ended { cause });
    check("ended", &stage, |_| {});
}

#[test]
fn completions_are_shown_above_the_prompt() {
    let mut stage = ready();
    stage.session(|session| session.draft = "/co".into());
    check("completions", &stage, |_| {});
}

#[test]
fn wide_screens_show_the_plan_beside_the_transcript() {
    let stage = streaming();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (200, 60)));
    let head = shown.lines().position(|line| line.contains("  plan 2/4")).unwrap();
    assert!(head < 4, "{shown}");
    assert!(shown.lines().all(|line| !line.trim_start().starts_with("plan 2/4")), "{shown}");
}

#[test]
fn completed_plans_are_hidden_after_the_turn() {
    use crate::model::{PlanBody, PlanStatus};
    let mut stage = streaming();
    stage.session(|session| {
        let PlanBody::Entries(steps) = &mut session.plans[0].body else { return };
        for step in steps {
            step.status = PlanStatus::Completed;
        }
    });
    let rows = |stage: &Stage, size| {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        let from = shown.lines().position(|line| line.contains("plan 4/4"))?;
        let steps = shown.lines().skip(from).filter(|line| line.contains("run all tests"));
        Some(steps.count())
    };
    for size in [(120, 40), (200, 60)] {
        let now = stage.now;
        stage.session(|session| session.turn = Turn::Running { since: ago(now, 1), last_news: now });
        assert_eq!(rows(&stage, size), Some(1), "{size:?}: the steps are listed during the turn");
        stage.session(|session| session.turn = Turn::Idle);
        assert_eq!(rows(&stage, size), None, "{size:?}: done");
        stage.shown_mut().plan_fold = Some(false);
        assert_eq!(rows(&stage, size), Some(1), "{size:?}: opened by the user");
        stage.shown_mut().plan_fold = None;
    }
}

#[test]
fn plain_terminals_get_ascii_only() {
    let mut stage = permission();
    stage.session(|session| session.git = None);
    for size in SIZES {
        let mut view = stage.view();
        view.glyphs = crate::ui::render_context::Glyphs::plain();
        // The minus sign is drawn by the cells of the body.
        let shown = text(&stage.draw(&mut view, &crate::ui::theme::Theme::plain(), size)).replace('−', "-");
        assert!(shown.is_ascii(), "{shown}");
    }
}

#[test]
fn every_size_can_be_drawn() {
    let mut help = ready();
    help.layers.push(HelpPage::default());
    let mut log = ready();
    log.layers.push(LogPage { filter: crate::core::LineInput::new("json") });
    let mut connection = ready();
    connection.layers.push(ConnectionPage(crate::model::ConnId(1)));
    let mut queue = streaming();
    queue.layers.push(QueueDialog::default());
    let stages = vec![
        first_screen(),
        streaming(),
        permission(),
        form(),
        picker("c"),
        choice(),
        help,
        log,
        connection,
        queue,
    ];
    for stage in stages {
        for cols in [1, 2, 3, 5, 9, 10, 20, 59, 60, 61, 200] {
            for rows in [1, 2, 3, 4, 5, 8, 17, 18, 60] {
                let mut view = stage.view();
                view.set_log(log_lines());
                stage.draw(&mut view, &theme("dark"), (cols, rows));
            }
        }
    }
}

#[test]
fn choices_are_visible_on_small_screens() {
    let stage = permission();
    for size in [(40, 12), (60, 18), (80, 24)] {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        for expected in ["Yes, this once", "Yes, and don't ask again", "No"] {
            assert!(shown.contains(expected), "{size:?}: {expected}\n{shown}");
        }
    }
}

#[test]
fn dialog_body_scrolls_to_its_end() {
    let stage = permission();
    let mut view = stage.view();
    let dark = theme("dark");
    let top = text(&stage.draw(&mut view, &dark, (80, 24)));
    view.apply(crate::core::ViewCommand::ScrollDialogPages(1));
    let below = text(&stage.draw(&mut view, &dark, (80, 24)));
    assert_ne!(top, below);
    view.apply(crate::core::ViewCommand::ScrollDialog(i32::MAX));
    let end = text(&stage.draw(&mut view, &dark, (80, 24)));
    view.apply(crate::core::ViewCommand::ScrollDialog(1));
    assert_eq!(text(&stage.draw(&mut view, &dark, (80, 24))), end);
    view.apply(crate::core::ViewCommand::ScrollDialog(i32::MIN));
    assert_eq!(text(&stage.draw(&mut view, &dark, (80, 24))), top);
}

#[test]
fn session_title_uses_the_remaining_width() {
    let mut stage = ready();
    stage.session(|session| session.title = Some("Repair the login of the shop and its tests".into()));
    let head = |stage: &Stage, cols| {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (cols, 24)));
        shown.lines().next().unwrap_or_default().to_owned()
    };
    assert!(
        head(&stage, 120).contains("claude · Repair the login of the shop and its te…"),
        "{}",
        head(&stage, 120)
    );
    let narrow = head(&stage, 80);
    assert!(narrow.contains("claude · Repair the l") && narrow.contains('…'), "{narrow}");
    for expected in ["~/code/shop", "main"] {
        assert!(narrow.contains(expected), "{expected}: {narrow}");
    }
    assert!(!head(&stage, 40).contains("Repair"), "{}", head(&stage, 40));
}

#[test]
fn scroll_hint_is_shown_only_if_the_body_scrolls() {
    let stage = permission();
    for (size, has_hint) in [((80, 24), true), ((120, 60), false)] {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        assert_eq!(shown.contains("PageDown scroll"), has_hint, "{shown}");
    }
}

#[test]
fn forms_show_their_keys() {
    use crate::core::OpenRequestKind;
    use crate::model::{ElicitationMode, FieldKind};
    let mut stage = form();
    let mut shown_form = None;
    stage.session(|session| {
        let OpenRequestKind::Elicitation(request) = &mut session.requests[0].kind else { return };
        let ElicitationMode::Form { fields, .. } = &mut request.mode else { return };
        fields.retain(|field| matches!(field.kind, FieldKind::Choice { .. }));
        shown_form = Some(FormState::new(fields));
    });
    stage.request_view.form = shown_form;
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    for expected in ["1 small", "2 large", "Enter send"] {
        assert!(shown.contains(expected), "{expected}:\n{shown}");
    }
    let mut stage = form();
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(!shown.contains("2 large") && shown.contains("Enter continue"), "{shown}");
    if let Some(form) = &mut stage.request_view.form {
        form.is_review = true;
    }
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("Enter send") && shown.contains("back"), "{shown}");
    assert!(!shown.contains("next field") && !shown.contains("marks"), "{shown}");
}

#[test]
fn secrets_are_never_shown() {
    let mut stage = ready();
    let dialog = LineDialog::new("API_KEY", "The key of your account.", "hunter2", NoPurpose);
    stage.layers.push(dialog.hiding(true));
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("› •••••••"), "{shown}");
}

#[test]
fn text_of_the_agent_is_sanitised() {
    let evil = "x\u{1b}[2J\u{7}\u{9b}31m\u{202e}y";
    let mut stage = permission();
    stage.session(|session| {
        session.title = Some(evil.into());
        if let Some(modes) = &mut session.modes {
            modes.available[0].name = evil.into();
        }
        if let crate::core::OpenRequestKind::Permission { request, .. } = &mut session.requests[0].kind {
            request.options[0].name = evil.into();
        }
        session.git = Some(crate::model::GitInfo { branch: evil.into(), is_dirty: false });
    });
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert!(!shown.chars().any(|ch| ch.is_control() && ch != '\n'), "{shown:?}");
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn cursor_is_after_the_typed_text() {
    let mut stage = ready();
    for (draft, size, position) in [
        ("", (80, 24), (3, 21)),
        ("日本 👨‍👩‍👧", (80, 24), (10, 21)),
        ("one\ntwo words", (80, 24), (12, 21)),
        ("wraps at the end of a narrow prompt here", (40, 12), (7, 10)),
    ] {
        stage.session(|session| session.draft = draft.into());
        let mut view = stage.view();
        view.set_now(stage.now);
        let mut terminal =
            ratatui::Terminal::new(ratatui::backend::TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| crate::ui::draw(&stage, &mut view, &theme("dark"), frame)).unwrap();
        terminal.backend_mut().assert_cursor_position(position);
    }
}

#[test]
fn scrolled_view_counts_new_items_below() {
    let mut stage = streaming();
    stage.session(|session| {
        let message = session.transcript.items()[1].body.clone();
        for _ in 0..20 {
            session.transcript.push(1, message.clone());
        }
    });
    let mut view = stage.view();
    stage.draw(&mut view, &theme("dark"), (40, 12));
    view.apply(crate::core::ViewCommand::ScrollTop);
    let shown = text(&stage.draw(&mut view, &theme("dark"), (40, 12)));
    assert!(shown.contains("more ↓"), "{shown}");
    view.apply(crate::core::ViewCommand::ScrollEnd);
    let shown = text(&stage.draw(&mut view, &theme("dark"), (40, 12)));
    assert!(!shown.contains("more ↓"), "{shown}");
}

#[test]
fn last_session_is_offered_on_the_empty_screen() {
    let mut stage = ready();
    stage.state.last_saved = Some(Box::new(ArchiveRow {
        uid: "k1".to_owned(),
        agent: "claude".to_owned(),
        title: "Mend the fence of the garden".to_owned(),
        when: "2026-11-20 14:05".to_owned(),
        was_cut: true,
        ..ArchiveRow::default()
    }));
    check("offer", &stage, |_| {});
    stage.session(|session| session.turn_count = 1);
    let (mut view, theme) = (stage.view(), theme("dark"));
    let shown = text(&stage.draw(&mut view, &theme, (80, 24)));
    assert!(!shown.contains("resume"), "{shown}");
}

#[test]
fn status_line_always_shows_that_nothing_is_saved() {
    let mut stage = streaming();
    stage.state.unsaved = Some(Unsaved { why: "the disk is full".to_owned(), ..Unsaved::default() });
    for (size, expected) in [((40, 12), "! not saved"), ((80, 24), "! not saved: the disk is full")] {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        assert!(shown.lines().last().unwrap().contains(expected), "{shown}");
    }
}

#[test]
fn status_line_shows_what_a_queued_prompt_waits_for() {
    let mut stage = ready();
    stage.session(|session| {
        let mode = crate::model::Setting::Mode("plan".into());
        session.settings.request(7, crate::core::Wanted::Setting(mode));
    });
    let status = |stage: &Stage| {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 24)));
        shown.lines().last().unwrap_or_default().to_owned()
    };
    assert!(!status(&stage).contains("waiting") && !is_animating(&stage.state), "no prompt waits for it");
    stage.session(|session| {
        session.outbox.enqueue("plan it".into());
    });
    let shown = status(&stage);
    assert!(shown.contains("waiting for claude to confirm mode"), "{shown}");
    assert!(is_animating(&stage.state));
}

#[test]
fn cost_and_context_stay_visible_during_a_turn() {
    let mut stage = streaming();
    let now = stage.now;
    stage.session(|session| session.turn = Turn::Running { since: ago(now, 75), last_news: ago(now, 45) });
    stage.state.conns.values_mut().for_each(|conn| conn.spec.wire.is_strict = false);
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("34k of 200k") && shown.contains("$0.21"), "{shown}");
}

#[test]
fn protocol_warnings_are_counted_in_details_and_for_strict_sessions_in_the_status() {
    let mut stage = ready();
    stage.session(|session| session.anomaly_count = 3);
    let drawn = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 40)));
    assert!(!drawn(&stage).contains("protocol warning"), "{}", drawn(&stage));
    let conn = *stage.state.conns.keys().next().unwrap();
    stage.layers.push(ConnectionPage(conn));
    assert!(drawn(&stage).contains("3 protocol warnings"), "{}", drawn(&stage));
    stage.layers = LogPage::default().into();
    assert!(drawn(&stage).contains("3 protocol warnings"), "{}", drawn(&stage));
    stage.layers.clear();
    stage.state.conns.values_mut().for_each(|conn| conn.spec.wire.is_strict = true);
    assert!(
        drawn(&stage).lines().last().unwrap_or_default().contains("3 protocol warnings"),
        "{}",
        drawn(&stage)
    );
}

#[test]
fn a_permission_beside_a_draft() {
    crate::ui::highlight::wait_for(&["rs"]);
    check("permission-beside-draft", &permission_beside_draft(), |_| {});
}
