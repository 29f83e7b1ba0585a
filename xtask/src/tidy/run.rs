//! All checks over the whole tree.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::components::Components;
use super::house::{House, Openings, openings, render};
use super::options::Options;
use super::source::{Source, module_directory};
use super::violation::Violation;
use super::{
    circles, code, crate_arrows, headers, links, module_arrows, module_files, opening_words,
    outliers, phrases, profile, samples, text,
};
use crate::planted;
use crate::tree::{Tree, root};

const MAP: &str = Components::FILE;

/// `cargo xtask tidy [RULE]…`: prints violations; returns `true` if there are none.
pub fn main(arguments: &[String]) -> Result<bool> {
    let options = Options::parse(arguments)?;
    let tree = Tree::load(&root())?;
    if options.table {
        print_house(&tree, &options)?;
        return Ok(true);
    }
    let rules = &options.rules;
    let components = read_map(&tree)?;
    let (sources, unread) = read_sources(&tree);
    let openings = openings(&tree, "");
    let mut found = violations(&tree, &components, &sources, &openings);
    found.extend(unread);
    found.extend(planted::faults(&root(), &tree).into_iter().map(unfit));
    found.retain(|violation| rules.is_empty() || rules.iter().any(|rule| rule == violation.rule));
    found.sort_by_key(|violation| violation.rule);
    for violation in &found {
        println!("{violation}");
    }
    if rules.is_empty() {
        print!("{}", outliers::report(&tree, &sources, options.outliers));
        print!("{}", opening_words::summary(&openings, &components));
    }
    if found.is_empty() {
        println!("tidy: {} files, nothing to say", tree.texts().count());
    } else {
        println!("tidy: {}", sum(&found));
    }
    Ok(found.is_empty())
}

/// Checks the repository and prints one line per violation, rule by rule.
pub fn check() -> Result<bool> {
    main(&[])
}

/// Returns the violation of a planted bug that is useless.
fn unfit(fault: planted::Fault) -> Violation {
    Violation::new(&fault.path, 1, "planted", fault.why)
}

/// Formats the number of violations, in total and per rule.
fn sum(found: &[Violation]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for violation in found {
        *counts.entry(violation.rule).or_default() += 1;
    }
    let rules: Vec<String> = counts.iter().map(|(rule, n)| format!("{n} {rule}")).collect();
    let plural = if found.len() == 1 { "" } else { "s" };
    format!("{} violation{plural}: {}", found.len(), rules.join(", "))
}

/// Prints the figures of the code base, and the places of one count.
fn print_house(tree: &Tree, options: &Options) -> Result<()> {
    let components = read_map(tree)?;
    let (sources, _) = read_sources(tree);
    let house = House::measure(tree, &root(), &sources, &components);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&house)?);
    } else {
        print!("{}", render(&house));
    }
    for site in options.sites.map_or(&[][..], |sites| sites.of(&house)) {
        println!("{}:{}: {}", site.file, site.line, site.what);
    }
    Ok(())
}

fn read_map(tree: &Tree) -> Result<Components> {
    let map = tree.text(MAP).with_context(|| format!("{MAP} is missing"))?;
    Components::parse(map).with_context(|| format!("reading {MAP}"))
}

/// Reads all Rust files and marks test code; returns the parsed ones, and violations for the
/// others.
fn read_sources(tree: &Tree) -> (Vec<Source<'_>>, Vec<Violation>) {
    let mut found = Vec::new();
    let mut sources = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs")) {
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(error) => {
                found.push(Violation::new(path, 1, "syntax", format!("does not parse: {error}")));
            }
        }
    }
    mark_test_files(&mut sources);
    (sources, found)
}

fn violations(
    tree: &Tree,
    components: &Components,
    sources: &[Source<'_>],
    openings: &Openings,
) -> Vec<Violation> {
    let mut found = Vec::new();

    for (path, content) in tree.texts() {
        let source = sources.iter().find(|s| s.path == path);
        found.extend(text::check(path, content, source));
        found.extend(headers::check(path, content));
    }
    for source in sources {
        found.extend(module_files::check(source));
        found.extend(code::check(source, components));
    }
    found.extend(crate_arrows::check(tree, components));
    found.extend(module_arrows::check(sources, components));
    found.extend(circles::check(sources, components));
    found.extend(opening_words::check(openings, components));
    found.extend(profile::check(tree, components));
    found.extend(links::check(tree));
    found.extend(samples::check(tree));
    found.extend(phrases::check(tree, tree.text(phrases::LIST).unwrap_or("")));
    found.sort();
    found.dedup();
    found
}

/// Marks the files of `#[cfg(test)] mod x;`, and all files below, as test code from their first
/// line.
fn mark_test_files(sources: &mut [Source<'_>]) {
    let mut prefixes = Vec::new();
    for source in sources.iter() {
        let directory = module_directory(source.path);
        for name in source.test_modules() {
            prefixes.push((format!("{directory}/{name}.rs"), format!("{directory}/{name}/")));
        }
    }
    for source in sources {
        let is_below = |(file, folder): &(String, String)| {
            source.path == file || source.path.starts_with(folder.as_str())
        };
        source.all_test |= prefixes.iter().any(is_below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP_TEXT: &str = "unsafe_files = []\n[crates.a]\npath = \"crates/a\"\npackage = \"a\"\n\
                            uses = []\n[openings]\nnoun_clauses_percent_max = 0.5\n\
                            leaning_percent_max = 0.5\n";

    fn rules(files: &[(&str, &str)]) -> Vec<&'static str> {
        let mut all = vec![(MAP, MAP_TEXT)];
        all.extend(files);
        found_in(&Tree::of(&all)).iter().map(|v| v.rule).collect()
    }

    fn found_in(tree: &Tree) -> Vec<Violation> {
        let components = read_map(tree).unwrap();
        let (sources, unread) = read_sources(tree);
        let openings = openings(tree, "");
        let mut found = violations(tree, &components, &sources, &openings);
        found.extend(unread);
        found
    }

    #[test]
    fn a_file_that_only_tests_compile_may_panic() {
        let helper = ("crates/a/src/support.rs", "pub fn a() { b().unwrap(); }\n");
        let plain = ("crates/a/src/lib.rs", "mod support;\n");
        let marked = ("crates/a/src/lib.rs", "#[cfg(test)]\nmod support;\n");
        assert_eq!(rules(&[helper, plain]), ["panic"]);
        assert!(rules(&[helper, marked]).is_empty());
    }

    #[test]
    fn every_check_is_wired_in() {
        let path = concat!("see /wo", "rk/x and [gone](gone.md) \t\n");
        let files = [
            ("crates/a/Cargo.toml", "[package]\nname = \"b\"\n"),
            ("crates/a/src/broken.rs", "fn (\n"),
            ("crates/a/src/m/mod.rs", "fn f() { unsafe { g().unwrap() } }\n"),
            ("crates/policies/src/policy/lru.rs", "fn a() {}\n"),
            ("crates/a/src/x.rs", "use super::y;\n"),
            ("crates/a/src/y.rs", "use super::x;\n"),
            ("crates/a/src/what.rs", "//! What it is.\n"),
            ("README.md", path),
            ("docs/a.md", "an odd bird\n"),
            (phrases::LIST, "odd bird => finch\n"),
        ];
        let found = rules(&files);
        for rule in [
            "crate-arrow",
            "syntax",
            "import-circle",
            "opening",
            "mod-file",
            "panic",
            "unsafe-file",
            "unsafe-proof",
            "policy-header",
            "machine-path",
            "dead-link",
            "phrase",
            "tab",
            "trailing-blank",
        ] {
            assert!(found.contains(&rule), "{rule} was not found in {found:?}");
        }
    }

    #[test]
    fn the_sum_counts_each_rule() {
        let violation = |rule| Violation::new("a.rs", 1, rule, "x");
        assert_eq!(sum(&[violation("tab")]), "1 violation: 1 tab");
        let three = [violation("tab"), violation("panic"), violation("tab")];
        assert_eq!(sum(&three), "3 violations: 1 panic, 2 tab");
    }

    #[test]
    fn this_repository_is_tidy() {
        let found = found_in(&Tree::load(&root()).unwrap());
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "{}", lines.join("\n"));
    }
}
