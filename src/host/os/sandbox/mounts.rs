//! Mounts that only this process and its children see, in a user namespace that allows making them.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use rustix::fs::{FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::Cover;

/// Moves this process, which must have no other thread, to namespaces of its own with the same user and group.
pub fn enter_namespaces() -> Result<(), String> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("no user namespace: {}", error.desc()))?;
    let write = |name: &str, text: String| {
        fs::write(format!("/proc/self/{name}"), text).map_err(|error| format!("no user namespace: {error}"))
    };
    write("setgroups", "deny".to_owned())?;
    write("gid_map", format!("{group} {group} 1"))?;
    write("uid_map", format!("{user} {user} 1"))?;
    // Mounts that are made later elsewhere appear here, but not the other way round.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags)
        .map_err(|error| format!("no mounts in a user namespace ({error}); AppArmor may deny them"))
}

/// Makes the mounts. Returns the paths that could not be covered, with the reason.
pub fn cover(covers: &[Cover]) -> Vec<String> {
    let cover = |cover: &Cover| match cover {
        Cover::Pinned(path) => bind_on_itself(path).map(|_| ()),
        Cover::ReadOnly(path) => make_read_only(path),
        Cover::Terminals(path) => mount_terminals(path),
        Cover::Hidden(path, except) => hide(path, except),
    };
    let failed = |it: &Cover| match cover(it) {
        Ok(()) => None,
        // It was deleted meanwhile.
        Err(Errno::NOENT) if it.path().symlink_metadata().is_err() => None,
        Err(error) => Some(format!("{} is not protected ({error})", it.path().display())),
    };
    covers.iter().filter_map(failed).collect()
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// The path of what was opened, wherever it is meanwhile.
fn opened_path(opened: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

fn bind_on_itself(path: &Path) -> Result<OwnedFd, Errno> {
    let opened = open(path)?;
    let here = opened_path(&opened);
    rustix::mount::mount_bind_recursive(&here, &here)?;
    Ok(opened)
}

fn make_read_only(path: &Path) -> Result<(), Errno> {
    let before = bind_on_itself(path)?;
    let mounted = open(path)?;
    if is_link(&before)? {
        // A link cannot be changed, and a mount point cannot be replaced.
        return if identity(&before)? == identity(&mounted)? { Ok(()) } else { Err(Errno::AGAIN) };
    }
    set_read_only(&mounted)?;
    // If the path was replaced meanwhile, the mount is elsewhere.
    let is_read_only = rustix::fs::fstatvfs(&mounted)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    if is_read_only && identity(&before)? == identity(&mounted)? { Ok(()) } else { Err(Errno::AGAIN) }
}

fn set_read_only(mounted: &OwnedFd) -> Result<(), Errno> {
    // A namespace may not take away what its parent has set.
    let inherited = rustix::fs::fstatvfs(mounted)?.f_flag;
    let flags = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let flags = flags.into_iter().filter(|(set, _)| inherited.contains(*set)).map(|(_, flag)| flag);
    let flags = flags.fold(MountFlags::BIND | MountFlags::RDONLY, |all, flag| all | flag);
    rustix::mount::mount_remount(opened_path(mounted), flags, "")
}

fn is_link(opened: &OwnedFd) -> Result<bool, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(opened)?.st_mode) == FileType::Symlink)
}

fn identity(opened: &OwnedFd) -> Result<(u64, u64), Errno> {
    let facts = rustix::fs::fstat(opened)?;
    Ok((facts.st_dev, facts.st_ino))
}

/// Puts an empty folder or `/dev/null` over a path. Sockets in it can be kept, at the same place.
fn hide(path: &Path, except: &[PathBuf]) -> Result<(), Errno> {
    let opened = open(path)?;
    if is_link(&opened)? {
        return Ok(());
    }
    let here = opened_path(&opened);
    if FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) != FileType::Directory {
        return rustix::mount::mount_bind("/dev/null", here);
    }
    let kept: Vec<(&Path, OwnedFd)> = except
        .iter()
        .filter_map(|socket| Some((socket.strip_prefix(path).ok()?, open(socket).ok()?)))
        .collect();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", here, "tmpfs", flags, c"size=64k,mode=0700")?;
    for (name, socket) in kept {
        let place = path.join(name);
        let made = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&place, ""));
        if made.is_ok() {
            rustix::mount::mount_bind(opened_path(&socket), place)?;
        }
    }
    set_read_only(&open(path)?)
}

/// Other terminals could be read, and keys typed into them.
fn mount_terminals(path: &Path) -> Result<(), Errno> {
    let opened = open(path)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount(
        "devpts",
        opened_path(&opened),
        "devpts",
        flags,
        c"newinstance,ptmxmode=0666,mode=0620",
    )?;
    let multiplexer = Path::new("/dev/ptmx");
    // A link leads to the one in the folder already.
    if is_link(&open(multiplexer)?)? {
        Ok(())
    } else {
        rustix::mount::mount_bind(path.join("ptmx"), multiplexer)
    }
}

/// Drops all capabilities for good, also those that root would get back by starting a program.
pub fn drop_capabilities() -> Result<(), String> {
    let drop_all = || -> Result<(), Errno> {
        rustix::thread::clear_ambient_capability_set()?;
        for capability in CapabilitySet::all().iter_names().map(|(_, capability)| capability) {
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // A kernel that does not have it, or a process without the right to drop it.
                Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
        }
        let none = CapabilitySet::empty();
        rustix::thread::set_capabilities(
            None,
            CapabilitySets { effective: none, permitted: none, inheritable: none },
        )
    };
    drop_all().map_err(|error| format!("capabilities could not be dropped: {error}"))
}
