use std::fs;

use super::*;
use crate::host::os::files;
use crate::host::os::sandbox::Bounds;
use crate::model::Sandbox;

fn plan() -> Plan {
    let bounds = Bounds {
        write: vec!["/w".into(), "/own/demo".into()],
        write_only: vec!["/home/u".into()],
        devices: vec!["/dev/null".into()],
        ..Bounds::default()
    };
    let covers = vec![
        Cover::Pinned("/w/.git".into()),
        Cover::ReadOnly("/w/.git/hooks".into()),
        Cover::Terminals("/dev/pts".into()),
        Cover::Hidden("/run/u".into(), vec!["/run/u/ssh".into()]),
    ];
    let secrets = vec!["/home/u/.config/gh".into(), "/own".into()];
    Plan { bounds, covers, secrets, readable: vec!["/own/agents".into()], ..Plan::default() }
}

#[test]
fn the_whole_profile_of_a_plan() {
    let expected = r#"(version 1)
(allow default)
(deny signal process-info* mach-priv-task-port)
(allow signal process-info* mach-priv-task-port (target same-sandbox))
(deny appleevent-send lsopen job-creation user-preference-write)
(deny process-exec (literal "/bin/launchctl"))
(deny file-write* file-link)
(allow file-write* (subpath "/dev/fd"))
(allow file-write*
  (subpath "/w")
  (subpath "/own/demo")
  (subpath "/home/u")
  (subpath "/dev/null"))
(deny file-read* file-write* file-clone
  (subpath "/home/u/.config/gh")
  (subpath "/own"))
(allow file-read*
  (subpath "/own/agents"))
(allow file-read* file-write*
  (subpath "/own/demo"))
(deny file-write*
  (subpath "/w/.git/hooks"))
(deny file-write-unlink
  (literal "/home/u")
  (literal "/home/u/.config")
  (literal "/w")
  (literal "/w/.git"))
(deny file-read* file-write* network-outbound
  (subpath "/run/u"))
(allow file-read* file-write* network-outbound
  (literal "/run/u/ssh"))
(deny file-read* file-write* (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+"))
(allow file-read* file-write*
  (require-all (regex #"^/dev/ttys[0-9]+") (extension "com.apple.sandbox.pty")))
(allow file-read-metadata)
"#;
    let arguments = arguments(&plan()).unwrap();
    assert_eq!(arguments, ["-p", expected, "--"]);
}

#[test]
fn a_rule_without_paths_is_left_out() {
    let text = profile(&Plan::default()).unwrap();
    assert_eq!(text, format!("{START}{TERMINALS}(allow file-read-metadata)\n"));
}

#[test]
fn protected_paths_are_denied_after_their_folder_is_allowed() {
    let text = profile(&plan()).unwrap();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
    let allowed = at("(allow file-write*\n");
    for rule in
        ["(deny file-write*\n", "(deny file-write-unlink\n", "(deny file-read* file-write* file-clone\n"]
    {
        assert!(allowed < at(rule), "{rule}");
    }
    assert!(at("(subpath \"/own\")") < at("(subpath \"/own/agents\")"), "the exception comes later");
}

#[test]
fn only_named_ports_are_allowed_and_hidden_sockets_never() {
    let ports = |ports: Option<Vec<u16>>| {
        let mut plan = plan();
        plan.bounds.ports = ports;
        profile(&plan).unwrap()
    };
    let text = ports(Some(vec![443, 80]));
    let rules = "(deny network-outbound (remote ip))\n(allow network-outbound (remote tcp \"*:443\"))\n\
                 (allow network-outbound (remote tcp \"*:80\"))\n(deny file-read* file-write* network-outbound\n";
    assert!(text.contains(rules), "{text}");
    assert!(ports(Some(Vec::new())).contains("(remote ip))\n(deny file-read*"));
    assert!(!ports(None).contains("(remote"));
}

#[test]
fn hostile_names_do_not_end_a_string() {
    let name = "/w/a\"))(allow file-write*\\\" (subpath \"/\n;\\";
    let plan = Plan { covers: vec![Cover::ReadOnly(name.into())], secrets: vec![name.into()], ..plan() };
    let text = profile(&plan).unwrap();
    let quoted = r#"(subpath "/w/a\"))(allow file-write*\\\" (subpath \"/\n;\\")"#;
    assert_eq!(text.matches(quoted).count(), 2, "{text}");
    // Read as the language does, no string is left open and all of them are paths, expressions or extensions.
    let (mut strings, mut rest) = (Vec::new(), text.as_str());
    while let Some((_, begun)) = rest.split_once('"') {
        let mut escaped = false;
        let end = begun.find(|sign| {
            let is_end = sign == '"' && !escaped;
            escaped = sign == '\\' && !escaped;
            is_end
        });
        let (string, after) = begun.split_at(end.unwrap_or_else(|| panic!("open: {begun}")));
        strings.push(string);
        rest = &after[1..];
    }
    let is_known = |it: &&str| it.starts_with('/') || it.starts_with('^') || it.starts_with("com.");
    assert!(strings.iter().all(is_known), "{strings:?}");
    assert_eq!(strings.iter().filter(|it| it.contains("allow")).count(), 3, "also a folder above");
}

#[test]
fn folders_of_a_session_are_in_the_profile() {
    let base = tempfile::tempdir().unwrap();
    let real = base.path().canonicalize().unwrap();
    let (home, work) = (real.join("home"), real.join("work \"x"));
    for folder in [".ssh", "Library/Keychains", "Library/Caches", "Library/Application Support/Google/Chrome"]
    {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::create_dir_all(&work).unwrap();
    fs::write(home.join(".ssh/config"), "x").unwrap();
    fs::write(work.join(".envrc"), "x").unwrap();
    let wanted = Sandbox { folders: vec![work.clone()], ..Sandbox::default() };
    let plan = Plan::of(&wanted, |name| (name == "HOME").then(|| home.clone().into()));
    let text = profile(&plan).unwrap();
    let rule = |begin: &str| {
        let found = text.split("\n(").find(|rule| rule.starts_with(begin) && rule.contains("\n  ("));
        found.unwrap_or_else(|| panic!("{begin} is not in {text}"))
    };
    let has = |begin: &str, path: &Path| rule(begin).contains(&quoted(path).unwrap());
    assert!(has("allow file-write*", &work) && has("allow file-write*", &home.join("Library/Caches")));
    assert!(has("deny file-write*", &work.join(".envrc")));
    for secret in [".ssh", "Library/Keychains", "Library/Application Support/Google/Chrome"] {
        assert!(has("deny file-read* file-write* file-clone", &home.join(secret)), "{secret}");
        assert!(!has("allow file-write*", &home.join(secret)), "{secret}");
    }
    assert!(has("allow file-read*", &home.join(".ssh/config")));
}

#[test]
fn a_name_that_is_not_text_is_an_error() {
    let path = PathBuf::from(files::from_bytes(b"/w/\xff"));
    let plan = Plan { secrets: vec![path], ..Plan::default() };
    assert!(profile(&plan).unwrap_err().ends_with("is not valid Unicode"));
}
