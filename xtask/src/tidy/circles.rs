//! Modules of one folder must not import each other in a circle: such modules cannot be moved,
//! tested or understood apart.
//!
//! An arrow counts in the folder where its two paths part: an import from a file deep in `a/` of a
//! file deep in `b/` is an arrow from `a/` to `b/`. Code that only tests compile draws no arrow.

use std::collections::{BTreeMap, BTreeSet};

use super::components::{Circle, Components};
use super::module_map::{ModuleMap, Path, module_of, paths};
use super::source::Source;
use super::violation::Violation;

const RULE: &str = "import-circle";

/// For each pair of siblings of one folder, the file and line where the first imports the second.
type Arrows = BTreeMap<(String, String), (String, usize)>;

/// Reports circles that the map does not list, and entries that name more than a circle.
pub fn check(sources: &[Source<'_>], components: &Components) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut actual: BTreeSet<(String, BTreeSet<String>)> = BTreeSet::new();
    for declared in components.crates.values() {
        let directory = format!("{}/src/", declared.path);
        let ours: Vec<_> = sources.iter().filter(|s| s.path.starts_with(&directory)).collect();
        for (folder, arrows) in folders(&directory, &ours) {
            for circle in circles(&arrows) {
                if !components.circles.iter().any(|entry| covers(entry, &folder, &circle)) {
                    found.push(unlisted(&folder, &circle, &arrows));
                }
                actual.insert((folder.clone(), circle));
            }
        }
    }
    found.extend(components.circles.iter().filter_map(|entry| stale(entry, &actual)));
    found
}

fn covers(entry: &Circle, folder: &str, circle: &BTreeSet<String>) -> bool {
    entry.folder == folder && circle.iter().all(|name| entry.files.contains(name))
}

/// Returns the violation of an entry that does not name exactly one whole circle, or gives no
/// reason.
fn stale(entry: &Circle, actual: &BTreeSet<(String, BTreeSet<String>)>) -> Option<Violation> {
    let names: BTreeSet<String> = entry.files.iter().cloned().collect();
    let rest: Vec<String> = actual
        .iter()
        .filter(|(folder, circle)| *folder == entry.folder && circle.is_subset(&names))
        .map(|(_, circle)| format!("{:?}", circle.iter().collect::<Vec<_>>()))
        .collect();
    let listed = entry.files.join(", ");
    let what = if rest.is_empty() {
        format!("{}: no circle in {listed} any more: remove the entry", entry.folder)
    } else if !actual.contains(&(entry.folder.clone(), names)) {
        format!("{}: the circle of {listed} shrank: write {}", entry.folder, rest.join(" and "))
    } else if entry.why.trim().is_empty() {
        format!("{}: the circle of {listed} stays, and `why` tells no reason", entry.folder)
    } else {
        return None;
    };
    Some(Violation::new(Components::FILE, 1, RULE, what))
}

/// Returns the violation of a circle, with one way around it.
fn unlisted(folder: &str, circle: &BTreeSet<String>, arrows: &Arrows) -> Violation {
    let way = way_around(circle, arrows);
    let steps = way.windows(2).filter_map(|pair| {
        let (file, line) = arrows.get(&(pair[0].clone(), pair[1].clone()))?;
        Some((format!("{} ({file}:{line})", pair[1]), (file, *line)))
    });
    let (steps, places): (Vec<_>, Vec<_>) = steps.unzip();
    let (file, line) = places.first().map_or((folder, 1), |(file, line)| (file.as_str(), *line));
    let names: Vec<&str> = circle.iter().map(String::as_str).collect();
    let what = format!(
        "{} modules of {folder} import each other ({}), as {} → {}: move what they share below \
         them",
        circle.len(),
        names.join(", "),
        way.first().map_or("", String::as_str),
        steps.join(" → ")
    );
    Violation::new(file, line, RULE, what)
}

/// Returns the shortest way from the circle's first module back to it.
fn way_around(circle: &BTreeSet<String>, arrows: &Arrows) -> Vec<String> {
    let Some(start) = circle.first() else { return Vec::new() };
    let mut ways = vec![vec![start.clone()]];
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut at = 0;
    while let Some(way) = ways.get(at).cloned() {
        at += 1;
        for (from, to) in arrows.keys().filter(|(_, to)| circle.contains(to)) {
            if way.last() != Some(from) || !seen.insert(to) {
                continue;
            }
            let next = [&way[..], std::slice::from_ref(to)].concat();
            if to == start {
                return next;
            }
            ways.push(next);
        }
    }
    Vec::new()
}

/// Returns the sets of more than one module that all reach each other.
fn circles(arrows: &Arrows) -> BTreeSet<BTreeSet<String>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        reached.entry(from).or_default().insert(to);
    }
    let names: Vec<&str> = reached.keys().copied().collect();
    for middle in &names {
        let further = reached.get(middle).cloned().unwrap_or_default();
        for targets in reached.values_mut().filter(|targets| targets.contains(middle)) {
            targets.extend(&further);
        }
    }
    let reaches = |a: &str, b: &str| reached.get(a).is_some_and(|targets| targets.contains(b));
    let circle_of = |name: &&str| -> BTreeSet<String> {
        let mutual = names.iter().filter(|other| reaches(name, other) && reaches(other, name));
        mutual.map(ToString::to_string).collect()
    };
    names.iter().map(circle_of).filter(|circle| circle.len() > 1).collect()
}

/// Returns the arrows of each folder of a crate that has any.
fn folders(directory: &str, ours: &[&Source<'_>]) -> BTreeMap<String, Arrows> {
    let map = ModuleMap::of(directory, ours);
    let files: BTreeSet<&str> = ours.iter().map(|source| source.path).collect();
    let mut folders: BTreeMap<String, Arrows> = BTreeMap::new();
    for source in ours {
        for (line, from, path) in paths(source, &module_of(source.path, directory)) {
            let target = map.resolve(path);
            let Some((parent, a, b)) = parting(&from, &target, &map) else { continue };
            if source.is_test(line) {
                continue;
            }
            let folder = format!("{directory}{}", parent.join("/"));
            let folder = folder.trim_end_matches('/');
            let name = |module: &str| match files.contains(&*format!("{folder}/{module}.rs")) {
                true => format!("{module}.rs"),
                false => format!("{module}/"),
            };
            let arrows = folders.entry(folder.to_string()).or_default();
            arrows.entry((name(a), name(b))).or_insert_with(|| (source.path.to_string(), line));
        }
    }
    folders
}

/// Returns the module where two paths part, and the children that they enter, if both are modules.
fn parting<'a>(
    from: &'a Path,
    to: &'a Path,
    map: &ModuleMap,
) -> Option<(&'a [String], &'a str, &'a str)> {
    let depth = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let (a, b) = (from.get(depth)?, to.get(depth)?);
    let are_modules = map.holds(&from[..=depth]) && map.holds(&to[..=depth]);
    are_modules.then_some((&from[..depth], a.as_str(), b.as_str()))
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    const MAP: &str = "unsafe_files = []\n[crates.a]\npath = \"crates/a\"\npackage = \"a\"\nuses \
                       = []\n";

    fn all(files: &[(&str, &str)], entries: &str) -> Vec<Violation> {
        let paths: Vec<_> = files.iter().map(|(p, _)| format!("crates/a/src/{p}")).collect();
        let texts = files.iter().map(|(_, text)| *text);
        let sources: Vec<_> =
            paths.iter().zip(texts).map(|(p, text)| Source::parse(p, text).unwrap()).collect();
        check(&sources, &Components::parse(&format!("{MAP}{entries}")).unwrap())
    }

    fn found(files: &[(&str, &str)]) -> Vec<(usize, &'static str)> {
        brief(&all(files, ""))
    }

    fn entry(files: &str, why: &str) -> String {
        format!("[[circles]]\nfolder = \"crates/a/src/m\"\nfiles = [{files}]\nwhy = \"{why}\"\n")
    }

    const X: (&str, &str) = ("m/x.rs", "\nuse super::y::Y;\npub struct X;");
    const Y: (&str, &str) = ("m/y.rs", "fn f() { crate::m::z::g() }\npub struct Y;");
    const Z: (&str, &str) = ("m/z/deep.rs", "use crate::m::x::X;");

    #[test]
    fn modules_that_import_each_other_are_found_and_a_way_around_is_shown() {
        let circle = all(&[X, Y, Z], "");
        assert_eq!(brief(&circle), [(2, RULE)]);
        assert_eq!(circle[0].file, "crates/a/src/m/x.rs");
        let way = "x.rs → y.rs (crates/a/src/m/x.rs:2) → z/ (crates/a/src/m/y.rs:1) → x.rs";
        assert!(circle[0].what.contains(way), "{}", circle[0].what);
        assert_eq!(found(&[X, Y]), [], "a chain is no circle");
    }

    #[test]
    fn a_re_export_counts_as_the_sibling_that_defines_it() {
        let module = |line| ("m/mod.rs", line);
        let other = ("m/y.rs", "use super::X;\npub struct Y;");
        let defines = module("mod x;\nmod y;\npub use x::{W, X};");
        assert_eq!(found(&[defines, X, other]), [(2, RULE)]);
        assert_eq!(found(&[module("mod x;\nmod y;\npub use elsewhere::X;"), X, other]), []);
    }

    #[test]
    fn what_only_tests_import_draws_no_arrow() {
        let back =
            ("m/y.rs", "pub struct Y;\n#[cfg(test)]\nmod tests {\n    use super::super::x::X;\n}");
        assert_eq!(found(&[X, back]), []);
    }

    #[test]
    fn circles_apart_are_found_apart() {
        let two = [
            ("m/x.rs", "use super::y;"),
            ("m/y.rs", "use super::x;"),
            ("n/x.rs", "use super::y;\nuse crate::m::x;"),
            ("n/y.rs", "use super::x;"),
        ];
        assert_eq!(found(&two), [(1, RULE), (1, RULE)]);
    }

    #[test]
    fn a_listed_circle_passes_and_may_only_shrink() {
        let names = r#""x.rs", "y.rs", "z/""#;
        assert_eq!(all(&[X, Y, Z], &entry(names, "old")), []);
        assert_eq!(brief(&all(&[X, Y, Z], &entry(names, ""))), [(1, RULE)], "no reason");
        let more = all(&[X, Y, Z], &entry(&format!("{names}, \"w.rs\""), "old"));
        assert_eq!((more.len(), more[0].file.as_str()), (1, Components::FILE));
        assert!(more[0].what.contains(r#"write ["x.rs", "y.rs", "z/"]"#), "{}", more[0].what);
        assert_eq!(brief(&all(&[X, Y, Z], &entry(r#""x.rs", "y.rs""#, "old"))).len(), 2, "grown");
        assert_eq!(brief(&all(&[X, Y], &entry(names, "old"))), [(1, RULE)], "gone");
    }
}
