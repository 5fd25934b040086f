//! Search and links.

use super::screen::Screen;

fn start(folder: &tempfile::TempDir, config: &str) -> Screen {
    let file = folder.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let args = ["demo", "--config", file.to_str().unwrap()];
    let mut screen = Screen::start_sized(folder.path(), &args, 30, 100);
    screen.wait_for("ready");
    screen
}

fn quit(screen: &mut Screen) {
    screen.send("\x11");
    assert!(screen.wait_exit().success());
}

#[test]
fn matches_are_counted_browsed_and_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, "");
    screen.send("show me a tour\r");
    screen.wait_for("Step 1 of 5");
    screen.wait_for("ready");
    screen.send("\x06");
    screen.wait_for("type to search");
    screen.send("Welc");
    screen.wait_for("1 of 1");
    screen.send("\x7f\x7f\x7f\x7fYOU ");
    screen.wait_for("no match");
    // Lowercase queries ignore case.
    screen.send("\x7f\x7f\x7f\x7fyou ");
    let line = |screen: &Screen| {
        let text = screen.text();
        text.lines().find(|line| line.contains("find you")).unwrap_or_default().trim_end().to_owned()
    };
    let at = |screen: &Screen, ordinal: &str| line(screen).ends_with(&format!(" {ordinal} of 4"));
    screen.wait_until("the first hit", |screen| at(screen, "1"));
    screen.send("\r");
    screen.wait_until("the second hit", |screen| at(screen, "2"));
    screen.send("\x1b[A");
    screen.wait_until("the first hit again", |screen| at(screen, "1"));
    // Regular expressions are toggled with a key.
    screen.send("\x1br");
    screen.wait_for("regex you");
    screen.send("\x1b");
    screen.wait_gone("regex you");
    // Letters are typed into the prompt again.
    screen.send("hello");
    screen.wait_for("› hello");
    screen.send("\x03");
    screen.wait_gone("› hello");
    quit(&mut screen);
}

#[test]
fn browse_mode_uses_letters_as_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, "");
    screen.send("show me a tour\r");
    screen.wait_for("Step 1 of 5");
    screen.wait_for("ready");
    screen.send("\t");
    screen.wait_for("Focus: transcript");
    screen.send("l");
    screen.wait_for("Outline");
    screen.wait_for("prompt  show me a tour");
    screen.send("\r");
    screen.wait_gone("Outline");
    screen.send("/welcome\r");
    screen.wait_for("1 of 1");
    screen.send("\x1b");
    screen.wait_gone("find welcome");
    screen.send("\t");
    screen.wait_gone("Focus: transcript");
    quit(&mut screen);
}
