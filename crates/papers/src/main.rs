//! The binary `millpond-papers`.

use std::process::ExitCode;

use millpond_papers::Policies;

fn main() -> ExitCode {
    millpond_papers::main_with(Policies::builtin())
}
