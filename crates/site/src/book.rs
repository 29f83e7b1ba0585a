//! The book: a folder of chapters, and mdBook's pages of them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

use crate::chapters::Chapters;
use crate::generated;

const STYLE: &str = include_str!("style.css");

/// The settings of mdBook. What needs a network, a click to run a sample, is off.
const SETTINGS: &str = r#"
[book]
title = "Millpond"
description = "A storage engine at memory speed, and the laboratory of page replacement"
language = "en"
src = "chapters"

[build]
create-missing = false

[output.html]
additional-css = ["style.css"]
no-section-label = true
input-404 = ""
smart-punctuation = false

[output.html.fold]
enable = true
level = 0

[output.html.playground]
runnable = false

[output.html.print]
enable = false

[output.html.search]
limit-results = 20
"#;

/// Makes the pages in `out` from the chapters, which are copied to `work/chapters`.
///
/// # Errors
/// `out` has something else in it; a chapter that cannot be read or made.
pub fn build(
    root: &Path,
    chapters: &Chapters,
    millpond: &Path,
    work: &Path,
    out: &Path,
) -> Result<()> {
    if out.exists() {
        let is_ours = out.join("toc.html").is_file() || fs::read_dir(out)?.next().is_none();
        ensure!(is_ours, "{} is no site, and is not replaced by one", out.display());
        fs::remove_dir_all(out).with_context(|| format!("removing {}", out.display()))?;
    }
    let source = work.join("chapters");
    if source.exists() {
        fs::remove_dir_all(&source).with_context(|| format!("removing {}", source.display()))?;
    }
    write(&source.join("SUMMARY.md"), &chapters.summary)?;
    write(&work.join("style.css"), STYLE)?;
    for file in &chapters.files {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"))?;
        let text = generated::filled(root, millpond, &text).with_context(|| file.clone())?;
        write(&source.join(file), &text)?;
    }
    let mut settings: Config = SETTINGS.parse().context("the settings of mdBook")?;
    settings.build.build_dir = std::path::absolute(out).context("the folder of the pages")?;
    MDBook::load_with_config(work, settings).and_then(|book| book.build()).context("mdBook")
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
