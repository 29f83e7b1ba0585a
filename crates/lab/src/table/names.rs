//! Short, unambiguous names of files.

/// Returns the last part of each path. If different paths end alike, the names have as many parts
/// as distinguish the paths.
pub fn short_names(paths: &[String]) -> Vec<String> {
    let tail = |path: &str, parts: usize| -> String {
        let all: Vec<&str> = path.split(['/', '\\']).collect();
        all[all.len().saturating_sub(parts)..].join("/")
    };
    let parts_of = |path: &String| path.split(['/', '\\']).count();
    let name = |path: &String| {
        let alone = |parts: &usize| {
            let own = tail(path, *parts);
            !paths.iter().any(|other| other != path && tail(other, *parts) == own)
        };
        let parts = (1..=parts_of(path)).find(alone);
        parts.map_or_else(|| path.clone(), |parts| tail(path, parts))
    };
    paths.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_as_many_parts_as_tell_them_apart() {
        let names = |paths: &[&str]| {
            short_names(&paths.iter().map(|path| (*path).to_string()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["/a/x.txt", "/a/y.txt", "/a/x.txt"]), ["x.txt", "y.txt", "x.txt"]);
        assert_eq!(names(&["/a/x.txt", "/b/x.txt", "z"]), ["a/x.txt", "b/x.txt", "z"]);
        assert_eq!(names(&["x.txt", "b/x.txt"]), ["x.txt", "b/x.txt"]);
        assert_eq!(names(&["-"]), ["-"]);
    }
}
