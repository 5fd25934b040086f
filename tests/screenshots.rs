//! The screenshots of the README, from the binary with the demo agent in a pseudo terminal.
//!
//! `PARLOR_SCREENSHOTS=write cargo test --test screenshots` writes them. Without the variable they are compared, so
//! that they are up to date.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

use std::fs;
use std::path::{Path, PathBuf};

#[allow(dead_code, reason = "the driver of the end-to-end tests can more than pictures need")]
#[path = "e2e/screen.rs"]
mod screen;
#[path = "screenshots/svg.rs"]
mod svg;

use screen::Screen;

const PROMPT: &str = "The total of the receipt is wrong.";
/// Agents in the picker.
const CONFIG: &str = "\
[agents.claude]
title = \"Claude\"
command = \"claude-agent-acp\"
[agents.gemini]
title = \"Gemini CLI\"
command = \"gemini\"
args = [\"--acp\"]
[agents.mine]
title = \"My own agent\"
command = \"my-agent\"

[undo]
enabled = false
";
/// An agent that requires a key.
const LOCKED: &str = r#"
while read -r line; do
    rest=${line#*'"id":'}; rest=${rest%%,*}; id=${rest%%'}'*}
    case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"Shop agent","version":"1.0"},"authMethods":[{"id":"key","name":"API key","description":"A key of the shop","type":"env_var","vars":[{"name":"SHOP_API_KEY"}]}]}}\n' "$id" ;;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}\n' "$id" ;;
    esac
done
"#;
const PALETTE: &str = "\u{10}";
const ALL_CHANGES: &str = "\u{1b}d";
const PLAN: &str = "\u{1b}p";

/// An isolated environment, in `~/code/shop` on the branch main.
struct Stage {
    home: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let git = home.path().join("code/shop/.git");
        fs::create_dir_all(git.join("objects")).unwrap();
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        // The repository is clean on machines with and without git.
        fs::create_dir_all(git.join("info")).unwrap();
        fs::write(git.join("info/exclude"), "*\n").unwrap();
        // Only these programs are on the search path, so that no agents of this machine are found.
        fs::create_dir(home.path().join("bin")).unwrap();
        for name in ["sh", "npm", "uv"] {
            std::os::unix::fs::symlink("/bin/sh", home.path().join("bin").join(name)).unwrap();
        }
        fs::write(home.path().join("config.toml"), CONFIG).unwrap();
        Self { home }
    }

    fn start(&self, args: &[&str], size: (u16, u16)) -> Screen {
        let folder = self.home.path().join("code/shop");
        let path = self.home.path().join("bin");
        let variables = [
            ("HOME", self.home.path()),
            ("PARLOR_DEMO_SCRATCH", &folder),
            ("PATH", &path),
            ("LANG", Path::new("C.UTF-8")),
        ];
        Screen::start_with(&folder, args, size, &variables)
    }

    fn demo(&self, size: (u16, u16)) -> Screen {
        let mut screen = self.start(&["demo", "--config", "../../config.toml"], size);
        // The mode at the composer means that the session is open.
        screen.wait_for("Ask first");
        screen
    }
}

/// Types a prompt and sends it.
fn ask(screen: &mut Screen, text: &str) {
    screen.send(text);
    screen.wait_for(text.rsplit(' ').next().unwrap());
    screen.send("\r");
}

fn answer(screen: &mut Screen, title: &str, key: &str) {
    screen.wait_for(title);
    screen.answer(key);
    screen.wait_gone(title);
}

/// Compares a screenshot with the saved one, or saves it.
fn check(name: &str, title: &str, screen: &mut Screen) {
    screen.wait_quiet();
    let picture = svg::picture(screen.cells(), title);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("screenshots").join(format!("{name}.svg"));
    if std::env::var_os("PARLOR_SCREENSHOTS").is_some_and(|wish| wish == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, picture).unwrap();
        return;
    }
    let saved = fs::read_to_string(&path).unwrap_or_default();
    let (saved, drawn) = (timeless(&saved), timeless(&picture));
    let difference = saved.lines().zip(drawn.lines()).find(|(saved, drawn)| saved != drawn);
    assert!(
        saved == drawn,
        "screenshots/{name}.svg is out of date. If the change is intended, run:\n\
         PARLOR_SCREENSHOTS=write cargo test --test screenshots\nFirst difference: {difference:?}\nThe screen:\n{}",
        screen.text()
    );
}

/// A screenshot without durations: digits before ` s` at the end of a text or before a dot, with their alignment.
fn timeless(picture: &str) -> String {
    let mut rest = picture;
    let mut text = String::new();
    while let Some(at) = [" s<", " s ·"].iter().filter_map(|unit| rest.find(unit)).min() {
        let before = rest[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end();
        text.push_str(before);
        text.push_str(" s");
        rest = &rest[at + 2..];
    }
    text + rest
}

fn fixed(stage: &Stage, size: (u16, u16)) -> Screen {
    let mut screen = stage.demo(size);
    ask(&mut screen, PROMPT);
    answer(&mut screen, "Allow this edit?", "1");
    answer(&mut screen, "Allow this command?", "1");
    screen.wait_for("370.");
    screen.wait_for("ready");
    screen
}

#[test]
fn hero() {
    let stage = Stage::new();
    let mut screen = fixed(&stage, (32, 100));
    check("hero", "parlor: an agent reads, edits and runs; diff and output", &mut screen);
}

#[test]
fn permission() {
    let stage = Stage::new();
    let mut screen = stage.demo((32, 100));
    ask(&mut screen, PROMPT);
    screen.wait_for("Allow this edit?");
    check("permission", "parlor: an edit is shown before it is allowed", &mut screen);
}

#[test]
fn side_by_side() {
    let stage = Stage::new();
    let mut screen = fixed(&stage, (20, 176));
    screen.send(ALL_CHANGES);
    screen.wait_for("s unified");
    check("side-by-side", "parlor: all changes of a session, old and new beside each other", &mut screen);
}

#[test]
fn plan() {
    let stage = Stage::new();
    let mut screen = fixed(&stage, (36, 100));
    screen.send(PLAN);
    screen.wait_for("✓ Multiply");
    check("plan", "parlor: the plan, and the calls that worked it off", &mut screen);
}

#[test]
fn picker() {
    let stage = Stage::new();
    let mut screen = stage.start(&["--config", "../../config.toml"], (24, 100));
    screen.wait_for("Demo agent");
    check("picker", "parlor: the choice of an agent", &mut screen);
}

#[test]
fn sign_in() {
    let stage = Stage::new();
    fs::write(stage.home.path().join("locked.sh"), LOCKED).unwrap();
    let program = stage.home.path().join("locked.sh").to_string_lossy().into_owned();
    let args = ["--config", "../../config.toml", "--agent-command", &format!("sh {program}")];
    let mut screen = stage.start(&args, (24, 80));
    screen.wait_for("API key");
    screen.wait_quiet();
    screen.send("\r");
    screen.wait_for("SHOP_API_KEY");
    screen.send("a secret");
    check("sign-in", "parlor: the key of an agent", &mut screen);
}

#[test]
fn palette() {
    let stage = Stage::new();
    let mut screen = stage.demo((24, 100));
    screen.send(PALETTE);
    screen.wait_for("Commands");
    check("palette", "parlor: commands found by name", &mut screen);
}

#[test]
fn small() {
    let stage = Stage::new();
    let mut screen = fixed(&stage, (12, 40));
    check("small", "parlor in forty columns and twelve lines", &mut screen);
}

#[test]
fn light() {
    let stage = Stage::new();
    let mut screen = stage.start(&["demo", "--config", "../../config.toml", "--theme", "light"], (32, 100));
    screen.wait_for("ready");
    ask(&mut screen, PROMPT);
    answer(&mut screen, "Allow this edit?", "1");
    answer(&mut screen, "Allow this command?", "1");
    screen.wait_for("370.");
    screen.wait_for("ready");
    check("light", "parlor with the light theme", &mut screen);
}
