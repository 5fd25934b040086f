//! The plain output for the agent, without processes.

use super::super::plain::Plain;
use super::super::ring::Ring;

fn plain(bytes: &[u8]) -> String {
    let mut out = Ring::new(1 << 20);
    let mut plain = Plain::default();
    plain.feed(bytes, &mut out);
    out.with(&plain.unfinished()).0
}

#[test]
fn sequences_are_removed_and_overwritten_text_is_resolved() {
    let table: &[(&str, &str)] = &[
        ("a\r\nb\n", "a\nb\n"),
        ("a\r\r\nb", "a\nb"),
        ("\x1b[31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m", "red x"),
        ("10%\r20%\r100%\ndone", "100%\ndone"),
        ("downloading\r\x1b[Kok\n", "ok\n"),
        ("longer text\rshort\n", "shortr text\n"),
        ("abc\x08\x08X\n", "aXc\n"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\c", "ablinkc"),
        ("\x1b(Ba\x1b=b\x1b>c\x1b7d\x1b8", "abcd"),
        ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        ("\x1b[?25lhid\x1b[?25h\x1b[?2004h", "hid"),
        ("a\x07\x00b\tc", "ab\tc"),
        ("one\x1b[2;1Htwo", "one\ntwo"),
        ("bar\n\x1b[1A\x1b[2Kbar2\n", "bar\nbar2\n"),
        ("ab\x1b[5Gx", "ab  x"),
        ("abcdef\x1b[3D\x1b[2Px", "abcx"),
        ("abc\x1b[1K\r\n", "   \n"),
        ("cut \x1b[3", "cut "),
        ("cancelled \x1b]0;t\x18x", "cancelled x"),
        ("\u{9b}1mC1", "C1"),
        ("⠋ wait\r✓ done\n", "✓ done\n"),
    ];
    for (bytes, expected) in table {
        assert_eq!(plain(bytes.as_bytes()), *expected, "{bytes:?}");
    }
}

#[test]
fn an_unterminated_title_is_bounded() {
    let text = format!("\x1b]0;{}tail\n", "x".repeat(5000));
    assert!(plain(text.as_bytes()).ends_with("tail\n"));
}

#[test]
fn the_text_does_not_depend_on_the_reads() {
    let text =
        "é🦀\x1b[1;31mrot\x1b[0m\r\n10%\r漢字\x1b]0;tïtle\x07 \u{1f468}\u{200d}\u{1f469} end\n".repeat(3);
    let whole = plain(text.as_bytes());
    for size in 1..9 {
        let mut out = Ring::new(1 << 20);
        let mut pieces = Plain::default();
        for piece in text.as_bytes().chunks(size) {
            pieces.feed(piece, &mut out);
        }
        assert_eq!(out.with(&pieces.unfinished()).0, whole, "{size}");
    }
    assert_eq!(plain(b"a\xffb\xc3\xc3\xa9"), "a\u{fffd}b\u{fffd}é");
    assert_eq!(plain(b"open \xf0\x9f"), "open \u{fffd}");
}

#[test]
fn acp_v1_the_limit_truncates_the_start_at_a_character() {
    let text = "aé漢🦀".repeat(50);
    for limit in 0..40 {
        let mut ring = Ring::new(limit);
        for c in text.chars() {
            ring.push(c.encode_utf8(&mut [0; 4]));
        }
        let (saved, is_cut) = ring.with("");
        assert!(is_cut && saved.len() <= limit && text.ends_with(&saved), "{limit} {saved}");
        assert!(saved.len() + 4 > limit, "{limit} {saved}");
    }
    let mut ring = Ring::new(4);
    ring.push("abcd");
    assert_eq!(ring.with(""), ("abcd".to_owned(), false));
    assert_eq!(ring.with("é"), ("cdé".to_owned(), true));
    assert_eq!(ring.with(""), ("abcd".to_owned(), true));
}

#[test]
fn an_endless_line_is_bounded() {
    let mut out = Ring::new(100);
    let mut plain = Plain::default();
    for _ in 0..1000 {
        plain.feed(&[b'x'; 1000], &mut out);
    }
    assert!(plain.unfinished().len() <= 16 << 10);
    let (text, is_cut) = out.with(&plain.unfinished());
    assert!(is_cut && text.len() == 100);
}
