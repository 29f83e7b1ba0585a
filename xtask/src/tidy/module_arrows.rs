//! Arrows inside a crate, which cargo cannot see: paths that start with `crate`, `super` or
//! `self`, against `components.toml`.
//!
//! A re-export is no way around the rules: a use counts for the module that defines the name. Code
//! that only tests compile is exempt, since a twin test must be able to name two policies.

use super::components::{Components, Modules};
use super::module_map::{ModuleMap, Path, module_of, paths};
use super::source::Source;
use super::violation::Violation;

const RULE: &str = "module-arrow";

/// Reports uses that the map of a crate's modules does not allow.
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

/// Returns the reason that `from` may not use `target`, if there is one.
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

/// Returns `true` if the rules name the module that `target` begins with.
fn is_named(target: &Path, modules: &Modules) -> bool {
    let lists = modules.rules.iter().flat_map(|r| r.of.iter().chain(&r.never));
    lists.into_iter().any(|m| m.split("::").next() == target.first().map(String::as_str))
}

/// Returns the part of `path` that `pattern` covers.
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
