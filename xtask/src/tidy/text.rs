//! Columns, tabs, trailing blanks, and machine paths.

use super::source::{Kind, Source};
use super::violation::Violation;

const COLUMNS_MAX: usize = 100;

/// Each path is written in two parts, so that this file does not break its own rule.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/", "wt"),
    concat!("/tmp/", "target"),
    concat!("/ho", "me/"),
];

/// Checks the rules for any text file; `source` is given for Rust.
pub fn check(path: &str, text: &str, source: Option<&Source<'_>>) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_ours = [".rs", ".md", ".toml"].iter().any(|ending| path.ends_with(ending));
    let is_narrow = is_ours && !path.ends_with(".md");
    let in_literal = |line| source.is_some_and(|s| is_in_long_literal(s, line));
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let mut add = |rule, what: String| found.push(Violation::new(path, number, rule, what));
        let columns = line.chars().count();
        if is_narrow && columns > COLUMNS_MAX && !may_be_long(line) && !in_literal(number) {
            add(
                "columns",
                format!("{columns} columns, {COLUMNS_MAX} are the most: break the line"),
            );
        }
        if is_ours && line.contains('\t') {
            add("tab", "a tab: write blanks, or \\t in a string".to_string());
        }
        if is_ours && line.ends_with([' ', '\t']) && !in_literal(number) {
            add("trailing-blank", "a blank at the end of the line: remove it".to_string());
        }
        if let Some(what) = machine_path(line) {
            add("machine-path", format!("`{what}` exists on one machine: make it relative"));
        }
    }
    found
}

/// Returns `true` for links, table rows in comments and inline tables of TOML, which
/// cannot be broken.
fn may_be_long(line: &str) -> bool {
    let line = line.trim_start();
    let is_comment = line.starts_with("//") || line.starts_with('#');
    let body = line.trim_start_matches(['/', '!', '#', '*', '-', ' ']);
    let is_table = is_comment && body.starts_with('|');
    let is_link = is_comment && (body.contains("://") || body.split_whitespace().count() <= 1);
    let is_inline_table = line.ends_with('}') && line.contains("= {");
    is_table || is_link || is_inline_table
}

/// Returns `true` if a literal that spans several lines covers this line.
fn is_in_long_literal(source: &Source<'_>, line: usize) -> bool {
    source.tokens.iter().any(|t| {
        t.kind == Kind::Literal && t.line != t.line_end && (t.line..=t.line_end).contains(&line)
    })
}

fn machine_path(line: &str) -> Option<&'static str> {
    MACHINE_PATHS.into_iter().find(|path| {
        line.match_indices(path).any(|(at, _)| {
            // `docs/work/x` is a path of ours: only a path from the machine's root counts.
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "._-}*)>~".contains(c))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let source = path.ends_with(".rs").then(|| Source::parse(path, text).unwrap());
        brief(&check(path, text, source.as_ref()))
    }

    #[test]
    fn the_hundred_and_first_column_is_found() {
        let exact = format!("// {}a b\n", "é".repeat(94));
        assert_eq!(found("a.rs", &exact), []);
        assert_eq!(found("a.rs", &format!("\n{}c\n", exact.trim_end())), [(2, "columns")]);
        assert_eq!(found("a.md", &format!("{}c\n", exact.trim_end())), []);
    }

    #[test]
    fn links_tables_and_long_literals_may_be_long() {
        let long = "x".repeat(120);
        assert_eq!(found("a.rs", &format!("// see https://example.org/{long} there\n")), []);
        assert_eq!(found("a.rs", &format!("//! | a | {long} |\n")), []);
        assert_eq!(found("a.rs", &format!("const A: &str = \"\n {long} \n\";\n")), []);
        assert_eq!(found("a.rs", &format!("const A: &str = \"{long}\";\n")), [(1, "columns")]);
    }

    #[test]
    fn tabs_and_trailing_blanks_are_found() {
        assert_eq!(found("a.rs", "fn a() {\n\tb()\n}\n"), [(2, "tab")]);
        assert_eq!(found("a.md", "a \nb\n"), [(1, "trailing-blank")]);
        assert_eq!(found("Makefile", "a:\n\tb\n"), []);
    }

    #[test]
    fn a_path_of_somebodys_machine_is_found_in_any_file() {
        for path in MACHINE_PATHS {
            assert_eq!(found("run.sh", &format!("cd {path}x\n")), [(1, "machine-path")]);
            assert_eq!(found("run.sh", &format!("cd docs{path}x\n")), []);
        }
    }
}
