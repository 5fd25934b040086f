//! Tests of the queues between a transport and the peer.

use futures_util::FutureExt as _;

use super::super::*;
use crate::acp::frame::sort_whole;

#[test]
fn a_queue_is_full_by_bytes_or_by_items_and_overflows() {
    let (link, Ends { mut frames, .. }) = Link::new();
    let outgoing = link.outgoing;
    let large = Bytes::from(vec![b' '; 8 << 20]);
    outgoing.send(large.clone());
    assert!(!outgoing.is_full());
    outgoing.send(large.clone());
    assert!(outgoing.is_full() && outgoing.drained().now_or_never().is_none());
    let mut taken = Vec::new();
    assert_eq!(frames.take(&mut taken).now_or_never(), Some(1), "one large frame per write");
    assert!(outgoing.is_full(), "the frame is not written yet");
    frames.written(&taken[0]);
    assert!(!outgoing.is_full() && outgoing.drained().now_or_never().is_some());
    for _ in 0..MAX.bytes / large.len() - 1 {
        outgoing.send(large.clone());
    }
    assert!(!outgoing.has_run_over());
    outgoing.send(large);
    assert!(outgoing.has_run_over());
    drop(frames);
    assert!(!outgoing.is_full(), "the receiver is closed");

    let (link, _ends) = Link::new();
    let outgoing = link.outgoing;
    for _ in 0..MAX.items {
        outgoing.send(Bytes::from_static(b"{}"));
    }
    assert!(outgoing.is_full() && !outgoing.has_run_over());
    outgoing.send(Bytes::from_static(b"{}"));
    assert!(outgoing.has_run_over());
}

#[test]
fn the_queue_ends_after_the_last_frame() {
    let (link, Ends { mut frames, .. }) = Link::new();
    let outgoing = link.outgoing;
    let mut taken = Vec::new();
    assert_eq!(frames.take(&mut taken).now_or_never(), None);
    outgoing.send(Bytes::from_static(b"{}"));
    drop(outgoing);
    assert_eq!(frames.take(&mut taken).now_or_never(), Some(1));
    assert_eq!(frames.take(&mut taken).now_or_never(), Some(0));
}

fn message(text: &str) -> In {
    let mut pieces = Vec::new();
    sort_whole(&bytes::Bytes::copy_from_slice(text.as_bytes()), &mut pieces);
    In::Pieces(pieces)
}

fn count(message: Option<In>) -> usize {
    match message {
        Some(In::Pieces(pieces)) => pieces.len(),
        other => panic!("no pieces: {other:?}"),
    }
}

#[test]
fn messages_that_wait_are_taken_together_and_in_order() {
    let (link, Ends { sink, .. }) = Link::new();
    let mut incoming = link.incoming;
    for number in 0..300 {
        sink.send(message(&format!("{{\"id\":{number}}}"))).now_or_never().unwrap().unwrap();
    }
    sink.send(In::Note("slow".to_owned())).now_or_never().unwrap().unwrap();
    sink.send(message("{}")).now_or_never().unwrap().unwrap();
    sink.send(In::Closed(CloseReason::Stopped)).now_or_never().unwrap().unwrap();
    drop(sink);
    assert_eq!(count(incoming.recv().now_or_never().unwrap()), 300);
    assert!(matches!(incoming.recv().now_or_never().unwrap(), Some(In::Note(_))));
    assert_eq!(count(incoming.recv().now_or_never().unwrap()), 1);
    assert!(matches!(incoming.recv().now_or_never().unwrap(), Some(In::Closed(CloseReason::Stopped))));
    assert!(incoming.recv().now_or_never().unwrap().is_none());
}

#[test]
fn senders_wait_for_room_and_notice_the_end() {
    let (link, Ends { sink, .. }) = Link::new();
    let mut incoming = link.incoming;
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(200 << 10));
    for _ in 0..2 {
        sink.send(message(&long)).now_or_never().unwrap().unwrap();
    }
    assert!(sink.send(message(&long)).now_or_never().is_none());
    assert_eq!(count(incoming.recv().now_or_never().unwrap()), 2);
    assert!(sink.send(message(&"z".repeat(9 << 20))).now_or_never().is_some(), "a longer one has room alone");
    assert!(sink.send(message("{}")).now_or_never().is_none());
    drop(incoming);
    assert!(sink.send(message("{}")).now_or_never().unwrap().is_err());
}
