//! Options of `cargo xtask wheels`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// Targets that wheels are built for; the first part of each is the machine.
pub const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Wheels to make, and the system in which to try one of another machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub targets: Vec<&'static str>,
    /// File system of the other machine, with Python in it.
    pub system: Option<PathBuf>,
    /// Set to try existing wheels only.
    pub is_built: bool,
}

impl Options {
    pub fn of(arguments: &[String]) -> Result<Self> {
        let mut options = Options { targets: Vec::new(), system: None, is_built: false };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("what is `{argument}`?"));
            match argument.as_str() {
                "--target" => options.targets.push(target(value()?)?),
                "--root" => options.system = Some(std::path::absolute(value()?)?),
                "--built" => options.is_built = true,
                other => {
                    bail!("wheels takes --target TARGET, --root DIR and --built, not `{other}`")
                }
            }
        }
        if options.targets.is_empty() {
            options.targets.extend(TARGETS);
        }
        Ok(options)
    }
}

fn target(name: &str) -> Result<&'static str> {
    let found = TARGETS.into_iter().find(|target| *target == name);
    found.with_context(|| format!("wheels are for {}, not `{name}`", TARGETS.join(" and ")))
}

/// Returns the machine of a target; Python uses the same name.
pub fn machine(target: &str) -> &str {
    target.split('-').next().unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<Options> {
        Options::of(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn all_wheels_are_made_unless_some_are_named() {
        let all = Options { targets: TARGETS.to_vec(), system: None, is_built: false };
        assert_eq!(of(&[]).unwrap(), all);
        let one = of(&["--built", "--root", "/arm", "--target", TARGETS[1]]).unwrap();
        let system = Some(PathBuf::from("/arm"));
        assert_eq!(one, Options { targets: vec![TARGETS[1]], system, is_built: true });
        assert_eq!(TARGETS.map(machine), ["x86_64", "aarch64"]);
    }

    #[test]
    fn what_is_unknown_or_lacks_its_value_is_refused() {
        let said = |words: &[&str]| of(words).unwrap_err().to_string();
        assert!(said(&["--target", "riscv64"]).contains("not `riscv64`"));
        assert!(said(&["--target", "riscv64"]).contains("aarch64-unknown-linux-gnu"));
        assert!(said(&["--root"]).contains("what is `--root`?"));
        assert!(said(&["-o", "here"]).contains("--target TARGET"));
    }
}
