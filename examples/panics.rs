//! A program that takes the screen as parlor does and then panics, for the test of what the terminal is left in.

use parlor::runtime::tty::Tty;

fn main() -> anyhow::Result<()> {
    let mut tty = Tty::enter(true, "")?;
    assert!(std::env::args().count() > 1, "fell on purpose");
    tty.leave();
    Ok(())
}
