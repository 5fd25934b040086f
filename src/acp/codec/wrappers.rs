//! Removes text that agents add around the input and output of their tools.
//!
//! Some agents send results in the form that their model reads: the output of a command between lines that repeat
//! the command, the folder and the exit code. A preview would show those lines instead of the output.
//! Invariants: removed text stays in the raw input or output of the call; text that does not match the complete
//! form of a wrapper is unchanged; the content of permission requests is never changed.

use serde_json::Value;

use crate::model::{ContentBlock, Patch, ToolCallPatch, ToolContent, ToolStatus};

use super::decoder::Decoder;
use super::quirks::Quirk;
use super::value::raw;
use super::{input, names};

/// The output without the wrapper, and the exit code.
type Bare<'a> = (&'a str, Option<i32>);

pub fn take_off(patch: &mut ToolCallPatch, decoder: &mut Decoder) {
    if decoder.quirks.is_strict {
        return;
    }
    if patch.status.as_set().is_some_and(|status| status.is_final()) {
        bare_output(patch, decoder);
    } else {
        bare_input(patch, decoder);
    }
}

fn bare_output(patch: &mut ToolCallPatch, decoder: &mut Decoder) {
    let mut exit_code = None;
    let mut wrapped = None;
    let mut bare = |text: &mut String| {
        let Some((output, code)) = unwrap(text) else { return };
        exit_code = exit_code.or(code);
        let output = output.to_owned();
        wrapped.get_or_insert(std::mem::replace(text, output));
    };
    if let Patch::Set(content) = &mut patch.content {
        for item in content {
            if let ToolContent::Block(ContentBlock::Text(text)) = item {
                text.edit(&mut bare);
            }
        }
    }
    if let Patch::Set(text) = &mut patch.output_text {
        text.edit(&mut bare);
    }
    let Some(wrapped) = wrapped else { return };
    decoder.learn(Quirk::WRAPPED_OUTPUT);
    if patch.raw_output == Patch::Keep {
        patch.raw_output = Patch::Set(raw(&Value::String(wrapped)));
    }
    if let (Patch::Keep, Some(code)) = (&patch.exit_code, exit_code) {
        patch.exit_code = Patch::Set(code);
    }
}

/// While a call is prepared, its content may repeat its input as JSON.
fn bare_input(patch: &mut ToolCallPatch, decoder: &mut Decoder) {
    let content = patch.content.as_set().map(Vec::as_slice);
    let Some([ToolContent::Block(ContentBlock::Text(text))]) = content else { return };
    if text.starts_with("Summary: ") && patch.raw_input.as_set().is_some() {
        decoder.learn(Quirk::INPUT_AS_CONTENT);
        patch.content = Patch::Set(Vec::new());
    } else if decoder.quirks.has(Quirk::INPUT_AS_CONTENT)
        && text.starts_with('{')
        && matches!(patch.raw_input, Patch::Keep)
        && patch.status != Patch::Set(ToolStatus::Pending)
    {
        // The input is streamed and may be incomplete.
        if let Ok(value @ Value::Object(_)) = serde_json::from_str(text) {
            patch.input = Patch::Set(input::read(&value, patch.kind.as_set().copied(), false));
            patch.raw_input = Patch::Set(raw(&value));
        }
        patch.content = Patch::Set(Vec::new());
    }
}

fn unwrap(text: &str) -> Option<Bare<'_>> {
    report(text).or_else(|| tool_result(text)).or_else(|| exit_line(text))
}

/// `Command: … Directory: … Output: … Error: … Exit Code: … Signal: …`. Source: qwen and gemini, `shell.ts`.
fn report(text: &str) -> Option<Bare<'_>> {
    let rest = text.strip_prefix("Command: ")?;
    let (_, rest) = rest.split_once("\nDirectory: ")?;
    let (_, rest) = rest.split_once("\nOutput: ")?;
    let (output, tail) = rest.rsplit_once("\nError: ")?;
    let (error, tail) = tail.split_once("\nExit Code: ")?;
    let (code, tail) = tail.split_once("\nSignal: ")?;
    let signal = tail.lines().next().unwrap_or_default();
    let is_none = |value: &str| matches!(value.trim(), "(none)" | "(empty)" | "");
    // An error or a signal is not reported anywhere else, so the wrapper is not removed.
    let is_plain = is_none(error) && (is_none(signal) || signal.trim() == "0");
    let output = if is_none(output) { "" } else { output };
    is_plain.then(|| (output, code.trim().parse().ok()))
}

/// `Tool: NAME`, `Result:`, the output, and lines that begin with an emoji. Source: `OpenHands`, `TerminalObservation`.
fn tool_result(text: &str) -> Option<Bare<'_>> {
    let (name, rest) = text.strip_prefix("Tool: ")?.split_once("\nResult:\n")?;
    if name.contains('\n') {
        return None;
    }
    let (mut output, mut exit_code) = (rest, None);
    loop {
        let trimmed = output.trim_end();
        let (before, last) = trimmed.rsplit_once('\n').unwrap_or(("", trimmed));
        // Only lines with a pictogram.
        let fact = if last.is_ascii() { "" } else { last.trim_start_matches(|c: char| !c.is_alphanumeric()) };
        if let Some(code) = fact.strip_prefix("Exit code: ") {
            exit_code = code.trim().parse().ok();
        } else if !fact.starts_with("Working directory: ") && !fact.starts_with("Python interpreter: ") {
            return Some((trimmed, exit_code));
        }
        output = before;
    }
}

/// `[Command exited with code 3]` before the output. Source: cline, `run_commands`.
fn exit_line(text: &str) -> Option<Bare<'_>> {
    let (code, output) = text.strip_prefix("[Command exited with code ")?.split_once(']')?;
    Some((output.trim_start_matches('\n'), Some(code.parse().ok()?)))
}

/// Shortens a title with raw input or a patch: `read_files: {"files":[…]}` becomes `read_files: a.rs, b.rs`.
pub fn readable_title(patch: &mut ToolCallPatch) {
    let Some(title) = patch.title.as_set() else { return };
    let (head, rest) = names::head_of_title(title).unwrap_or(("", title));
    let rest = rest.trim_start();
    let is_json = ["{\"", "{'", "{}", "[{", "[\""].iter().any(|begin| rest.starts_with(begin));
    let is_patch = rest.contains("*** Begin Patch") || rest.contains("diff --git ");
    let Some(input) = patch.input.as_set().filter(|_| is_json || is_patch) else { return };
    let mut names: Vec<String> = Vec::new();
    let positions = patch.locations.as_set().into_iter().flatten().map(|location| &location.path);
    for path in positions.chain(&input.path).chain(input.diffs.iter().map(|diff| &diff.path)) {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let other = [&input.query, &input.url, &input.description].into_iter().flatten().next();
    let about = match (&input.command, other) {
        (Some(command), _) => command.clone(),
        (None, Some(other)) if names.is_empty() => other.clone(),
        _ => names.join(", "),
    };
    let parts: Vec<&str> = [head, &about].into_iter().filter(|part| !part.is_empty()).collect();
    if !parts.is_empty() {
        patch.title = Patch::Set(parts.join(": "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> (String, Option<i32>) {
        let found = unwrap(text).unwrap_or_else(|| panic!("no wrapper: {text}"));
        (found.0.to_owned(), found.1)
    }

    #[test]
    fn known_wrappers_are_removed_and_the_exit_code_is_read() {
        let report = "Command: echo hi; exit 3\nDirectory: (root)\nOutput: hi\nthere\nError: (none)\nExit Code: 3\n\
                      Signal: (none)\nProcess Group PGID: 22328";
        assert_eq!(bare(report), ("hi\nthere".to_owned(), Some(3)));
        let empty =
            "Command: true\nDirectory: /w\nOutput: (empty)\nError: (none)\nExit Code: 0\nSignal: (none)";
        assert_eq!(bare(empty), (String::new(), Some(0)));
        let zero = report.replace("Signal: (none)", "Signal: 0");
        assert_eq!(bare(&zero), ("hi\nthere".to_owned(), Some(3)));
        let result = "Tool: terminal\nResult:\nhi\nthere\n\n📁 Working directory: /w\n🐍 Python interpreter: /py\n\
                      ✅ Exit code: 0";
        assert_eq!(bare(result), ("hi\nthere".to_owned(), Some(0)));
        let running = "Tool: terminal\nResult:\n❌ [An error occurred during execution.]\nwhy\n\n⏳ Process still running";
        let saved = "❌ [An error occurred during execution.]\nwhy\n\n⏳ Process still running";
        assert_eq!(bare(running), (saved.to_owned(), None), "unknown lines are not removed");
        assert_eq!(bare("[Command exited with code 3]\nhi\n"), ("hi\n".to_owned(), Some(3)));
    }

    #[test]
    fn the_title_of_a_command_contains_the_command_and_not_its_files() {
        let mut patch = ToolCallPatch::new("t".into());
        patch.title = Patch::Set("run: {\"command\": \"rm -rf build\"}".to_owned());
        patch.input = Patch::Set(crate::model::ToolInput {
            command: Some("rm -rf build".to_owned()),
            ..crate::model::ToolInput::default()
        });
        let location = crate::model::Location { path: "/w/notes.txt".into(), line: None };
        patch.locations = Patch::Set(vec![location]);
        readable_title(&mut patch);
        assert_eq!(patch.title, Patch::Set("run: rm -rf build".to_owned()));
    }

    #[test]
    fn incomplete_wrappers_are_not_removed() {
        for text in [
            "Command: make\nit works",
            "Command: a\nDirectory: b\nOutput: c\nError: no such file\nExit Code: 1\nSignal: (none)",
            "Command: a\nDirectory: b\nOutput: c\nError: (none)\nExit Code: (none)\nSignal: 9",
            "Tool: hammer",
            "[Command exited with code x]",
            "hi\nExit code: 0",
            "",
        ] {
            assert_eq!(unwrap(text), None, "{text}");
        }
        let own = "Tool: terminal\nResult:\nWorking directory: mine";
        assert_eq!(
            bare(own).0,
            "Working directory: mine",
            "the output may contain such a line without an emoji"
        );
    }
}
