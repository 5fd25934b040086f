#![allow(clippy::format_push_string, clippy::format_collect, reason = "shorter code is preferred in tests")]

use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::ui::text::Line;

use crate::ui::highlight;
use crate::ui::text::{link, width};
use crate::ui::theme::{ColorSupport, Role, Theme, ThemeSet};

mod bounds;
mod code;

fn render(theme: &Theme) -> RenderContext<'_> {
    RenderContext { sideways: Some(0), ..RenderContext::new(theme, Path::new("/home/ada"), Instant::now()) }
}

/// Draws all blocks with the gaps between them.
fn draw_all(markdown: &mut Markdown, source: &str, cols: u16) -> Vec<Line<'static>> {
    let theme = Theme::plain();
    let mut out = Vec::new();
    for index in 0..markdown.blocks().len() {
        if markdown.blocks()[index].has_gap {
            out.push(Line::default());
        }
        out.extend(markdown.draw(index, source, &render(&theme), cols));
    }
    out
}

fn texts(source: &str, cols: u16) -> Vec<String> {
    let lines = draw_all(&mut Markdown::of(source), source, cols);
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

/// Feeds a text in chunks and draws after each one.
fn stream(source: &str, cuts: &[usize], cols: u16) -> (Markdown, Vec<Line<'static>>) {
    let mut markdown = Markdown::default();
    for cut in cuts {
        let at = (0..=*cut % (source.len() + 1)).rev().find(|at| source.is_char_boundary(*at)).unwrap();
        if at >= markdown.len {
            markdown.update(&source[..at], false);
            draw_all(&mut markdown, &source[..at], cols);
        }
    }
    markdown.update(source, true);
    let lines = draw_all(&mut markdown, source, cols);
    (markdown, lines)
}

#[test]
fn blocks_lists_and_quotes() {
    let source = "# Title\nsome *emphasis* and `code`\nmore\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\n\
        > quoted\n> text\n\n---\n[a link](http://e.org) <b>x</b> ~~gone~~\n\n- [ ] open\n- [x] done\n";
    assert_eq!(
        texts(source, 40),
        [
            "Title",
            "",
            "some emphasis and code more",
            "",
            "• one",
            "• two",
            "  • inner",
            "",
            "1. first",
            "2. second",
            "",
            "│ quoted text",
            "",
            "────────────────────────────────────────",
            "",
            "a link (http://e.org) <b>x</b> gone",
            "",
            "□ open",
            "■ done",
        ]
    );
}

#[test]
fn heading_styles_differ_by_level() {
    for name in ThemeSet::built_in().names() {
        let (theme, _) = ThemeSet::built_in().load(&name, ColorSupport::TrueColor);
        let weight = |level: usize| {
            let source = format!("{} Title", "#".repeat(level));
            let lines = Markdown::of(&source).draw(0, &source, &render(&theme), 40);
            let span = lines[0].spans.iter().find(|span| span.content.contains("Title")).expect("the title");
            let style = ratatui::style::Style::default().patch(span.style);
            style.add_modifier.difference(style.sub_modifier)
        };
        let weights: Vec<_> = (1..=4).map(weight).collect();
        for (level, pair) in weights.windows(2).enumerate() {
            assert_ne!(pair[0], pair[1], "{name}: levels {} and {}", level + 1, level + 2);
        }
        assert!(weights[0].contains(ratatui::style::Modifier::BOLD), "{name}");
        assert!(!weights[3].contains(ratatui::style::Modifier::BOLD), "{name}");
    }
}

#[test]
fn loose_lists_nested_code_and_footnotes() {
    let source =
        "1. first\n\n   still first\n\n2. second\n\n   ```\n   let x;\n   ```\n\nsee[^a]\n\n[^a]: a note\n";
    assert_eq!(
        texts(source, 30),
        ["1. first", "", "   still first", "", "2. second", "", "    let x;", "", "see[a]", "", "[a] a note",]
    );
}

#[test]
fn tables_are_wrapped_to_fit() {
    let source = "| name | what it does |\n|---|---:|\n| a | short |\n| bee | a long text that must wrap |\n";
    assert_eq!(
        texts(source, 24),
        [
            "name │      what it does",
            "─────┼──────────────────",
            "a    │             short",
            "─────┼──────────────────",
            "bee  │  a long text that",
            "     │         must wrap",
        ]
    );
    // Single-line rows have no rules between them.
    let calm = "|a|b|\n|---|---|\n|1|x|\n|2|x|\n|3|one two three four five six|\n|4|x|\n|5|x|\n";
    let rules = texts(calm, 20).iter().filter(|line| line.contains('┼')).count();
    assert_eq!(rules, 3, "below the head, above and below the tall row: {:?}", texts(calm, 20));
}

#[test]
fn wide_tables_scroll_by_columns() {
    let wide = "|aaaaaaa|bbbbbbb|ccccccc|ddddddd|\n|---|---|---|---|\n|1111111|2222222|3333333|4444444|\n";
    let theme = Theme::plain();
    let draw = |left_out: Option<u16>, cols: u16| {
        let mut markdown = Markdown::of(wide);
        let render = RenderContext { sideways: left_out, ..render(&theme) };
        let lines = markdown.draw(0, wide, &render, cols);
        let lines: Vec<String> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        (lines, markdown.sideways())
    };
    let (lines, max) = draw(Some(0), 20);
    assert_eq!(lines, ["aaaaaaa │ bbbbbbb", "────────┼────────", "1111111 │ 2222222", "2 more columns >"]);
    assert_eq!(max, 2);
    let (lines, _) = draw(Some(1), 20);
    assert_eq!(lines[0], "aaaaaaa │ ccccccc");
    assert_eq!(lines[3], "< 1 more column  1 …");
    for beyond in [2, 3, 99] {
        let (lines, _) = draw(Some(beyond), 20);
        assert_eq!((lines[0].as_str(), lines[3].as_str()), ("aaaaaaa │ ddddddd", "< 2 more columns"));
    }
    let (lines, max) = draw(None, 20);
    assert_eq!(lines, ["aaaaaaa: 1111111", "bbbbbbb: 2222222", "ccccccc: 3333333", "ddddddd: 4444444"]);
    assert_eq!(max, 0);
    assert!(draw(Some(0), 8).0[0].contains(':'), "if not even two columns fit");
    for cols in 4..40 {
        for left_out in 0..5 {
            assert!(draw(Some(left_out), cols).0.iter().all(|line| width(line) <= usize::from(cols)));
        }
    }
}

#[test]
fn tables_with_one_column_do_not_scroll() {
    let table = "| an_identifier |\n|---|\n| of_some_length |\n";
    let theme = Theme::plain();
    for (cols, left_out) in (4_u16..20).flat_map(|cols| [(cols, 0), (cols, 3)]) {
        let mut markdown = Markdown::of(table);
        let render = RenderContext { sideways: Some(left_out), ..render(&theme) };
        let lines = markdown.draw(0, table, &render, cols);
        assert_eq!(markdown.sideways(), 0, "{cols}");
        assert!(lines.iter().all(|line| !line.to_string().contains("more column")), "{cols}: {lines:?}");
        assert!(lines.iter().all(|line| width(&line.to_string()) <= usize::from(cols)), "{cols}: {lines:?}");
    }
}

#[test]
fn scrolled_tables_do_not_break_words() {
    let cells = |text: &str| (0..9).map(|n| format!("| {text}{n} ")).collect::<String>();
    let table =
        format!("{}|\n{}|\n{}|\n", cells("head"), "|---".repeat(9), cells("an_identifier_of_some_length_"));
    let theme = Theme::plain();
    let render = RenderContext { sideways: Some(0), ..render(&theme) };
    let lines = Markdown::of(&table).draw(0, &table, &render, 80);
    let row = lines[2].to_string();
    assert_eq!(row.matches("an_identifier_of_some_length_").count(), 2, "{row}");
    // Words are not broken either if all columns would fit that way.
    let small = table.replace("an_identifier_of_some_length_", "fits_here_");
    let lines = Markdown::of(&small).draw(0, &small, &render, 80);
    assert!(lines[2].to_string().starts_with("fits_here_0 │ fits_here_1 │"), "{lines:?}");
    // A word that is too long for any column is broken.
    let table = table.replace("an_identifier", &"x".repeat(50));
    let lines = Markdown::of(&table).draw(0, &table, &render, 80);
    assert!(lines.iter().all(|line| width(&line.to_string()) <= 80) && lines.len() > 4);
}

#[test]
fn line_numbers_of_code_are_optional_and_not_copied() {
    highlight::wait_for(&["rust"]);
    let code = format!("{}let long = \"{}\";\n", "let x = 1;\n".repeat(69), "y".repeat(60));
    let source = format!("```rust\n{code}```\n\n- in a list\n\n  ```\n  one\n  two\n  ```\n");
    let theme = Theme::plain();
    let render = RenderContext { numbers_code: true, ..render(&theme) };
    let draw = |markdown: &mut Markdown, source: &str, cols: u16| {
        let blocks = 0..markdown.blocks().len();
        blocks.flat_map(|index| markdown.draw(index, source, &render, cols)).collect::<Vec<_>>()
    };
    let lines = draw(&mut Markdown::of(&source), &source, 60);
    let row = |at: usize| lines[at].to_string().trim_end().to_owned();
    assert_eq!(
        (row(1).as_str(), row(64).as_str(), row(65).as_str()),
        ("   1  let x = 1;", "  64  let x = 1;", "  65  let x = 1;")
    );
    assert!(
        row(70).starts_with("  70  let long") && row(71).starts_with("      yyy"),
        "{} {}",
        row(70),
        row(71)
    );
    assert!(lines.iter().any(|line| line.to_string().trim_end() == "     2  two"), "{lines:?}");
    assert!(lines.iter().all(|line| width(&line.to_string()) <= 60));
    let copied = crate::ui::text::copy_hint::text_of(&lines);
    assert!(copied.starts_with(&code) && copied.contains("one\n"), "{copied}");
    // Incremental drawing gives the same result.
    let mut growing = Markdown::default();
    for end in source.match_indices('\n').map(|(at, _)| at + 1) {
        growing.update(&source[..end], false);
        draw(&mut growing, &source[..end], 60);
    }
    growing.update(&source, true);
    assert_eq!(draw(&mut growing, &source, 60), lines);
    let narrow = draw(&mut Markdown::of(&source), &source, 20);
    assert_eq!(narrow[1].to_string().trim_end(), " let x = 1;", "no room for numbers");
}

#[test]
fn formulas_and_diagrams_are_shown_as_source() {
    let source = r"Let \(a_b * c_d * e\) and $x_1 * y_2$ be. \[ \sum_i x_i \]";
    assert_eq!(texts(source, 80), [source]);
    let theme = ThemeSet::built_in().load("dark", ColorSupport::TrueColor).0;
    let lines = Markdown::of(source).draw(0, source, &render(&theme), 80);
    let apart: Vec<&str> = lines[0]
        .spans
        .iter()
        .filter(|span| span.style == theme.style(Role::Agent).patch(theme.style(Role::InlineCode)))
        .map(|span| span.content.as_ref())
        .collect();
    assert_eq!(apart, [r"\(a_b * c_d * e\)", "$x_1 * y_2$", r"\[ \sum_i x_i \]"]);
    assert_eq!(texts("`\\(code\\)`", 40), ["\\(code\\)"], "not a formula inside code");
    assert_eq!(
        texts("```mermaid\ngraph TD\n  A --> B\n```", 40),
        [" mermaid · diagram source", " graph TD", "   A --> B"]
    );
}

#[test]
fn fences_have_a_label_and_complete_text() {
    let source = "before\n```rust ignore\nfn a() {}\n\n\tb\n```\nafter";
    assert_eq!(texts(source, 20), ["before", "", " rust", " fn a() {}", "", "     b", "", "after"]);
    assert_eq!(texts("~~~\n```\n~~~~\nx", 20), [" ```", "", "x"]);
    assert_eq!(texts("```\nnever closed\n", 20), [" never closed"]);
    assert_eq!(texts("```\n0123456789\n```", 8), [" 012345", " 6789"]);
}

#[test]
fn link_targets_are_resolved_in_any_position() {
    let source = "see [the docs][d]\n\nand more\n\n[D]: http://docs.example\n";
    assert_eq!(texts(source, 60), ["see the docs (http://docs.example)", "", "and more"]);
    let (_, lines) = stream(source, &[10, 20, 30, 40, 50], 60);
    assert_eq!(lines[0].to_string(), "see the docs (http://docs.example)");
}

#[test]
fn multi_line_link_titles_are_not_text() {
    let source = "one\n\n[a]: http://y\n'a title\nof two lines'\n\nend [a]";
    let (_, lines) = stream(source, &[28], 40);
    assert_eq!(lines, draw_all(&mut Markdown::of(source), source, 40));
}

#[test]
fn definitions_affect_the_next_line_after_a_split() {
    // After a definition, an indented line is not code.
    let sources = [
        ("[a]: http://y\n    code\n| a | b |\n\n# ", 23),
        ("- \n[a]: http://y\n    code\n| a | b |\nword > quote\n# ", 26),
        ("[a]: http://y\n10) x\n\t```\n    code\n***## head\n- item\n", 20),
        ("```\n```\t\n```\n# ", 4),
    ];
    for (source, cut) in sources {
        let (streamed, lines) = stream(source, &[cut], 20);
        let mut whole = Markdown::of(source);
        assert_eq!(streamed.blocks(), whole.blocks(), "{source}");
        assert_eq!(lines, draw_all(&mut whole, source, 20), "{source}");
    }
}

#[test]
fn incomplete_closing_fences_are_not_shown() {
    let mut markdown = Markdown::default();
    let source = "```\ncode\n``";
    markdown.update(source, false);
    assert_eq!(draw_all(&mut markdown, source, 20).len(), 1);
}

/// Fragments that combine into edge cases.
fn markdown_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "word ",
        "two words",
        "\n",
        "\n",
        "\n\n",
        "\n\n",
        "# ",
        "## head\n",
        "- ",
        "- item\n",
        "  - nested\n",
        "1. ",
        "10) x\n",
        "> ",
        "> quote\n",
        "```\n",
        "```rust\n",
        "````\n",
        "~~~\n",
        "```",
        "    code\n",
        "\t",
        "| a | b |\n",
        "|---|---|\n",
        "$$\n",
        "$$",
        "| 1 | 2 | 3 |\n",
        "---\n",
        "===\n",
        "***",
        "**bold** ",
        "*em* ",
        "`tick` ",
        "`",
        "[a]",
        "[a](",
        "http://x)",
        "[a]: http://y\n",
        "[^1]",
        "[^1]: note\n",
        "<div>\n",
        "</div>\n",
        "<br>",
        "&amp;",
        "\\",
        "日本語",
        "👩‍👩‍👧‍👦",
        "$x_1$",
        "$$",
        "- [ ] task\n",
        "- [x] ",
        "fn main() {}\n",
        "/* ",
        "*/",
        "\r\n",
        "\u{1b}[31m",
        "  \n",
        "+ plus\n",
        "!",
        "![i](p)",
        "<!-- ",
        "-->\n",
        "\u{202e}",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_chunking_gives_the_same_result(
        source in markdown_text(),
        mut cuts in prop::collection::vec(0_usize..600, 0..14),
        cols in 4_u16..50,
    ) {
        cuts.sort_unstable();
        for cut in &mut cuts {
            *cut = (*cut).min(source.len());
        }
        let (lines, drawn) = loop {
            // A grammar that becomes ready in between changes the colours only.
            let epoch = highlight::epoch();
            let (streamed, lines) = stream(&source, &cuts, cols);
            let mut whole = Markdown::of(&source);
            prop_assert_eq!(streamed.blocks(), whole.blocks());
            let drawn = draw_all(&mut whole, &source, cols);
            if highlight::epoch() == epoch {
                break (lines, drawn);
            }
        };
        prop_assert_eq!(lines, drawn);
    }

    #[test]
    fn no_line_is_too_wide_or_unsafe(source in markdown_text(), cols in 8_u16..60) {
        for line in draw_all(&mut Markdown::of(&source), &source, cols) {
            let text = line.to_string();
            prop_assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{:?}", text);
            prop_assert!(width(&text) <= usize::from(cols), "{} in {}", text, cols);
        }
    }
}

#[test]
fn byte_by_byte_gives_the_same_result() {
    highlight::wait_for(&["rust"]);
    let source = "Intro\n===\ntext\n\n```rust\nfn main() {\n    /* a\n b */ let x = \"y\";\n}\n```\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\n* x\n\n  y\n* z\n\nend";
    let cuts: Vec<usize> = (0..=source.len()).collect();
    let (_, lines) = stream(source, &cuts, 40);
    assert_eq!(lines, draw_all(&mut Markdown::of(source), source, 40));
}

#[test]
fn definitions_that_a_formula_makes_text_are_ignored_when_streamed() {
    let source = "$$\n[a]: x\n<!-- open\n$$\nend -->\n[a]: http://y\n";
    let after_formula = source.rfind("end").unwrap();
    let (_, lines) = stream(source, &[after_formula], 40);
    assert_eq!(lines, draw_all(&mut Markdown::of(source), source, 40));
}

#[test]
fn long_paragraphs_give_the_same_result_when_streamed() {
    let mut source = String::from("start\n\n");
    for n in 0..9000 {
        source += &format!("word{n} ");
        if n % 700 == 699 {
            source.push('\n');
        }
    }
    source.push_str("\n\n- a\n- b\n\nend\n");
    source.push_str(&"x".repeat(60_000));
    source.push_str("\n\n```\n");
    source.push_str(&"code line\n".repeat(500));
    source.push_str("```\n\nlast");
    let whole = Markdown::of(&source);
    let mut streamed = Markdown::default();
    let mut at = 0;
    while at < source.len() {
        at = (at + 977).min(source.len());
        streamed.update(&source[..at], false);
    }
    streamed.update(&source, true);
    assert_eq!(streamed.blocks(), whole.blocks());
    assert!(whole.blocks().iter().all(|block| block.end - block.start <= 3 * PARAGRAPH_BYTES));
}

/// Cost of the last of many chunks: parsed bytes and drawn lines of code.
fn cost_at(chunks: usize, chunk: &str) -> (u64, u64) {
    let theme = Theme::plain();
    let mut source = String::new();
    let mut markdown = Markdown::default();
    let mut last = Stats::default();
    for _ in 0..chunks {
        source.push_str(chunk);
        last = markdown.stats();
        markdown.update(&source, false);
        let index = markdown.blocks().len() - 1;
        markdown.draw(index, &source, &render(&theme), 80);
    }
    let stats = markdown.stats();
    (stats.parsed_bytes - last.parsed_bytes, stats.code_lines - last.code_lines)
}

#[test]
fn cost_of_a_chunk_does_not_grow_with_the_message() {
    let text = "Some **text** with `code`.\n\n";
    assert_eq!(cost_at(50, text), cost_at(5000, text));
    let list = "- item\n\npara\n\n";
    assert_eq!(cost_at(50, list), cost_at(5000, list));
}

#[test]
fn cost_of_a_chunk_in_a_long_fence_is_limited_to_its_lines() {
    highlight::wait_for(&["rust"]);
    let theme = Theme::plain();
    let mut source = "```rust\n".to_owned();
    let mut markdown = Markdown::default();
    let mut last_epoch = highlight::epoch();
    for n in 0..2000_u64 {
        source.push_str("let x = 1;\n");
        let (before, epoch) = (markdown.stats(), highlight::epoch());
        markdown.update(&source, false);
        let index = markdown.blocks().len() - 1;
        markdown.draw(index, &source, &render(&theme), 80);
        let after = markdown.stats();
        // A grammar that another test loads redraws everything.
        let is_same_epoch = std::mem::replace(&mut last_epoch, epoch) == highlight::epoch();
        if n > 0 {
            assert_eq!(after.parsed_bytes, before.parsed_bytes);
            assert!(!is_same_epoch || after.code_lines - before.code_lines <= 1, "line {n}");
        }
    }
}

#[test]
fn highlighted_parts_do_not_depend_on_what_was_drawn_before() {
    highlight::wait_for(&["rust"]);
    let source = format!("```rust\n/* open\n{}```\n", "still a comment\n".repeat(400));
    let mut all = Markdown::of(&source);
    let lines = draw_all(&mut all, &source, 40);
    let mut one = Markdown::of(&source);
    let theme = Theme::plain();
    let third = one.draw(2, &source, &render(&theme), 40);
    assert_eq!(third[..], lines[129..193]);
}

#[test]
fn shorter_texts_replace_the_previous_one() {
    let mut markdown = Markdown::of("# one\n\ntwo");
    assert_eq!(markdown.update("new", true), 0);
    assert_eq!(markdown.blocks().len(), 1);
}

#[test]
fn drawn_rows_distinguish_text_from_decoration() {
    let source = "Some words that wrap at any width one could think of.\n\n> a quote that is long enough to wrap\n\n\
                  1. one with many words in it\n\n   more of one\n   - deep inside\n2. two\n\n---\n\n\
                  ```rust\nfn main() {\n\n    a_long_name(\"and a text\");\n}\n```\n\n| a | b |\n|---|---|\n| 1 | |\n";
    let expected = "Some words that wrap at any width one could think of.\n\n\
                    a quote that is long enough to wrap\n\n\
                    1. one with many words in it\n\nmore of one\n\n   • deep inside\n2. two\n\n\n\
                    fn main() {\n\n    a_long_name(\"and a text\");\n}\n\na\tb\n1\t";
    for cols in [18, 30, 96] {
        let rows = draw_all(&mut Markdown::of(source), source, cols);
        assert_eq!(crate::ui::text::copy_hint::text_of(&rows), expected, "{cols}");
    }
    assert_eq!(plain_text(source, Instant::now()), expected);
}

#[test]
fn split_paragraphs_are_copied_as_one_line() {
    let source = "word ".repeat(6000);
    assert_eq!(plain_text(&source, Instant::now()), source.trim_end());
    let source = "x".repeat(30_000);
    assert_eq!(plain_text(&source, Instant::now()), source);
}

/// Linked texts with their targets.
fn links(source: &str) -> Vec<(String, String)> {
    let lines = draw_all(&mut Markdown::of(source), source, 60);
    let spans = lines.into_iter().flat_map(|line| line.spans);
    let linked = |span: crate::ui::text::Span<'static>| {
        Some((span.content.into_owned(), link::address(span.tag.link)?))
    };
    spans.filter_map(linked).collect()
}

#[test]
fn text_is_linked_to_its_target() {
    let source = "[a](https://a.org) [b](src/b.rs#L3) [c](javascript:x) `src/d.rs:4` https://e.org.\n\n| x |\n|---|\n| ../f/g.md |\n";
    let wanted = [
        ("a", "https://a.org"),
        ("https://a.org", "https://a.org"),
        ("b", "file:///home/ada/src/b.rs"),
        ("src/b.rs", "file:///home/ada/src/b.rs"),
        ("src/d.rs:4", "file:///home/ada/src/d.rs"),
        ("https://e.org", "https://e.org"),
        ("../f/g.md", "file:///home/ada/../f/g.md"),
    ];
    assert_eq!(links(source), wanted.map(|(text, to)| (text.to_owned(), to.to_owned())));
}

#[test]
fn targets_are_shown_unless_the_terminal_shows_links() {
    let source = "[a](https://a.org) [https://b.org](https://c.org) [d](javascript:x)";
    link::show(true);
    let hidden = texts(source, 90);
    link::show(false);
    assert_eq!(hidden, ["a https://b.org (https://c.org) d (javascript:x)"]);
    assert_eq!(texts(source, 90), ["a (https://a.org) https://b.org (https://c.org) d (javascript:x)"]);
}

#[test]
fn display_formulas_are_one_block() {
    let text = "It is\n$$\n- a_1\n+ b * c\n# d\n= e\n$$\nand then *more*.\n\n$$\nx\n---\ny\n$$\n";
    let mut markdown = Markdown::of(text);
    let lines = draw_all(&mut markdown, text, 40);
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let formula = ["$$", "- a_1", "+ b * c", "# d", "= e", "$$"];
    assert_eq!(lines[..2], ["It is", ""]);
    assert_eq!(lines[2..8], formula);
    assert_eq!(lines[8..], ["", "and then more.", "", "$$", "x", "---", "y", "$$"]);
    // An unclosed formula is text.
    let text = "$$\n- a\n\n# b";
    let lines = draw_all(&mut Markdown::of(text), text, 40);
    assert_eq!(lines.last().map(ToString::to_string).as_deref(), Some("b"));
}
