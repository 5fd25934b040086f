//! Writes a file. It is replaced atomically: the new content is completely on the disk before it gets the name.
//!
//! A new file has the owner, permissions, extended attributes and access control list of the old one. A file for which
//! that is not possible, or that has other names (hard links), is overwritten instead, and restored if that fails.

use std::ffi::OsStr;
use std::io::{self, Seek as _, Write as _};

use cap_std::fs::{Dir, File, Metadata};
use cap_tempfile::TempFile;

use super::attributes::{self, Privileges};
use super::fs_error::FsError;
use super::jobs::Stop;
use super::read::{check_kind, content, open};
use super::rooted_path::RootedPath;
use super::seen::Seen;
use crate::host::os::files;
use crate::host::os::links::{self, Open};

/// Writes the file unless it changed since `seen`; returns its new state. `may_have_names`: whether it was known that
/// the file may have other names.
pub(super) fn write(
    rooted: &RootedPath,
    (text, may_have_names): (&str, bool),
    seen: Option<Seen>,
    stop: &Stop,
) -> Result<Seen, FsError> {
    let mut old = match open(rooted) {
        Ok((file, meta)) => {
            refuse_changed(seen, &file, &meta)?;
            Some((file, meta))
        }
        // A deleted file is created again, which loses nothing.
        Err(FsError::Missing) => None,
        Err(trouble) => return Err(trouble),
    };
    stop.check()?;
    let (folder, name) = rooted.make_parent()?;
    let fill = |file: &mut File| file.write_all(text.as_bytes());
    match &mut old {
        None => replace(&folder, name, None, fill)?,
        Some((file, meta)) => {
            if links::name_count(meta) > 1 && !may_have_names {
                return Err(FsError::Escaped);
            }
            let mut same = open_protected(&folder, name, meta)?;
            let is_replaced = links::name_count(meta) == 1
                && match replace(&folder, name, Some((file, meta)), fill) {
                    Err(FsError::Unlike) => false,
                    other => other.map(|()| true)?,
                };
            if !is_replaced {
                overwrite(file, meta, &mut same, text.as_bytes())?;
            }
        }
    }
    Ok(Seen::content(text.as_bytes()))
}

fn refuse_changed(seen: Option<Seen>, file: &File, meta: &Metadata) -> Result<(), FsError> {
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

/// Opens the same file for writing. Replacing a file requires only permissions on the folder, so the permissions of the
/// file are checked too.
fn open_protected(folder: &Dir, name: &OsStr, old: &Metadata) -> Result<File, FsError> {
    let file = links::open_file(folder, name, Open::Write)?;
    let meta = file.metadata()?;
    check_kind(&meta)?;
    if files::is_same(&meta, old) { Ok(file) } else { Err(FsError::Changed) }
}

/// Writes a temporary file in the same folder and renames it. If anything fails before that, the old file is unchanged
/// and the new one is removed.
pub(super) fn replace(
    folder: &Dir,
    name: &OsStr,
    old: Option<(&File, &Metadata)>,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FsError> {
    let mut new = TempFile::new(folder)?;
    // Before the content is written, so that it is never readable by others.
    if let Some((file, meta)) = old
        && !attributes::copy(file, meta, new.as_file())?
    {
        return Err(FsError::Unlike);
    }
    fill(new.as_file_mut())?;
    if let Some((file, meta)) = old {
        Privileges::of(file, meta)?.set(new.as_file())?;
    }
    new.as_file().sync_all()?;
    new.replace(name)?;
    // Makes the rename durable. Some file systems do not support it; the content is safe in any case.
    files::sync_folder(folder);
    Ok(())
}

/// Writes the new content into the old file, which stays the same for its other names. If that fails, the old content is
/// written again.
pub(super) fn overwrite(
    old: &mut File,
    meta: &Metadata,
    file: &mut File,
    text: &[u8],
) -> Result<(), FsError> {
    let privileges = Privileges::of(old, meta)?;
    // What is not permitted before the write is not permitted after it.
    privileges.set(file).map_err(|_| FsError::Privileged)?;
    old.rewind()?;
    let before = content(old)?.ok_or(FsError::Irreplaceable { size_bytes: meta.len() })?;
    let mut put = |bytes: &[u8]| {
        file.rewind()?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        privileges.set(file)?;
        file.sync_all()
    };
    let Err(failed) = put(text) else { return Ok(()) };
    match put(&before) {
        Ok(()) => Err(failed.into()),
        Err(_) => Err(FsError::Damaged(failed)),
    }
}
