//! Unpacks an archive: zip, tar with gzip or bzip2, or a single program.
//!
//! Invariants: every entry stays below the folder; there are no links, devices or set-user-id bits; size and number of
//! entries are bounded, whatever the archive says.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use flate2::read::GzDecoder;

use crate::host::os::modes;

/// Maximum size of all files, in bytes.
const MAX_BYTES: u64 = 2 << 30;

const MAX_ENTRIES: usize = 50_000;

/// Unpacks an archive, known by the end of its URL, into an existing folder. `program`: the name of a single file.
///
/// # Errors
/// Why it is refused, as a sentence without a period.
pub fn unpack(archive: &Path, url: &str, folder: &Path, program: &str) -> Result<(), String> {
    let path = url.split(['?', '#']).next().unwrap_or(url).to_ascii_lowercase();
    let file = File::open(archive).map_err(|error| format!("cannot read the archive: {error}"))?;
    let mut room = Room { folder, bytes: MAX_BYTES, entries: MAX_ENTRIES };
    let is_of = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if is_of(&[".zip"]) {
        unzip(file, &mut room)
    } else if is_of(&[".tar.gz", ".tgz"]) {
        untar(GzDecoder::new(file), &mut room)
    } else if is_of(&[".tar.bz2", ".tbz2"]) {
        untar(MultiBzDecoder::new(file), &mut room)
    } else if is_of(&[".tar.xz", ".tar.zst", ".7z"]) {
        Err("this kind of archive is not supported".to_owned())
    } else {
        room.write(Path::new(program), file, true)
    }
}

struct Room<'a> {
    folder: &'a Path,
    bytes: u64,
    entries: usize,
}

impl Room<'_> {
    fn place(&mut self, name: &Path) -> Result<PathBuf, String> {
        self.entries = self.entries.checked_sub(1).ok_or("the archive has too many entries")?;
        let is_inside =
            name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_inside || name.as_os_str().is_empty() {
            return Err(format!("the archive has an entry outside of its folder: {}", name.display()));
        }
        Ok(self.folder.join(name))
    }

    fn write(&mut self, name: &Path, content: impl Read, is_program: bool) -> Result<(), String> {
        let place = self.place(name)?;
        let failed = |error: io::Error| format!("cannot write {}: {error}", place.display());
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        // An entry that exists already is a duplicate, or differs only in case.
        let mut file = File::create_new(&place).map_err(failed)?;
        let count = io::copy(&mut content.take(self.bytes + 1), &mut file).map_err(failed)?;
        self.bytes = self.bytes.checked_sub(count).ok_or("the archive is too large")?;
        modes::set_program(&place, is_program).map_err(failed)
    }

    fn make_folder(&mut self, name: &Path) -> Result<(), String> {
        // The folder itself.
        if name.components().all(|part| part == Component::CurDir) {
            return Ok(());
        }
        let place = self.place(name)?;
        fs::create_dir_all(&place).map_err(|error| format!("cannot create {}: {error}", place.display()))
    }
}

fn unzip(file: File, room: &mut Room<'_>) -> Result<(), String> {
    let damaged = |error: zip::result::ZipError| format!("the archive is damaged: {error}");
    let mut archive = zip::ZipArchive::new(file).map_err(damaged)?;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(damaged)?;
        let name = PathBuf::from(entry.name().map_err(damaged)?.as_ref());
        if entry.is_symlink() {
            return Err(format!("the archive has a link: {}", name.display()));
        }
        if entry.is_dir() {
            room.make_folder(&name)?;
        } else {
            let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            room.write(&name, entry, is_program)?;
        }
    }
    Ok(())
}

fn untar(file: impl Read, room: &mut Room<'_>) -> Result<(), String> {
    let damaged = |error: io::Error| format!("the archive is damaged: {error}");
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        match entry.header().entry_type() {
            tar::EntryType::Directory => room.make_folder(&name)?,
            tar::EntryType::Regular | tar::EntryType::Continuous => {
                let is_program = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                room.write(&name, entry, is_program)?;
            }
            tar::EntryType::XGlobalHeader => {}
            _ => return Err(format!("the archive has a link or a device: {}", name.display())),
        }
    }
    Ok(())
}
