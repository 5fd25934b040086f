use super::super::history::History;
use super::*;

/// A label, which the table has as `§`.
const LABEL: &str = "[Pasted text #7dd3e5fd25: 2 lines]";

/// A text, the state of vim keys, and undo.
struct Rig {
    vim: Vim,
    text: Text,
    history: History,
    copied: Vec<String>,
    /// The text of the system's clipboard; `None`: it cannot be read.
    clipboard: Option<String>,
}

impl Rig {
    /// `|` is before the character at the cursor.
    fn new(text: &str) -> Self {
        let at = text.find('|').expect("a cursor");
        let text = Text { text: text.replacen('|', "", 1), at };
        let history = History::new(&text.text);
        let mut rig = Self { vim: Vim::default(), text, history, copied: Vec::new(), clipboard: None };
        rig.vim.key(ESCAPE, &mut rig.text);
        rig.text.at = rig.text.on_char(at);
        rig
    }

    /// Presses keys: `<Esc>`, `<CR>`, `<BS>`, `<C-r>` or characters.
    fn keys(mut self, keys: &str) -> Self {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let named = [("<Esc>", ESCAPE), ("<CR>", '\n'), ("<BS>", BACKSPACE), ("<C-r>", '\u{12}')];
            let (name, key) = named
                .into_iter()
                .find(|(name, _)| rest.starts_with(name))
                .unwrap_or((&rest[..first.len_utf8()], first));
            rest = &rest[name.len()..];
            self.key(key);
        }
        self
    }

    fn key(&mut self, key: char) {
        let was_inserting = self.vim.is_inserting();
        match self.vim.key(key, &mut self.text) {
            Reply::Unused if was_inserting => {
                let at = self.text.at;
                self.text.replace(at..at, &key.to_string());
                self.text.at += key.len_utf8();
            }
            Reply::Undo(count) => (0..count).for_each(|_| {
                if let Some(undone) = self.history.undo() {
                    self.text = restored(undone);
                }
            }),
            Reply::Redo(count) => (0..count).for_each(|_| {
                if let Some(redone) = self.history.redo() {
                    self.text = restored(redone);
                }
            }),
            Reply::Copy(text) => self.copied.push(text),
            Reply::ReadClipboard => _ = self.vim.put_clipboard(self.clipboard.as_deref(), &mut self.text),
            _ => {}
        }
        if !was_inserting {
            self.history.place(self.vim.undo_at());
        }
        if !self.vim.is_inserting() {
            self.history.record(&self.text.text, self.text.at);
        }
    }

    fn shown(&self) -> String {
        let (before, after) = self.text.text.split_at(self.text.at);
        format!("{before}|{after}")
    }
}

#[test]
fn keys_have_the_results_of_vim() {
    let mut failures = Vec::new();
    let mut count = 0;
    for row in include_str!("table.txt").lines().filter(|row| !row.starts_with('#') && !row.is_empty()) {
        let [start, keys, expected] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let labels: &[&str] = if row.contains('§') { &["§", LABEL] } else { &["§"] };
        for label in labels {
            let start = start.replace("\\n", "\n").replace('§', label);
            let shown = Rig::new(&start).keys(keys).shown().replace(label, "§").replace('\n', "\\n");
            count += 1;
            if shown != expected {
                failures.push(format!("{start}  {keys}\n    expected {expected}\n    found    {shown}"));
            }
        }
    }
    assert!(count >= 150, "{count}");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_cursor_moves_by_grapheme() {
    let family = "👨‍👩‍👧";
    let text = format!("|a{family}e\u{301}b");
    assert_eq!(Rig::new(&text).keys("ll").shown(), format!("a{family}|e\u{301}b"));
    assert_eq!(Rig::new(&text).keys("lx").shown(), "a|e\u{301}b");
    assert_eq!(Rig::new(&text).keys("$hrx").shown(), format!("a{family}|xb"));
    assert_eq!(Rig::new(&text).keys("lylp").shown(), format!("a{family}|{family}e\u{301}b"));
}

#[test]
fn the_clipboard_register_copies() {
    let rig = Rig::new("|one two\nthree").keys("\"+yw\"+yy\"+dw\"+P");
    assert_eq!(rig.copied, ["one ", "one two\n", "one "]);
    assert_eq!(rig.text.text, "one two\nthree");
}

#[test]
fn the_text_of_the_clipboard_is_inserted() {
    let rig = |start: &str, clipboard: &str| Rig { clipboard: Some(clipboard.into()), ..Rig::new(start) };
    for (start, keys, clipboard, expected) in [
        ("|one", "\"+p", "x", "o|xne"),
        ("|one", "2\"*P", "x", "x|xone"),
        ("|one\ntwo", "\"+p", "new\n", "one\n|new\ntwo"),
        ("|one two", "ve\"+p", "x\ny", "|x\ny two"),
        ("|one", "\"+p.", "xy", "oxyx|yne"),
        ("|one", "\"+pu", "xy", "|one"),
        ("|one two", "yw\"+pp", "x", "oxone| ne two"),
    ] {
        let shown = rig(start, clipboard).keys(keys).shown();
        assert_eq!(shown, expected, "{start} {keys}");
    }
    assert_eq!(Rig::new("|one").keys("\"+p").shown(), "|one");
    let mut other = Rig::new("|one two");
    other.vim.key('"', &mut other.text);
    other.vim.key('+', &mut other.text);
    assert_eq!(other.vim.key('p', &mut other.text), Reply::ReadClipboard);
    other.vim.key('w', &mut other.text);
    assert!(!other.vim.put_clipboard(Some("x"), &mut other.text), "another key cancels it");
}

#[test]
fn unknown_keys_end_a_command() {
    let rig = Rig::new("|one two").keys("dqw");
    assert_eq!(rig.shown(), "one |two");
    assert_eq!(rig.vim.pending(), "");
}

#[test]
fn a_search_can_be_corrected_and_cancelled() {
    assert_eq!(Rig::new("|one two").keys("/x<BS>tw<CR>").shown(), "one |two");
    let rig = Rig::new("|one two").keys("/tw<Esc>x");
    assert_eq!(rig.shown(), "|ne two");
    let rig = Rig::new("|one two").keys("/t<BS><BS>x");
    assert_eq!(rig.shown(), "|ne two");
}

#[test]
fn large_counts_are_limited() {
    let rig = Rig::new("|one two").keys("yy99999999p");
    assert!(rig.text.text.len() < 2 * MAX_REPEATED_BYTES);
    let rig = Rig::new("|one").keys("99999999ixxxxxxxxxxxxxxx<Esc>");
    assert!(rig.text.text.len() < 2 * MAX_REPEATED_BYTES);
    Rig::new("|one one").keys("99999999w99999999j99999999n99999999fx");
}

#[test]
fn escape_in_normal_mode_is_not_used() {
    let mut rig = Rig::new("|one");
    assert_eq!(rig.vim.key('d', &mut rig.text), Reply::Done);
    assert_eq!(rig.vim.key(ESCAPE, &mut rig.text), Reply::Done, "it cancels the command");
    assert_eq!(rig.vim.key(ESCAPE, &mut rig.text), Reply::Unused);
    assert_eq!(rig.vim.key('v', &mut rig.text), Reply::Done);
    assert_eq!(rig.vim.key(ESCAPE, &mut rig.text), Reply::Done, "it leaves visual mode");
    assert_eq!(rig.vim.mode(), Mode::Normal);
}

#[test]
fn vertical_motions_report_the_first_and_last_line() {
    let mut rig = Rig::new("|one\ntwo");
    assert_eq!(rig.vim.key('k', &mut rig.text), Reply::Edge { is_up: true });
    assert_eq!(rig.vim.key('j', &mut rig.text), Reply::Done);
    assert_eq!(rig.vim.key('j', &mut rig.text), Reply::Edge { is_up: false });
}

mod any_keys {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_label_is_one_character(text in "[ab (\"A.§\n]{0,20}", keys in "([a-eg-hlm-wxyzA-EG-HL-WXYZ0$%^(){};~<>\".*#_iw]|f[a§]){0,20}") {
            let keys = keys.replace("f§", "w");
            let mut plain = Rig::new(&format!("|{text}"));
            let mut labelled = Rig::new(&format!("|{}", text.replace('§', LABEL)));
            for key in keys.chars() {
                plain.key(key);
                labelled.key(key);
                prop_assert_eq!(labelled.shown().replace(LABEL, "§"), plain.shown(), "{}", key);
            }
        }

        #[test]
        fn the_cursor_is_on_a_character(text in "[ab (){}\"é日👍\n\t.]{0,30}", keys in "[a-zA-Z0-9 $%^{}(),;.~<>\"/?*#+_|]{0,40}") {
            let mut rig = Rig::new(&format!("|{text}"));
            for key in keys.chars() {
                rig.key(key);
                prop_assert!(rig.text.text.is_char_boundary(rig.text.at));
                prop_assert_eq!(rig.text.floor(rig.text.at), rig.text.at);
                if rig.vim.mode() == Mode::Normal {
                    prop_assert_eq!(rig.text.on_char(rig.text.at), rig.text.at);
                }
            }
        }
    }
}
