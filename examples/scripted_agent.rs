//! An agent that plays a script, for tests of habits that no well-behaved library has.
//!
//! A script is a text file; each line is a step:
//! - `> WORD` reads messages until one contains WORD; its `id` becomes `$id`, and the `terminalId` of an answer
//!   `$terminal`
//! - `? WORD` the same, but ends with code 9 if the next message does not contain WORD; kept names are replaced in it
//! - `= NAME` keeps `$id` under a name, for `$NAME`
//! - `< TEXT` writes a line, with `$id` and kept names replaced
//! - `% HEX` writes these bytes, and `+ COUNT` so many letters; no line end follows
//! - `~` from here on, messages go both ways with `Content-Length` headers
//! - `@ NAME` waits until there is a file of this name beside the script
//! - `. WORD` what follows is played only in the life of this number, counted in the file `lives` beside the script
//! - `! CODE` ends with this exit code
//! - `# …` and blank lines are for the reader

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::time::Duration;

fn id_of(line: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    message.get("id").map(ToString::to_string)
}

/// The terminal that an answer names.
fn terminal_of(line: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(message.get("result")?.get("terminalId")?.as_str()?.to_owned())
}

/// A text with the kept names replaced.
fn fill(text: &str, kept: &BTreeMap<String, String>) -> String {
    kept.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
}

/// The next message: a line, or what stands behind a header.
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

/// Counts the lives of this script and gives the number of this one, from 1.
fn count_life(script: &Path) -> usize {
    let file = script.with_file_name("lives");
    let lives = std::fs::read_to_string(&file).map_or(0, |text| text.len()) + 1;
    let _ = std::fs::write(&file, "x".repeat(lives));
    lives
}

/// Waits for a file, for at most half a minute.
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
    let mut kept = BTreeMap::from([("id".to_owned(), "null".to_owned())]);
    let (mut has_headers, mut is_played) = (false, true);
    for step in script.lines() {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        match kind {
            "." => is_played = rest == life,
            _ if !is_played => {}
            ">" | "?" => loop {
                let Some(message) = read(&mut input) else { return };
                let wanted = fill(rest, &kept);
                if message.contains(&wanted) {
                    if let Some(id) = id_of(&message) {
                        kept.insert("id".to_owned(), id);
                    }
                    if let Some(terminal) = terminal_of(&message) {
                        kept.insert("terminal".to_owned(), terminal);
                    }
                    break;
                }
                if kind == "?" {
                    let _ = writeln!(std::io::stderr(), "wanted {wanted}, got {message}");
                    std::process::exit(9);
                }
            },
            "=" => {
                kept.insert(rest.to_owned(), kept.get("id").cloned().unwrap_or_default());
            }
            "<" => {
                let text = fill(rest, &kept);
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
    // A script that ends keeps the pipe open, as an agent at rest does.
    while read(&mut input).is_some() {}
}
