//! Parameters of functions that are tuple patterns: `fn f((a, b): (A, B))`. Two values that are
//! always passed together are a type without a name.

use syn::visit::{self, Visit};
use syn::{FnArg, Pat, Signature};

use super::parsed::{Parsed, Site};

struct Finder<'a, 'b> {
    file: &'b Parsed<'a>,
    found: Vec<Site>,
}

/// Returns each such parameter outside tests. Closures are exempt, since iterators give them
/// tuples.
pub fn tuple_parameters(file: &Parsed<'_>) -> Vec<Site> {
    let mut finder = Finder { file, found: Vec::new() };
    finder.visit_file(&file.syntax);
    finder.found
}

impl<'ast> Visit<'ast> for Finder<'_, '_> {
    fn visit_signature(&mut self, signature: &'ast Signature) {
        for argument in &signature.inputs {
            if let FnArg::Typed(typed) = argument
                && is_tuple(&typed.pat)
                && !self.file.is_test(argument)
            {
                let what = format!("`{}` takes a tuple pattern", signature.ident);
                self.found.push(self.file.site(argument, what));
            }
        }
        visit::visit_signature(self, signature);
    }
}

fn is_tuple(pattern: &Pat) -> bool {
    match pattern {
        // The unit holds nothing that a name could help with.
        Pat::Tuple(tuple) => !tuple.elems.is_empty(),
        Pat::Reference(reference) => is_tuple(&reference.pat),
        Pat::Paren(paren) => is_tuple(&paren.pat),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::*;

    #[test]
    fn tuples_of_functions_and_methods_are_found_and_closures_and_tests_are_free() {
        let text = "fn f((a, b): (u8, u8), c: u8) {}\nimpl A {\n    fn g(&self, &(a, b): &(u8, u8)) \
                    {\n        x.map(|(a, b)| a);\n    }\n    fn h(&self, (a): u8, (): ()) {}\n}\n\
                    #[cfg(test)]\nmod tests { fn t((a, b): (u8, u8)) {} }\n";
        let source = Source::parse("crates/a/src/x.rs", text).unwrap();
        let file = Parsed { krate: "a", source: &source, syntax: syn::parse_file(text).unwrap() };
        let lines: Vec<usize> = tuple_parameters(&file).iter().map(|site| site.line).collect();
        assert_eq!(lines, [1, 3]);
    }
}
