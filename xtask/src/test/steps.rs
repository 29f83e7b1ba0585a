//! The steps of `cargo xtask test`, in the order in which they fail fastest.

use std::path::Path;

use super::process::Line;
use crate::tree::{site_target, target_directory};

/// Work of a step.
pub enum Work {
    /// The house rules, in this process.
    Tidy,
    /// Commands, one after the other.
    Run(Vec<Line>),
    /// Commands, one after the other, if the first can be run; otherwise nothing, for this reason.
    RunIf(Line, &'static str, Vec<Line>),
    /// Nothing, for this reason.
    Skip(String),
}

/// Steps that cost too much for every change: long counts and campaigns, and the workspace of the
/// comparison with its engines.
pub const DEEP: [&str; 11] = [
    "tests-deep",
    "python-deep",
    "sections",
    "shuttle-deep",
    "golden",
    "compare",
    "compare-all",
    "slate",
    "crash",
    "planted",
    "reads",
];

/// A planted bug for each campaign. Building the engine with each of the others takes over an hour:
/// `cargo xtask crash --planted`.
const PLANTED: [&str; 4] =
    ["no-full-image", "log-not-synced", "fences-not-compared", "range-not-seen"];

/// Variable that asks tests for their long counts: `millpond_base::rounds`.
const LONG: &str = "MILLPOND_DEEP";
/// Variable that multiplies the number of schedules under shuttle.
const SCHEDULES: (&str, &str) = ("MILLPOND_SCHEDULES", "10");

/// One step.
pub struct Step {
    pub name: &'static str,
    pub about: &'static str,
    pub work: Work,
}

const COMPARE: &str = "crates/compare/Cargo.toml";
const SLATE: &str = "crates/slate/Cargo.toml";
const SITE: &str = "crates/site/Cargo.toml";
const PYTHON: &str = "python/tests/run.py";
const FUZZ: &str = "fuzz/Cargo.toml";
const MACOS: &str = "aarch64-apple-darwin";

/// Returns all steps for the tree under `root`.
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
            "supply",
            "licences, origins and known faults of what we depend on",
            run(&["cargo", "xtask", "supply"]),
        ),
        step("tests", "unit, property and integration tests", Work::Run(vec![tests()])),
        step(
            "tests-deep",
            "the same tests with long counts",
            Work::Run(vec![tests().with(LONG, "1")]),
        ),
        step("sections", "critical sections, counted by who enters them", sections()),
        step(
            "doctests",
            "examples in the documentation",
            run(&["cargo", "test", "--workspace", "--no-fail-fast", "--doc"]),
        ),
        step("python", "the Python package, in an environment of its own", python(root, false)),
        step("python-deep", "the same tests with long counts", python(root, true)),
        step("rustdoc", "the documentation builds without a warning", rustdoc()),
        step("package", "crates of a release can be packed, each from what is below it", package()),
        step("macos", "crates without C are type-checked for macOS", macos()),
        step("site", "the documentation as pages, every link of them", site(root)),
        step("api", "the engine's public functions: few, and each with an example", api()),
        step("compare", "the comparison, without the engines that are C", compare(root)),
        step("compare-all", "the comparison's lints, and tests of its engines", compare_all(root)),
        step("slate", "the cache below SlateDB: lints and tests", slate(root)),
        step(
            "shuttle",
            "threads under a scheduler that tries many orders",
            model(root, "shuttle", &[]),
        ),
        step(
            "shuttle-deep",
            "the same with ten times as many",
            model(root, "shuttle", &[SCHEDULES]),
        ),
        step("loom", "the latch under every order that memory allows", model(root, "loom", &[])),
        step("golden", "hits of other simulators, on all traces", golden()),
        step("fuzz-check", "the fuzz targets compile", fuzz(root)),
        step("crash", "crashes at any operation, hundreds of stories", crash(&["--seeds", "400"])),
        step(
            "planted",
            "planted bugs, one for each campaign, each caught",
            crash(&[&["--planted"], &PLANTED[..]].concat()),
        ),
        step("reads", "reads that go wrong, hundreds of stories", crash(&["--reads"])),
    ]
}

fn run(words: &[&str]) -> Work {
    Work::Run(vec![Line::new(words)])
}

/// Runs every target with tests; `--bins` would also compile targets without.
fn tests() -> Line {
    Line::new(&["cargo", "test", "--workspace", "--no-fail-fast", "--tests"])
}

/// Tests a feature for which the engine is compiled again.
fn sections() -> Work {
    let packages = ["-p", "millpond-base", "-p", "millpond"];
    let features = "millpond/critical-sections,millpond-base/critical-sections";
    let what = ["--features", features, "--test", "critical_sections"];
    Work::Run(vec![Line::new(&[&["cargo", "test"], &packages[..], &what].concat())])
}

/// Runs the golden tests; `cargo xtask golden` also rewrites a page.
fn golden() -> Work {
    let words = ["cargo", "test", "--release", "-p", "millpond-lab", "--test", "goldens"];
    Work::Run(vec![Line::new(&words).with("MILLPOND_GOLDEN", "all")])
}

fn rustdoc() -> Work {
    let line = Line::new(&["cargo", "doc", "--workspace", "--no-deps", "--quiet"]);
    Work::Run(vec![line.with("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")])
}

/// Tests the Python package. The module, and the command line that its tests compare it with, are
/// built as parts of the workspace, so that their dependencies keep the workspace's features.
fn python(root: &Path, is_deep: bool) -> Work {
    if !root.join(PYTHON).is_file() {
        return Work::Skip(format!("there is no {PYTHON} yet"));
    }
    let has_python = std::process::Command::new("python3").arg("--version").output();
    if !has_python.is_ok_and(|output| output.status.success()) {
        return Work::Skip("there is no python3".to_string());
    }
    let module = Line::new(&["cargo", "test", "--workspace", "--test", "python_module"]);
    let program = Line::new(&["cargo", "build", "--workspace", "--bin", "millpond"]);
    let target = target_directory(root);
    let tests = Line::new(&["python3", PYTHON, &target]);
    Work::Run(vec![module, program, if is_deep { tests.with(LONG, "1") } else { tests }])
}

/// Packs the crates that docs/release.md names, and the profiler, which is a feature of the engine.
/// The packages are not compiled, since that would take minutes.
fn package() -> Work {
    let below =
        ["base", "device", "policies", "tier", "profile", "workload", "lab", "handles", "capi"];
    let below: Vec<String> = below.iter().map(|name| format!("millpond-{name}")).collect();
    let words = ["cargo", "package", "--offline", "--no-verify", "--allow-dirty", "--quiet"];
    let crates = below.iter().flat_map(|name| ["--package", name.as_str()]);
    let words: Vec<&str> =
        words.into_iter().chain(["--package", "millpond"]).chain(crates).collect();
    Work::Run(vec![Line::new(&words)])
}

/// Checks types only: nothing is linked or run. The laboratory and the server are left out, since
/// they depend on C.
fn macos() -> Work {
    let asked = std::process::Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = asked.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string());
    let library = |root: String| Path::new(&root).join("lib/rustlib").join(MACOS).is_dir();
    if !sysroot.is_ok_and(library) {
        let get = format!("Rust's library for macOS is not here: rustup target add {MACOS}");
        return Work::Skip(get);
    }
    let crates = ["millpond", "millpond-handles", "millpond-capi", "millpond-object-store"];
    let crates = crates.iter().flat_map(|name| ["--package", name]);
    let words = ["cargo", "check", "--target", MACOS].into_iter().chain(crates);
    Work::Run(vec![Line::new(&words.collect::<Vec<_>>())])
}

/// Builds the site. mdBook is downloaded from a registry once, and stays in cargo's folder.
fn site(root: &Path) -> Work {
    if !root.join(SITE).is_file() {
        return Work::Skip(format!("there is no {SITE} yet"));
    }
    let target = site_target(root);
    let fetch = Line::new(&["cargo", "fetch", "--quiet", "--locked", "--manifest-path", SITE]);
    let format = Line::new(&["cargo", "fmt", "--manifest-path", SITE, "--check"]);
    let arguments = ["--locked", "--manifest-path", SITE, "--target-dir", &target];
    let test = Line::new(&[&["cargo", "test"], &arguments[..]].concat());
    let pages = Line::new(&["cargo", "xtask", "site", "--built"]);
    Work::RunIf(fetch, "mdBook is not here and cannot be fetched", vec![format, test, pages])
}

/// Counts the public interface in rustdoc's output for programs.
fn api() -> Work {
    run(&["cargo", "xtask", "api"])
}

/// Tests the comparison without its default features, since LMDB and SQLite would be compiled from
/// C.
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

/// Tests the comparison with its default features, which cost five minutes of processor time.
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

/// Tests `crates/slate`. SlateDB and its dependencies cost three minutes of processor time.
fn slate(root: &Path) -> Work {
    if !root.join(SLATE).is_file() {
        return Work::Skip(format!("there is no {SLATE} yet"));
    }
    let target = format!("{}/slate", target_directory(root));
    let format = Line::new(&["cargo", "fmt", "--manifest-path", SLATE, "--check"]);
    let arguments = ["--manifest-path", SLATE, "--all-targets", "--target-dir", &target];
    let clippy = [&["cargo", "clippy"], &arguments[..], &["--", "-D", "warnings"]].concat();
    let test = ["cargo", "test", "--manifest-path", SLATE, "--target-dir", &target];
    Work::Run(vec![format, Line::new(&clippy), Line::new(&test)])
}

/// Runs the crash campaign as its own command does.
fn crash(arguments: &[&str]) -> Work {
    run(&[&["cargo", "xtask", "crash"], arguments].concat())
}

/// Runs the tests under the model checker `name`: those of any crate whose name starts so. They are
/// chosen from the whole workspace. The features, and with them the dependencies of the three
/// crates, are then the same as in the other tests, and nothing is compiled again.
fn model(root: &Path, name: &str, variables: &[(&'static str, &str)]) -> Work {
    let prefix = format!("{name}_");
    let packages: Vec<String> =
        crates_with_tests(root, &prefix).iter().map(|folder| package_in(root, folder)).collect();
    let tests = format!("{prefix}*");
    if packages.is_empty() {
        return Work::Skip(format!("no crate has tests/{tests} yet"));
    }
    let features: Vec<String> = packages.iter().map(|p| format!("{p}/{name}")).collect();
    let (features, words) = (features.join(","), ["cargo", "test", "--workspace", "--features"]);
    let line = Line::new(&[&words[..], &[features.as_str(), "--test", tests.as_str()]].concat());
    Work::Run(vec![variables.iter().fold(line, |line, (name, value)| line.with(name, *value))])
}

/// Returns the name of the package in `crates/<folder>`.
fn package_in(root: &Path, folder: &str) -> String {
    let manifest = root.join("crates").join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("name = "));
    name.map_or_else(|| format!("millpond-{folder}"), |name| name.trim_matches('"').to_string())
}

/// Returns the folders of `crates/` that hold an integration test whose name starts with `prefix`.
fn crates_with_tests(root: &Path, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        let tests = std::fs::read_dir(entry.path().join("tests")).into_iter().flatten().flatten();
        let mut files = tests.map(|test| test.file_name().to_string_lossy().into_owned());
        if files.any(|file| file.starts_with(prefix)) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    names
}

/// Checks the fuzz targets. A check links nothing, so libFuzzer, which is C++, need not be
/// compiled: any path will do.
fn fuzz(root: &Path) -> Work {
    if !root.join(FUZZ).is_file() {
        return Work::Skip(format!("there is no {FUZZ} yet"));
    }
    // Checking needs neither nightly nor cargo-fuzz; only fuzzing itself does.
    let target = target_directory(root);
    let words = ["cargo", "check", "--manifest-path", FUZZ, "--bins", "--target-dir", &target];
    Work::Run(vec![Line::new(&words).with("CUSTOM_LIBFUZZER_PATH", "none/libnone.a")])
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
        // The step `macos` depends on the toolchain.
        let names: Vec<_> = skipped.map(|s| s.name).filter(|name| *name != "macos").collect();
        let missing = [
            "python",
            "python-deep",
            "site",
            "compare",
            "compare-all",
            "slate",
            "shuttle",
            "shuttle-deep",
            "loom",
            "fuzz-check",
        ];
        assert_eq!(names, missing);
    }
}
