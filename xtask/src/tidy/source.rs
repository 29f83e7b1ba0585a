//! A Rust file as a flat list of tokens.
//!
//! The checks search for sequences of tokens (`. unwrap (`, `crate :: pool`) and need their
//! lines. A flat list gives both, even inside macros such as `proptest!`, whose bodies a syntax
//! tree leaves unparsed.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ident,
    Punct,
    Literal,
    Open,
    Close,
}

/// One token and its place.
#[derive(Debug)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: usize,
    /// Last line of the token; differs from `line` only for a literal that spans lines.
    pub line_end: usize,
    /// For a delimiter the index of its partner, for all others their own index.
    pub mate: usize,
}

/// A parsed file.
pub struct Source<'a> {
    pub path: &'a str,
    pub lines: Vec<&'a str>,
    pub tokens: Vec<Token>,
    /// Lines of items that exist only in tests.
    test_lines: Vec<RangeInclusive<usize>>,
    /// Set for a file whose `mod` line is marked `#[cfg(test)]`, and for integration tests.
    pub all_test: bool,
}

impl<'a> Source<'a> {
    /// Splits `text` into tokens; the error is the lexer's message.
    pub fn parse(path: &'a str, text: &'a str) -> Result<Self, String> {
        let stream: TokenStream = text.parse().map_err(|e| format!("{e}"))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let test_lines = test_items(&tokens).map(|(_, lines)| lines).collect();
        let all_test = ["/tests/", "/benches/", "/fuzz_targets/"].iter().any(|d| path.contains(d));
        Ok(Source { path, lines: text.lines().collect(), tokens, test_lines, all_test })
    }

    /// Returns `true` if the token at `index` is the identifier or punctuation `text`.
    pub fn is(&self, index: usize, text: &str) -> bool {
        self.tokens.get(index).is_some_and(|t| t.kind != Kind::Literal && t.text == text)
    }

    /// Returns `true` if the tokens at `index` are `::`.
    pub fn is_path_separator(&self, index: usize) -> bool {
        self.is(index, ":") && self.is(index + 1, ":")
    }

    /// Returns `true` if the line belongs to code that only tests compile.
    pub fn is_test(&self, line: usize) -> bool {
        self.all_test || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Returns the names of modules that this file declares for tests only
    /// (`#[cfg(test)] mod x;`).
    pub fn test_modules(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (start, _) in test_items(&self.tokens) {
            let mut at = start;
            if self.is(at, "pub") {
                at += 1;
                if self.is(at, "(") {
                    at = self.tokens[at].mate + 1;
                }
            }
            if self.is(at, "mod") && self.is(at + 2, ";") {
                names.push(self.tokens[at + 1].text.clone());
            }
        }
        names
    }

    /// Returns the line with this number, counted from 1.
    pub fn line(&self, number: usize) -> &'a str {
        self.lines.get(number.wrapping_sub(1)).copied().unwrap_or("")
    }

    /// Returns `true` if a comment line at or just above `line` starts with `mark`.
    ///
    /// A method chain counts as one line: its later lines start with a dot.
    pub fn is_vouched(&self, line: usize, mark: &str) -> bool {
        let comment = format!("// {mark}");
        if self.line(line).contains(&comment) {
            return true;
        }
        let mut at = line;
        while self.line(at).trim_start().starts_with('.') && at > 1 {
            at -= 1;
        }
        while at > 1 {
            at -= 1;
            let above = self.line(at).trim_start();
            if above.starts_with(&comment) || above.contains(&format!(" {comment}")) {
                return true;
            }
            if !(above.starts_with("//") || above.starts_with("#[")) {
                return false;
            }
        }
        false
    }
}

/// Returns the directory of the modules that the file at `path` declares.
pub fn module_directory(path: &str) -> String {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => directory.to_string(),
        _ => path.trim_end_matches(".rs").to_string(),
    }
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        let (line, line_end) = (tree.span().start().line, tree.span().end().line);
        let mate = into.len();
        match tree {
            TokenTree::Ident(ident) => {
                into.push(Token {
                    kind: Kind::Ident,
                    text: ident.to_string(),
                    line,
                    line_end,
                    mate,
                });
            }
            TokenTree::Punct(punct) => {
                let text = punct.as_char().to_string();
                into.push(Token { kind: Kind::Punct, text, line, line_end, mate });
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                into.push(Token { kind: Kind::Literal, text, line, line_end, mate });
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let text = open.to_string();
                into.push(Token { kind: Kind::Open, text, line, line_end: line, mate });
                flatten(group.stream(), into);
                let end = into.len();
                let line = group.span_close().start().line;
                let text = close.to_string();
                into.push(Token { kind: Kind::Close, text, line, line_end: line, mate });
                into[mate].mate = end;
            }
        }
    }
}

/// Returns the items marked `#[test]` or `#[cfg(… test …)]`: the index of the first token after
/// the attributes, and the item's lines.
fn test_items(tokens: &[Token]) -> impl Iterator<Item = (usize, RangeInclusive<usize>)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t: &Token| t.text == text);
    (0..tokens.len()).filter_map(move |at| {
        if !(is(at, "#") && is(at + 1, "[") && marks_a_test(&tokens[at + 2..tokens[at + 1].mate])) {
            return None;
        }
        let mut item = tokens[at + 1].mate + 1;
        while is(item, "#") && is(item + 1, "[") {
            item = tokens[item + 1].mate + 1;
        }
        let mut end = item;
        while end + 1 < tokens.len() && !is(end, ";") && tokens[end].kind != Kind::Close {
            let token = &tokens[end];
            if token.kind == Kind::Open {
                end = token.mate;
                if token.text == "{" {
                    break;
                }
            }
            end += 1;
        }
        let last = tokens.get(end).or(tokens.last())?.line;
        Some((item, tokens[at].line..=last))
    })
}

/// Returns `true` if the inside of an attribute is `test`, or a `cfg` that needs `test`.
fn marks_a_test(attribute: &[Token]) -> bool {
    let Some(first) = attribute.first() else { return false };
    let is_test = |t: &Token| t.kind == Kind::Ident && t.text == "test";
    if is_test(first) {
        return attribute.len() == 1;
    }
    first.text == "cfg"
        && attribute.iter().enumerate().any(|(at, token)| {
            let is_negated = at >= 2 && attribute[at - 2].text == "not";
            is_test(token) && !is_negated
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! Docs.\nfn a() {\n    b();\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() \
                        {}\n}\n#[cfg(not(test))]\nfn d() {}\n#[cfg(all(test, loom))]\nmod e;\n";

    #[test]
    fn test_code_is_told_from_code() {
        let source = Source::parse("crates/x/src/lib.rs", TEXT).unwrap();
        assert!(!source.is_test(2) && !source.is_test(11));
        assert!(source.is_test(7) && source.is_test(8) && source.is_test(13));
        assert_eq!(source.test_modules(), ["e"]);
    }

    #[test]
    fn delimiters_know_their_partner() {
        let source = Source::parse("a.rs", "fn f() { (1) }").unwrap();
        let open = source.tokens.iter().position(|t| t.text == "{").unwrap();
        assert_eq!(source.tokens[source.tokens[open].mate].text, "}");
    }

    #[test]
    fn modules_lie_beside_mod_rs_and_below_other_files() {
        assert_eq!(module_directory("crates/x/src/lib.rs"), "crates/x/src");
        assert_eq!(module_directory("crates/x/src/pool/mod.rs"), "crates/x/src/pool");
        assert_eq!(module_directory("crates/x/src/pool.rs"), "crates/x/src/pool");
    }
}
