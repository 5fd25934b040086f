//! The profile for `sandbox-exec` that has the same bounds as a plan. Untested on macOS.
//!
//! Of all rules that match, the last one counts. Rules name paths, so nothing protected may get another path: folders above
//! cannot be moved, and hard links cannot be made. Sources: the profiles of macOS in `/System/Library/Sandbox/Profiles`, of
//! Chromium and of Codex.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::plan::Plan;
use super::tables::TERMINAL;
use crate::host::os::sandbox::Cover;

/// Everything is allowed but other processes and the services of macOS that start programs or write files outside of the
/// sandbox. macOS ignores `(target others)` in a rule that denies signals.
const START: &str = r#"(version 1)
(allow default)
(deny signal process-info* mach-priv-task-port)
(allow signal process-info* mach-priv-task-port (target same-sandbox))
(deny appleevent-send lsopen job-creation user-preference-write)
(deny process-exec (literal "/bin/launchctl"))
(deny file-write* file-link)
(allow file-write* (subpath "/dev/fd"))
"#;

/// Terminals that were opened in the sandbox have the extension.
const TERMINALS: &str = r#"(deny file-read* file-write* (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+"))
(allow file-read* file-write*
  (require-all (regex #"^/dev/ttys[0-9]+") (extension "com.apple.sandbox.pty")))
"#;

/// The arguments of `sandbox-exec` before those that it starts.
pub(super) fn arguments(plan: &Plan) -> Result<Vec<OsString>, String> {
    Ok(vec!["-p".into(), profile(plan)?.into(), "--".into()])
}

fn profile(plan: &Plan) -> Result<String, String> {
    let bounds = &plan.bounds;
    let open: Vec<&PathBuf> = bounds.write.iter().chain(&bounds.write_only).collect();
    let (mut read_only, mut hidden, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
    for cover in &plan.covers {
        match cover {
            Cover::ReadOnly(path) => read_only.push(path),
            Cover::Hidden(path, except) => {
                hidden.push(path);
                sockets.extend(except);
            }
            Cover::Pinned(_) | Cover::Terminals(_) => {}
        }
    }
    let protected = read_only.iter().chain(&hidden).copied().chain(&plan.secrets);
    let above = protected.flat_map(|path| path.ancestors().skip(1));
    let pinned: BTreeSet<&Path> = above.filter(|path| open.iter().any(|it| path.starts_with(it))).collect();
    // Such as the folder of the demo agent in parlor's own.
    let is_in_secret = |path: &&PathBuf| plan.secrets.iter().any(|secret| path.starts_with(secret));
    let own = bounds.write.iter().filter(is_in_secret);

    let mut text = START.to_owned();
    add(&mut text, "allow file-write*", "subpath", open.iter().copied().chain(&bounds.devices))?;
    add(&mut text, "deny file-read* file-write* file-clone", "subpath", &plan.secrets)?;
    add(&mut text, "allow file-read*", "subpath", &plan.readable)?;
    add(&mut text, "allow file-read* file-write*", "subpath", own)?;
    add(&mut text, "deny file-write*", "subpath", read_only)?;
    add(&mut text, "deny file-write-unlink", "literal", pinned)?;
    if let Some(ports) = &bounds.ports {
        text.push_str("(deny network-outbound (remote ip))\n");
        for port in ports {
            let _ = writeln!(text, "(allow network-outbound (remote tcp \"*:{port}\"))");
        }
    }
    // Connecting to a socket is no access to a file.
    add(&mut text, "deny file-read* file-write* network-outbound", "subpath", hidden)?;
    add(&mut text, "allow file-read* file-write* network-outbound", "literal", sockets)?;
    text.push_str(TERMINALS);
    let terminal = bounds.devices.iter().filter(|path| *path == Path::new(TERMINAL));
    add(&mut text, "allow file-read* file-write*", "literal", terminal)?;
    // As on Linux. Programs look at each folder of a path.
    text.push_str("(allow file-read-metadata)\n");
    Ok(text)
}

/// Adds a rule for these paths. Without any there is none, because it would be for all paths.
fn add(
    text: &mut String,
    rule: &str,
    filter: &str,
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), String> {
    let filters = paths.into_iter().map(|path| Ok(format!("\n  ({filter} {})", quoted(path.as_ref())?)));
    let filters: String = filters.collect::<Result<_, String>>()?;
    if !filters.is_empty() {
        let _ = writeln!(text, "({rule}{filters})");
    }
    Ok(())
}

fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not valid Unicode", path.display()))?;
    Ok(format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n")))
}

#[cfg(test)]
mod tests;
