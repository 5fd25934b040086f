//! `docs/compatibility.md`, made of what the plays have shown.
//!
//! `PARLOR_COMPATIBILITY=write cargo test --test it compatibility` writes the file anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::all_parts;
use super::cast::{Form, Part, System, played};
use super::play::{Ability, Line};
use super::tongues::OxideForm;
use crate::it::bridge::Shape;

const HEAD: &str = "\
# What works with which agent

Made by the tests; do not edit. `PARLOR_COMPATIBILITY=write cargo test --test it compatibility` writes it anew,
and the test fails when it is stale.

Each column is one run of the whole program without its screen: a scripted agent in the form of the system's
document or of its code, behind a server with the system's own transport. The user does the same with all of
them, and must end up with the same transcript, plan, modes and sessions as with an agent that follows the
protocol to the letter. Each cell names the test that saw it; “–” means that the system has no such thing. Below
each table stands which test is which column, and what parlor takes into account because it found it out from the
agent or knows the system.

`cargo test --test it` runs them all, besides the official SDK over stdio, HTTP and web socket. What single systems
do that has no place in such a run is in `tests/it/beside.rs`, what holds from one parlor to the next in
`tests/it/again.rs`.
";

impl Ability {
    const ALL: [Self; 21] = [
        Self::Initialize,
        Self::NewSession,
        Self::StreamedText,
        Self::Thoughts,
        Self::ToolOutput,
        Self::Diff,
        Self::Plan,
        Self::Allow,
        Self::Deny,
        Self::CancelPermission,
        Self::CancelTurn,
        Self::NextPrompt,
        Self::Commands,
        Self::Modes,
        Self::Models,
        Self::Options,
        Self::List,
        Self::Reopen,
        Self::Choices,
        Self::Fork,
        Self::Shutdown,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Initialize => "Handshake",
            Self::NewSession => "New session",
            Self::StreamedText => "Streamed text",
            Self::Thoughts => "Thoughts",
            Self::ToolOutput => "Tool calls and their output",
            Self::Diff => "Diffs",
            Self::Plan => "Plan",
            Self::Allow => "Permission allowed",
            Self::Deny => "Permission rejected",
            Self::CancelPermission => "Permission closed by a cancel",
            Self::CancelTurn => "Cancel in mid-turn",
            Self::NextPrompt => "Prompt after a cancel",
            Self::Commands => "Slash commands",
            Self::Modes => "Modes",
            Self::Models => "Models",
            Self::Options => "Options",
            Self::List => "List of sessions",
            Self::Reopen => "After the loss of the line",
            Self::Choices => "What was chosen, set again after that",
            Self::Fork => "Copy of a session",
            Self::Shutdown => "End, no request left open",
        }
    }
}

pub fn system_title(system: System) -> &'static str {
    match system {
        System::OpenOxide | System::OpenOxideWithoutForks => "OpenOxide",
        System::Elephant => "elephant.ai",
        System::ZeptoClaw | System::ZeptoClawServed => "ZeptoClaw",
        System::ActiveContext => "ActiveContext",
        System::Banjo => "Banjo",
        System::First => "The protocol, version 1",
        System::Second => "The protocol, version 2",
    }
}

pub fn form_title(form: Form) -> &'static str {
    match form {
        Form::OpenOxide(OxideForm::Methods) => "events as methods",
        Form::OpenOxide(OxideForm::Inside) => "events inside of updates",
        Form::OpenOxide(OxideForm::Bare) => "bare events",
        Form::OpenOxide(OxideForm::Unknown) => "not named to parlor",
        Form::First | Form::Second | Form::Twin(_) => "as written",
        Form::ElephantDocument
        | Form::ZeptoClawDocument
        | Form::ZeptoClawServedDocument
        | Form::ActiveContextDocument
        | Form::BanjoDocument => "as its document",
        Form::ElephantCode
        | Form::ZeptoClawCode
        | Form::ZeptoClawServedCode
        | Form::ActiveContextCode
        | Form::BanjoCode => "as its code",
    }
}

fn line_title(line: Line) -> String {
    let (shape, end) = match line {
        Line::Stdio => return "stdio".to_owned(),
        Line::Behind(shape) => (shape, ""),
        Line::Found(shape) => (shape, ", found by itself"),
    };
    let title = match shape {
        Shape::RpcSse => "`POST /acp/rpc`, `GET /acp/sse`",
        Shape::Post => "answer in the POST",
        Shape::PostSse => "POST and event stream",
        Shape::NamedEvents => "POST and stream of named events",
        Shape::HeldPosts => "POST with the answer in it, and event stream",
        Shape::Socket => "web socket",
        Shape::DeafSocket => "web socket, deaf in a turn",
        Shape::OneStream => "HTTP with one stream",
    };
    format!("{title}{end}")
}

fn section(system: System) -> String {
    let parts: Vec<(&str, Part)> =
        all_parts().into_iter().filter(|(_, part)| is_of(part.form.system(), system)).collect();
    let mut text = format!("\n## {}\n\n|", system_title(system));
    for (_, part) in &parts {
        write!(text, " | {}; {}", line_title(part.line), form_title(part.form)).unwrap();
    }
    text += " |\n|---";
    text += &"|---".repeat(parts.len());
    text += "|\n";
    for ability in Ability::ALL {
        let cell = |(name, part): &(&str, Part)| match played(*part).seen.get(&ability) {
            Some(how) => format!("[{how}][{name}]"),
            None => "–".to_owned(),
        };
        let cells: Vec<String> = parts.iter().map(cell).collect();
        writeln!(text, "| {} | {} |", ability.title(), cells.join(" | ")).unwrap();
    }
    text += "\nTests:\n\n";
    for (name, part) in &parts {
        writeln!(text, "- `{name}`: {}; {}", line_title(part.line), form_title(part.form)).unwrap();
    }
    let mut quirks: Vec<String> = Vec::new();
    for (_, part) in &parts {
        for quirk in &played(*part).quirks {
            if !quirks.contains(quirk) {
                quirks.push(quirk.clone());
            }
        }
    }
    text.push('\n');
    for (name, _) in &parts {
        writeln!(text, "[{name}]: ../tests/it/dialects.rs").unwrap();
    }
    if !quirks.is_empty() {
        text += "\nTaken into account:\n\n";
    }
    for quirk in quirks {
        writeln!(text, "- {quirk}").unwrap();
    }
    text
}

pub fn is_of(own: System, wanted: System) -> bool {
    let of = match own {
        System::OpenOxideWithoutForks => System::OpenOxide,
        System::ZeptoClawServed => System::ZeptoClaw,
        other => other,
    };
    of == wanted
}

#[test]
fn compatibility() {
    // Nearly all of their time they wait for each other.
    std::thread::scope(|scope| {
        for (_, part) in all_parts() {
            scope.spawn(move || played(part));
        }
    });
    let mut text = HEAD.to_owned();
    for system in System::ALL {
        text += &section(system);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    if std::env::var_os("PARLOR_COMPATIBILITY").is_some_and(|value| value == "write") {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &text).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        committed, text,
        "docs/compatibility.md is stale; PARLOR_COMPATIBILITY=write cargo test --test it compatibility"
    );
}
