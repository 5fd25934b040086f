//! Whatever stands in a request is shown, or counted as not shown and then not approved.

use proptest::test_runner::RngSeed;

use super::*;
use crate::model::{CHANGES_MAX, DiffChange, approved_lines};
use crate::ui::diff::cache;
use crate::ui::text::{reveal_bytes, reveal_line};

/// Text that may hide its end: behind blanks of any kind, lines of blanks, or its size.
fn hiding_text(number: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => prop::sample::select(vec!["ls", "é", "日本", " ", "\n", "; ", "\t", "# x", "`", "\r", "\r\n", "\u{202e}", "\u{200b}"])
            .prop_map(str::to_owned),
        3 => (prop::sample::select(vec![
            ' ', '\t', '\u{3000}', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2003}', '\u{200a}', '\u{202f}', '\u{205f}',
            '\u{2800}', '\u{3164}', '\u{ad}', '\u{feff}', '\u{85}', '\u{2028}', '\u{b}', '\u{c}', '\n',
        ]), 1_usize..400).prop_map(|(ch, count)| ch.to_string().repeat(count)),
        2 => (prop::sample::select(vec![" ", "\t", "\u{a0}", "\u{3000}", "\u{2007}", ""]), 1_usize..200)
            .prop_map(|(blank, count)| format!("{blank}\n").repeat(count)),
        1 => (1_usize..70).prop_map(|kib| "x".repeat(kib << 10)),
    ];
    prop::collection::vec(piece, 0..7)
        .prop_map(move |pieces| format!("v{number}q{}w{number}", pieces.concat()))
}

/// A tool call as JSON text: its members in any order, also twice.
#[derive(Debug, Clone)]
struct Written {
    kind: &'static str,
    title: String,
    input: Vec<(&'static str, String)>,
    texts: Vec<String>,
    diffs: Vec<(String, String)>,
    /// The file of all changes but the first.
    path: String,
}

impl Written {
    fn json(&self) -> String {
        let members: Vec<String> =
            self.input.iter().map(|(key, value)| format!("{}: {}", json!(key), json!(value))).collect();
        let texts = self
            .texts
            .iter()
            .map(|text| json!({"type": "content", "content": {"type": "text", "text": text}}));
        let diffs = self.diffs.iter().enumerate().map(|(at, (old, new))| {
            let path = if at == 0 { "a.rs" } else { &self.path };
            json!({"type": "diff", "path": format!("/home/ada/code/shop/{path}"), "oldText": old, "newText": new})
        });
        let content: Vec<Value> = texts.chain(diffs).collect();
        format!(
            r#"{{"sessionId": "s-1", "toolCall": {{"toolCallId": "t", "title": {}, "kind": "{}", "rawInput": {{{}}},
                "content": {}}}, "options": [{{"optionId": "a", "name": "Allow once", "kind": "allow_once"}},
                {{"optionId": "r", "name": "Reject", "kind": "reject_once"}}]}}"#,
            json!(self.title),
            self.kind,
            members.join(", "),
            json!(content),
        )
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        let path = Some(&self.path).filter(|_| self.diffs.len() > 1);
        let pairs = self.diffs.iter().flat_map(|(old, new)| [old, new]).chain(path);
        self.input.iter().map(|(_, value)| value).chain(&self.texts).chain(pairs).chain([&self.title])
    }
}

fn written() -> impl Strategy<Value = Written> {
    let key =
        prop::sample::select(vec!["command", "cmd", "description", "path", "patch", "env", "content", "x"]);
    let kind = prop::sample::select(vec!["edit", "execute", "other", "fetch", "delete"]);
    let input = prop_oneof![
        6 => prop::collection::vec((key, hiding_text(1)), 0..4),
        1 => (900_usize..3000).prop_map(|count| (0..count).map(|at| (if count % 2 == 0 { "many" } else { MANY[at % MANY.len()] }, format!("v{at}v"))).collect::<Vec<_>>()),
    ];
    let title = prop_oneof![hiding_text(2), hiding_text(2).prop_map(|text| format!("`{text}`"))];
    let texts = prop::collection::vec(
        prop_oneof![
            hiding_text(3),
            hiding_text(3).prop_map(|text| format!("`{text}`")),
            hiding_text(3).prop_map(|text| format!("```sh\n{text}\n```")),
        ],
        0..3,
    );
    let diffs = prop_oneof![
        6 => prop::collection::vec((hiding_text(4), hiding_text(5)), 0..3),
        1 => (490_usize..600).prop_map(|count| {
            (0..count).map(|at| (format!("old{at}old"), format!("new{at}new"))).collect::<Vec<_>>()
        }),
    ];
    let path = (0_usize..60, hiding_text(6)).prop_map(|(depth, name)| {
        format!("{}{}", "sub/".repeat(depth), name.chars().take(200).collect::<String>())
    });
    (kind, title, input, texts, diffs, path).prop_map(|(kind, title, input, texts, diffs, path)| Written {
        kind,
        title,
        input,
        texts,
        // Otherwise it would not fit the screen.
        path: if diffs.len() > 400 { "b.rs".to_owned() } else { path },
        diffs,
    })
}

/// Texts above these limits are shown in part, with a note.
fn is_long(text: &str) -> bool {
    text.len() > 1000 || reveal_lines(text).len() > 10
}

/// Keys for inputs of many values.
const MANY: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];

const NOTES: &[&str] = &["omitted", "morevalues", "morelines", "morechanges", "blanklines", "moreduplicates"];

proptest! {
    // The same cases in each run: they are slow, so few are drawn. Other seeds and more cases are for a change of dialogs.
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(25), ..ProptestConfig::default() })]

    #[test]
    fn what_a_request_does_not_show_is_counted_and_not_covered(call in written()) {
        let stage = stage_of(&call.json());
        let session = stage.state.active_session().unwrap();
        let shown_call = session.transcript.items().iter().find_map(|item| match &item.body {
            crate::core::ItemBody::Tool(tool) => Some(tool.as_ref()),
            _ => None,
        });
        let shown_call = shown_call.unwrap();
        let changes = crate::ui::cells::changes_of(shown_call);
        cache::compute_now(&crate::ui::cells::placed(shown_call, &changes), &cache::Shown::default());
        let mut view = stage.view();
        let screen = pack(&text(&stage.draw(&mut view, &theme("dark"), (100, 6000))));
        prop_assert!(view.shows_end());
        let has_note = NOTES.iter().any(|note| screen.contains(note));
        let is_whole = |text: &str| lines_of(text, false).iter().all(|line| screen.contains(line));
        // A change has its blanks as they are, and its line ends have a note.
        let has_line = |line: &str| screen.contains(&pack(&reveal_bytes(line)));
        let is_whole_change =
            |text: &str| text.split('\n').all(|line| has_line(line) || has_line(line.trim_end_matches('\r')));
        let is_crowded = call.input.len() > 20 || call.diffs.len() > 400;
        for part in call.all() {
            // A command in backticks is shown without them.
            let part = part.trim_matches('`');
            let is_on_a_line = screen.contains(&pack(&reveal_line(part)));
            let is_fine = is_whole(part) || is_whole_change(part) || is_on_a_line || (is_long(part) || is_crowded) && has_note;
            prop_assert!(is_fine, "{part:?} in\n{screen}");
        }
        let covered = approved_lines(shown_call.kind, &shown_call.title, &shown_call.content, &shown_call.input);
        for line in covered {
            prop_assert!(is_whole(&line), "{line:?} is covered, but not in\n{screen}");
        }
        for diff in shown_call.diffs().take(CHANGES_MAX) {
            if let DiffChange::Texts { new, .. } = &diff.change {
                prop_assert!(is_whole_change(new), "{new:?} is covered, but not in\n{screen}");
            }
        }
        // The hints say what is below.
        for size in [(80, 24), (40, 12)] {
            let mut view = stage.view();
            let screen = text(&stage.draw(&mut view, &theme("dark"), size));
            prop_assert!(view.shows_end() || screen.contains(" below"), "{screen}");
        }
    }
}
