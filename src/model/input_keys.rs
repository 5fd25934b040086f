//! Names of the keys in raw inputs of tools, which differ between agents.
//!
//! One table for each fact, in the order in which keys are tried. `acp` reads the facts by them, `ui` finds out which keys
//! are already shown.

/// A command line.
pub const COMMAND: &[&str] = &["command", "cmd", "commandLine", "command_line", "shell_command", "script"];
/// The folder that it runs in.
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
/// What is searched for.
pub const QUERY: &[&str] =
    &["query", "pattern", "regex", "search", "search_term", "searchTerm", "glob_pattern", "glob", "q"];
/// An address.
pub const URL: &[&str] = &["url", "uri", "href"];
/// Why, in the agent's words.
pub const DESCRIPTION: &[&str] = &["description", "explanation", "reason", "justification", "purpose"];
/// A patch.
pub const PATCH: &[&str] =
    &["patch", "input", "diff", "unified_diff", "unifiedDiff", "patchText", "patch_text"];
/// A text that is replaced.
pub const OLD: &[&str] = &["old_string", "oldString", "old_str", "oldStr", "oldText", "old_text", "search"];
/// What it is replaced by.
pub const NEW: &[&str] = &["new_string", "newString", "new_str", "newStr", "newText", "new_text", "replace"];
/// The whole new text of a file.
pub const WHOLE: &[&str] = &["content", "contents", "file_text", "fileText"];

/// Shells that run the word after `-c` or `-lc`.
pub const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "fish"];
