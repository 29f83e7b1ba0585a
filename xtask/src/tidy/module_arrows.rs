//! Arrows inside a crate, which cargo cannot see: paths that start with `crate`, `super` or
//! `self`, against `components.toml`.
//!
//! A name that a root or a `mod.rs` re-exports counts as the module where it is defined, so that
//! a re-export does not open a side door. Code that only tests compile is free: a twin test must
//! be able to name two policies.

use std::collections::{BTreeMap, BTreeSet};

use super::components::{Components, Modules};
use super::source::{Kind, Source, module_directory};
use super::violation::Violation;

const RULE: &str = "module-arrow";

/// Re-exports of re-exports are followed this far.
const HOPS_MAX: usize = 8;

type Path = Vec<String>;

/// Uses that the map of a crate's modules does not allow.
pub fn check(sources: &[Source<'_>], components: &Components) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, modules) in &components.modules {
        let Some(declared) = components.crates.get(name) else {
            let what = format!("[modules.{name}] names no crate of [crates]");
            found.push(Violation::new("components.toml", 1, RULE, what));
            continue;
        };
        let directory = format!("{}/src/", declared.path);
        let ours: Vec<_> = sources.iter().filter(|s| s.path.starts_with(&directory)).collect();
        let map = ModuleMap::of(&directory, &ours);
        for source in ours {
            check_file(source, &directory, &map, modules, &mut found);
        }
    }
    found
}

fn check_file(
    source: &Source<'_>,
    directory: &str,
    map: &ModuleMap,
    modules: &Modules,
    found: &mut Vec<Violation>,
) {
    let file_module = module_of(source.path, directory);
    for (line, from, path) in paths(source, &file_module) {
        if source.is_test(line) {
            continue;
        }
        let target = map.resolve(path);
        if let Some(why) = forbidden(&from, &target, modules) {
            let (from, target) = (from.join("::"), target.join("::"));
            let what = format!("`{from}` may not use `{target}`: {why}");
            found.push(Violation::new(source.path, line, RULE, what));
        }
    }
}

/// The module that a file holds.
fn module_of(path: &str, directory: &str) -> Path {
    let module = module_directory(path);
    let module = module.strip_prefix(directory.trim_end_matches('/')).unwrap_or("");
    module.split('/').filter(|p| !p.is_empty()).map(str::to_string).collect()
}

/// The modules of one crate, and what their roots re-export.
struct ModuleMap {
    modules: BTreeSet<Path>,
    exports: BTreeMap<Path, Path>,
}

impl ModuleMap {
    fn of(directory: &str, sources: &[&Source<'_>]) -> Self {
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

    /// Notes `use a::b::{C, D as E};` as `C -> a::b::C`, `E -> a::b::D`.
    fn read_exports(&mut self, source: &Source<'_>, module: &Path) {
        for at in 0..source.tokens.len() {
            if !source.is(at, "use") {
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

    /// A path as written in `module`, seen from the root; a foreign one is marked by `extern`.
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

    /// Follows re-exports until the path starts with the module that defines the name.
    fn resolve(&self, mut path: Path) -> Path {
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

/// Every path of the file that starts at this crate: line, module it stands in, path from the root.
fn paths(source: &Source<'_>, file_module: &Path) -> Vec<(usize, Path, Path)> {
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
        // `pub(in crate::x)` names an ancestor to be seen by, not one to use.
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
            // A turbofish or something unforeseen: what was read so far is the path.
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

/// Why `from` may not use `target`, if it may not.
fn forbidden(from: &Path, target: &Path, modules: &Modules) -> Option<String> {
    let layer = |path: &Path| {
        let first = path.first()?;
        modules.layers.iter().position(|layer| layer.contains(first)).map(|at| (at, first.clone()))
    };
    if let (Some((above, a)), Some((below, b))) = (layer(from), layer(target))
        && a != b
        && above >= below
    {
        return Some("layers use only the layers below them (components.toml)".to_string());
    }
    if target.first().is_some_and(|first| first == "extern") {
        return None;
    }
    for rule in &modules.rules {
        let Some(own) = rule.of.iter().find_map(|of| matched(of, from)) else { continue };
        // A name at the root that no module defines is a macro or a foreign re-export.
        if target.starts_with(&own)
            || (target.len() == 1 && target[0] != "*" && !is_named(target, modules))
        {
            continue;
        }
        let is_banned = rule.never.iter().any(|never| matched(never, target).is_some());
        let is_listed = |list: &Vec<String>| list.iter().any(|m| matched(m, target).is_some());
        if is_banned || rule.may_use.as_ref().is_some_and(|list| !is_listed(list)) {
            return Some(rule.why.clone());
        }
    }
    None
}

/// Whether the rules name the module that `target` begins with.
fn is_named(target: &Path, modules: &Modules) -> bool {
    let lists = modules.rules.iter().flat_map(|r| r.of.iter().chain(&r.never));
    lists.into_iter().any(|m| m.split("::").next() == target.first().map(String::as_str))
}

/// The part of `path` that `pattern` covers.
fn matched(pattern: &str, path: &Path) -> Option<Path> {
    let parts: Vec<&str> = pattern.split("::").collect();
    if path.len() < parts.len() {
        return None;
    }
    let fits = parts.iter().zip(path).all(|(part, name)| *part == "*" || part == name);
    fits.then(|| path[..parts.len()].to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    const MAP: &str = r#"
unsafe_files = []
[crates.p]
path = "crates/p"
package = "p"
uses = []
[crates.engine]
path = "crates/engine"
package = "engine"
uses = []
[modules.engine]
layers = [["db"], ["heap", "lock"], ["pool"], ["io"]]
[modules.p]
[[modules.p.rules]]
of = ["policy::*"]
may_use = ["contract", "parts"]
why = "no policy imports another"
[[modules.p.rules]]
of = ["parts"]
never = ["policy"]
why = "parts know no policy"
"#;

    fn found(files: &[(&str, &str)]) -> Vec<(usize, &'static str)> {
        let sources: Vec<_> = files.iter().map(|(p, t)| Source::parse(p, t).unwrap()).collect();
        brief(&check(&sources, &Components::parse(MAP).unwrap()))
    }

    #[test]
    fn a_policy_may_use_contract_parts_and_itself() {
        let text = "use crate::contract::{self, Policy};\nuse crate::parts::list::List;\n\
                    use super::lru::inner::X;\npub(in crate::policy) struct Y;\n";
        assert_eq!(found(&[("crates/p/src/policy/lru.rs", text)]), []);
    }

    #[test]
    fn a_policy_that_imports_another_is_found_however_it_is_written() {
        let clock = ("crates/p/src/policy/clock.rs", "pub struct Clock;");
        for text in [
            "use crate::policy::clock::Clock;",
            "use super::clock::Clock;",
            "use super::{lru::X, clock};",
            "fn f() { let _ = crate::policy::clock::Clock; }",
            "mac!(super::clock::Clock);",
            "use super::*;",
            "mod inner { use super::super::clock::Clock; }",
        ] {
            assert_eq!(
                found(&[clock, ("crates/p/src/policy/lru.rs", text)]),
                [(1, RULE)],
                "{text}"
            );
        }
    }

    #[test]
    fn a_re_export_is_no_side_door() {
        let files = [
            ("crates/p/src/lib.rs", "mod policy;\npub use policy::Clock;\npub use other::Thing;"),
            ("crates/p/src/policy/mod.rs", "mod clock;\npub use clock::Clock;"),
            ("crates/p/src/policy/clock.rs", "pub struct Clock;"),
            ("crates/p/src/policy/lru.rs", "use crate::Clock;\nuse crate::Thing;"),
        ];
        assert_eq!(found(&files), [(1, RULE)]);
    }

    #[test]
    fn parts_that_know_a_policy_are_found_but_their_tests_may() {
        let text = "use crate::contract::Policy;\n#[cfg(test)]\nmod tests {\n    use \
                    crate::policy::lru::Lru;\n}\nuse crate::policy::lru::Lru;\n";
        assert_eq!(found(&[("crates/p/src/parts/list.rs", text)]), [(6, RULE)]);
    }

    #[test]
    fn a_layer_uses_only_lower_layers() {
        let file = |text| found(&[("crates/engine/src/heap/page.rs", text)]);
        assert_eq!(file("use crate::pool::Pool;\nuse crate::io::File;\nuse super::x;"), []);
        assert_eq!(file("use crate::db::Db;"), [(1, RULE)]);
        assert_eq!(file("use crate::lock::Lock;"), [(1, RULE)]);
    }
}
