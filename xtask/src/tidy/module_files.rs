//! A `mod.rs` holds no logic, only docs, attributes, `mod` and `use` lines.
//!
//! The profiler attributes time by module path, so logic in a `mod.rs` would be charged to a
//! whole folder.

use super::source::{Kind, Source};
use super::violation::Violation;

const RULE: &str = "mod-file";

/// Reports each item that does not belong in a `mod.rs`, at its first token.
pub fn check(source: &Source<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    // Helpers shared by integration tests are in `tests/common/mod.rs`, as cargo requires.
    if !source.path.ends_with("/mod.rs") || source.path.contains("/tests/") {
        return found;
    }
    let tokens = &source.tokens;
    let mut at = 0;
    while at < tokens.len() {
        if source.is(at, "#") {
            let open = if source.is(at + 1, "!") { at + 2 } else { at + 1 };
            at = tokens.get(open).map_or(tokens.len(), |t| t.mate + 1);
            continue;
        }
        let start = at;
        if source.is(at, "pub") {
            at += 1;
            if source.is(at, "(") {
                at = tokens[at].mate + 1;
            }
        }
        let is_plain = source.is(at, "use") || (source.is(at, "mod") && source.is(at + 2, ";"));
        let ends_with_brace = !source.is(at, "use");
        while at < tokens.len() && !source.is(at, ";") {
            if tokens[at].kind == Kind::Open {
                at = tokens[at].mate;
                if ends_with_brace && source.is(at, "}") {
                    break;
                }
            }
            at += 1;
        }
        at += 1;
        if !is_plain {
            let what = "a mod.rs holds only docs, `mod` and `use` lines: move this to a file of \
                        its own";
            found.push(Violation::new(source.path, tokens[start].line, RULE, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        brief(&check(&Source::parse(path, text).unwrap()))
    }

    #[test]
    fn mod_and_use_lines_pass() {
        let text = "//! Docs.\n#![allow(dead_code)]\n/// A.\npub mod a;\n#[cfg(test)]\nmod b;\n\
                    pub(crate) use a::{X, Y};\nuse b as c;\n";
        assert_eq!(found("src/mod.rs", text), []);
    }

    #[test]
    fn logic_is_found_once_per_item() {
        let text =
            "mod a;\nfn f() { g(); h(); }\nconst C: [u8; 2] = [1, 2];\nmod b {}\nimpl X {}\n";
        assert_eq!(found("src/mod.rs", text), [(2, RULE), (3, RULE), (4, RULE), (5, RULE)]);
        assert_eq!(found("src/other.rs", text), []);
        assert_eq!(found("crates/a/tests/common/mod.rs", text), []);
    }
}
