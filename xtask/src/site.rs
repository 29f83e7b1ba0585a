//! `cargo xtask site`: builds the documentation as static pages and checks every link.
//!
//! `crates/site`, a separate workspace, makes the site. The command line describes its own
//! commands for it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::test::Line;
use crate::tree::{root, site_target, target_directory};

const MANIFEST: &str = "crates/site/Cargo.toml";

/// Makes the pages; returns `true` if every link has a target.
pub fn main(arguments: &[String]) -> Result<bool> {
    let root = root();
    let work = PathBuf::from(target_directory(&root)).join("site");
    let (folder, is_built) = options(arguments)?;
    let out = folder.unwrap_or_else(|| work.join("pages"));
    let program = Path::new(&target_directory(&root)).join("debug/millpond");
    if !is_built || !is_newest(&program, &root.join("crates")) {
        let cli = Line::new(&["cargo", "build", "--package", "millpond-cli"]);
        println!("$ {cli}");
        ensure!(cli.run()?.0, "the command line does not compile");
    }
    let target = site_target(&root);
    let words = ["cargo", "run", "--quiet", "--locked", "--manifest-path", MANIFEST];
    let places = [&root, &program, &work, &out].map(|place| place.display().to_string());
    let [root, program, work, out] = places.each_ref().map(String::as_str);
    let rest = ["--target-dir", &target, "--", root, program, work, out];
    let line = Line::new(&[&words[..], &rest].concat());
    println!("$ {line}");
    Ok(line.run()?.0)
}

/// Returns the requested folder, and `true` if the tests' program may be used when it is up to
/// date. The tests build it with the features of the whole workspace; another build would
/// compile it again.
fn options(arguments: &[String]) -> Result<(Option<PathBuf>, bool)> {
    let (mut folder, mut is_built) = (None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), rest.as_slice()) {
            ("--built", _) => is_built = true,
            ("--open-dir", [_, ..]) => {
                folder = rest.next().map(std::path::absolute).transpose()?;
            }
            _ => bail!("site takes --open-dir DIR and --built, and `{argument}` was given"),
        }
    }
    Ok((folder, is_built))
}

/// Returns `true` if no source below `crates` was changed since `program` was built.
fn is_newest(program: &Path, crates: &Path) -> bool {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let Some(built) = changed(program) else { return false };
    let mut open = vec![crates.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_source = path.extension().is_some_and(|ending| ending == "rs");
            if is_source && changed(&path).is_none_or(|time| time > built) {
                return false;
            }
            // Tests are none of the program's sources.
            if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
                open.push(path);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_may_be_named_and_nothing_else() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert_eq!(options(&words(&[])).unwrap(), (None, false));
        let named = options(&words(&["--built", "--open-dir", "/p"])).unwrap();
        assert_eq!(named, (Some(PathBuf::from("/p")), true));
        assert!(options(&words(&["--open-dir"])).is_err() && options(&words(&["/p"])).is_err());
    }

    #[test]
    fn a_program_that_is_older_than_a_source_or_not_there_is_built() {
        let root = root();
        assert!(!is_newest(Path::new("no-such-program"), &root.join("crates")));
        let (source, older) = (root.join("xtask/src/site.rs"), root.join("LICENSE-MIT"));
        assert!(is_newest(&source, &root.join("docs")));
        let times = [&source, &older].map(|file| file.metadata().unwrap().modified().unwrap());
        assert!(times[1] > times[0] || !is_newest(&older, &root.join("xtask/src")));
    }
}
