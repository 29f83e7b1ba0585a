//! A source of a crate with its syntax tree.

use std::collections::BTreeMap;

use syn::spanned::Spanned;

use super::super::components::Components;
use super::super::source::Source;

/// A file below `src` of one of our crates.
pub struct Parsed<'a> {
    /// Key of the crate in `components.toml`.
    pub krate: &'a str,
    pub source: &'a Source<'a>,
    pub syntax: syn::File,
}

/// A place in the tree, for lists of sites.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    pub file: String,
    pub line: usize,
    pub what: String,
}

impl<'a> Parsed<'a> {
    /// Returns all files of all crates in path order, without files that only tests compile.
    pub fn all(sources: &'a [Source<'a>], components: &'a Components) -> Vec<Self> {
        let mut folders: BTreeMap<String, &str> = BTreeMap::new();
        for (name, declared) in &components.crates {
            folders.insert(format!("{}/src/", declared.path), name);
        }
        let mut all = Vec::new();
        for source in sources.iter().filter(|source| !source.all_test) {
            let folder = folders.iter().find(|(folder, _)| source.path.starts_with(*folder));
            // A file that does not parse is a separate violation.
            let syntax = syn::parse_file(&source.lines.join("\n"));
            if let (Some((_, krate)), Ok(syntax)) = (folder, syntax) {
                all.push(Parsed { krate, source, syntax });
            }
        }
        all
    }

    /// Returns `true` for code that only tests compile. The end of the node decides, since docs
    /// may come before the attribute that marks an item as a test.
    pub fn is_test(&self, node: &impl Spanned) -> bool {
        self.source.is_test(node.span().end().line)
    }

    /// Returns the place of a node.
    pub fn site(&self, node: &impl Spanned, what: impl Into<String>) -> Site {
        let line = node.span().start().line;
        Site { file: self.source.path.to_string(), line, what: what.into() }
    }
}
