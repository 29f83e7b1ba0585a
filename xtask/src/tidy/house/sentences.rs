//! Sentences of the pages in `docs`: their lengths and their commas.
//!
//! A piece of inline code is one word, and a link counts as its text. Headings, tables, code blocks
//! and comments are no sentences, nor are list items of fewer than three words.

use serde::Serialize;

use super::super::paragraphs::{CODE, split};
use super::super::prose::Passage;
use crate::tree::Tree;

const WORDS_MIN: usize = 3;

/// Lengths in words.
#[derive(Debug, PartialEq, Serialize)]
pub struct Sentences {
    pub count: usize,
    pub median: usize,
    pub percentile_95: usize,
    pub commas_per_sentence: f64,
}

/// Reads `docs/*.md`, not the folders below.
pub fn sentences(tree: &Tree) -> Sentences {
    let mut lengths = Vec::new();
    let mut commas = 0;
    for (path, text) in tree.texts() {
        let page = path.strip_prefix("docs/").filter(|name| !name.contains('/'));
        if page.is_some_and(|name| name.ends_with(".md")) {
            for sentence in of_page(text) {
                lengths.push(words(&sentence));
                commas += sentence.matches(',').count();
            }
        }
    }
    lengths.sort_unstable();
    let at = |share: f64| {
        let index = (lengths.len() as f64 * share) as usize;
        lengths.get(index.min(lengths.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    Sentences {
        count: lengths.len(),
        median: at(0.5),
        percentile_95: at(0.95),
        commas_per_sentence: commas as f64 / lengths.len().max(1) as f64,
    }
}

fn words(sentence: &str) -> usize {
    let is_word = |word: &&str| word.contains(|c: char| c.is_alphanumeric() || c == CODE);
    sentence.split_whitespace().filter(is_word).count()
}

fn of_page(text: &str) -> Vec<String> {
    let passage = Passage { is_doc: true, line: 1, text: text.to_string() };
    let mut found = Vec::new();
    for paragraph in split(&passage).into_iter().filter(|paragraph| paragraph.is_doc) {
        if !paragraph.text.starts_with(['#', '|', '<']) {
            found.extend(of_paragraph(&without_targets(&paragraph.text)));
        }
    }
    found.retain(|sentence| words(sentence) >= WORDS_MIN);
    found
}

/// Returns the text without the targets of its links.
fn without_targets(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

/// Splits a paragraph. A sentence ends at a full stop, question mark or exclamation mark before a
/// blank and a capital.
fn of_paragraph(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if let Some(sentence) = sentences.last_mut() {
            sentence.push_str(word);
            sentence.push(' ');
        }
        let ends = word.trim_end_matches([')', '"', '*', '_']).ends_with(['.', '?', '!']);
        let opens = |next: &&str| !next.trim_start_matches(OPENING).starts_with(char::is_lowercase);
        if ends && words.peek().is_some_and(opens) {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Marks before the first word of a sentence.
const OPENING: [char; 6] = ['(', '"', '*', '_', '[', '\''];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_before_capitals_and_at_the_end_of_a_paragraph() {
        let page = "# No sentence at all.\n\nA page, e.g. this one, ends. `Db` opens the\nnext \
                    [with a link](a.md#b. C). And then\n\n| no | row, of a table |\n\n- yes\n- an \
                    item of four\n\n```\nno code in here.\n```\n";
        let found = of_page(page);
        let brief: Vec<usize> = found.iter().map(|sentence| words(sentence)).collect();
        assert_eq!(brief, [6, 7, 4], "{found:?}");
        let tree = Tree::of(&[("docs/a.md", page), ("docs/b/c.md", page), ("README.md", page)]);
        let measured = sentences(&tree);
        assert_eq!((measured.count, measured.median, measured.percentile_95), (3, 6, 7));
        assert_eq!(measured.commas_per_sentence, 2.0 / 3.0);
    }
}
