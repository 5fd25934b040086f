//! Size and background of dialogs.

use ratatui::style::Modifier;

use super::fixture::*;
use crate::core::{LineInput, ThemeInfo, ViewCommand};
use crate::model::{Action, ConnId, ItemId, SessionKey};
use crate::ui::Event;
use crate::ui::dialogs::{AgentItem, Agents, ChangesDialog, Options, Picker, PickerRow};
use crate::ui::dialogs::{ConnectionPage, HelpPage, InboxDialog, InspectPage, LineDialog, QueueDialog};
use crate::ui::event_after_frame;
use crate::ui::theme::Role;
use crate::ui::theme::colour::halfway;
use crate::ui::{Layer, Layers, update};

/// All dialogs over a session, on a screen that is wider than any of them.
fn dialogs() -> Vec<Stage> {
    let with = |layers: Layers| {
        let mut stage = streaming();
        stage.layers = layers;
        stage
    };
    let line = LineDialog::new("Title", "Enter a title.", "", NoPurpose);
    let mut wide = picker("");
    let Some(list) = wide.layers.last_mut().and_then(Layer::list_mut) else { unreachable!() };
    list.rows[0].detail = "a long line ".repeat(9);
    let mut whole = permission();
    whole.layers.push(InboxDialog::default());
    vec![
        with(HelpPage::default().into()),
        with(QueueDialog::default().into()),
        with(ConnectionPage(ConnId(1)).into()),
        with(InspectPage { session: SessionKey(1), item: ItemId::HEAD }.into()),
        with(line.into()),
        whole,
        choice(),
        form(),
        picker(""),
        wide,
    ]
}

#[test]
fn help_begins_with_the_keys_of_the_view_below() {
    let first = |below: Layers| {
        let mut stage = streaming();
        stage.layers = below;
        stage.layers.push(HelpPage { filter: LineInput::default() });
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 30)));
        let mut rest = shown.lines().skip_while(|line| !line.contains("type to filter")).skip(2);
        rest.next().map(|line| line.trim_matches(['│', ' ', '▐']).to_owned())
    };
    assert_eq!(first(ChangesDialog::default().into()).as_deref(), Some("Session changes"));
    assert_eq!(first(QueueDialog::default().into()).as_deref(), Some("Queued prompts"));
    assert_ne!(first(Layers::default()).as_deref(), Some("Session changes"));
}

#[test]
fn dialogs_have_two_widths() {
    let mut widths = Vec::new();
    for stage in dialogs() {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (200, 60)));
        let top = shown.lines().find_map(|line| line.split_once('╭')?.1.split_once('╮'));
        widths.push(top.map_or(0, |(top, _)| top.chars().count() + 2));
    }
    assert!(widths.iter().all(|width| [78, 118].contains(width)), "{widths:?}");
    assert!(widths.contains(&78) && widths.contains(&118), "{widths:?}");
}

#[test]
fn content_behind_a_dialog_keeps_its_hues() {
    let mut stage = streaming();
    let before = stage.draw(&mut stage.view(), &theme("dark"), (120, 40));
    let ansi = stage.draw(&mut stage.view(), &theme("ansi"), (120, 40));
    let bar = before.area.positions().find(|position| before[*position].symbol() == "▌").unwrap();
    stage.layers = choice().app.layers;
    let after = stage.draw(&mut stage.view(), &theme("dark"), (120, 40));
    let ground = theme("dark").screen_bg();
    assert_eq!(after[bar].symbol(), "▌");
    assert_eq!(Some(after[bar].fg), halfway(before[bar].fg, ground), "half of the accent colour");
    assert_ne!(after[bar].fg, after[(bar.x + 2, bar.y)].fg, "text and bar still differ");
    let after = stage.draw(&mut stage.view(), &theme("ansi"), (120, 40));
    assert_eq!(after[bar].fg, ansi[bar].fg);
    assert!(after[bar].modifier.contains(Modifier::DIM));
}

#[test]
fn dialogs_that_open_on_their_own_hide_an_empty_session() {
    let shows = |stage: &Stage| {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
        (shown.contains("The check was off by the clock skew."), shown.contains("look at session.rs"))
    };
    let mut stage = choice();
    assert_eq!(shows(&stage), (true, true));
    let Some(dialog) = stage.app.state.questions.last_mut() else { unreachable!() };
    dialog.asked_at = Some(stage.now);
    assert_eq!(shows(&stage), (true, true), "the transcript stays visible");
    let title = |stage: &Stage| {
        text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40))).contains("~/code/shop")
    };
    assert!(title(&stage));
    stage.session(|session| drop(session.transcript.take()));
    assert!(!title(&stage));
    let mut first = first_screen();
    first.layers = picker("").app.layers;
    let shown = text(&first.draw(&mut first.view(), &theme("dark"), (120, 40)));
    assert!(!shown.contains("A terminal client for coding agents."), "{shown}");
}

#[test]
fn no_scroll_bar_is_drawn_behind_a_dialog() {
    let mut stage = streaming();
    let message = stage.state.active_session().unwrap().transcript.items()[1].body.clone();
    stage.session(|session| {
        for _ in 0..60 {
            session.transcript.push(1, message.clone());
        }
    });
    let bars = |stage: &Stage| {
        let buffer = stage.draw(&mut stage.view(), &theme("dark"), (120, 40));
        let marks = ["▌", "│"];
        (3..30).filter(|y| marks.contains(&buffer[(119, *y)].symbol())).count()
    };
    assert!(bars(&stage) > 5);
    stage.layers.push(QueueDialog::default());
    assert_eq!(bars(&stage), 0);
}

#[test]
fn the_theme_list_shows_a_sample_in_the_selected_theme() {
    crate::ui::highlight::wait_for(&["rs", "rust"]);
    let mut stage = ready();
    stage.state.setup.auto_theme = "dark".into();
    stage.state.setup.theme = "auto".into();
    stage.state.setup.themes = [("nord", true), ("light", false)]
        .map(|(name, is_dark)| ThemeInfo { name: name.into(), is_dark })
        .into();
    let now = stage.now;
    update(&mut stage, Event::Act(Action::OpenThemes), now);
    let mut view = stage.view();
    for (cols, rows) in SIZES {
        // A diff is computed outside of frames.
        stage.draw(&mut view, &theme("dark"), (cols, rows));
        crate::ui::diff::cache::work_off();
        insta::assert_snapshot!(format!("themes-{cols}x{rows}"), stage.digest(|_| {}, (cols, rows)));
    }
    let nord = theme("nord");
    let drawn = stage.draw(&mut view, &nord, (120, 40));
    let shown = text(&drawn);
    for part in ["Round the price", "Half a cent is rounded up.", "price_cents", "Dark", "Light"] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    let grounds: Vec<_> = drawn.content.iter().map(|cell| cell.bg).collect();
    let plus = nord.style(Role::DiffPlus).bg.unwrap();
    assert!(grounds.contains(&plus), "the diff has the colours of the theme");
}

#[test]
fn a_low_screen_shows_the_steps_of_the_plan_on_request() {
    let mut stage = streaming();
    let mut view = stage.view();
    let mut shows_steps = |stage: &Stage| {
        let shown = text(&stage.draw(&mut view, &theme("dark"), (80, 24)));
        let screen = event_after_frame(stage, &view);
        (shown.lines().any(|line| line.trim() == "○ run all tests"), screen)
    };
    let toggle = |stage: &mut Stage, screen: Option<Event>| {
        let now = stage.now;
        update(&mut stage.app, screen.unwrap(), now);
        update(&mut stage.app, Event::Act(Action::TogglePlan), now);
    };
    let (steps, screen) = shows_steps(&stage);
    assert!(!steps, "one line by default");
    toggle(&mut stage, screen);
    assert!(shows_steps(&stage).0);
    let screen = shows_steps(&stage).1;
    assert_eq!(screen, None, "the reducer already knows what is shown");
    update(&mut stage.app, Event::Act(Action::TogglePlan), stage.now);
    assert!(!shows_steps(&stage).0);
}

#[test]
fn the_value_of_an_option_and_the_description_of_the_selected_row_are_visible() {
    let mut stage = picker("");
    let first = PickerRow {
        detail: format!("AI model to use {} at the END", "for everyday work ".repeat(5)),
        right: "Default (recommended)".to_owned(),
        is_current: true,
        ..PickerRow::new("claude")
    };
    let rows = [first, PickerRow::new("local")].map(|row| (row.clone(), row.label)).to_vec();
    stage.layers = Picker::new(Options, "Options", rows).into();
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(drawn.contains("Default (recommended)") && drawn.contains("at the END"), "{drawn}");
    let low = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    assert!(low.contains("Default (re…") && !low.contains("END"), "{low}");
}

#[test]
fn a_copied_install_command_is_confirmed_in_the_list() {
    let mut stage = picker("");
    let Some(list) = stage.layers.top_mut::<Picker<Agents>>() else { unreachable!() };
    list.set_rows(vec![(PickerRow::new("claude"), AgentItem::Install("claude".to_owned()))]);
    let shown = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    assert!(shown(&stage).contains("Others can be added"));
    stage.state.flash = Some("Copied the command.".into());
    assert!(shown(&stage).contains("Copied the command."), "{}", shown(&stage));
}

#[test]
fn explanation_of_an_answer_stands_below_it() {
    let mut stage = choice();
    let Some(dialog) = stage.state.questions.last_mut() else { unreachable!() };
    dialog.answers[1].label = "Fork it\nCopies the session.".into();
    for size in [(40, 12), (80, 24)] {
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        let mut rows = shown.lines().skip_while(|row| !row.contains("2  Fork it"));
        assert!(rows.nth(1).is_some_and(|row| row.contains("   Copies the session.")), "{shown}");
    }
}

#[test]
fn one_question_with_comment_marks_the_answer() {
    let mut stage = form();
    let form = stage.request_view.form.as_mut().expect("a form");
    form.fields.retain(|field| matches!(field.field.title.as_str(), "Size" | "Address"));
    form.fields.swap(0, 1);
    form.fields[1].field.is_required = false;
    form.fields[0].checked.fill(false);
    form.fields[0].choice = 1;
    let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), (80, 24)));
    assert!(shown.contains("○ small") && shown.contains("• large"), "{shown}");
}

#[test]
fn a_notice_is_shown_above_a_dialog_that_covers_the_status_line() {
    for size in [(40, 12), (80, 24), (200, 60)] {
        let mut stage = streaming();
        stage.layers.push(ChangesDialog::default());
        let last = |stage: &Stage| {
            let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
            shown.lines().last().unwrap().to_owned()
        };
        assert!(last(&stage).contains("q close"), "{}", last(&stage));
        stage.state.flash = Some("Diff layout: unified".into());
        assert!(last(&stage).contains("Diff layout: unified"), "{}", last(&stage));
        let Some(dialog) = stage.layers.top_mut::<ChangesDialog>() else { unreachable!() };
        dialog.is_filtering = true;
        let shown = text(&stage.draw(&mut stage.view(), &theme("dark"), size));
        assert!(shown.contains("Diff layout: unified"), "{shown}");
        let hints = shown.lines().rev().take(3).any(|line| line.contains("Esc"));
        assert!(hints, "nothing of the dialog is covered: {shown}");
    }
}

#[test]
fn key_descriptions_fit_beside_the_keys() {
    for cols in [120, 200] {
        let mut stage = streaming();
        stage.layers.push(HelpPage { filter: LineInput::default() });
        let mut view = stage.view();
        let shown = text(&stage.draw(&mut view, &theme("dark"), (cols, 120)));
        for text in
            ["Send, or queue during a turn", "Clear or cancel; twice to quit", "Insert text deleted earlier"]
        {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        let has_keys =
            |line: &&str| line.contains(['│', '▐']) && !line.trim_matches(['│', ' ', '▐']).is_empty();
        let inner = |line: &str| line.split('│').nth(1).unwrap_or(line).chars().skip(2).collect::<String>();
        let wrapped = shown.lines().filter(has_keys).map(inner).filter(|line| {
            let left: String = line.chars().take(54).collect();
            left.starts_with("          ") && !left.trim().is_empty()
        });
        assert_eq!(wrapped.collect::<Vec<_>>(), [""; 0]);
    }
}

#[test]
fn a_dialog_taller_than_the_screen_scrolls_and_keeps_its_answers_visible() {
    let mut stage = choice();
    if let Some(dialog) = stage.state.questions.last_mut() {
        dialog.body = (0..60).map(|number| format!("Sentence {number}.")).collect();
    }
    for size in SIZES {
        let mut view = stage.view();
        let answers = ["Wait", "End the agent's process", "Start it again and resume"];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..60 {
            let shown = text(&stage.draw(&mut view, &theme("dark"), size));
            assert!(answers.iter().all(|answer| shown.contains(answer)), "{shown}");
            seen.extend((0..60).filter(|number| shown.contains(&format!("Sentence {number}."))));
            view.apply(ViewCommand::ScrollDialog(1));
        }
        assert_eq!(seen.len(), 60, "all of the text can be read at {size:?}");
    }
}
