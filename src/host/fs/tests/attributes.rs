//! What a write keeps of a file.

use super::*;
use crate::host::os::fixtures;

/// An access control list as Linux stores it: version 2, then tag, permissions and id of each entry.
#[cfg(target_os = "linux")]
fn acl_for(user: u32) -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1, 6, none), (2, 6, user), (4, 4, none), (0x10, 6, none), (0x20, 0, none)];
    let entry = |(tag, permissions, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    2_u32.to_le_bytes().into_iter().chain(entries.into_iter().flat_map(entry)).collect()
}

/// `false`: the file system of the test has no extended attributes.
#[cfg(target_os = "linux")]
fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    match xattr::set(path, name, value) {
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => false,
        set => set.map(|()| true).unwrap(),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_keeps_attributes_and_access_control_lists() {
    let rig = rig();
    let path = rig.root.join("f");
    fs::write(&path, "old").unwrap();
    let acl = acl_for(1234);
    if !set_attribute(&path, "user.key", b"value") || !set_attribute(&path, "system.posix_acl_access", &acl) {
        return;
    }
    let before = (fixtures::mode(&path), files::identity(&path));
    rig.write("f", "new").unwrap();
    assert_eq!(xattr::get(&path, "user.key").unwrap().unwrap(), b"value");
    assert_eq!(xattr::get(&path, "system.posix_acl_access").unwrap().unwrap(), acl);
    assert_eq!((fixtures::mode(&path), files::identity(&path) == before.1), (before.0, false));
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_adds_no_access_control_list_of_the_folder() {
    let rig = rig();
    let path = rig.root.join("f");
    fs::write(&path, "old").unwrap();
    fixtures::set_mode(&path, 0o660);
    if !set_attribute(&rig.root, "system.posix_acl_default", &acl_for(1234)) {
        return;
    }
    rig.write("f", "new").unwrap();
    assert_eq!(xattr::get(&path, "system.posix_acl_access").unwrap(), None);
    assert_eq!(fixtures::mode(&path), 0o660);
}

#[test]
fn a_write_reaches_the_other_names_of_a_file() {
    let rig = rig();
    let (path, other) = (rig.root.join("f"), rig.root.join("other"));
    fs::write(&path, "a longer text").unwrap();
    fs::hard_link(&path, &other).unwrap();
    fixtures::set_mode(&path, 0o4755);
    let job = |text: &str| rig.job("f", FileOp::Write { content: text.to_owned() });
    let event = rig.serve(job("new"));
    assert_eq!(asked(event).why, AskReason::Protected(Protection::Linked), "they may be anywhere");
    let grants = vec![(Grant::WriteFile(path.clone()), GrantScope::Folder)];
    let policy = std::sync::Arc::new(Policy { grants, ..Policy::default() });
    let write = |text: &str| rig.done(FileJob { policy: std::sync::Arc::clone(&policy), ..job(text) });
    write("new").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "new");
    assert_eq!(files::identity(&path), files::identity(&other));
    assert_eq!(fixtures::mode(&path), 0o4755);
    assert_eq!(rig.names(), ["f", "other"]);
    // Such a file cannot be replaced, so that it must be possible to restore it.
    fs::File::options().write(true).open(&path).unwrap().set_len(MAX_READ_BYTES + 1).unwrap();
    rig.files.forget(ConnId(1));
    let error = write("newer").unwrap_err();
    assert!(error.message.contains("other names (hard links)"), "{}", error.message);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_is_restored_if_overwriting_it_fails() {
    use cap_std::fs::FileExt as _;
    // As if the disk were full.
    let mut file = cap_std::fs::File::from_std(fixtures::file_that_cannot_grow(&[b'o'; 10_000]));
    let (mut old, meta) = (file.try_clone().unwrap(), file.metadata().unwrap());
    let failed = write::overwrite(&mut old, &meta, &mut file, &vec![b'n'; 20_000]);
    assert!(matches!(failed, Err(FsError::Io(_))), "{failed:?}");
    let mut content = vec![0; 20_000];
    let len = file.read_at(&mut content, 0).unwrap();
    assert_eq!(content[..len], [b'o'; 10_000]);
}
