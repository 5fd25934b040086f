//! Opens a file in the user's editor, at a line, or edits a text in it.
//!
//! Builds the command line from a template and runs it. The template is split like a shell command before `{path}` and
//! `{line}` are replaced, so that a path is always a single argument. Without placeholders, the arguments are appended
//! in the editor's own format. `runtime` releases the screen first.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use crate::host::os::private;
use crate::model::Location;
use crate::program::{self, Start, StartedBy};

/// Editors with their own window, for which parlor does not release the screen.
const WINDOWED: &[&str] = &[
    "code",
    "code-insiders",
    "codium",
    "cursor",
    "windsurf",
    "zed",
    "zeditor",
    "subl",
    "gvim",
    "mvim",
    "gedit",
    "kate",
    "mate",
    "idea",
    "pycharm",
    "goland",
    "rustrover",
    "clion",
    "webstorm",
    "xdg-open",
    "open",
];

/// Name of the file with the text to edit.
pub const DRAFT_NAME: &str = "prompt.md";

/// Maximum size of an edited text in bytes.
const DRAFT_MAX_BYTES: u64 = 4 << 20;

/// An editor command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub command_line: Vec<String>,
    /// Whether the editor has its own window and does not use the terminal.
    pub is_windowed: bool,
}

impl Launch {
    /// The command for a location. `template`: the configured command, or that of the environment; `None`: `vi`. Fails
    /// if the template is invalid.
    pub fn of(template: Option<&str>, location: &Location) -> Result<Self, String> {
        let template = template.filter(|text| !text.trim().is_empty()).unwrap_or("vi");
        let mut command_line = shell_words::split(template)
            .map_err(|error| format!("cannot parse the editor command `{template}`: {error}"))?;
        let Some(program) = command_line.first() else {
            return Err("the editor command is empty".to_owned());
        };
        let program = stem(program);
        let path = location.path.display().to_string();
        let line = location.line.unwrap_or(1).to_string();
        if command_line.iter().any(|word| word.contains("{path}")) {
            for word in &mut command_line {
                *word = fill(word, &path, &line);
            }
        } else {
            command_line.extend(arguments(&program, &path, location.line));
        }
        Ok(Self { is_windowed: WINDOWED.contains(&program.as_str()), command_line })
    }

    /// The same command, but an editor with its own window exits only when the file is closed.
    fn until_closed(mut self) -> Result<Self, String> {
        let program = self.command_line.first().map(|word| stem(word)).unwrap_or_default();
        let flag = match program.as_str() {
            _ if !self.is_windowed => return Ok(self),
            "gvim" | "mvim" => "--nofork",
            "kate" => "--block",
            "open" | "xdg-open" => {
                return Err(format!(
                    "{program} does not wait for the file. Set `editor` in the configuration."
                ));
            }
            _ => "--wait",
        };
        if !self.command_line.iter().any(|word| [flag, "-w", "-f"].contains(&word.as_str())) {
            self.command_line.insert(1, flag.to_owned());
        }
        Ok(self)
    }

    /// Runs the editor: until it exits in the terminal, or in the background if it has its own window.
    pub fn run(&self, folder: &Path) -> Result<(), String> {
        let Some((program, arguments)) = self.command_line.split_first() else { return Ok(()) };
        let start = Start::find(StartedBy::User, program, Some(folder), &[]);
        let status = start.map_err(std::io::Error::from).and_then(|start| {
            let start = start.args(arguments);
            if self.is_windowed {
                let mut command = start.command();
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                program::spawn(&mut command)?.wait()
            } else {
                program::spawn(&mut start.in_terminal().command())?.wait()
            }
        });
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program} exited with {status}.")),
            Err(error) => {
                Err(format!("Could not run {program}: {error}. Set `editor` in the configuration."))
            }
        }
    }
}

fn stem(program: &str) -> String {
    Path::new(program).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Edits a text in the user's editor and returns the result; `None` if it is unchanged. The file is private to the
/// user and removed afterwards. Fails if the editor does.
pub fn edit_text(template: Option<&str>, text: &str, folder: &Path) -> Result<Option<String>, String> {
    let unusable = |error: io::Error| format!("Could not use a temporary file: {error}.");
    let own = private::temporary_folder().map_err(unusable)?;
    let path = own.path().join(DRAFT_NAME);
    let mut file = private::create_new(&path).map_err(unusable)?;
    // Editors expect a line break at the end.
    file.write_all(format!("{text}\n").as_bytes()).map_err(unusable)?;
    drop(file);
    let launch = Launch::of(template, &Location { path: path.clone(), line: None })?;
    launch.until_closed()?.run(folder)?;
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(|error| format!("Could not read the edited text: {error}."))?;
    file.take(DRAFT_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unusable)?;
    if bytes.len() as u64 > DRAFT_MAX_BYTES {
        return Err("The edited text is larger than 4 MiB.".to_owned());
    }
    let edited = String::from_utf8(bytes).map_err(|_| "The edited text is not valid UTF-8.".to_owned())?;
    let edited = edited.strip_suffix('\n').unwrap_or(&edited);
    let edited = edited.strip_suffix('\r').unwrap_or(edited);
    Ok((edited != text).then(|| edited.to_owned()))
}

/// Replaces both placeholders in one pass, so that a path with `{line}` is unchanged.
fn fill(word: &str, path: &str, line: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        if let Some(tail) = tail.strip_prefix("{path}") {
            out.push_str(path);
            rest = tail;
        } else if let Some(tail) = tail.strip_prefix("{line}") {
            out.push_str(line);
            rest = tail;
        } else {
            out.push('{');
            rest = tail.get(1..).unwrap_or_default();
        }
    }
    out + rest
}

fn arguments(program: &str, path: &str, line: Option<u32>) -> Vec<String> {
    let Some(line) = line else { return vec![path.to_owned()] };
    match program {
        "code" | "code-insiders" | "codium" | "cursor" | "windsurf" => {
            vec!["-g".to_owned(), format!("{path}:{line}")]
        }
        "zed" | "zeditor" | "subl" | "hx" | "helix" => vec![format!("{path}:{line}")],
        "idea" | "pycharm" | "goland" | "rustrover" | "clion" | "webstorm" | "kate" => {
            vec!["--line".to_owned(), line.to_string(), path.to_owned()]
        }
        "mate" => vec!["-l".to_owned(), line.to_string(), path.to_owned()],
        "vi" | "vim" | "nvim" | "gvim" | "mvim" | "view" | "nano" | "pico" | "emacs" | "emacsclient"
        | "mg" | "kak" | "micro" | "joe" | "ne" | "gedit" => vec![format!("+{line}"), path.to_owned()],
        _ => vec![path.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, line: Option<u32>) -> Location {
        Location { path: path.into(), line }
    }

    fn command_line(template: &str, path: &str, line: Option<u32>) -> Vec<String> {
        Launch::of(Some(template), &place(path, line)).expect("the template is good").command_line
    }

    #[test]
    fn placeholders_are_replaced_within_arguments() {
        assert_eq!(
            command_line("code -g {path}:{line}", "/a b/{line}.rs", Some(7)),
            ["code", "-g", "/a b/{line}.rs:7"]
        );
        assert_eq!(command_line("my 'ed it' {path}", "/a;rm -rf", None), ["my", "ed it", "/a;rm -rf"]);
        assert_eq!(command_line("x {path} {line} {col}", "/a", None), ["x", "/a", "1", "{col}"]);
    }

    #[test]
    fn the_line_is_passed_in_the_format_of_the_editor() {
        assert_eq!(command_line("vim", "/a.rs", Some(3)), ["vim", "+3", "/a.rs"]);
        assert_eq!(
            command_line("/usr/bin/nvim -R", "/a.rs", Some(3)),
            ["/usr/bin/nvim", "-R", "+3", "/a.rs"]
        );
        assert_eq!(command_line("hx", "/a.rs", Some(3)), ["hx", "/a.rs:3"]);
        assert_eq!(command_line("code --wait", "/a.rs", Some(3)), ["code", "--wait", "-g", "/a.rs:3"]);
        assert_eq!(command_line("ed", "/a.rs", Some(3)), ["ed", "/a.rs"]);
        assert_eq!(
            Launch::of(None, &place("/a", None)).map(|launch| launch.command_line),
            Ok(vec!["vi".into(), "/a".into()])
        );
    }

    #[test]
    fn editors_with_windows_are_detected() {
        let is_windowed = |template| Launch::of(Some(template), &place("/a", None)).map(|it| it.is_windowed);
        assert_eq!(is_windowed("/opt/bin/code -g"), Ok(true));
        assert_eq!(is_windowed("nvim"), Ok(false));
        assert!(is_windowed("vi 'open").is_err_and(|error| error.contains("vi 'open")));
    }

    #[test]
    fn errors_contain_the_program() {
        let folder = std::env::temp_dir();
        let run = |template| Launch::of(Some(template), &place("/a", None)).and_then(|it| it.run(&folder));
        assert_eq!(run("true"), Ok(()));
        assert!(run("false").is_err_and(|error| error.contains("false exited")));
        assert!(run("no-such-editor").is_err_and(|error| error.contains("Could not run no-such-editor")));
    }

    fn edited(script: &str, text: &str) -> Result<Option<String>, String> {
        edit_text(Some(&format!("sh -c '{script}' sh")), text, &std::env::temp_dir())
    }

    #[test]
    fn edited_text_is_returned_without_the_last_line_break() {
        assert_eq!(edited(r#"printf "two\n" >> "$1""#, "one"), Ok(Some("one\ntwo".to_owned())));
        assert_eq!(edited(r#"printf "a\r\n" > "$1""#, ""), Ok(Some("a".to_owned())));
        assert_eq!(edited(r#": > "$1""#, "one"), Ok(Some(String::new())), "an emptied file");
        for text in ["", "one", "one\n", "ä\n\n"] {
            assert_eq!(edited("true", text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn the_edited_file_is_private_and_removed() {
        let script = r#"{ echo "$1"; ls -ld "${1%/*}" "$1"; } > "$1.new"; mv "$1.new" "$1""#;
        let reported = edited(script, "secret").unwrap().unwrap();
        let lines: Vec<&str> = reported.lines().collect();
        let [path, folder, file] = lines[..] else { panic!("{reported}") };
        assert!(path.ends_with(DRAFT_NAME) && !Path::new(path).parent().unwrap().exists(), "{reported}");
        assert!(folder.starts_with("drwx------") && file.starts_with("-rw-------"), "{reported}");
    }

    #[test]
    fn failures_of_the_editor_are_reported() {
        assert!(edited("exit 3", "x").is_err_and(|error| error.contains("sh exited with exit status: 3")));
        assert!(
            edited(r#"rm "$1""#, "x").is_err_and(|error| error.contains("Could not read the edited text"))
        );
        let error = edited(r#"printf "\377" > "$1""#, "x");
        assert_eq!(error, Err("The edited text is not valid UTF-8.".to_owned()));
        let error = edited(r#"head -c 5000000 /dev/zero > "$1""#, "x");
        assert_eq!(error, Err("The edited text is larger than 4 MiB.".to_owned()));
        let missing = edit_text(Some("no-such-editor -x"), "x", &std::env::temp_dir());
        assert!(missing.is_err_and(|error| error.contains("Could not run no-such-editor")));
    }

    #[test]
    fn editors_with_windows_wait_for_the_file() {
        let command_line = |template| {
            let launch = Launch::of(Some(template), &place("/a", None))?.until_closed()?;
            Ok::<_, String>(launch.command_line.join(" "))
        };
        assert_eq!(command_line("code -n"), Ok("code --wait -n /a".to_owned()));
        assert_eq!(command_line("code --wait"), Ok("code --wait /a".to_owned()));
        assert_eq!(command_line("gvim"), Ok("gvim --nofork /a".to_owned()));
        assert_eq!(command_line("vim"), Ok("vim /a".to_owned()));
        assert!(command_line("xdg-open").is_err_and(|error| error.contains("does not wait")));
    }
}
