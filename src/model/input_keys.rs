//! Names of the keys in the raw input of tools, which differ between agents.
//!
//! One table per fact, in order of preference. `acp` extracts the facts with them, and `ui` uses them to find
//! out which keys it already shows.

pub const COMMAND: &[&str] = &["command", "cmd", "commandLine", "command_line", "shell_command", "script"];
/// The working directory.
pub const CWD: &[&str] = &[
    "cwd",
    "workdir",
    "working_directory",
    "workingDirectory",
    "working_dir",
    "workingDir",
    "directory",
    "dir_path",
    "dir",
];
/// A file or folder.
pub const PATH: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "filepath",
    "absolute_path",
    "absolutePath",
    "target_file",
    "targetFile",
    "notebook_path",
    "relative_workspace_path",
    "filename",
    "fileName",
    "file",
    "dir_path",
    "directory",
];
pub const QUERY: &[&str] =
    &["query", "pattern", "regex", "search", "search_term", "searchTerm", "glob_pattern", "glob", "q"];
pub const URL: &[&str] = &["url", "uri", "href"];
pub const DESCRIPTION: &[&str] = &["description", "explanation", "reason", "justification", "purpose"];
pub const PATCH: &[&str] =
    &["patch", "input", "diff", "unified_diff", "unifiedDiff", "patchText", "patch_text"];
pub const OLD: &[&str] = &["old_string", "oldString", "old_str", "oldStr", "oldText", "old_text", "search"];
pub const NEW: &[&str] = &["new_string", "newString", "new_str", "newStr", "newText", "new_text", "replace"];
/// The entire new text of a file.
pub const WHOLE: &[&str] = &["content", "contents", "file_text", "fileText"];

/// Shells that run the argument after `-c` or `-lc`.
pub const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "fish"];
