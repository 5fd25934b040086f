//! Exports of prompts with pasted texts and images.

use super::*;

#[test]
fn exports_contain_pasted_texts_and_images_of_prompts() {
    let fixture = Fixture::new();
    let (services, _events) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::new(fixture.store.clone(), services);
    let pasted = Attachment::of_text("first pasted line\nlast pasted line");
    let attachments = crate::host::attachments::Attachments::new(Some(fixture.dir.path()));
    attachments.save(&pasted).unwrap();
    let image = "[Image #0123456789: 8×4, 1 KiB]";
    let data = ContentBlock::Image { data: "iVBORw0KGgo=".into(), mime_type: "image/png".into(), uri: None };
    // As sent: the labels of texts are replaced by the texts.
    let text = format!("see first pasted line\nlast pasted line and {image}");
    let prompt = Record::Prompt {
        text,
        is_again: false,
        blocks: vec![data],
        pasted: std::iter::once(4..38).collect(),
        typed: None,
    };
    let head = SessionHead { agent: "fake".to_owned(), session: Some("s".into()), ..SessionHead::default() };
    let draft = Note::Draft(format!("draft {} and {image}", pasted.label()));
    let notes = [Note::Head(Box::new(head)), Note::Event { turn: 1, record: Box::new(prompt) }, draft];
    recorder.keep(SessionKey(1), notes.into());
    assert_eq!(recorder.finish(), None);
    let shown = fixture.run(&["show", "s"]);
    let quote = format!("> see first pasted line\n> last pasted line and {image}\n");
    assert!(shown.contains(&quote) && shown.contains("[image, image/png]"), "{shown}");
    let page = fixture.run(&["export", "s", "--format", "html"]);
    let picture = "<img alt=\"[image, image/png]\" src=\"data:image/png;base64,iVBORw0KGgo=\">";
    assert!(page.contains("first pasted line\nlast pasted line") && page.contains(picture), "{page}");
    let json = fixture.run(&["export", "s", "--format", "json"]);
    assert!(json.contains("iVBORw0KGgo="), "{json}");
    let draft = format!("draft first pasted line\\nlast pasted line and {image}");
    assert!(json.contains(&draft), "{json}");
}
