use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::host::os::files;
use crate::host::os::fixtures;
use crate::model::policy::{AskReason, Grant, GrantScope, Policy, PolicyRules};
use crate::model::{DiffChange, FileDiff, RpcError};

mod attributes;
mod held;
mod jobs;

struct Rig {
    files: Files,
    dir: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
}

fn rig() -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, outside) = (base.join("root"), base.join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    Rig { files: Files::new(), dir, root, outside }
}

impl Rig {
    fn job(&self, path: impl AsRef<Path>, op: FileOp) -> FileJob {
        FileJob {
            conn: ConnId(1),
            request_id: RequestId(7),
            session: SessionKey(1),
            path: self.root.join(path),
            roots: vec![self.root.clone()],
            policy: std::sync::Arc::default(),
            allowed: None,
            missing_reads_empty: false,
            holding: crate::model::held::Holding::default(),
            op,
        }
    }

    fn serve(&self, job: FileJob) -> ServiceEvent {
        self.files.accept(job).serve()
    }

    fn read(&self, path: impl AsRef<Path>) -> Result<String, RpcError> {
        self.done(self.job(path, FileOp::Read { line: None, limit: None })).map(Option::unwrap)
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<(), RpcError> {
        let written = self.done(self.job(path, FileOp::Write { content: text.to_owned() }))?;
        assert_eq!(written, None);
        Ok(())
    }

    fn done(&self, job: FileJob) -> Result<Option<String>, RpcError> {
        match self.serve(job) {
            ServiceEvent::FileDone { conn: ConnId(1), request_id: RequestId(7), result, .. } => result,
            other => panic!("{other:?}"),
        }
    }

    fn outside(&self, path: impl AsRef<Path>) -> PathBuf {
        let read = self.job(&path, FileOp::Read { line: None, limit: None });
        let write = self.job(&path, FileOp::Write { content: "x".to_owned() });
        match (self.serve(read), self.serve(write)) {
            (ServiceEvent::FileAsks { asked, .. }, ServiceEvent::FileAsks { asked: again, .. }) => {
                assert_eq!((asked.why, again.why), (AskReason::Outside, AskReason::Outside));
                let (Access::Read { path }, Access::Write { path: other }) = (asked.access, again.access)
                else {
                    panic!("only reads and writes")
                };
                assert_eq!(path, other);
                path
            }
            other => panic!("{other:?}"),
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&self.root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn acp_v1_parts_of_files_have_their_original_line_ends() {
    let rig = rig();
    fs::write(rig.root.join("f"), "one\r\ntwo\n\nfour").unwrap();
    fs::write(rig.root.join("empty"), "").unwrap();
    let table: &[(&str, Option<u32>, Option<u32>, &str)] = &[
        ("f", None, None, "one\r\ntwo\n\nfour"),
        ("f", Some(1), None, "one\r\ntwo\n\nfour"),
        ("f", Some(0), Some(1), "one\r\n"),
        ("f", None, Some(2), "one\r\ntwo\n"),
        ("f", Some(2), Some(2), "two\n\n"),
        ("f", Some(4), Some(1), "four"),
        ("f", Some(4), Some(9), "four"),
        ("f", Some(5), None, ""),
        ("f", Some(u32::MAX), Some(u32::MAX), ""),
        ("f", None, Some(0), ""),
        ("f", Some(2), Some(0), ""),
        ("empty", None, None, ""),
        ("empty", Some(1), Some(1), ""),
    ];
    for (path, line, limit, expected) in table {
        let job = rig.job(path, FileOp::Read { line: *line, limit: *limit });
        assert_eq!(rig.done(job).unwrap().unwrap(), *expected, "{path} {line:?} {limit:?}");
    }
}

#[test]
fn acp_v1_missing_files_are_resource_not_found_with_the_path() {
    let rig = rig();
    let error = rig.read("no \"such\"").unwrap_err();
    assert_eq!(error.code, RpcError::RESOURCE_NOT_FOUND);
    let data = error.data.unwrap().0.to_string();
    assert!(data.starts_with("{\"uri\":\"/") && data.ends_with("no \\\"such\\\"\"}"), "{data}");
}

#[test]
fn missing_files_are_empty_for_agents_with_that_quirk() {
    let rig = rig();
    let mut job = rig.job("none", FileOp::Read { line: None, limit: None });
    job.missing_reads_empty = true;
    assert_eq!(rig.done(job).unwrap().unwrap(), "");
    rig.write("none", "made").unwrap();
    assert_eq!(rig.read("none").unwrap(), "made");
}

#[test]
fn paths_that_are_not_text_files_are_errors() {
    let rig = rig();
    fs::create_dir(rig.root.join("folder")).unwrap();
    fs::write(rig.root.join("latin"), b"caf\xe9").unwrap();
    let made = std::process::Command::new("mkfifo").arg(rig.root.join("pipe")).status().unwrap();
    assert!(made.success());
    for (path, expected) in [
        ("folder", "is a folder"),
        ("", "is a folder"),
        ("pipe", "device, pipe"),
        ("latin", "not UTF-8 text (first invalid byte: 3"),
    ] {
        let error = rig.read(path).unwrap_err();
        assert!(error.message.contains(expected), "{path}: {}", error.message);
    }
    for (path, expected) in [("folder", "is a folder"), ("", "is a folder"), ("pipe", "device, pipe")] {
        let error = rig.write(path, "x").unwrap_err();
        assert!(error.message.contains(expected), "{path}: {}", error.message);
    }
    let mut device = rig.job("/dev/zero", FileOp::Read { line: None, limit: Some(1) });
    device.roots = vec![PathBuf::from("/dev")];
    assert!(rig.done(device).unwrap_err().message.contains("device"));
    let relative = FileJob { path: "f".into(), ..rig.job("f", FileOp::Read { line: None, limit: None }) };
    assert!(rig.done(relative).unwrap_err().message.contains("absolute"));
}

#[test]
fn large_files_can_only_be_read_in_parts() {
    let rig = rig();
    let file = fs::File::create(rig.root.join("large")).unwrap();
    (&file).write_all(b"first\nsecond\n").unwrap();
    file.set_len(MAX_READ_BYTES + (1 << 20)).unwrap();
    assert!(rig.read("large").unwrap_err().message.contains("33 MiB"));
    let part = rig.job("large", FileOp::Read { line: Some(2), limit: Some(1) });
    assert_eq!(rig.done(part).unwrap().unwrap(), "second\n");
    let rest = rig.job("large", FileOp::Read { line: Some(2), limit: None });
    assert_eq!(rig.done(rest).unwrap_err().code, RpcError::INTERNAL);
}

#[test]
fn paths_outside_of_the_roots_ask_with_the_canonical_path() {
    let rig = rig();
    fixtures::link(rig.outside.join("secret"), rig.root.join("link"));
    fixtures::link("../outside", rig.root.join("folder"));
    fixtures::link(rig.outside.join("new"), rig.root.join("dangling"));
    fs::create_dir(rig.root.join("sub")).unwrap();
    let secret = rig.outside.join("secret");
    for path in
        ["link", "folder/secret", "../outside/secret", "sub/../../outside/secret", "no/../../outside/secret"]
    {
        assert_eq!(rig.outside(path), secret, "{path}");
    }
    assert_eq!(rig.outside("dangling"), rig.outside.join("new"));
    assert_eq!(rig.outside("folder/a/b"), rig.outside.join("a/b"));
    // A folder whose name starts with the name of the root is not inside of it.
    assert_eq!(rig.outside("../root-2/f"), rig.dir.path().canonicalize().unwrap().join("root-2/f"));
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    assert!(!rig.outside.join("new").exists());
}

#[test]
fn paths_outside_of_the_roots_are_served_only_if_that_path_was_allowed() {
    let rig = rig();
    fixtures::link(rig.outside.join("secret"), rig.root.join("link"));
    let mut job = rig.job("link", FileOp::Write { content: "changed".to_owned() });
    assert!(matches!(rig.serve(job.clone()), ServiceEvent::FileAsks { .. }));
    // The link changes while the user reads the question.
    fs::remove_file(rig.root.join("link")).unwrap();
    fixtures::link(rig.outside.join("other"), rig.root.join("link"));
    job.allowed = Some(AllowedBy::You.into());
    let asked_again = rig.serve(job.clone());
    assert!(
        matches!(&asked_again, ServiceEvent::FileAsks { asked, .. }
            if matches!(&asked.access, Access::Write { path } if path.ends_with("other"))),
        "{asked_again:?}"
    );
    rig.done(job).unwrap();
    assert_eq!(fs::read_to_string(rig.outside.join("other")).unwrap(), "changed");
    assert_eq!(fs::read_to_string(rig.outside.join("secret")).unwrap(), "secret");
}

/// A permission applies to a path that was shown; for others the user is asked first.
#[test]
fn a_permission_without_a_shown_path_is_not_accepted() {
    let rig = rig();
    let mut job =
        FileJob { path: rig.outside.join("secret"), ..rig.job("f", FileOp::Write { content: "x".into() }) };
    job.allowed = Some(AllowedBy::You.into());
    assert!(matches!(rig.serve(job.clone()), ServiceEvent::FileAsks { .. }));
    let other = FileJob { request_id: RequestId(job.request_id.0 + 1), ..job.clone() };
    assert!(matches!(rig.serve(other), ServiceEvent::FileAsks { .. }));
    assert_eq!(fs::read_to_string(rig.outside.join("secret")).unwrap(), "secret");
    rig.done(job).unwrap();
    assert_eq!(fs::read_to_string(rig.outside.join("secret")).unwrap(), "x");
}

#[test]
fn links_inside_the_roots_are_followed() {
    let rig = rig();
    fs::create_dir(rig.root.join("real")).unwrap();
    fs::write(rig.root.join("real/f"), "old").unwrap();
    // Absolute, and through a second link.
    fixtures::link(rig.root.join("real"), rig.root.join("by"));
    fixtures::link("by/f", rig.root.join("link"));
    assert_eq!(rig.read("link").unwrap(), "old");
    rig.write("link", "new").unwrap();
    assert!(rig.root.join("link").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(rig.root.join("real/f")).unwrap(), "new");
    fixtures::link("loop-b", rig.root.join("loop-a"));
    fixtures::link("loop-a", rig.root.join("loop-b"));
    assert!(rig.read("loop-a").unwrap_err().message.contains("too many levels"));
}

#[test]
fn a_root_may_be_a_link() {
    let rig = rig();
    fs::write(rig.root.join("f"), "text").unwrap();
    fixtures::link(&rig.root, rig.dir.path().join("alias"));
    let mut job = rig.job("f", FileOp::Read { line: None, limit: None });
    job.roots = vec![rig.dir.path().join("alias")];
    assert_eq!(rig.done(job).unwrap().unwrap(), "text");
}

#[test]
fn a_folder_replaced_by_a_link_after_the_check_is_an_error() {
    let rig = rig();
    fs::create_dir(rig.root.join("sub")).unwrap();
    fs::write(rig.root.join("sub/secret"), "mine").unwrap();
    let rooted = rooted_path::locate(&rig.root.join("sub/secret"), std::slice::from_ref(&rig.root)).unwrap();
    fs::rename(rig.root.join("sub"), rig.root.join("moved")).unwrap();
    fixtures::link(&rig.outside, rig.root.join("sub"));
    assert!(matches!(read::read(&rooted, None, None, &Stop::default()), Err(FsError::Escaped)));
    assert!(matches!(write::write(&rooted, ("x", false), None, &Stop::default()), Err(FsError::Escaped)));
    assert!(matches!(rooted.make_parent(), Err(FsError::Escaped)));
    assert_eq!(fs::read_to_string(rig.outside.join("secret")).unwrap(), "secret");
}

#[test]
fn racing_links_never_leave_the_roots() {
    let rig = rig();
    let stop = Arc::new(AtomicBool::new(false));
    let (folder, link) = (rig.root.join("sub"), rig.root.join("link"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("secret"), "mine").unwrap();
    fixtures::link(&rig.outside, &link);
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                fixtures::exchange(&folder, &link);
            }
        }
    });
    for _ in 0..1500 {
        let read = rig.serve(rig.job("sub/secret", FileOp::Read { line: None, limit: None }));
        if let ServiceEvent::FileDone { result: Ok(text), .. } = read {
            assert_eq!(text.unwrap(), "mine");
        }
    }
    for _ in 0..150 {
        rig.serve(rig.job("sub/secret", FileOp::Write { content: "mine".to_owned() }));
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(fs::read_to_string(rig.outside.join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&rig.outside).unwrap().count(), 1);
}

#[test]
fn acp_v1_a_write_creates_the_file_and_its_folders() {
    let rig = rig();
    rig.write("a/b/c.txt", "text\n").unwrap();
    assert_eq!(fs::read_to_string(rig.root.join("a/b/c.txt")).unwrap(), "text\n");
    rig.write("a/b/c.txt", "").unwrap();
    assert_eq!(fs::read_to_string(rig.root.join("a/b/c.txt")).unwrap(), "");
    fs::write(rig.root.join("file"), "").unwrap();
    assert_eq!(rig.write("file/below", "x").unwrap_err().code, RpcError::INTERNAL);
}

#[test]
fn a_write_preserves_the_mode_and_replaces_the_file() {
    let rig = rig();
    let path = rig.root.join("script");
    fs::write(&path, "old").unwrap();
    fixtures::set_mode(&path, 0o2750);
    let identity = files::identity(&path);
    rig.write("script", "new").unwrap();
    assert_eq!(fixtures::mode(&path), 0o2750);
    assert_ne!(files::identity(&path), identity, "the old file is complete for its readers");
    assert_eq!(rig.names(), ["script"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_does_not_change_the_old_file() {
    let rig = rig();
    fs::write(rig.root.join("f"), "old").unwrap();
    let dir = cap_std::fs::Dir::open_ambient_dir(&rig.root, cap_std::ambient_authority()).unwrap();
    let (file, old) = (dir.open("f").unwrap(), dir.metadata("f").unwrap());
    let failed = write::replace(&dir, "f".as_ref(), Some((&file, &old)), |file| {
        file.write_all(b"half of the new")?;
        // The error of a full disk.
        fs::OpenOptions::new().write(true).open("/dev/full")?.write_all(b"x")
    });
    assert!(
        matches!(&failed, Err(FsError::Io(error)) if error.kind() == std::io::ErrorKind::StorageFull),
        "{failed:?}"
    );
    assert_eq!(fs::read_to_string(rig.root.join("f")).unwrap(), "old");
    assert_eq!(rig.names(), ["f"], "no temporary file is left");
}

#[test]
fn a_write_protected_file_is_unchanged() {
    let rig = rig();
    let path = rig.root.join("f");
    fs::write(&path, "old").unwrap();
    fixtures::set_mode(&path, 0o444);
    // A superuser can write it anyway.
    let may_write = fs::OpenOptions::new().write(true).open(&path).is_ok();
    assert_eq!(rig.write("f", "new").is_ok(), may_write);
    assert_eq!(fs::read_to_string(&path).unwrap(), if may_write { "new" } else { "old" });
}

#[test]
fn files_that_changed_since_they_were_read_are_not_written() {
    let rig = rig();
    let path = rig.root.join("f");
    fs::write(&path, "one").unwrap();
    rig.read("f").unwrap();
    // The same size, within the resolution of timestamps.
    fs::write(&path, "two").unwrap();
    let error = rig.write("f", "three").unwrap_err();
    assert!(error.message.contains("changed since you read it"), "{}", error.message);
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    rig.read("f").unwrap();
    rig.write("f", "three").unwrap();
    rig.write("f", "four").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "four");
}

#[test]
fn only_changed_contents_prevent_a_write() {
    let rig = rig();
    let path = rig.root.join("f");
    fs::write(&path, "one").unwrap();
    let part = rig.job("f", FileOp::Read { line: Some(1), limit: Some(1) });
    rig.done(part).unwrap();
    // Saved again with the same content.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "one").unwrap();
    rig.write("f", "two").unwrap();
    // Writing a deleted file loses nothing.
    fs::remove_file(&path).unwrap();
    rig.write("f", "three").unwrap();
    // A write of another agent counts as a change.
    let mut other = rig.job("f", FileOp::Write { content: "theirs".to_owned() });
    other.conn = ConnId(2);
    assert!(matches!(rig.serve(other), ServiceEvent::FileDone { result: Ok(None), .. }));
    assert!(rig.write("f", "four").is_err());
    rig.files.forget(ConnId(1));
    rig.write("f", "four").unwrap();
}

#[test]
fn files_created_since_the_last_check_are_not_written() {
    let rig = rig();
    rig.read("f").unwrap_err();
    fs::write(rig.root.join("f"), "theirs").unwrap();
    assert!(rig.write("f", "mine").unwrap_err().message.contains("created since you last checked"));
    assert_eq!(fs::read_to_string(rig.root.join("f")).unwrap(), "theirs");
}

fn asked(event: ServiceEvent) -> AskedFile {
    match event {
        ServiceEvent::FileAsks { asked, .. } => *asked,
        other => panic!("no question: {other:?}"),
    }
}

fn write_of(rig: &Rig, path: &str) -> FileJob {
    rig.job(path, FileOp::Write { content: "x\n".to_owned() })
}

#[test]
fn protected_files_are_recognized_under_any_path() {
    let rig = rig();
    fs::create_dir_all(rig.root.join(".git/hooks")).unwrap();
    fixtures::link(".git/hooks/pre-commit", rig.root.join("notes.txt"));
    fixtures::link(".git", rig.root.join("plain"));
    fs::create_dir(rig.root.join("sub")).unwrap();
    let hook = rig.root.join(".git/hooks/pre-commit");
    for path in
        [".git/hooks/pre-commit", "notes.txt", "plain/hooks/pre-commit", "sub/../.git/./hooks/pre-commit"]
    {
        let AskedFile { access, why, change, .. } = asked(rig.serve(write_of(&rig, path)));
        assert_eq!(access, Access::Write { path: hook.clone() }, "{path}");
        assert_eq!(why, AskReason::Protected(Protection::Git), "{path}");
        assert_eq!(change.unwrap().diff.unwrap().path, hook, "the canonical path is shown");
    }
    assert!(!hook.exists());
    let mut job = write_of(&rig, "notes.txt");
    rig.serve(job.clone());
    job.allowed = Some(AllowedBy::You.into());
    rig.done(job).unwrap();
    assert_eq!(fs::read_to_string(hook).unwrap(), "x\n");
}

#[test]
fn bare_repositories_are_protected_while_they_are_created() {
    let rig = rig();
    let mut requests = Vec::new();
    for path in ["bare/config", "bare/objects/a", "bare/refs/a", "bare/HEAD", "bare/config"] {
        let event = rig.serve(write_of(&rig, path));
        requests.push(matches!(event, ServiceEvent::FileAsks { .. }));
    }
    assert_eq!(requests, [false, false, true, true, false]);
    assert!(!rig.root.join("bare/refs").exists() && !rig.root.join("bare/HEAD").exists());
}

#[test]
fn a_write_reports_its_change() {
    let rig = rig();
    fs::write(rig.root.join("f"), "old\n").unwrap();
    let event = rig.serve(write_of(&rig, "f"));
    let ServiceEvent::FileDone { result: Ok(None), served: Some(served), .. } = event else {
        panic!("{event:?}")
    };
    assert_eq!(served.allowed.by, AllowedBy::InsideRoots);
    let FileDiff { path, change } = served.change.unwrap().diff.unwrap();
    assert_eq!(path, rig.root.join("f"));
    assert_eq!(change, DiffChange::Texts { old: Some("old\n".into()), new: "x\n".into() });
    let read = rig.serve(rig.job("f", FileOp::Read { line: None, limit: None }));
    assert!(matches!(read, ServiceEvent::FileDone { served: None, .. }), "{read:?}");
}

#[test]
fn grants_and_settings_apply_to_file_requests() {
    let rig = rig();
    let with =
        |policy: Policy, path: &str| FileJob { policy: std::sync::Arc::new(policy), ..write_of(&rig, path) };
    let rules = PolicyRules { ask_writes: true, ..PolicyRules::default() };
    let event = rig.serve(with(Policy { rules, ..Policy::default() }, "f"));
    assert_eq!(asked(event).why, AskReason::Write);
    let home = Some(rig.root.clone());
    let event = rig.serve(with(Policy { home, ..Policy::default() }, "f"));
    assert_eq!(asked(event).why, AskReason::Protected(Protection::WideRoot));
    let grants = vec![(Grant::WriteFile(rig.root.join(".envrc")), GrantScope::Folder)];
    let policy = Policy { grants, ..Policy::default() };
    rig.done(with(policy.clone(), ".envrc")).unwrap();
    assert_eq!(asked(rig.serve(with(policy, ".npmrc"))).why, AskReason::Protected(Protection::Tool));
}

/// An agent that replaces a folder with a link within the root must not reach a protected file with a job that was
/// approved as an ordinary one.
#[test]
fn a_link_created_after_the_check_never_reaches_a_protected_file() {
    let rig = rig();
    fs::create_dir_all(rig.root.join(".git/hooks")).unwrap();
    fs::create_dir(rig.root.join("real")).unwrap();
    let (real, link, at) = (rig.root.join("real"), rig.root.join("link"), rig.root.join("src"));
    fixtures::link(".git/hooks", &link);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = fs::rename(&real, &at);
                let _ = fs::rename(&at, &real);
                let _ = fs::rename(&link, &at);
                let _ = fs::rename(&at, &link);
            }
        });
        for _ in 0..3000 {
            let _ = rig.serve(write_of(&rig, "src/pre-commit"));
            assert!(!rig.root.join(".git/hooks/pre-commit").exists());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
