//! Resolves a path, and opens the root that contains it.
//!
//! Follows links manually to the canonical path, and finds the innermost root that contains it.
//!
//! Invariants: the path is opened folder by folder from the root's handle, and a link on the way is an error, so that
//! exactly the path of the decision is opened. The canonical path itself is used only for decisions and display.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::fs_error::FsError;
use crate::host::os::links;

/// Maximum number of links in a path, as on Linux.
const MAX_LINKS: usize = 40;

/// A canonical path, with a handle on the folder that bounds it.
#[derive(Debug)]
pub(super) struct RootedPath {
    top: Dir,
    relative: PathBuf,
    real: PathBuf,
    shown: PathBuf,
    root: Option<PathBuf>,
}

/// Resolves a path and finds its root. The path need not exist.
pub(super) fn locate(path: &Path, roots: &[PathBuf]) -> Result<RootedPath, FsError> {
    let real = resolve(path)?;
    let innermost = roots
        .iter()
        .filter_map(|root| Some((root, root.canonicalize().ok()?)))
        .filter(|(_, root)| real.starts_with(root))
        .max_by_key(|(_, root)| root.as_os_str().len());
    let top = match &innermost {
        Some((_, root)) => root.clone(),
        None => real.ancestors().last().unwrap_or(&real).to_path_buf(),
    };
    let relative = real.strip_prefix(&top).map(Path::to_path_buf).unwrap_or_default();
    // Links above the root are the user's own, so the path is shown as given.
    let named = innermost.as_ref().map(|(root, _)| root.join(&relative)).filter(|named| *named == path);
    let shown = named.unwrap_or_else(|| real.clone());
    let root = innermost.map(|(_, root)| root);
    Ok(RootedPath { top: Dir::open_ambient_dir(&top, ambient_authority())?, relative, real, shown, root })
}

impl RootedPath {
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// The path for display: as requested, unless it leads elsewhere.
    pub(super) fn shown(&self) -> &Path {
        &self.shown
    }

    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The folder of the file, and the file's name.
    pub(super) fn parent(&self) -> Result<(Dir, &OsStr), FsError> {
        self.walk(false)
    }

    /// Like [`Self::parent`], but creates missing folders.
    pub(super) fn make_parent(&self) -> Result<(Dir, &OsStr), FsError> {
        self.walk(true)
    }

    fn walk(&self, makes: bool) -> Result<(Dir, &OsStr), FsError> {
        let name = self.relative.file_name().ok_or(FsError::Folder)?;
        let mut folder = self.top.try_clone()?;
        for part in self.relative.parent().unwrap_or(Path::new("")).components() {
            let part = part.as_os_str();
            let mut next = links::open_folder(&folder, part);
            if makes && next.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                match folder.create_dir(part) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
                    _ => next = links::open_folder(&folder, part),
                }
            }
            folder = match next {
                Ok(next) => next,
                // For a link, some systems report that it is not a folder.
                Err(_) if folder.symlink_metadata(part).is_ok_and(|meta| meta.is_symlink()) => {
                    return Err(FsError::Escaped);
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok((folder, name))
    }
}

/// Resolves `..` and links like the kernel; components that do not exist are unchanged.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut real = PathBuf::new();
    let mut links = 0;
    let mut rest: Vec<PathBuf> = pieces(path);
    while let Some(piece) = rest.pop() {
        match piece.components().next() {
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(name)) => {
                let next = real.join(name);
                match next.symlink_metadata() {
                    Ok(meta) if meta.is_symlink() => {
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(io::Error::other("too many levels of symbolic links"));
                        }
                        rest.extend(pieces(&next.read_link()?));
                    }
                    Ok(_) => real = next,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => real = next,
                    Err(error) => return Err(error),
                }
            }
            Some(Component::RootDir | Component::Prefix(_)) => real.push(&piece),
            Some(Component::CurDir) | None => {}
        }
    }
    Ok(real)
}

/// The components of a path in reverse order.
fn pieces(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}
