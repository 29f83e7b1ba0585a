//! What a user meets before any work is done: help, completions, manual pages.

#[path = "faces/help.rs"]
mod help;

use std::path::Path;
use std::process::{Command, Output};

fn millpond(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns `true` if a program is installed.
fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

fn all_commands() -> Vec<(String, clap::Command)> {
    let found = help::all_commands(millpond_cli::command());
    assert!(found.len() > 50, "{} commands", found.len());
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
fn bash_completes_commands_and_options_by_what_is_printed() {
    if !has("bash") {
        return println!("skipped: no bash");
    }
    let script = "source \"$1\"
        ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _millpond millpond \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
            echo \"${COMPREPLY[*]}\"; }
        ask millpond ad; ask millpond bench tp; ask millpond sim --rel; ask millpond sim x --format ''
        complete -p millpond";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("millpond.bash");
    std::fs::write(&file, millpond(&["completions", "bash"]).stdout).unwrap();
    let asked = Command::new("bash").args(["-c", script, "bash"]).arg(&file).output().unwrap();
    let (lines, errors) = (text(&asked.stdout), text(&asked.stderr));
    let lines: Vec<&str> = lines.lines().collect();
    assert!(errors.is_empty(), "{errors}");
    assert_eq!(lines[..4], ["advise", "tpcc", "--relative-to", "table csv json parquet"]);
    assert!(lines[4].contains("_millpond"), "{}", lines[4]);
}

#[test]
fn every_shell_gets_its_completions_and_an_unknown_one_is_told_which_there_are() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = millpond(&["completions", shell]);
        assert!(output.status.success());
        let text = text(&output.stdout);
        assert!(text.contains("second-tier") && text.contains("ramp-up"), "{shell}");
    }
    let output = millpond(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bash"), "{}", text(&output.stderr));
}

#[test]
fn each_command_has_a_manual_page_that_man_reads_without_a_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let output = millpond(&["man", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for name in ["millpond.1", "millpond-sim.1", "millpond-bench-tpcc.1", "millpond-get.1"] {
        assert!(names.contains(&name.to_string()), "no {name}");
    }
    assert!(!names.iter().any(|name| name.contains("probe") || name.contains("reference")));
    let sim = std::fs::read_to_string(pages.join("millpond-sim.1")).unwrap();
    assert!(sim.contains("Simulate policies on traces") && sim.contains("relative\\-to"));
    if !has("man") {
        return println!("skipped: no man to read the pages with");
    }
    for name in ["millpond.1", "millpond-sim.1", "millpond-bench-tpcc.1", "millpond-serve.1"] {
        let (shown, complaints) = read(&pages.join(name));
        assert!(complaints.is_empty(), "{name}: {complaints}");
        assert!(shown.contains("SYNOPSIS"), "{name}: {shown}");
    }
}

/// What `man` shows of a page, and what it complains of.
fn read(page: &Path) -> (String, String) {
    let output = Command::new("man")
        .args(["--warnings", "-E", "UTF-8", "-P", "cat", "-l"])
        .arg(page)
        .env("LC_ALL", "C.UTF-8")
        .env("MANWIDTH", "80")
        .output()
        .expect("man starts");
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_page_of_commands_has_a_section_for_each_and_a_row_for_each_option() {
    let page = text(&millpond(&["reference", "commands"]).stdout);
    for part in [
        "## millpond sim\n",
        "### millpond bench tpcc\n",
        "| `-p`, `--policy <",
        "`--cache-size <",
        "One of `table` (An aligned table, for people), `csv`",
        "```text\nmillpond put [OPTIONS] <",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("factors-probe") && !page.contains("## millpond reference"));
    for (name, _) in all_commands().iter().skip(1).filter(|(name, _)| !name.contains(" help")) {
        assert!(page.contains(&format!("# {name}\n")), "{name} has no section");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = millpond(&["man", file.join("man1").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("file/man1"), "{}", text(&output.stderr));
}
