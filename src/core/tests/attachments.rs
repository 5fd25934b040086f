//! Tests of pasted texts and images in prompts, and of dropped files.

use std::ops::Range;

use super::support::*;
use crate::core::session::play;
use crate::core::*;
use crate::model::*;

fn ranges(bounds: &[(usize, usize)]) -> Vec<Range<usize>> {
    bounds.iter().map(|(start, end)| *start..*end).collect()
}

fn pasted() -> Attachment {
    Attachment::of_text("one\ntwo\nthree")
}

fn image() -> String {
    "[Image #0123456789: 8×4, 1 KiB]".to_owned()
}

/// The prompt `see LABEL.` with the pasted text.
fn prepared() -> PreparedPrompt {
    PreparedPrompt {
        text: "see one\ntwo\nthree.".into(),
        pasted: ranges(&[(4, 17)]),
        ..PreparedPrompt::default()
    }
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
    app.play(Event::Draft(draft.into()));
    app.fx.clear();
    app
}

fn flash(app: &TestApp) -> &str {
    app.state.flash.as_deref().unwrap_or_default()
}

#[test]
fn a_pasted_text_is_saved_by_an_effect() {
    let mut app = TestApp::ready();
    app.fx.clear();
    app.play(Event::Pasted(pasted()));
    assert_eq!(app.fx, [Effect::SaveAttachment(pasted())]);
}

#[test]
fn the_agent_gets_the_pasted_text_and_the_history_its_label() {
    let mut app = TestApp::ready();
    let text = format!("see {}.", pasted().label());
    app.submit(&text);
    let jobs: Vec<&str> = app
        .fx
        .iter()
        .filter_map(|effect| match effect {
            Effect::PreparePrompt(job) => Some(job.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(jobs, [&text]);
    app.prepared(prepared());
    let sent = app.fx.iter().find_map(|effect| match effect {
        Effect::Send(_, AgentCommand::Call(_, Call::Prompt(_, blocks))) => Some(blocks.as_slice()),
        _ => None,
    });
    assert_eq!(sent, Some(&[ContentBlock::Text("see one\ntwo\nthree.".into())][..]));
    assert_eq!(app.session().history, std::slice::from_ref(&text));
    let folder = app.session().workspace.cwd.clone();
    assert!(app.fx.contains(&Effect::SavePrompt { folder, text: text.clone() }));
    app.submit(&text);
    assert_eq!(app.queue(), [text], "the queue contains the label");
}

#[test]
fn the_record_restores_the_folded_text() {
    let mut app = TestApp::ready();
    app.submit(&format!("see {}.", pasted().label()));
    app.prepared(prepared());
    let mut records = app.saved.iter().filter_map(|note| match note {
        Note::Event { record, .. } if matches!(**record, Record::Prompt { .. }) => Some((**record).clone()),
        _ => None,
    });
    let record = records.next_back().unwrap();
    let expected = Record::Prompt {
        text: "see one\ntwo\nthree.".into(),
        is_again: false,
        blocks: Vec::new(),
        pasted: ranges(&[(4, 17)]),
        typed: Some(format!("see {}.", pasted().label())),
    };
    assert_eq!(record, expected);
    let mut restored = Session::new(KEY, SessionWorkspace::default());
    play::apply(&mut restored, record, app.now);
    let shown = |session: &Session| match session.transcript.items().last().map(|item| item.body.clone()) {
        Some(ItemBody::Message(message)) => (message.parts, message.pasted),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown(&restored), shown(app.session()));
    assert_eq!(shown(&restored).1, ranges(&[(4, 17)]));
}

#[test]
fn invalid_ranges_of_a_record_are_ignored() {
    for pasted in [&[(4, 99)][..], &[(2, 3)], &[(4, 2)], &[(2, 5), (0, 2)]].map(ranges) {
        let ItemBody::Message(message) =
            play::user_message("xé and y", &[], pasted.clone(), std::time::Instant::now())
        else {
            panic!();
        };
        assert!(message.pasted.is_empty(), "{pasted:?}");
    }
}

#[test]
fn the_image_of_the_clipboard_is_inserted_at_the_cursor() {
    let mut app = TestApp::started();
    app.handshake(AgentCapabilities { prompt_image: true, ..all_capabilities() }).open(ID);
    app.play(Event::Draft("see this".into())).fx.clear();
    app.play(Event::Cursor(3)).play(Event::Act(Action::PasteImage));
    assert_eq!(app.fx, [Effect::ReadClipboard { session: KEY, before: Some("see".into()) }]);
    let read =
        |before: &str| ServiceEvent::ImagePasted { session: KEY, before: before.into(), label: Ok(image()) };
    app.service(read("see"));
    assert_eq!(app.session().draft, format!("see {} this", image()));
    let text = format!(" {}", image());
    assert!(app.fx.contains(&Effect::View(ViewCommand::ReplaceInDraft(3..3, text))));
    app.play(Event::Draft("another".into())).service(read("see"));
    assert_eq!(app.session().draft, format!("another {} ", image()), "the text before the cursor changed");
    let failed = Err("The clipboard contains no image.".to_owned());
    app.service(ServiceEvent::ImagePasted { session: KEY, before: String::new(), label: failed });
    assert_eq!(flash(&app), "The clipboard contains no image.");
}

#[test]
fn a_text_in_the_clipboard_is_read_for_a_command() {
    let mut app = TestApp::ready();
    app.fx.clear();
    app.play(Event::ReadClipboard);
    assert_eq!(app.fx, [Effect::ReadClipboard { session: KEY, before: None }]);
    let read = |text| ServiceEvent::ClipboardRead { session: KEY, is_register: true, text };
    app.service(read(Ok("one".into())));
    assert_eq!(flash(&app), "", "the view inserts it");
    app.service(read(Err("The clipboard contains no text.".into())));
    assert_eq!(flash(&app), "The clipboard contains no text.");
    app.state.flash = None;
    app.play(Event::Act(Action::NewSession)).service(read(Ok("one".into())));
    assert_eq!(flash(&app), "Not pasted, because you changed tabs.");
}

#[test]
fn an_agent_without_images_is_known_before_sending() {
    let mut app = TestApp::started();
    app.handshake(AgentCapabilities { prompt_image: false, ..all_capabilities() }).open(ID);
    app.fx.clear();
    app.play(Event::Act(Action::PasteImage));
    assert!(matches!(app.fx[..], [Effect::ReadClipboard { .. }]), "the clipboard may contain a text");
    app.service(ServiceEvent::ImagePasted { session: KEY, before: String::new(), label: Ok(image()) });
    assert_eq!(flash(&app), "The agent does not accept images.");
    app.state.flash = None;
    app.play(Event::Draft("/a/b.rs".into()))
        .service(ServiceEvent::DropRead(Box::new(drop_job(0)), Ok(image())));
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
    app.play(Event::Act(Action::NewSession)).service(read(0));
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
        app.play(Event::Cursor(cursor)).play(Event::Act(Action::OpenAttachment));
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
    app.play(Event::Act(Action::OpenAttachment));
    assert_eq!(flash(&app), "No attachments in the prompt.");
}
