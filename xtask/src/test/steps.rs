//! The steps of `cargo xtask test`, in the order in which they fail fastest.

use std::path::Path;
use std::process::{Command, Stdio};

use super::process::Line;
use crate::tree::target_directory;

/// What a step does.
pub enum Work {
    /// The house rules, in this process.
    Tidy,
    /// Commands, one after the other.
    Run(Vec<Line>),
    /// Nothing, for this reason.
    Skip(String),
}

/// Steps that cost too much for every change: long campaigns, and the workspace of the comparison,
/// which compiles everything once more.
pub const DEEP: [&str; 6] =
    ["compare", "compare-all", "crash", "planted", "reads", "reads-planted"];

/// One step.
pub struct Step {
    pub name: &'static str,
    pub about: &'static str,
    pub work: Work,
}

const EXAMPLE: &str = "examples/my_policy/Cargo.toml";
const COMPARE: &str = "crates/compare/Cargo.toml";
const FUZZ: &str = "fuzz/Cargo.toml";

/// All steps for the tree under `root`.
pub fn steps(root: &Path) -> Vec<Step> {
    let step = |name, about, work| Step { name, about, work };
    vec![
        step("format", "rustfmt changes nothing", run(&["cargo", "fmt", "--all", "--check"])),
        step("tidy", "the house rules", Work::Tidy),
        step(
            "clippy",
            "no lint in any target",
            run(&["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ),
        step(
            "tests",
            "unit, property and integration tests",
            run(&["cargo", "test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]),
        ),
        step(
            "doctests",
            "examples in the documentation",
            run(&["cargo", "test", "--workspace", "--no-fail-fast", "--doc"]),
        ),
        step("rustdoc", "the documentation builds without a warning", rustdoc()),
        step("api", "the engine's public functions: few, and each with an example", api()),
        step("example", "a user's own policy, in a crate of its own", example(root)),
        step("compare", "the comparison, without the engines that are C", compare(root)),
        step("compare-all", "the comparison's lints, and tests of its engines", compare_all(root)),
        step("shuttle", "threads under a scheduler that tries many orders", model(root, "shuttle")),
        step("loom", "the latch under every order that memory allows", model(root, "loom")),
        step("fuzz-check", "the fuzz targets compile", fuzz(root)),
        step("crash", "crashes at any operation, hundreds of stories", crash(&["--seeds", "400"])),
        step("planted", "planted bugs, each caught by a story or a model", planted(root)),
        step("reads", "reads that go wrong, hundreds of stories", crash(&["--reads"])),
        step(
            "reads-planted",
            "planted bugs of the read path, each caught",
            crash(&["--reads", "--planted", "--seeds", "1500"]),
        ),
    ]
}

fn run(words: &[&str]) -> Work {
    Work::Run(vec![Line::new(words)])
}

fn rustdoc() -> Work {
    let line = Line::new(&["cargo", "doc", "--workspace", "--no-deps", "--quiet"]);
    Work::Run(vec![line.with("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")])
}

/// Counted in the documentation, which is written once more, for programs.
fn api() -> Work {
    run(&["cargo", "xtask", "api"])
}

fn example(root: &Path) -> Work {
    if !root.join(EXAMPLE).is_file() {
        return Work::Skip(format!("there is no {EXAMPLE} yet"));
    }
    let target = target_directory(root);
    run(&["cargo", "test", "--manifest-path", EXAMPLE, "--target-dir", &target])
}

/// Without its default features: LMDB and SQLite would be compiled from C.
fn compare(root: &Path) -> Work {
    if !root.join(COMPARE).is_file() {
        return Work::Skip(format!("there is no {COMPARE} yet"));
    }
    let target = target_directory(root);
    let format = Line::new(&["cargo", "fmt", "--manifest-path", COMPARE, "--check"]);
    let arguments = ["--manifest-path", COMPARE, "--no-default-features", "--target-dir", &target];
    let test = [&["cargo", "test"], &arguments[..]].concat();
    Work::Run(vec![format, Line::new(&test)])
}

/// With its default features, which cost five minutes of processor time.
fn compare_all(root: &Path) -> Work {
    if !root.join(COMPARE).is_file() {
        return Work::Skip(format!("there is no {COMPARE} yet"));
    }
    let target = format!("{}/compare", target_directory(root));
    let arguments = ["--manifest-path", COMPARE, "--all-targets", "--target-dir", &target];
    let clippy = [&["cargo", "clippy"], &arguments[..], &["--", "-D", "warnings"]].concat();
    let test = [&["cargo", "test"], &arguments[..]].concat();
    Work::Run(vec![Line::new(&clippy), Line::new(&test)])
}

/// The crash campaign, as its own command runs it.
fn crash(arguments: &[&str]) -> Work {
    run(&[&["cargo", "xtask", "crash"], arguments].concat())
}

/// What stories find, and what only a scheduler that tries many orders does.
fn planted(root: &Path) -> Work {
    let target = format!("{}/shuttle", target_directory(root));
    let model = ["cargo", "test", "-p", "millpond", "--features", "planted"];
    let what = ["--test", "shuttle_checkpoint", "--target-dir", &target, "planted"];
    Work::Run(vec![
        Line::new(&["cargo", "xtask", "crash", "--planted"]),
        Line::new(&[&model[..], &what].concat()).with("RUSTFLAGS", "--cfg shuttle"),
    ])
}

/// Tests under the model checker `name`. They have a target directory of their own: the flag
/// changes every crate, and alternating would rebuild all.
fn model(root: &Path, name: &str) -> Work {
    let prefix = format!("{name}_");
    let (tests, flags) = (format!("{prefix}*"), format!("--cfg {name}"));
    let target = format!("{}/{name}", target_directory(root));
    let mut lines = Vec::new();
    for folder in crates_with_tests(root, &prefix) {
        let package = package_in(root, &folder);
        let words = ["cargo", "test", "-p", &package, "--test", &tests, "--target-dir", &target];
        lines.push(Line::new(&words).with("RUSTFLAGS", &*flags));
    }
    if lines.is_empty() {
        return Work::Skip(format!("no crate has tests/{tests}.rs yet"));
    }
    Work::Run(lines)
}

/// What the crate in `crates/<folder>` is called.
fn package_in(root: &Path, folder: &str) -> String {
    let manifest = root.join("crates").join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("name = "));
    name.map_or_else(|| format!("millpond-{folder}"), |name| name.trim_matches('"').to_string())
}

/// Folders of `crates/` that hold an integration test whose name starts so.
fn crates_with_tests(root: &Path, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        let tests = std::fs::read_dir(entry.path().join("tests")).into_iter().flatten().flatten();
        let mut files = tests.map(|test| test.file_name().to_string_lossy().into_owned());
        if files.any(|file| file.starts_with(prefix) && file.ends_with(".rs")) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    names
}

fn fuzz(root: &Path) -> Work {
    if !root.join(FUZZ).is_file() {
        return Work::Skip(format!("there is no {FUZZ} yet"));
    }
    if !succeeds(&["c++", "--version"]) {
        let how = "the fuzz targets were not compiled: libFuzzer needs a C++ compiler (g++)";
        return Work::Skip(how.to_string());
    }
    // Checking needs neither nightly nor cargo-fuzz; only fuzzing itself does.
    let target = format!("{}/fuzz-check", target_directory(root));
    run(&["cargo", "check", "--manifest-path", FUZZ, "--bins", "--target-dir", &target])
}

/// Whether a command is there and answers.
fn succeeds(words: &[&str]) -> bool {
    let quiet = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::root;

    #[test]
    fn step_names_differ_and_the_core_never_skips() {
        let steps = steps(&root());
        for (at, step) in steps.iter().enumerate() {
            assert!(steps[at + 1..].iter().all(|other| other.name != step.name));
        }
        for name in ["format", "tidy", "clippy", "tests", "doctests"] {
            let step = steps.iter().find(|s| s.name == name).unwrap();
            assert!(!matches!(step.work, Work::Skip(_)), "{name} would be skipped");
        }
    }

    #[test]
    fn packages_are_called_as_their_manifests_say() {
        assert_eq!(package_in(&root(), "engine"), "millpond");
        assert_eq!(package_in(&root(), "policies"), "millpond-policies");
    }

    #[test]
    fn an_empty_tree_skips_what_it_does_not_have() {
        let steps = steps(Path::new("no-such-directory"));
        let skipped = steps.iter().filter(|s| matches!(s.work, Work::Skip(_)));
        let names: Vec<_> = skipped.map(|s| s.name).collect();
        assert_eq!(names, ["example", "compare", "compare-all", "shuttle", "loom", "fuzz-check"]);
    }
}
