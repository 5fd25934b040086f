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

/// The prompt `see LABEL.` with the pasted text.
fn prepared() -> PreparedPrompt {
    PreparedPrompt {
        text: "see one\ntwo\nthree.".into(),
        pasted: ranges(&[(4, 17)]),
        ..PreparedPrompt::default()
    }
}

fn flash(app: &TestCore) -> &str {
    app.state.flash.as_deref().unwrap_or_default()
}

#[test]
fn the_agent_gets_the_pasted_text_and_the_history_its_label() {
    let mut app = TestCore::ready();
    let text = format!("see {}.", pasted().label());
    app.submit(&text);
    let [job] = app.prompt_jobs()[..] else { panic!("{:?}", app.fx) };
    assert_eq!(job.text, text);
    app.prepared(prepared());
    assert_eq!(app.sent_prompts(), [&[ContentBlock::Text("see one\ntwo\nthree.".into())]]);
    assert_eq!(app.session().history, std::slice::from_ref(&text));
    let folder = app.session().workspace.cwd.clone();
    assert!(app.fx.contains(&Effect::SavePrompt { folder, text: text.clone() }));
    app.submit(&text);
    assert_eq!(app.queue(), [text], "the queue contains the label");
}

#[test]
fn the_record_restores_the_folded_text() {
    let mut app = TestCore::ready();
    app.submit(&format!("see {}.", pasted().label()));
    app.prepared(prepared());
    let mut records = app.recorded().into_iter().map(|event| event.record);
    let record = records.rfind(|record| matches!(record, Record::Prompt { .. })).unwrap();
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
fn a_text_in_the_clipboard_is_read_for_a_command() {
    let mut app = TestCore::ready();
    app.fx.clear();
    let read = |text| ServiceEvent::ClipboardRead { session: KEY, is_register: true, text };
    app.service(read(Ok("one".into())));
    assert_eq!(flash(&app), "", "the view inserts it");
    app.service(read(Err("The clipboard contains no text.".into())));
    assert_eq!(flash(&app), "The clipboard contains no text.");
    app.state.flash = None;
    app.flow(crate::core::lifecycle::operations::new_session).service(read(Ok("one".into())));
    assert_eq!(flash(&app), "Not pasted, because you changed tabs.");
}
