//! Lines of code of each crate: no comments, no blank lines, no tests.

use std::collections::BTreeSet;

use serde::Serialize;

use super::super::components::Components;
use super::super::source::{Kind, Source};
use super::parsed::Parsed;
use super::root_names::{RootNames, root_names};

/// One crate.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CrateSize {
    pub name: String,
    pub lines: usize,
    pub files: usize,
    pub root_names: RootNames,
}

/// Returns the crates that have files, in the order of the map's keys.
pub fn sizes(parsed: &[Parsed<'_>], components: &Components) -> Vec<CrateSize> {
    let mut sizes = Vec::new();
    for (name, declared) in &components.crates {
        let files: Vec<&Parsed<'_>> = parsed.iter().filter(|file| file.krate == name).collect();
        if files.is_empty() {
            continue;
        }
        let lines = files.iter().map(|file| code_lines(file.source)).sum();
        let root_names = root_names(&format!("{}/src", declared.path), &files);
        sizes.push(CrateSize { name: name.clone(), lines, files: files.len(), root_names });
    }
    sizes
}

/// Counts lines with a token of code that is compiled outside tests.
fn code_lines(source: &Source<'_>) -> usize {
    let mut lines: BTreeSet<usize> = BTreeSet::new();
    let mut at = 0;
    while let Some(token) = source.tokens.get(at) {
        if let Some(end) = doc_comment(source, at) {
            at = end;
        } else if !source.is_test(token.line) {
            let covered = token.line..=token.line_end;
            lines.extend(covered.filter(|line| !source.line(*line).trim().is_empty()));
        }
        at += 1;
    }
    lines.len()
}

/// Returns the last token of the doc comment that begins at `at`; the lexer turns a doc
/// comment into `#[doc = "…"]`.
fn doc_comment(source: &Source<'_>, at: usize) -> Option<usize> {
    if !source.is(at, "#") {
        return None;
    }
    let open = if source.is(at + 1, "!") { at + 2 } else { at + 1 };
    let is_doc = source.is(open, "[") && source.is(open + 1, "doc");
    let literal = source.tokens.get(open + 3).filter(|token| token.kind == Kind::Literal)?;
    let line = source.line(literal.line);
    let is_comment = ["///", "//!", "/**", "/*!"].iter().any(|mark| line.contains(mark));
    (is_doc && is_comment).then(|| source.tokens[open].mate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_lines_of_code() {
        let text = "//! Header.\n\n/// Docs.\npub fn f() -> &'static str {\n    // Why.\n    \
                    \"one\n\n two\"\n}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n/** Old.\n \
                    style */\n#[doc = \"x\"]\nstruct A; // 7\n";
        assert_eq!(code_lines(&Source::parse("crates/a/src/x.rs", text).unwrap()), 6);
    }
}
