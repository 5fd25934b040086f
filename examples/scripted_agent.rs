//! An agent that plays a script, for tests of behavior that the SDK cannot produce.
//!
//! A script is a text file; each line is a step:
//! - `> WORD` reads messages until one contains WORD; its `id` becomes `$id`, and the `terminalId` of a response
//!   `$terminal`
//! - `? WORD` the same, but exits with code 9 if the next message does not contain WORD; saved names in it are replaced
//! - `= NAME` saves `$id` under a name, for `$NAME`
//! - `< TEXT` writes a line, with `$id` and saved names replaced
//! - `% HEX` writes these bytes, and `+ COUNT` this number of letters, without a line end
//! - `~` from here on, messages in both directions have `Content-Length` headers
//! - `@ NAME` waits until a file with this name exists next to the script
//! - `. WORD` the following steps are played only in the run with this number, counted in the file `lives` next to the
//!   script
//! - `! CODE` exits with this code
//! - `# …` and blank lines are comments

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::time::Duration;

fn id_of(line: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    message.get("id").map(ToString::to_string)
}

/// The terminal in a response.
fn terminal_of(line: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(message.get("result")?.get("terminalId")?.as_str()?.to_owned())
}

/// Replaces the saved names in a text.
fn fill(text: &str, saved: &BTreeMap<String, String>) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
}

/// The next message: a line, or the body after a header.
fn read(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    if input.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let Some(length) = line.strip_prefix("Content-Length:") else {
        return Some(line.trim_end().to_owned());
    };
    let length: usize = length.trim().parse().ok()?;
    while line != "\r\n" && line != "\n" {
        line.clear();
        input.read_line(&mut line).ok()?;
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// Counts the runs of this script, and returns the number of this one, from 1.
fn count_life(script: &Path) -> usize {
    let file = script.with_file_name("lives");
    let lives = std::fs::read_to_string(&file).map_or(0, |text| text.len()) + 1;
    let _ = std::fs::write(&file, "x".repeat(lives));
    lives
}

/// Waits for a file, for half a minute at most.
fn wait_for(file: &Path) {
    for _ in 0..3000 {
        if file.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::process::exit(8);
}

fn main() {
    let Some(file) = std::env::args().nth(1) else { std::process::exit(2) };
    let Ok(script) = std::fs::read_to_string(&file) else { std::process::exit(2) };
    let life = count_life(Path::new(&file)).to_string();
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut saved = BTreeMap::from([("id".to_owned(), "null".to_owned())]);
    let (mut has_headers, mut is_played) = (false, true);
    for step in script.lines() {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        match kind {
            "." => is_played = rest == life,
            _ if !is_played => {}
            ">" | "?" => loop {
                let Some(message) = read(&mut input) else { return };
                let wanted = fill(rest, &saved);
                if message.contains(&wanted) {
                    if let Some(id) = id_of(&message) {
                        saved.insert("id".to_owned(), id);
                    }
                    if let Some(terminal) = terminal_of(&message) {
                        saved.insert("terminal".to_owned(), terminal);
                    }
                    break;
                }
                if kind == "?" {
                    let _ = writeln!(std::io::stderr(), "wanted {wanted}, got {message}");
                    std::process::exit(9);
                }
            },
            "=" => {
                saved.insert(rest.to_owned(), saved.get("id").cloned().unwrap_or_default());
            }
            "<" => {
                let text = fill(rest, &saved);
                let text = if has_headers {
                    format!("Content-Length: {}\r\n\r\n{text}", text.len())
                } else {
                    format!("{text}\n")
                };
                if output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_err() {
                    return;
                }
            }
            "%" => {
                let byte = |pair: &str| u8::from_str_radix(pair, 16).unwrap_or(b'?');
                let bytes: Vec<u8> = rest.split_whitespace().map(byte).collect();
                if output.write_all(&bytes).and_then(|()| output.flush()).is_err() {
                    return;
                }
            }
            "+" => {
                let count = rest.trim().parse().unwrap_or(0);
                if std::io::copy(&mut std::io::repeat(b'x').take(count), &mut output).is_err() {
                    return;
                }
            }
            "~" => has_headers = true,
            "@" => wait_for(&Path::new(&file).with_file_name(rest)),
            "!" => std::process::exit(rest.trim().parse().unwrap_or(1)),
            _ => {}
        }
    }
    // At its end, the script keeps the pipe open, like an idle agent.
    while read(&mut input).is_some() {}
}
