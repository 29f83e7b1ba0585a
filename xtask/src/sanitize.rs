//! The engine's tests under a sanitizer: `cargo xtask sanitize`. Opt-in, since it compiles
//! everything again.
//!
//! AddressSanitizer includes the leak checker and works with the usual standard library.
//! ThreadSanitizer needs an instrumented one (`-Zbuild-std`, with the `rust-src` component). It
//! also does not understand fences, on which optimistic readers are built, and would raise false
//! alarms. So `thread` hides their reads of pages from it (`--cfg tsan`:
//! `crates/engine/src/page/racy.rs` states the races that can still be found). `latched` hides
//! nothing, but runs only the tests with shared latches.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::test::Line;

/// Toolchains to search for the standard library's source: the default one first.
const TOOLCHAINS: [&str; 2] = ["", "nightly"];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs the chosen sanitizer; returns `true` if it found nothing, or is unavailable here.
pub fn main(arguments: &[String]) -> Result<bool> {
    let (mut which, mut rest) = ("address", Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "address" => which = "address",
            "thread" => which = "thread",
            "latched" => which = "latched",
            "--" => rest.extend(words.by_ref().cloned()),
            other => bail!("sanitize knows address, thread, latched and --, not `{other}`"),
        }
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("left out: sanitizers are set up for {TARGET} only");
        return Ok(true);
    }
    let mut line = line(which, &rest);
    if which != "address" {
        match TOOLCHAINS.into_iter().find(|toolchain| has_sources(toolchain)) {
            None => {
                println!("left out: needs the standard library's source (component rust-src)");
                return Ok(true);
            }
            Some("") => {}
            Some(toolchain) => line = line.with("RUSTUP_TOOLCHAIN", toolchain),
        }
    }
    println!("$ {line}");
    let (is_ok, tally) = line.run()?;
    println!("{} passed, {} failed under the {which} sanitizer", tally.passed, tally.failed);
    Ok(is_ok)
}

fn line(which: &str, rest: &[String]) -> Line {
    let target_directory = format!("target/sanitize-{which}");
    let mut words = vec!["cargo", "test", "-p", "millpond", "--target", TARGET];
    words.extend(["--target-dir", &target_directory, "--lib", "--tests"]);
    if which != "address" {
        words.push("-Zbuild-std");
    }
    words.extend(rest.iter().map(String::as_str));
    if which == "latched" && rest.is_empty() {
        words.extend(["--", "latched", "shared_latches"]);
    }
    let flags = match which {
        "address" => "-Zsanitizer=address",
        "thread" => "-Zsanitizer=thread --cfg tsan",
        _ => "-Zsanitizer=thread",
    };
    // `RUSTC_BOOTSTRAP` lets a stable compiler accept nightly flags.
    Line::new(&words).with("RUSTC_BOOTSTRAP", "1").with("RUSTFLAGS", flags)
}

fn has_sources(toolchain: &str) -> bool {
    let mut command = Command::new("rustc");
    if !toolchain.is_empty() {
        command.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    let output = command.args(["--print", "sysroot"]).stderr(Stdio::null()).output();
    output.is_ok_and(|output| {
        let root = String::from_utf8_lossy(&output.stdout).trim().to_string();
        std::path::Path::new(&root).join("lib/rustlib/src/rust/library").is_dir()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_repeated_by_hand() {
        let text = line("address", &[]).to_string();
        assert!(text.starts_with("RUSTC_BOOTSTRAP='1' RUSTFLAGS='-Zsanitizer=address' cargo test"));
        assert!(text.contains("--target x86_64-unknown-linux-gnu"), "{text}");
        let text = line("thread", &["--test".to_string(), "pool".to_string()]).to_string();
        assert!(text.ends_with("-Zbuild-std --test pool"), "{text}");
    }

    #[test]
    fn unknown_sanitizers_are_refused() {
        assert!(main(&["memory".to_string()]).is_err());
    }
}
