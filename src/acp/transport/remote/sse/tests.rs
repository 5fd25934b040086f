//! Tests of the event reader.

use std::time::Duration;

use proptest::prelude::*;

use super::{SseItem, SseReader};

fn read(text: &[u8]) -> Vec<SseItem> {
    let mut out = Vec::new();
    SseReader::new(1 << 20).feed(text, &mut out);
    out
}

fn event(name: Option<&str>, data: &str) -> SseItem {
    SseItem::Event { name: name.map(str::to_owned), data: data.to_owned().into() }
}

#[test]
fn all_line_ends_and_forms_of_a_field() {
    for text in [
        "data: {\"a\":1}\n\n",
        "data:{\"a\":1}\r\n\r\n",
        "data: {\"a\":1}\r\r",
        "\u{feff}data: {\"a\":1}\n\n",
        "event: message\nid: 7\nother: x\ndata: {\"a\":1}\n\n",
        "data: {\"a\":1}\ndata\n\n",
    ] {
        let found = read(text.as_bytes());
        let [SseItem::Event { name: None, data }] = found.as_slice() else { panic!("{text:?}: {found:?}") };
        assert_eq!(data.trim_ascii(), b"{\"a\":1}", "{text:?}");
    }
}

#[test]
fn data_lines_are_joined_and_only_one_space_is_dropped() {
    assert_eq!(read(b"data: a\ndata:  b\ndata:\ndata: c\n\n"), [event(None, "a\n b\n\nc")]);
}

#[test]
fn names_belong_to_one_event_and_comments_are_told() {
    assert_eq!(
        read(b": ping\nevent: text_delta\ndata: x\n\ndata: y\n\n"),
        [SseItem::Comment, event(Some("text_delta"), "x"), event(None, "y")]
    );
}

#[test]
fn an_event_without_data_or_cut_off_is_none() {
    assert_eq!(read(b"event: a\n\ndata:\n\ndata: lost"), []);
    assert_eq!(read(b"data: lost\n"), []);
}

#[test]
fn ids_and_pauses_are_kept_over_a_restart() {
    let mut reader = SseReader::new(100);
    let mut out = Vec::new();
    reader.feed(b"id: 5\nretry: 1500\n\ndata: half", &mut out);
    reader.restart();
    assert_eq!((reader.last_id(), reader.retry()), (Some("5"), Some(Duration::from_millis(1500))));
    reader.feed(b"\n\ndata: whole\nretry: 99999999\nretry: soon\nid: a\0b\n\n", &mut out);
    assert_eq!(out, [event(None, "whole")]);
    assert_eq!((reader.last_id(), reader.retry()), (Some("5"), Some(Duration::from_secs(60))));
}

#[test]
fn an_event_over_the_limit_is_skipped_and_the_next_one_is_read() {
    let mut reader = SseReader::new(10);
    let mut out = Vec::new();
    reader.feed(b"data: 12345\ndata: 678901234\ndata: x\n\ndata: ok\n\n", &mut out);
    let [SseItem::Oversize { len_bytes: 17, head }, next] = out.as_slice() else { panic!("{out:?}") };
    assert!(head.starts_with(b"12345\n6"), "{head:?}");
    assert_eq!(*next, event(None, "ok"));
}

#[test]
fn a_line_without_end_costs_no_more_than_the_limit() {
    let mut reader = SseReader::new(1000);
    let mut out = Vec::new();
    reader.feed(b"data: ", &mut out);
    for _ in 0..1000 {
        reader.feed(&[b'x'; 1000], &mut out);
    }
    assert!(reader.line.capacity() < 10_000, "{}", reader.line.capacity());
    reader.feed(b"\n\ndata: ok\n\n", &mut out);
    let [SseItem::Oversize { len_bytes: 1_000_000, .. }, next] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(*next, event(None, "ok"));
}

proptest! {
    #[test]
    fn what_comes_out_does_not_depend_on_the_reads(
        parts in prop::collection::vec(
            prop::sample::select(vec!["data: a", "data", ":", "\n", "\r", "\r\n", "event: e", "id: 1", "ü", "\n\n", "\u{feff}"]),
            0..40,
        ),
        cut in 1_usize..7,
    ) {
        let text = parts.concat();
        let mut reader = SseReader::new(20);
        let mut whole = Vec::new();
        reader.feed(text.as_bytes(), &mut whole);
        let mut reader = SseReader::new(20);
        let mut pieces = Vec::new();
        for part in text.as_bytes().chunks(cut) {
            reader.feed(part, &mut pieces);
        }
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn nothing_panics_and_no_more_than_the_limit_is_held(
        parts in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                (1_usize..20_000).prop_map(|count| vec![b'x'; count]),
                prop::sample::select(vec!["data: ", "\n", "\r", "\n\n", "event: ", "id: "]).prop_map(Vec::from),
            ],
            0..12,
        ),
    ) {
        let mut out = Vec::new();
        let mut reader = SseReader::new(1000);
        for part in parts {
            reader.feed(&part, &mut out);
            let held = reader.line.capacity() + reader.data.capacity();
            prop_assert!(held < 16_000, "{} bytes are held", held);
        }
        for item in &out {
            if let SseItem::Event { data, .. } = item {
                prop_assert!(data.len() <= 1000);
            }
        }
        // What came before does not spoil what comes after.
        out.clear();
        reader.feed(b"\n\ndata: after\n\n", &mut out);
        prop_assert_eq!(out.pop(), Some(event(None, "after")));
    }
}
