//! Sign-in with a command of the agent, which gets the terminal.
//! Source: ACP v1 authentication, methods of type `terminal`.

use std::fs;
use std::path::{Path, PathBuf};

use super::modes::Modes;
use super::screen::Screen;

/// An agent that requires sign-in until its command has created a file.
const AGENT: &str = r#"
if [ "$1" = --login ]; then
    printf 'Name of your friend: '
    read -r name
    [ "$name" = melon ] || { echo "That is no friend."; exit 3; }
    : > account
    exit 0
fi
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"own","name":"Its own command","type":"terminal","args":["--login"]}]}}\n' "$id" ;;
    *'"session/new"'*)
        if [ -e account ]; then
            printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$id"
        else
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}\n' "$id"
        fi ;;
    *'"session/prompt"'*)
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"welcome in"}}}}\n'
        printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    esac
done
"#;

fn start(folder: &Path) -> Screen {
    let agent: PathBuf = folder.join("agent.sh");
    fs::write(&agent, AGENT).unwrap();
    let mut screen = Screen::start(folder, &["--", "sh", agent.to_str().unwrap()]);
    screen.wait_for("Its own command");
    screen.wait_quiet();
    screen
}

/// The command is shown, and runs after confirmation.
fn allow(screen: &mut Screen) {
    screen.wait_for("Run this command to sign in?");
    screen.wait_for("--login");
    screen.answer("2");
}

/// The main screen still has earlier questions.
fn wait_for_questions(screen: &mut Screen, count: usize) {
    screen.wait_until(&format!("question {count}"), |screen| {
        screen.text().matches("Name of your friend:").count() == count
    });
}

#[test]
fn acp_v1_terminal_sign_in_gets_the_terminal_and_then_the_session_opens() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(folder.path());
    screen.send("\r");
    allow(&mut screen);
    screen.wait_for("Name of your friend:");
    assert!(!screen.is_alternate(), "the command runs on the main screen");
    assert_eq!(Modes::of(&screen.raw).left(), [""; 0], "default modes");
    // The terminal echoes and edits the line.
    screen.send("melom\u{7f}n\r");
    screen.wait_for("ready");
    assert!(screen.is_alternate());
    assert!(Modes::of(&screen.raw).is_on(2004), "all modes are enabled again");
    screen.send("hello");
    screen.wait_for("hello");
    screen.send("\r");
    screen.wait_for("welcome in");
    screen.wait_until("the end of the turn", |screen| !screen.text().contains("working"));
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
    assert_eq!(Modes::of(&screen.raw).left(), [""; 0]);
}

#[test]
fn acp_v1_failed_terminal_sign_in_is_reported_and_can_be_retried() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(folder.path());
    screen.send("\r");
    allow(&mut screen);
    screen.wait_for("Name of your friend:");
    screen.send("stranger\r");
    screen.wait_for("Sign-in failed");
    assert!(screen.is_alternate());
    screen.wait_for("exited with code 3");
    screen.wait_for("That is no friend.");
    // Enter with an empty prompt opens the list again.
    screen.send("\r");
    screen.wait_for("type to filter");
    screen.send("\r");
    allow(&mut screen);
    wait_for_questions(&mut screen, 2);
    // Ctrl+C is sent to the command, not to parlor.
    screen.send("\u{3}");
    screen.wait_until("parlor's screen", Screen::is_alternate);
    screen.send("\r");
    screen.wait_for("type to filter");
    screen.send("\r");
    allow(&mut screen);
    wait_for_questions(&mut screen, 3);
    screen.send("melon\r");
    screen.wait_for("ready");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}
