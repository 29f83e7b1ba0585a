//! First words of doc comments.
//!
//! A comment that opens with a noun clause ("What a page holds") or leans on the item above it
//! ("The same, backwards") does not stand alone in an index.

use serde::Serialize;

use super::super::prose::of_rust;
use super::parsed::Site;
use crate::tree::Tree;

/// Words that open a noun clause.
const NOUN_CLAUSES: [&str; 5] = ["what", "whether", "who", "where", "whose"];
/// Openings that need the item above.
const LEANING: [&str; 7] = ["the same", "as", "those", "it", "they", "so", "that of"];

/// Number of doc comments in the tree, and of those with each kind of opening.
#[derive(Debug, Default, Serialize)]
pub struct Openings {
    pub doc_comments: usize,
    pub noun_clauses: usize,
    pub leaning: usize,
    #[serde(skip)]
    pub noun_clause_sites: Vec<Site>,
    #[serde(skip)]
    pub leaning_sites: Vec<Site>,
}

impl Openings {
    pub fn noun_clause_percent(&self) -> f64 {
        percent(self.noun_clauses, self.doc_comments)
    }

    pub fn leaning_percent(&self) -> f64 {
        percent(self.leaning, self.doc_comments)
    }
}

/// Reads every Rust file of a folder, tests included; `""` is the whole tree.
pub fn openings(tree: &Tree, folder: &str) -> Openings {
    let mut all = Openings::default();
    let is_ours = |path: &str| path.ends_with(".rs") && path.starts_with(folder);
    for (path, text) in tree.texts().filter(|(path, _)| is_ours(path)) {
        for passage in of_rust(text).into_iter().filter(|passage| passage.is_doc) {
            let first = passage.text.lines().next().unwrap_or("").trim();
            all.doc_comments += 1;
            let site = || Site { file: path.to_string(), line: passage.line, what: first.into() };
            if opens_with(first, &NOUN_CLAUSES) {
                all.noun_clause_sites.push(site());
            } else if opens_with(first, &LEANING) {
                all.leaning_sites.push(site());
            }
        }
    }
    all.noun_clauses = all.noun_clause_sites.len();
    all.leaning = all.leaning_sites.len();
    all
}

/// Compares whole words and ignores emphasis around them.
fn opens_with(line: &str, openings: &[&str]) -> bool {
    let line = line.trim_start_matches(['*', '_']).to_lowercase();
    openings.iter().any(|opening| {
        line.strip_prefix(opening)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_of_doc_comments_count_and_no_others() {
        let text = "//! What a file is.\n\n/// Whether it is.\n/// What else.\nfn f() {}\n/// The \
                    same; b.\nfn g() {}\n/// Its id, and what not.\n// What.\n/// Sole: whose?\n/// \
                    `what`\nfn h() {}\n/// As\nfn i() {}\n/// **Where** it is.\nstruct A;\n";
        let tree = Tree::of(&[("crates/a/src/x.rs", text), ("README.md", "/// What\n")]);
        let openings = openings(&tree, "");
        assert_eq!(openings.doc_comments, 7);
        let lines = |sites: &[Site]| sites.iter().map(|site| site.line).collect::<Vec<_>>();
        assert_eq!(lines(&openings.noun_clause_sites), [1, 3, 15]);
        assert_eq!(lines(&openings.leaning_sites), [6, 13]);
    }
}
