//! Tests of pasted texts and images in prompts, and of dropped files.

use super::bench::TestApp;
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;

fn pasted() -> Attachment {
    Attachment::of_text("one\ntwo\nthree")
}

fn image() -> String {
    "[Image #0123456789: 8×4, 1 KiB]".to_owned()
}

fn drop_job(at: usize) -> DropJob {
    DropJob {
        session: KEY,
        text: "/a/b.rs".into(),
        at,
        readings: Vec::new(),
        folder: None,
        roots: Vec::new(),
    }
}

fn drafted(draft: &str) -> TestApp {
    let mut app = TestApp::ready();
    app.draft(draft);
    app.fx.clear();
    app
}

fn flash(app: &TestApp) -> &str {
    app.state.flash.as_deref().unwrap_or_default()
}

#[test]
fn the_image_of_the_clipboard_is_inserted_at_the_cursor() {
    let mut app = TestApp::started();
    app.handshake(AgentCapabilities { prompt_image: true, ..all_capabilities() }).open(ID);
    app.draft("see this").fx.clear();
    app.play(Event::Cursor(3)).act(Action::PasteImage);
    assert_eq!(app.fx, [Effect::ReadClipboard { session: KEY, before: Some("see".into()) }]);
    let read =
        |before: &str| ServiceEvent::ImagePasted { session: KEY, before: before.into(), label: Ok(image()) };
    app.service(read("see"));
    assert_eq!(app.session().draft, format!("see {} this", image()));
    let text = format!(" {}", image());
    assert!(app.fx.contains(&Effect::View(ViewCommand::ReplaceInDraft(3..3, text))));
    app.draft("another").service(read("see"));
    assert_eq!(app.session().draft, format!("another {} ", image()), "the text before the cursor changed");
    let failed = Err("The clipboard contains no image.".to_owned());
    app.service(ServiceEvent::ImagePasted { session: KEY, before: String::new(), label: failed });
    assert_eq!(flash(&app), "The clipboard contains no image.");
}

#[test]
fn an_agent_without_images_is_known_before_sending() {
    let mut app = TestApp::started();
    app.handshake(AgentCapabilities { prompt_image: false, ..all_capabilities() }).open(ID);
    app.fx.clear();
    app.act(Action::PasteImage);
    assert!(matches!(app.fx[..], [Effect::ReadClipboard { .. }]), "the clipboard may contain a text");
    app.service(ServiceEvent::ImagePasted { session: KEY, before: String::new(), label: Ok(image()) });
    assert_eq!(flash(&app), "The agent does not accept images.");
    app.state.flash = None;
    app.draft("/a/b.rs").service(ServiceEvent::DropRead(Box::new(drop_job(0)), Ok(image())));
    assert_eq!(flash(&app), "The agent does not accept images.");
}

#[test]
fn dropped_paths_are_replaced_while_the_draft_contains_them() {
    let read = |at: usize| ServiceEvent::DropRead(Box::new(drop_job(at)), Ok("@b.rs".into()));
    for (draft, at, expected) in [
        ("/a/b.rs", 0, "@b.rs "),
        ("see /a/b.rs and", 4, "see @b.rs and"),
        ("see/a/b.rs", 3, "see @b.rs "),
        ("moved /a/b.rs", 0, "moved @b.rs "),
        ("gone", 0, "gone"),
    ] {
        let mut app = drafted(draft);
        app.service(read(at));
        assert_eq!(app.session().draft, expected, "{draft}");
    }
    let mut app = drafted("/a/b.rs");
    app.act(Action::NewSession).service(read(0));
    assert_eq!(app.state.sessions.get(&KEY).map(|session| session.draft.as_str()), Some("@b.rs "));
    assert_eq!(app.state.active_session().map(|session| session.draft.as_str()), Some(""));
}

#[test]
fn a_drop_is_read_for_the_session_and_its_folders() {
    let mut app = drafted("/a/b.rs");
    let readings = dropped_paths("/a/b.rs");
    app.play(Event::Dropped { text: "/a/b.rs".into(), at: 0, readings: readings.clone() });
    let [Effect::ReadDropped(job)] = app.fx.as_slice() else { panic!("{:?}", app.fx) };
    assert_eq!((&job.readings, job.folder.as_deref()), (&readings, Some("/code/shop".as_ref())));
    assert!(job.roots.contains(&"/code/shop".into()));
}

#[test]
fn the_attachment_at_the_cursor_is_opened() {
    let first = pasted().label();
    let draft = format!("{first} and {}", image());
    let opened = |cursor: usize| {
        let mut app = drafted(&draft);
        app.play(Event::Cursor(cursor)).act(Action::OpenAttachment);
        match app.fx.as_slice() {
            [Effect::OpenAttachment { label, .. }] => label.kind,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        [0, first.len(), draft.len() - 3].map(opened),
        [AttachmentKind::Text, AttachmentKind::Text, AttachmentKind::Image]
    );
    assert_eq!(opened(first.len() + 2), AttachmentKind::Image, "the last one");
    let mut app = drafted("none");
    app.act(Action::OpenAttachment);
    assert_eq!(flash(&app), "No attachments in the prompt.");
}
