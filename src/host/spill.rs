//! A temporary file with large texts of the sessions, so that they need no memory until they are seen.
//!
//! The file has no name, is private, and disappears when parlor ends: the record of the sessions is in the store.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::model::{ReadBytes, SavedBody, UnsavedBody};

/// Saves texts in a file of a folder; the file is created when it is needed.
#[derive(Debug, Default)]
pub struct Spill(Mutex<Option<Arc<SpillFile>>>);

#[derive(Debug)]
struct SpillFile(Mutex<File>);

/// A text in the file.
struct Saved {
    file: Arc<SpillFile>,
    start: u64,
    len: usize,
    read: ReadBytes,
}

impl Spill {
    /// Saves texts, which can be unloaded then. What is read again is counted in `read`.
    ///
    /// # Errors
    /// The file cannot be created or written. Texts before the first that failed are saved.
    pub fn save(&self, folder: &Path, bodies: &[UnsavedBody], read: &ReadBytes) -> io::Result<()> {
        let mut open = lock(&self.0);
        // Nothing in the file is used any more.
        if open.as_ref().is_some_and(|file| Arc::strong_count(file) == 1) {
            *open = None;
        }
        let file = match &*open {
            Some(file) => Arc::clone(file),
            None => Arc::clone(open.insert(Arc::new(SpillFile(Mutex::new(tempfile::tempfile_in(folder)?))))),
        };
        drop(open);
        for body in bodies {
            let start = file.append(body.text())?;
            let (file, read) = (Arc::clone(&file), read.clone());
            body.set_saved(Box::new(Saved { file, start, len: body.text().len(), read }));
        }
        Ok(())
    }
}

impl SpillFile {
    fn append(&self, text: &str) -> io::Result<u64> {
        let mut file = lock(&self.0);
        let start = file.seek(SeekFrom::End(0))?;
        file.write_all(text.as_bytes())?;
        Ok(start)
    }
}

impl SavedBody for Saved {
    fn read(&self) -> io::Result<String> {
        let mut text = vec![0; self.len];
        {
            let mut file = lock(&self.file.0);
            file.seek(SeekFrom::Start(self.start))?;
            file.read_exact(&mut text)?;
        }
        self.read.add(self.len);
        String::from_utf8(text).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, LARGE_BYTES};

    #[test]
    fn saved_texts_leave_memory_and_return() {
        let folder = tempfile::tempdir().unwrap();
        let (spill, read) = (Spill::default(), ReadBytes::default());
        let texts = ["ä".repeat(LARGE_BYTES), "b".repeat(LARGE_BYTES)];
        let mut bodies = texts.clone().map(Body::from);
        let unsaved: Vec<UnsavedBody> = bodies.iter_mut().filter_map(Body::unload).collect();
        assert_eq!(unsaved.len(), 2);
        spill.save(folder.path(), &unsaved, &read).unwrap();
        drop(unsaved);
        for (body, text) in bodies.iter_mut().zip(&texts) {
            assert!(body.unload().is_none());
            assert!(!body.is_loaded());
            assert_eq!((body.len(), &*body.peek()), (text.len(), text.as_str()));
            assert!(!body.is_loaded());
            assert_eq!(body.as_str(), text);
            assert!(body.is_loaded());
        }
        assert_eq!(read.count(), 2 * texts.iter().map(String::len).sum::<usize>());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn texts_stay_in_memory_when_the_file_cannot_be_created() {
        let mut body = Body::from("x".repeat(LARGE_BYTES));
        let unsaved = body.unload().unwrap();
        let missing = Path::new("/nowhere");
        assert!(Spill::default().save(missing, &[unsaved], &ReadBytes::default()).is_err());
        assert!(body.unload().is_some());
        assert!(body.is_loaded());
    }
}
