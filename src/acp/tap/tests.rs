//! Tests of the tap.

use super::{Direction, LINE_BYTES, Tap};
use crate::host::os::fixtures;

#[test]
fn lines_are_returned_in_order_with_their_direction() {
    let tap = Tap::default();
    assert_eq!(tap.version(), 0);
    tap.record(Direction::ToAgent, b"{\"id\":1}");
    tap.record(Direction::FromAgent, b"{\"id\":1,\"result\":{}}");
    tap.record(Direction::Stderr, b"warming up");
    let lines = tap.snapshot(None, usize::MAX);
    let texts: Vec<_> = lines.iter().map(|line| (line.direction, line.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            (Direction::ToAgent, "{\"id\":1}"),
            (Direction::FromAgent, "{\"id\":1,\"result\":{}}"),
            (Direction::Stderr, "warming up"),
        ]
    );
    assert_eq!(tap.version(), 3);
}

#[test]
fn the_newest_lines_can_be_selected() {
    let tap = Tap::default();
    for number in 0..10 {
        tap.record(Direction::FromAgent, format!("Line {number}").as_bytes());
        tap.record(Direction::Stderr, b"line of stderr");
    }
    let texts: Vec<_> = tap.snapshot(None, 3).into_iter().map(|line| line.text).collect();
    assert_eq!(texts, ["line of stderr", "Line 9", "line of stderr"]);
    assert_eq!(tap.stderr_after(18), ["line of stderr"]);
}

#[test]
fn long_lines_are_truncated() {
    let tap = Tap::default();
    tap.record(Direction::FromAgent, &vec![b'x'; LINE_BYTES * 3]);
    let lines = tap.snapshot(None, usize::MAX);
    assert_eq!(lines[0].text.len(), LINE_BYTES);
}

#[test]
fn the_ring_stays_within_its_limits() {
    let tap = Tap::default();
    for number in 0..10_000_u32 {
        tap.record(Direction::FromAgent, format!("{number}").as_bytes());
    }
    let lines = tap.snapshot(None, usize::MAX);
    assert_eq!((lines.len(), lines[0].text.as_str()), (4000, "6000"));
    for _ in 0..1000 {
        tap.record(Direction::FromAgent, &[b'y'; LINE_BYTES]);
    }
    let bytes: usize = tap.snapshot(None, usize::MAX).iter().map(|line| line.text.len()).sum();
    assert!(bytes <= 4 << 20, "{bytes} bytes");
    assert_eq!(tap.version(), 11_000);
    for number in 0..2000_u32 {
        // Lines that wrap around the end of the ring are complete.
        tap.record(Direction::FromAgent, format!("{number}:").repeat(900).as_bytes());
        let line = tap.snapshot(None, 1);
        assert_eq!(line[0].text, format!("{number}:").repeat(900));
    }
}

#[test]
fn the_file_has_complete_lines_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wire.jsonl");
    let tap = Tap::default();
    tap.log_to(&path).unwrap();
    tap.record(Direction::ToAgent, br#"{"token":"abc"}"#);
    tap.record(Direction::FromAgent, &vec![b'x'; LINE_BYTES * 2]);
    tap.flush();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["dir"], "to");
    assert_eq!(lines[0]["text"], r#"{"token":"[hidden]"}"#);
    assert_eq!(lines[1]["text"].as_str().unwrap().len(), LINE_BYTES * 2);
    assert_eq!(lines[1]["n"], 2);
}

#[test]
fn the_file_is_private_and_safe_to_print() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wire.jsonl");
    std::fs::write(&path, "").unwrap();
    fixtures::set_mode(&path, 0o644);
    let tap = Tap::default();
    tap.log_to(&path).unwrap();
    let line = "\"\u{9d}0;own\u{9c}\u{202e}\u{7f}Grüße\"";
    tap.record(Direction::FromAgent, line.as_bytes());
    tap.flush();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\\u009d0;own\\u009c\\u202e\\u007fGrüße"), "{text}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["text"], line);
    assert_eq!(fixtures::mode(&path), 0o600);
}

#[test]
fn lines_can_be_filtered_by_connection() {
    let tap = Tap::default();
    let (one, two) = (tap.of_conn(1), tap.of_conn(2));
    one.record(Direction::ToAgent, b"to one");
    two.record(Direction::FromAgent, b"from two");
    one.record(Direction::Stderr, b"of one");
    let texts = |conns: Option<Vec<u64>>| -> Vec<String> {
        let lines = tap.snapshot(conns.as_deref(), usize::MAX);
        lines.into_iter().map(|line| line.text).collect()
    };
    assert_eq!(texts(Some(vec![1])), ["to one", "of one"]);
    assert_eq!(texts(Some(vec![2, 3])), ["from two"]);
    assert_eq!(texts(None).len(), 3);
}
