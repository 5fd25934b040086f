//! The list of slash commands, and the hint for their arguments.

use super::check;
use super::fixture::*;
use crate::core::ViewCommand;
use crate::model::{TemplateInfo, TemplateSource, UnreviewedTemplate};
use crate::ui::{Canvas, draw_into};

#[test]
fn the_hint_for_arguments_is_shown_above_the_prompt() {
    let mut stage = ready();
    stage.session(|session| {
        session.draft = "/review a.rs".into();
        session.commands[2].hint = Some("<file> [\u{1b}[31mfocus]".into());
    });
    for size in SIZES {
        let mut view = stage.view();
        view.apply(ViewCommand::SetDraft("/review a.rs".into()));
        let shown = text(&stage.draw(&mut view, &theme("dark"), size));
        let rows: Vec<&str> = shown.lines().collect();
        let at = rows.iter().position(|row| row.contains("/review <file> [focus]")).expect(&shown);
        let prompt = rows.iter().position(|row| row.contains("/review a.rs")).expect(&shown);
        assert!(at < prompt, "{shown}");
        assert_eq!(view.composer.text(), "/review a.rs");
    }
}

#[test]
fn the_hint_for_arguments_leaves_the_screen_with_the_command() {
    let mut stage = streaming();
    stage.session(|session| session.commands[0].hint = Some("<scope>".into()));
    let (mut view, theme, mut canvas) = (stage.view(), theme("dark"), Canvas::new(80, 24));
    for (draft, is_shown) in [("text", false), ("/compact a", true), ("text", false), ("/compact a", true)] {
        stage.session(|session| session.draft = draft.into());
        view.apply(ViewCommand::SetDraft(draft.into()));
        draw_into(&stage, &mut view, &theme, &mut canvas);
        canvas.set_shown();
        assert_eq!(text(&canvas).contains("<scope>"), is_shown, "{draft}");
    }
}

#[test]
fn templates_are_shown_with_their_source() {
    let mut stage = ready();
    stage.session(|session| {
        session.draft = "/re".into();
        let template = |name: &str, source| TemplateInfo {
            name: name.into(),
            source,
            description: "Review \u{1b}[31mone file".into(),
            hint: Some("<file>".into()),
        };
        session.templates.offered =
            vec![template("recap", TemplateSource::User), template("review", TemplateSource::Project)];
        session.templates.unreviewed.push(UnreviewedTemplate {
            name: "release".into(),
            file: "/code/.parlor/prompts/release.md".into(),
            text: "Release".into(),
            answer_file: "/data/x".into(),
        });
    });
    check("templates", &stage, |_| {});
}
