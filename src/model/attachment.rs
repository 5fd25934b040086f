//! Attachments of prompts: pasted texts, images and transcripts of sessions, which the text of a prompt contains as
//! labels.
//!
//! A label is `[Pasted text #ID: 120 lines]`, `[Image #ID: 800×600, 120 KiB]` or `[Session #ID: TITLE, 12 KiB]`. The id
//! is the start of the SHA-256 hash of the content, which `host::attachments` saves. The content is read when the prompt
//! is sent.
//! Invariants: only the user's own pastes, drops and mentions create attachments; a label contains no mention.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use ring::digest::{SHA256, digest};

use crate::escape;

/// Number of hexadecimal digits of an id.
const ID_CHARS: usize = 10;

/// Maximum length of the size in a label.
const SIZE_MAX_BYTES: usize = 40;

/// Maximum number of characters of a session's name in a label, and of bytes of that name with the size.
const NAME_MAX_CHARS: usize = 40;
const NAMED_MAX_BYTES: usize = 240;

/// The text area counts up to 65,535 rows, and lines may wrap.
const SHOWN_MAX_LINES: usize = 10_000;
/// A pasted text above this size becomes an attachment, whatever its number of lines.
const INLINE_MAX_CHARS: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind {
    Text,
    Image,
    Session,
}

impl AttachmentKind {
    const ALL: [Self; 3] = [Self::Text, Self::Image, Self::Session];

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "Pasted text",
            Self::Image => "Image",
            Self::Session => "Session",
        }
    }

    pub fn is_text(self) -> bool {
        self != Self::Image
    }
}

/// The label of an attachment in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentLabel {
    /// Its bytes in the text.
    pub range: Range<usize>,
    pub kind: AttachmentKind,
    /// The start of the hash of its content.
    pub id: String,
    /// The name of a session; empty for others.
    pub name: String,
}

/// The labels of attachments in a text, in order. Whether their content exists is not checked.
pub fn attachment_labels(text: &str) -> Vec<AttachmentLabel> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find('[')).map(|offset| at + offset) {
        at = match label_at(text, start) {
            Some(label) => {
                let end = label.range.end;
                found.push(label);
                end
            }
            None => start + 1,
        };
    }
    found
}

fn label_at(text: &str, start: usize) -> Option<AttachmentLabel> {
    let inside = text.get(start + 1..)?;
    let (kind, rest) = AttachmentKind::ALL
        .into_iter()
        .find_map(|kind| Some((kind, inside.strip_prefix(kind.name())?.strip_prefix(" #")?)))?;
    let id = rest.get(..ID_CHARS).filter(|id| is_hex(id))?;
    let size = rest.get(ID_CHARS..)?.strip_prefix(": ")?;
    let is_size = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, ' ' | ',' | '×');
    let (is_allowed, max): (&dyn Fn(char) -> bool, _) = match kind {
        AttachmentKind::Text | AttachmentKind::Image => (&is_size, SIZE_MAX_BYTES),
        AttachmentKind::Session => (&is_name_char, NAMED_MAX_BYTES),
    };
    let bytes = size.find(|ch| !is_allowed(ch)).filter(|bytes| (1..=max).contains(bytes))?;
    let name = match kind {
        AttachmentKind::Text | AttachmentKind::Image => "",
        AttachmentKind::Session => {
            size.get(..bytes)?.rsplit_once(", ").filter(|(_, it)| it.chars().all(is_size))?.0
        }
    };
    let end = text.len() - size.len() + bytes;
    (text.as_bytes().get(end) == Some(&b']')).then(|| AttachmentLabel {
        range: start..end + 1,
        kind,
        id: id.to_owned(),
        name: name.to_owned(),
    })
}

/// Whether a label can contain a character of a name: it neither ends the label nor begins a mention.
fn is_name_char(ch: char) -> bool {
    escape::is_plain(ch) && !matches!(ch, '[' | ']' | '@' | '\n' | '\t')
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The byte ranges of a line that are edited as one unit: the labels of attachments.
pub fn chips(line: &str) -> Vec<Range<usize>> {
    attachment_labels(line).into_iter().map(|label| label.range).collect()
}

/// Content that a prompt refers to by a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    hash: String,
    pub content: AttachmentContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachmentContent {
    Text(Arc<str>),
    Image {
        bytes: Arc<[u8]>,
        /// Width and height in pixels.
        size: (u32, u32),
    },
    Session {
        name: String,
        /// Its transcript as Markdown, or the end of it.
        text: Arc<str>,
        size_bytes: usize,
    },
}

impl Attachment {
    pub fn new(content: AttachmentContent) -> Self {
        let hash = content_hash(match &content {
            AttachmentContent::Text(text) | AttachmentContent::Session { text, .. } => text.as_bytes(),
            AttachmentContent::Image { bytes, .. } => bytes,
        });
        Self { hash, content }
    }

    pub fn of_text(text: &str) -> Self {
        Self::new(AttachmentContent::Text(text.into()))
    }

    pub fn of_session(name: &str, transcript: &str) -> Self {
        let (name, size_bytes) = (name.to_owned(), transcript.len());
        Self::new(AttachmentContent::Session { name, text: transcript.into(), size_bytes })
    }

    /// An attachment of a pasted text that has more lines than this or is very long. 0 disables that, except for texts that
    /// the composer cannot show.
    pub fn of_long_text(text: &str, max_lines: usize) -> Option<Self> {
        let lines = text.lines().count();
        let is_long = text.chars().nth(INLINE_MAX_CHARS).is_some() || lines > max_lines;
        ((max_lines > 0 && is_long) || lines > SHOWN_MAX_LINES).then(|| Self::of_text(text))
    }

    /// Whether the composer can show the content in place of its label.
    pub fn fits_composer(&self) -> bool {
        self.bytes().split(|byte| *byte == b'\n').nth(SHOWN_MAX_LINES).is_none()
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            AttachmentContent::Text(text) | AttachmentContent::Session { text, .. } => text.as_bytes(),
            AttachmentContent::Image { bytes, .. } => bytes,
        }
    }

    pub fn kind(&self) -> AttachmentKind {
        match self.content {
            AttachmentContent::Text(_) => AttachmentKind::Text,
            AttachmentContent::Image { .. } => AttachmentKind::Image,
            AttachmentContent::Session { .. } => AttachmentKind::Session,
        }
    }

    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub fn label(&self) -> String {
        let kib = |bytes: usize| bytes.div_ceil(1024);
        let size = match &self.content {
            AttachmentContent::Text(text) => text_size(text),
            AttachmentContent::Session { name, text, size_bytes } => {
                let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
                let name: String = name.chars().filter(|it| is_name_char(*it)).take(NAME_MAX_CHARS).collect();
                let name = name.trim();
                match (kib(text.len()), kib(*size_bytes)) {
                    (size, all) if text.len() >= *size_bytes || size == all => format!("{name}, {size} KiB"),
                    (size, all) => format!("{name}, last {size} of {all} KiB"),
                }
            }
            AttachmentContent::Image { bytes, size: (width, height) } => {
                format!("{width}×{height}, {} KiB", kib(bytes.len()))
            }
        };
        let id = self.hash.get(..ID_CHARS).unwrap_or_default();
        format!("[{} #{id}: {size}]", self.kind().name())
    }
}

/// The size of a text for its label: lines, or characters of a single line.
pub fn text_size(text: &str) -> String {
    match text.lines().count() {
        0 | 1 => format!("{} characters", text.chars().count()),
        lines => format!("{lines} lines"),
    }
}

impl AttachmentLabel {
    /// The label as it is shown: with its number in the text in place of the id. `text` is the label itself.
    pub fn numbered(&self, text: &str, number: usize) -> String {
        text.replacen(&format!("#{}", self.id), &format!("#{number}"), 1)
    }
}

/// A text for display: labels have the number of their place instead of their id.
pub fn numbered_labels(text: &str) -> Cow<'_, str> {
    let labels = attachment_labels(text);
    if labels.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for (index, label) in labels.iter().enumerate() {
        shown.push_str(text.get(at..label.range.start).unwrap_or_default());
        shown.push_str(&label.numbered(text.get(label.range.clone()).unwrap_or_default(), index + 1));
        at = label.range.end;
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(shown)
}

/// The label of a pasted text in a prompt that was sent, without an id.
pub fn pasted_label(text: &str) -> String {
    format!("[{}: {}]", AttachmentKind::Text.name(), text_size(text))
}

/// A text with labels in place of these parts, which are in order.
pub fn with_labels(text: &str, parts: &[Range<usize>], mut label: impl FnMut(&str) -> String) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for range in parts {
        shown.push_str(text.get(at..range.start).unwrap_or_default());
        shown.push_str(&label(text.get(range.clone()).unwrap_or_default()));
        at = range.end;
    }
    shown + text.get(at..).unwrap_or_default()
}

/// The SHA-256 hash of a content in hexadecimal digits.
pub fn content_hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(bytes: usize, size: (u32, u32)) -> Attachment {
        Attachment::new(AttachmentContent::Image { bytes: vec![7; bytes].into(), size })
    }

    #[test]
    fn labels_are_shown_with_their_number() {
        let text = "a [Pasted text #7dd3e5fd25: 2 lines] b [Image #0123456789: 640×480, 12 KiB]";
        assert_eq!(numbered_labels(text), "a [Pasted text #1: 2 lines] b [Image #2: 640×480, 12 KiB]");
        assert!(matches!(numbered_labels("[Pasted text #7: 2 lines]"), Cow::Borrowed(_)));
    }

    #[test]
    fn labels_are_read_back() {
        let text = Attachment::new(AttachmentContent::Text("a\nb".into()));
        assert_eq!(text.label(), "[Pasted text #7e18f73731: 2 lines]");
        let image = image(3000, (640, 480));
        assert!(image.label().ends_with(": 640×480, 3 KiB]"), "{}", image.label());
        let prompt = format!("é{} and {}.", text.label(), image.label());
        let [first, second] = attachment_labels(&prompt).try_into().unwrap();
        assert_eq!((&prompt[first.range.clone()], first.kind), (&*text.label(), AttachmentKind::Text));
        assert_eq!((&prompt[second.range.clone()], second.kind), (&*image.label(), AttachmentKind::Image));
        assert!(text.hash().starts_with(&first.id) && image.hash().starts_with(&second.id));
        assert_eq!(chips(&prompt), [first.range, second.range]);
    }

    #[test]
    fn labels_of_sessions_have_a_name_that_mentions_nothing() {
        let label = |name: &str, size_bytes| {
            let (name, text) = (name.to_owned(), "x".repeat(2000).into());
            Attachment::new(AttachmentContent::Session { name, text, size_bytes }).label()
        };
        assert_eq!(label("Fix it, please", 2000), "[Session #5c0e0ea421: Fix it, please, 2 KiB]");
        assert!(label("Fix", 9000).ends_with(": Fix, last 2 of 9 KiB]"));
        let hostile = "a [x] @/etc/passwd\n\u{1b}[31m \u{202e}b";
        let name = "a x /etc/passwd 31m b";
        for (given, name) in [(hostile, name), ("", ""), ("Fix: a, b", "Fix: a, b")] {
            let label = format!("é{}.", label(given, 2000));
            let [found] = attachment_labels(&label).try_into().unwrap();
            assert_eq!((found.range, found.name.as_str()), (2..label.len() - 1, name), "{label}");
            assert_eq!(crate::model::mentions(&label), [], "{label}");
        }
        let long = label(&"ж".repeat(500), 2000);
        assert_eq!(attachment_labels(&long).len(), 1, "{long}");
    }

    #[test]
    fn other_text_in_brackets_stays_text() {
        let long = format!("[Image #7dd3e5fd25: {}]", "1".repeat(SIZE_MAX_BYTES + 1));
        for text in [
            "[Pasted text]",
            "[Image #7dd3: 1 lines]",
            "[Image #7DD3E5FD25: 1 lines]",
            "[Image #7dd3e5fd25]",
            "[Image #7dd3e5fd25: ]",
            "[Image #7dd3e5fd25: 1×1, 1 KiB",
            "[Image #7dd3e5fd25: a\nb]",
            "[Image #7dd3e5fd25: [x]",
            "[File #7dd3e5fd25: 1 lines]",
            &long,
        ] {
            assert_eq!(attachment_labels(text), [], "{text}");
        }
    }

    #[test]
    fn long_pastes_become_attachments() {
        let lines = |count: usize| "x\n".repeat(count);
        let is_attached = |text: &str, max_lines| Attachment::of_long_text(text, max_lines).is_some();
        assert!(!is_attached(&lines(10), 10) && is_attached(&lines(11), 10));
        assert!(is_attached(&"é".repeat(INLINE_MAX_CHARS + 1), 10));
        assert!(!is_attached(&"é".repeat(INLINE_MAX_CHARS), 10), "characters, not bytes");
        assert!(!is_attached(&lines(10_000), 0) && is_attached(&lines(10_001), 0));
        let one_line = Attachment::of_long_text(&"é".repeat(2500), 10).unwrap();
        assert!(one_line.label().ends_with(": 2500 characters]"), "{}", one_line.label());
    }
}
