//! MCP servers of the session's folder.
//!
//! Reads the folder's file and the user's earlier answer; `app::servers` asks.

use std::path::Path;

use crate::config::{self, mcp_file};
use crate::model::FolderServers;
use crate::program;
use crate::services::mcp_trust;

/// Maximum size of the file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The MCP servers of a folder, if any.
pub fn find(folder: &Path, data_dir: &Path) -> Result<Option<FolderServers>, String> {
    let file = folder.join(mcp_file::NAME);
    let wrong = |why: &str| format!("The MCP servers of {} are ignored: {why}.", file.display());
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&error.to_string())),
        Ok(facts) if !facts.is_file() => return Err(wrong("not a file")),
        Ok(facts) if facts.len() > MAX_FILE_BYTES => return Err(wrong("larger than 1 MiB")),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(&file).map_err(|error| wrong(&error.to_string()))?;
    let variable = |name: &str| config::environment(name).and_then(|value| value.into_string().ok());
    let find = |name: &str| program::find_in(name, config::environment("PATH").as_deref(), Some(folder));
    let found = mcp_file::read(&text, folder, &variable, &find).map_err(|why| wrong(&why))?;
    if found.servers.is_empty() && found.notes.is_empty() {
        return Ok(None);
    }
    let answer_file = mcp_trust::place(data_dir, folder, &text);
    Ok(Some(FolderServers {
        answer: mcp_trust::read(&answer_file),
        answer_file,
        file,
        folder: folder.to_owned(),
        servers: found.servers,
        lines: found.lines,
        notes: found.notes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_has_no_servers_and_invalid_file_is_reported() {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let find = || find(folder.path(), data.path());
        assert_eq!(find(), Ok(None));
        let file = folder.path().join(".mcp.json");
        std::fs::create_dir(&file).unwrap();
        assert!(find().is_err_and(|error| error.contains("not a file")));
        std::fs::remove_dir(&file).unwrap();
        std::fs::write(&file, "{").unwrap();
        assert!(find().is_err_and(|error| error.contains("invalid JSON")));
        std::fs::write(&file, "{\"mcpServers\": {}}").unwrap();
        assert_eq!(find(), Ok(None));
    }

    #[test]
    fn answers_are_valid_until_the_file_changes() {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = folder.path().join(".mcp.json");
        std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "true"]}}}"#).unwrap();
        let first = find(folder.path(), data.path()).unwrap().unwrap();
        assert_eq!(
            (first.answer, first.lines),
            (None, ["a: runs sh", "· argument -c", "· argument true"].map(str::to_owned).to_vec())
        );
        mcp_trust::keep(&first.answer_file, true, &first.file).unwrap();
        assert_eq!(find(folder.path(), data.path()).unwrap().unwrap().answer, Some(true));
        std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "false"]}}}"#)
            .unwrap();
        assert_eq!(find(folder.path(), data.path()).unwrap().unwrap().answer, None);
    }
}
