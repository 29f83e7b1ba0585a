//! One policy, one file, one header: the same seven questions answered in the same order.

use super::violation::Violation;

const RULE: &str = "policy-header";

/// Folders in which every file is one policy.
const FOLDERS: [&str; 2] = ["crates/policies/src/policy/", "crates/policies/src/tier2/"];

/// Sections of a header, in this order.
const SECTIONS: [&str; 7] =
    ["Idea", "Source", "State", "Invariants", "Cost", "Deviations", "Defaults"];

/// Reports sections of a policy's header that are missing, empty or out of order.
pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if !FOLDERS.iter().any(|f| path.starts_with(f)) || path.ends_with("/mod.rs") {
        return found;
    }
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let mut from = 0;
    for (number, section) in SECTIONS.iter().enumerate() {
        let mark = format!("//! **{section}**");
        let Some(at) = header.iter().position(|line| line.starts_with(&mark)) else {
            let what = format!("the header lacks `//! **{section}**` ({})", SECTIONS.join(", "));
            found.push(Violation::new(path, header.len().max(1), RULE, what));
            continue;
        };
        if at < from {
            let what =
                format!("`{section}` stands too early: the order is {}", SECTIONS.join(", "));
            found.push(Violation::new(path, at + 1, RULE, what));
        }
        from = from.max(at);
        let body = body(&header, at, &mark, number);
        if body.iter().all(|line| line.trim_matches([' ', ':', '.', '-', '—', '–']).is_empty())
        {
            let what = format!("`{section}` says nothing: write it");
            found.push(Violation::new(path, at + 1, RULE, what));
        } else if *section == "Invariants"
            && let Some(what) = misnumbered(&body)
        {
            found.push(Violation::new(path, at + 1, RULE, what));
        }
    }
    found
}

/// Returns the text after a section's mark, up to the next mark.
fn body<'a>(header: &[&'a str], at: usize, mark: &str, number: usize) -> Vec<&'a str> {
    let is_other_mark = |line: &&str| {
        SECTIONS
            .iter()
            .enumerate()
            .any(|(n, s)| n != number && line.starts_with(&format!("//! **{s}**")))
    };
    let first = header[at].strip_prefix(mark).unwrap_or("");
    let rest = header[at + 1..].iter().take_while(|line| !is_other_mark(line));
    std::iter::once(first.trim())
        .chain(rest.map(|line| line.trim_start_matches("//!").trim()))
        .collect()
}

/// Returns a complaint unless invariants are numbered without a gap: (1), (2), (3), or lines
/// `1.`, `2.`, `3.`
fn misnumbered(body: &[&str]) -> Option<String> {
    let text = body.join("\n");
    let in_brackets: Vec<usize> =
        text.split('(').skip(1).filter_map(|part| part.split_once(')')?.0.parse().ok()).collect();
    let at_line_start: Vec<usize> =
        body.iter().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect();
    let numbers = if in_brackets.is_empty() { at_line_start } else { in_brackets };
    if numbers.is_empty() {
        return Some("invariants are numbered: `(1) …  (2) …`".to_string());
    }
    // A number that occurred before is a reference to that invariant.
    let mut last = 0;
    for number in numbers {
        if number > last + 1 || number == 0 {
            return Some(format!("invariant {number} stands where {} is due: renumber", last + 1));
        }
        last = last.max(number);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    const PATH: &str = "crates/policies/src/policy/lru.rs";
    const GOOD: &str = "//! LRU.\n//!\n//! **Idea** Evict the oldest.\n//! **Source** A paper.\n\
                        //! **State**\n//! One list.\n//! **Invariants**\n//! 1. All listed.\n\
                        //! 2. None twice.\n//! **Cost** O(1).\n//! **Deviations** None.\n\
                        //! **Defaults** None.\n\nuse x;\n";

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        brief(&check(PATH, text))
    }

    #[test]
    fn a_full_header_passes() {
        assert_eq!(found(GOOD), []);
        assert_eq!(brief(&check("crates/policies/src/policy/mod.rs", "mod a;")), []);
    }

    #[test]
    fn a_missing_section_is_found() {
        assert_eq!(found(&GOOD.replace("//! **Cost** O(1).\n", "")), [(11, RULE)]);
        assert_eq!(found("fn a() {}\n").len(), SECTIONS.len());
    }

    #[test]
    fn sections_out_of_order_are_found() {
        let text = GOOD.replace("**Idea** E", "**Tmp** E").replace("**Source** A", "**Idea** A");
        assert_eq!(found(&text.replace("**Tmp** E", "**Source** E")), [(3, RULE)]);
    }

    #[test]
    fn an_empty_section_and_loose_invariants_are_found() {
        assert_eq!(found(&GOOD.replace("//! One list.\n", "")), [(5, RULE)]);
        assert_eq!(found(&GOOD.replace("//! 2. ", "//! 3. ")), [(7, RULE)]);
        assert_eq!(found(&GOOD.replace("1. ", "").replace("2. ", "")), [(7, RULE)]);
        assert_eq!(found(&GOOD.replace("1. ", "(1) ").replace("2. ", "By (1), (2) ")), []);
        assert_eq!(found(&GOOD.replace("1. ", "(1) ").replace("2. ", "(3) ")), [(7, RULE)]);
    }
}
