//! The cost of any text is linear in its length.

use super::*;

/// Texts of about this size that are expensive for the parser or the renderer.
fn families(bytes: usize) -> Vec<(&'static str, String)> {
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    let half = |piece: &str| piece.repeat(bytes / piece.len() / 2);
    let nested: String = (0..)
        .map(|depth| format!("{}- x\n", "  ".repeat(depth)))
        .scan(0, |sum, line| {
            *sum += line.len();
            (*sum < bytes).then_some(line)
        })
        .collect();
    let ticks: String = (1..)
        .map(|count| "`".repeat(count) + " ")
        .scan(0, |sum, run| {
            *sum += run.len();
            (*sum < bytes).then_some(run)
        })
        .collect();
    vec![
        ("quotes", format!("{} x\n", many(">"))),
        ("quotes over lines", format!("{} x\n", ">".repeat(200)).repeat(bytes / 203)),
        (
            "quotes around paragraphs",
            format!("{} x\n{}\n", ">".repeat(200), ">".repeat(200)).repeat(bytes / 404),
        ),
        ("items", format!("{}x\n", many("- "))),
        ("items and blank lines", format!("{}x\n{}", half("- "), half("\n"))),
        ("numbers", format!("{}x\n", many("1. "))),
        ("quoted items", format!("{}x\n", many("> - "))),
        ("notes", format!("{}x\n", many("[^a]: "))),
        ("nested list", nested.clone()),
        ("nested list and blank lines", nested + &many("\n")),
        ("one list", many("- item\n")),
        ("one loose list", many("- item\n\n")),
        ("one quote", many("> words and words\n")),
        ("open brackets", many("[")),
        ("brackets", many("[a]")),
        ("links", many("[a](b)")),
        ("open links", many("[a](b")),
        ("pictures", many("![")),
        ("pictures in pictures", half("![") + &half("](b)")),
        ("emphasis", many("*a ")),
        ("both emphases", many("*a **b ")),
        ("stars", many("*")),
        ("struck", many("~~a ~b ")),
        ("ticks", many("`a ")),
        ("ticks of all lengths", ticks),
        ("dollars", many("$a ")),
        ("formulas", many("\\(")),
        ("formulas on lines", many("$$\na\n$$\n")),
        ("angles", many("<")),
        ("tags", many("<a b='")),
        ("comments", many("a <!--")),
        ("HTML", many("<div>\n")),
        ("entities", many("&amp;")),
        ("backslashes", many("\\")),
        ("bars", many("|") + "\n" + &many("|-") + "\n"),
        ("one wide table", half("|a") + "|\n" + &half("|-") + "|\n" + &half("a\n")),
        (
            "wide tables",
            format!("{}|\n{}|\n{}\n", "|a".repeat(200), "|-".repeat(200), "a\n".repeat(200))
                .repeat(bytes / 1205 + 1),
        ),
        (
            "tables",
            format!("{}|\n{}|\n{}\n", "|a".repeat(40), "|-".repeat(40), "a\n".repeat(200))
                .repeat(bytes / 565 + 1),
        ),
        ("one long table", "|a|b|\n|-|-|\n".to_owned() + &many("|1|2|\n")),
        ("definitions", (0..bytes / 12).map(|n| format!("[a{n}]: b\n")).collect()),
        ("headings", many("# a\n")),
        ("underlined", many("a\n=\n")),
        ("one word", many("x")),
        ("words", many("word ")),
        ("wide characters", many("日")),
        ("marks", many("e\u{301}\u{302}")),
        ("blanks", many(" ") + "a"),
        ("lines", many("a\n")),
        ("paragraphs", many("a\n\n")),
        ("code in one line", format!("```\n{}\n```\n", many("x"))),
        ("code", format!("```\n{}\n```\n", many("x\n"))),
        ("fences", many("```\n\n```\n")),
        ("open fences", many("> ```\n")),
        ("indented code", many("    x\n")),
        ("the word of a fence", format!("```{}\nx\n", many("x"))),
    ]
}

/// The cost of a complete text: bytes and events of the parser, spans and bytes of the drawn lines.
fn work(source: &str) -> u64 {
    let theme = Theme::plain();
    let mut markdown = Markdown::of(source);
    let mut drawn = 0;
    for index in 0..markdown.blocks().len() {
        for line in markdown.draw(index, source, &render(&theme), 60) {
            drawn += line.spans.iter().map(|span| 1 + span.content.len() as u64).sum::<u64>();
        }
    }
    markdown.stats().parsed_bytes + markdown.stats().events + drawn
}

#[test]
fn cost_is_linear_in_the_length() {
    const BYTES: usize = 16 * 1024;
    for ((name, small), (_, large)) in families(BYTES).into_iter().zip(families(3 * BYTES)) {
        let (one, three) = (work(&small), work(&large));
        // Splitting long blocks costs more than in the small text; quadratic cost would be ninefold.
        assert!(three <= 6 * one, "{name}: {one} and {three}");
        let each = three / large.len() as u64;
        assert!(each <= 700, "{name}: {each} per byte");
    }
}

#[test]
fn blocks_have_a_maximum_size_and_width() {
    let theme = Theme::plain();
    for (name, source) in families(60_000) {
        let mut markdown = Markdown::of(&source);
        for index in 0..markdown.blocks().len() {
            let block = markdown.blocks()[index];
            let max = if name.contains("table") { 2 * TABLE_BYTES } else { 2 * BLOCK_BYTES + BLANK_BYTES };
            assert!(block.end - block.start <= max, "{name}: {block:?}");
            for line in markdown.draw(index, &source, &render(&theme), 30) {
                assert!(width(&line.to_string()) <= 30, "{name}: {line}");
            }
        }
    }
}

#[test]
fn cost_of_a_chunk_is_limited_by_the_open_block() {
    const CHUNK: usize = 3000;
    for (name, source) in families(90_000) {
        let mut markdown = Markdown::default();
        let mut at = 0;
        while at < source.len() {
            at = boundary_after(&source, at + CHUNK);
            let before = markdown.stats();
            markdown.update(&source[..at], false);
            let after = markdown.stats();
            let max = if name.contains("table") { 10 * TABLE_BYTES } else { 24 * BLOCK_BYTES };
            let parsed = after.parsed_bytes - before.parsed_bytes;
            assert!(parsed <= max as u64, "{name}: {parsed} bytes at {at}");
        }
    }
}

#[test]
fn split_blocks_do_not_depend_on_chunks() {
    highlight::wait_for(&["rust"]);
    for (name, source) in families(45_000) {
        // Definitions cause a final pass over the text.
        if name == "definitions" {
            continue;
        }
        let mut whole = Markdown::of(&source);
        let mut streamed = Markdown::default();
        let mut at = 0;
        while at < source.len() {
            at = boundary_after(&source, at + 2999);
            streamed.update(&source[..at], false);
        }
        streamed.update(&source, true);
        assert_eq!(streamed.blocks(), whole.blocks(), "{name}");
        let rows = draw_all(&mut streamed, &source, 40);
        assert_eq!(rows, draw_all(&mut whole, &source, 40), "{name}");
    }
}

#[test]
fn deeply_nested_text_is_complete() {
    for source in [
        format!("{} deep text\n", ">".repeat(10_000)),
        format!("{}deep text\n", "- ".repeat(5_000)),
        format!("{}deep text\n", "1. > ".repeat(2_000)),
    ] {
        let lines = texts(&source, 40);
        let text = lines.join(" ");
        assert!(text.contains("deep") && text.contains("text"), "{lines:?}");
        assert!(lines.len() <= 8, "{lines:?}");
    }
}

#[test]
fn overly_wide_tables_are_shown_as_text() {
    let source = format!("{}|\n{}|\n{}|\n", "|a".repeat(70), "|-".repeat(70), "|b".repeat(70));
    let text = plain_text(&source, Instant::now());
    assert_eq!(text.replace('\n', " "), source.trim_end().replace('\n', " "));
    let source = format!("{}|\n{}|\n{}|\n", "|a".repeat(60), "|-".repeat(60), "|b".repeat(60));
    assert_eq!(plain_text(&source, Instant::now()).matches('\t').count(), 2 * 59);
}

#[test]
fn very_long_code_lines_are_copied_unchanged() {
    let code = "let x = \"日本\"; ".repeat(4000);
    let source = format!("```\nfirst\n{code}\nlast\n```\nend\n");
    let markdown = Markdown::of(&source);
    assert!(markdown.blocks().len() > 4);
    let text = plain_text(&source, Instant::now());
    assert_eq!(text, format!("first\n{code}\nlast\n\nend"));
}

#[test]
fn long_lists_are_split_between_items() {
    let source: String = (1..4000).map(|n| format!("{n}. item\n   more\n")).collect();
    let markdown = Markdown::of(&source);
    assert!(markdown.blocks().len() > 2);
    let lines = texts(&source, 40);
    let expected: Vec<String> = (1..4000).map(|n| format!("{n}. item more")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn tabs_in_code_are_copied_as_tabs() {
    let code = "\tif x {\n\t\ty\t= 1\t// 日\tz\n\t}";
    for fence in ["```\n", "> ```\n> "] {
        let source = if fence.starts_with('>') {
            format!("> ```\n> {}\n> ```\n", code.replace('\n', "\n> "))
        } else {
            format!("```\n{code}\n```\n")
        };
        let mut markdown = Markdown::of(&source);
        let rows = draw_all(&mut markdown, &source, 60);
        assert_eq!(crate::ui::text::copy_hint::text_of(&rows), code, "{fence}");
        assert!(rows.iter().all(|row| !row.to_string().contains('\t')));
        assert!(rows[0].to_string().contains("    if x {"), "{:?}", rows[0].to_string());
    }
}

#[test]
fn texts_that_look_like_another_host_show_their_target() {
    let shows = |text: &str, target: &str| {
        link::show(true);
        let shown = texts(&format!("[{text}]({target})"), 200);
        link::show(false);
        shown[0].contains(&format!("({target})"))
    };
    for text in
        ["github.com/login", "Sign in at github.com", "me@github.com", "github。com", "https://github.com"]
    {
        assert!(shows(text, "https://evil.example/login"), "{text}");
    }
    for (text, target) in [
        ("github.com/login", "https://github.com/login?next=1"),
        ("the guide", "https://evil.example"),
        ("main.rs", "src/main.rs"),
        ("version 1.2", "https://evil.example"),
    ] {
        assert!(!shows(text, target), "{text}");
    }
}
