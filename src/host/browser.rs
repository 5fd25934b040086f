//! Opens a URL in the user's browser; the user has confirmed it.

use std::io;
use std::process::Stdio;
use std::thread;

use crate::program::{self, Start, StartedBy};

/// Opens a URL with the first opener of the system that starts, and does not wait for it.
pub fn open(url: &str) -> io::Result<()> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for opener in open::commands(url) {
        let name = opener.get_program().to_string_lossy().into_owned();
        let started =
            Start::find(StartedBy::Parlor, &name, None, &[]).map_err(io::Error::from).and_then(|start| {
                let mut command = start.args(opener.get_args()).command();
                program::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
            });
        match started {
            Ok(mut child) => {
                thread::Builder::new().name("opener".to_owned()).spawn(move || child.wait())?;
                return Ok(());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
