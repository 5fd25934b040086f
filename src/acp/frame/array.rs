//! Splits an array of messages into frames, as slices of the array's bytes.
//!
//! ACP v1 on stdio has no batches, but some agents send them.
//!
//! Invariant: the result has all items or none, so that a failure can be reported as a whole.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::repair::repair;
use super::{Form, Frame, InboundFrame};

/// Maximum number of items; a larger array is rejected, because each item costs some hundred bytes of memory.
const MAX_ITEMS: usize = 100_000;

/// Appends the items of an array to `out`; `false`: not an array, or empty, and `out` is unchanged.
pub fn split(bytes: &Bytes, out: &mut Vec<InboundFrame>) -> bool {
    let whole = Frame::new(bytes.clone(), Form::Array);
    let count_before = out.len();
    let whole = match repair(whole.text()) {
        Cow::Borrowed(_) => whole,
        Cow::Owned(text) => Frame { bytes: text.into(), ..whole },
    };
    let mut reader = serde_json::Deserializer::from_str(whole.text());
    let items = Items { whole: &whole, out };
    let is_split = reader.deserialize_seq(items).and_then(|()| reader.end()).is_ok();
    if !is_split {
        out.truncate(count_before);
    }
    out.len() > count_before
}

struct Items<'a> {
    whole: &'a Frame,
    out: &'a mut Vec<InboundFrame>,
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut count = 0;
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            count += 1;
            if count > MAX_ITEMS {
                return Err(A::Error::custom("too many items"));
            }
            let bytes = self.whole.bytes.slice_ref(item.get().as_bytes());
            self.out.push(InboundFrame::Frame(Frame {
                bytes,
                is_lossy: self.whole.is_lossy,
                form: Form::Array,
                stream: None,
            }));
        }
        Ok(())
    }
}
