//! Saved answers whether the MCP servers of a folder may be used.
//!
//! Each answer is a small file, named by the contents that it was given for, so that a changed file asks again.
//! Invariant: a file that cannot be read is no answer.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use crate::private;

/// The folder of the answers, within the data folder.
const FOLDER: &str = "mcp";
const YES: &str = "yes";
const NO: &str = "no";

/// Where the answer about this text in this folder is kept.
pub fn place(data_dir: &Path, folder: &Path, text: &str) -> PathBuf {
    let mut asked = folder.as_os_str().as_encoded_bytes().to_vec();
    asked.push(0);
    asked.extend_from_slice(text.as_bytes());
    let mut name = String::with_capacity(64);
    for byte in digest(&SHA256, &asked).as_ref() {
        let _ = write!(name, "{byte:02x}");
    }
    data_dir.join(FOLDER).join(name)
}

/// The answer that is kept there, if there is one.
pub fn read(place: &Path) -> Option<bool> {
    match fs::read_to_string(place).ok()?.lines().next()? {
        YES => Some(true),
        NO => Some(false),
        _ => None,
    }
}

/// Keeps an answer: whole or not at all. `Err` says why not, with what that means.
pub fn keep(place: &Path, allows: bool, about: &Path) -> Result<(), String> {
    let folder = place.parent().unwrap_or(place);
    let write = || {
        private::make_own_folder(folder)?;
        // The second line is for people.
        let answer = format!("{}\n{}\n", if allows { YES } else { NO }, about.display());
        private::replace(place, answer.as_bytes())
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
    fn an_answer_holds_for_this_text_in_this_folder() {
        let data = tempfile::tempdir().unwrap();
        let at = |folder: &str, text: &str| place(data.path(), Path::new(folder), text);
        let asked = at("/w", "{}");
        assert_eq!(read(&asked), None);
        keep(&asked, true, Path::new("/w/.mcp.json")).unwrap();
        assert_eq!(read(&at("/w", "{}")), Some(true));
        assert_eq!(read(&at("/w", "{ }")), None, "a changed file asks again");
        assert_eq!(read(&at("/v", "{}")), None);
        keep(&asked, false, Path::new("/w/.mcp.json")).unwrap();
        assert_eq!(read(&asked), Some(false));
        fs::write(&asked, "maybe").unwrap();
        assert_eq!(read(&asked), None);
    }

    #[test]
    fn an_answer_that_cannot_be_kept_is_told() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(FOLDER), "").unwrap();
        let error = keep(&place(data.path(), Path::new("/w"), ""), true, Path::new("/w")).unwrap_err();
        assert!(error.contains("ask again"), "{error}");
    }
}
