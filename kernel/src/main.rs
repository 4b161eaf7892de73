//! The `xlazy` binary.
use std::process::ExitCode;

fn main() -> ExitCode {
    xlazy_kernel::cli::main()
}
