//! Code in Markdown is compiled or run by a test, or gives the reason that it is not.
//!
//! Rust is compiled in a page that some crate includes as its documentation; C and Python are run
//! in a page that a test names. Other samples have a comment in the line above:
//! `<!-- from FILE -->` names a file that has the sample's lines in order, and
//! `<!-- not run: REASON -->` gives a reason. A test of the command line reads the commands
//! (`crates/cli/tests/samples.rs`).

use std::collections::BTreeSet;

use super::links::resolve;
use super::violation::Violation;
use crate::tree::Tree;

const RULE: &str = "sample";
/// Minimum characters of a reason.
const REASON_MIN: usize = 12;
/// Folder whose samples the package's own tests run.
const APART: &str = "python/";

/// Reports samples that nothing compiles, and marks that are wrong.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let included = included(tree);
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        if !path.ends_with(".md") || path.starts_with(APART) {
            continue;
        }
        for sample in samples(text) {
            if let Some(what) = complaint(tree, &included, path, &sample) {
                found.push(Violation::new(path, sample.line, RULE, what));
            }
        }
    }
    found
}

/// A block of code.
struct Sample<'t> {
    /// Line of the opening fence, from 1.
    line: usize,
    /// Text after the opening fence, such as `rust,ignore`.
    info: &'t str,
    /// The line above it.
    above: &'t str,
    code: Vec<&'t str>,
}

fn samples(text: &str) -> Vec<Sample<'_>> {
    let mut found: Vec<Sample<'_>> = Vec::new();
    let (mut above, mut is_open) = ("", false);
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (is_open, fence) {
            (false, Some(info)) => {
                found.push(Sample { line: at + 1, info: info.trim(), above, code: Vec::new() });
                is_open = true;
            }
            (true, Some(_)) => is_open = false,
            (true, None) => found.last_mut().into_iter().for_each(|last| last.code.push(line)),
            (false, None) => {}
        }
        above = line.trim();
    }
    found
}

/// Returns the fault of a sample, if it has one.
fn complaint(
    tree: &Tree,
    included: &BTreeSet<String>,
    path: &str,
    sample: &Sample<'_>,
) -> Option<String> {
    let language = sample.info.split(',').next().unwrap_or("");
    let mark = |start| sample.above.strip_prefix(start).and_then(|rest| rest.strip_suffix(" -->"));
    if let Some(reason) = mark("<!-- not run: ") {
        let is_reason = reason.len() >= REASON_MIN;
        return (!is_reason).then(|| "the mark gives no reason: say why no test runs it".into());
    }
    if let Some(file) = mark("<!-- from ") {
        return misquoted(tree, path, file, &sample.code);
    }
    let is_named = |folder: &str| {
        let mut tests = tree.texts().filter(|(file, _)| file.starts_with(folder));
        // Python joins paths by an operator.
        tests.any(|(_, text)| text.contains(path) || text.replace("\" / \"", "/").contains(path))
    };
    let is_run = match language {
        "rust" => included.contains(path) && !sample.info.contains("ignore"),
        "c" | "cpp" => is_named("crates/capi/tests/"),
        "python" => is_named("python/tests/"),
        _ => true,
    };
    (!is_run).then(|| {
        format!(
            "no test compiles this {language}: include the page as documentation or name it in a \
             test, or mark the sample with `<!-- from FILE -->` or `<!-- not run: … -->`"
        )
    })
}

/// Returns a complaint if `file` lacks a line of the sample, or has the lines in another order.
fn misquoted(tree: &Tree, path: &str, file: &str, code: &[&str]) -> Option<String> {
    let Some(text) = resolve(path, file).and_then(|file| tree.text(&file)) else {
        return Some(format!("`{file}` is no file of the repository: mend the mark"));
    };
    let mut lines = text.lines().map(without_remark).filter(|line| !line.is_empty());
    for line in code.iter().map(|line| without_remark(line)).filter(|line| !line.is_empty()) {
        if !lines.any(|there| there == line) {
            return Some(format!("`{line}` is not in {file}, or not there: copy it again"));
        }
    }
    None
}

/// Returns the line without blanks and without the remark at its end.
fn without_remark(line: &str) -> &str {
    let code = line.find(" //").map_or(line, |at| &line[..at]);
    let code = code.trim();
    if code.starts_with("//") { "" } else { code }
}

/// Returns the pages that crates include as documentation, which rustdoc tests.
fn included(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".rs")) {
        for (at, start) in text.match_indices("#[doc = include_str!(\"") {
            let page = text[at + start.len()..].split('"').next().unwrap_or("");
            found.extend(resolve(path, page));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    fn found(page: &str) -> Vec<(usize, &'static str)> {
        let include = format!("#[doc = {}(\"../../docs/in.md\")]\nstruct S;\n", "include_str!");
        let tree = Tree::of(&[
            ("docs/a.md", page),
            ("docs/in.md", "```rust\nlet a = 1;\n```\n"),
            ("crates/x/lib.rs", &include),
            ("crates/x/main.rs", "fn main() {\n    one(); // first\n    two();\n}\n"),
            ("crates/capi/tests/t.rs", "const PAGE: &str = \"docs/a.md\";"),
        ]);
        brief(&check(&tree))
    }

    #[test]
    fn what_is_compiled_quoted_or_excused_passes() {
        let from =
            "<!-- from ../crates/x/main.rs -->\n```rust,ignore\none();   // 1st\ntwo();\n```\n";
        assert_eq!(found(from), []);
        assert_eq!(found("<!-- not run: it takes hours -->\n```rust\nx\n```\n"), []);
        assert_eq!(found("```c\nint a;\n```\n```text\nrust\n```\n```sh\nls\n```\n"), []);
    }

    #[test]
    fn what_no_test_sees_is_found() {
        assert_eq!(found("\n```rust\nx\n```\n"), [(2, RULE)]);
        assert_eq!(found("```python\nx\n```\n"), [(1, RULE)]);
        assert_eq!(found("<!-- not run: no -->\n```rust\nx\n```\n"), [(2, RULE)]);
        let from = "<!-- from ../crates/x/main.rs -->\n```rust\ntwo();\none();\n```\n";
        assert_eq!(found(from), [(2, RULE)]);
        assert_eq!(found("<!-- from ../gone.rs -->\n```rust\ntwo();\n```\n"), [(2, RULE)]);
    }
}
