//! All figures of the code base, measured once.

use std::path::Path;

use serde::Serialize;

use super::super::components::Components;
use super::super::source::Source;
use super::bytes::{Bytes, bytes};
use super::counts::{Counts, counts};
use super::object_types::{Namesakes, ObjectType, object_types};
use super::parsed::Parsed;
use super::sentences::{Sentences, sentences};
use super::sizes::{CrateSize, sizes};
use super::vocabulary::{Vocabulary, vocabulary};
use crate::tree::Tree;

const ENGINE: &str = "crates/engine/src/";

/// Figures of the code base.
#[derive(Serialize)]
pub struct House {
    pub crates: Vec<CrateSize>,
    /// All types, those with the most methods first.
    pub types: Vec<ObjectType>,
    /// Type names that several files of a crate define.
    pub namesakes: Vec<Namesakes>,
    pub engine: Counts,
    pub all: Counts,
    pub vocabulary: Vocabulary,
    pub sentences: Sentences,
    pub bytes: Bytes,
}

impl House {
    /// Measures the tree under `root`.
    pub fn measure(
        tree: &Tree,
        root: &Path,
        sources: &[Source<'_>],
        components: &Components,
    ) -> Self {
        let parsed = Parsed::all(sources, components);
        let (types, namesakes) = object_types(&parsed);
        House {
            crates: sizes(&parsed, components),
            types,
            namesakes,
            engine: counts(tree, &parsed, ENGINE),
            all: counts(tree, &parsed, ""),
            vocabulary: vocabulary(tree),
            sentences: sentences(tree),
            bytes: bytes(tree, root),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::render::render;
    use super::*;

    #[test]
    fn a_tree_is_measured_and_drawn() {
        let lib = "//! What it is.\npub use x::Big;\nmod x;\n";
        let x =
            "/// Big.\npub struct Big { a: u8 }\n\nimpl Big {\n    fn f((a, b): (u8, u8)) {}\n}\n";
        let map = "unsafe_files = []\n[crates.engine]\npath = \"crates/engine\"\npackage = \
                   \"engine\"\nuses = []\n";
        let files = [
            ("crates/engine/src/lib.rs", lib),
            ("crates/engine/src/x.rs", x),
            ("README.md", "Four words in all."),
        ];
        let tree = Tree::of(&files);
        let sources: Vec<Source<'_>> =
            files[..2].iter().map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        let components = Components::parse(map).unwrap();
        let house = House::measure(&tree, Path::new("no-such-folder"), &sources, &components);
        let size = &house.crates[0];
        assert_eq!((size.lines, size.files, size.root_names.without_features), (6, 2, 1));
        assert_eq!((house.all.tuple_parameters, house.engine.files_under_60_lines), (1, 2));
        assert_eq!((house.all.openings.noun_clauses, house.all.openings.doc_comments), (1, 2));
        let text = render(&house);
        for line in ["engine              6      2   ", "words of README.md", "Big         1"] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
