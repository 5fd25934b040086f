//! Each rule of the policy, and attempts of a hostile agent to bypass it.

use std::ffi::OsStr;

use proptest::prelude::*;

use super::*;
use crate::model::{ContentBlock, TerminalCommand, ToolContent, ToolInput, ToolKind};

fn policy() -> Policy {
    Policy {
        home: Some("/home/u".into()),
        own_folders: vec!["/home/u/.config/parlor".into(), "/srv/parlor-data".into()],
        ..Policy::default()
    }
}

fn write(path: &str) -> Access {
    Access::Write { path: path.into() }
}

fn run(line: &str) -> Access {
    Access::Run(CommandAccess { line: line.into(), cwd: "/code".into(), env: Vec::new() })
}

fn by_rule(by: AllowedBy, rule: &str) -> Verdict {
    Verdict::Allow(Allowance { rule: Some(rule.to_owned()), ..by.into() })
}

/// The verdict for a write in `/code`.
fn of_write(policy: &Policy, path: &str) -> Verdict {
    let root = Path::new("/code");
    let protection = protection_of(Path::new(path), Some(root), policy);
    let facts = Facts { is_inside: Path::new(path).starts_with(root), protection, is_covered: false };
    decide(policy, &write(path), &facts)
}

const INSIDE: Facts = Facts { is_inside: true, protection: None, is_covered: false };
const COVERED: Facts = Facts { is_inside: true, protection: None, is_covered: true };

#[test]
fn protected_files_need_confirmation_in_any_spelling() {
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git",
        "sub/.git",
        "sub/.git/modules/x/config",
        ".GIT/hooks/x",
        ".Git\u{200c}/config",
        ".git./config",
        "GIT~1/config",
        ".envrc",
        "deep/er/.ENVRC",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".mcp.json",
        ".husky/pre-push",
        ".githooks/x",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pre-commit-config.yaml",
        ".gitattributes",
        ".gitmodules",
        ".gitconfig",
        ".cargo/config",
        ".cargo/config.toml",
        ".cargo/bin/cargo",
        ".claude/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".parlor/config.toml",
        ".Parlor/prompts/git/commit.md",
        ".openoxide/parlor.lock",
        ".bashrc",
        ".zshenv",
        ".profile",
        ".ssh/authorized_keys",
        "lefthook.yml",
        ".hg/hgrc",
        "sub/mise.toml",
        ".bazelrc",
        "opencode.json",
        ".kiro/settings/mcp.json",
        ".roo/mcp.json",
        "x.code-workspace",
        ".venv/bin/activate",
        "venv/lib/x.pth",
        ".github/workflows/ci.yml",
        "docs/commondir",
        "docs/config.worktree",
        ".unknown-tool",
        ".unknown/config.yaml",
        ".env",
    ] {
        let verdict = of_write(&policy(), &format!("/code/{path}"));
        assert!(matches!(verdict, Verdict::Ask(AskReason::Protected(_))), "{path}: {verdict:?}");
    }
    for path in [
        "src/main.rs",
        ".gitignore",
        "git/x",
        "envrc",
        "sub/.hidden",
        ".dockerignore",
        ".editorconfig",
        "config.toml",
    ] {
        let verdict = of_write(&policy(), &format!("/code/{path}"));
        assert_eq!(verdict, Verdict::Allow(AllowedBy::InsideRoots.into()), "{path}");
    }
}

#[test]
fn own_and_home_folders_are_protected() {
    let of = |path: &str| protection_of(Path::new(path), None, &policy());
    assert_eq!(of("/home/u/.config/parlor/config.toml"), Some(Protection::Own));
    assert_eq!(of("/home/u/.CONFIG/parlor/config.toml"), Some(Protection::Own));
    assert_eq!(of("/srv/parlor-data/grants/x"), Some(Protection::Own));
    assert_eq!(of("/home/u/.config/autostart/x.desktop"), Some(Protection::Startup));
    assert_eq!(of("/home/u/.local/bin/git"), Some(Protection::Startup));
    assert_eq!(of("/home/u/.cargo/credentials.toml"), Some(Protection::Keys));
    assert_eq!(of("/home/u/code/x"), None);
    let own_folders = vec!["/home/u/.local/share/parlor".into()];
    let policy = Policy { own_folders, ..policy() };
    let of = |path: &str| protection_of(Path::new(path), Some(Path::new("/home/u/.local/share")), &policy);
    assert_eq!(of("/home/u/.local/share/parlor-worktrees/shop-1/fix/src/a.rs"), None);
    assert_eq!(of("/home/u/.local/share/parlor-worktrees/shop-1/fix/.envrc"), Some(Protection::Tool));
    assert_eq!(of("/home/u/.local/share/parlor-worktree/a"), Some(Protection::Startup));
}

#[test]
fn every_write_needs_confirmation_if_the_root_is_home_or_a_parent() {
    let policy = policy();
    for root in ["/", "/home", "/home/u", "/HOME/u"] {
        let root = Path::new(root);
        let protection = protection_of(Path::new("/home/u/notes.txt"), Some(root), &policy);
        assert_eq!(protection, Some(Protection::WideRoot), "{root:?}");
        let facts = Facts { protection, ..INSIDE };
        let verdict = decide(&policy, &write("/home/u/notes.txt"), &facts);
        assert_eq!(verdict, Verdict::Ask(AskReason::Protected(Protection::WideRoot)));
        let covered = decide(&policy, &write("/home/u/notes.txt"), &Facts { is_covered: true, ..facts });
        assert_eq!(covered, Verdict::Allow(AllowedBy::ApprovedCall.into()));
    }
    assert_eq!(protection_of(Path::new("/home/u/code/x"), Some(Path::new("/home/u/code")), &policy), None);
    let homeless = Policy { home: None, ..policy };
    assert_eq!(
        protection_of(Path::new("/etc/hosts"), Some(Path::new("/")), &homeless),
        Some(Protection::WideRoot)
    );
}

#[test]
fn approved_calls_cover_protected_files_except_parlors_own() {
    let decided = |facts| decide(&policy(), &write("/code/.git/config"), &facts);
    for protection in [Protection::Git, Protection::Tool, Protection::Keys] {
        let facts = Facts { protection: Some(protection), ..INSIDE };
        assert_eq!(decided(facts), Verdict::Ask(AskReason::Protected(protection)));
        let covered = Facts { is_covered: true, ..facts };
        assert_eq!(decided(covered), Verdict::Allow(AllowedBy::ApprovedCall.into()));
        let outside = Facts { is_inside: false, ..covered };
        assert_eq!(decided(outside), Verdict::Ask(AskReason::Outside));
    }
    let own = Facts { protection: Some(Protection::Own), ..COVERED };
    assert_eq!(decided(own), Verdict::Ask(AskReason::Protected(Protection::Own)));
}

#[test]
fn a_bare_repository_is_detected_while_it_is_created() {
    let has = |names: &'static [&'static str]| move |name: &str| names.contains(&name);
    assert!(is_repository(has(&["HEAD", "objects", "refs"]), OsStr::new("config")));
    assert!(is_repository(has(&["objects", "refs"]), OsStr::new("HEAD")));
    assert!(is_repository(has(&["objects"]), OsStr::new("head")));
    assert!(is_repository(has(&["HEAD"]), OsStr::new("config")));
    assert!(is_repository(has(&["config"]), OsStr::new("HEAD")));
    assert!(is_repository(has(&["HEAD"]), OsStr::new("objects")));
    assert!(!is_repository(has(&["refs"]), OsStr::new("notes")));
    assert!(!is_repository(has(&["config"]), OsStr::new("objects")));
    assert!(!is_repository(has(&[]), OsStr::new("HEAD")));
}

#[test]
fn writes_inside_are_allowed_unless_configured_otherwise() {
    assert_eq!(decide(&policy(), &write("/code/a"), &INSIDE), Verdict::Allow(AllowedBy::InsideRoots.into()));
    let rules = PolicyRules { ask_writes: true, ..PolicyRules::default() };
    let requests = Policy { rules, ..policy() };
    assert_eq!(decide(&requests, &write("/code/a"), &INSIDE), Verdict::Ask(AskReason::Write));
    assert_eq!(
        decide(&requests, &write("/code/a"), &COVERED),
        Verdict::Allow(AllowedBy::ApprovedCall.into())
    );
    let outside = decide(&requests, &write("/etc/x"), &Facts { is_inside: false, ..COVERED });
    assert_eq!(outside, Verdict::Ask(AskReason::Outside), "an approved call does not extend the folders");
}

#[test]
fn commands_need_confirmation_unless_covered_or_configured() {
    let request_id = Verdict::Ask(AskReason::Command);
    assert_eq!(decide(&policy(), &run("ls"), &INSIDE), request_id);
    assert_eq!(decide(&policy(), &run("ls"), &COVERED), Verdict::Allow(AllowedBy::ApprovedCall.into()));
    let outside = Facts { is_inside: false, ..COVERED };
    assert_eq!(decide(&policy(), &run("ls"), &outside), Verdict::Ask(AskReason::CommandOutside));
    let rules = PolicyRules { ask_commands: false, ..PolicyRules::default() };
    let open = Policy { rules, ..policy() };
    assert_eq!(
        decide(&open, &run("ls"), &INSIDE),
        by_rule(AllowedBy::Configuration, "policy.ask_commands = false")
    );
    let remote = Policy { is_remote: true, ..open };
    assert_eq!(decide(&remote, &run("ls"), &INSIDE), request_id);
}

#[test]
fn sign_ins_of_remote_agents_start_no_program() {
    let access = Access::SignIn { line: "login".into() };
    assert_eq!(decide(&policy(), &access, &COVERED), Verdict::Ask(AskReason::SignIn));
    let remote = Policy { is_remote: true, ..policy() };
    assert_eq!(decide(&remote, &access, &COVERED), Verdict::Refuse(RefusedBy::RemoteSignIn));
}

#[test]
fn grants_cover_only_what_was_requested() {
    let granted = |access: &Access, why| {
        let grant = Grant::of(access, why, Some(Path::new("/home/u"))).unwrap();
        Policy { grants: vec![(grant, GrantScope::Folder)], ..policy() }
    };
    let held = |rule| by_rule(AllowedBy::Grant(GrantScope::Folder), rule);
    let outside = Facts { is_inside: false, ..INSIDE };

    let of_run = granted(&run("make"), AskReason::Command);
    assert_eq!(decide(&of_run, &run("make"), &INSIDE), held("run \"make\" in /code"));
    assert_eq!(decide(&of_run, &run("make install"), &INSIDE), Verdict::Ask(AskReason::Command));
    let elsewhere = Access::Run(CommandAccess { line: "make".into(), cwd: "/tmp".into(), env: Vec::new() });
    assert_eq!(decide(&of_run, &elsewhere, &INSIDE), Verdict::Ask(AskReason::Command));
    let env = vec![("PATH".into(), "/tmp".into())];
    let with_env = Access::Run(CommandAccess { line: "make".into(), cwd: "/code".into(), env });
    assert_eq!(decide(&of_run, &with_env, &INSIDE), Verdict::Ask(AskReason::Command));

    let git = Facts { protection: Some(Protection::Git), ..INSIDE };
    let of_hook = granted(&write("/code/.git/hooks/a"), AskReason::Protected(Protection::Git));
    assert_eq!(decide(&of_hook, &write("/code/.git/hooks/a"), &git), held("write /code/.git/hooks/a"));
    let other = Verdict::Ask(AskReason::Protected(Protection::Git));
    assert_eq!(decide(&of_hook, &write("/code/.git/hooks/b"), &git), other);

    let of_folder = granted(&write("/out/a"), AskReason::Outside);
    assert_eq!(decide(&of_folder, &write("/out/b"), &outside), held("write files in /out"));
    assert_eq!(decide(&of_folder, &write("/out/sub/b"), &outside), Verdict::Ask(AskReason::Outside));
    assert_eq!(decide(&of_folder, &write("/out/.envrc"), &Facts { is_inside: false, ..git }), other);
    assert_eq!(
        decide(&of_folder, &Access::Read { path: "/out/b".into() }, &outside),
        Verdict::Ask(AskReason::Outside)
    );

    let of_read = granted(&Access::Read { path: "/home/u/.netrc".into() }, AskReason::Outside);
    let sibling = Access::Read { path: "/home/u/.history".into() };
    assert_eq!(
        decide(&of_read, &sibling, &outside),
        Verdict::Ask(AskReason::Outside),
        "the home folder is never granted as a whole"
    );
}

#[test]
fn grant_of_all_commands_excludes_other_folders_and_unsafe_variables() {
    let policy = Policy { grants: vec![(Grant::AnyCommand, GrantScope::Session)], ..policy() };
    let rule = "run any command in the session's folders";
    let held = by_rule(AllowedBy::Grant(GrantScope::Session), rule);
    let with = |name: &str| {
        let env = vec![(name.to_owned(), "1".to_owned())];
        Access::Run(CommandAccess { line: "make".into(), cwd: "/code".into(), env })
    };
    assert_eq!(decide(&policy, &run("make"), &INSIDE), held);
    assert_eq!(decide(&policy, &run("rm -r build"), &INSIDE), held);
    assert_eq!(decide(&policy, &with("NO_COLOR"), &INSIDE), held);
    assert_eq!(decide(&policy, &with("LD_PRELOAD"), &INSIDE), Verdict::Ask(AskReason::Command));
    let outside = Facts { is_inside: false, ..INSIDE };
    assert_eq!(decide(&policy, &run("make"), &outside), Verdict::Ask(AskReason::CommandOutside));
    let git = Facts { protection: Some(Protection::Git), ..INSIDE };
    let hook = decide(&policy, &write("/code/.git/hooks/a"), &git);
    assert_eq!(hook, Verdict::Ask(AskReason::Protected(Protection::Git)), "it does not cover writes");
}

#[test]
fn listed_commands_show_variable_names_but_not_values() {
    let env = vec![("API_KEY".to_owned(), "hush".to_owned()), ("PATH".to_owned(), "/tmp".to_owned())];
    let grant = Grant::Run(CommandAccess { line: "make".into(), cwd: "/code".into(), env });
    assert_eq!(grant.description(), "run \"make\" in /code with \"API_KEY\", \"PATH\" set");
}

fn shown(kind: ToolKind, title: &str, text: Option<&str>, command: Option<&str>) -> Vec<String> {
    let content: Vec<ToolContent> =
        text.into_iter().map(|text| ToolContent::Block(ContentBlock::Text(text.into()))).collect();
    let input = ToolInput { command: command.map(str::to_owned), ..ToolInput::default() };
    approved_lines(kind, title, &content, &input)
}

#[test]
fn commands_are_found_in_the_forms_of_real_agents() {
    assert_eq!(shown(ToolKind::Execute, "List", None, Some("ls -la")), ["ls -la"]);
    let kimi = "Requesting approval to perform: Run command `git log | grep \"`x`\"`";
    assert_eq!(shown(ToolKind::Other, "Shell: git log", Some(kimi), None), ["git log | grep \"`x`\""]);
    assert_eq!(shown(ToolKind::Other, "Shell: ls -la", None, None), ["ls -la"]);
    assert_eq!(shown(ToolKind::Execute, "`ls -la`", None, None), ["ls -la"]);
    assert_eq!(shown(ToolKind::Execute, "List", Some("```sh\nls -la\n```"), None), ["ls -la"]);
    let fast = shown(ToolKind::Execute, "run", None, Some("/bin/sh -lc 'ls -la'"));
    assert_eq!(fast, ["/bin/sh -lc 'ls -la'", "ls -la"]);
}

#[test]
fn commands_that_are_only_mentioned_are_not_approved() {
    assert_eq!(shown(ToolKind::Execute, "`rm -rf ~`", Some("`rm -rf ~`"), Some("ls")), ["ls"]);
    let none: [&str; 0] = [];
    assert_eq!(shown(ToolKind::Other, "Help", Some("I will never run `rm -rf ~`"), None), none);
    assert_eq!(shown(ToolKind::Edit, "rm -rf ~", None, None), none);
    assert_eq!(shown(ToolKind::Other, "ls", Some("a text that is no command"), None), none);
    assert_eq!(shown(ToolKind::Execute, "x", None, Some("ls\u{202e}")), none, "hidden characters");
    assert_eq!(shown(ToolKind::Execute, "x", None, Some("")), none);
    assert_eq!(shown(ToolKind::Execute, "x", Some("```sh\nls\n```\nand\n```sh\nid\n```"), None), none);
}

#[test]
fn titles_that_look_different_on_one_line_approve_nothing() {
    let none: [&str; 0] = [];
    for title in ["ls # all\ntouch x", "ls  # all", "ls\ttouch", "ls\u{3000}x", "ls\u{a0}x"] {
        assert_eq!(shown(ToolKind::Execute, title, None, None), none, "{title:?}");
    }
    let long = format!("ls {}", "a".repeat(COMMAND_MAX_BYTES));
    assert_eq!(shown(ToolKind::Execute, "x", None, Some(&long)), none);
}

#[test]
fn only_wrappers_of_known_shells_are_removed() {
    let line = |command: &str, args: &[&str]| {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        shell_line(&TerminalCommand { command: command.into(), args, ..TerminalCommand::default() })
    };
    assert_eq!(line("/bin/sh", &["-lc", "ls | wc"]), "ls | wc");
    assert_eq!(line("bash", &["-c", "ls"]), "ls");
    assert_eq!(line("ls -la", &[]), "ls -la");
    assert_eq!(line("ls", &["-la", "a b"]), "ls -la 'a b'");
    assert_eq!(line("./sh", &["-c", "ls"]), "./sh -c ls");
    assert_eq!(line("/code/bash", &["-c", "ls"]), "/code/bash -c ls");
    assert_eq!(line("sh", &["-c", "ls", "x"]), "sh -c ls x");
    assert_eq!(line("sh", &["ls"]), "sh ls");
}

#[test]
fn unsafe_variables_are_detected() {
    let is_plain = |pairs: &[(&str, &str)]| {
        let env: Vec<_> = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        is_plain_environment(&env)
    };
    assert!(is_plain(&[]));
    assert!(is_plain(&[("TERM", "dumb"), ("LC_ALL", "C"), ("PAGER", "cat"), ("NO_COLOR", "1")]));
    for name in
        ["PATH", "LD_PRELOAD", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND", "EDITOR", "IFS", "X"]
    {
        assert!(!is_plain(&[(name, "cat")]), "{name}");
    }
    assert!(!is_plain(&[("PAGER", "sh -c id")]));
    for (name, value) in [("LC_ALL", "../x"), ("LANGUAGE", "/tmp/x"), ("TERM", "/tmp/x"), ("TZ", ":/tmp/x")] {
        assert!(!is_plain(&[(name, value)]), "{name} can name a file");
    }
}

proptest! {
    /// An approval covers exactly the line that the approved call shows.
    #[test]
    fn approval_covers_its_own_line_only(approved in "[ -~]{1,20}", other in "[ -~]{1,20}") {
        let lines = shown(ToolKind::Execute, "x", None, Some(&approved));
        if lines.contains(&other) && other != approved {
            let parts = shell_words::split(&approved).unwrap();
            prop_assert_eq!(parts.len(), 3);
            prop_assert_eq!(&parts[2], &other);
        }
        let line = shell_line(&TerminalCommand { command: approved.clone(), ..TerminalCommand::default() });
        prop_assert_eq!(line, approved);
    }

    /// Everything below `.git` is protected, in any case.
    #[test]
    fn everything_below_git_is_protected(before in "[a-z]{0,5}", after in "[a-zA-Z._-]{1,8}", upper in any::<[bool; 3]>()) {
        let git: String =
            "git".chars().zip(upper).map(|(c, up)| if up { c.to_ascii_uppercase() } else { c }).collect();
        let path = format!("/code/{before}/.{git}/{after}");
        prop_assert!(matches!(of_write(&policy(), &path), Verdict::Ask(AskReason::Protected(_))));
    }
}

#[test]
fn reads_of_key_files_are_granted_one_by_one() {
    let read = |path: &str| Access::Read { path: path.into() };
    let grant = |path: &str| Grant::of(&read(path), AskReason::Outside, None).unwrap();
    for path in ["/home/u/.ssh/known_hosts", "/srv/tls/server.key", "/srv/app/.env.local"] {
        assert_eq!(grant(path), Grant::ReadFile(path.into()), "{path}");
    }
    let next_to = grant("/srv/app/notes.txt");
    assert_eq!(next_to, Grant::ReadIn("/srv/app".into()));
    assert!(next_to.covers(&read("/srv/app/other.txt"), &INSIDE));
    assert!(!next_to.covers(&read("/srv/app/.env"), &INSIDE));
}
