//! The protocol log file.
//!
//! Each line is a JSON object: `{"n":1,"ms":12.345,"conn":1,"dir":"from","text":"…"}`. Lines are appended and buffered;
//! the connection flushes after each batch. `docs/debugging.md` documents the format, and `acp::log` reads it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::redact;
use crate::escape;
use crate::host::os::private;

const BUFFER_BYTES: usize = 64 << 10;

/// An open log file.
#[derive(Debug)]
pub struct Sink {
    file: BufWriter<File>,
}

#[derive(Serialize)]
struct Line<'a> {
    n: u64,
    ms: f64,
    conn: u64,
    dir: &'a str,
    text: &'a str,
}

impl Sink {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(BUFFER_BYTES, private::append(path)?) })
    }

    pub fn append(
        &mut self,
        sequence: u64,
        at: Duration,
        conn: u64,
        dir: &str,
        text: &str,
    ) -> io::Result<()> {
        let text = redact(text);
        let ms = (at.as_secs_f64() * 1e6).round() / 1e3;
        let line = Line { n: sequence, ms, conn, dir, text: &text };
        let line = serde_json::to_string(&line)?;
        self.file.write_all(escape::json(&line).as_bytes())?;
        self.file.write_all(b"\n")
    }

    /// Writes buffered lines to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
