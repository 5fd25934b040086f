//! A program that takes the screen like parlor and then panics, for the test of the terminal's state afterwards.

use parlor::runtime::tty::Tty;

fn main() -> anyhow::Result<()> {
    let mut tty = Tty::enter(true, true, "")?;
    assert!(std::env::args().count() > 1, "panic on purpose");
    tty.leave();
    Ok(())
}
