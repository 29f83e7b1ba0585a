//! The largest files, folders and functions, for the reviewer.
//!
//! Nothing here is a violation. A file should be one noun that a reader can hold, a function one
//! thought, and no number can check that. When these lists change, a person looks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::source::{Kind, Source};
use crate::tree::Tree;

/// Number of each kind that every run prints.
const FEW: usize = 10;
/// `--outliers` prints the largest one in a hundred.
const ONE_IN: usize = 100;

/// Something with its size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sized {
    size: usize,
    place: String,
}

/// Returns the three lists, largest first; `all` lists the largest hundredth of each kind.
pub fn report(tree: &Tree, sources: &[Source<'_>], all: bool) -> String {
    let lists = [
        ("files by lines", files(tree)),
        ("folders by files", folders(tree)),
        ("functions by lines", functions(sources)),
    ];
    let mut text = String::from("for the reviewer:\n");
    for (title, mut list) in lists {
        list.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.place.cmp(&b.place)));
        let shown = if all { FEW.max(list.len() / ONE_IN) } else { FEW };
        let _ = writeln!(text, "  the largest {} of {} {title}", shown.min(list.len()), list.len());
        for Sized { size, place } in list.iter().take(shown) {
            let _ = writeln!(text, "  {size:>6}  {place}");
        }
    }
    text
}

fn is_source(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs")
}

/// Returns the sources of crates with their sizes.
fn files(tree: &Tree) -> Vec<Sized> {
    let sources = tree.texts().filter(|(path, _)| is_source(path));
    let sized =
        |(path, text): (&str, &str)| Sized { size: text.lines().count(), place: path.to_string() };
    sources.map(sized).collect()
}

/// Returns the folders of sources with their sizes. A `mod.rs` is a table of contents and not
/// counted.
fn folders(tree: &Tree) -> Vec<Sized> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in tree.texts().filter(|(path, _)| is_source(path)) {
        if let Some((folder, name)) = path.rsplit_once('/')
            && name != "mod.rs"
        {
            *counts.entry(folder).or_default() += 1;
        }
    }
    let sized = |(folder, size): (&str, usize)| Sized { size, place: folder.to_string() };
    counts.into_iter().map(sized).collect()
}

/// Returns the functions with a body, including those in tests and macros.
fn functions(sources: &[Source<'_>]) -> Vec<Sized> {
    let mut found = Vec::new();
    for source in sources {
        for (at, token) in source.tokens.iter().enumerate() {
            let name = source.tokens.get(at + 1);
            let Some(name) = name.filter(|n| n.kind == Kind::Ident && source.is(at, "fn")) else {
                continue;
            };
            if let Some(end) = end_of_body(source, at + 2) {
                let place = format!("{}:{}: {}", source.path, token.line, name.text);
                found.push(Sized { size: end + 1 - token.line, place });
            }
        }
    }
    found
}

/// Returns the last line of the function whose signature continues at `next`. A trait's function
/// may have no body.
fn end_of_body(source: &Source<'_>, mut next: usize) -> Option<usize> {
    while next < source.tokens.len() && !source.is(next, ";") {
        let open = &source.tokens[next];
        if open.kind == Kind::Close {
            return None;
        }
        if open.kind == Kind::Open {
            if open.text == "{" {
                return Some(source.tokens[open.mate].line);
            }
            next = open.mate;
        }
        next += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_also_inside_macros_and_impls() {
        let text = "proptest! {\nimpl A {\n    fn long(x: [u8; 3]) {\n        x();\n    }\n}\n}\n\
                    trait B {\n    fn none(&self);\n    fn one(&self) {}\n}\n";
        let found = functions(&[Source::parse("src/a.rs", text).unwrap()]);
        let brief: Vec<_> = found.iter().map(|f| (f.size, f.place.as_str())).collect();
        assert_eq!(brief, [(3, "src/a.rs:3: long"), (1, "src/a.rs:10: one")]);
    }

    #[test]
    fn files_and_folders_of_sources_are_listed_from_the_largest_down() {
        let tree = Tree::of(&[
            ("crates/a/src/m/mod.rs", "1\n"),
            ("crates/a/src/m/x.rs", "1\n2\n3\n"),
            ("crates/a/src/m/y.rs", "1\n2\n"),
            ("crates/a/src/lib.rs", "1\n"),
            ("crates/a/tests/z.rs", "1\n2\n3\n4\n"),
        ]);
        let expected = "for the reviewer:\n  the largest 4 of 4 files by lines\n       3  \
                        crates/a/src/m/x.rs\n       2  crates/a/src/m/y.rs\n       1  \
                        crates/a/src/lib.rs\n       1  crates/a/src/m/mod.rs\n  the largest 2 of \
                        2 folders by files\n       2  crates/a/src/m\n       1  crates/a/src\n  \
                        the largest 0 of 0 functions by lines\n";
        assert_eq!(report(&tree, &[], false), expected);
    }

    #[test]
    fn ten_are_shown_or_the_largest_hundredth() {
        let paths: Vec<String> = (0..1200).map(|n| format!("crates/a/src/f{n}.rs")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let tree = Tree::of(&files);
        assert!(report(&tree, &[], false).contains("the largest 10 of 1200 files"));
        assert!(report(&tree, &[], true).contains("the largest 12 of 1200 files"));
    }
}
