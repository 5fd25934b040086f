//! Tests of the event reader.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::{SseItem, SseReader};

impl SseReader {
    fn feed_all(&mut self, bytes: &[u8], out: &mut Vec<SseItem>) {
        self.feed(&Bytes::copy_from_slice(bytes), out);
    }
}

fn read(text: &[u8]) -> Vec<SseItem> {
    let mut out = Vec::new();
    SseReader::new(1 << 20).feed_all(text, &mut out);
    out
}

fn event(name: Option<&str>, data: &str) -> SseItem {
    SseItem::Event { name: name.map(str::to_owned), id: None, data: data.to_owned().into() }
}

#[test]
fn all_line_ends_and_field_formats_are_parsed() {
    for text in [
        "data: {\"a\":1}\n\n",
        "data:{\"a\":1}\r\n\r\n",
        "data: {\"a\":1}\r\r",
        "\u{feff}data: {\"a\":1}\n\n",
        "event: message\nid: 7\nother: x\ndata: {\"a\":1}\n\n",
        "data: {\"a\":1}\ndata\n\n",
    ] {
        let found = read(text.as_bytes());
        let [SseItem::Event { name: None, data, .. }] = found.as_slice() else {
            panic!("{text:?}: {found:?}")
        };
        assert_eq!(data.trim_ascii(), b"{\"a\":1}", "{text:?}");
    }
}

#[test]
fn data_lines_are_joined_and_only_one_space_is_dropped() {
    assert_eq!(read(b"data: a\ndata:  b\ndata:\ndata: c\n\n"), [event(None, "a\n b\n\nc")]);
}

#[test]
fn names_apply_to_one_event_and_comments_are_reported() {
    assert_eq!(
        read(b": ping\nevent: text_delta\ndata: x\n\ndata: y\n\n"),
        [SseItem::Comment, event(Some("text_delta"), "x"), event(None, "y")]
    );
}

#[test]
fn events_without_data_or_truncated_are_dropped() {
    assert_eq!(read(b"event: a\n\ndata:\n\ndata: lost"), []);
    assert_eq!(read(b"data: lost\n"), []);
}

#[test]
fn ids_count_once_their_event_is_complete() {
    let mut reader = SseReader::new(100);
    let mut out = Vec::new();
    reader.feed_all(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", &mut out);
    assert_eq!((reader.last_id.as_deref(), out.len()), (Some("1"), 1), "the second event is not complete");
    reader.restart();
    assert_eq!(reader.last_id.as_deref(), Some("1"));
    reader.feed_all(b"data: c\n\n", &mut out);
    assert_eq!(reader.last_id.as_deref(), Some("1"), "an event without an id does not change the last one");
    // An id without data, an empty one, and one of an oversized event count too.
    reader.feed_all(b"id: 3\n\n", &mut out);
    assert_eq!(reader.last_id.as_deref(), Some("3"));
    reader.feed_all(format!("id: 4\ndata: {}\n\n", "x".repeat(200)).as_bytes(), &mut out);
    assert_eq!(reader.last_id.as_deref(), Some("4"));
    reader.feed_all(b"id\ndata: d\n\n", &mut out);
    assert_eq!(reader.last_id.as_deref(), None);
}

#[test]
fn retry_accepts_digits_only() {
    let mut reader = SseReader::new(100);
    reader.feed_all(b"retry: +5\nretry: -1\nretry:\nretry: 1.5\nretry: 0x1\n", &mut Vec::new());
    assert_eq!(reader.retry, None);
    reader.feed_all(b"retry:20\n", &mut Vec::new());
    assert_eq!(reader.retry, Some(Duration::from_millis(20)));
}

/// The result of parsing an event stream at once, according to the specification: name, id and data of each event, then
/// the last id and the reconnection time. Source: HTML Living Standard 9.2.6.
type Meaning = (Vec<(Option<String>, Option<String>, String)>, Option<String>, Option<u64>);

fn meaning(text: &str) -> Meaning {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    // The text after the last line end is an incomplete line.
    let lines = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let lines: Vec<&str> = if text.contains('\n') { lines.split('\n').collect() } else { Vec::new() };
    let (mut events, mut last_id, mut retry) = (Vec::new(), None, None);
    let (mut name, mut id, mut own_id, mut data): (_, _, _, Vec<&str>) = (None, None, None, Vec::new());
    for line in lines {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            _ if line.is_empty() => {
                last_id.clone_from(&id);
                let data = std::mem::take(&mut data).join("\n");
                let name = name.take().filter(|name: &String| !name.is_empty() && name != "message");
                let own_id = std::mem::take(&mut own_id);
                if !data.trim_ascii().is_empty() {
                    events.push((name, own_id, data));
                }
            }
            "data" => data.push(value),
            "event" => name = Some(value.to_owned()),
            "id" if !value.contains('\0') => {
                id = Some(value.to_owned()).filter(|id| !id.is_empty());
                own_id.clone_from(&id);
            }
            "retry" if !value.is_empty() && value.bytes().all(|sign| sign.is_ascii_digit()) => {
                retry = value.parse().ok();
            }
            _ => {}
        }
    }
    (events, last_id, retry)
}

#[test]
fn the_last_id_and_retry_are_preserved_by_a_restart() {
    let mut reader = SseReader::new(100);
    let mut out = Vec::new();
    reader.feed_all(b"id: 5\nretry: 1500\n\ndata: half", &mut out);
    reader.restart();
    assert_eq!((reader.last_id.as_deref(), reader.retry), (Some("5"), Some(Duration::from_millis(1500))));
    reader.feed_all(b"\n\ndata: whole\nretry: 99999999\nretry: soon\nid: a\0b\n\n", &mut out);
    assert_eq!(out, [event(None, "whole")]);
    assert_eq!((reader.last_id.as_deref(), reader.retry), (Some("5"), Some(Duration::from_secs(60))));
}

#[test]
fn oversized_events_are_skipped_and_the_next_one_is_read() {
    let mut reader = SseReader::new(10);
    let mut out = Vec::new();
    reader.feed_all(b"data: 12345\ndata: 678901234\ndata: x\n\ndata: ok\n\n", &mut out);
    let [SseItem::Oversize { len_bytes: 17, head }, next] = out.as_slice() else { panic!("{out:?}") };
    assert!(head.starts_with(b"12345\n6"), "{head:?}");
    assert_eq!(*next, event(None, "ok"));
}

#[test]
fn an_endless_line_uses_bounded_memory() {
    let mut reader = SseReader::new(1000);
    let mut out = Vec::new();
    reader.feed_all(b"data: ", &mut out);
    for _ in 0..1000 {
        reader.feed_all(&[b'x'; 1000], &mut out);
    }
    assert!(reader.line.capacity() < 10_000, "{}", reader.line.capacity());
    reader.feed_all(b"\n\ndata: ok\n\n", &mut out);
    let [SseItem::Oversize { len_bytes: 1_000_000, .. }, next] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(*next, event(None, "ok"));
}

/// Valid and invalid parts of event streams.
fn stream_text(max: usize) -> impl Strategy<Value = String> {
    let parts = [
        "data: a",
        "data:b",
        "data",
        "data:  c",
        ":",
        ": ping",
        "\n",
        "\r",
        "\r\n",
        "event: e",
        "event: message",
        "event",
        "id: 1",
        "id:2",
        "id",
        "id: a\0b",
        "retry: 7",
        "retry: x",
        "retry",
        "other: x",
        "ü",
        "\n\n",
        "\r\n\r\n",
        "\r\r",
        "\u{feff}",
        " ",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..max).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn events_match_the_specification_for_any_reads(
        text in stream_text(40),
        cuts in prop::collection::vec(0.0_f64..1.0, 0..12),
    ) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an offset in a short text")]
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * text.len() as f64) as usize).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut reader = SseReader::new(1 << 20);
        let mut out = Vec::new();
        for cut in cuts.windows(2) {
            reader.feed_all(&text.as_bytes()[cut[0]..cut[1]], &mut out);
        }
        let events = out.into_iter().filter_map(|item| match item {
            SseItem::Event { name, id, data } => {
                Some((name, id.as_deref().map(str::to_owned), String::from_utf8(data.to_vec()).unwrap()))
            }
            SseItem::Comment | SseItem::Oversize { .. } => None,
        });
        let retry = reader.retry.map(|pause| u64::try_from(pause.as_millis()).unwrap());
        let found = (events.collect(), reader.last_id.as_deref().map(str::to_owned), retry);
        prop_assert_eq!(found, meaning(&text));
    }

    #[test]
    fn the_events_do_not_depend_on_the_reads(text in stream_text(40), cut in 1_usize..7) {
        let mut reader = SseReader::new(20);
        let mut whole = Vec::new();
        reader.feed_all(text.as_bytes(), &mut whole);
        let mut reader = SseReader::new(20);
        let mut pieces = Vec::new();
        for part in text.as_bytes().chunks(cut) {
            reader.feed_all(part, &mut pieces);
        }
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn random_bytes_never_panic_and_memory_is_bounded(
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
            reader.feed_all(&part, &mut out);
            let held = reader.line.capacity() + reader.data.capacity();
            prop_assert!(held < 16_000, "{} bytes are held", held);
        }
        for item in &out {
            if let SseItem::Event { data, .. } = item {
                prop_assert!(data.len() <= 1000);
            }
        }
        // The next event is parsed.
        out.clear();
        reader.feed_all(b"\n\ndata: after\n\n", &mut out);
        prop_assert_eq!(out.pop(), Some(event(None, "after")));
    }
}
