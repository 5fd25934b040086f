//! The files that the user mentioned from a list.

use crate::model::mentions;

/// Maximum number of files that are remembered.
const MAX_FILES: usize = 200;

/// The paths of files that were listed when they were mentioned, latest last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedFiles(Vec<String>);

impl ListedFiles {
    pub(crate) fn add(&mut self, path: &str) {
        self.0.retain(|known| known != path);
        if self.0.len() == MAX_FILES {
            self.0.remove(0);
        }
        self.0.push(path.to_owned());
    }

    /// Adds the mentions of listed files in a text that was put into the draft.
    pub(crate) fn add_mentions(&mut self, text: &str) {
        for (_, mention) in mentions(text) {
            self.add(&mention.path);
        }
    }

    pub(in crate::core) fn paths(&self) -> &[String] {
        &self.0
    }

    /// Forgets files that do not exist, after the user was told.
    pub(in crate::core) fn remove(&mut self, paths: &[String]) {
        self.0.retain(|known| !paths.contains(known));
    }
}
