//! Runs an agent on another machine with the system's ssh, which is found on PATH and uses the user's configuration.

use std::path::Path;

use crate::model::{
    AgentSpec, CloseReason, ExitInfo, NO_FOLDER, NO_FOLDER_CODE, RemoteFolder, SSH_FAILED_CODE, Ssh, SshRun,
};

#[derive(Debug)]
pub struct Line {
    ssh: Ssh,
    remote: RemoteFolder,
    command: String,
}

impl Line {
    /// The connection for an agent on another machine; `cwd` is the local folder of the session.
    pub fn of(spec: &AgentSpec, cwd: &Path) -> Option<Self> {
        let (ssh, remote) = (spec.ssh.clone()?, spec.remote_folder(cwd)?);
        Some(Self { ssh, remote, command: spec.command.clone() })
    }

    /// The local command that runs the agent. `socket`: control socket of a shared connection.
    pub fn run(&self, spec: &AgentSpec, socket: Option<&Path>) -> SshRun {
        self.ssh.run(spec, &self.remote.folder, socket.filter(|socket| socket.exists()))
    }

    /// Interprets an exit of ssh; `None`: the agent itself exited.
    pub fn judge(&self, status: &ExitInfo, stderr_tail: &[String]) -> Option<CloseReason> {
        let host = &self.remote.host;
        let text = stderr_tail.join("\n");
        let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
        let error = match status.code? {
            NO_FOLDER_CODE if has(&[NO_FOLDER]) => format!(
                "Folder {} not found on {host}. Set `cwd` of this agent to an existing folder.",
                self.remote.folder.display()
            ),
            127 if has(&["not found", "No such file"]) => format!(
                "{} not found on {host}. Set its absolute path in `command`: ssh does not start a login \
                 shell, so PATH may be shorter than in your terminal.",
                self.command
            ),
            126 => format!("Cannot run {} on {host}.", self.command),
            SSH_FAILED_CODE => return Some(self.judge_ssh(stderr_tail, &has)),
            _ => return None,
        };
        Some(CloseReason::not_started(error))
    }

    fn judge_ssh(&self, stderr_tail: &[String], has: &dyn Fn(&[&str]) -> bool) -> CloseReason {
        let host = &self.remote.host;
        let said = stderr_tail.last().map(|line| line.trim().trim_end_matches('.').to_owned());
        let said = said.unwrap_or_else(|| "no reason given by ssh".to_owned());
        if has(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
            let advice = "Check with its administrator, then remove the old key with `ssh-keygen -R`.";
            return CloseReason::Refused { error: format!("The host key of {host} has changed. {advice}") };
        }
        if has(&["Permission denied", "Host key verification failed", "Too many authentication failures"]) {
            let error = format!("SSH authentication to {host} requires interaction: {said}.");
            return CloseReason::SignInFirst { error };
        }
        if has(&["usage: ssh", "unknown option", "Bad configuration option", "bad configuration options"]) {
            let advice = "Correct `ssh_args` of this agent, or your SSH configuration.";
            return CloseReason::Refused { error: format!("ssh rejected its arguments: {said}. {advice}") };
        }
        CloseReason::Unreachable { error: format!("The SSH connection to {host} failed: {said}.") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: i32, stderr: &[&str]) -> Option<CloseReason> {
        let spec = AgentSpec {
            command: "agent".to_owned(),
            cwd: Some("/srv/shop".into()),
            ssh: Some(Ssh { host: "build".to_owned(), ..Ssh::default() }),
            ..AgentSpec::default()
        };
        let tail: Vec<String> = stderr.iter().map(ToString::to_string).collect();
        Line::of(&spec, Path::new("/w"))?.judge(&ExitInfo { code: Some(code), signal: None }, &tail)
    }

    #[test]
    fn exits_of_the_agent_and_of_ssh_are_distinguished() {
        assert_eq!(judged(1, &["the agent's own trouble"]), None);
        assert_eq!(judged(66, &["the agent's own trouble"]), None);
        assert_eq!(judged(127, &["the agent's own trouble"]), None);
        for (stderr, word) in [
            ("client_loop: send disconnect: Broken pipe\r", "Broken pipe."),
            ("ssh: Could not resolve hostname build: Name or service not known", "not known."),
            ("Timeout, server build not responding.", "not responding."),
        ] {
            let Some(CloseReason::Unreachable { error: text }) = judged(255, &[stderr]) else {
                panic!("{stderr}")
            };
            assert!(text.contains("build") && text.ends_with(word), "{text}");
        }
        assert!(matches!(judged(255, &[]), Some(CloseReason::Unreachable { .. })));
    }

    #[test]
    fn errors_name_the_remedy() {
        for stderr in ["ada@build: Permission denied (publickey,password).", "Host key verification failed."]
        {
            assert!(matches!(judged(255, &[stderr]), Some(CloseReason::SignInFirst { .. })), "{stderr}");
        }
        let changed =
            ["@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "Host key verification failed."];
        assert!(
            matches!(judged(255, &changed), Some(CloseReason::Refused { error: text }) if text.contains("ssh-keygen -R"))
        );
        let wrong = judged(255, &["command-line: line 0: Bad configuration option: x"]);
        assert!(matches!(wrong, Some(CloseReason::Refused { error: text }) if text.contains("ssh_args")));
        let text = match judged(66, &["parlor: there is no folder /srv/shop"]) {
            Some(CloseReason::NotStarted { error: text, .. }) => text,
            other => panic!("{other:?}"),
        };
        assert!(text.contains("/srv/shop not found on build"), "{text}");
        assert!(matches!(
            judged(127, &["sh: 1: exec: agent: not found"]),
            Some(CloseReason::NotStarted { error: text, .. }) if text.contains("absolute path")
        ));
        assert!(matches!(judged(126, &[]), Some(CloseReason::NotStarted { .. })));
    }
}
