use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::*;
use crate::ui::text::{Line, Span};

#[test]
fn escapes_and_control_characters_are_removed() {
    assert_eq!(sanitize("a\u{1b}[31mred\u{1b}[0m b"), "ared b");
    assert_eq!(sanitize("\u{1b}]0;title\u{7}x"), "x");
    assert_eq!(sanitize("\u{1b}]8;;http://e\u{1b}\\link\u{1b}]8;;\u{1b}\\"), "link");
    assert_eq!(sanitize("\u{1b}]52;c;never ended"), "52;c;never ended");
    assert_eq!(sanitize("\u{9b}2Jx"), "x");
    assert_eq!(sanitize("\u{1b}(0x"), "x");
    assert_eq!(sanitize("a\u{7}b\u{0}"), "a\u{2407}b\u{2400}");
    assert_eq!(sanitize("a\r\nb\rc"), "a\nb\nc");
    assert_eq!(sanitize("if \u{202e}admin\u{2066}"), "if admin");
    assert_eq!(sanitize("a\u{200b}b\u{feff}"), "ab");
}

#[test]
fn emoji_and_scripts_are_unchanged() {
    for text in ["👩‍👩‍👧‍👦", "1️⃣ one", "👍🏽", "🏳️‍🌈", "日本語", "नमस्ते", "می‌خواهم", "e\u{301}"]
    {
        assert_eq!(sanitize(text), text);
    }
}

#[test]
fn combining_marks_are_limited() {
    let zalgo = format!("a{}", "\u{300}".repeat(100));
    assert_eq!(sanitize(&zalgo).chars().count(), 1 + MARKS_MAX);
}

#[test]
fn width_matches_the_buffer() {
    for text in ["abc", "日本語", "👩‍👩‍👧‍👦 x", "1️⃣", "👍🏽", "ｶﾞ", "e\u{301}", "🏳️‍🌈", "क्षि"]
    {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 1));
        let (x, _) = buffer.set_stringn(0, 0, text, 40, Style::default());
        assert_eq!(usize::from(x), width(text), "{text}");
    }
}

#[test]
fn truncation_adds_an_ellipsis() {
    assert_eq!(truncate("hello world", 8), "hello w…");
    assert_eq!(truncate("日本語", 4), "日…");
    assert_eq!(truncate("abc", 0), "");
    assert_eq!(truncate_start("hello world", 6), "…world");
    assert_eq!(truncate_path("src/auth/token/store.rs", 16), "…/token/store.rs");
    assert_eq!(truncate_path("src/auth/token.rs", 40), "src/auth/token.rs");
    assert_eq!(truncate_path("averyveryverylongname.rs", 8), "…name.rs");
    assert_eq!(show_path(Path::new("/a/b/c.rs"), Path::new("/a/b"), None), "c.rs");
    assert_eq!(show_path(Path::new("/x/c.rs"), Path::new("/a/b"), None), "/x/c.rs");
    let home = Some(Path::new("/home/ada"));
    assert_eq!(show_path(Path::new("/home/ada/c.rs"), Path::new("/home/ada/b"), home), "~/c.rs");
    assert_eq!(show_path(Path::new("/home/ada/b/c.rs"), Path::new("/home/ada/b"), home), "c.rs");
    assert_eq!(show_path(Path::new("/home/adam/c.rs"), Path::new("/home/ada/b"), home), "/home/adam/c.rs");
}

#[test]
fn tabs_extend_to_the_next_stop() {
    assert_eq!(expand_tabs("a\tb"), "a   b");
    assert_eq!(expand_tabs("日\tb"), "日  b");
}

#[test]
fn wrapped_words_preserve_their_styles() {
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let line = Line::from(vec![Span::raw("one two "), Span::styled("three four", bold)]);
    let lines = wrap_line(&line, 9);
    let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["one two", "three", "four"]);
    assert_eq!(lines[1].spans[0].style, bold);
}

#[test]
fn prefixes_count_for_the_width() {
    let lines = wrap_prefixed(&Line::from("one two three"), 9, &[Span::raw("• ")], &[Span::raw("  ")]);
    let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["• one two", "  three"]);
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|c| *c != ' ').collect()
}

/// Text with difficult characters.
fn hard_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,12}",
        " {1,3}",
        "[日本語テキスト。、]{1,6}",
        Just("👩‍👩‍👧‍👦".to_owned()),
        Just("1️⃣".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("\u{1b}[31m".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{200b}".to_owned()),
        Just("\t".to_owned()),
        any::<char>().prop_map(|c| c.to_string()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

#[test]
fn code_and_output_are_split_at_words() {
    let rows = |text: &'static str, cols| {
        wrap_whole(&Line::from(text), cols).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(rows("seq 10 11 12", 8), ["seq 10 ", "11 12"]);
    assert_eq!(rows("rm -rf  x", 8), ["rm -rf  ", "x"], "each space is preserved");
    assert_eq!(rows("a bcdefghijklm", 8), ["a bcdefg", "hijklm"], "rows are not mostly empty");
    assert_eq!(rows("x abcdefg", 8), ["x ", "abcdefg"], "a word that fits a row is not split");
    assert_eq!(rows("word another", 4), ["word", "anot", "her"]);
    assert_eq!(rows("the till is", 8), ["the till", "is"], "no row begins with the space between words");
    assert_eq!(rows("the till  is", 8), ["the till", "  is"], "several spaces are preserved");
    assert_eq!(rows("        abcdefg", 8), ["        ", "abcdefg"]);
    assert_eq!(rows("    abcdefg h", 8), ["    abcd", "efg h"], "an indent is no row");
    assert_eq!(rows("trailing ", 8), ["trailing", " "]);
    assert_eq!(rows("", 8), [""]);
}

proptest! {
    #[test]
    fn sanitized_text_has_no_control(text in hard_text()) {
        let clean = sanitize(&text).into_owned();
        prop_assert!(clean.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        let hiding = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'];
        prop_assert!(!clean.contains(hiding));
        // Sanitising is idempotent.
        prop_assert_eq!(sanitize(&clean).into_owned(), clean.clone());
    }

    #[test]
    fn wrapping_preserves_text_and_never_exceeds_the_width(text in hard_text(), cols in 2_u16..40, split in 0_usize..30) {
        let text = expand_tabs(&sanitize(&text).replace('\n', " ")).into_owned();
        let at = text.char_indices().map(|(at, _)| at).nth(split).unwrap_or(text.len());
        let (left, right) = text.split_at(at);
        let line = Line::from(vec![Span::raw(left.to_owned()), Span::raw(right.to_owned())]);
        let expected: String = Graphemes::new(&line).visible();
        for lines in [wrap_line(&line, cols), hard_wrap(&line, cols), wrap_whole(&line, cols)] {
            let mut joined = String::new();
            for line in &lines {
                let row: usize = line.spans.iter().map(|span| width(&span.content)).sum();
                prop_assert!(row <= usize::from(cols), "{} > {}", row, cols);
                joined.push_str(&line.to_string());
            }
            prop_assert_eq!(squeeze(&joined), squeeze(&expected));
        }
        prop_assert_eq!(copy_hint::text_of(&hard_wrap(&line, cols)), expected.clone());
        prop_assert_eq!(copy_hint::text_of(&wrap_whole(&line, cols)), expected.clone());
        // Spaces at a wrap are joined with a single space.
        let normalized = |text: &str| text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let prefixed = wrap_prefixed(&line, cols, &[], &[Span::raw("| ")]);
        for rows in [wrap_line(&line, cols), prefixed] {
            prop_assert_eq!(normalized(&copy_hint::text_of(&rows)), normalized(&expected));
        }
    }

    #[test]
    fn truncated_text_fits(text in hard_text(), cols in 0_usize..30) {
        let text = one_line(&text);
        prop_assert!(width(&truncate(&text, cols)) <= cols);
        prop_assert!(width(&truncate_start(&text, cols)) <= cols);
        prop_assert!(width(&truncate_path(&text, cols)) <= cols);
    }
}

#[test]
fn lines_are_drawn_as_by_ratatui() {
    use crate::ui::text::Span;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};
    let area = Rect::new(0, 0, 12, 3);
    for cols in [0, 3, 7, 12, 40] {
        for texts in [
            ["plain text", " and more"],
            ["日本", "abc"],
            ["ab", "日本語日本"],
            ["e\u{301}x", "~"],
            ["▌ – “ü”", "│─"],
        ] {
            let spans = texts.map(|text| Span::styled(text, Style::new().fg(Color::Red)));
            let style = Style::new().bg(Color::Blue);
            let line = Line { style, ..Line::from(spans.to_vec()) };
            let spans: Vec<_> =
                spans.iter().map(|span| ratatui::text::Span::styled(&*span.content, span.style)).collect();
            let theirs_line = ratatui::text::Line::from(spans).style(style);
            let (mut ours, mut theirs) = (crate::ui::Canvas::new(12, 3), Buffer::empty(area));
            ours.put_line(1, 1, &line, cols);
            theirs.set_line(1, 1, &theirs_line, cols);
            assert_eq!(*ours, theirs, "{texts:?} in {cols}");
        }
    }
}

#[test]
fn one_cell_characters_are_separate_graphemes() {
    for ch in ('\0'..='\u{10ffff}').filter(|ch| super::is_one_cell(*ch)) {
        let text = format!("{ch}{ch}a{ch}");
        assert_eq!(text.graphemes(true).count(), 4, "{ch:?}");
        assert!(text.graphemes(true).all(|cluster| cluster.cell_width() == 1), "{ch:?}");
    }
}

#[test]
fn ambiguous_characters_can_be_wide() {
    use super::{put_text, set_wide, truncate, width};
    assert_eq!(width("a→·日"), 5);
    assert!(set_wide(true) && !set_wide(true));
    assert_eq!((width("a→·日"), width("\u{10eeee}")), (7, 1));
    assert_eq!(truncate("a→·日", 4), "a→~");
    let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 6, 1));
    assert_eq!(put_text(&mut buffer, 0, 0, "a→b日", 6, Style::default()), 6);
    let cells: Vec<&str> = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert_eq!(cells, ["a", "→", " ", "b", "日", " "]);
    assert_eq!(
        put_text(&mut buffer, 4, 0, "a→b", 6, Style::default()),
        5,
        "half of a character is not drawn"
    );
    set_wide(false);
}

#[test]
fn counts_are_shortened() {
    let shown: Vec<String> =
        [0, 940, 1000, 1240, 34_900, 200_000, 1_000_000, 1_250_000].map(short_count).into();
    assert_eq!(shown, ["0", "940", "1k", "1.2k", "34k", "200k", "1M", "1.2M"]);
    assert_eq!(
        (counted(1, "prompt", "prompts"), counted(2, "prompt", "prompts")),
        ("1 prompt".into(), "2 prompts".into())
    );
}
