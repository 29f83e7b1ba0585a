//! The binary `millpond`.

use std::process::ExitCode;

use millpond_cli::Policies;

fn main() -> ExitCode {
    millpond_cli::main_with(Policies::builtin())
}
