//! Parts of chapters that are made from the code: where a page has a line
//! `<!-- made: NAME -->`, the site has what is made for that name.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::rust_options;

const MARK: &str = "<!-- made: ";
const HEADER: &str = "crates/capi/include/millpond.h";

/// The page with its marks replaced. `millpond` is the program that describes itself.
pub fn filled(root: &Path, millpond: &Path, page: &str) -> Result<String> {
    let mut out = String::with_capacity(page.len());
    for line in page.lines() {
        match line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) {
            Some(name) => out.push_str(&made(root, millpond, name)?),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    Ok(out)
}

fn made(root: &Path, millpond: &Path, name: &str) -> Result<String> {
    match name {
        "commands" | "metrics" => told(millpond, name),
        "options" => rust_options::markdown(root),
        "header" => {
            let text = fs::read_to_string(root.join(HEADER)).with_context(|| HEADER.to_string())?;
            header(&text)
        }
        other => bail!("no part is called `{other}`; there are commands, metrics, options, header"),
    }
}

/// Returns the program's own output.
fn told(millpond: &Path, what: &str) -> Result<String> {
    let output = Command::new(millpond).args(["reference", what]).output();
    let output = output.with_context(|| format!("starting {}", millpond.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "millpond reference {what}: {}{errors}", output.status);
    String::from_utf8(output.stdout).context("what millpond prints is no text")
}

/// The header as a page: what its comments say of each declaration.
fn header(text: &str) -> Result<String> {
    let mut page = String::new();
    let (mut functions, mut rest) = (0, text);
    while let Some((_, inside)) = rest.split_once("\n/**\n") {
        let (comment, behind) = inside.split_once("\n */\n").context("a comment is not ended")?;
        let (declaration, next) = behind.split_once("\n\n").unwrap_or((behind, ""));
        let words: Vec<&str> = comment.lines().map(|line| line.trim_start_matches(" *")).collect();
        let words: Vec<&str> =
            words.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        if let Some(name) = declaration.split('(').next().filter(|_| declaration.contains('(')) {
            let name = name.rsplit([' ', '*']).next().unwrap_or(name);
            page.push_str(&format!("### {name}\n\n"));
            functions += 1;
        }
        let declaration = declaration.trim_end();
        page.push_str(&format!("```c\n{declaration}\n```\n\n{}\n\n", words.join("\n").trim_end()));
        // The next comment begins behind the empty line.
        rest = &behind[declaration.len().min(behind.len())..];
        if next.is_empty() {
            break;
        }
    }
    ensure!(functions > 0, "the header declares no function");
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_has_its_heading_its_text_and_its_code() {
        let text = "/* Head. */\n\n/**\n * One.\n */\n#define MP_A 1\n\n/**\n * Opens it.\n *\n * More.\n \
                    */\nint mp_open(const char *path,\n            int *out);\n\n#endif\n";
        let page = header(text).unwrap();
        assert!(page.starts_with("```c\n#define MP_A 1\n```\n\nOne.\n\n### mp_open\n\n```c\nint"));
        assert!(page.ends_with("int *out);\n```\n\nOpens it.\n\nMore.\n\n"), "{page}");
        assert!(header("int x;\n").is_err());
    }

    #[test]
    fn marks_are_replaced_and_unknown_ones_are_errors() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = "# C\n\n<!-- made: header -->\n\nEnd\n";
        let page = filled(&root, Path::new("none"), page).unwrap();
        assert!(page.contains("### mp_open\n") && page.ends_with("\n\nEnd\n"));
        assert!(filled(&root, Path::new("none"), "<!-- made: x -->\n").is_err());
        assert!(filled(&root, Path::new("none"), "<!-- made: metrics -->\n").is_err());
    }
}
