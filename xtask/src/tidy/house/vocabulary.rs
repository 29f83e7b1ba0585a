//! Frequency of *what* per 10,000 words, and the number of words in the pages.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::paragraphs::{split, words};
use super::super::prose::{Passage, of_rust};
use crate::tree::Tree;

/// Counts of words.
#[derive(Debug, PartialEq, Serialize)]
pub struct Vocabulary {
    /// Frequency in Markdown, without reports.
    pub what_in_pages: f64,
    pub what_in_doc_comments: f64,
    /// Number of words in the pages that are read first, and in all pages of `docs`
    /// except reports.
    pub words: BTreeMap<&'static str, usize>,
}

/// Pages whose length is counted separately.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
const DOCS: &str = "docs without reports";

#[derive(Default)]
struct Count {
    words: usize,
    what: usize,
}

/// Counts the words of the tree.
pub fn vocabulary(tree: &Tree) -> Vocabulary {
    let (mut pages, mut comments) = (Count::default(), Count::default());
    let mut lengths: BTreeMap<&'static str, usize> = PAGES.map(|page| (page, 0)).into();
    lengths.insert(DOCS, 0);
    for (path, text) in tree.texts() {
        if is_page(path) {
            pages.add(&Passage { is_doc: true, line: 1, text: text.to_string() });
            let known = PAGES.into_iter().find(|page| *page == path);
            let page = known.or_else(|| path.starts_with("docs/").then_some(DOCS));
            if let Some(length) = page.and_then(|page| lengths.get_mut(page)) {
                *length += text.split_whitespace().count();
            }
        } else if path.ends_with(".rs") {
            for passage in of_rust(text).iter().filter(|passage| passage.is_doc) {
                comments.add(passage);
            }
        }
    }
    Vocabulary {
        what_in_pages: pages.per_ten_thousand(),
        what_in_doc_comments: comments.per_ten_thousand(),
        words: lengths,
    }
}

/// Returns `true` for Markdown that is written by hand.
pub fn is_page(path: &str) -> bool {
    path.ends_with(".md") && !path.starts_with("docs/reports/")
}

impl Count {
    /// Adds a passage. Code has no words; `split` marks fenced blocks.
    fn add(&mut self, passage: &Passage) {
        for paragraph in split(passage).iter().filter(|paragraph| paragraph.is_doc) {
            let words = words(paragraph);
            let is_number = |text: &str| text.chars().all(|c| c.is_numeric() || c == '_');
            self.words += words.iter().filter(|word| !is_number(&word.text)).count();
            self.what += words.iter().filter(|word| word.text == "what").count();
        }
    }

    fn per_ten_thousand(&self) -> f64 {
        10_000.0 * self.what as f64 / self.words.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_reports_have_no_words() {
        let page = "What is a page, 12 `what` or 7?\n\n```text\nwhat what\n```\n";
        let comment = "/// What it is.\n///\n/// ```\n/// what();\n/// ```\nfn f() {} // what\n";
        let tree = Tree::of(&[
            ("docs/a.md", page),
            ("docs/reports/b.md", "what"),
            ("README.md", "a b c"),
            ("crates/a/src/x.rs", comment),
        ]);
        let counted = vocabulary(&tree);
        assert_eq!(counted.what_in_pages, 10_000.0 / 8.0);
        assert_eq!(counted.what_in_doc_comments, 10_000.0 / 3.0);
        assert_eq!((counted.words["README.md"], counted.words[DOCS]), (3, 12));
    }
}
