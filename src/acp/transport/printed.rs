//! Reads a secret from the first line of a command's output.
//!
//! Invariant: no text for the screen or a log contains it.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::program::{self, Start, StartedBy};

const MAX_BYTES: u64 = 64 << 10;

/// Timeout of the command, which may wait for the touch of a security key.
const PROGRAM_TIME: Duration = Duration::from_secs(60);

/// Runs a command and returns the first line of its output. The error is a clause that does not contain the output.
pub async fn first_line(parts: &[String]) -> Result<String, String> {
    let Some((program, args)) = parts.split_first() else {
        return Err("the command is empty".to_owned());
    };
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
            let last: String = last.chars().filter(|envelope| !envelope.is_control()).take(200).collect();
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
}
