//! Builds the source archive and the wheels in `target/wheels`, and tries each of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::command::{before_path, run};
use super::options::{Options, machine};
use super::try_out::{TestEnvironment, try_out};
use crate::tree::{root, target_directory};

/// Tools that make and link wheels, in the versions used for the last wheels.
const TOOLS: [&str; 2] = ["maturin==1.16.0", "ziglang==0.17.1"];

/// Makes all requested wheels; returns `true`, since a failure is an error.
pub fn main(arguments: &[String]) -> Result<bool> {
    let options = Options::of(arguments)?;
    if !options.is_built {
        options.targets.iter().try_for_each(|target| has_library(target))?;
    }
    let work = std::path::absolute(target_directory(&root()))?;
    let tools = tools(&work.join("wheels-venv"))?;
    let out = work.join("wheels");
    if !options.is_built {
        empty(&out)?;
        options.targets.iter().try_for_each(|target| build(target, &tools, &out))?;
    }
    for target in &options.targets {
        let machine = machine(target);
        let wheel = only(&out, &format!("_{machine}.whl"))?;
        match TestEnvironment::of(machine, options.system.as_deref(), &work)? {
            Ok(place) => try_out(&wheel, &place, &tools)?,
            Err(why) => println!("left out: the wheel for {machine} is not tried: {why}"),
        }
    }
    println!("in {}:", out.display());
    for name in packages(&out)? {
        let size = out.join(&name).metadata().context("looking at what was made")?.len();
        println!("  {name} ({:.1} MB)", size as f64 / 1e6);
    }
    Ok(true)
}

/// Fails if Rust cannot compile for the target, before minutes of building.
fn has_library(target: &str) -> Result<()> {
    let asked = ["--print", "target-libdir", "--target", target];
    let output = Command::new("rustc").args(asked).output().context("starting rustc")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_string();
    ensure!(
        output.status.success() && Path::new(&folder).is_dir(),
        "Rust has no library for {target} here: `rustup target add {target}`"
    );
    Ok(())
}

/// Returns the folder with the programs of a virtual environment, which is created if missing.
fn tools(place: &Path) -> Result<PathBuf> {
    let programs = place.join("bin");
    let python = programs.join("python");
    let list = Command::new(&python).args(["-m", "pip", "freeze"]).output();
    let has_all = list.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        TOOLS.iter().all(|tool| text.lines().any(|line| line == *tool))
    });
    if !has_all {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(TOOLS))?;
    }
    Ok(programs)
}

/// Empties the output folder, since files of an earlier call may be of another version.
fn empty(out: &Path) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    for name in packages(out)? {
        let file = out.join(name);
        std::fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}

/// Builds the source archive, and the wheel from it. The archive has the lock file of the whole
/// workspace. Cargo takes the versions from it and strikes the packages of other crates, which
/// `--locked` would forbid.
fn build(target: &str, tools: &Path, out: &Path) -> Result<()> {
    let words = ["build", "--sdist", "--release", "--zig", "--target", target, "--out"];
    let mut command = Command::new(tools.join("maturin"));
    command.args(words).arg(out).current_dir(root().join("python"));
    // maturin finds Zig in the environment of the first Python in `PATH`.
    run(command.env("PATH", before_path(tools)?))
}

/// Returns the wheels and source archives in a folder, in order.
fn packages(folder: &Path) -> Result<Vec<String>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_package = |name: &String| name.ends_with(".whl") || name.ends_with(".tar.gz");
    let mut names: Vec<String> = names.filter(is_package).collect();
    names.sort();
    Ok(names)
}

fn only(folder: &Path, ending: &str) -> Result<PathBuf> {
    let names = packages(folder)?;
    let found: Vec<&String> = names.iter().filter(|name| name.ends_with(ending)).collect();
    let [name] = found[..] else { bail!("one file `*{ending}` should be there, not {found:?}") };
    Ok(folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder.
    struct Folder(PathBuf);

    impl Folder {
        fn with(name: &str, files: &[&str]) -> Self {
            let path = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            for file in files {
                std::fs::write(path.join(file), "").unwrap();
            }
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_target_without_a_library_is_named_with_the_remedy() {
        let error = has_library("no-such-target").unwrap_err().to_string();
        assert!(error.ends_with("`rustup target add no-such-target`"), "{error}");
    }

    #[test]
    fn the_wheel_of_a_machine_is_found_and_earlier_ones_are_removed() {
        let files = ["m-1-cp311-abi3-manylinux_2_17_aarch64.whl", "m-1.tar.gz", "notes.txt"];
        let folder = Folder::with("wheels", &files);
        assert_eq!(only(&folder.0, "_aarch64.whl").unwrap(), folder.0.join(files[0]));
        assert!(only(&folder.0, "_x86_64.whl").unwrap_err().to_string().contains("_x86_64.whl"));
        empty(&folder.0).unwrap();
        assert!(packages(&folder.0).unwrap().is_empty() && folder.0.join("notes.txt").exists());
    }
}
