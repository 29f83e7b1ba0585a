//! Every module that uses run time must have a component that the profiler charges.

use super::components::Components;
use super::violation::Violation;
use crate::tree::Tree;

const RULE: &str = "profile";

/// Crates whose code never runs with the engine.
const OTHERS: [&str; 3] = ["crates/compare/", "crates/site/", "crates/slate/"];

/// Reports sources without a component, and component paths without a source.
pub fn check(tree: &Tree, components: &Components) -> Vec<Violation> {
    let Some(profile) = &components.profile else { return Vec::new() };
    let mut found = Vec::new();
    let paths: Vec<&str> =
        profile.components.iter().flat_map(|c| &c.paths).map(String::as_str).collect();
    let known = |source: &str| {
        let transparent = profile.transparent.iter().map(String::as_str);
        paths.iter().copied().chain(transparent).any(|path| is_in(source, path))
    };
    let sources: Vec<&str> = tree.texts().map(|(path, _)| path).filter(|p| is_source(p)).collect();
    for source in &sources {
        if !known(source) {
            let what = "the profiler knows no component for it: add it to `[[profile.components]]` of \
                        components.toml";
            found.push(Violation::new(source, 1, RULE, what));
        }
    }
    // Paths of the standard library are not in the tree.
    let latches = profile.latches.iter().map(String::as_str);
    let transparent = profile.transparent.iter().map(String::as_str);
    let paths = paths.iter().copied().chain(transparent);
    for path in paths.chain(latches.filter(|path| !path.starts_with("library/"))) {
        if !sources.iter().any(|source| is_in(source, path)) {
            let what = format!("`{path}` of the profiler's components is no source: remove it");
            found.push(Violation::new(Components::FILE, 1, RULE, what));
        }
    }
    let names = profile.components.iter().map(|component| component.name.as_str());
    for whole in profile.components.iter().filter_map(|component| component.part_of.as_deref()) {
        if !names.clone().any(|name| name == whole) {
            let what = format!("a component of the profiler is part of `{whole}`, which is none");
            found.push(Violation::new(Components::FILE, 1, RULE, what));
        }
    }
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    for pair in sorted.windows(2).filter(|pair| pair[0] == pair[1]) {
        let what = format!("two components of the profiler are called `{}`", pair[0]);
        found.push(Violation::new(Components::FILE, 1, RULE, what));
    }
    found
}

fn is_source(path: &str) -> bool {
    let is_code = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    is_code && !OTHERS.iter().any(|other| path.starts_with(other))
}

/// Returns `true` if `source` is `path`, or is in the folder `path`.
fn is_in(source: &str, path: &str) -> bool {
    source.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sources: &[&str], paths: &str) -> Vec<String> {
        let texts: Vec<(&str, &str)> = sources.iter().map(|source| (*source, "")).collect();
        let map = format!(
            "unsafe_files = []\n[crates]\n[profile]\nlatches = [\"library/std/x\"]\n\
             [[profile.components]]\nname = \"a\"\npaths = [{paths}]\n"
        );
        let components = Components::parse(&map).unwrap();
        check(&Tree::of(&texts), &components).into_iter().map(|v| v.file).collect()
    }

    #[test]
    fn a_source_without_a_component_and_a_path_without_a_source_are_found() {
        let none: [&str; 0] = [];
        assert_eq!(found(&["crates/a/src/x.rs", "xtask/src/y.rs"], "\"crates/a/src\""), none);
        assert_eq!(
            found(&["crates/a/src/x.rs", "crates/ab/src/x.rs"], "\"crates/a/src/x.rs\""),
            ["crates/ab/src/x.rs"]
        );
        assert_eq!(
            found(&["crates/a/src/x.rs"], "\"crates/a/src\", \"crates/b/src\""),
            [Components::FILE]
        );
        let part_of = |whole: &str| {
            let paths = "\"crates/a/src\"]\n[[profile.components]]\nname = \"c\"\npart_of = ";
            found(&["crates/a/src/x.rs"], &format!("{paths}\"{whole}\"\npaths = [\"crates/a/src\""))
        };
        assert_eq!(part_of("a"), none);
        assert_eq!(part_of("b"), [Components::FILE], "a whole that is no component");
    }
}
