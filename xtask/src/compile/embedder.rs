//! A program of ten lines that opens a store, as its user compiles it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::measure::build;

const PROGRAM: &str = r#"use millpond::{Db, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Db::open("birds.mp", Options::new())?;
    let birds = db.tree::<String, u64>("birds")?;
    birds.put("heron", &3)?;
    println!("{:?}", birds.get("heron")?);
    // A policy that is not compiled says which feature has it.
    println!("{}", Options::new().policy("arc").check().unwrap_err());
    Ok(())
}
"#;

/// Builds it below `folder`, runs it, and prints the CPU time and the bytes of the program.
///
/// # Errors
/// It does not build, or it does not say what it should.
pub fn measure(root: &Path, folder: &Path) -> Result<()> {
    let package = folder.join("embedder");
    fs::create_dir_all(package.join("src")).context("making the embedder's package")?;
    let engine = root.join("crates/engine");
    let manifest = format!(
        "[package]\nname = \"embedder\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         millpond = {{ path = {engine:?} }}\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).context("writing its manifest")?;
    fs::write(package.join("src/main.rs"), PROGRAM).context("writing its program")?;
    // The versions that everything here is tested with.
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).context("copying Cargo.lock")?;
    let cost = build(&package, &folder.join("embedded"))?;
    super::run::print(&cost, "an embedder");
    let built = folder.join("embedded/target/release/embedder");
    let run = Command::new(&built).current_dir(folder).output().context("running it")?;
    let said = String::from_utf8_lossy(&run.stdout);
    if !run.status.success() || !said.contains("Some(3)") || !said.contains("`all-policies`") {
        bail!("the embedder's program said:\n{said}{}", String::from_utf8_lossy(&run.stderr));
    }
    let stripped = folder.join("stripped");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(&built).status();
    let file = if strip.is_ok_and(|status| status.success()) { &stripped } else { &built };
    println!("its program: {:.2} MB", fs::metadata(file)?.len() as f64 / 1e6);
    Ok(())
}
