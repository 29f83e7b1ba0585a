//! The binary `millpond`.

use std::process::ExitCode;

use millpond_lab::registry::Registry;

fn main() -> ExitCode {
    millpond_cli::main_with(Registry::builtin())
}
