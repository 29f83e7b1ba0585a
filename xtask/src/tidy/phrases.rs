//! Replaces phrases that grew in this project by the field's terms.
//!
//! The check reads comments, string literals and Markdown. Names in code may contain such a
//! phrase, and so may inline code, which cites them.

use std::collections::BTreeSet;

use super::paragraphs::{split, words};
use super::phrase_list::{Entry, PhraseList};
use super::prose::{Passage, of_rust};
use super::violation::Violation;
use crate::tree::Tree;

const RULE: &str = "phrase";

/// Path of the list of refused phrases.
pub const LIST: &str = "xtask/phrases.txt";

/// Markdown that stays as it was written: records of past changes and measurements.
const RECORDS: [&str; 2] = ["CHANGELOG.md", "docs/reports/"];

/// Reports phrases of the list in the tree, and lines of the list without meaning.
pub fn check(tree: &Tree, list: &str) -> Vec<Violation> {
    let list = PhraseList::parse(list);
    let mut used: BTreeSet<usize> = BTreeSet::new();
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        for paragraph in passages(path, text).iter().flat_map(split) {
            for (line, entry, phrase) in phrases(&paragraph, &list) {
                match exemption(&list, path, entry) {
                    Some(line) => {
                        used.insert(line);
                    }
                    None => {
                        let what = format!("`{phrase}`: write {}", entry.instead);
                        found.push(Violation::new(path, line, RULE, what));
                    }
                }
            }
        }
    }
    for &line in &list.unread {
        let what = "write `phrase / variant => instead`, or `path: phrase` for an exemption";
        found.push(Violation::new(LIST, line, RULE, what));
    }
    for exemption in list.exemptions.iter().filter(|e| !used.contains(&e.line)) {
        let what = format!("`{}` excuses nothing: remove the exemption", exemption.path);
        found.push(Violation::new(LIST, exemption.line, RULE, what));
    }
    found
}

/// Returns the passages of prose in the file.
fn passages(path: &str, text: &str) -> Vec<Passage> {
    if path.ends_with(".rs") {
        return of_rust(text);
    }
    let is_record = RECORDS.iter().any(|record| path.starts_with(record));
    if path.ends_with(".md") && !is_record {
        return vec![Passage { is_doc: false, line: 1, text: text.to_string() }];
    }
    Vec::new()
}

/// Returns the phrases of a paragraph: line, entry, and the phrase as written. An entry
/// counts once where several of its variants overlap.
fn phrases<'a>(paragraph: &Passage, list: &'a PhraseList) -> Vec<(usize, &'a Entry, String)> {
    let words = words(paragraph);
    let mut found = Vec::new();
    for entry in &list.entries {
        let mut free = 0;
        for at in 0..words.len() {
            let rest = &words[at..];
            let matches = entry.variants.iter().filter_map(|v| v.matches(rest, paragraph.is_doc));
            if let Some(count) = matches.max().filter(|_| at >= free) {
                free = at + count;
                let written: Vec<&str> = words[at..free].iter().map(|w| w.text.as_str()).collect();
                found.push((words[at].line, entry, written.join(" ")));
            }
        }
    }
    found
}

/// Returns the line of the list that exempts this file, if there is one.
fn exemption(list: &PhraseList, path: &str, entry: &Entry) -> Option<usize> {
    let names = |phrase: &str| entry.variants.iter().any(|variant| variant.text == phrase);
    let mut exemptions = list.exemptions.iter();
    exemptions.find(|e| path.starts_with(&e.path) && names(&e.phrase)).map(|e| e.line)
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    const PHRASES: &str = "odd bird !song / odd birds => finch\n^sings => plays\ntun* => song\n";

    fn found_in(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        brief(&check(&Tree::of(&[(path, text)]), PHRASES))
    }

    fn found(text: &str) -> Vec<usize> {
        found_in("crates/a/src/x.rs", text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn comments_docs_and_literals_are_read_and_names_are_not() {
        assert_eq!(
            found("// An Odd bird.\n/// odd birds\nfn f() { g(\"odd bird\") }\n"),
            [1, 2, 3]
        );
        assert!(found("fn tune() { odd!(bird) }\n// `tune` and odd_bird, oddbird\n").is_empty());
    }

    #[test]
    fn a_phrase_goes_on_in_the_next_line_of_its_paragraph_only() {
        assert_eq!(found("// An odd\n// bird.\n"), [1]);
        assert_eq!(found("f(\"an odd \\\n    bird\");\n"), [1]);
        assert!(found("// An odd\n//\n// bird.\n// - odd\n// - bird, odd (bird)\n").is_empty());
        assert_eq!(found_in("README.md", "# A\n\nan odd\nbird\n"), [(3, RULE)]);
    }

    #[test]
    fn the_word_that_makes_it_harmless_must_follow() {
        assert_eq!(found("// An odd bird song.\n// An odd bird. Song.\n"), [2]);
    }

    #[test]
    fn a_start_counts_only_where_a_sentence_of_a_doc_comment_starts() {
        assert_eq!(found("/// A. Sings\n/// it. It sings.\n// Sings.\n/// `x` sings.\n"), [1]);
    }

    #[test]
    fn a_stem_covers_its_endings() {
        assert_eq!(found("// Tuning is not attuned.\n"), [1]);
    }

    #[test]
    fn records_keep_their_words() {
        for path in ["CHANGELOG.md", "docs/reports/a/index.md", "xtask/phrases.txt"] {
            assert_eq!(found_in(path, "odd bird\n"), []);
        }
        for path in ["docs/a.md", "ARCHITECTURE.md", "crates/a/README.md", "xtask/src/x.rs"] {
            assert_eq!(found_in(path, "// odd bird\n"), [(1, RULE)]);
        }
    }

    #[test]
    fn overlapping_variants_are_one_violation_with_the_term_to_write() {
        let list = "an odd / odd bird / an odd bird => finch\n";
        let all = check(&Tree::of(&[("a.md", "an odd bird\n")]), list);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].what, "`an odd bird`: write finch");
    }

    #[test]
    fn an_exemption_excuses_its_files_and_must_excuse_something() {
        let tree = Tree::of(&[("crates/a/src/x.rs", "// odd bird\n"), ("b.md", "odd bird\n")]);
        let with = |line: &str| check(&tree, &format!("{PHRASES}{line}\n"));
        let files = |all: &[Violation]| all.iter().map(|v| v.file.clone()).collect::<Vec<_>>();
        assert_eq!(files(&with("crates/a/: odd birds")), ["b.md"]);
        assert_eq!(files(&with("crates/b/: odd birds")), ["b.md", "crates/a/src/x.rs", LIST]);
        assert_eq!(files(&with("what is this")), ["b.md", "crates/a/src/x.rs", LIST]);
    }
}
