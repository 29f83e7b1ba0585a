//! The help of a command line: what holds of each of our programs.

use clap::Command;

/// All commands of a program with the words that name them, hidden ones left out.
pub fn all_commands(program: Command) -> Vec<(String, Command)> {
    let mut root = program.term_width(80);
    root.build();
    let (name, mut found) = (root.get_name().to_string(), Vec::new());
    commands(&root, &name, &mut found);
    found
}

fn commands(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
    found.push((words.to_string(), command.clone()));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        commands(inner, &format!("{words} {}", inner.get_name()), found);
    }
}

/// Help fits into eighty columns.
pub fn assert_fits(commands: &[(String, Command)]) {
    let mut wide = Vec::new();
    for (name, mut command) in commands.iter().cloned() {
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
pub fn assert_examples_stay(commands: &[(String, Command)]) {
    let mut broken = Vec::new();
    for (name, mut command) in commands.iter().cloned() {
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
pub fn assert_all_have_help(commands: &[(String, Command)]) {
    for (name, command) in commands {
        assert!(command.get_about().is_some() || name.contains(" help"), "{name} says nothing");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty(), "{name}: {} has no help", argument.get_id());
            assert!(!help.ends_with('.'), "{name}: {}: {help}", argument.get_id());
        }
    }
}
