//! Makes a site of static pages of the documentation, and checks each of its links.
//!
//! `docs/SUMMARY.md` names the chapters. They are copied as they are to a folder of their own,
//! with the parts that are made from the code filled in ([`generated`]), and mdBook makes pages of
//! them. What they refer to beside each other comes along ([`links`]): pictures and reports as
//! they are, sources as pages that show them. So the site is whole without the repository, and
//! nothing of it is looked for in a network.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for a terminal")]

mod book;
mod chapters;
mod generated;
mod html;
mod links;
mod paths;
mod rust_options;
mod source_pages;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("site: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// True if every link leads somewhere.
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, millpond, work, out] = arguments.as_slice() else {
        bail!("usage: millpond-site ROOT MILLPOND WORK OUT; `cargo xtask site` calls it");
    };
    let (root, out) = (Path::new(root), Path::new(out));
    let chapters = chapters::read(root)?;
    book::build(root, &chapters, Path::new(millpond), Path::new(work), out)?;
    let report = links::settle(root, out)?;
    for line in &report.dead {
        println!("site: {line}");
    }
    let (pages, links, dead) = (report.pages, report.links, report.dead.len());
    println!("site: {pages} pages, {links} links, {dead} of them dead");
    println!("site: {}", out.join("index.html").display());
    Ok(report.dead.is_empty())
}
