//! Reads secrets: the token for a server, and the variables of an agent.
//!
//! They are in variables, in files, or in the first line of a command's output. A token is read for every connection,
//! and again when a server rejects it.
//! Invariant: no text for the screen or a log contains them.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::model::{Secret, TokenSource};
use crate::program::{self, Start, StartedBy};

const MAX_BYTES: u64 = 64 << 10;

/// Reads the token for a server. The error is in full sentences.
pub async fn token(source: &TokenSource) -> Result<Secret, String> {
    let text = match source {
        TokenSource::Env(name) => std::env::var(name).map_err(|_| {
            format!("No token: the environment variable {name} is not set. Set it before you start parlor.")
        })?,
        TokenSource::File(path) => from_file(path)
            .await
            .map_err(|error| format!("No token: cannot read the file {}: {error}.", path.display()))?,
        TokenSource::Command(parts) => first_line(parts).await.map_err(|why| format!("No token: {why}."))?,
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("No token: {source} is empty. Set the token there."));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = "it contains spaces, line breaks or non-ASCII characters";
        return Err(format!("The token from {source} is invalid: {why}. Set only the token there."));
    }
    Ok(Secret::new(text.to_owned()))
}

async fn from_file(path: &Path) -> std::io::Result<String> {
    let path = path.to_owned();
    let read = move || std::io::read_to_string(std::fs::File::open(path)?.take(MAX_BYTES));
    tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)?
}

/// Timeout of the command, which may wait for the touch of a security key.
const PROGRAM_TIME: Duration = Duration::from_secs(60);

/// Runs a command and returns the first line of its output. The error is a clause that does not contain the output.
async fn first_line(parts: &[String]) -> Result<String, String> {
    let (program, args) = parts.split_first().ok_or("the command is empty")?;
    let failed = |why: &str| format!("the command {program} {why}");
    // The command may ask for a passphrase in the terminal.
    let start = Start::find(StartedBy::User, program, None, &[]).map(Start::in_terminal);
    let start = start.map_err(|refusal| failed(&format!("could not be started ({refusal})")))?;
    let mut command = start.args(args).task();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let spawned = program::spawn_task(&mut command);
    let mut child = spawned.map_err(|error| failed(&format!("could not be started ({error})")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (text, complaints) = tokio::join!(read_some(stdout), read_some(stderr));
        (text, complaints, child.wait().await)
    };
    let Ok((text, complaints, status)) = timeout(PROGRAM_TIME, work).await else {
        return Err(failed(&format!("did not finish within {} s", PROGRAM_TIME.as_secs())));
    };
    match status {
        Ok(status) if status.success() => Ok(text.lines().next().unwrap_or_default().to_owned()),
        Ok(status) => {
            let last = complaints.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let last: String = last.chars().filter(|ch| !ch.is_control()).take(200).collect();
            let last = if last.is_empty() { last } else { format!(": {last}") };
            Err(failed(&format!("exited with {status}{last}")))
        }
        Err(error) => Err(failed(&format!("failed: {error}"))),
    }
}

/// Reads the beginning of a stream. The rest is discarded, so that the writer does not block.
async fn read_some(input: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut input) = input else { return String::new() };
    let mut text = Vec::new();
    if (&mut input).take(MAX_BYTES).read_to_end(&mut text).await.is_ok() {
        let _ = tokio::io::copy(&mut input, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The variables whose values commands print. The error is in full sentences.
pub async fn variables(commands: &[(String, Vec<String>)]) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (name, parts) in commands {
        let failed = |why: &str| format!("No value for {name}: {why}. Correct `env_command` of this agent.");
        let value = first_line(parts).await.map_err(|why| failed(&why))?;
        if value.trim().is_empty() {
            return Err(failed("the command printed nothing"));
        }
        variables.push((name.clone(), value));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_print_the_values_of_variables() {
        let shell = |script: &str| ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let commands =
            [("KEY".to_owned(), shell("echo abc; echo more")), ("B".to_owned(), shell("echo ' x'"))];
        let expected = [("KEY", "abc"), ("B", " x")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables(&commands).await.unwrap(), expected);
        for (script, why) in
            [("exit 2", "exit status: 2"), ("true", "printed nothing"), ("echo; echo abc", "nothing")]
        {
            let error = variables(&[("KEY".to_owned(), shell(script))]).await.unwrap_err();
            assert!(error.starts_with("No value for KEY: the command") && error.contains(why), "{error}");
        }
    }

    fn command(script: &str) -> TokenSource {
        TokenSource::Command(vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[tokio::test]
    async fn tokens_are_read_from_variables_files_and_commands() {
        // Cargo sets this variable for every test.
        let source = TokenSource::Env("CARGO_PKG_NAME".to_owned());
        assert_eq!(token(&source).await.unwrap().reveal(), "parlor");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "  abc-123\n").unwrap();
        assert_eq!(token(&TokenSource::File(path)).await.unwrap().reveal(), "abc-123");
        assert_eq!(token(&command("echo first; echo second")).await.unwrap().reveal(), "first");
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
            let error = token(&source).await.unwrap_err();
            assert!(error.contains(expected) && !error.contains("hush"), "{error}");
        }
    }
}
