//! `cargo xtask capi --prefix DIR`: the libraries for C, their header and a file for pkg-config,
//! laid out as under /usr/local.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tree::{root, target_directory};

/// Name under which linked programs load the shared library; set in `crates/capi/build.rs`.
const SONAME: &str = "libmillpond_c.so.0";

/// Builds and installs; returns `true`.
pub fn main(arguments: &[String]) -> Result<bool> {
    let (prefix, debug) = options(arguments)?;
    let root = root();
    let profile = if debug { "dev" } else { "release" };
    let mut build = Command::new("cargo");
    build.args(["build", "--package", "millpond-capi", "--lib", "--profile", profile]);
    let status = build.current_dir(&root).status().context("starting cargo")?;
    if !status.success() {
        bail!("cargo build failed: {status}");
    }
    let built = Path::new(&target_directory(&root)).join(if debug { "debug" } else { "release" });
    let version = version(&root)?;
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let pkgconfig = lib.join("pkgconfig");
    for folder in [&include, &pkgconfig] {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    copy(&root.join("crates/capi/include/millpond.h"), &include.join("millpond.h"))?;
    copy(&built.join("libmillpond_c.a"), &lib.join("libmillpond_c.a"))?;
    if cfg!(target_os = "macos") {
        copy(&built.join("libmillpond_c.dylib"), &lib.join("libmillpond_c.dylib"))?;
    } else {
        copy(&built.join("libmillpond_c.so"), &lib.join(SONAME))?;
        link(SONAME, &lib.join("libmillpond_c.so"))?;
    }
    let place = prefix.canonicalize().with_context(|| format!("finding {}", prefix.display()))?;
    let file = pkgconfig.join("millpond.pc");
    fs::write(&file, pc(&place, &version))
        .with_context(|| format!("writing {}", file.display()))?;
    println!("header, libraries and pkg-config file are in {}", place.display());
    println!(
        "  cc program.c $(PKG_CONFIG_PATH={} pkg-config --cflags --libs millpond) -Wl,-rpath,{}",
        place.join("lib/pkgconfig").display(),
        place.join("lib").display()
    );
    Ok(true)
}

fn options(arguments: &[String]) -> Result<(PathBuf, bool)> {
    let (mut prefix, mut debug) = (None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--prefix" => prefix = rest.next().map(PathBuf::from),
            "--debug" => debug = true,
            other => bail!("capi takes --prefix DIR and --debug, and `{other}` was given"),
        }
    }
    let prefix = prefix.context("capi needs --prefix DIR, such as --prefix /usr/local")?;
    Ok((prefix, debug))
}

/// Returns the version of the workspace.
fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml")).context("reading Cargo.toml")?;
    let manifest: toml::Table = text.parse().context("reading Cargo.toml")?;
    let version = manifest.get("workspace").and_then(|table| table.get("package"));
    let version = version.and_then(|table| table.get("version")).and_then(|value| value.as_str());
    Ok(version.context("Cargo.toml has no version of the workspace")?.to_string())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // A library that a running program has mapped must not be overwritten.
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn link(to: &str, place: &Path) -> Result<()> {
    let _ = fs::remove_file(place);
    std::os::unix::fs::symlink(to, place)
        .with_context(|| format!("linking {} to {to}", place.display()))
}

/// Returns the file for pkg-config. Its `--static` part lists the system libraries of the static
/// library.
fn pc(prefix: &Path, version: &str) -> String {
    format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\nName: millpond\n\
         Description: An embedded, transactional storage engine\nVersion: {version}\n\
         Libs: -L${{libdir}} -lmillpond_c\nLibs.private: -lpthread -ldl -lm -lgcc_s\n\
         Cflags: -I${{includedir}}\n",
        prefix.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_needed_and_nothing_else_is_taken() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert!(options(&words(&[])).is_err());
        assert!(options(&words(&["--prefix"])).is_err());
        assert!(options(&words(&["/usr"])).is_err());
        let (prefix, debug) = options(&words(&["--debug", "--prefix", "/p"])).unwrap();
        assert_eq!((prefix.to_str(), debug), (Some("/p"), true));
    }

    #[test]
    fn the_file_names_the_place_and_the_version() {
        let text = pc(Path::new("/p"), &version(&root()).unwrap());
        assert!(text.starts_with("prefix=/p\n") && text.contains("\nLibs: -L${libdir} -lmill"));
        assert!(text.lines().any(|line| line.starts_with("Version: ") && line.contains('.')));
    }
}
