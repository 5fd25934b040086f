//! The kind of file system that a folder is on.

use std::path::Path;

/// The name of the network file system that a folder is on; `None`: it is on a local one, or unknown.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn network_file_system(folder: &Path) -> Option<String> {
    // Source: statfs(2).
    const NETWORK: [(u64, &str); 9] = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x517b, "SMB"),
        (0x0102_1997, "9P"),
        (0x5346_414f, "AFS"),
        (0x6b41_4653, "AFS"),
        (0x00c3_6400, "Ceph"),
        (0x7375_7245, "Coda"),
    ];
    const FUSE: u64 = 0x6573_5546;
    let kind = rustix::fs::statfs(folder).ok()?.f_type;
    // Only the lower half is defined; it is signed on some processors.
    #[allow(clippy::unnecessary_cast, reason = "its type differs between processors")]
    let kind = (kind as i64).cast_unsigned() & 0xffff_ffff;
    if kind == FUSE {
        return fuse_type(&std::fs::read_to_string("/proc/self/mountinfo").ok()?, folder);
    }
    NETWORK.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| (*name).to_owned())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn network_file_system(_folder: &Path) -> Option<String> {
    None
}

/// The type of the FUSE file system that has a folder, if it is one over a network. Source: proc(5), `mountinfo`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn fuse_type(mounts: &str, folder: &Path) -> Option<String> {
    const REMOTE: [&str; 6] =
        ["fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.ceph", "fuse.davfs2"];
    let mounted = mounts.lines().filter_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        let point = fields.split(' ').nth(4)?.replace("\\040", " ");
        folder.starts_with(&point).then(|| (point.len(), kind.split(' ').next().unwrap_or_default()))
    });
    // The last one covers those before it.
    let (_, kind) = mounted.max_by_key(|(len, _)| *len)?;
    REMOTE.contains(&kind).then(|| kind.to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn remote_file_systems_of_fuse_are_found() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda rw\n\
                      40 22 0:5 / /mnt/my\\040host rw shared:1 - fuse.sshfs ada@host: rw\n\
                      41 22 0:6 / /mnt/disk rw - fuse.ntfs-3g /dev/sdb rw\n";
        let found = |folder: &str| fuse_type(mounts, Path::new(folder));
        assert_eq!(found("/mnt/my host/src").as_deref(), Some("fuse.sshfs"));
        assert_eq!(found("/mnt/disk/src"), None);
        assert_eq!(found("/home/ada"), None);
        assert_eq!(network_file_system(Path::new("/proc")), None);
    }
}
