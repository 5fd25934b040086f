//! Runs an agent's sign-in command in the terminal, as the user would by hand.
//!
//! The caller gives the screen back first; the command has standard input and output to itself.

use std::process::Command;

use crate::model::AgentSpec;

/// Runs the command to its end. `Err` says how it failed, in words for the user.
pub fn run(spec: &AgentSpec) -> Result<(), String> {
    match command(spec).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the sign-in command ended with {status}")),
        Err(error) => Err(format!("could not run {}: {error}", spec.command_line())),
    }
}

/// The command of a spec; on another machine by ssh, with the terminal. Without a command it only signs in to the
/// host.
fn command(spec: &AgentSpec) -> Command {
    if let Some(ssh) = &spec.ssh {
        let mut command = Command::new(ssh.program());
        match &spec.cwd {
            Some(folder) if !spec.command.is_empty() => command.args(ssh.run_in_terminal(spec, folder)),
            _ => command.args(ssh.sign_in(ssh.socket(|name| std::env::var_os(name)).as_deref())),
        };
        return command;
    }
    let mut command = Command::new(&spec.command);
    command.args(&spec.args).envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> AgentSpec {
        AgentSpec {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            ..AgentSpec::default()
        }
    }

    #[test]
    fn the_exit_code_decides() {
        assert_eq!(run(&shell("exit 0")), Ok(()));
        assert!(run(&shell("exit 3")).is_err_and(|error| error.contains('3')));
    }

    #[test]
    fn a_missing_program_is_named() {
        let spec = AgentSpec { command: "no-such-sign-in".to_owned(), ..AgentSpec::default() };
        assert!(run(&spec).is_err_and(|error| error.contains("no-such-sign-in")));
    }
}
