//! Opens a page in the user's browser, after the user agreed.

use std::io;

use super::process;

/// Opens an address. Fails if nothing here opens addresses.
pub fn open(url: &str) -> io::Result<()> {
    process::open_address(url)
}
