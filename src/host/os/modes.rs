//! Modes and owners of files that belong to the user. Those of parlor's own files are in `private`.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cap_std::fs::{Metadata, MetadataExt as _, PermissionsExt as _};
use rustix::fs::{Gid, Uid};

/// The set-user-id and set-group-id bits.
const SET_ID: u32 = 0o6000;

/// Sets the owner and group of a new file to those of the old one. `false`: not permitted.
pub fn keep_owner(file: &cap_std::fs::File, old: &Metadata) -> bool {
    let Ok(new) = file.metadata() else { return false };
    let uid = (new.uid() != old.uid()).then(|| Uid::from_raw(old.uid()));
    let gid = (new.gid() != old.gid()).then(|| Gid::from_raw(old.gid()));
    (uid.is_none() && gid.is_none()) || rustix::fs::fchown(file, uid, gid).is_ok()
}

/// Whether a program runs with the rights of the file's owner or group.
pub fn has_set_id(meta: &Metadata) -> bool {
    meta.permissions().mode() & SET_ID != 0
}

/// Whether the owner can run a file.
pub fn is_program(meta: &Metadata) -> bool {
    meta.permissions().mode() & 0o100 != 0
}

/// Makes a file a program for those who may read it, or for nobody.
pub fn set_program_bits(file: &cap_std::fs::File, is_program: bool) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    let wanted = if is_program { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
    if is_program == (mode & 0o100 != 0) {
        return Ok(());
    }
    file.set_permissions(cap_std::fs::Permissions::from_mode(wanted))
}

/// Sets the usual mode of a program, or of another file.
pub fn set_program(path: &Path, is_program: bool) -> io::Result<()> {
    let mode = if is_program { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}
