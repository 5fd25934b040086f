//! An agent that plays a script, for tests of habits that no well-behaved library has.
//!
//! A script is a text file; each line is a step:
//! - `> WORD` reads lines until one contains WORD; its `id` becomes `$id`
//! - `< TEXT` writes a line, with `$id` replaced by that id
//! - `! CODE` ends with this exit code
//! - `# …` and blank lines are for the reader

use std::io::{BufRead, Write};

fn id_of(line: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    message.get("id").map(ToString::to_string)
}

fn main() {
    let Some(script) = std::env::args().nth(1).and_then(|file| std::fs::read_to_string(file).ok()) else {
        std::process::exit(2);
    };
    let mut input = std::io::stdin().lock().lines();
    let mut output = std::io::stdout().lock();
    let mut id = String::from("null");
    for step in script.lines() {
        match step.split_once(' ') {
            Some((">", word)) => loop {
                let Some(Ok(line)) = input.next() else { return };
                if line.contains(word) {
                    id = id_of(&line).unwrap_or(id);
                    break;
                }
            },
            Some(("<", text)) => {
                let line = text.replace("$id", &id);
                if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
                    return;
                }
            }
            Some(("!", code)) => std::process::exit(code.trim().parse().unwrap_or(1)),
            _ => {}
        }
    }
    // A script that ends keeps the pipe open, as an agent at rest does.
    while let Some(Ok(_)) = input.next() {}
}
