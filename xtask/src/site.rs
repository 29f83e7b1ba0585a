//! `cargo xtask site`: the documentation as a site of static pages, every link of it checked.
//!
//! `crates/site` makes it, a workspace of its own; the command line says what its commands are.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::test::Line;
use crate::tree::{root, site_target, target_directory};

const MANIFEST: &str = "crates/site/Cargo.toml";

/// Makes the pages: true if every link leads somewhere.
pub fn main(arguments: &[String]) -> Result<bool> {
    let root = root();
    let work = PathBuf::from(target_directory(&root)).join("site");
    let out = folder(arguments)?.unwrap_or_else(|| work.join("pages"));
    // As the tests build it, so that nothing is compiled anew after them.
    let cli = Line::new(&["cargo", "build", "--workspace", "--bin", "millpond"]);
    println!("$ {cli}");
    ensure!(cli.run()?.0, "the command line does not compile");
    let program = Path::new(&target_directory(&root)).join("debug/millpond");
    let target = site_target(&root);
    let words = ["cargo", "run", "--quiet", "--locked", "--manifest-path", MANIFEST];
    let places = [&root, &program, &work, &out].map(|place| place.display().to_string());
    let [root, program, work, out] = places.each_ref().map(String::as_str);
    let rest = ["--target-dir", &target, "--", root, program, work, out];
    let line = Line::new(&[&words[..], &rest].concat());
    println!("$ {line}");
    Ok(line.run()?.0)
}

/// The folder that is asked for.
fn folder(arguments: &[String]) -> Result<Option<PathBuf>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => Ok(None),
        ["--open-dir", folder] => Ok(Some(std::path::absolute(folder)?)),
        _ => bail!("site takes --open-dir DIR, and `{}` was given", words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_may_be_named_and_nothing_else() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert_eq!(folder(&words(&[])).unwrap(), None);
        let named = folder(&words(&["--open-dir", "/p"])).unwrap();
        assert_eq!(named, Some(PathBuf::from("/p")));
        assert!(folder(&words(&["--open-dir"])).is_err() && folder(&words(&["/p"])).is_err());
    }
}
