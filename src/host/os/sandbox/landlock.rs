//! The bounds of a process, with Landlock.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::Bounds;

/// The newest version whose effects are tested. Version 9 would also deny connecting to sockets.
const NEWEST: ABI = ABI::V7;

/// What cannot be enforced before each version of Landlock.
const ADDED: &[(i32, &str)] = &[
    (2, "moving files between folders is denied altogether (Linux before 5.19)"),
    (3, "files can be truncated anywhere (Linux before 6.2)"),
    (4, "the TCP ports are not limited (Linux before 6.7)"),
    (5, "devices can be controlled (Linux before 6.10)"),
    (6, "other processes can be signalled, and abstract sockets used (Linux before 6.12)"),
];

/// Restricts this process and all that it starts. Returns what the kernel cannot enforce.
///
/// # Errors
/// Nothing is enforced.
pub fn restrict(bounds: &Bounds) -> Result<Vec<String>, String> {
    let status = ruleset(bounds)
        .and_then(RulesetCreated::restrict_self)
        .map_err(|error| format!("Landlock failed: {error}"))?;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Err("this kernel has no Landlock, or it is not enabled".to_owned());
    };
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("Landlock was not enforced".to_owned());
    }
    let is_missing = |(version, _): &&(i32, &str)| {
        *version > effective_abi as i32 && (*version != 4 || bounds.ports.is_some())
    };
    Ok(ADDED.iter().filter(is_missing).map(|(_, text)| (*text).to_owned()).collect())
}

fn ruleset(bounds: &Bounds) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if bounds.ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut ruleset = ruleset.create()?;
    ruleset = allow(ruleset, Path::new("/"), AccessFs::ReadDir | AccessFs::Execute)?;
    for path in &bounds.read {
        ruleset = allow(ruleset, path, AccessFs::ReadFile.into())?;
    }
    for path in &bounds.write {
        ruleset = allow(ruleset, path, write)?;
    }
    for path in &bounds.write_only {
        ruleset = allow(ruleset, path, write & !BitFlags::from(AccessFs::ReadFile))?;
    }
    for path in &bounds.devices {
        ruleset = allow(ruleset, path, device)?;
    }
    for port in bounds.ports.iter().flatten() {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(ruleset)
}

/// Allows rights at a path, if it exists and is not a link.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(path, flags, Mode::empty()) else { return Ok(ruleset) };
    let kind = file_type(&opened);
    let rights = match kind {
        Some(FileType::Symlink) | None => return Ok(ruleset),
        Some(FileType::Directory) => rights,
        Some(_) => rights & AccessFs::from_file(NEWEST),
    };
    if rights.is_empty() {
        return Ok(ruleset);
    }
    ruleset.add_rule(PathBeneath::new(opened, rights))
}

fn file_type(opened: &OwnedFd) -> Option<FileType> {
    Some(FileType::from_raw_mode(rustix::fs::fstat(opened).ok()?.st_mode))
}
