//! Public items without an example that runs.

use std::collections::BTreeSet;

use super::visit::Documented;

/// Kinds of items that need an example.
const KINDS: [&str; 5] = ["function", "struct", "enum", "union", "trait"];

/// Returns the names of public items without an example, in order.
///
/// An example is a code block of the item's own documentation that rustdoc compiles and runs:
/// marked with nothing, or with `rust`, `should_panic` or an edition. Constants, fields, variants
/// and aliases need none.
pub fn without_example(items: &[Documented]) -> BTreeSet<String> {
    let wants = |item: &&Documented| KINDS.contains(&item.kind.as_str());
    let missing = items.iter().filter(wants).filter(|item| !has_example(&item.docs));
    missing.map(|item| item.name.clone()).collect()
}

fn has_example(docs: &str) -> bool {
    let mut is_inside = false;
    for line in docs.lines().map(str::trim_start) {
        let Some(marks) = line.strip_prefix("```") else { continue };
        if !is_inside && marks.split(',').map(str::trim).all(runs) {
            return true;
        }
        is_inside = !is_inside;
    }
    false
}

fn runs(mark: &str) -> bool {
    matches!(mark, "" | "rust" | "should_panic") || mark.starts_with("edition")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_rustdoc_runs_is_an_example_and_others_are_not() {
        assert!(has_example("Does.\n\n```\nf();\n```"));
        assert!(has_example("```text\na\n```\n```rust\nf();\n```"));
        for none in ["Does.", "```text\na\n```", "```no_run\nf();\n```", "```rust,ignore\n```"] {
            assert!(!has_example(none), "{none}");
        }
    }

    #[test]
    fn functions_and_types_without_one_are_named_and_constants_are_not() {
        let item = |kind: &str, name: &str, docs: &str| Documented {
            kind: kind.to_string(),
            name: name.to_string(),
            docs: docs.to_string(),
        };
        let items = [
            item("function", "A::f", "Does."),
            item("function", "A::g", "```\ng();\n```"),
            item("struct", "A", ""),
            item("constant", "C", ""),
        ];
        let expected = ["A", "A::f"].map(str::to_string).into();
        assert_eq!(without_example(&items), expected);
    }
}
