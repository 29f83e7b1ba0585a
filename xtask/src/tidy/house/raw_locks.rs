//! Locks of the standard library whose poisoning the caller handles:
//! `x.lock().unwrap_or_else(PoisonError::into_inner)`. One wrapper could do that once.

use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall};

use super::parsed::{Parsed, Site};

struct Finder<'a, 'b> {
    file: &'b Parsed<'a>,
    found: Vec<Site>,
}

/// Returns each such call outside tests.
pub fn raw_locks(file: &Parsed<'_>) -> Vec<Site> {
    let mut finder = Finder { file, found: Vec::new() };
    finder.visit_file(&file.syntax);
    finder.found
}

impl<'ast> Visit<'ast> for Finder<'_, '_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let ignores_poison = call.args.first().is_some_and(takes_what_is_poisoned);
        if call.method == "unwrap_or_else" && ignores_poison && !self.file.is_test(&call.method) {
            let what = match &*call.receiver {
                Expr::MethodCall(inner) => inner.method.to_string(),
                _ => "a result".to_string(),
            };
            self.found.push(self.file.site(&call.method, format!("`{what}` ignores poison")));
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Returns `true` for `PoisonError::into_inner`, and for a closure that calls `into_inner`.
fn takes_what_is_poisoned(argument: &Expr) -> bool {
    match argument {
        Expr::Path(path) => path.path.segments.last().is_some_and(|s| s.ident == "into_inner"),
        Expr::Closure(closure) => match &*closure.body {
            Expr::MethodCall(call) => call.method == "into_inner",
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::*;

    #[test]
    fn both_ways_to_write_it_are_found() {
        let text = "fn f() {\n    a.lock().unwrap_or_else(PoisonError::into_inner);\n    b\n        \
                    .read()\n        .unwrap_or_else(|e| e.into_inner());\n    \
                    c.unwrap_or_else(d);\n}\n#[test]\nfn t() { \
                    a.lock().unwrap_or_else(PoisonError::into_inner); }\n";
        let source = Source::parse("crates/a/src/x.rs", text).unwrap();
        let file = Parsed { krate: "a", source: &source, syntax: syn::parse_file(text).unwrap() };
        let lines: Vec<usize> = raw_locks(&file).iter().map(|site| site.line).collect();
        assert_eq!(lines, [2, 5]);
    }
}
