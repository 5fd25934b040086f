//! The frame reader: the frames do not depend on the reads, and the buffer is bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use parlor::acp::frame::{FrameReader, InboundFrame, READ_BYTES};

const LIMIT: usize = 512;

fn read(bytes: &[u8], size: usize) -> Vec<InboundFrame> {
    let mut reader = FrameReader::new(LIMIT);
    let mut pieces = Vec::new();
    for part in bytes.chunks(size) {
        let space = reader.space();
        assert!(space.capacity() <= 3 * READ_BYTES, "{} bytes are buffered", space.capacity());
        space.extend_from_slice(part);
        reader.cut(&mut pieces);
    }
    reader.finish(&mut pieces);
    pieces
}

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.first().map_or(1, |byte| usize::from(*byte) + 1);
    let pieces = read(bytes, size);
    assert_eq!(pieces, read(bytes, bytes.len().max(1)));
    for piece in &pieces {
        if let InboundFrame::Frame(frame) = piece {
            assert!(frame.is_lossy || frame.text().len() <= LIMIT);
        }
    }
});
