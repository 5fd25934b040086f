//! A bounded text that drops its beginning at a character boundary.
//!
//! Source: ACP v1 terminals, `outputByteLimit`: the client cuts from the beginning, at a character boundary, even
//! if less than the limit remains.

/// The end of a text.
#[derive(Debug)]
pub(super) struct Ring {
    text: String,
    limit_bytes: usize,
    is_cut: bool,
}

impl Ring {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { text: String::new(), limit_bytes, is_cut: false }
    }

    /// Appends text. The limit may be exceeded temporarily, so that truncation has amortised constant cost.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > self.limit_bytes {
            self.is_cut = true;
        }
        if self.text.len() > self.limit_bytes.saturating_add(self.limit_bytes / 2).saturating_add(4096) {
            let cut = cut_at(&self.text, self.limit_bytes);
            self.text.drain(..cut);
        }
    }

    /// The text followed by `rest`, truncated to the limit, and whether anything was ever truncated.
    pub(super) fn with(&mut self, rest: &str) -> (String, bool) {
        let mut all = String::with_capacity(self.text.len() + rest.len());
        all.push_str(&self.text);
        all.push_str(rest);
        let cut = cut_at(&all, self.limit_bytes);
        all.drain(..cut);
        self.is_cut |= cut > 0;
        (all, self.is_cut)
    }
}

/// The index of the first character boundary within the last `limit_bytes`.
fn cut_at(text: &str, limit_bytes: usize) -> usize {
    let mut cut = text.len().saturating_sub(limit_bytes);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    cut
}
