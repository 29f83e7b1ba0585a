//! What a user meets before any work is done: help, completions, manual pages.

use std::path::Path;
use std::process::{Command, Output};

fn millpond(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a program is there.
fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// All commands with the words that name them, hidden ones left out.
fn commands(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
    found.push((words.to_string(), command.clone()));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        commands(inner, &format!("{words} {}", inner.get_name()), found);
    }
}

fn all_commands() -> Vec<(String, clap::Command)> {
    let mut root = millpond_cli::command().term_width(80);
    root.build();
    let mut found = Vec::new();
    commands(&root, "millpond", &mut found);
    assert!(found.len() > 60, "{} commands", found.len());
    found
}

#[test]
fn help_fits_into_eighty_columns() {
    let mut wide = Vec::new();
    for (name, mut command) in all_commands() {
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines().filter(|line| line.chars().count() > 80) {
                wide.push(format!("{name}: {line}"));
            }
        }
    }
    wide.dedup();
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

/// Examples are columns, and what is wrapped is none any more; paragraphs are wrapped, and lines
/// that are broken by hand become ragged then.
#[test]
fn examples_are_printed_as_they_are_written_and_paragraphs_are_wrapped() {
    let mut broken = Vec::new();
    for (name, mut command) in all_commands() {
        let Some(written) = command.get_after_help().map(ToString::to_string) else { continue };
        let help = command.render_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let written: Vec<&str> = written.lines().collect();
        for (at, line) in written.iter().enumerate() {
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let is_followed = written.get(at + 1).is_some_and(|next| is_prose(next));
            let is_wrapped = !lines.contains(&line.trim_end());
            if is_wrapped && (!is_prose(line) || is_followed) {
                broken.push(format!("{name}: {line}"));
            }
        }
    }
    assert!(broken.is_empty(), "--help breaks these lines:\n{}", broken.join("\n"));
}

/// A command says what it is for, and so does each of its arguments.
#[test]
fn nothing_is_without_help() {
    for (name, command) in all_commands() {
        assert!(command.get_about().is_some() || name.contains(" help"), "{name} says nothing");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{name}: {} has no help", argument.get_id());
            assert!(!help.ends_with('.'), "{name}: {}: {help}", argument.get_id());
        }
    }
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
