//! Saves the texts and images that prompts refer to, in private files that are named by the hash of their content.
//!
//! Drafts, queued prompts and the prompt history contain labels with the start of that hash. What cannot be saved is
//! held in memory until parlor quits.
//! Invariant: a file is used only if its content has the hash in its name.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use crate::host::os::private;
use crate::lock::lock;
use crate::model::{Attachment, AttachmentKind, AttachmentLabel, attachment_labels, content_hash};

/// Subfolder of the data folder.
const FOLDER: &str = "attachments";
/// Maximum size of all files, and of one.
const FOLDER_MAX_BYTES: u64 = 1 << 30;
const FILE_MAX_BYTES: u64 = 32 << 20;
const MEMORY_MAX: usize = 32;
/// Number of hexadecimal digits of a hash.
const HASH_CHARS: usize = 64;
/// Files that no saved draft or queued prompt refers to are removed after this time.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Saves and finds attachments. Cheap to clone: clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Attachments {
    folder: Option<PathBuf>,
    /// Attachments that are not on disk, or not yet, oldest first.
    memory: Arc<Mutex<Vec<Attachment>>>,
}

impl Attachments {
    /// Uses a subfolder of the data folder; `None`: only memory.
    pub fn new(data_dir: Option<&Path>) -> Self {
        Self { folder: data_dir.map(|dir| dir.join(FOLDER)), memory: Arc::default() }
    }

    /// Makes an attachment available at once, before it is saved.
    pub fn hold(&self, attachment: Attachment) {
        let mut memory = self.memory();
        memory.retain(|known| known.hash() != attachment.hash());
        if memory.len() == MEMORY_MAX {
            memory.remove(0);
        }
        memory.push(attachment);
    }

    /// Saves an attachment; if that fails, it stays in memory. Blocks on the disk.
    pub fn save(&self, attachment: &Attachment) -> io::Result<()> {
        self.hold(attachment.clone());
        let Some(folder) = &self.folder else { return Ok(()) };
        let name = format!("{}.{}", attachment.hash(), extension(attachment));
        write(folder, &name, attachment.bytes())?;
        self.memory().retain(|known| known.hash() != attachment.hash());
        Ok(())
    }

    /// The content of a label; `None` if it is missing or changed. Blocks on the disk.
    pub fn find(&self, label: &AttachmentLabel) -> Option<Vec<u8>> {
        let is_named =
            |known: &&Attachment| known.kind() == label.kind && known.hash().starts_with(&label.id);
        let held = self.memory().iter().find(is_named).map(|known| known.bytes().to_vec());
        held.or_else(|| self.read(label).map(|(_, bytes)| bytes))
    }

    /// The file of a label; `None` if it is missing or changed. Blocks on the disk.
    pub fn file_of(&self, label: &AttachmentLabel) -> Option<PathBuf> {
        self.read(label).map(|(path, _)| path)
    }

    /// Two files with the same start of their hash are ambiguous, so that neither is used.
    fn read(&self, label: &AttachmentLabel) -> Option<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.folder.as_ref()?).ok()?;
        let mut found = None;
        for entry in entries.flatten() {
            let Some((hash, kind)) = entry.file_name().to_str().and_then(parse_name) else { continue };
            if kind != label.kind || !hash.starts_with(&label.id) {
                continue;
            }
            let Some(bytes) = read_hashed(&entry.path(), &hash) else { continue };
            if found.replace((entry.path(), bytes)).is_some() {
                return None;
            }
        }
        found
    }

    /// Removes files that are older than the retention time and that none of the texts refers to. Blocks on the disk.
    pub fn sweep(&self, texts: &[String], now: SystemTime) {
        let labels: Vec<AttachmentLabel> = texts.iter().flat_map(|text| attachment_labels(text)).collect();
        let entries = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        for entry in entries.into_iter().flatten().flatten() {
            let modified =
                entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|meta| meta.modified().ok());
            let age = modified.and_then(|modified| now.duration_since(modified).ok());
            let name = entry.file_name();
            let is_used = labels.iter().any(|label| name.to_string_lossy().starts_with(&label.id));
            if age.is_some_and(|age| age > RETENTION) && !is_used {
                // If that fails, the next start tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes the files that contain a text, and returns their number. Blocks on the disk.
    pub fn remove_with(&self, text: &str) -> io::Result<usize> {
        let entries = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let mut count = 0;
        for entry in entries.into_iter().flatten().flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes()) {
                fs::remove_file(entry.path())?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn memory(&self) -> MutexGuard<'_, Vec<Attachment>> {
        lock(&self.memory)
    }
}

/// The extension by which the system selects a viewer.
fn extension(attachment: &Attachment) -> &'static str {
    match attachment.kind() {
        AttachmentKind::Text => "txt",
        AttachmentKind::Session => "md",
        AttachmentKind::Image => image::guess_format(attachment.bytes())
            .ok()
            .and_then(|format| format.extensions_str().first().copied())
            .unwrap_or("img"),
    }
}

fn parse_name(name: &str) -> Option<(String, AttachmentKind)> {
    let (hash, extension) = name.split_once('.')?;
    let kind = match extension {
        "txt" => AttachmentKind::Text,
        "md" => AttachmentKind::Session,
        _ => AttachmentKind::Image,
    };
    (hash.len() == HASH_CHARS).then(|| (hash.to_owned(), kind))
}

/// Reads a regular file, if its content has this hash.
fn read_hashed(path: &Path, hash: &str) -> Option<Vec<u8>> {
    fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= FILE_MAX_BYTES)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    (content_hash(&bytes) == hash).then_some(bytes)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    private::make_own_folder(folder)?;
    let sizes = fs::read_dir(folder)?.flatten().filter_map(|entry| entry.metadata().ok());
    let used: u64 = sizes.map(|meta| meta.len()).sum();
    if bytes.len() as u64 > FILE_MAX_BYTES || used.saturating_add(bytes.len() as u64) > FOLDER_MAX_BYTES {
        return Err(io::Error::other(format!("{} is full", folder.display())));
    }
    private::replace(&folder.join(name), bytes)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::host::os::fixtures;
    use crate::model::AttachmentContent;

    fn pasted(text: &str) -> Attachment {
        Attachment::new(AttachmentContent::Text(text.into()))
    }

    fn label(attachment: &Attachment) -> AttachmentLabel {
        attachment_labels(&attachment.label()).remove(0)
    }

    fn file(data: &Path, attachment: &Attachment) -> PathBuf {
        data.join(FOLDER).join(format!("{}.txt", attachment.hash()))
    }

    fn age(path: &Path, days: u64) {
        let time = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn attachments_are_private_files_that_another_run_finds() {
        let data = tempfile::tempdir().unwrap();
        let saved = pasted("one\ntwo");
        Attachments::new(Some(data.path())).save(&saved).unwrap();
        assert_eq!(Attachments::new(Some(data.path())).find(&label(&saved)).unwrap(), b"one\ntwo");
        assert_eq!(Attachments::new(None).find(&label(&saved)), None);
        assert_eq!(fixtures::mode(file(data.path(), &saved)), 0o600);
    }

    #[test]
    fn attachments_that_cannot_be_saved_are_held_in_memory() {
        let held = Attachments::new(None);
        held.save(&pasted("x")).unwrap();
        assert_eq!(held.clone().find(&label(&pasted("x"))).unwrap(), b"x");
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(FOLDER), "a file").unwrap();
        let held = Attachments::new(Some(data.path()));
        held.save(&pasted("x")).unwrap_err();
        assert_eq!(held.find(&label(&pasted("x"))).unwrap(), b"x");
        for n in 0..=MEMORY_MAX {
            held.hold(pasted(&format!("{n}")));
        }
        assert_eq!(held.find(&label(&pasted("x"))), None, "the memory is bounded");
    }

    #[test]
    fn changed_and_ambiguous_files_are_not_used() {
        let data = tempfile::tempdir().unwrap();
        let attachments = Attachments::new(Some(data.path()));
        let saved = pasted("one");
        attachments.save(&saved).unwrap();
        fs::write(file(data.path(), &saved), "two").unwrap();
        assert_eq!(attachments.find(&label(&saved)), None);
        attachments.save(&saved).unwrap();
        assert!(attachments.find(&label(&saved)).is_some());
        let copy = data.path().join(FOLDER).join(format!("{}.text.txt", saved.hash()));
        fs::copy(file(data.path(), &saved), &copy).unwrap();
        assert!(attachments.find(&label(&saved)).is_some(), "another kind");
        let short = AttachmentLabel { id: String::new(), ..label(&saved) };
        attachments.save(&pasted("three")).unwrap();
        assert_eq!(attachments.find(&short), None, "ambiguous");
        let as_image = AttachmentLabel { kind: AttachmentKind::Image, ..label(&pasted("three")) };
        assert_eq!(attachments.find(&as_image), None);
    }

    #[test]
    fn old_files_without_a_draft_are_removed() {
        let data = tempfile::tempdir().unwrap();
        let attachments = Attachments::new(Some(data.path()));
        let [old, drafted, new] = ["old", "drafted", "new"].map(pasted);
        for attachment in [&old, &drafted, &new] {
            attachments.save(attachment).unwrap();
        }
        age(&file(data.path(), &old), 31);
        age(&file(data.path(), &drafted), 400);
        age(&file(data.path(), &new), 29);
        let draft = format!("see {} and", drafted.label());
        attachments.sweep(&[draft], SystemTime::now());
        assert_eq!(
            [&old, &drafted, &new].map(|it| attachments.find(&label(it)).is_some()),
            [false, true, true]
        );
    }
}
