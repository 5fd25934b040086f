//! Prompt templates and the configuration of a project.

use std::fs;
use std::path::Path;

use super::screen::Screen;

fn write(folder: &Path, path: &str, text: &str) {
    let file = folder.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Starts the demo agent with the configuration folder and the data folder in a folder.
fn start(folder: &Path, home: &Path) -> Screen {
    let (config, data) = (home.join("config.toml"), home.join("data"));
    let variables = [("PARLOR_CONFIG", config.as_path()), ("PARLOR_DATA_DIR", data.as_path())];
    write(home, "config.toml", "");
    Screen::start_with(folder, &["--new", "demo"], (30, 100), &variables)
}

fn leave(mut screen: Screen) {
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn a_template_of_the_user_is_sent_expanded() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = "---\ndescription: Greet someone\nargument-hint: <who> <when>\n---\nSay hello to $1 on $2!\n!touch ran\n";
    write(home.path(), "prompts/greet.md", text);
    let mut screen = start(folder.path(), home.path());
    screen.wait_for("ready");
    screen.send("/gree");
    screen.wait_for("user: Greet someone");
    screen.send("\t");
    screen.wait_for("/greet <who> <when>");
    screen.send("'Ann Lee' Monday");
    screen.wait_for("/greet 'Ann Lee' Monday");
    assert!(screen.text().contains("<who> <when>"), "the hint stays while arguments are typed");
    screen.send("\r");
    screen.wait_for("Say hello to Ann Lee on Monday!");
    screen.wait_for("!touch ran");
    screen.wait_for("ready");
    assert!(!folder.path().join("ran").exists());
    leave(screen);
}

#[test]
fn a_template_of_a_project_is_offered_after_a_review_and_reviewed_again_when_it_changed() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(folder.path(), ".parlor/prompts/check.md", "Check the style.");
    let mut screen = start(folder.path(), home.path());
    screen.wait_for("ready");
    screen.send("/che");
    screen.wait_for("project: 1 new or changed template");
    assert!(!screen.text().contains("project: Check"));
    screen.send("\r");
    screen.wait_for("Use this template of the project?");
    screen.wait_for("· Check the style.");
    screen.answer("2");
    screen.wait_for("project: Check the style.");
    screen.send("\r");
    screen.wait_gone("project: Check the style.");
    screen.send("\r");
    screen.wait_for("Check the style.");
    screen.wait_for("ready");

    write(folder.path(), ".parlor/prompts/check.md", "Delete everything.");
    screen.send("/che");
    screen.wait_for("project: 1 new or changed template");
    screen.send("ck now");
    screen.wait_for("/check now");
    screen.send("\r");
    // A prompt that calls it is not sent.
    screen.wait_for("· Delete everything.");
    screen.answer_beside_draft("3");
    screen.wait_gone("Use this template");
    screen.wait_for("/check now");
    assert!(!screen.text().contains("Delete everything"));
    leave(screen);
}

#[test]
fn the_configuration_of_a_project_is_used_after_consent() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(folder.path(), ".parlor/config.toml", "agent = \"demo\"\neditor = \"touch ran\"\n");
    let run = || {
        let (config, data) = (home.path().join("config.toml"), home.path().join("data"));
        let variables = [("PARLOR_CONFIG", config.as_path()), ("PARLOR_DATA_DIR", data.as_path())];
        write(home.path(), "config.toml", "");
        Screen::start_with(folder.path(), &["--new"], (30, 100), &variables)
    };
    let mut screen = run();
    screen.wait_for("Use the configuration of this project?");
    screen.wait_for("agent = \"demo\"");
    screen.answer("2");
    screen.wait_for("ready");
    screen.wait_for("`editor` is not allowed in a project's configuration");
    leave(screen);
    let mut screen = run();
    screen.wait_for("ready");
    assert!(!screen.text().contains("Use the configuration"));
    leave(screen);
    write(folder.path(), ".parlor/config.toml", "agent = \"demo\"\ntheme = \"light\"\n");
    let mut screen = run();
    screen.wait_for("theme = \"light\"");
    leave(screen);
}
