//! Command output as plain text for the search.
//!
//! Escape sequences are removed; of an overwritten line, the last text is retained. Cursor movement is not emulated,
//! unlike in `ui::terminal`.

pub(super) fn plain(output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let mut out = String::with_capacity(output.len());
    let mut line_start = 0;
    let mut letters = output.chars().peekable();
    while let Some(ch) = letters.next() {
        match ch {
            '\n' => {
                out.push('\n');
                line_start = out.len();
            }
            '\r' if letters.peek().is_some_and(|next| !matches!(next, '\n' | '\r')) => {
                out.truncate(line_start);
            }
            '\u{8}' => {
                if out.len() > line_start {
                    out.pop();
                }
            }
            '\u{1b}' => skip_escape(&mut letters),
            '\u{9b}' => skip_control(&mut letters),
            '\t' => out.push('\t'),
            ch if ch.is_control() => {}
            ch => out.push(ch),
        }
    }
    out
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(letters: &mut Letters<'_>) {
    match letters.next() {
        Some('[') => skip_control(letters),
        // A string ends with BEL or `ESC \`.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(ch) = letters.next() {
                if ch == '\u{7}' || ch == '\u{9c}' {
                    return;
                }
                if ch == '\u{1b}' {
                    letters.next_if_eq(&'\\');
                    return;
                }
            }
        }
        // The designator of a character set follows.
        Some('(' | ')' | '*' | '+' | '#' | ' ') => {
            letters.next();
        }
        _ => {}
    }
}

fn skip_control(letters: &mut Letters<'_>) {
    while letters.next_if(|ch| matches!(ch, '\u{20}'..='\u{3f}')).is_some() {}
    letters.next_if(|ch| matches!(ch, '\u{40}'..='\u{7e}'));
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn escapes_are_removed_and_overwritten_lines_keep_their_last_text() {
        assert_eq!(plain(b"\x1b[1;31merror\x1b[0m: no\r\nnext"), "error: no\nnext");
        assert_eq!(plain(b"10%\r20%\r100%\ndone"), "100%\ndone");
        assert_eq!(plain(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07!"), "link!");
        assert_eq!(plain(b"a\x1b(Bb\x07c\x08d\xff"), "abd\u{fffd}");
        assert_eq!(plain(b"a\x1b["), "a");
    }
}
