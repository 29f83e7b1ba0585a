//! Rules of library code: it never stops the program, ignores a test, or is unsafe without a proof.

use super::components::Components;
use super::source::{Kind, Source};
use super::violation::Violation;

/// Reports ignored tests, placeholders, panics in library code, and unproven or misplaced `unsafe`.
pub fn check(source: &Source<'_>, components: &Components) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_library = source.path.starts_with("crates/") && source.path.contains("/src/");
    for (at, token) in source.tokens.iter().enumerate() {
        if token.kind != Kind::Ident {
            continue;
        }
        let line = token.line;
        let mut add =
            |rule, what: String| found.push(Violation::new(source.path, line, rule, what));
        match token.text.as_str() {
            "ignore" if at >= 2 && source.is(at - 1, "[") && source.is(at - 2, "#") => {
                add(
                    "ignored-test",
                    "a test that never runs proves nothing: mend or remove it".into(),
                );
            }
            name @ ("todo" | "unimplemented") if source.is(at + 1, "!") => {
                add("placeholder", format!("`{name}!` in the tree: write it, or leave it out"));
            }
            name @ ("unwrap" | "expect")
                if is_library
                    && at >= 1
                    && source.is(at - 1, ".")
                    && source.is(at + 1, "(")
                    && !source.is_test(line)
                    && !source.is_vouched(line, "Cannot fail:") =>
            {
                add(
                    "panic",
                    format!(
                        "`.{name}(` in library code: return an error, or prove it in a comment \
                         `// Cannot fail: …` above"
                    ),
                );
            }
            "error" if says_its_source(source, at) => add(
                "source-said-twice",
                "the message repeats the source, so that a printed error chain has it twice: \
                 `millpond_base::from_variants!` instead of `#[from]`, a field `error` instead of \
                 `source`"
                    .to_string(),
            ),
            // `#[unsafe(no_mangle)]` gives a function a name for the linker.
            "unsafe" if at >= 1 && source.is(at - 1, "[") => {}
            "unsafe" => check_unsafe(source, at, components, &mut found),
            _ => {}
        }
    }
    found
}

/// Returns `true` if the token at `at` begins `#[error("… {0} …")] Variant(#[from] Other)`, or a
/// message with the field `source`. A source whose type is a type parameter is exempt, since only
/// the chain reaches it.
fn says_its_source(source: &Source<'_>, at: usize) -> bool {
    let is_attribute = at >= 2 && source.is(at - 1, "[") && source.is(at - 2, "#");
    let Some(message) = source.tokens.get(at + 2).filter(|_| is_attribute) else { return false };
    if message.text.contains("{source") {
        return true;
    }
    if !message.text.contains("{0") {
        return false;
    }
    let Some(end) = (at..source.tokens.len()).find(|i| source.is(*i, "]")) else { return false };
    // ] Variant ( # [ from ] Type
    let is_source =
        source.is(end + 4, "[") && ["from", "source"].iter().any(|n| source.is(end + 5, n));
    let is_parameter = source.tokens.get(end + 7).is_some_and(|token| token.text.len() == 1);
    is_source && !is_parameter
}

fn check_unsafe(source: &Source<'_>, at: usize, map: &Components, found: &mut Vec<Violation>) {
    let line = source.tokens[at].line;
    if !map.unsafe_files.iter().any(|file| file == source.path) {
        let what = "`unsafe` outside `unsafe_files` of components.toml: do without, or argue for it \
                    there";
        found.push(Violation::new(source.path, line, "unsafe-file", what));
    }
    // Foreign functions, ours and others', have the contract of their crate.
    let is_foreign = source.is(at + 1, "extern");
    if !is_foreign && !source.is_vouched(line, "SAFETY:") && !has_safety_section(source, line) {
        let what = "`unsafe` without a `// SAFETY:` comment above: prove it from named invariants";
        found.push(Violation::new(source.path, line, "unsafe-proof", what));
    }
}

/// Returns `true` if the item's docs have a safety section, where an `unsafe fn` or trait states
/// its contract.
fn has_safety_section(source: &Source<'_>, line: usize) -> bool {
    (1..line)
        .rev()
        .map(|at| source.line(at).trim_start())
        .take_while(|above| above.starts_with("//") || above.starts_with("#["))
        .any(|above| above.starts_with("/// # Safety"))
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    fn found_in(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let map =
            Components::parse("unsafe_files = [\"crates/a/src/raw.rs\"]\n[crates]\n").unwrap();
        brief(&check(&Source::parse(path, text).unwrap(), &map))
    }

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        found_in("crates/a/src/lib.rs", text)
    }

    #[test]
    fn ignored_tests_and_placeholders_are_found_everywhere() {
        let ignore = concat!("#[", "ignore]\nfn a() {}\n");
        assert_eq!(found_in("crates/a/tests/t.rs", ignore), [(1, "ignored-test")]);
        let later = concat!("fn a() {\n    to", "do!()\n}\nfn b() { unimple", "mented!() }\n");
        assert_eq!(found(later), [(2, "placeholder"), (4, "placeholder")]);
    }

    #[test]
    fn a_panic_in_library_code_is_found() {
        assert_eq!(found("fn a() {\n    b().unwrap();\n}\n"), [(2, "panic")]);
        assert_eq!(found("fn a() {\n    m!(b().expect(\"x\"));\n}\n"), [(2, "panic")]);
        assert_eq!(found("/// b().unwrap()\nfn a() { b().unwrap_or(1); }\n"), []);
    }

    #[test]
    fn a_panic_is_allowed_in_tests_and_with_a_proof() {
        assert_eq!(found("#[cfg(test)]\nmod tests {\n    fn a() { b().unwrap(); }\n}\n"), []);
        assert_eq!(found_in("crates/a/tests/t.rs", "fn a() { b().unwrap(); }\n"), []);
        let proven = "fn a() {\n    // Cannot fail: b is full,\n    // see 2.\n    b()\n        \
                      .unwrap();\n}\n";
        assert_eq!(found(proven), []);
    }

    #[test]
    fn unsafe_needs_a_proof_and_a_licence() {
        let bare = "fn a() {\n    unsafe { b() }\n}\n";
        let proven = "fn a() {\n    // SAFETY: 1.\n    unsafe { b() }\n}\n";
        assert_eq!(found_in("crates/a/src/raw.rs", bare), [(2, "unsafe-proof")]);
        assert_eq!(found_in("crates/a/src/raw.rs", proven), []);
        assert_eq!(found(proven), [(3, "unsafe-file")]);
        let documented = "/// A.\n///\n/// # Safety\n/// 1.\npub unsafe fn a() {}\n";
        assert_eq!(found_in("crates/a/src/raw.rs", documented), []);
        let foreign = "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn a() {}\n";
        assert_eq!(found_in("crates/a/src/raw.rs", foreign), []);
        assert_eq!(found(foreign), [(2, "unsafe-file")]);
        assert_eq!(found("#[unsafe(no_mangle)]\npub extern \"C\" fn a() {}\n"), []);
    }

    #[test]
    fn an_error_that_says_what_its_source_says_is_found() {
        let of = |message: &str, what: &str| {
            format!("enum E {{\n    #[error(\"{message}\")]\n    A({what}),\n}}\n")
        };
        assert_eq!(found(&of("no: {0}", "#[from] Other")), [(2, "source-said-twice")]);
        assert_eq!(found(&of("no: {0:?}", "#[source] Other")), [(2, "source-said-twice")]);
        assert_eq!(found(&of("no", "#[from] B")), []);
        assert_eq!(found(&of("no: {0}", "B")), []);
        assert_eq!(found(&of("no: {0}", "#[from] T")), [], "a type parameter");
        let named = "enum E {\n    #[error(\"no: {source}\")]\n    A { source: B },\n}\n";
        assert_eq!(found(named), [(2, "source-said-twice")]);
    }
}
