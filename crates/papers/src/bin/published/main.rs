//! Published tables beside the simulator's results, as Markdown on standard output.
//!
//! `cargo xtask golden` runs this program and puts the result into
//! `docs/reports/fidelity/golden.md`. With `--quick`, only the traces that ship with Millpond
//! and small synthetic ones are run. Tables without their trace are left out and named as
//! skipped.

#![allow(clippy::print_stdout, clippy::print_stderr)] // its output is what it is for

mod arena;
mod gilbert;
mod hits;
mod markdown;
mod published;
mod tables_arc;
mod tables_other;
mod watt;
mod watt_lab;

use std::process::ExitCode;
use std::time::Instant;

use arena::Failure;

const USAGE: &str = "usage: published [--quick]";

fn main() -> ExitCode {
    let mut is_quick = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => is_quick = true,
            other => {
                eprintln!("'{other}' is no option; {USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match run(is_quick) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("published: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints every section when it is ready, and its time to standard error.
fn run(is_quick: bool) -> Result<(), Failure> {
    let sections: [(&str, Section); 3] = [
        ("hit ratios on real traces", hits::section),
        ("watt", watt::section),
        ("gilbert", gilbert::section),
    ];
    for (name, section) in sections {
        let start = Instant::now();
        print!("{}", section(is_quick)?);
        eprintln!("{name}: {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Writes one section; the argument asks for a quick one.
type Section = fn(bool) -> Result<String, Failure>;
