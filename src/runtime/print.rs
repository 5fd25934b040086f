//! Standard output and standard error outside of the screen.
//!
//! All output goes through [`Printer`], which sanitises it: names, titles, messages and paths may be from agents,
//! imported files and folders, and standard output may be a terminal even if it is meant for a file.

use std::io::{self, Write};

use crate::ui::text::sanitize;

/// A destination for output.
pub struct Printer<'a> {
    out: Box<dyn Write + 'a>,
}

impl<'a> Printer<'a> {
    pub fn new(out: impl Write + 'a) -> Self {
        Self { out: Box::new(out) }
    }

    pub fn stdout() -> Printer<'static> {
        Printer::new(io::stdout())
    }

    /// Standard error.
    pub fn stderr() -> Printer<'static> {
        Printer::new(io::stderr())
    }

    pub fn by_ref(&mut self) -> Printer<'_> {
        Printer::new(&mut self.out)
    }

    pub fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(sanitize(text).as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::escape;

    fn printed(text: &str) -> String {
        let mut out = Vec::new();
        Printer::new(&mut out).print(text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn printed_text_cannot_control_the_terminal() {
        let text = "a\u{1b}]52;c;UFdORUQ=\u{7}\u{9d}0;own\u{9c}\u{202e}b\u{7f}\r\nc";
        assert_eq!(printed(text), "a\u{fffd}0;own\u{fffd}b\u{2421}\nc");
    }

    #[test]
    fn plain_characters_are_printed_unchanged() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| escape::is_plain(*c)) {
            let text = format!("a{c}é{c}");
            assert_eq!(sanitize(&text), text, "{:x}", u32::from(c));
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        if let Ok(full) = full {
            assert!(Printer::new(full).print("x").is_err());
        }
    }

    proptest! {
        #[test]
        fn escaped_json_is_printed_unchanged(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            let escaped = escape::json(&json);
            prop_assert_eq!(printed(&escaped), escaped.as_ref());
        }
    }
}
