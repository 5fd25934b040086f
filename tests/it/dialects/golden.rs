//! Golden files of the messages with each agent, and of the resulting screen.

use std::fmt::Write as _;

use super::all_parts;
use super::parts::{Part, System, played};
use super::play::{Line, script};
use super::table::{form_title, is_of};

const FILES: [(&str, System); 6] = [
    ("openoxide", System::OpenOxide),
    ("elephant", System::Elephant),
    ("zeptoclaw", System::ZeptoClaw),
    ("activecontext", System::ActiveContext),
    ("banjo", System::Banjo),
    ("version2", System::Version2),
];

/// The messages of one form over a pipe: steps of the agent, messages of parlor, detected quirks, and the screen.
fn golden_text(part: Part) -> String {
    let writer = part.form.writer();
    let played = played(part);
    let mut text = format!("=== {}\n--- the agent\n", form_title(part.form));
    text += &script(writer.as_ref(), part.line);
    write!(text, "--- parlor\n{}--- workarounds\n", played.sent).unwrap();
    for quirk in &played.quirks {
        writeln!(text, "{quirk}").unwrap();
    }
    write!(text, "--- the user\n{}\n", played.screen).unwrap();
    text
}

#[test]
fn golden_files() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (file, system) in FILES {
            let parts = all_parts().into_iter().map(|(_, part)| part);
            let local = parts.filter(|part| is_of(part.form.system(), system) && part.line == Line::Stdio);
            let text: String = local.map(golden_text).collect();
            insta::assert_snapshot!(file, text);
        }
    });
}
