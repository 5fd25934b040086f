//! Installs one version of an agent into its folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Deserialize;

use super::{CANCELLED, Stop, fetch, unpack};
use crate::host::os::private;
use crate::host::os::process::{self, Ending, ProcessId};
use crate::model::{AgentSource, RegistryAgent, SourceKind, install_args};
use crate::program::{self, Start, StartedBy};

/// How often an installer is checked for its end.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Number of last lines of an installer that are shown when it fails.
const LAST_LINES: usize = 6;

/// What an installation has produced.
#[derive(Debug)]
pub struct Made {
    /// The program, absolute.
    pub command: PathBuf,
    /// The checksum of the archive, computed from what was downloaded.
    pub sha256: Option<String>,
    /// Packages with install scripts that were not run.
    pub skipped_scripts: Vec<String>,
}

/// Removes a folder with its contents, and the folder above it if that is empty.
pub fn remove_folder(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    if let Some(parent) = folder.parent() {
        let _ = fs::remove_dir(parent);
    }
}

/// Fills a folder anew. If that fails, the folder has its former contents again, or is gone.
pub fn replacing<T>(folder: &Path, fill: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
    let cannot = |error: std::io::Error| format!("Cannot replace {}: {error}.", folder.display());
    // No version begins with a dot.
    let mut name = OsString::from(".former-");
    name.push(folder.file_name().unwrap_or_default());
    let former = folder.with_file_name(name);
    if former.exists() {
        // An installation was interrupted, so the folder is incomplete.
        remove_folder(folder);
    }
    let had_former = former.exists() || folder.exists();
    if folder.exists() {
        fs::rename(folder, &former).map_err(cannot)?;
    }
    let filled = fill(folder);
    if filled.is_ok() {
        let _ = fs::remove_dir_all(&former);
    } else if had_former {
        let _ = fs::remove_dir_all(folder);
        fs::rename(&former, folder).map_err(cannot)?;
    } else {
        remove_folder(folder);
    }
    filled
}

/// Installs into a folder that does not exist yet.
pub fn install(
    agent: &RegistryAgent,
    folder: &Path,
    scripts: &[String],
    stop: &Stop,
    say: &dyn Fn(String),
) -> Result<Made, String> {
    let Some(source) = &agent.source else {
        return Err(format!("{} is not available for this system.", agent.title));
    };
    private::make_folder(folder).map_err(|error| format!("Cannot create {}: {error}.", folder.display()))?;
    match source.kind {
        SourceKind::Npm => npm(source, folder, scripts, stop, say),
        SourceKind::Pypi => uv(source, folder, stop, say),
        SourceKind::Archive => archive(source, folder, stop, say),
    }
}

fn archive(source: &AgentSource, folder: &Path, stop: &Stop, say: &dyn Fn(String)) -> Result<Made, String> {
    let download = folder.join(".download");
    let sum = fetch::download(&source.from, &download, stop, say)?;
    if let Some(expected) = &source.sha256
        && *expected != sum
    {
        return Err(format!(
            "The download does not have the checksum of the registry, so it was deleted. Expected {expected}, got {sum}. \
             Refresh the registry, and report this if it persists."
        ));
    }
    say("Unpacking".to_owned());
    let program = source.command.as_deref().unwrap_or_default();
    unpack::unpack(&download, &source.from, folder, program)
        .map_err(|why| format!("The download was refused: {why}. It was deleted."))?;
    let _ = fs::remove_file(&download);
    let command = folder.join(program);
    if !command.is_file() {
        return Err(format!("The archive does not contain {program}."));
    }
    Ok(Made { command, sha256: Some(sum), skipped_scripts: Vec::new() })
}

fn npm(
    source: &AgentSource,
    folder: &Path,
    scripts: &[String],
    stop: &Stop,
    say: &dyn Fn(String),
) -> Result<Made, String> {
    // Without it, npm would look for a project in the folders above.
    private::replace(&folder.join("package.json"), b"{\"private\": true}\n")
        .map_err(|error| format!("Cannot write to {}: {error}.", folder.display()))?;
    run("npm", &install_args(source, folder), &[], folder, stop, say)?;
    let mut skipped = with_scripts(folder);
    let wanted: Vec<String> = skipped.iter().filter(|name| scripts.contains(name)).cloned().collect();
    if !wanted.is_empty() {
        say(format!("Running the install scripts of {}", wanted.join(", ")));
        let prefix = folder.to_string_lossy().into_owned();
        let args = ["rebuild", "--prefix", &prefix, "--ignore-scripts=false", "--"].map(str::to_owned);
        let args: Vec<String> = args.into_iter().chain(wanted.iter().cloned()).collect();
        run("npm", &args, &[], folder, stop, say)?;
        skipped.retain(|name| !wanted.contains(name));
    }
    let name = package_name(&source.from);
    let command = match &source.command {
        Some(command) => command.clone(),
        None => npm_command(folder, name)?,
    };
    let command = folder.join("node_modules/.bin").join(command);
    if !command.exists() {
        return Err(format!("The package {name} has no command {}.", command.display()));
    }
    Ok(Made { command, sha256: None, skipped_scripts: skipped })
}

/// The only command of a package, or the one with its name.
pub(super) fn npm_command(folder: &Path, name: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Package {
        #[serde(default)]
        bin: Bin,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Bin {
        Several(BTreeMap<String, String>),
        One(serde::de::IgnoredAny),
    }
    impl Default for Bin {
        fn default() -> Self {
            Self::Several(BTreeMap::new())
        }
    }
    let file = folder.join("node_modules").join(name).join("package.json");
    let text = fs::read(&file).map_err(|error| format!("The package {name} is incomplete: {error}."))?;
    let package: Package =
        serde_json::from_slice(&text).map_err(|error| format!("The package {name} is damaged: {error}."))?;
    let own = name.rsplit('/').next().unwrap_or(name);
    match package.bin {
        Bin::One(_) => Ok(own.to_owned()),
        Bin::Several(all) if all.contains_key(own) => Ok(own.to_owned()),
        Bin::Several(all) => match all.keys().collect::<Vec<_>>().as_slice() {
            [only] => Ok((*only).clone()),
            [] => Err(format!("The package {name} has no command.")),
            names => Err(format!(
                "The package {name} has several commands, and the registry names none: {names:?}. Configure one of them."
            )),
        },
    }
}

/// The packages with install scripts, except optional ones, without which an agent works.
pub(super) fn with_scripts(folder: &Path) -> Vec<String> {
    #[derive(Deserialize)]
    struct Lock {
        packages: BTreeMap<String, Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default, rename = "hasInstallScript")]
        has_script: bool,
        #[serde(default)]
        optional: bool,
    }
    let text = fs::read(folder.join("node_modules/.package-lock.json")).unwrap_or_default();
    let lock: Option<Lock> = serde_json::from_slice(&text).ok();
    let packages = lock.into_iter().flat_map(|lock| lock.packages);
    let names = packages
        .filter(|(_, entry)| entry.has_script && !entry.optional)
        .filter_map(|(path, _)| path.rsplit_once("node_modules/").map(|(_, name)| name.to_owned()));
    names.collect()
}

fn uv(source: &AgentSource, folder: &Path, stop: &Stop, say: &dyn Fn(String)) -> Result<Made, String> {
    let bin = folder.join("bin");
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let own = |name: &str, value: String| (name.to_owned(), value);
    let env = [
        own("UV_TOOL_DIR", path(&folder.join("tools"))),
        own("UV_TOOL_BIN_DIR", path(&bin)),
        own("UV_NO_CONFIG", "1".to_owned()),
    ];
    // A Python of this machine is preferred. One that has to be downloaded is removed together with the agent.
    let here = [&env[..], &[own("UV_PYTHON_DOWNLOADS", "never".to_owned())]].concat();
    let loaded = [&env[..], &[own("UV_PYTHON_INSTALL_DIR", path(&folder.join("python")))]].concat();
    let mut args = install_args(source, folder);
    match run("uv", &args, &here, folder, stop, say) {
        Err(error) if is_about_python(&error) => {
            say("Looking for another Python".to_owned());
            let wanted = wanted_python(&error).map(|version| ["--python".to_owned(), version.to_owned()]);
            // Before the package, which is last.
            let at = args.len().saturating_sub(2);
            args.splice(at..at, wanted.into_iter().flatten());
            run("uv", &args, &loaded, folder, stop, say)?;
        }
        done => done?,
    }
    let name = package_name(&source.from);
    let command = bin.join(source.command.as_deref().unwrap_or(name));
    if !command.exists() {
        return Err(format!("The package {name} has no command {}.", command.display()));
    }
    Ok(Made { command, sha256: None, skipped_scripts: Vec::new() })
}

/// Whether uv reports that it has no suitable Python.
fn is_about_python(error: &str) -> bool {
    ["does not satisfy Python", "No interpreter found", "python-build-standalone"]
        .iter()
        .any(|phrase| error.contains(phrase))
}

/// The versions of Python that a package needs, from the error of uv.
fn wanted_python(error: &str) -> Option<&str> {
    let (_, rest) = error.split_once("does not satisfy Python")?;
    let end =
        rest.find(|sign: char| !sign.is_ascii_digit() && !".,<>=!~*".contains(sign)).unwrap_or(rest.len());
    rest.get(..end).filter(|version| !version.is_empty())
}

/// What helps after an installer has failed, by what it has printed.
fn advice(output: &str) -> Option<&'static str> {
    if output.contains("python-build-standalone") {
        Some(
            "uv found no suitable Python, and could not download one. Check the network, or install a newer Python.",
        )
    } else if is_about_python(output) {
        Some(
            "uv found no suitable Python. Install a newer one, or set UV_PYTHON to its version or path, such as \
             UV_PYTHON=3.13.",
        )
    } else if output.contains("no usable wheels") || output.contains("building from source is disabled") {
        Some(
            "A package that it needs exists only as source, and parlor runs no setup scripts. Install the agent \
             yourself; parlor finds it on the PATH.",
        )
    } else {
        None
    }
}

/// The name of a package without its version.
fn package_name(package: &str) -> &str {
    let bare = package.split("==").next().unwrap_or(package);
    match bare.rfind('@') {
        Some(at) if at > 0 => bare.get(..at).unwrap_or(bare),
        _ => bare,
    }
}

/// Runs an installer until it ends, and passes its lines on.
fn run(
    name: &str,
    args: &[String],
    env: &[(String, String)],
    folder: &Path,
    stop: &Stop,
    say: &dyn Fn(String),
) -> Result<(), String> {
    let help = match name {
        "npm" => "Install Node.js (https://nodejs.org), which includes npm",
        _ => "Install uv (https://docs.astral.sh/uv)",
    };
    let start = Start::find(StartedBy::User, name, Some(folder), &[])
        .and_then(|start| start.with_variables(StartedBy::User, env))
        .map_err(|refusal| format!("{name} cannot be started ({refusal}). {help}, then try again."))?;
    let mut command = start.args(args).command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program::spawn(&mut command)
        .map_err(|error| format!("{name} could not be started: {error}. {help}."))?;
    let group = ProcessId::of(child.id());
    let (sender, lines) = mpsc::channel();
    let outputs: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|output| Box::new(output) as Box<dyn Read + Send>),
        child.stderr.take().map(|output| Box::new(output) as Box<dyn Read + Send>),
    ];
    for output in outputs.into_iter().flatten() {
        let sender = sender.clone();
        let read = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        };
        let started = thread::Builder::new().name("installer output".to_owned()).spawn(read);
        started.map_err(|error| format!("{name} could not be started: {error}."))?;
    }
    drop(sender);
    let mut last: Vec<String> = Vec::new();
    let status = loop {
        let mut note = |line: String| {
            let line = line.trim().to_owned();
            if !line.is_empty() {
                say(line.clone());
                last.push(line);
                last.drain(..last.len().saturating_sub(LAST_LINES));
            }
        };
        if let Ok(line) = lines.recv_timeout(CHECK_EVERY) {
            note(line);
        }
        if stop.is_set() {
            if let Some(group) = group {
                process::end_group(group, Ending::Kill);
            }
            let _ = child.wait();
            return Err(CANCELLED.to_owned());
        }
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => {
                while let Ok(line) = lines.recv_timeout(CHECK_EVERY) {
                    note(line);
                }
                break status;
            }
            Err(error) => return Err(format!("{name} failed: {error}.")),
        }
    };
    if status.success() {
        return Ok(());
    }
    let output = last.join("\n");
    let advice = advice(&output).map(|advice| format!("{advice}\n")).unwrap_or_default();
    Err(format!("{advice}{name} ended with {status}.\n{output}"))
}

#[cfg(test)]
mod tests {
    use super::{advice, is_about_python, wanted_python};

    #[test]
    fn failures_of_uv_are_explained() {
        let old =
            "cause: Because the current Python version (3.11.7) does not satisfy Python>=3.12,<3.16 and …";
        assert_eq!(wanted_python(old), Some(">=3.12,<3.16"));
        assert!(is_about_python(old) && advice(old).is_some_and(|advice| advice.contains("UV_PYTHON=3.13")));
        let no_network = "cause: Failed to download https://host/python-build-standalone/x: dns error";
        assert!(
            is_about_python(no_network)
                && advice(no_network).is_some_and(|advice| advice.contains("network"))
        );
        let source = "ripgrepy==2.2.0 has no usable wheels and building from source is disabled";
        assert!(
            !is_about_python(source) && advice(source).is_some_and(|advice| advice.contains("setup scripts"))
        );
        assert_eq!((advice("error: package not found"), wanted_python(source)), (None, None));
    }
}
