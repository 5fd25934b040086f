//! The modes that a program sets in its terminal, and the division of its output between the two screens.
//!
//! Full-screen programs draw on the alternate screen, and what they have drawn disappears when they end. It is separated
//! here, so that the output of a command is what remains in a terminal.

/// Maximum length of a sequence that sets modes, in bytes.
const SEQUENCE_MAX: usize = 64;

/// The mouse events that a program has requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MouseReports {
    #[default]
    None,
    Buttons,
    /// Also motion while a button is pressed.
    Drags,
}

/// The modes of a terminal. Sequences may be split between reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a program sets them independently")]
pub struct TerminalModes {
    pub is_alternate: bool,
    /// Whether the cursor keys send the sequences of applications.
    pub is_application_cursor: bool,
    /// Whether the program asks for marks around pasted text.
    pub brackets_paste: bool,
    pub mouse: MouseReports,
    /// Whether mouse events are reported as numbers, without a limit for the position.
    pub has_sgr_mouse: bool,
    held: Vec<u8>,
}

/// A part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenPart<'a> {
    Main(&'a [u8]),
    /// A program takes the alternate screen, which is cleared.
    Entered,
    Alternate(&'a [u8]),
}

impl TerminalModes {
    /// Reads output, and passes on its parts. Sequences that switch the screen are removed, and an incomplete sequence is
    /// held back until the next call.
    pub fn read(&mut self, bytes: &[u8], mut out: impl FnMut(ScreenPart<'_>)) {
        let mut joined = std::mem::take(&mut self.held);
        let mut rest = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        let mut at = 0;
        while let Some(start) =
            memchr::memchr(0x1b, rest.get(at..).unwrap_or_default()).map(|found| at + found)
        {
            let (before, sequence) = rest.split_at(start);
            match Sequence::of(sequence) {
                Sequence::Open => {
                    self.pass(before, &mut out);
                    self.held = sequence.to_vec();
                    return;
                }
                Sequence::Other => at = start + 1,
                Sequence::Modes { modes, is_set, after } => {
                    let is_switch = modes.split(|byte| *byte == b';').any(is_screen);
                    if is_switch {
                        self.pass(before, &mut out);
                        (rest, at) = (after, 0);
                    } else {
                        at = rest.len() - after.len();
                    }
                    for mode in modes.split(|byte| *byte == b';') {
                        self.set(mode, is_set);
                    }
                    if is_switch && is_set {
                        out(ScreenPart::Entered);
                    }
                }
            }
        }
        self.pass(rest, &mut out);
    }

    fn pass(&self, bytes: &[u8], out: &mut impl FnMut(ScreenPart<'_>)) {
        if !bytes.is_empty() {
            out(if self.is_alternate { ScreenPart::Alternate(bytes) } else { ScreenPart::Main(bytes) });
        }
    }

    /// Source: xterm, ctlseqs, DEC private modes.
    fn set(&mut self, mode: &[u8], is_set: bool) {
        let mouse = |reports| if is_set { reports } else { MouseReports::None };
        match mode {
            _ if is_screen(mode) => self.is_alternate = is_set,
            b"1" => self.is_application_cursor = is_set,
            b"2004" => self.brackets_paste = is_set,
            b"1000" => self.mouse = mouse(MouseReports::Buttons),
            b"1002" | b"1003" => self.mouse = mouse(MouseReports::Drags),
            b"1006" => self.has_sgr_mouse = is_set,
            _ => {}
        }
    }
}

fn is_screen(mode: &[u8]) -> bool {
    matches!(mode, b"47" | b"1047" | b"1049")
}

/// An escape sequence at the start of some bytes.
enum Sequence<'a> {
    Modes {
        modes: &'a [u8],
        is_set: bool,
        after: &'a [u8],
    },
    /// The bytes may be the start of one that does.
    Open,
    Other,
}

impl<'a> Sequence<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let Some(rest) = bytes.strip_prefix(b"\x1b[?") else {
            return if b"\x1b[?".starts_with(bytes) { Self::Open } else { Self::Other };
        };
        let end = rest.iter().take(SEQUENCE_MAX).position(|byte| !byte.is_ascii_digit() && *byte != b';');
        match end.and_then(|end| rest.split_at_checked(end)) {
            Some((modes, [last @ (b'h' | b'l'), after @ ..])) => {
                Self::Modes { modes, is_set: *last == b'h', after }
            }
            None if rest.len() < SEQUENCE_MAX => Self::Open,
            _ => Self::Other,
        }
    }
}

/// Number of bytes of an incomplete character at the end, which vt100 would lose if the rest followed in another call.
pub fn open_character(bytes: &[u8]) -> usize {
    let Some(position) = bytes.iter().rev().take(3).position(|byte| byte & 0xc0 != 0x80) else { return 0 };
    let length = match bytes.get(bytes.len() - 1 - position) {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    if length > position + 1 { position + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The output of the main screen, that of the last full-screen program, and the modes.
    fn read(pieces: &[&[u8]]) -> (String, String, TerminalModes) {
        let (mut main, mut alternate) = (Vec::new(), Vec::new());
        let mut modes = TerminalModes::default();
        for piece in pieces {
            modes.read(piece, |part| match part {
                ScreenPart::Main(bytes) => main.extend_from_slice(bytes),
                ScreenPart::Entered => alternate.clear(),
                ScreenPart::Alternate(bytes) => alternate.extend_from_slice(bytes),
            });
        }
        (String::from_utf8(main).unwrap(), String::from_utf8(alternate).unwrap(), modes)
    }

    #[test]
    fn the_screens_are_separated() {
        let vim = b"$ vim\r\n\x1b[?1049h\x1b[?1h\x1b[2Jtext\x1b[?2004h\x1b[?1000;1006h";
        let (main, alternate, modes) = read(&[vim]);
        assert_eq!(
            (main.as_str(), alternate.as_str()),
            ("$ vim\r\n", "\x1b[?1h\x1b[2Jtext\x1b[?2004h\x1b[?1000;1006h")
        );
        assert!(
            modes.is_alternate && modes.is_application_cursor && modes.brackets_paste && modes.has_sgr_mouse
        );
        assert_eq!(modes.mouse, MouseReports::Buttons);
        let (main, alternate, modes) =
            read(&[vim, b"\x1b[?1l\x1b[?1006;1000;1049ldone", b"\x1b[?47hless\x1b[?47l"]);
        assert_eq!((main.as_str(), alternate.as_str()), ("$ vim\r\ndone", "less"));
        assert!(!modes.is_alternate && !modes.is_application_cursor && !modes.has_sgr_mouse);
        assert_eq!(modes.mouse, MouseReports::None);
    }

    #[test]
    fn other_sequences_stay() {
        for text in
            ["\x1b[31mred\x1b[m", "\x1b]0;title\x07", "\x1b[?25l", "\x1b[?1049$p", "\x1b[1049h", "\x1b\x1b[A"]
        {
            assert_eq!(read(&[text.as_bytes()]).0, text);
        }
        let endless = format!("\x1b[?{}h.", "1;".repeat(200));
        assert_eq!(read(&[endless.as_bytes()]).0, endless);
        assert_eq!(read(&[b"a\x1b[?10"]).0, "a", "it may be continued");
        assert_eq!(read(&[b"a\x1b[?10", b"x"]).0, "a\x1b[?10x");
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_reads(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "text", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?1h", "\x1b[?25;1049h", "\x1b[?", "\x1b", "[", "1", "h", "\r\n",
            ]), 0..40),
            cut in 0_usize..99,
        ) {
            let whole = pieces.concat();
            let (first, rest) = whole.as_bytes().split_at(cut.min(whole.len()));
            prop_assert_eq!(read(&[whole.as_bytes()]), read(&[first, rest]));
        }
    }
}
