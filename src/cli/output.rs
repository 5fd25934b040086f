//! Output of subcommands.

use anyhow::Context as _;

use crate::runtime::print::Printer;

/// Prints a text. A closed pipe (`parlor config | head`) is not an error.
pub(super) fn print(out: &mut Printer<'_>, text: &str) -> anyhow::Result<()> {
    match out.print(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}
