//! Responds to the queries that a program sends to its terminal.
//!
//! Programs that ask for the position of the cursor or the kind of the terminal wait for the response, some of them for
//! seconds. Responses contain numbers only, so that output cannot type text into the command that reads them.

use std::num::NonZeroU16;

use vt100::{Callbacks, Parser, Screen};

use crate::model::{TerminalSize, open_character};

/// Maximum size of the responses to one piece of output, in bytes; the rest is dropped.
const RESPONSES_MAX: usize = 4096;

/// Follows the output of a command, because the position of the cursor depends on all of it.
pub(super) struct Responder {
    parser: Parser<Responses>,
    held: Vec<u8>,
}

#[derive(Default)]
struct Responses(Vec<u8>);

impl Responder {
    /// Starts with an empty screen; `None` for an empty size.
    pub(super) fn new(size: TerminalSize) -> Option<Self> {
        let (rows, cols) = (NonZeroU16::new(size.rows)?, NonZeroU16::new(size.cols)?);
        let parser = Parser::new_with_callbacks(rows, cols, 0, Responses::default());
        Some(Self { parser, held: Vec::new() })
    }

    pub(super) fn resize(&mut self, size: TerminalSize) {
        if let (Some(rows), Some(cols)) = (NonZeroU16::new(size.rows), NonZeroU16::new(size.cols)) {
            self.parser.set_size(rows, cols);
        }
    }

    /// Reads output, and returns the responses to its queries.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut joined = std::mem::take(&mut self.held);
        let bytes = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        let (whole, open) = bytes.split_at(bytes.len() - open_character(bytes));
        self.parser.process(whole);
        self.held = open.to_vec();
        std::mem::take(&mut self.parser.callbacks_mut().0)
    }
}

impl Callbacks for Responses {
    /// Sources: ECMA-48, DSR and CPR; xterm, ctlseqs, DA, DECRQM and XTWINOPS.
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let param = params.first().and_then(|param| param.first()).copied().unwrap_or_default();
        let response = match (first, second, last, param) {
            (None, None, 'n', 5) => "\x1b[0n".to_owned(),
            (None, None, 'n', 6) => {
                let (row, col) = screen.cursor_position();
                // After a full line, the cursor is in its last column.
                let col = col.min(screen.size().1.get() - 1);
                format!("\x1b[{};{}R", row + 1, col + 1)
            }
            // A VT102, and a terminal without a version: programs then use no extension without asking.
            (None, None, 'c', 0) => "\x1b[?6c".to_owned(),
            (Some(b'>'), None, 'c', 0) => "\x1b[>0;0;0c".to_owned(),
            (None, None, 't', 18) => {
                let (rows, cols) = screen.size();
                format!("\x1b[8;{rows};{cols}t")
            }
            // Not recognized.
            (Some(b'?'), Some(b'$'), 'p', mode) => format!("\x1b[?{mode};0$y"),
            _ => return,
        };
        if self.0.len() + response.len() <= RESPONSES_MAX {
            self.0.extend_from_slice(response.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn responder() -> Responder {
        Responder::new(TerminalSize { rows: 5, cols: 10 }).unwrap()
    }

    fn responses(output: &str) -> String {
        String::from_utf8(responder().read(output.as_bytes())).unwrap()
    }

    #[test]
    fn queries_are_answered() {
        for (query, response) in [
            ("\x1b[5n", "\x1b[0n"),
            ("\x1b[6n", "\x1b[1;1R"),
            ("\x1b[c\x1b[0c", "\x1b[?6c\x1b[?6c"),
            ("\x1b[>c", "\x1b[>0;0;0c"),
            ("\x1b[18t", "\x1b[8;5;10t"),
            ("\x1b[?2026$p", "\x1b[?2026;0$y"),
            // The responses to these would contain text.
            ("\x1b[21t\x1bP$qm\x1b\\\x1b]2;title\x1b\\\x1b]52;c;?\x1b\\", ""),
            ("words, \x1b[31mcolours\x1b[m\r\n", ""),
        ] {
            assert_eq!(responses(query), response, "{query:?}");
        }
    }

    #[test]
    fn the_position_is_that_of_the_query() {
        for (output, position) in [
            ("ab\r\ncd\x1b[6nef\r\n", "2;3"),
            ("日本\x1b[6n", "1;5"),
            // The last column of a full line, and the last row of a full screen.
            ("0123456789\x1b[6n", "1;10"),
            ("1\n2\n3\n4\n5\n6\n\r\x1b[6n", "5;1"),
            ("ab\x1b[?1049h\x1b[3;4H\x1b[6n", "3;4"),
            ("ab\x1b[?1049h\x1b[3;4H\x1b[?1049l\x1b[6n", "1;3"),
        ] {
            assert_eq!(responses(output), format!("\x1b[{position}R"), "{output:?}");
        }
    }

    #[test]
    fn queries_and_characters_may_be_split() {
        let output = "日本\x1b[6n".as_bytes();
        for cut in 0..output.len() {
            let mut responder = responder();
            let mut responses = responder.read(&output[..cut]);
            responses.extend(responder.read(&output[cut..]));
            assert_eq!(responses, b"\x1b[1;5R", "{cut}");
        }
    }

    #[test]
    fn the_size_is_that_of_the_terminal() {
        let mut responder = responder();
        responder.resize(TerminalSize { rows: 3, cols: 20 });
        assert_eq!(responder.read(b"\x1b[99;99H\x1b[6n"), b"\x1b[3;20R");
        responder.resize(TerminalSize { rows: 0, cols: 0 });
        assert_eq!(responder.read(b"\x1b[18t"), b"\x1b[8;3;20t");
    }

    #[test]
    fn responses_are_bounded() {
        let responses = responder().read("\x1b[6n".repeat(100_000).as_bytes());
        assert!(responses.len() <= RESPONSES_MAX && responses.ends_with(b"R"));
    }

    proptest! {
        #[test]
        fn no_output_types_text_or_ends_a_line(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "\x1b[", "\x1b]", "\x1bP", "?", ">", "$", ";", "5", "6", "65535", "n", "c", "p", "t", "21", "8;",
                        "q", "\x1b\\", "\x07", "rm -rf", "日", "\r\n", "\x1b[?1049h", "\x1b[999;999H",
                    ])
                    .prop_map(|piece| piece.as_bytes().to_vec()),
                    prop::collection::vec(any::<u8>(), 0..8),
                ],
                0..60,
            ),
            (rows, cols) in (0_u16..5, 0_u16..5),
        ) {
            let mut responder = responder();
            for piece in pieces {
                for byte in responder.read(&piece) {
                    prop_assert!(b"\x1b[?>$;0123456789Rncty".contains(&byte), "{byte}");
                }
                responder.resize(TerminalSize { rows, cols });
            }
        }
    }
}
