//! Where a path really leads, and a handle on the root that it lies in.
//!
//! Duty: follows links by hand to the real path, and pairs it with the innermost root that holds it.
//! Not its duty: reading or writing.
//! Invariant: a [`Place`] is used only relative to its folder handle, which no link can leave. The real path
//! is for comparing and for people; it is never opened again.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::trouble::FileTrouble;

/// As many links in one path as Linux follows.
const MAX_LINKS: usize = 40;

/// A path inside a root, by a handle on the root.
#[derive(Debug)]
pub(super) struct Place {
    root: Dir,
    relative: PathBuf,
    real: PathBuf,
}

/// Whether a path is inside the roots.
#[derive(Debug)]
pub(super) enum Located {
    /// It is.
    Inside(Place),
    /// It is not; this is where it leads.
    Outside(PathBuf),
}

/// Finds the root that holds a path, after following all links. What is missing needs not exist.
pub(super) fn locate(path: &Path, roots: &[PathBuf]) -> Result<Located, FileTrouble> {
    let real = resolve(path)?;
    let innermost = roots
        .iter()
        .filter_map(|root| root.canonicalize().ok())
        .filter(|root| real.starts_with(root))
        .max_by_key(|root| root.as_os_str().len());
    match innermost {
        Some(root) => Ok(Located::Inside(Place::new(&root, real)?)),
        None => Ok(Located::Outside(real)),
    }
}

impl Place {
    fn new(root: &Path, real: PathBuf) -> Result<Self, FileTrouble> {
        let relative = real.strip_prefix(root).map(Path::to_path_buf).unwrap_or_default();
        let root = Dir::open_ambient_dir(root, ambient_authority())?;
        Ok(Self { root, relative, real })
    }

    /// A place that no root bounds: the user allowed it.
    pub(super) fn outside(real: PathBuf) -> Result<Self, FileTrouble> {
        let top = real.ancestors().last().unwrap_or(&real).to_path_buf();
        Self::new(&top, real)
    }

    /// The root's handle.
    pub(super) fn root(&self) -> &Dir {
        &self.root
    }

    /// The path below the root; `.` for the root itself.
    pub(super) fn relative(&self) -> &Path {
        if self.relative.as_os_str().is_empty() { Path::new(".") } else { &self.relative }
    }

    /// The path without links.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// The folder of the file, made if it is missing, and the file's name in it.
    pub(super) fn make_parent(&self) -> Result<(Dir, &OsStr), FileTrouble> {
        let name = self.relative.file_name().ok_or(FileTrouble::Folder)?;
        let parent = match self.relative.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                // Opened first: a link that leads out says so here, where making it only says that it exists.
                match self.root.open_dir(parent) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        self.root.create_dir_all(parent)?;
                        self.root.open_dir(parent)?
                    }
                    opened => opened?,
                }
            }
            _ => self.root.try_clone()?,
        };
        Ok((parent, name))
    }
}

/// Follows `..` and links as the kernel would, and keeps what does not exist as it is written.
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
                            return Err(io::Error::other("too many links lead to each other"));
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

/// The components of a path, last first.
fn pieces(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}
