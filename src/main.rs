//! The program: reads the command line, runs, and prints what went wrong.

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
fn main() -> ExitCode {
    match parlor::cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("parlor: {error:#}");
            ExitCode::FAILURE
        }
    }
}
