//! Which chapters there are: `docs/SUMMARY.md`, which mdBook reads, too.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::paths::resolve;

/// From the root.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The chapters, in their order.
pub struct Chapters {
    /// The summary, its links from the root.
    pub summary: String,
    /// Their files, from the root.
    pub files: Vec<String>,
}

/// Reads the summary.
///
/// # Errors
/// A file that is not there, or is named twice; a page below `docs` that the summary forgets.
pub fn read(root: &Path) -> Result<Chapters> {
    let text = fs::read_to_string(root.join(SUMMARY)).with_context(|| SUMMARY.to_string())?;
    let chapters = parse(&text)?;
    for (at, file) in chapters.files.iter().enumerate() {
        ensure!(root.join(file).is_file(), "{SUMMARY} names {file}, and there is no such file");
        ensure!(!chapters.files[..at].contains(file), "{SUMMARY} names {file} twice");
    }
    let mut pages = Vec::new();
    find_pages(root, "docs", &mut pages)?;
    for page in pages {
        if page != SUMMARY && !chapters.files.contains(&page) {
            bail!("{page} is no chapter: give it a line in {SUMMARY}");
        }
    }
    Ok(chapters)
}

fn parse(text: &str) -> Result<Chapters> {
    let (mut summary, mut files) = (String::new(), Vec::new());
    for line in text.lines() {
        match line.split_once("](").and_then(|(title, rest)| Some((title, rest.split_once(')')?))) {
            Some((title, (target, rest))) => {
                let file = resolve(SUMMARY, target);
                let file = file.with_context(|| format!("{target} is outside the repository"))?;
                summary.push_str(&format!("{title}]({file}){rest}\n"));
                files.push(file);
            }
            None => summary.push_str(&format!("{line}\n")),
        }
    }
    Ok(Chapters { summary, files })
}

/// The Markdown files in `folder`, and in the folders in it.
fn find_pages(root: &Path, folder: &str, found: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder)).with_context(|| format!("listing {folder}"))?;
    for entry in entries {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            find_pages(root, &path, found)?;
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_summary_are_taken_from_the_root() {
        let text = "# S\n\n[What](../README.md)\n\n# G\n\n- [A](a.md)\n  - [B](r/b.md)\n";
        let chapters = parse(text).unwrap();
        assert_eq!(chapters.files, ["README.md", "docs/a.md", "docs/r/b.md"]);
        assert!(chapters.summary.contains("  - [B](docs/r/b.md)\n"), "{}", chapters.summary);
        assert!(parse("- [A](../../a.md)\n").is_err());
    }

    #[test]
    fn a_page_without_a_line_and_a_line_without_a_page_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("docs/SUMMARY.md", "- [A](a.md)\n");
        assert!(read(folder.path()).is_err_and(|error| error.to_string().contains("no such")));
        write("docs/a.md", "# A\n");
        assert_eq!(read(folder.path()).unwrap().files, ["docs/a.md"]);
        write("docs/r/b.md", "# B\n");
        assert!(read(folder.path()).is_err_and(|error| error.to_string().contains("docs/r/b.md")));
    }
}
