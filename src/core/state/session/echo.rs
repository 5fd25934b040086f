//! The agent's echo of the user's prompt.

/// The sent prompt that the agent may send back as a message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Echo(Option<Expected>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    sent: String,
    /// Number of its bytes that the agent has sent back.
    matched: usize,
}

impl Echo {
    /// The agent may send this text back.
    pub(in crate::core) fn expect(&mut self, sent: String) {
        self.0 = Some(Expected { sent, matched: 0 });
    }

    pub(in crate::core) fn stop(&mut self) {
        self.0 = None;
    }

    /// Removes the echo from a user message; `None`: nothing remains. Text that continues exactly the sent prompt is
    /// dropped; other text is returned with what was held back.
    pub(in crate::core) fn strip(&mut self, text: String) -> Option<String> {
        let Some(Expected { sent, matched }) = &mut self.0 else {
            return Some(text);
        };
        let rest = sent.get(*matched..).unwrap_or_default();
        if rest.starts_with(text.as_str()) {
            *matched += text.len();
            return None;
        }
        // An echo may end with additional white space.
        if let Some(tail) = text.strip_prefix(rest)
            && tail.trim().is_empty()
        {
            *matched = sent.len();
            return None;
        }
        let is_complete = rest.is_empty();
        let held_back = sent.get(..*matched).unwrap_or_default();
        let shown = if is_complete { text } else { format!("{held_back}{text}") };
        self.0 = None;
        Some(shown)
    }
}
