//! Links in Markdown that point into the repository must resolve.

use super::violation::Violation;
use crate::tree::Tree;

const RULE: &str = "dead-link";

/// Reports links of Markdown files whose target is no file or directory of the tree.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        let mut is_fenced = false;
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_fenced = !is_fenced;
                continue;
            }
            if is_fenced {
                continue;
            }
            for target in targets(&without_code(line)) {
                let is_dead = resolve(path, &target).is_none_or(|file| !tree.holds(&file));
                if is_dead {
                    let what = format!("`{target}` is not in the repository: mend the link");
                    found.push(Violation::new(path, at + 1, RULE, what));
                }
            }
        }
    }
    found
}

/// Returns the line without its `code`, which may look like a link.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the targets of `[text](target)` and `[label]: target` that are paths.
fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |target: &str| {
        let target = target.split_whitespace().next().unwrap_or("");
        let target = target.trim_matches(['<', '>']);
        let path = target.split('#').next().unwrap_or("");
        if !path.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
            found.push(path.to_string());
        }
    };
    for (at, mark) in line.match_indices("](") {
        let rest = &line[at + mark.len()..];
        add(rest.split(')').next().unwrap_or(""));
    }
    if let Some((label, target)) = line.split_once("]: ")
        && label.starts_with('[')
    {
        add(target);
    }
    found
}

/// Returns the target as a path from the root; `None` if it leaves the repository.
pub(super) fn resolve(file: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => file.split('/').collect(),
    };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        brief(&check(&Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("x/y.rs", "")])))
    }

    #[test]
    fn live_links_pass() {
        let text = "[b](b.md#part), ![y](../x/y.rs \"t\"), [dir](../x/), [w](https://e.org/z)\n\
                    [self](#here)\n[r]: b.md\n`[code](gone.md)`\n```\n[fenced](gone.md)\n```\n";
        assert_eq!(found(text), []);
    }

    #[test]
    fn dead_links_are_found() {
        assert_eq!(found("\n[c](c.md) and [d](../../d.md)\n"), [(2, RULE), (2, RULE)]);
        assert_eq!(found("[r]: gone.md\n"), [(1, RULE)]);
    }
}
