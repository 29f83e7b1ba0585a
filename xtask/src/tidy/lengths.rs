//! Files short enough to be read in one go, unless their header argues why not.

use super::violation::Violation;

const RULE: &str = "file-length";
const LINES_MAX: usize = 500;
const REASON: &str = "Long because ";

/// A source of a crate that is long without a reason, or gives one without being long.
pub fn check(path: &str, text: &str) -> Option<Violation> {
    if !(path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs")) {
        return None;
    }
    let lines = text.lines().count();
    let what = match (lines > LINES_MAX, gives_a_reason(text)) {
        (true, false) => format!(
            "{lines} lines, {LINES_MAX} are the most: split it, or begin a sentence of its `//!` \
             header with `{REASON}…`"
        ),
        (false, true) => format!("{lines} lines are not long: remove `{REASON}…` from its header"),
        _ => return None,
    };
    Some(Violation::new(path, 1, RULE, what))
}

/// Whether a sentence of the module's header starts with the words that announce the reason.
fn gives_a_reason(text: &str) -> bool {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let header = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    header.match_indices(REASON).any(|(at, _)| {
        let before = header[..at].trim_end();
        before.is_empty() || before.ends_with(['.', '?', '!', ':', '*', '-', ')'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(header: &str, lines: usize) -> bool {
        let text = format!("{header}\n{}", "\n".repeat(lines - header.lines().count()));
        assert_eq!(text.lines().count(), lines);
        check("crates/a/src/x.rs", &text).is_some_and(|v| v.rule == RULE)
    }

    #[test]
    fn five_hundred_lines_pass_and_one_more_does_not() {
        assert!(!is_found("//! X.", 500));
        assert!(is_found("//! X.", 501));
    }

    #[test]
    fn a_sentence_of_the_header_excuses_a_long_file_and_no_other() {
        let header = "//! X.\n//!\n//! Long because\n//! the table is one.";
        assert!(!is_found(header, 501));
        assert!(is_found(header, 500));
        assert!(is_found("//! X.\n\n// Long because it is.", 501), "not in the header");
        assert!(is_found("//! It is Long because it is.", 501), "not a sentence");
        assert!(is_found("//! Long because", 501), "no reason");
    }

    #[test]
    fn tests_and_other_files_may_be_long() {
        let text = "\n".repeat(501);
        assert_eq!(check("crates/a/tests/x.rs", &text), None);
        assert_eq!(check("crates/a/src/x.md", &text), None);
    }
}
