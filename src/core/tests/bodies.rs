//! Large texts of a session leave memory once they are saved, and are read when they are used.

use std::io;

use super::support::{TestCore, digest, patch, text};
use crate::core::{Effect, ItemBody, MessagePart};
use crate::model::{Growing, Patch, Raw, ReadBytes, Role, SavedBody, ServiceEvent, ToolStatus, UnsavedBody};

struct InMemory(String, ReadBytes);

impl SavedBody for InMemory {
    fn read(&self) -> io::Result<String> {
        self.1.add(self.0.len());
        Ok(self.0.clone())
    }
}

const OUTPUT_BYTES: usize = 1 << 20;

fn output(number: usize) -> String {
    format!("{number:08}").repeat(OUTPUT_BYTES / 8)
}

/// A session with ten large outputs, and the texts that are to be saved.
fn grown() -> (TestCore, Vec<UnsavedBody>, ReadBytes) {
    let mut app = TestCore::running();
    for number in 0..10 {
        app.update(patch(&format!("t{number}"), |patch| {
            patch.status = Patch::Set(ToolStatus::Completed);
            patch.output_text = Patch::Set(output(number).into());
            patch.raw_output = Patch::Set(Raw(format!("\"{}\"", output(number)).into()));
        }));
    }
    let mut saving = app.fx.iter().filter_map(|effect| match effect {
        Effect::SaveBodies { bodies, read } => Some((bodies.clone(), read.clone())),
        _ => None,
    });
    let (bodies, read) = saving.next().expect("there is more than the budget");
    assert!(saving.next().is_none(), "one job at a time");
    (app, bodies, read)
}

fn loaded(app: &TestCore) -> usize {
    let calls = app.session().transcript.items().iter().filter_map(|item| match &item.body {
        ItemBody::Tool(call) => call.output_text.as_ref(),
        _ => None,
    });
    calls.filter(|text| !matches!(text, Growing::Closed(body) if !body.is_loaded())).count()
}

#[test]
fn saved_outputs_leave_memory_and_are_read_when_used() {
    let (mut app, bodies, read) = grown();
    let digest_before = digest(app.session());
    let revision = app.session().transcript.revision();
    for body in &bodies {
        body.set_saved(Box::new(InMemory(body.text().to_owned(), read.clone())));
    }
    drop(bodies);
    app.service(ServiceEvent::BodiesSaved(true));
    assert!(loaded(&app) <= 6, "{} of 10 are in memory", loaded(&app));
    assert_eq!(app.session().transcript.revision(), revision, "nothing visible has changed");
    assert_eq!(read.count(), 0, "unloading reads nothing");
    assert_eq!(digest(app.session()), digest_before);
    let call = app.session().transcript.items().iter().find_map(|item| match &item.body {
        ItemBody::Tool(call) if call.id.as_str() == "t0" => Some(call),
        _ => None,
    });
    let text = call.unwrap().output_text.as_ref().unwrap();
    assert_eq!(text.peek(), output(0));
    assert!(loaded(&app) <= 6, "a look at a text, as of the search, does not leave it in memory");
    assert_eq!(text.as_str(), output(0));
}

#[test]
fn content_that_arrives_during_saving_is_saved_next() {
    let (mut app, bodies, read) = grown();
    for number in 10..20 {
        app.update(patch(&format!("t{number}"), |patch| {
            patch.output_text = Patch::Set(output(number).into());
        }));
    }
    for body in &bodies {
        body.set_saved(Box::new(InMemory(body.text().to_owned(), read.clone())));
    }
    app.fx.clear();
    app.service(ServiceEvent::BodiesSaved(true));
    let next = app.fx.iter().find_map(|effect| match effect {
        Effect::SaveBodies { bodies, .. } => Some(bodies.len()),
        _ => None,
    });
    assert!(next.is_some_and(|count| count >= 10), "{next:?}");
}

#[test]
fn outputs_that_cannot_be_saved_stay_in_memory() {
    let (mut app, bodies, _) = grown();
    app.service(ServiceEvent::BodiesSaved(false));
    assert_eq!(loaded(&app), 10);
    drop(bodies);
    assert_eq!(app.session().grown_bytes, 0, "the next attempt waits for more content");
}

#[test]
fn the_open_message_of_the_agent_stays_open() {
    let mut app = TestCore::running();
    for _ in 0..12 {
        app.update(text(Role::Agent, &"word ".repeat(200_000)));
    }
    let message = app.session().transcript.items().iter().find_map(|item| match &item.body {
        ItemBody::Message(message) if message.role == Role::Agent => message.parts.first(),
        _ => None,
    });
    assert!(matches!(message, Some(MessagePart::Text(Growing::Open(text))) if text.len() == 12_000_000));
}
