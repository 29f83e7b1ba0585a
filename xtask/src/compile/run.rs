//! The builds that `cargo xtask compile` measures.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{embedder, measure};
use crate::tree::{root, target_directory};

/// Measures the named builds, or both if none is named; returns `true`.
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
        cost.print("the program that runs the tour");
    }
    Ok(true)
}
