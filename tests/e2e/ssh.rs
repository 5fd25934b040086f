//! An agent on another machine: authentication in the terminal, then the session.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::screen::Screen;

/// A fake ssh that runs commands locally. It requires authentication, and stores a key after it was interactive.
const SSH: &str = r#"#!/bin/sh
here=$(dirname "$0")
case " $* " in *" BatchMode=yes "*) may_ask= ;; *) may_ask=1 ;; esac
while [ "$1" != -- ]; do shift; done
if [ ! -e "$here/key" ]; then
    [ "$may_ask" ] || { echo "ada@build: Permission denied (password)." >&2; exit 255; }
    printf "ada@build's password: "
    read -r word
    [ "$word" = melon ] || { echo "ada@build: Permission denied (password)." >&2; exit 255; }
    : > "$here/key"
fi
exec sh -c "$3"
"#;

#[test]
fn a_host_that_requires_interaction_gets_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let remote = folder.path().join("far");
    fs::create_dir(&remote).unwrap();
    let ssh = folder.path().join("ssh");
    fs::write(&ssh, SSH).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let config = folder.path().join("own.toml");
    let agent = env!("CARGO_BIN_EXE_parlor");
    fs::write(
        &config,
        format!(
            "[agents.there]\nssh = \"ada@build\"\ncommand = \"{agent}\"\nargs = [\"demo-agent\"]\ncwd = \"{}\"\n",
            remote.display()
        ),
    )
    .unwrap();
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path: OsString = [folder.path().as_os_str(), ":".as_ref(), own.as_os_str()].into_iter().collect();
    let args = ["--config", config.to_str().unwrap(), "--agent", "there"];
    let variables: [(&str, &Path); 2] = [("PATH", Path::new(&path)), ("XDG_RUNTIME_DIR", folder.path())];
    let mut screen = Screen::start_with(folder.path(), &args, (24, 100), &variables);
    screen.wait_for("Sign in to ada@build");
    screen.wait_for("Permission denied");
    screen.wait_quiet();
    screen.send("\r");
    screen.wait_for("ada@build's password:");
    assert!(!screen.is_alternate(), "ssh runs on the main screen");
    screen.send("melon\r");
    screen.wait_for("ready");
    screen.wait_for("ada@build:");
    screen.send("hello");
    screen.wait_for("hello");
    screen.send("\r");
    screen.wait_for("Type / to choose a command");
    screen.wait_until("the end of the turn", |screen| {
        let text = screen.text();
        text.lines().any(|line| line.trim_start().starts_with("ready ")) && text.contains("ctx ")
    });
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}
