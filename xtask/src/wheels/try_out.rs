//! Installs a wheel alone, and runs `check.py`, then tests of the package.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::command::run;
use crate::tree::root;

/// Script that checks a wheel's contents and behaviour.
const CHECK: &str = include_str!("check.py");

/// Tests of the package that need no other package than pytest.
const TESTS: [&str; 3] = ["test_start.py", "test_store.py", "test_handles.py"];

/// Environment in which a wheel is tried.
pub struct TestEnvironment {
    machine: String,
    folder: PathBuf,
    /// Emulator, and the file system that it shows to programs, for another machine.
    other: Option<(String, PathBuf)>,
}

impl TestEnvironment {
    /// Returns the place for `machine`, or the reason that there is none.
    pub fn of(
        machine: &str,
        system: Option<&Path>,
        work: &Path,
    ) -> Result<std::result::Result<Self, String>> {
        let folder = work.join(format!("wheels-{machine}"));
        let place = |other| TestEnvironment { machine: machine.to_string(), folder, other };
        if cfg!(target_os = "linux") && machine == std::env::consts::ARCH {
            return Ok(Ok(place(None)));
        }
        let emulator = format!("qemu-{machine}");
        let Some(system) = system else {
            return Ok(Err(format!(
                "that takes {emulator} and `--root DIR`, a system of that machine with Python \
                 (docs/release.md)"
            )));
        };
        if Command::new(&emulator).arg("--version").output().is_err() {
            return Ok(Err(format!("there is no {emulator} (Debian has it in `qemu-user`)")));
        }
        let python = interpreter(system);
        if !python.exists() {
            bail!("--root: there is no {}", python.display());
        }
        Ok(Ok(place(Some((emulator, system.to_path_buf())))))
    }

    /// Creates an environment with only the wheel and pytest; returns its Python.
    fn install(&self, wheel: &Path, tools: &Path) -> Result<PathBuf> {
        let _ = std::fs::remove_dir_all(&self.folder);
        let python = self.folder.join("bin/python");
        let quiet = ["-m", "pip", "install", "--quiet", "--only-binary=:all:"];
        let Some((emulator, system)) = &self.other else {
            run(Command::new("python3").args(["-m", "venv"]).arg(&self.folder))?;
            run(Command::new(&python).args(quiet).arg(wheel).arg("pytest"))?;
            return Ok(python);
        };
        write_program(&python, &emulated(emulator, system, &self.site()))?;
        let version = "import sys; print('%d.%d' % sys.version_info[:2])";
        let output = Command::new(&python).args(["-c", version]).output()?;
        if !output.status.success() {
            bail!("{emulator}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
        let mut pip = Command::new(tools.join("python"));
        pip.args(quiet).arg("--target").arg(self.site());
        pip.args(["--python-version", &version, "--platform", platform(wheel)?]);
        run(pip.arg(wheel).arg("pytest"))?;
        Ok(python)
    }

    /// Returns the folder of packages for another machine.
    fn site(&self) -> PathBuf {
        self.folder.join("site")
    }
}

/// Installs the wheel and uses it.
pub fn try_out(wheel: &Path, place: &TestEnvironment, tools: &Path) -> Result<()> {
    let python = place.install(wheel, tools)?;
    let check = place.folder.join("check.py");
    std::fs::write(&check, CHECK).with_context(|| format!("writing {}", check.display()))?;
    let package = root().join("python");
    let mut command = Command::new(&python);
    command.arg(&check).arg(wheel).arg(package.join("millpond")).arg(&place.machine);
    run(command.current_dir(&place.folder))?;
    let mut command = Command::new(&python);
    command.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c"]);
    command.arg(package.join("pyproject.toml"));
    command.args(TESTS.map(|test| package.join("tests").join(test)));
    if place.other.is_some() {
        // The skipped test measures memory, and qemu keeps some of each thread that ends (280 KiB
        // with 7.2).
        command.args(["-k", "not test_closed_stores_leave_nothing"]);
    }
    // The tests run outside the source folder, which Python would find first and which has no
    // module.
    command.current_dir(&place.folder).env("PYTHONDONTWRITEBYTECODE", "1");
    run(&mut command)
}

fn interpreter(system: &Path) -> PathBuf {
    system.join("usr/bin/python3")
}

/// Returns a shell script that stands for an interpreter of another machine. Programs that Python
/// starts by `sys.executable` run this script too.
fn emulated(emulator: &str, system: &Path, site: &Path) -> String {
    let (python, system) = (interpreter(system), system.display());
    format!(
        "#!/bin/sh\nexport PYTHONHOME='{system}/usr' PYTHONPATH='{}'\n\
         exec {emulator} -0 \"$0\" -L '{system}' '{}' \"$@\"\n",
        site.display(),
        python.display()
    )
}

fn write_program(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(file, text))
        .and_then(|()| std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)))
        .with_context(|| format!("writing {}", file.display()))
}

/// Returns the last part of a wheel's name, which may have several forms with dots between them.
fn platform(wheel: &Path) -> Result<&str> {
    let name = wheel.file_stem().and_then(|name| name.to_str());
    let tag = name.and_then(|name| name.rsplit('-').next()).and_then(|tag| tag.split('.').next());
    tag.with_context(|| format!("{} has no platform in its name", wheel.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_stands_in_the_name() {
        let name = "w/m-0.1.0-cp311-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64.whl";
        assert_eq!(platform(Path::new(name)).unwrap(), "manylinux2014_aarch64");
    }

    #[test]
    fn another_machine_needs_a_system_and_it_is_said_which() {
        let why = TestEnvironment::of("m68k", None, Path::new("/t")).unwrap().err().unwrap();
        assert!(why.contains("qemu-m68k") && why.contains("--root DIR"), "{why}");
        let why = TestEnvironment::of("no-machine", Some(Path::new("/")), Path::new("/t")).unwrap();
        assert!(why.err().unwrap().contains("there is no qemu-no-machine"));
    }

    #[test]
    fn a_program_of_another_machine_is_started_through_the_emulator() {
        let folder = std::env::temp_dir().join(format!("xtask-emulated-{}", std::process::id()));
        let program = folder.join("bin/python");
        // `echo` replaces the emulator; its first argument is `-0`, which echo prints.
        let text = emulated("echo", Path::new("/arm"), Path::new("/site"));
        write_program(&program, &text).unwrap();
        let output = Command::new(&program).args(["-c", "a b"]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let expected = format!("-0 {} -L /arm /arm/usr/bin/python3 -c a b\n", program.display());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(said, expected);
    }
}
