//! The hunt for each planted bug, one row of a table for each.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use super::copy::TreeCopy;
use super::hunt::{Outcome, hunt};
use super::patch::{Patch, patches};
use crate::tree::{Tree, root, target_directory};

/// Plants the bugs of these names, all of them if there are none, and hunts each with `seeds`
/// stories at most. Returns `true` if each was caught.
///
/// # Errors
/// If a name is unknown, or a patch does not apply.
pub fn main(names: &[String], seeds: Option<u64>) -> Result<bool> {
    let root = root();
    let patches = wanted(patches(&Tree::load(&root)?)?, names)?;
    let target = Path::new(&target_directory(&root)).join("planted");
    let copy = TreeCopy::of(&root, &target)?;
    let mut missed = Vec::new();
    println!("| bug | campaign | caught in | by | seconds |");
    println!("|---|---|---|---|---:|");
    for patch in &patches {
        let begun = Instant::now();
        copy.apply(patch)?;
        let outcome = hunt(patch, &copy, seeds);
        copy.revert(patch)?;
        let (caught_in, by) = match outcome {
            Ok(Outcome::Caught { caught_in, by }) => (caught_in, by),
            Ok(Outcome::Missed) => {
                missed.push(patch.name.clone());
                ("**not caught**".to_string(), String::new())
            }
            Err(error) => {
                eprintln!("{error:#}");
                missed.push(patch.name.clone());
                ("**not hunted**".to_string(), String::new())
            }
        };
        let (name, campaign) = (&patch.name, &patch.campaign);
        let seconds = begun.elapsed().as_secs();
        println!("| {name} | {campaign} | {caught_in} | {by} | {seconds} |");
    }
    println!("{} of {} planted bugs caught", patches.len() - missed.len(), patches.len());
    if !missed.is_empty() {
        println!("not caught: {}", missed.join(", "));
    }
    Ok(missed.is_empty())
}

/// Returns the patches of these names, all of them if there are none.
fn wanted(all: Vec<Patch>, names: &[String]) -> Result<Vec<Patch>> {
    if let Some(name) = names.iter().find(|name| all.iter().all(|patch| patch.name != **name)) {
        let known: Vec<&str> = all.iter().map(|patch| patch.name.as_str()).collect();
        bail!("no planted bug is called `{name}`; there are: {}", known.join(", "));
    }
    Ok(all.into_iter().filter(|patch| names.is_empty() || names.contains(&patch.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_chosen_by_name() {
        let text = "Says.\n\nCaught by: log\n\ndiff --git a/x b/x\n";
        let all = || ["one", "two"].map(|name| Patch::parse(name, text).unwrap()).to_vec();
        assert_eq!(wanted(all(), &[]).unwrap().len(), 2);
        assert_eq!(wanted(all(), &["two".to_string()]).unwrap()[0].name, "two");
        let error = wanted(all(), &["three".to_string()]).unwrap_err().to_string();
        assert!(error.contains("`three`") && error.contains("one, two"), "{error}");
    }
}
