//! The program: reads the command line, runs, and prints what went wrong.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match parlor::cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not a macro that prints: it panics when the terminal that it prints to has gone.
            let _ = writeln!(std::io::stderr(), "parlor: {error:#}");
            ExitCode::FAILURE
        }
    }
}
