//! The owner, permissions and extended attributes of a file that is replaced. On Linux, access control lists are
//! extended attributes too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use cap_std::fs::{File, Metadata};
use xattr::FileExt as _;

use crate::host::os::modes;

/// The kernel derives them from the content.
const DERIVED: &[&str] = &["security.evm", "security.ima"];

/// Capabilities of a program, which the kernel removes with each write, like the set-user-id bits.
const CAPABILITIES: &str = "security.capability";

type Attributes = BTreeMap<OsString, Vec<u8>>;

/// Makes an empty file equal to `old` in everything but its content. `false`: it cannot be.
pub(in crate::host) fn copy(old: &File, meta: &Metadata, new: &File) -> io::Result<bool> {
    if !modes::keep_owner(new, meta) || copy_attributes(old, new).is_err() {
        return Ok(false);
    }
    new.set_permissions(meta.permissions())?;
    Ok(true)
}

fn copy_attributes(old: &File, new: &File) -> io::Result<()> {
    let (wanted, found) = (attributes(old)?, attributes(new)?);
    let new = new.try_clone()?.into_std();
    // A new file has those that its folder gives it, such as an access control list.
    for name in found.keys().filter(|name| !wanted.contains_key(*name)) {
        new.remove_xattr(name)?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| found.get(*name) != Some(value)) {
        new.set_xattr(name, value)?;
    }
    Ok(())
}

fn attributes(file: &File) -> io::Result<Attributes> {
    let file = file.try_clone()?.into_std();
    let names = match file.list_xattr() {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(Attributes::new()),
        Err(error) => return Err(error),
    };
    let mut attributes = Attributes::new();
    for name in names.filter(|name| !DERIVED.iter().any(|derived| name == derived)) {
        if let Some(value) = file.get_xattr(&name)? {
            attributes.insert(name, value);
        }
    }
    Ok(attributes)
}

/// What the kernel removes from a file when it is written.
pub(super) struct Privileges {
    meta: Metadata,
    capabilities: Option<Vec<u8>>,
}

impl Privileges {
    pub(super) fn of(file: &File, meta: &Metadata) -> io::Result<Self> {
        let capabilities = match file.try_clone()?.into_std().get_xattr(CAPABILITIES) {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            found => found.ok().flatten(),
        };
        Ok(Self { meta: meta.clone(), capabilities })
    }

    /// Sets them again; an error: not permitted.
    pub(super) fn set(&self, file: &File) -> io::Result<()> {
        if modes::has_set_id(&self.meta) {
            file.set_permissions(self.meta.permissions())?;
        }
        match &self.capabilities {
            Some(capabilities) => file.try_clone()?.into_std().set_xattr(CAPABILITIES, capabilities),
            None => Ok(()),
        }
    }
}
