use std::sync::Arc;

use super::super::{Preview, Scope, TextSearch};
use crate::core::Session;
use crate::core::restore;
use crate::model::{
    ArchiveHit, ArchiveRow, Nearness, Record, RecordedEvent, RecordedSession, SessionInfo, SessionKey,
    SessionWorkspace,
};
use crate::ui::dialogs::SessionsDialog;
use crate::ui::tests::fixture::{SIZES, Stage, ready, text, theme};

fn stage(count: usize) -> Stage {
    let mut stage = ready();
    let row = |n: usize| ArchiveRow {
        uid: format!("k{n}"),
        agent: "claude".into(),
        folder: "/home/ada/code/shop".into(),
        title: format!("Session number {n} \u{1b}[31m"),
        when: "2 h ago".into(),
        turn_count: 4,
        nearness: if n.is_multiple_of(3) { Nearness::Elsewhere } else { Nearness::Here },
        is_folder_gone: n == 1,
        ..ArchiveRow::default()
    };
    let mut dialog =
        SessionsDialog { saved: (0..count).map(row).map(Arc::new).collect(), ..SessionsDialog::default() };
    dialog.join(&stage.state);
    stage.layers.push(dialog);
    stage
}

fn dialog(stage: &mut Stage) -> &mut SessionsDialog {
    match stage.layers.top_mut::<SessionsDialog>() {
        Some(dialog) => dialog,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_visible_rows_are_created() {
    for size in SIZES {
        let mut stage = stage(10_000);
        let dialog = dialog(&mut stage);
        dialog.scope = Scope::All;
        dialog.refilter();
        dialog.selected = 5_000;
        let mut view = stage.view();
        let drawn = text(&stage.draw(&mut view, &theme("dark"), size));
        // Each created row is clickable.
        let rows = view.hits.count_rows();
        assert!(rows > 1 && rows < usize::from(size.1), "{rows} rows at {size:?}");
        let marked = drawn.matches("Session number").count();
        assert!(marked >= rows.min(2), "{drawn}");
        assert!(!drawn.contains('\u{1b}'));
    }
}

#[test]
fn hidden_sessions_are_counted_and_missing_folders_shown() {
    let mut stage = stage(10);
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
    assert!(drawn.contains("This folder, newest first. 4 hidden"), "{drawn}");
    assert!(drawn.contains("folder missing, 2 h ago"), "{drawn}");
    dialog(&mut stage).is_loading = true;
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
    assert!(drawn.contains("Loading more"), "{drawn}");
}

#[test]
fn unsent_titles_are_noted_below_the_list() {
    let mut stage = stage(4);
    let state = stage.state.clone();
    let shown = dialog(&mut stage);
    for row in &mut shown.saved {
        Arc::make_mut(row).owes_title = row.uid == "k2";
    }
    shown.join(&state);
    let note = "Title not yet sent to claude";
    let mut counted = 0;
    for selected in 0..4 {
        dialog(&mut stage).selected = selected;
        let is_owed = dialog(&mut stage).marked().is_some_and(|row| row.uid() == Some("k2"));
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
        assert_eq!(drawn.contains(note), is_owed, "{drawn}");
        counted += u32::from(is_owed);
    }
    assert_eq!(counted, 1);
}

#[test]
fn preview_shows_the_end_of_the_selected_session() {
    let mut stage = stage(5);
    let now = stage.now;
    let event = |text: &str| RecordedEvent {
        at_ms: 0,
        turn: 1,
        record: Record::Prompt {
            text: text.into(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        },
    };
    let saved = RecordedSession { events: vec![event("mend the 日本 till")], ..RecordedSession::default() };
    let mut session = Session::new(SessionKey(77), SessionWorkspace::default());
    restore(&mut session, saved, now);
    dialog(&mut stage).preview = Some(Preview { uid: "k1".into(), session: Some(Box::new(session)) });
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 36)));
    assert!(drawn.contains("end of session, 4 turns") && drawn.contains("mend the 日本 till"), "{drawn}");
    let small = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    assert!(!small.contains("end of session"), "{small}");
}

#[test]
fn agents_and_replies_are_aligned_in_columns() {
    for size in [(40, 12), (80, 24), (200, 60)] {
        let mut stage = stage(4);
        let state = stage.state.clone();
        let shown = dialog(&mut stage);
        for (row, (title, agent)) in shown.saved.iter_mut().zip([
            ("A", "codex"),
            ("Longer", "sdk-example"),
            ("Mid", "gemini"),
            ("B", "x"),
        ]) {
            let row = Arc::make_mut(row);
            (row.title, row.agent) = (title.to_owned(), agent.to_owned());
            "Done: REPLY".clone_into(&mut row.last_reply);
        }
        shown.scope = Scope::All;
        shown.join(&state);
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        let columns = |words: &str| -> Vec<usize> {
            let befores = drawn.lines().filter_map(|line| Some(line.split_once(words)?.0));
            befores.map(|before| before.chars().count()).collect()
        };
        let agents = [columns("codex"), columns("sdk-ex"), columns("gemini")].concat();
        assert!(agents.len() > 1 && agents.windows(2).all(|pair| pair[0] == pair[1]), "{agents:?} {drawn}");
        let replies = columns("Done: REPLY");
        assert!(replies.windows(2).all(|pair| pair[0] == pair[1]), "{drawn}");
        assert_eq!(replies.is_empty(), size.0 == 40, "{drawn}");
    }
}

#[test]
fn session_status_from_the_agent_is_shown_on_the_right() {
    let mut stage = stage(0);
    let listed = |id: &str, is_archived, is_live| SessionInfo {
        id: id.into(),
        cwd: "/home/ada/code/shop".into(),
        title: Some(format!("Session {id}")),
        updated_at: Some("2026-11-20T14:03:22Z".into()),
        additional_directories: Vec::new(),
        is_archived,
        is_live,
    };
    *stage.state.listed_mut() = vec![
        listed("plain", false, None),
        listed("used", false, Some(true)),
        listed("away", true, Some(false)),
    ];
    let state = stage.state.clone();
    let shown = dialog(&mut stage);
    shown.scope = Scope::All;
    shown.join(&state);
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
    for (name, status) in [("plain", "agent only"), ("used", "in use"), ("away", "archived")] {
        let row = drawn.lines().find(|line| line.contains(&format!("Session {name}"))).unwrap_or_default();
        assert!(row.contains(&format!("{status}, 14:03")), "{drawn}");
    }
    let mut theirs = 0;
    for selected in 0..4 {
        let shown = dialog(&mut stage);
        shown.selected = selected;
        if shown.marked().is_some_and(|row| row.open.is_none() && row.saved.is_none()) {
            let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
            assert!(drawn.contains("Enter resume") && drawn.contains("scope"), "{drawn}");
            assert!(!drawn.contains("read-only") && !drawn.contains("F2 rename"), "{drawn}");
            theirs += 1;
        }
    }
    assert!(theirs > 0, "one of them exists only at its agent");
}

#[test]
fn rows_are_grouped_by_day_and_show_the_last_reply() {
    const DAY_MS: i64 = 86_400_000;
    let mut stage = stage(0);
    let row = |n: i64, agent: &str| ArchiveRow {
        uid: format!("k{n}"),
        agent: agent.into(),
        folder: "/home/ada/code/shop".into(),
        title: format!("Fix {n}"),
        when: format!("when {n}"),
        updated_ms: 10 * DAY_MS - n * DAY_MS / 2,
        date: format!("1970-01-{:02}", 9 - n / 2),
        last_reply: format!("\u{1b}[31mReply\n{n}"),
        nearness: Nearness::Here,
        ..ArchiveRow::default()
    };
    let state = stage.state.clone();
    let shown = dialog(&mut stage);
    shown.saved = (0..7).map(|n| Arc::new(row(n, "claude"))).collect();
    shown.today_ms = 9 * DAY_MS;
    shown.join(&state);
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 36)));
    let lines: Vec<&str> = drawn.lines().map(str::trim).collect();
    let at = |word: &str| lines.iter().position(|line| line.trim_matches(['│', ' ']) == word);
    let (open, today, yesterday) = (at("Open"), at("Today"), at("Yesterday"));
    assert!(
        open < today && today < yesterday && yesterday.is_some() && at("1970-01-07").is_some(),
        "{drawn}"
    );
    assert!(drawn.contains("Fix 0") && drawn.contains("Reply 0"), "{drawn}");
    let rows = || lines.iter().filter(|line| line.contains("Fix"));
    assert!(rows().all(|row| !row.contains("claude") && !row.contains("shop")), "the same in each: {drawn}");
    // A column is shown where it differs.
    dialog(&mut stage).saved.push(Arc::new(row(7, "codex")));
    dialog(&mut stage).join(&state);
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 36)));
    let has = |words: [&str; 2]| drawn.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(["Fix 6", "claude"]) && has(["Fix 7", "codex"]), "{drawn}");
    // The selected row is visible at each size, and headings do not replace rows on a small screen.
    for size in SIZES {
        for selected in 0..9 {
            dialog(&mut stage).selected = selected;
            let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
            let name = dialog(&mut stage).marked().map(|row| row.name().to_owned()).unwrap_or_default();
            assert!(drawn.contains(&name), "{name} at {size:?}: {drawn}");
            assert!(size.1 >= super::GROUP_ROWS || !drawn.contains("Today"), "{drawn}");
        }
    }
    // Filtered rows are sorted by relevance.
    dialog(&mut stage).filter.text = "fix".into();
    dialog(&mut stage).refilter();
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 36)));
    assert!(!drawn.contains("Today"), "{drawn}");
}

#[test]
fn the_last_reply_is_shown_without_markup() {
    let mut stage = stage(1);
    let state = stage.state.clone();
    let list = dialog(&mut stage);
    "# Done\nRun `make` and **not** _ninja_".clone_into(&mut Arc::make_mut(&mut list.saved[0]).last_reply);
    list.scope = Scope::All;
    list.join(&state);
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (200, 60)));
    assert!(drawn.contains("Done Run make and not ninja"), "{drawn}");
}

#[test]
fn matches_are_shown_with_their_context() {
    let mut stage = stage(1);
    let hit = ArchiveHit {
        uid: "k1".into(),
        name: "The till".into(),
        agent: "claude".into(),
        folder: "/home/ada/code/shop".into(),
        seq: 3,
        turn: 1,
        at_ms: 0,
        kind: "edit".into(),
        when: "2 h ago".into(),
        is_error: false,
        snippet: "let the \u{2}rounding\u{3} be".into(),
    };
    dialog(&mut stage).text = Some(TextSearch { hits: vec![hit], ..TextSearch::default() });
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (100, 30)));
    assert!(drawn.contains("edit    let the rounding be"), "{drawn}");
    assert!(drawn.contains("The till, 2 h ago"), "{drawn}");
}
