//! Event streams: the events do not depend on the reads, and each becomes messages or noise.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parlor::acp::transport::remote::envelope;
use parlor::acp::transport::remote::sse::{SseItem, SseReader};

const LIMIT: usize = 512;

fn read(bytes: &[u8], size: usize) -> Vec<SseItem> {
    let mut reader = SseReader::new(LIMIT);
    let mut items = Vec::new();
    for part in bytes.chunks(size) {
        reader.feed(&part.to_vec().into(), &mut items);
    }
    items
}

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.first().map_or(1, |byte| usize::from(*byte) + 1);
    let items = read(bytes, size);
    assert_eq!(items, read(bytes, bytes.len().max(1)));
    let mut pieces = Vec::new();
    for item in items {
        if let SseItem::Event { data, .. } = &item {
            assert!(data.len() <= LIMIT);
            if let Ok(text) = std::str::from_utf8(data) {
                let _ = envelope::read(text);
            }
        }
        envelope::sort_event(item, &mut pieces);
    }
});
