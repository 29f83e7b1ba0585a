//! Runs other programs and shows their commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::test::Line;

/// Runs the command, and prints it so that you can repeat it.
pub fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("starting `{line}`"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}

/// Formats the command for a shell. Of its variables, only a folder before `PATH` is
/// shown.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let line = Line { variables: Vec::new(), words };
    let folder = command.get_current_dir().map(|folder| format!("cd {} && ", folder.display()));
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    let first = path.and_then(|path| std::env::split_paths(path).next());
    let path = first.map(|first| format!("PATH={}:$PATH ", first.display()));
    format!("{}{}{line}", folder.unwrap_or_default(), path.unwrap_or_default())
}

/// Returns `PATH` with `folder` in front.
pub fn before_path(folder: impl Into<PathBuf>) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.into()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder of PATH")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_named_as_it_is_repeated() {
        assert!(run(&mut Command::new("true")).is_ok());
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]).current_dir("/").env("PATH", before_path("/b").unwrap());
        let error = run(&mut command).unwrap_err().to_string();
        assert!(error.starts_with("`cd / && PATH=/b:$PATH sh -c 'exit 3'` failed"), "{error}");
    }
}
