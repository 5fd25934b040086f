//! Watches the configuration file and the themes for changes.
//!
//! Folders are watched instead of files, because most editors replace a file. The system reports changes (inotify, `FSEvents`),
//! so that an idle parlor does not wake up.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// The watched files.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    pub file: PathBuf,
    /// All `*.toml` files in it are watched.
    pub folder: PathBuf,
}

/// Watches until it is dropped.
pub struct Watcher {
    _inner: RecommendedWatcher,
}

impl Watcher {
    /// Calls `on_change`, on a thread of its own, when one of the files may have changed. `None`: the folder of the file
    /// does not exist, or the system cannot watch it.
    pub fn start(watched: &Watched, on_change: impl Fn() + Send + 'static) -> Option<Self> {
        // A file may be a link, for example into a folder of dotfiles.
        let mut files = vec![watched.file.clone()];
        files.extend(watched.file.canonicalize().ok().filter(|target| *target != watched.file));
        let folders: Vec<PathBuf> = files.iter().filter_map(|file| real(file.parent()?)).collect();
        let themes = real(&watched.folder);
        let names: Vec<_> = files.iter().filter_map(|file| file.file_name().map(OsStr::to_owned)).collect();
        let theme_folder = themes.clone();
        let is_watched = move |path: &PathBuf| {
            let is_file = path.file_name().is_some_and(|name| names.iter().any(|known| known == name));
            let is_theme =
                path.parent() == theme_folder.as_deref() && path.extension().is_some_and(|end| end == "toml");
            is_file || is_theme
        };
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| is_change(event.kind) && event.paths.iter().any(&is_watched)) {
                on_change();
            }
        };
        let mut inner = notify::recommended_watcher(on_event).ok()?;
        let first = folders.first()?;
        inner.watch(first, RecursiveMode::NonRecursive).ok()?;
        for folder in folders.iter().skip(1).chain(&themes).filter(|folder| *folder != first) {
            let _ = inner.watch(folder, RecursiveMode::NonRecursive);
        }
        Some(Self { _inner: inner })
    }
}

fn real(folder: &Path) -> Option<PathBuf> {
    folder.canonicalize().ok()
}

fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;
    use crate::host::os::fixtures;

    /// Waits for a change, which the system reports at once; the limit is for a machine that is busy.
    fn is_reported(changes: &Receiver<()>) -> bool {
        let is_reported = changes.recv_timeout(Duration::from_secs(20)).is_ok();
        while changes.try_recv().is_ok() {}
        is_reported
    }

    #[test]
    fn writes_replacements_and_themes_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let (dots, home) = (root.path().join("dots"), root.path().join("home"));
        let themes = home.join("themes");
        for folder in [&dots, &themes] {
            fs::create_dir_all(folder).unwrap();
        }
        let (target, file) = (dots.join("parlor.toml"), home.join("config.toml"));
        fs::write(&target, "").unwrap();
        fixtures::link(&target, &file);
        let (sender, changes) = channel();
        let watched = Watched { file: file.clone(), folder: themes.clone() };
        let _watcher = Watcher::start(&watched, move || {
            let _ = sender.send(());
        })
        .unwrap();
        fs::write(&target, "a").unwrap();
        assert!(is_reported(&changes), "a write of the target of the link");
        fs::write(home.join("new"), "b").unwrap();
        fs::rename(home.join("new"), &file).unwrap();
        assert!(is_reported(&changes), "a replacement");
        fs::write(themes.join("mine.toml"), "").unwrap();
        assert!(is_reported(&changes), "a new theme");
    }

    #[test]
    fn reads_are_not_changes() {
        use notify::event::{CreateKind, RemoveKind};
        assert!(!is_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!is_change(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(is_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(
            is_change(EventKind::Create(CreateKind::File)) && is_change(EventKind::Remove(RemoveKind::File))
        );
    }

    #[test]
    fn a_missing_folder_is_not_watched() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("none/config.toml");
        assert!(Watcher::start(&Watched { file, folder: PathBuf::new() }, || {}).is_none());
    }
}
