//! Every link of the site: settled, if it left the book for a file of the repository, and checked.
//!
//! Chapters have the paths in the book that they have in the repository, so a link that means
//! nothing in the book still names a file there. A file that browsers show is copied to the same
//! path; any other one gets a page below `source/`, and the link leads to that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::html::{Scan, escaped, percent_decoded, scan};
use crate::paths::{relative, resolve};
use crate::source_pages;

/// Findings of a check.
#[derive(Default)]
pub struct Report {
    pub pages: usize,
    /// Links within the site.
    pub links: usize,
    /// A line for each that leads nowhere.
    pub dead: Vec<String>,
}

/// Settles and checks the links of all pages of the book in `book`.
pub fn settle(root: &Path, book: &Path) -> Result<Report> {
    let mut report = Report::default();
    let mut open = Vec::new();
    find(book, "", &mut open)?;
    let (mut scans, mut seen) = (BTreeMap::new(), BTreeSet::new());
    // A report that is copied is a page, too.
    while let Some(page) = open.pop() {
        if !page.ends_with(".html") || !seen.insert(page.clone()) {
            continue;
        }
        let file = book.join(&page);
        let mut text = fs::read_to_string(&file).with_context(|| format!("reading {page}"))?;
        let found = scan(&text);
        let mut is_changed = false;
        for (place, link) in found.links.iter().rev() {
            let Some((target, fragment)) = inner(link) else { continue };
            if target.is_empty() {
                continue;
            }
            let Some(path) = resolve(&page, &target) else { continue };
            let Some(leads_to) = target_of(root, book, &path)? else { continue };
            if leads_to != path {
                let hash = if fragment.is_empty() { "" } else { "#" };
                let link = format!("{}{hash}{fragment}", relative(&page, &leads_to));
                text.replace_range(place.clone(), &escaped(&link));
                is_changed = true;
            }
            open.push(leads_to);
        }
        if is_changed {
            fs::write(&file, &text).with_context(|| format!("writing {page}"))?;
        }
        scans.insert(page, scan(&text));
    }
    report.pages = scans.len();
    for (page, found) in &scans {
        check(book, page, found, &scans, &mut report);
    }
    Ok(report)
}

/// Path and fragment of a link within the site; `None` for others.
fn inner(link: &str) -> Option<(String, String)> {
    let scheme = link.split(['/', '#', '?']).next().unwrap_or("");
    if scheme.contains(':') || link.starts_with("//") {
        return None;
    }
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or("");
    Some((percent_decoded(path), percent_decoded(fragment)))
}

/// The file of the book that a link to `path` is to lead to, made if it is the repository's;
/// `None` if there is neither.
fn target_of(root: &Path, book: &Path, path: &str) -> Result<Option<String>> {
    if book.join(path).is_file() {
        return Ok(Some(path.to_string()));
    }
    // A README is the index of its folder.
    if let Some(folder) = path.strip_suffix("README.html") {
        let index = format!("{folder}index.html");
        if book.join(&index).is_file() {
            return Ok(Some(index));
        }
    }
    // mdBook takes each Markdown file for a chapter.
    let markdown = path.strip_suffix(".html").map(|stem| format!("{stem}.md"));
    let markdown = markdown.filter(|path| root.join(path).is_file());
    let path = markdown.unwrap_or_else(|| path.to_string());
    if source_pages::is_copied(&path) && root.join(&path).is_file() {
        let target = book.join(&path);
        let folder = target.parent().unwrap_or(book);
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::copy(root.join(&path), &target).with_context(|| format!("copying {path}"))?;
        return Ok(Some(path));
    }
    let Some(page) = source_pages::page(root, &path)? else { return Ok(None) };
    let place = source_pages::place(&path);
    let target = book.join(&place);
    let folder = target.parent().unwrap_or(book);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    fs::write(&target, page).with_context(|| format!("writing {place}"))?;
    Ok(Some(place))
}

/// Counts the links of a page, and names those that lead nowhere.
fn check(
    book: &Path,
    page: &str,
    found: &Scan,
    scans: &BTreeMap<String, Scan>,
    report: &mut Report,
) {
    for (_, link) in &found.links {
        let Some((target, fragment)) = inner(link) else { continue };
        report.links += 1;
        let path = if target.is_empty() {
            Some(page.to_string())
        } else {
            resolve(page, &target).filter(|path| book.join(path).is_file())
        };
        let Some(path) = path else {
            report.dead.push(format!("{page}: {link} is nowhere"));
            continue;
        };
        let has_place = |scan: &Scan| fragment.is_empty() || scan.ids.contains(&fragment);
        if !scans.get(&path).is_none_or(has_place) {
            report.dead.push(format!("{page}: {link}: no such place on that page"));
        }
    }
}

/// The HTML files in `folder` of the book, and in the folders in it.
fn find(book: &Path, folder: &str, found: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(book.join(folder)).with_context(|| format!("listing {folder}"))?;
    for entry in entries {
        let entry = entry?;
        let slash = if folder.is_empty() { "" } else { "/" };
        let path = format!("{folder}{slash}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            find(book, &path, found)?;
        } else if path.ends_with(".html") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_are_settled_and_dead_ones_are_named() {
        let (root, book) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |root: &Path, path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(root.path(), "crates/a.rs", "fn a() {}");
        write(root.path(), "docs/r/report.html", "<p id=\"one\"><a href=\"../a.html#top\">");
        write(book.path(), "index.html", "<p>");
        let page = "<h1 id=\"top\"><a href=\"../crates/a.rs\"><a href=\"r/report.html#one\">\
                    <a href=\"../README.html\"><a href=\"#top\"><a href=\"https://e.org/x\">";
        write(book.path(), "docs/a.html", page);
        let report = settle(root.path(), book.path()).unwrap();
        assert_eq!(report.dead, Vec::<String>::new());
        assert_eq!((report.pages, report.links), (4, 5));
        let page = fs::read_to_string(book.path().join("docs/a.html")).unwrap();
        assert!(page.contains("../source/crates/a.rs.html") && page.contains("../index.html"));

        let page = "<a href=\"gone.rs\"><a href=\"#gone\"><a href=\"r/report.html#two\">";
        write(book.path(), "docs/a.html", page);
        let report = settle(root.path(), book.path()).unwrap();
        assert_eq!(report.dead.len(), 4, "{:?}", report.dead);
    }
}
