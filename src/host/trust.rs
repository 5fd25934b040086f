//! Saved answers to the question whether files of a folder may be used: its MCP servers, configuration and templates.
//!
//! Each answer is a small file, named by the hash of the text that it was given for, so that a changed file requires a
//! new answer.
//!
//! Invariant: an invalid file counts as no answer.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::os::private;
use crate::model::content_hash;

/// The kind of file that an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Servers,
    Project,
    Template,
}

impl Subject {
    fn folder(self) -> &'static str {
        match self {
            Self::Servers => "mcp",
            Self::Project => "project",
            Self::Template => "templates",
        }
    }
}

const YES: &str = "yes";
const NO: &str = "no";

pub fn place(data_dir: &Path, subject: Subject, folder: &Path, text: &str) -> PathBuf {
    let mut asked = folder.as_os_str().as_encoded_bytes().to_vec();
    asked.push(0);
    asked.extend_from_slice(text.as_bytes());
    data_dir.join(subject.folder()).join(content_hash(&asked))
}

pub fn read(location: &Path) -> Option<bool> {
    match fs::read_to_string(location).ok()?.lines().next()? {
        YES => Some(true),
        NO => Some(false),
        _ => None,
    }
}

/// Saves an answer atomically. The error describes the consequence.
pub fn keep(location: &Path, allows: bool, about: &Path) -> Result<(), String> {
    let folder = location.parent().unwrap_or(location);
    let write = || {
        private::make_own_folder(folder)?;
        // The second line is informational.
        let answer = format!("{}\n{}\n", if allows { YES } else { NO }, about.display());
        private::replace(location, answer.as_bytes())
    };
    write().map_err(|error| {
        format!(
            "Could not save the answer; parlor will ask again: cannot write {}: {error}.",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_applies_to_one_text_in_one_folder() {
        let data = tempfile::tempdir().unwrap();
        let at = |folder: &str, text: &str| place(data.path(), Subject::Servers, Path::new(folder), text);
        let asked = at("/w", "{}");
        assert_eq!(read(&asked), None);
        keep(&asked, true, Path::new("/w/.mcp.json")).unwrap();
        assert_eq!(read(&at("/w", "{}")), Some(true));
        assert_eq!(read(&at("/w", "{ }")), None, "a changed file asks again");
        assert_eq!(read(&at("/v", "{}")), None);
        assert_eq!(read(&place(data.path(), Subject::Project, Path::new("/w"), "{}")), None);
        keep(&asked, false, Path::new("/w/.mcp.json")).unwrap();
        assert_eq!(read(&asked), Some(false));
        fs::write(&asked, "maybe").unwrap();
        assert_eq!(read(&asked), None);
    }

    #[test]
    fn an_answer_that_cannot_be_saved_is_reported() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("mcp"), "").unwrap();
        let asked = place(data.path(), Subject::Servers, Path::new("/w"), "");
        let error = keep(&asked, true, Path::new("/w")).unwrap_err();
        assert!(error.contains("ask again"), "{error}");
    }
}
