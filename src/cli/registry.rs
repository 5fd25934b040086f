//! `parlor agents search|show|install|update|remove`: agents of the protocol's registry.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

use anyhow::bail;
use clap::Subcommand;

use super::output::print;
use crate::config::catalogue::known;
use crate::escape::visible;
use crate::host::registry::{Registry, Stop};
use crate::model::{InstalledAgent, RegistryAgent, RegistryIndex};
use crate::runtime::print::Printer;

/// Subcommands about the registry.
#[derive(Debug, Clone, Subcommand)]
pub enum RegistryJob {
    /// List the agents of the registry that contain a text
    Search {
        /// Part of a name or a description; all agents without it
        text: Option<String>,
    },
    /// Show what an agent is, and what installing it downloads and runs
    Show {
        /// Id or name
        id: String,
    },
    /// Install an agent from the registry, after a question
    #[command(alias = "add")]
    Install {
        /// Id or name
        id: String,
        /// Run the install scripts of this package (repeatable)
        #[arg(long, value_name = "PACKAGE")]
        allow_scripts: Vec<String>,
        /// Install without the question
        #[arg(long)]
        yes: bool,
    },
    /// Update the installed agents, or one of them, after a question
    Update {
        /// Id or name
        id: Option<String>,
        /// Update without the question
        #[arg(long)]
        yes: bool,
    },
    /// Remove an installed agent with everything that was downloaded for it
    #[command(aliases = ["rm", "uninstall"])]
    Remove {
        /// Id or name
        id: String,
    },
}

/// Runs a subcommand.
///
/// # Errors
/// What failed, with the next step.
pub fn run(job: &RegistryJob, registry: &Registry, out: &mut Printer<'_>) -> anyhow::Result<()> {
    match job {
        RegistryJob::Search { text } => {
            let index = current(registry, out)?;
            let listed = search(&index, text.as_deref().unwrap_or_default(), &registry.installed());
            print(out, &listed)
        }
        RegistryJob::Show { id } => {
            let index = current(registry, out)?;
            let agent = find(&index, id)?;
            print(out, &show(agent, registry))
        }
        RegistryJob::Install { id, allow_scripts, yes } => {
            let index = current(registry, out)?;
            install(find(&index, id)?, allow_scripts, *yes, registry, out)
        }
        RegistryJob::Update { id, yes } => update(id.as_deref(), *yes, registry, out),
        RegistryJob::Remove { id } => {
            let all = registry.installed();
            let installed = all.iter().find(|agent| is_named(&agent.id, &agent.title, id));
            let id = installed.map_or(id.as_str(), |agent| agent.id.as_str());
            registry.remove(id).map_err(anyhow::Error::msg)?;
            print(out, &format!("Removed {}.\n", visible(id)))
        }
    }
}

/// The current registry, or the last one with the reason.
fn current(registry: &Registry, out: &mut Printer<'_>) -> anyhow::Result<RegistryIndex> {
    Ok(match registry.refresh() {
        Ok(index) => index,
        Err(error) => {
            let index = registry.index();
            print(out, &format!("{error}\nUsing the {}.\n\n", index.origin))?;
            index
        }
    })
}

/// Whether a name means an agent: its id, its title, or its name in parlor.
fn is_named(id: &str, title: &str, name: &str) -> bool {
    let of_id = known(id).map(|known| known.name);
    id.eq_ignore_ascii_case(name)
        || title.eq_ignore_ascii_case(name)
        || of_id.is_some() && known(name).map(|known| known.name) == of_id
}

fn find<'a>(index: &'a RegistryIndex, name: &str) -> anyhow::Result<&'a RegistryAgent> {
    match index.agents.iter().find(|agent| is_named(&agent.id, &agent.title, name)) {
        Some(agent) => Ok(agent),
        None => bail!("the {} has no agent `{name}`; see `parlor agents search`", index.origin),
    }
}

fn search(index: &RegistryIndex, text: &str, installed: &[InstalledAgent]) -> String {
    let text = text.to_lowercase();
    let has_text = |agent: &&RegistryAgent| {
        [&agent.id, &agent.title, &agent.description].iter().any(|part| part.to_lowercase().contains(&text))
    };
    let found: Vec<&RegistryAgent> = index.agents.iter().filter(has_text).collect();
    let width = found.iter().map(|agent| agent.id.chars().count()).max().unwrap_or_default();
    let mut listed = format!("{} agents in the {}\n\n", found.len(), index.origin);
    for agent in found {
        let state = match installed.iter().find(|installed| installed.id == agent.id) {
            Some(installed) if installed.version == agent.version => "installed".to_owned(),
            Some(installed) => format!("installed: {}", installed.version),
            None if agent.quarantine.is_some() => "withdrawn".to_owned(),
            None => index.needs(agent).unwrap_or("not for this system").to_owned(),
        };
        let _ = writeln!(
            listed,
            "{:width$}  {} ({state})\n{:width$}  {}",
            agent.id,
            visible(&agent.version),
            "",
            visible(&agent.description)
        );
    }
    listed
}

fn show(agent: &RegistryAgent, registry: &Registry) -> String {
    let mut text = format!("{} {} ({})\n", visible(&agent.title), visible(&agent.version), agent.id);
    for line in [Some(&agent.description), agent.page.as_ref()].into_iter().flatten() {
        let _ = writeln!(text, "{}", visible(line));
    }
    text.push_str("\nTo install it, parlor does this:\n");
    for line in agent.plan(registry.agents_dir()) {
        let _ = writeln!(text, "  {}", visible(&line));
    }
    text
}

/// Asks on the terminal; `false` without one.
fn agrees(question: &str, out: &mut Printer<'_>) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("this needs an answer; run it in a terminal, or pass --yes");
    }
    print(out, &format!("\n{question} [y/N] "))?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn install(
    agent: &RegistryAgent,
    scripts: &[String],
    is_agreed: bool,
    registry: &Registry,
    out: &mut Printer<'_>,
) -> anyhow::Result<()> {
    print(out, &show(agent, registry))?;
    if !is_agreed && !agrees(&format!("Install {}?", visible(&agent.title)), out)? {
        return print(out, "Nothing was installed.\n");
    }
    let said = RefCell::new(Vec::new());
    let say = |line: String| {
        // Progress is lost with a closed terminal; the installation is not.
        let _ = Printer::stderr().print(&format!("  {}\n", visible(&line)));
        said.borrow_mut().push(line);
    };
    let done = registry.install(agent, scripts, &Stop::default(), &say);
    let (installed, skipped) = done.map_err(|error| {
        let said = said.borrow();
        let unsaid = error.lines().filter(|line| said.iter().all(|other| other != line));
        anyhow::Error::msg(unsaid.collect::<Vec<_>>().join("\n"))
    })?;
    let name = known(&installed.id).map_or(installed.id.as_str(), |known| known.name);
    let mut text = format!(
        "Installed {} {}. Start it with `parlor --agent {name}`.\n",
        installed.title, installed.version
    );
    if !skipped.is_empty() {
        let _ = writeln!(
            text,
            "Install scripts were not run: {}. If the agent does not start, install it again with --allow-scripts PACKAGE.",
            skipped.join(", ")
        );
    }
    print(out, &text)
}

/// Whether a version precedes another. Versions of another form than semantic ones are not compared.
fn is_older(version: &str, other: &str) -> bool {
    let parsed = [version, other].map(|text| semver::Version::parse(text.trim_start_matches('v')));
    matches!(parsed, [Ok(version), Ok(other)] if version < other)
}

fn update(
    id: Option<&str>,
    is_agreed: bool,
    registry: &Registry,
    out: &mut Printer<'_>,
) -> anyhow::Result<()> {
    let index = registry.refresh().map_err(anyhow::Error::msg)?;
    let installed = registry.installed();
    let wanted = |agent: &&InstalledAgent| id.is_none_or(|id| is_named(&agent.id, &agent.title, id));
    let chosen: Vec<&InstalledAgent> = installed.iter().filter(wanted).collect();
    if let (Some(id), true) = (id, chosen.is_empty()) {
        bail!("the agent {id} is not installed; see `parlor agents list`");
    }
    let (mut count, mut older_count) = (0, 0);
    for agent in chosen {
        let Some(entry) = index.agents.iter().find(|entry| entry.id == agent.id) else { continue };
        if is_older(&entry.version, &agent.version) {
            let (title, here) = (visible(&agent.title), visible(&agent.version));
            let there = visible(&entry.version);
            print(out, &format!("{title}: {here} is installed; the registry has the older {there}.\n"))?;
            older_count += 1;
        } else if entry.version != agent.version {
            let newer = entry;
            print(out, &format!("{}: {} is installed.\n", visible(&agent.title), visible(&agent.version)))?;
            install(newer, &[], is_agreed, registry, out)?;
            count += 1;
        }
    }
    let text = match (count, older_count) {
        (0, 0) => "All installed agents are up to date.\n",
        (0, _) => "Nothing to update.\n",
        _ => return Ok(()),
    };
    print(out, text)
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn only_semantic_versions_are_compared() {
        assert!(is_older("1.9.0", "1.10.0") && is_older("v1.0.0-rc.1", "1.0.0"));
        for (version, other) in
            [("1.10.0", "1.9.0"), ("1.0.0", "1.0.0"), ("2026.1", "2026.2"), ("1.0rc1", "1.0")]
        {
            assert!(!is_older(version, other), "{version} {other}");
        }
    }
}
