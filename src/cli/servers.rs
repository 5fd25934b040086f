//! MCP servers of the session's folder.
//!
//! Reads the folder's files and the user's earlier answer; `core::lifecycle::servers` asks.

use std::path::Path;

use super::project;
use crate::config::{self, mcp_file};
use crate::host::fs::{ProjectFile, read_project_file};
use crate::host::trust::{self, Subject};
use crate::model::FolderServers;
use crate::program;

/// The MCP servers that a folder configures in `.mcp.json` and in the project's configuration, if any. Those of
/// `.mcp.json` take precedence.
pub fn find(folder: &Path, data_dir: &Path) -> Result<Option<FolderServers>, String> {
    let file = folder.join(mcp_file::NAME);
    let wrong = |why: &str| format!("The MCP servers of {} are ignored: {why}.", file.display());
    let variable = |name: &str| config::environment(name).and_then(|value| value.into_string().ok());
    let find = |name: &str| program::find_in(name, config::environment("PATH").as_deref(), Some(folder));
    let text = match read_project_file(folder, mcp_file::NAME) {
        ProjectFile::Text(text) => Some(text),
        ProjectFile::Missing => None,
        ProjectFile::Refused(why) => return Err(wrong(why)),
    };
    let in_file = text.as_deref().map(|text| mcp_file::read(text, folder, &variable, &find)).transpose();
    let mut found = in_file.map_err(|why| wrong(&why))?.unwrap_or_default();
    // Problems of the project's configuration are reported where its other settings are read.
    let project = project::find(folder, data_dir).ok().flatten();
    let project = project.filter(|project| !project.settings.servers.is_empty());
    if let Some(project) = &project {
        let mut servers = project.settings.servers.clone();
        servers.retain(|(name, _)| !found.servers.iter().any(|server| server.name() == name));
        let more = mcp_file::read_tables(&servers, folder, &variable, &find);
        found.servers.extend(more.servers);
        found.lines.extend(more.lines);
        found.notes.extend(more.notes);
    }
    if found.servers.is_empty() && found.notes.is_empty() {
        return Ok(None);
    }
    let file = if text.is_some() { file } else { folder.join(config::project::NAME) };
    let mut asked = text.unwrap_or_default();
    if let Some(project) = &project {
        asked = format!("{asked}\0{}", project.text);
    }
    let answer_file = trust::place(data_dir, Subject::Servers, folder, &asked);
    Ok(Some(FolderServers {
        answer: trust::read(&answer_file),
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
    use crate::host::os::fixtures;

    #[test]
    fn missing_file_has_no_servers_and_invalid_file_is_reported() {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let find = || find(folder.path(), data.path());
        assert_eq!(find(), Ok(None));
        let file = folder.path().join(".mcp.json");
        std::fs::create_dir(&file).unwrap();
        assert!(find().is_err_and(|error| error.contains("it is a folder")));
        std::fs::remove_dir(&file).unwrap();
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fixtures::link(elsewhere.path(), &file);
        assert!(find().is_err_and(|error| error.contains("it is a link out of the project")));
        std::fs::remove_file(&file).unwrap();
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
        trust::keep(&first.answer_file, true, &first.file).unwrap();
        assert_eq!(find(folder.path(), data.path()).unwrap().unwrap().answer, Some(true));
        std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "false"]}}}"#)
            .unwrap();
        assert_eq!(find(folder.path(), data.path()).unwrap().unwrap().answer, None);
    }

    #[test]
    fn servers_of_the_project_configuration_are_asked_about_like_those_of_the_file() {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let find = || find(folder.path(), data.path()).unwrap().unwrap();
        std::fs::create_dir(folder.path().join(".parlor")).unwrap();
        let config = folder.path().join(".parlor/config.toml");
        std::fs::write(&config, "[[mcp_servers]]\nname = \"a\"\ncommand = \"sh\"\nargs = [\"-c\"]\n")
            .unwrap();
        let first = find();
        assert_eq!(first.lines, ["a: runs sh", "· argument -c"]);
        assert_eq!((first.answer, first.file.as_path()), (None, config.as_path()));
        trust::keep(&first.answer_file, true, &first.file).unwrap();
        assert_eq!(find().answer, Some(true));
        let file = folder.path().join(".mcp.json");
        std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "true"}, "b": {"command": "sh"}}}"#)
            .unwrap();
        let both = find();
        assert_eq!(both.lines, ["a: runs true", "b: runs sh"]);
        assert_eq!((both.answer, both.servers.len()), (None, 2));
    }
}
