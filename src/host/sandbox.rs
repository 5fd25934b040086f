//! The sandbox of agents: `parlor __sandbox` enters it and becomes the program.
//!
//! Invariants: it runs before any thread exists; nothing that an agent chose decides about the bounds, so its variables
//! are set only for the program, and links and git data in its folders are checked; what cannot be enforced is said
//! before the program starts, and with `required` it is not started.

mod plan;
mod profile;
mod protected;
mod tables;

pub use protected::read_protected;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use self::plan::Plan;
use super::os::files;
use super::os::sandbox::{self, Cover};
use crate::model::{
    SANDBOX_COMMAND, SANDBOX_MISSING, SANDBOX_SET, SANDBOX_UNSET, SANDBOX_UNTESTED, Sandbox, SandboxMode,
};
use crate::program;

/// The only argument to try whether namespaces can be entered.
const NAMESPACES: &str = "--namespaces";

/// The argument before a program if the system has put this process in the sandbox; without one, it only tries that.
const ENTERED: &str = "--entered";

const ADVICE: &str = "Start without a sandbox: `--sandbox=off`.";

/// Enters the sandbox of these arguments and becomes the program after `--`. Returns the text that says what is enforced if
/// there is no program, otherwise only with an error.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<String, String> {
    sandbox::close_inherited();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments == [NAMESPACES] {
        return sandbox::enter_namespaces().map(|()| String::new());
    }
    if let Some((_, program)) = arguments.split_first().filter(|(first, _)| *first == ENTERED) {
        return if program.is_empty() { Ok(String::new()) } else { Err(start(program)) };
    }
    let (wanted, program) =
        Sandbox::of_arguments(arguments).ok_or("invalid arguments of the sandbox".to_owned())?;
    if let Some(tool) = sandbox::profile_tool() {
        return run_with_profile(tool, &wanted, &program);
    }
    let (missing, unopened) = enter(&wanted).map_err(|error| format!("no sandbox: {error}. {ADVICE}"))?;
    check(&wanted, &missing)?;
    if program.is_empty() { Ok(notice(&wanted, &missing, &unopened)) } else { Err(start(&program)) }
}

fn check(wanted: &Sandbox, missing: &[String]) -> Result<(), String> {
    if wanted.rules.mode == SandboxMode::Required && !missing.is_empty() {
        return Err(format!("the sandbox is incomplete: {}. {ADVICE}", missing.join("; ")));
    }
    Ok(())
}

/// Becomes the program. Returns only with an error.
fn start(program: &[OsString]) -> String {
    let Some((name, arguments)) = program.split_first() else { return "no program".to_owned() };
    let error = program::replace_process(name, arguments, &environment(std::env::vars_os()));
    format!("could not start {}: {error}", name.display())
}

/// Has the system enter the sandbox with a profile. The tool starts parlor again, which becomes the program, so that the tool
/// does not obey variables of an agent.
fn run_with_profile(tool: &str, wanted: &Sandbox, program: &[OsString]) -> Result<String, String> {
    let plan = Plan::of(wanted, |name| std::env::var_os(name));
    check(wanted, &plan.notes)?;
    // Never without the profile: what is in the session's folders could make it invalid.
    let failed = |error: String| format!("no sandbox: {}. {ADVICE}", error.trim_end_matches('.'));
    let profile = profile::arguments(&plan).map_err(failed)?;
    if program.is_empty() {
        let command: Vec<OsString> = std::iter::once(tool.into()).chain(profile).collect();
        program::run_sandbox_command(&command, &[ENTERED.into()]).map_err(failed)?;
        return Ok(format!("{} {SANDBOX_UNTESTED}", notice(wanted, &plan.notes, &plan.unopened)));
    }
    let own = [sandbox::own_program().into(), SANDBOX_COMMAND.into(), ENTERED.into()];
    let arguments: Vec<OsString> = profile.into_iter().chain(own).chain(program.iter().cloned()).collect();
    let error = program::replace_process(tool.as_ref(), &arguments, &std::env::vars_os().collect());
    Err(failed(format!("could not start {tool}: {error}")))
}

/// Restricts this process; returns what could not be enforced, and state folders that were not opened.
fn enter(wanted: &Sandbox) -> Result<(Vec<String>, Vec<PathBuf>), String> {
    let folder = std::env::current_dir().map_err(|error| format!("the working folder: {error}"))?;
    let plan = Plan::of(wanted, |name| std::env::var_os(name));
    let mut missing = plan.notes.clone();
    // Tried in a child process first: AppArmor may allow entering a namespace but not mapping the user, and this process
    // would be another user then.
    let namespaces =
        program::run_sandbox_command(&[], &[NAMESPACES.into()]).and_then(|_| sandbox::enter_namespaces());
    match namespaces {
        Ok(()) => missing.extend(sandbox::cover(&plan.covers)),
        Err(error) => missing.push(format!("{error}, so hooks, settings and sockets are not protected")),
    }
    // The folder that the process is in may now be below a mount.
    std::env::set_current_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    missing.extend(sandbox::drop_capabilities().err());
    match sandbox::restrict(&plan.bounds) {
        Ok(more) => missing.extend(more),
        Err(error) if wanted.rules.mode == SandboxMode::Required => return Err(error),
        Err(error) => missing.push(format!("{error}, so reading and writing is not limited")),
    }
    Ok((missing, plan.unopened))
}

fn notice(wanted: &Sandbox, missing: &[String], unopened: &[PathBuf]) -> String {
    let network = match wanted.rules.ports.as_deref() {
        None => "Network not limited.".to_owned(),
        Some([]) => "No TCP connections.".to_owned(),
        Some(ports) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            format!("TCP connections only to port {}.", ports.join(", "))
        }
    };
    let missing = match missing {
        [] => String::new(),
        missing => format!(" {SANDBOX_MISSING}{}.", missing.join("; ")),
    };
    let named = wanted.rules.write.iter().chain(&wanted.rules.read).filter(|path| !path.exists());
    let is_link = |path: &&PathBuf| path.canonicalize().ok().as_ref() != Some(*path);
    let granted = wanted.granted_write.iter().chain(&wanted.granted_read).filter(is_link);
    let unknown = named.chain(granted).chain(unopened).map(|path| path.display().to_string());
    let unknown = match unknown.collect::<Vec<_>>().join(", ") {
        paths if paths.is_empty() => paths,
        paths => format!(
            " Not opened because it does not exist, is too broad or secret, or is reached through a symbolic link: \
             {paths}."
        ),
    };
    format!(
        "Sandbox: the agent writes only in the session's folders, its own state, caches and temporary folders, and \
         does not read known secrets. {network}{missing}{unknown}"
    )
}

/// The variables of the program: those of this process, with the changes that the parent encoded.
fn environment(all: impl IntoIterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    let (mut own, mut changes) = (BTreeMap::new(), Vec::new());
    for (name, value) in all {
        let bytes = files::bytes(&name);
        if let Some(name) = bytes.strip_prefix(SANDBOX_SET.as_bytes()) {
            changes.push((files::from_bytes(name), Some(value)));
        } else if let Some(name) = bytes.strip_prefix(SANDBOX_UNSET.as_bytes()) {
            changes.push((files::from_bytes(name), None));
        } else {
            own.insert(name, value);
        }
    }
    for (name, value) in changes {
        match value {
            Some(value) => own.insert(name, value),
            None => own.remove(&name),
        };
    }
    own
}
