//! Reads the token for a server from a variable, a file, or the first line of a command's output.
//!
//! It is read for every connection, and again when a server rejects it.
//! Invariant: no text for the screen or a log contains the token.

use std::io::Read as _;
use std::path::Path;

use crate::acp::transport::printed::first_line;
use crate::model::{Secret, TokenSource};

const MAX_BYTES: u64 = 64 << 10;

/// Validates a token. The error does not contain it.
fn valid(text: &str, source: &TokenSource) -> Result<Secret, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("No token: {source} is empty. Set the token there."));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "The token from {source} is invalid: it contains spaces, line breaks or non-ASCII \
             characters. Set only the token there."
        ));
    }
    Ok(Secret::new(text.to_owned()))
}

/// Fetches a token. The error is in full sentences.
pub async fn fetch(source: &TokenSource) -> Result<Secret, String> {
    let text = match source {
        TokenSource::Env(name) => std::env::var(name).map_err(|_| {
            format!("No token: the environment variable {name} is not set. Set it before you start parlor.")
        })?,
        TokenSource::File(path) => from_file(path)
            .await
            .map_err(|error| format!("No token: cannot read the file {}: {error}.", path.display()))?,
        TokenSource::Command(parts) => first_line(parts).await.map_err(|why| format!("No token: {why}."))?,
    };
    valid(&text, source)
}

async fn from_file(path: &Path) -> std::io::Result<String> {
    let path = path.to_owned();
    let read = move || {
        let mut text = String::new();
        std::fs::File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(script: &str) -> TokenSource {
        TokenSource::Command(vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[tokio::test]
    async fn tokens_are_read_from_variables_files_and_commands() {
        // Cargo sets this variable for every test.
        let source = TokenSource::Env("CARGO_PKG_NAME".to_owned());
        assert_eq!(fetch(&source).await.unwrap().reveal(), "parlor");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "  abc-123\n").unwrap();
        assert_eq!(fetch(&TokenSource::File(path)).await.unwrap().reveal(), "abc-123");
        assert_eq!(fetch(&command("echo first; echo second")).await.unwrap().reveal(), "first");
    }

    #[tokio::test]
    async fn errors_do_not_contain_the_token() {
        for (source, expected) in [
            (TokenSource::Env("NO_SUCH_VARIABLE_ANYWHERE".to_owned()), "is not set"),
            (TokenSource::File("/no/such/file".into()), "cannot read the file"),
            (command("exit 3"), "exited with exit status: 3"),
            (command("echo locked >&2; exit 1"), "locked"),
            (command(""), "is empty"),
            (command("echo 'hush hush'"), "is invalid"),
            (TokenSource::Command(vec!["/no/such/program".to_owned()]), "could not be started"),
        ] {
            let error = fetch(&source).await.unwrap_err();
            assert!(error.contains(expected) && !error.contains("hush"), "{error}");
        }
    }
}
