//! Looks at paths of the folder and changes them, without following links.
//!
//! A path is opened folder by folder. All changes of the user's files by a restore are made here.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::compare::id_of;
use super::{Entry, Kind, SnapshotError, Snapshots};
use crate::host::fs::attributes;
use crate::host::os::links::{self, Open};
use crate::host::os::{files, modes};

/// What a path is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    Entry(Entry),
    Folder,
    /// Something that is neither read nor written, with the reason.
    Other(String),
}

impl Found {
    pub(super) fn entry(&self) -> Option<&Entry> {
        if let Self::Entry(entry) = self { Some(entry) } else { None }
    }

    /// Whether it is exactly this.
    pub(super) fn is(&self, expected: Option<&Entry>) -> bool {
        !matches!(self, Self::Folder | Self::Other(_)) && self.entry() == expected
    }
}

/// Why a change of a path failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The path is not as expected, or cannot be changed safely. It is unchanged.
    Refused(String),
    Failed(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// The open folder of the snapshots.
pub(super) struct Root<'a> {
    snapshots: &'a Snapshots,
    dir: Dir,
}

/// A name in an open folder.
struct Place {
    parent: Dir,
    name: OsString,
}

impl<'a> Root<'a> {
    /// Fails if a link has taken the place of the folder or of one above it.
    pub(super) fn open(snapshots: &'a Snapshots) -> Result<Self, SnapshotError> {
        let dir = Dir::open_ambient_dir("/", ambient_authority())
            .and_then(|top| {
                snapshots.folder.iter().skip(1).try_fold(top, |dir, part| links::open_folder(&dir, part))
            })
            .map_err(SnapshotError::file("open", &snapshots.folder))?;
        Ok(Self { snapshots, dir })
    }

    pub(super) fn find(&self, path: &Path) -> Found {
        match self.place(path, false) {
            Ok(Some(place)) => self.find_in(&place).unwrap_or_else(|error| Found::Other(error.to_string())),
            Ok(None) => Found::Absent,
            Err(Trouble::Refused(why)) => Found::Other(why),
            Err(Trouble::Failed(error)) => Found::Other(error.to_string()),
        }
    }

    /// Opens the folder of a path; `None`: there is no such folder. `makes`: creates missing ones.
    fn place(&self, path: &Path, makes: bool) -> Result<Option<Place>, Trouble> {
        let refused = |why: &str| Err(Trouble::Refused(why.to_owned()));
        let is_safe = |part: Component<'_>| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
        let (true, Some(name)) = (path.components().all(is_safe), path.file_name()) else {
            return refused("the path leads out of the folder or into a repository");
        };
        let mut folder = self.dir.try_clone()?;
        for part in path.parent().unwrap_or(Path::new("")) {
            let mut next = links::open_folder(&folder, part);
            if makes && next.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                step()?;
                folder.create_dir(part)?;
                next = links::open_folder(&folder, part);
            }
            folder = match next {
                Ok(next) => next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => match folder.symlink_metadata(part) {
                    Ok(meta) if meta.is_symlink() => return refused("a folder above it is a symbolic link"),
                    Ok(meta) if !meta.is_dir() && !makes => return Ok(None),
                    Ok(meta) if !meta.is_dir() => return refused("a folder above it is a file now"),
                    _ => return Err(error.into()),
                },
            };
            let git = folder.symlink_metadata(".git");
            if git.is_ok_and(|meta| meta.is_file() || meta.is_symlink())
                || folder.symlink_metadata(".git/HEAD").is_ok()
            {
                return refused("it is in a repository in the folder");
            }
        }
        Ok(Some(Place { parent: folder, name: name.to_owned() }))
    }

    fn find_in(&self, place: &Place) -> io::Result<Found> {
        let other = |why: &str| Ok(Found::Other(why.to_owned()));
        let meta = match place.parent.symlink_metadata(&place.name) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(error),
        };
        if self.snapshots.ignores_case && !has_exactly(place)? {
            return other("another file has this name in another case");
        }
        if meta.is_symlink() {
            let target = place.parent.read_link_contents(&place.name)?;
            let id = id_of(files::bytes(target.as_os_str()));
            return Ok(Found::Entry(Entry { kind: Kind::Link, id }));
        }
        if meta.is_dir() {
            return Ok(Found::Folder);
        }
        if !meta.is_file() {
            return other("it is neither a file nor a link");
        }
        let file = links::open_file(&place.parent, &place.name, Open::Read)?;
        let meta = file.metadata()?;
        if !meta.is_file() || links::name_count(&meta) > 1 {
            return other("it has other names (hard links), whose content would change or differ");
        }
        let limit = self.snapshots.limits.max_file_bytes;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return other("it is larger than the limit of snapshots");
        }
        let kind = if modes::is_program(&meta) { Kind::Program } else { Kind::File };
        Ok(Found::Entry(Entry { kind, id: id_of(&bytes) }))
    }

    /// Removes a file or link that is exactly this.
    pub(super) fn remove(&self, path: &Path, expected: Option<&Entry>) -> Result<(), Trouble> {
        let Some(place) = self.place(path, false)? else { return Ok(()) };
        self.check(&place, expected)?;
        if expected.is_some() {
            step()?;
            place.parent.remove_file(&place.name)?;
            files::sync_folder(&place.parent);
        }
        Ok(())
    }

    /// Writes a path that is exactly `expected`, through the temporary name.
    pub(super) fn write(
        &self,
        (path, temporary): (&Path, &OsStr),
        expected: Option<&Entry>,
        (kind, bytes): (Kind, &[u8]),
    ) -> Result<(), Trouble> {
        let Some(place) = self.place(path, true)? else {
            return Err(Trouble::Refused("its folder was deleted meanwhile".to_owned()));
        };
        self.check(&place, expected)?;
        let result = fill(&place, temporary, expected, (kind, bytes)).and_then(|()| {
            // Writing took time.
            self.check(&place, expected)?;
            step()?;
            Ok(place.parent.rename(temporary, &place.parent, &place.name)?)
        });
        if result.is_err() {
            remove_temporary(&place.parent, temporary)?;
        }
        result?;
        files::sync_folder(&place.parent);
        Ok(())
    }

    fn check(&self, place: &Place, expected: Option<&Entry>) -> Result<(), Trouble> {
        match self.find_in(place)? {
            Found::Other(why) => Err(Trouble::Refused(why)),
            Found::Folder => Err(Trouble::Refused("it is a folder now".to_owned())),
            found if found.is(expected) => Ok(()),
            _ => Err(Trouble::Refused("it was changed meanwhile".to_owned())),
        }
    }

    /// Removes the temporary file of a path, if there is one.
    pub(super) fn remove_temporary(&self, path: &Path, temporary: &OsStr) -> Result<(), Trouble> {
        let place = self.place(path, false)?;
        Ok(place.map_or(Ok(()), |place| remove_temporary(&place.parent, temporary))?)
    }

    /// Removes a folder if it is empty.
    pub(super) fn remove_empty(&self, folder: &Path) -> Result<(), Trouble> {
        if let Some(place) = self.place(folder, false)? {
            step()?;
            // A folder that is not empty is the usual case.
            let _ = place.parent.remove_dir(&place.name);
        }
        Ok(())
    }
}

/// Writes the temporary file. An existing file gives its owner, mode and extended attributes.
fn fill(
    place: &Place,
    temporary: &OsStr,
    expected: Option<&Entry>,
    (kind, bytes): (Kind, &[u8]),
) -> Result<(), Trouble> {
    step()?;
    if kind == Kind::Link {
        return Ok(place.parent.symlink_contents(PathBuf::from(files::from_bytes(bytes)), temporary)?);
    }
    let is_program = kind == Kind::Program;
    let mut file = if expected.is_some_and(|entry| entry.kind != Kind::Link) {
        let old = links::open_file(&place.parent, &place.name, Open::Read)?;
        let file = links::open_file(&place.parent, temporary, Open::New)?;
        if !attributes::copy(&old, &old.metadata()?, &file)? {
            let why = "its owner or attributes cannot be given to a new file";
            return Err(Trouble::Refused(why.to_owned()));
        }
        file
    } else {
        links::create_file(&place.parent, temporary, is_program)?
    };
    step()?;
    file.write_all(bytes)?;
    modes::set_program_bits(&file, is_program)?;
    Ok(file.sync_all()?)
}

fn remove_temporary(parent: &Dir, name: &OsStr) -> io::Result<()> {
    if parent.symlink_metadata(name).is_ok_and(|meta| meta.is_file() || meta.is_symlink()) {
        step()?;
        parent.remove_file(name)?;
    }
    Ok(())
}

/// Whether a folder has a name in exactly this spelling.
fn has_exactly(place: &Place) -> io::Result<bool> {
    // The folder may be open only for finding names in it.
    let mut names = place.parent.read_dir(".")?;
    Ok(names.any(|entry| entry.is_ok_and(|entry| entry.file_name() == place.name)))
}

/// Comes before each change of the disk. Tests end the restore here, as a crash would.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
pub(super) fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(super) use super::tests::crashes::step;
