//! Clicks on links.

use super::*;
use crate::core::{ItemBody, MessagePart};

#[test]
fn clicking_a_link_asks_to_open_the_page() {
    let mut stage = fixture::streaming();
    stage.session(|session| {
        let id = session.transcript.items()[2].id;
        session.transcript.edit(id, |item| {
            let ItemBody::Message(message) = &mut item.body else { panic!("a message") };
            message.parts = vec![MessagePart::Text("See https://example.com/docs first.".into())];
        });
    });
    let mut rig = Rig::new(stage);
    let mut click = |text: &str| {
        let events = rig.click_on(text);
        events.into_iter().filter(|event| matches!(event, Event::Open(_))).collect::<Vec<_>>()
    };
    let page = crate::model::Target::Url("https://example.com/docs".to_owned());
    assert_eq!(click("example.com"), [Event::Open(page)]);
    assert_eq!(click("src/auth.rs"), [], "the editor opens with Ctrl only");
}
