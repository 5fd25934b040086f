//! Replaces a file atomically: the new content is completely on the disk before it gets the name.

use std::ffi::OsStr;
use std::io::{self, Write as _};

use cap_std::fs::{Dir, File, Metadata};
use cap_tempfile::TempFile;

use super::fs_error::FsError;
use super::read::{check_kind, content, open};
use super::rooted_path::RootedPath;
use super::seen::Seen;
use crate::services::unix;

/// Writes the file unless it changed since `seen`; returns its new state.
pub(super) fn write(rooted: &RootedPath, text: &str, seen: Option<Seen>) -> Result<Seen, FsError> {
    let old = match open(rooted) {
        Ok((file, meta)) => {
            refuse_changed(seen, file, &meta)?;
            Some(meta)
        }
        // A deleted file is created again, which loses nothing.
        Err(FsError::Missing) => None,
        Err(trouble) => return Err(trouble),
    };
    let (folder, name) = rooted.make_parent()?;
    if old.is_some() {
        refuse_protected(&folder, name)?;
    }
    replace(&folder, name, old.as_ref(), |file| file.write_all(text.as_bytes()))?;
    Ok(Seen::content(text.as_bytes()))
}

fn refuse_changed(seen: Option<Seen>, file: File, meta: &Metadata) -> Result<(), FsError> {
    match seen {
        None => Ok(()),
        Some(Seen::Missing) => Err(FsError::Appeared),
        Some(seen @ Seen::Metadata(_)) if seen == Seen::metadata(meta) => Ok(()),
        Some(seen @ Seen::Content(_)) => match content(file)? {
            Some(bytes) if Seen::content(&bytes) == seen => Ok(()),
            _ => Err(FsError::Changed),
        },
        Some(Seen::Metadata(_)) => Err(FsError::Changed),
    }
}

/// Replacing a file requires only permissions on the folder, so the permissions of the file are checked too.
fn refuse_protected(folder: &Dir, name: &OsStr) -> Result<(), FsError> {
    check_kind(&unix::open_file(folder, name, true)?.metadata()?)
}

/// Writes a temporary file in the same folder and renames it. If anything fails before that, the old file is unchanged
/// and the new one is removed.
pub(super) fn replace(
    folder: &Dir,
    name: &OsStr,
    old: Option<&Metadata>,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FsError> {
    let mut new = TempFile::new(folder)?;
    if let Some(old) = old {
        // Before the content is written, so that it is never readable by others.
        unix::keep_owner(new.as_file(), old);
        new.as_file().set_permissions(old.permissions())?;
    }
    fill(new.as_file_mut())?;
    if let Some(old) = old {
        // Again, because writing clears the set-user-id bits.
        new.as_file().set_permissions(old.permissions())?;
    }
    new.as_file().sync_all()?;
    new.replace(name)?;
    // Makes the rename durable. Some file systems do not support it; the content is safe in any case.
    unix::sync_folder(folder);
    Ok(())
}
