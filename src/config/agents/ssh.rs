//! Parses agents on SSH hosts: `ssh` of `[agents.NAME]`. Command and folder then refer to the host.
//!
//! `acp` connects to them, and `model::Ssh` builds the command line of ssh.

use std::ops::Range;
use std::path::PathBuf;

use toml::de::DeTable;

use super::super::read::Reader;
use super::{read_absolute, read_command_line, read_pairs, read_string};
use crate::model::{AgentSpec, Ssh};

/// Parses the agent on the table's `ssh` host; `None` if it is invalid, which is reported.
pub(super) fn read(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    span: &Range<usize>,
) -> Option<AgentSpec> {
    let host = read_string(reader, location, "ssh", table)?;
    let at = table.get("ssh").map_or(span.clone(), toml::Spanned::span);
    if let Some(fix) = Ssh::problem_of(&host) {
        reader.problem(&at, format!("invalid SSH host `{host}`"), fix);
        return None;
    }
    let args = table
        .get("ssh_args")
        .and_then(|value| reader.strings(&format!("{location}.ssh_args"), value))
        .unwrap_or_default();
    let fix = format!("add command = \"…\", the program to start on {host}");
    // The program is on the other machine, so it is not looked up.
    let (command, args_of_agent) = read_command_line(reader, location, table, span, &fix, |_| false)?;
    Some(AgentSpec {
        command,
        args: args_of_agent,
        env: read_pairs(reader, location, "env", table),
        cwd: read_cwd(reader, location, table, &host),
        ssh: Some(Ssh {
            host,
            args,
            program: read_string(reader, location, "ssh_program", table),
            gets_servers: super::remote::reads_servers(reader, location, table),
        }),
        ..AgentSpec::default()
    })
}

/// Reports keys that have no effect without `ssh`.
pub(super) fn tell_strays(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>) {
    for key in ["ssh_args", "ssh_program"] {
        if let Some((found, _)) = table.get_key_value(key) {
            let text = format!("`{key}` of `{location}` applies only to an agent on another machine");
            reader.problem(&found.span(), text, "remove it, or add ssh = \"host\"");
        }
    }
}

fn read_cwd(reader: &mut Reader<'_>, location: &str, table: &DeTable<'_>, host: &str) -> Option<PathBuf> {
    let fix = format!(
        "use a path that starts with /; the home folder on {host} is unknown. Without `cwd`, the agent uses \
         the local path"
    );
    read_absolute(reader, location, table, |text| PathBuf::from(text), &fix)
}

#[cfg(test)]
mod tests {
    use super::super::remote::tests::parse;
    use super::*;
    use crate::model::Callbacks;

    #[test]
    fn ssh_agent_is_parsed_with_remote_command_and_folder() {
        let (config, problems, shown) = parse(
            "[callbacks]\nfs = true\n[agents.far]\nssh = \"ada@build\"\nssh_args = [\"-J\", \"gate\"]\n\
             ssh_program = \"/opt/bin/ssh\"\ncommand = \"./agent\"\nargs = [\"--acp\"]\ncwd = \"/srv/shop\"\nenv = { KEY = \"k\" }\nterminal = true\n\
             editor = \"code --remote ssh-remote+build {path}\"\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        let expected = AgentSpec {
            name: "far".to_owned(),
            command: "./agent".to_owned(),
            args: vec!["--acp".to_owned()],
            env: vec![("KEY".to_owned(), "k".to_owned())],
            cwd: Some("/srv/shop".into()),
            ssh: Some(Ssh {
                host: "ada@build".to_owned(),
                args: vec!["-J".to_owned(), "gate".to_owned()],
                program: Some("/opt/bin/ssh".to_owned()),
                gets_servers: false,
            }),
            editor: Some("code --remote ssh-remote+build {path}".to_owned()),
            callbacks: Callbacks { terminal: true, ..Callbacks::NONE },
            ..AgentSpec::default()
        };
        assert_eq!(config.agents.get("far"), Some(&expected));
        assert_eq!(expected.command_line(), "./agent --acp (on ada@build over SSH)");
        for line in ["ssh = \"ada@build\"", "ssh_args = [\"-J\", \"gate\"]", "fs_read = false", "editor = "] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        // The output is valid configuration.
        assert_eq!(parse(&shown).1, Vec::<String>::new());
    }

    #[test]
    fn invalid_values_are_reported_with_a_fix() {
        for (text, expected) in [
            ("[agents.x]\nssh = \"-oProxyCommand=x\"\ncommand = \"a\"\n", "invalid SSH host"),
            ("[agents.x]\nssh = \"build\"\n", "has no command"),
            ("[agents.x]\nssh = \"build\"\ncommand = \"a\"\ncwd = \"~/shop\"\n", "is not an absolute path"),
            ("[agents.x]\nssh = \"build\"\ncommand = \"a --acp\"\n", "args = [\"--acp\"]"),
            ("[agents.x]\ncommand = \"a\"\nssh_args = [\"-4\"]\n", "add ssh = \"host\""),
            ("[agents.x]\nurl = \"https://a.org\"\nssh = \"build\"\n", "remove `ssh`"),
        ] {
            let (_, problems, _) = parse(text);
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
        let (config, _, _) = parse("[agents.x]\nssh = \"build\"\ncommand = \"a --acp\"\n");
        assert_eq!(config.agents.get("x").map(|spec| spec.args.clone()), Some(vec!["--acp".to_owned()]));
    }
}
