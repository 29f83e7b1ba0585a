//! The modules of one crate, and the resolution of paths to them.
//!
//! A name that a root or a `mod.rs` re-exports counts for the module that defines it.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Kind, Source, module_directory};

/// Maximum length of a chain of re-exports.
const HOPS_MAX: usize = 8;

/// A path from the crate's root.
pub type Path = Vec<String>;

/// Returns the module that a file holds.
pub fn module_of(path: &str, directory: &str) -> Path {
    let module = module_directory(path);
    let module = module.strip_prefix(directory.trim_end_matches('/')).unwrap_or("");
    module.split('/').filter(|p| !p.is_empty()).map(str::to_string).collect()
}

/// Modules of one crate, and the re-exports of their roots.
pub struct ModuleMap {
    modules: BTreeSet<Path>,
    exports: BTreeMap<Path, Path>,
}

impl ModuleMap {
    /// Returns the map of the crate in `directory`, whose sources are `sources`.
    pub fn of(directory: &str, sources: &[&Source<'_>]) -> Self {
        let mut modules: BTreeSet<Path> = BTreeSet::new();
        for source in sources {
            let module = module_of(source.path, directory);
            for depth in 0..=module.len() {
                modules.insert(module[..depth].to_vec());
            }
        }
        let mut map = ModuleMap { modules, exports: BTreeMap::new() };
        for source in sources {
            map.read_exports(source, &module_of(source.path, directory));
        }
        map
    }

    /// Records `use a::b::{C, D as E};` as `C -> a::b::C`, `E -> a::b::D`.
    fn read_exports(&mut self, source: &Source<'_>, module: &Path) {
        for at in 0..source.tokens.len() {
            // A test may import another thing by the name of one that its module defines.
            if !source.is(at, "use") || source.is_test(source.tokens[at].line) {
                continue;
            }
            let mut leaves = Vec::new();
            tree(source, at + 1, Vec::new(), &mut leaves);
            for (_, leaf, alias) in leaves {
                let Some(name) = alias.or(leaf.last().cloned()) else { continue };
                let target = self.anchor(module, leaf);
                let exported: Path = module.iter().cloned().chain([name]).collect();
                self.exports.insert(exported, target);
            }
        }
    }

    /// Returns a path written in `module` as a path from the root. A foreign path is marked by
    /// `extern`.
    fn anchor(&self, module: &Path, path: Path) -> Path {
        let Some(first) = path.first().cloned() else { return path };
        if ["crate", "self", "super"].contains(&first.as_str()) {
            return absolute(module, &path);
        }
        let child: Path = module.iter().cloned().chain([first]).collect();
        if self.modules.contains(&child) {
            module.iter().cloned().chain(path).collect()
        } else {
            ["extern".to_string()].into_iter().chain(path).collect()
        }
    }

    /// Returns `true` if a file or a folder holds this module.
    pub fn holds(&self, path: &[String]) -> bool {
        self.modules.contains(path)
    }

    /// Follows re-exports until the path starts with the module that defines the name.
    pub fn resolve(&self, mut path: Path) -> Path {
        for _ in 0..HOPS_MAX {
            let depth = (0..=path.len()).rev().find(|&d| self.modules.contains(&path[..d]));
            let depth = depth.unwrap_or(0);
            let Some(target) = path.get(..depth + 1).and_then(|name| self.exports.get(name)) else {
                return path;
            };
            let next: Path = target.iter().chain(&path[depth + 1..]).cloned().collect();
            if next == path {
                return path;
            }
            path = next;
        }
        path
    }
}

/// Returns every path of the file that starts at this crate: line, enclosing module, path from the
/// root.
pub fn paths(source: &Source<'_>, file_module: &Path) -> Vec<(usize, Path, Path)> {
    let mut inline: Vec<(usize, String)> = Vec::new();
    let mut found = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        inline.retain(|(end, _)| at < *end);
        if source.is(at, "mod") && source.is(at + 2, "{") {
            inline.push((source.tokens[at + 2].mate, source.tokens[at + 1].text.clone()));
        }
        let is_start = token.kind == Kind::Ident
            && ["crate", "self", "super"].contains(&token.text.as_str())
            && source.is_path_separator(at + 1);
        let is_middle = at >= 1 && source.is(at - 1, ":");
        // `pub(in crate::x)` names an ancestor for visibility and uses nothing.
        let is_visibility = at >= 1 && source.is(at - 1, "in") && at >= 2 && source.is(at - 2, "(");
        if !is_start || is_middle || is_visibility {
            continue;
        }
        let module: Path = file_module
            .iter()
            .cloned()
            .chain(inline.iter().map(|(_, name)| name.clone()))
            .collect();
        let mut leaves = Vec::new();
        tree(source, at, Vec::new(), &mut leaves);
        for (line, leaf, _) in leaves {
            found.push((line, module.clone(), absolute(&module, &leaf)));
        }
    }
    found
}

/// Reads a path or a tree of `use` at `at`; adds each leaf as line, path, alias.
fn tree(
    source: &Source<'_>,
    mut at: usize,
    mut prefix: Path,
    leaves: &mut Vec<(usize, Path, Option<String>)>,
) -> usize {
    if source.is_path_separator(at) {
        at += 2;
    }
    while let Some(token) = source.tokens.get(at) {
        if token.kind == Kind::Open && token.text == "{" && !prefix.is_empty() {
            let end = token.mate;
            at += 1;
            while at < end {
                at = tree(source, at, prefix.clone(), leaves);
                while at < end && source.is(at, ",") {
                    at += 1;
                }
            }
            return end + 1;
        }
        let is_part = token.kind == Kind::Ident || source.is(at, "*");
        if !is_part {
            // At a turbofish or an unexpected token, the path ends here.
            leaves.push((token.line, prefix, None));
            return at + 1;
        }
        // `{self, …}` names the module itself.
        if token.text != "self" || prefix.is_empty() {
            prefix.push(token.text.clone());
        }
        if source.is_path_separator(at + 1) {
            at += 3;
            continue;
        }
        let mut alias = None;
        let mut next = at + 1;
        if source.is(next, "as") {
            alias = source.tokens.get(next + 1).map(|t| t.text.clone());
            next += 2;
        }
        leaves.push((token.line, prefix, alias));
        return next;
    }
    at
}

/// Resolves a leading `crate`, `self` or chain of `super` against the module.
fn absolute(module: &Path, path: &Path) -> Path {
    let mut base = module.clone();
    let mut rest = path.as_slice();
    match rest.first().map(String::as_str) {
        Some("crate") => {
            base.clear();
            rest = &rest[1..];
        }
        Some("self") => rest = &rest[1..],
        _ => {}
    }
    while rest.first().is_some_and(|p| p == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend(rest.iter().cloned());
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "crates/a/src/";

    fn path(text: &str) -> Path {
        text.split("::").map(str::to_string).collect()
    }

    #[test]
    fn a_name_leads_to_the_module_that_defines_it() {
        let files = [
            ("crates/a/src/lib.rs", "mod m;\npub use m::{Leaf as Renamed, n};\npub use b::Far;"),
            ("crates/a/src/m/mod.rs", "mod n;\npub use n::Leaf;"),
            (
                "crates/a/src/m/n.rs",
                "pub struct Leaf;\n#[cfg(test)]\nmod tests {\n    use c::Leaf;\n}",
            ),
        ];
        let sources = files.map(|(p, t)| Source::parse(p, t).unwrap());
        let map = ModuleMap::of(ROOT, &sources.iter().collect::<Vec<_>>());
        assert!(map.holds(&path("m::n")) && !map.holds(&path("m::Leaf")));
        assert_eq!(map.resolve(path("Renamed")), path("m::n::Leaf"));
        assert_eq!(map.resolve(path("n::Other")), path("m::n::Other"));
        assert_eq!(map.resolve(path("Far")), path("extern::b::Far"));
    }

    #[test]
    fn paths_are_read_in_uses_bodies_and_inline_modules() {
        let text = "use super::{b::B, c};\nfn f() { crate::d::g() }\nmod i { use super::j; }\n";
        let source = Source::parse("crates/a/src/m/x.rs", text).unwrap();
        let file = module_of(source.path, ROOT);
        let found: Vec<_> = paths(&source, &file).into_iter().map(|(n, _, p)| (n, p)).collect();
        let expected = [(1, "m::b::B"), (1, "m::c"), (2, "d::g"), (3, "m::x::j")];
        assert_eq!(found, expected.map(|(line, text)| (line, path(text))));
    }
}
