//! First contact of a user with `millpond-papers`, before any work is done.

#[path = "../../cli/tests/faces/help.rs"]
mod help;
#[path = "../../cli/tests/samples/page.rs"]
mod page;

use std::collections::BTreeMap;
use std::process::Command;

use page::Program;

const PAPERS: Program = Program { name: "millpond-papers", command: millpond_papers::command };

fn all_commands() -> Vec<(String, clap::Command)> {
    let found = help::all_commands(millpond_papers::command());
    assert!(found.len() >= 8, "{} commands", found.len());
    found
}

#[test]
fn help_fits_into_eighty_columns() {
    help::assert_fits(&all_commands());
}

#[test]
fn examples_are_printed_as_they_are_written_and_paragraphs_are_wrapped() {
    help::assert_examples_stay(&all_commands());
}

#[test]
fn nothing_is_without_help() {
    help::assert_all_have_help(&all_commands());
}

#[test]
fn every_command_in_the_documentation_is_one_that_there_is() {
    page::assert_known(&PAPERS);
    let complaint =
        |line: &str| page::complaint(&page::commands(line)[0], &mut BTreeMap::new(), &PAPERS);
    assert!(complaint("cargo run --release -p millpond-papers -- gilbert --plan").is_none());
    assert!(complaint("cargo run --release -p millpond-papers -- gilbert --plam").is_some());
    assert!(complaint("target/release/millpond-papers watt --figure 1").is_none());
    assert!(complaint("millpond-papers wat").is_some());
    assert!(complaint("millpond paper watt").is_none(), "of another program");
}

#[test]
fn completions_and_manual_pages_are_of_this_program() {
    let program = || Command::new(env!("CARGO_BIN_EXE_millpond-papers"));
    let output = program().args(["completions", "bash"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("leanstore-hits") && text.contains("judge"));
    assert!(text.contains("-o default millpond-papers"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    assert!(program().arg("man").arg(folder.path()).status().unwrap().success());
    assert!(folder.path().join("millpond-papers-gilbert.1").is_file());
    assert!(!folder.path().join("millpond-papers-watt-worker.1").exists());
}
