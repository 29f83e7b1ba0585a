//! One door for the project's chores: `cargo xtask <chore>`.
//!
//! `tidy` reads the tree and says where it breaks a house rule; `test` runs everything that a
//! change must pass, tidy included. A chore that runs other programs prints the command, so that
//! it can be repeated by hand.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod api;
mod capi;
mod compile;
mod crash;
mod golden;
mod peers;
mod planted;
mod sanitize;
mod site;
mod supply;
mod test;
mod tidy;
mod tree;
mod wheels;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <chore>

  tidy [RULE]… [--outliers]    check the house rules, or these; one line per violation, then the ten
                               largest files, folders and functions, or with --outliers more
  tidy --table [--json] [--sites[=tuples|openings|leaning|locks]]
                               the house in figures: sizes, names, types, prose; --sites lists the
                               places that one of the figures counts
  test [--only STEP]… [--skip STEP]… [--deep] [--table FILE] [--list]
                               formatting, lints, tidy, every test; --deep adds the long
                               campaigns and comparisons; --table writes what each step cost as
                               Markdown; --list names the steps
  api [--list]                 the engine's public functions are no more than components.toml allows;
                               --list shows them by type
  capi --prefix DIR [--debug]  the libraries for C, with header and pkg-config file, into DIR
  compile [tour] [embedder]    CPU seconds of a release build from nothing, by crate: of the program
                               that runs the tour, and of ten lines that open a store
  crash [--seeds N] [--sweeps N] [--from SEED] [--jobs N] [--reads]
                               the crash campaign: N stories, each of them the same for a seed; N
                               short ones with a blow at each of their operations in turn; N of
                               them at once; with --reads, stories in which reads go wrong
  crash --planted [BUG]… [--seeds N]
                               applies each patch of tests/planted, or these, to a copy of the tree
                               and runs the campaign that must catch the bug
  golden [--quick]             golden results and published tables against ours
  peers [--quick] [--help]     our simulator against libCacheSim's, side by side
  sanitize [address|thread] [-- ARGUMENTS OF cargo test]
                               the engine's tests under AddressSanitizer (leaks, too), or its
                               shared-latch tests under ThreadSanitizer; needs nightly's flags
  site [--open-dir DIR] [--built]
                               the documentation as pages, in DIR or target/site/pages, every link
                               checked; needs mdBook, which cargo compiles; --built takes the
                               program that tests have built, if it is up to date
  supply [--update DATABASE]   origins, licences and known faults of all dependencies; --update makes
                               the list of faults of a checkout of RustSec's database
  wheels [--target TARGET]… [--root DIR] [--built]
                               the Python package's source archive and its wheels for Linux, x86-64
                               and aarch64, in target/wheels, each of them installed and tried; with
                               DIR, a system of the other machine, that one's under qemu; --built
                               tries those that are there
";

fn main() -> ExitCode {
    if let Some(code) = api::as_rustdoc() {
        return code;
    }
    if let Some(code) = compile::as_compiler() {
        return code;
    }
    let mut arguments = std::env::args().skip(1);
    let chore = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let done = match chore.as_str() {
        "tidy" => tidy::main(&rest),
        "test" => test::main(&rest),
        "api" => api::main(&rest),
        "capi" => capi::main(&rest),
        "compile" => compile::main(&rest),
        "crash" => crash::main(&rest),
        "golden" => golden::main(&rest),
        "peers" => peers::main(&rest),
        "sanitize" => sanitize::main(&rest),
        "site" => site::main(&rest),
        "supply" => supply::main(&rest),
        "wheels" => wheels::main(&rest),
        "" | "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(true)
        }
        other => Err(anyhow::anyhow!("no chore is called `{other}`\n\n{USAGE}")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
