//! Runs an agent's sign-in command in the terminal.
//!
//! The caller asks the user and releases the screen first. The command has a pseudo terminal that passes keys and
//! output on, so that parlor can show the end of its output after a failure.

mod relay;

pub use relay::restore_modes;

use crate::model::{AgentSpec, SignInRefusal, check_environment};
use crate::program::{Refusal, Start, StartedBy};

/// Runs the command until it exits, with the variables of the sign-in method. The error is a message for the user,
/// followed by the last lines that the command printed.
pub fn run(spec: &AgentSpec, env: &[(String, String)]) -> Result<(), String> {
    match relay::run(&command(spec, env)?) {
        Ok((status, _)) if status.success() => Ok(()),
        Ok((status, lines)) => {
            let cause = status.signal().map_or_else(|| format!("code {}", status.exit_code()), str::to_owned);
            let first = format!("the sign-in command exited with {cause}");
            Err(std::iter::once(first).chain(lines).collect::<Vec<_>>().join("\n"))
        }
        Err(error) => Err(format!("could not run {}: {error}", spec.command_line())),
    }
}

/// The sign-in command of an agent; on another machine it runs in the terminal over ssh. Without a command, only the
/// SSH connection is authenticated. Agents at URLs have no command.
fn command(spec: &AgentSpec, env: &[(String, String)]) -> Result<Start, String> {
    if spec.remote.is_some() {
        return Err(SignInRefusal::Remote.reason());
    }
    let failed = |refusal: Refusal| format!("could not run {}: {refusal}", spec.command_line());
    let find = |name: &str, folder, own: &[(String, String)]| {
        Start::find(StartedBy::User, name, folder, own).map_err(failed)
    };
    if let Some(ssh) = &spec.ssh {
        let start = find(ssh.program(), None, &[])?;
        let start = match &spec.cwd {
            Some(folder) if !spec.command.is_empty() => {
                check_environment(env).map_err(|refused| refused.reason())?;
                let all = spec.env.iter().chain(env).cloned().collect();
                start.args(ssh.run_in_terminal(&AgentSpec { env: all, ..spec.clone() }, folder))
            }
            _ => start.args(ssh.sign_in(ssh.socket(|name| std::env::var_os(name)).as_deref())),
        };
        return Ok(start);
    }
    let start = find(&spec.command, spec.cwd.as_deref(), &spec.env)?;
    let start = start.with_variables(StartedBy::SignIn, env).map_err(failed)?;
    Ok(start.args(&spec.args))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Remote;

    fn shell(script: &str) -> AgentSpec {
        AgentSpec {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            ..AgentSpec::default()
        }
    }

    #[test]
    fn the_exit_code_determines_the_result() {
        assert_eq!(run(&shell("exit 0"), &[]), Ok(()));
        assert!(run(&shell("exit 3"), &[]).is_err_and(|error| error.contains('3')));
    }

    #[test]
    fn errors_contain_the_last_lines_of_the_output() {
        let script = "for n in 1 2 3 4 5 6; do echo line $n; done; printf '\\033[31m%s\\033[0m\\n' 'no route' >&2; exit 1";
        let error = run(&shell(script), &[]).unwrap_err();
        let expected = "the sign-in command exited with code 1\nline 3\nline 4\nline 5\nline 6\nno route";
        assert_eq!(error, expected);
        let long = run(&shell("printf '%01000d' 7; exit 1"), &[]).unwrap_err();
        assert!(long.len() < 400, "{long}");
    }

    #[test]
    fn the_command_has_a_terminal() {
        assert_eq!(run(&shell("test -t 0 && test -t 1 && test -t 2 && : </dev/tty"), &[]), Ok(()));
    }

    #[test]
    fn errors_contain_the_missing_program() {
        let spec = AgentSpec { command: "no-such-sign-in".to_owned(), ..AgentSpec::default() };
        assert!(run(&spec, &[]).is_err_and(|error| error.contains("no-such-sign-in")));
    }

    #[test]
    fn the_method_cannot_set_variables_that_change_the_program() {
        let env = |name: &str| vec![(name.to_owned(), "/tmp".to_owned())];
        let own = AgentSpec { env: env("NODE_OPTIONS"), ..shell("[ \"$ACCOUNT$NODE_OPTIONS\" = /tmp/tmp ]") };
        assert_eq!(run(&own, &env("ACCOUNT")), Ok(()), "the user's own variables are set");
        for name in ["PATH", "LD_PRELOAD", "BASH_ENV"] {
            assert!(run(&shell("exit 0"), &env(name)).is_err_and(|error| error.contains(name)), "{name}");
        }
    }

    #[test]
    fn remote_agents_have_no_sign_in_command() {
        let remote = AgentSpec { remote: Some(Remote::default()), ..shell("exit 0") };
        assert!(run(&remote, &[]).is_err_and(|error| error.contains("runs on another machine")));
    }
}
