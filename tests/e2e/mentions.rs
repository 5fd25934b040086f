//! Mentions in prompts, and what the agent receives.

use std::fs;
use std::path::Path;

use super::screen::Screen;

const CTRL_Q: &str = "\u{11}";
const DOWN: &str = "\u{1b}[B";

/// A folder with files, and a session of the demo agent in it.
struct Rig {
    folder: tempfile::TempDir,
    /// The protocol log and the data folder.
    home: tempfile::TempDir,
    screen: Screen,
}

impl Rig {
    fn start(files: &[(&str, &str)]) -> Self {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let screen = open(folder.path(), home.path());
        Self { folder, home, screen }
    }

    /// Types a mention, chooses the listed row, and waits for the mention in the prompt.
    fn choose(&mut self, typed: &str, row: &str, mention: &str) {
        self.screen.send(typed);
        self.screen.wait_for(row);
        self.screen.send("\r");
        self.screen.wait_for(mention);
        self.screen.wait_gone(row);
    }

    /// Sends the prompt, and ends parlor after the turn. Returns the request as JSON.
    fn sent(mut self) -> String {
        self.screen.send("\r");
        self.screen.wait_for("▌");
        self.screen.wait_for("ready");
        self.screen.send(CTRL_Q);
        assert!(self.screen.wait_exit().success());
        let log = fs::read_to_string(self.home.path().join("log")).unwrap();
        let prompts: Vec<&str> = log.lines().filter(|line| line.contains("session/prompt")).collect();
        assert_eq!(prompts.len(), 1, "{log}");
        let line: serde_json::Value = serde_json::from_str(prompts[0]).unwrap();
        line["text"].as_str().unwrap().to_owned()
    }
}

fn open(folder: &Path, home: &Path) -> Screen {
    let (log, data) = (home.join("log"), home.join("data"));
    let args = ["--new", "--log-file", log.to_str().unwrap(), "demo"];
    let mut screen = Screen::start_with(folder, &args, (30, 100), &[("PARLOR_DATA_DIR", data.as_path())]);
    screen.wait_for("ready");
    screen
}

#[test]
fn a_file_is_chosen_from_the_list_and_embedded() {
    let mut rig = Rig::start(&[("src/main.rs", "fn main() {}\n"), ("src/other.rs", ""), ("notes.md", "")]);
    rig.choose("/help @mai", "▸ src/main.rs", "› /help @src/main.rs");
    let sent = rig.sent();
    assert!(sent.contains("\"type\":\"resource\",\"resource\":{"), "{sent}");
    assert!(sent.contains("/src/main.rs") && sent.contains(r"fn main() {}\n"), "{sent}");
}

#[test]
fn names_with_spaces_and_other_scripts_are_mentioned() {
    let mut rig = Rig::start(&[("my notes.md", "first text"), ("дом/файл.md", "second text")]);
    rig.choose("/help @note", "▸ my notes.md", "› /help @\"my notes.md\"");
    rig.choose("and @фай", "▸ дом/файл.md", "@\"my notes.md\" and @дом/файл.md");
    let sent = rig.sent();
    for part in ["first text", "second text", "my%20notes.md"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
}

#[test]
fn a_folder_stays_open_for_its_files_and_is_sent_as_a_link() {
    let mut rig = Rig::start(&[("docs/guide.md", "text")]);
    rig.screen.send("/help @doc");
    rig.screen.wait_for("▸ docs/guide.md");
    rig.screen.send(DOWN);
    rig.choose("", "▸ docs/ ", "› /help @docs/");
    rig.screen.wait_for("▸ docs/guide.md");
    rig.screen.send(" ");
    rig.screen.wait_gone("docs/guide.md");
    let sent = rig.sent();
    assert!(sent.contains(r#""type":"resource_link""#) && !sent.contains("guide"), "{sent}");
}

#[test]
fn only_the_mentioned_lines_are_sent() {
    let mut rig = Rig::start(&[("a.rs", "one\ntwo\nthree\nfour\n")]);
    rig.screen.send("/help @a.rs:2-3 please");
    rig.screen.wait_for("@a.rs:2-3 please");
    let sent = rig.sent();
    assert!(sent.contains(r"two\nthree\n") && sent.contains("#L2-L3"), "{sent}");
    assert!(!sent.contains("four"), "{sent}");
}

#[test]
fn a_link_out_of_the_folder_is_refused_with_a_message() {
    let mut rig = Rig::start(&[("a", "")]);
    let secret = rig.home.path().join("secret.txt");
    fs::write(&secret, "the key").unwrap();
    std::os::unix::fs::symlink(&secret, rig.folder.path().join("link.txt")).unwrap();
    rig.choose("/help @lin", "▸ link.txt", "› /help @link.txt");
    rig.screen.send("\r");
    rig.screen.wait_for("link.txt is a link out of the session's folders");
    rig.screen.wait_for("› /help @link.txt");
    rig.screen.send(CTRL_Q);
    assert!(rig.screen.wait_exit().success());
    let log = fs::read_to_string(rig.home.path().join("log")).unwrap();
    assert!(!log.contains("session/prompt") && !log.contains("the key"), "{log}");
}

#[test]
fn a_file_that_was_removed_is_reported_before_the_prompt_is_sent_without_it() {
    let mut rig = Rig::start(&[("gone.rs", "text"), ("a.rs", "")]);
    rig.choose("/help @gon", "▸ gone.rs", "› /help @gone.rs");
    fs::remove_file(rig.folder.path().join("gone.rs")).unwrap();
    rig.screen.send("\r");
    rig.screen.wait_for("Not sent. gone.rs does not exist");
    rig.screen.wait_for("› /help @gone.rs");
    let sent = rig.sent();
    assert!(sent.contains("/help @gone.rs") && !sent.contains("resource"), "{sent}");
}

#[test]
fn a_symbol_is_sent_as_the_lines_of_its_file() {
    let source = "use x;\n\nfn parse(a: u8) {\n    a / 2\n}\n\nfn run() {}\n";
    let tags =
        "!_TAG_FILE_FORMAT\t2\t//\nparse\tsrc/a.rs\t/^fn parse(a: u8) {$/;\"\tkind:function\tline:3\tend:5\n";
    let mut rig = Rig::start(&[("src/a.rs", source), ("tags", tags)]);
    rig.choose("/help @pars", "function  src/a.rs:3", "› /help @src/a.rs:3-5");
    let sent = rig.sent();
    assert!(sent.contains(r"fn parse(a: u8) {\n    a / 2\n}\n") && !sent.contains("fn run"), "{sent}");
}

#[test]
fn the_transcript_of_another_session_is_attached() {
    let mut rig = Rig::start(&[("a", "")]);
    rig.screen.send("/help my first words\r");
    rig.screen.wait_for("▌ /help my first words");
    rig.screen.wait_for("ready");
    rig.screen.send(CTRL_Q);
    assert!(rig.screen.wait_exit().success());
    fs::remove_file(rig.home.path().join("log")).unwrap();
    rig.screen = open(rig.folder.path(), rig.home.path());
    rig.screen.send("/help @");
    rig.screen.wait_for("@session:");
    rig.screen.send(DOWN);
    rig.screen.send("\r");
    rig.screen.wait_for("› /help @session:");
    rig.screen.wait_for("session  ");
    rig.screen.send("\r");
    rig.screen.wait_for(": help my first words, ");
    rig.screen.wait_gone("@session:");
    let sent = rig.sent();
    assert!(
        sent.contains("text/markdown") && sent.contains(r"## Prompt\n\n> /help my first words"),
        "{sent}"
    );
}
