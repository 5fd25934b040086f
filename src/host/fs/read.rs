//! Reads a text file through the handle of its folder, without blocking on pipes.

use std::io::{BufReader, Read as _, Seek as _, SeekFrom};

use cap_std::fs::{File, Metadata};

use super::MAX_READ_BYTES;
use super::fs_error::FsError;
use super::jobs::Stop;
use super::lines::{MAX_SKIPPED_BYTES, Window, find_line, read_window};
use super::rooted_path::RootedPath;
use super::seen::Seen;
use crate::host::os::links::{self, Open};

/// Reads the requested lines; also returns the state of the file.
pub(super) fn read(
    rooted: &RootedPath,
    line: Option<u32>,
    limit: Option<u32>,
    stop: &Stop,
) -> Result<(String, Seen), FsError> {
    stop.check()?;
    let (mut file, meta) = open(rooted)?;
    let window = Window::new(line, limit);
    let max_bytes = usize::try_from(MAX_READ_BYTES).unwrap_or(usize::MAX);
    let too_large = || FsError::TooLarge { size_bytes: meta.len() };
    let (bytes, seen) = if meta.len() <= MAX_READ_BYTES {
        let whole = content(&file)?.ok_or_else(too_large)?;
        let seen = Seen::content(&whole);
        let part = if window.is_whole() { Some(whole) } else { read_window(&*whole, window, max_bytes)? };
        (part.unwrap_or_default(), seen)
    } else if window.is_whole() {
        return Err(too_large());
    } else {
        let part = match find_line(&file, window, MAX_SKIPPED_BYTES, stop)? {
            Some(start) => {
                file.seek(SeekFrom::Start(start))?;
                read_window(BufReader::with_capacity(1 << 16, file), window.at_start(), max_bytes)?
            }
            None => Some(Vec::new()),
        };
        (part.ok_or_else(too_large)?, Seen::metadata(&meta))
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| FsError::NotText { at_bytes: error.utf8_error().valid_up_to() })?;
    Ok((text, seen))
}

/// The content of a file; `None`: over the limit, although the metadata said otherwise (`/proc` files report size 0).
pub(super) fn content(file: &File) -> Result<Option<Vec<u8>>, FsError> {
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_READ_BYTES).then_some(bytes))
}

/// Opens a regular file. The kind is checked before, because opening a device can have effects, and after, because the
/// name may refer to another file by then.
pub(super) fn open(rooted: &RootedPath) -> Result<(File, Metadata), FsError> {
    let (folder, name) = rooted.parent()?;
    let meta = folder.symlink_metadata(name)?;
    if meta.is_symlink() {
        return Err(FsError::Escaped);
    }
    check_kind(&meta)?;
    let file = links::open_file(&folder, name, Open::Read)?;
    let meta = file.metadata()?;
    check_kind(&meta)?;
    Ok((file, meta))
}

/// Rejects anything but regular files.
pub(super) fn check_kind(meta: &Metadata) -> Result<(), FsError> {
    if meta.is_dir() {
        Err(FsError::Folder)
    } else if meta.is_file() {
        Ok(())
    } else {
        Err(FsError::Special)
    }
}
