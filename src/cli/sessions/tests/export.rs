//! Files of exports: links, pipes and the exact bytes of diffs.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

use super::*;
use crate::cli::sessions::export;

#[test]
fn an_export_follows_links_and_keeps_pipes() {
    let fixture = Fixture::new();
    let id = fixture.record("/here", "fix this", "done");
    let at = |name: &str| fixture.dir.path().join(name);
    std::fs::write(at("target.md"), "old").unwrap();
    std::os::unix::fs::symlink("target.md", at("link.md")).unwrap();
    fixture.run(&["export", &id, "-o", at("link.md").to_str().unwrap(), "--force"]);
    assert!(at("link.md").symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(at("target.md")).unwrap().starts_with("# fix this"));
    std::os::unix::fs::symlink("new.md", at("dangling.md")).unwrap();
    fixture.run(&["export", &id, "-o", at("dangling.md").to_str().unwrap(), "--force"]);
    assert!(at("dangling.md").symlink_metadata().unwrap().is_symlink() && at("new.md").is_file());
    let pipe = at("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let export = ["export", &id, "-o", pipe.to_str().unwrap(), "--force"];
    let refusal = fixture.try_run(&export, None).unwrap_err();
    let refusal = format!("{refusal:#}");
    assert!(refusal.contains("nothing reads from the pipe"), "{refusal}");
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut reader = std::fs::File::options().read(true).custom_flags(nonblocking).open(&pipe).unwrap();
    fixture.run(&export);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("# fix this"));
}

#[test]
fn exported_diffs_keep_line_ends_and_blanks() {
    let mut text = String::new();
    export::fence(&mut text, "diff", "-a\r\n+B\r\n+\t");
    assert_eq!(text, "```diff\n-a\r\n+B\r\n+\t\n```\n\n");
    assert_eq!(export::sanitized_line("+B\u{1b}[1m\r\n"), "+B\r\n");
}
