//! Tests of the frame reader.

use bytes::{BufMut, Bytes};
use proptest::prelude::*;

use super::{Form, Frame, FrameReader, InboundFrame};

const LIMIT: usize = 200;

/// Feeds the bytes in reads of the given sizes, in rotation, and then ends the stream.
fn read(bytes: &[u8], sizes: &[usize]) -> Vec<InboundFrame> {
    let mut reader = FrameReader::new(LIMIT);
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut sizes = sizes.iter().copied().cycle();
    while !rest.is_empty() {
        let count = sizes.next().unwrap_or(rest.len()).clamp(1, rest.len());
        reader.space().put_slice(&rest[..count]);
        reader.cut(&mut out);
        rest = &rest[count..];
    }
    reader.finish(&mut out);
    out
}

fn all(bytes: &[u8]) -> Vec<InboundFrame> {
    read(bytes, &[])
}

fn line(text: &'static str) -> InboundFrame {
    InboundFrame::Frame(Frame::new(Bytes::from_static(text.as_bytes()), Form::Line))
}

fn header(text: &'static str) -> InboundFrame {
    InboundFrame::Frame(Frame::new(Bytes::from_static(text.as_bytes()), Form::Header))
}

fn item(text: &'static str) -> InboundFrame {
    InboundFrame::Frame(Frame::new(Bytes::from_static(text.as_bytes()), Form::Array))
}

fn noise(text: &'static str) -> InboundFrame {
    InboundFrame::Noise(Bytes::from_static(text.as_bytes()))
}

#[test]
fn blank_lines_carriage_returns_and_byte_order_marks_are_skipped() {
    assert_eq!(
        all(b"\xEF\xBB\xBF{\"a\":1}\r\n\n  \r\n\t{\"b\":2} \n{\"c\":3}"),
        [line("{\"a\":1}"), line("{\"b\":2}"), line("{\"c\":3}")]
    );
}

#[test]
fn noise_is_reported_and_the_next_line_is_read() {
    assert_eq!(
        all(b"Loading model...\n[INFO] ready\n{\"a\":1}\n[]\n"),
        [noise("Loading model..."), noise("[INFO] ready"), line("{\"a\":1}"), noise("[]")]
    );
}

#[test]
fn header_frames_are_read_between_lines() {
    let pieces = all(b"Content-Length: 7\r\nContent-Type: x/y\r\n\r\n{\"a\":1}content-length:9\n\n{\n\"b\":2\n}\n{\"c\":3}\n");
    assert_eq!(pieces, [header("{\"a\":1}"), header("{\n\"b\":2\n}"), line("{\"c\":3}")]);
}

#[test]
fn the_first_message_determines_whether_headers_are_written() {
    for (bytes, wanted) in [
        (&b"Content-Length: 7\n\n{\"a\":1}"[..], true),
        (b"{\"a\":1}\nContent-Length: 7\n\n{\"b\":2}", false),
    ] {
        let mut reader = FrameReader::new(LIMIT);
        reader.space().put_slice(bytes);
        reader.cut(&mut Vec::new());
        assert_eq!(reader.began_with_header(), wanted);
    }
}

#[test]
fn the_message_after_a_line_like_a_header_is_read() {
    assert_eq!(
        all(b"Content-Length: 12\n{\"a\":1}\nContent-Length: 1\nwhat now\n{\"b\":2}\nContent-Length: x\n"),
        [
            noise("Content-Length: 12"),
            line("{\"a\":1}"),
            noise("Content-Length: 1"),
            noise("what now"),
            line("{\"b\":2}"),
            noise("Content-Length: x"),
        ]
    );
}

#[test]
fn a_frame_over_the_limit_is_skipped_and_reported() {
    let mut bytes = b"{\"a\":\"".to_vec();
    bytes.resize(LIMIT + 50, b'x');
    bytes.extend_from_slice(b"\n{\"b\":2}\nContent-Length: 1000\n\n");
    bytes.resize(bytes.len() + 1000, b'y');
    bytes.extend_from_slice(b"{\"c\":3}\n");
    for sizes in [&[][..], &[1], &[7], &[LIMIT], &[LIMIT + 1]] {
        let pieces = read(&bytes, sizes);
        let lengths: Vec<_> = pieces
            .iter()
            .map(|piece| match piece {
                InboundFrame::Oversize { len_bytes, .. } => *len_bytes,
                _ => 0,
            })
            .collect();
        assert_eq!(lengths, [250, 0, 1000, 0]);
        assert_eq!((&pieces[1], &pieces[3]), (&line("{\"b\":2}"), &line("{\"c\":3}")));
    }
}

#[test]
fn a_frame_of_maximum_size_is_read() {
    let mut bytes = vec![b'{'; LIMIT];
    bytes.push(b'\n');
    assert!(matches!(&all(&bytes)[..], [InboundFrame::Frame(frame)] if frame.text().len() == LIMIT));
}

#[test]
fn invalid_utf8_is_replaced_and_marked() {
    let pieces = all(b"{\"a\":\"\xFF\"}\n{\"b\":2}\n");
    let [InboundFrame::Frame(bad), good] = &pieces[..] else { panic!("two frames: {pieces:?}") };
    assert!(bad.is_lossy);
    assert_eq!(bad.text(), "{\"a\":\"\u{FFFD}\"}");
    assert_eq!(good, &line("{\"b\":2}"));
}

#[test]
fn an_array_is_split_into_its_messages() {
    assert_eq!(
        all(b"[{\"a\":[1]}, {\"b\":\"]\"}]\n[{\"c\":1},\n"),
        [item("{\"a\":[1]}"), item("{\"b\":\"]\"}"), noise("[{\"c\":1},")]
    );
}

#[test]
fn the_end_of_the_stream_returns_an_incomplete_frame() {
    assert_eq!(all(b"{\"a\":1}\n{\"b\":"), [line("{\"a\":1}"), line("{\"b\":")]);
    assert_eq!(all(b"Content-Length: 9\n\n{\"b\":"), [noise("{\"b\":")]);
    assert_eq!(all(b"Content-Length: 9\n"), [noise("Content-Length: 9")]);
}

/// Lines, header frames and noise, mixed.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => "[a-z{}\"\\[\\]:, ]{0,30}".prop_map(String::into_bytes),
        2 => Just(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}".to_vec()),
        1 => Just(b"[{\"a\":1},{\"b\":2}]".to_vec()),
        2 => (0_usize..260).prop_map(|n| format!("Content-Length: {n}\r\n\r").into_bytes()),
        1 => (190_usize..450).prop_map(|n| vec![b'{'; n]),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => Just(Vec::new()),
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.join(&b'\n'))
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_the_reads(
        bytes in streams(),
        sizes in proptest::collection::vec(1_usize..80, 1..10),
    ) {
        prop_assert_eq!(read(&bytes, &sizes), all(&bytes));
    }

    #[test]
    fn the_buffer_is_bounded_and_the_next_line_is_read(bytes in streams(), size in 1_usize..400) {
        let mut reader = FrameReader::new(LIMIT);
        let mut pieces = Vec::new();
        for part in bytes.chunks(size) {
            let space = reader.space();
            prop_assert!(space.capacity() <= 3 * super::READ_BYTES);
            space.extend_from_slice(part);
            reader.cut(&mut pieces);
        }
        // A header may still wait for its body; this ends it.
        reader.space().extend_from_slice(&[b'\n'; 2 * LIMIT + 100]);
        reader.cut(&mut pieces);
        pieces.clear();
        reader.space().extend_from_slice(b"{\"after\":1}\n");
        reader.cut(&mut pieces);
        prop_assert_eq!(pieces, [line("{\"after\":1}")]);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert_eq!(read(&bytes, &[13]), all(&bytes));
    }
}
