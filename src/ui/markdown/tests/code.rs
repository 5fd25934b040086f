//! Code blocks: the colours of diffs.

use super::*;

#[test]
fn lines_of_a_diff_block_have_the_colours_of_a_diff() {
    let theme = ThemeSet::built_in().load("dark", ColorSupport::TrueColor).0;
    let render = render(&theme);
    let bg = |source: &str| -> Vec<Option<ratatui::style::Color>> {
        let lines = Markdown::of(source).draw(0, source, &render, 40);
        lines.iter().map(|line| line.spans.last().and_then(|span| span.style.bg)).collect()
    };
    let [plus, minus, code] =
        [Role::DiffPlus, Role::DiffMinus, Role::CodeBlock].map(|role| theme.style(role).bg);
    let body = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n";
    assert_eq!(bg(&format!("```diff\n{body}```\n")), [code, code, code, code, minus, plus, code]);
    assert_eq!(bg(&format!("```text\n{body}```\n")), [code; 7], "only in a diff");
}
