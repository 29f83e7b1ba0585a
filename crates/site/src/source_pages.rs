//! Files of the repository that a chapter refers to, as pages that show them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::html::escaped;

/// Larger ones are data.
const SHOWN_BYTES_MAX: u64 = 1 << 20;

const STYLE: &str = "body{margin:0 auto;max-width:70rem;padding:1rem;font:16px/1.5 sans-serif;\
    color:#222;background:#fff}pre{overflow-x:auto;font:14px/1.45 monospace;background:#f6f7f6;\
    padding:1rem}@media(prefers-color-scheme:dark){body{color:#ccc;background:#161923}\
    pre{background:#1d202c}}";

/// Whether browsers show it, or save it, as it is: such a file is copied.
pub fn is_copied(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["svg", "png", "html", "json", "parquet", "csv", "gz", "zst"].contains(&ending)
}

/// Returns the place of a file's or folder's page, below the site.
pub fn place(path: &str) -> String {
    format!("source/{path}.html")
}

/// The page of the file or folder `path`; `None` if there is none, or it is not shown.
pub fn page(root: &Path, path: &str) -> Result<Option<String>> {
    let file = root.join(path);
    let Ok(metadata) = fs::metadata(&file) else { return Ok(None) };
    if metadata.is_dir() {
        let entries = fs::read_dir(&file).with_context(|| format!("listing {path}"))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            let name = format!("{}{slash}", entry.file_name().to_string_lossy());
            // What a build leaves is not the repository's.
            if name != "target/" && !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        return Ok(Some(html(path, "A folder of the repository", &names.join("\n"))));
    }
    if metadata.len() > SHOWN_BYTES_MAX {
        return Ok(None);
    }
    let bytes = fs::read(&file).with_context(|| format!("reading {path}"))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    Ok(Some(html(path, "A file of the repository", &text)))
}

fn html(path: &str, what: &str, text: &str) -> String {
    let (path, text) = (escaped(path), escaped(text));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{path}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n\
         <body><h1>{path}</h1><p>{what}, as it was when this site was made.</p>\n\
         <pre>{text}</pre></body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_folder_are_shown_and_bytes_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.rs"), "fn a() -> Vec<u8> {}").unwrap();
        fs::write(folder.path().join("b"), [0xff, 0xfe]).unwrap();
        let shown = page(folder.path(), "a.rs").unwrap().unwrap();
        assert!(shown.contains("<h1>a.rs</h1>") && shown.contains("Vec&lt;u8&gt;"), "{shown}");
        assert!(page(folder.path(), "").unwrap().unwrap().contains("a.rs\nb"));
        assert_eq!(page(folder.path(), "b").unwrap(), None);
        assert_eq!(page(folder.path(), "c").unwrap(), None);
        assert!(is_copied("docs/x.svg") && !is_copied("a.rs") && !is_copied("Makefile"));
    }
}
