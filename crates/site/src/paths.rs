//! Paths below a root, as text with slashes.

/// `target` as it is meant in the file `from`; `None` if it leaves the root.
pub fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').collect(),
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

/// How the file `from` names the file `to`, both below one root.
pub fn relative(from: &str, to: &str) -> String {
    let from: Vec<&str> = from.split('/').collect();
    let to: Vec<&str> = to.split('/').collect();
    let folders = from.len() - 1;
    let common = from[..folders].iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b);
    let common = common.count();
    let up = std::iter::repeat_n("..", folders - common);
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_and_made_relative() {
        assert_eq!(resolve("docs/a.md", "../x/./y.rs").as_deref(), Some("x/y.rs"));
        assert_eq!(resolve("docs/a.md", "b.md").as_deref(), Some("docs/b.md"));
        assert_eq!(resolve("a.md", "../b.md"), None);
        assert_eq!(resolve("docs/r/a.md", "..").as_deref(), Some("docs"));
        for (from, to) in [("docs/a.html", "docs/b/c.html"), ("a/b/c", "d"), ("a", "b/c")] {
            assert_eq!(resolve(from, &relative(from, to)).as_deref(), Some(to));
        }
        assert_eq!(relative("docs/r/a.html", "docs/b.html"), "../b.html");
    }
}
