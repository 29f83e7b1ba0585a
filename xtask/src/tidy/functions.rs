//! The ratchet: functions of 70 lines at most; the few longer ones are listed and only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Kind, Source};
use super::violation::Violation;

const RULE: &str = "long-function";
const LINES_MAX: usize = 70;

/// Where the exceptions stand: `path function lines`, one per line.
pub const LIST: &str = "xtask/long_functions.txt";

/// Name of a function with its file; several of the same name share an entry's key.
type Key = (String, String);

/// Functions that are too long and not listed, or listed wrongly.
pub fn check(sources: &[Source<'_>], list: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut listed = read_list(list, &mut found);
    let mut long: BTreeMap<Key, Vec<(usize, usize)>> = BTreeMap::new();
    for source in sources {
        for (name, line, length) in functions(source) {
            if length > LINES_MAX {
                let key = (source.path.to_string(), name);
                long.entry(key).or_default().push((length, line));
            }
        }
    }
    let keys: BTreeSet<Key> = long.keys().chain(listed.keys()).cloned().collect();
    for key in keys {
        let mut actual = long.remove(&key).unwrap_or_default();
        let mut entries = listed.remove(&key).unwrap_or_default();
        actual.sort_unstable();
        entries.sort_unstable();
        compare(&key, &actual, &entries, &mut found);
    }
    found
}

/// Compares lengths found with lengths listed, longest with longest.
fn compare(
    (file, name): &Key,
    actual: &[(usize, usize)],
    entries: &[(usize, usize)],
    found: &mut Vec<Violation>,
) {
    let mut entries = entries.iter().rev();
    for &(length, line) in actual.iter().rev() {
        match entries.next() {
            None => {
                let what =
                    format!("`{name}` has {length} lines, {LINES_MAX} are the most: split it");
                found.push(Violation::new(file, line, RULE, what));
            }
            Some(&(allowed, _)) if length > allowed => {
                let what = format!(
                    "`{name}` grew from {allowed} to {length} lines, but entries of {LIST} only \
                     shrink: split it"
                );
                found.push(Violation::new(file, line, RULE, what));
            }
            Some(&(allowed, at)) if length < allowed => {
                let what = format!("`{name}` of {file} shrank from {allowed}: write {length}");
                found.push(Violation::new(LIST, at, RULE, what));
            }
            Some(_) => {}
        }
    }
    for &(_, at) in entries {
        let what = format!("`{name}` of {file} is gone or short enough: remove the entry");
        found.push(Violation::new(LIST, at, RULE, what));
    }
}

fn read_list(text: &str, found: &mut Vec<Violation>) -> BTreeMap<Key, Vec<(usize, usize)>> {
    let mut listed: BTreeMap<Key, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [file, name, lines] if lines.parse::<usize>().is_ok_and(|n| n > LINES_MAX) => {
                let length = lines.parse().unwrap_or(0);
                let key = (file.to_string(), name.to_string());
                listed.entry(key).or_default().push((length, at + 1));
            }
            _ => {
                let what = format!("write `path function lines` with more than {LINES_MAX} lines");
                found.push(Violation::new(LIST, at + 1, RULE, what));
            }
        }
    }
    listed
}

/// Name, first line and number of lines of each function with a body, also inside macros.
fn functions(source: &Source<'_>) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        let name = source.tokens.get(at + 1);
        let Some(name) = name.filter(|n| n.kind == Kind::Ident && source.is(at, "fn")) else {
            continue;
        };
        let mut next = at + 2;
        while next < source.tokens.len() && !source.is(next, ";") {
            let open = &source.tokens[next];
            if open.kind == Kind::Close {
                break;
            }
            if open.kind == Kind::Open {
                if open.text == "{" {
                    let end = source.tokens[open.mate].line;
                    found.push((name.text.clone(), token.line, end + 1 - token.line));
                    break;
                }
                next = open.mate;
            }
            next += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    /// A function of `lines` lines, after one line of something else.
    fn file(lines: usize) -> String {
        format!("struct A;\npub fn long(x: [u8; 3]) {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    fn found(lines: usize, list: &str) -> Vec<(usize, &'static str)> {
        let text = file(lines);
        let source = Source::parse("src/a.rs", &text).unwrap();
        brief(&check(&[source], list))
    }

    #[test]
    fn seventy_lines_pass_and_seventy_one_do_not() {
        assert_eq!(found(70, ""), []);
        assert_eq!(found(71, ""), [(2, RULE)]);
    }

    #[test]
    fn a_listed_function_passes_at_its_length_only() {
        assert_eq!(found(80, "# why\nsrc/a.rs long 80\n"), []);
        assert_eq!(found(81, "src/a.rs long 80\n"), [(2, RULE)]);
    }

    #[test]
    fn an_entry_that_could_shrink_or_go_is_found_in_the_list() {
        let text = file(75);
        let sources = [Source::parse("src/a.rs", &text).unwrap()];
        let shrunk = check(&sources, "src/a.rs long 80\n");
        assert_eq!((shrunk.len(), shrunk[0].file.as_str()), (1, LIST));
        assert_eq!(found(60, "\nsrc/a.rs long 80\n"), [(2, RULE)]);
        assert_eq!(found(60, "src/b.rs gone 80\n"), [(1, RULE)]);
    }

    #[test]
    fn functions_inside_macros_and_impls_count() {
        let text = format!("proptest! {{\nimpl A {{\n{}}}\n}}\n", file(71));
        let source = Source::parse("src/a.rs", &text).unwrap();
        assert_eq!(brief(&check(&[source], "")), [(4, RULE)]);
    }
}
