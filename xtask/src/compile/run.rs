//! The builds that `cargo xtask compile` measures.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{embedder, measure};
use crate::tree::{root, target_directory};

/// Crates that are listed.
const LISTED: usize = 15;

/// Measures both builds, or the named one; true.
pub fn main(arguments: &[String]) -> Result<bool> {
    if let Some(other) = arguments.iter().find(|a| !["tour", "embedder"].contains(&a.as_str())) {
        bail!("compile takes `tour` and `embedder`, and `{other}` was given");
    }
    let wants = |name: &str| arguments.is_empty() || arguments.iter().any(|a| a == name);
    let folder = Path::new(&target_directory(&root())).join("compile");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    if wants("embedder") {
        embedder::measure(&root(), &folder)?;
    }
    if wants("tour") {
        let cost = measure::build(&root(), &folder.join("tour"))?;
        print(&cost, "the program that runs the tour");
    }
    Ok(true)
}

/// Prints the sum and the crates that cost most.
pub(super) fn print(cost: &measure::Cost, what: &str) {
    println!("{what}: {:.0} CPU-seconds, {} crates", cost.seconds, cost.crates.len());
    for (name, seconds) in cost.crates.iter().take(LISTED) {
        println!("{seconds:9.1}  {name}");
    }
}
