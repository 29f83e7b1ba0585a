//! Commands as Markdown.

use clap::{Arg, Command};

/// Writes a section for each visible command, below the section of its parent.
pub(super) fn of_commands(mut root: Command) -> String {
    // Only a built command knows its names and usage.
    root.build();
    let mut page = String::new();
    for command in root.get_subcommands().filter(|command| is_shown(command)) {
        section(command, 2, &mut page);
    }
    page
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn section(command: &Command, level: usize, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    page.push_str(&format!("{} {name}\n\n", "#".repeat(level)));
    let about = command.get_long_about().or(command.get_about());
    if let Some(about) = about {
        page.push_str(&format!("{}.\n\n", escaped(&about.to_string())));
    }
    let usage = command.clone().render_usage().to_string();
    page.push_str(&format!("```text\n{}\n```\n\n", usage.trim_start_matches("Usage: ").trim()));
    tables(command, page);
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        page.push_str(&format!("```text\n{text}\n```\n\n"));
    }
    for command in command.get_subcommands().filter(|command| is_shown(command)) {
        section(command, (level + 1).min(4), page);
    }
}

/// Writes a table for each heading of the help, in order.
fn tables(command: &Command, page: &mut String) {
    let shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help")
        .collect();
    let mut headings = Vec::new();
    for arg in &shown {
        let heading = heading(arg);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for name in headings {
        page.push_str(&format!("| {name} | |\n|---|---|\n"));
        for arg in shown.iter().filter(|arg| heading(arg) == name) {
            page.push_str(&format!("| {} | {} |\n", names(arg), what(arg)));
        }
        page.push('\n');
    }
}

fn heading(arg: &Arg) -> &str {
    let usual = if arg.is_positional() { "arguments" } else { "options" };
    arg.get_help_heading().unwrap_or(usual)
}

/// Formats the names of an argument: `-p`, `--policy POLICIES`.
fn names(arg: &Arg) -> String {
    let values: Vec<String> = if arg.get_action().takes_values() {
        let values = arg.get_value_names().unwrap_or_default();
        values.iter().map(|value| format!("<{value}>")).collect()
    } else {
        Vec::new()
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let mut words: Vec<String> = short.into_iter().chain(long).collect();
    match words.last_mut() {
        Some(last) => values.iter().for_each(|value| last.push_str(&format!(" {value}"))),
        None => words.push(values.join(" ")),
    }
    let words = words.iter().map(|word| format!("`{}`", word.replace('|', "\\|")));
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the help of an argument with its values and its default.
fn what(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = escaped(&help.split_whitespace().collect::<Vec<_>>().join(" "));
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), escaped(&help.to_string())),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        text.push_str(&format!(". One of {}", values.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(". Default: `{}`", defaults.join(" ")));
    }
    text
}

/// Escapes characters that Markdown would interpret or that would end a cell.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('*', "\\*");
    text.replace('<', "\\<").replace('[', "\\[")
}
