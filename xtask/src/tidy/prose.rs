//! Prose of a Rust file: its comments and string literals.
//!
//! It has its own lexer, since a file's tokens hold no plain comments. The lexer finds the ends
//! of comments and literals, and knows nothing else.

/// Text of one kind that stands together, such as the lines of one comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Set if the passage is part of the documentation.
    pub is_doc: bool,
    /// Line where the passage begins, from 1.
    pub line: usize,
    /// Text without the marks of a comment or literal; each of its lines is a line of the file.
    pub text: String,
}

/// Reads one file from its start.
struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    passages: Vec<Passage>,
    /// Mark of the line comment that the next line may continue, and its last line.
    open: Option<(&'static str, usize)>,
}

/// Returns the comments and string literals of a Rust file.
pub fn of_rust(text: &str) -> Vec<Passage> {
    let mut lexer = Lexer { text, at: 0, line: 1, passages: Vec::new(), open: None };
    while let Some(first) = lexer.rest().chars().next() {
        let rest = lexer.rest();
        if rest.starts_with("//") {
            lexer.line_comment();
        } else if rest.starts_with("/*") {
            lexer.block_comment();
        } else if first == '"' {
            lexer.literal();
        } else if first == '\'' {
            lexer.quote();
        } else if is_word(first) {
            lexer.word();
        } else {
            lexer.skip(first.len_utf8());
        }
    }
    lexer.passages
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves on by `bytes` and counts the lines passed.
    fn skip(&mut self, bytes: usize) {
        let end = self.text.len().min(self.at + bytes);
        self.line += self.text[self.at..end].matches('\n').count();
        self.at = end;
    }

    fn add(&mut self, is_doc: bool, text: String) {
        self.open = None;
        self.passages.push(Passage { is_doc, line: self.line, text });
    }

    fn line_comment(&mut self) {
        let comment = self.rest().lines().next().unwrap_or("");
        let is_doc = comment.starts_with("//!")
            || (comment.starts_with("///") && !comment.starts_with("////"));
        let mark = match is_doc {
            true if comment.starts_with("//!") => "//!",
            true => "///",
            false => "//",
        };
        let text = comment[mark.len()..].trim_start_matches('/');
        let line_start = self.text[..self.at].rfind('\n').map_or(0, |end| end + 1);
        let is_alone = self.text[line_start..self.at].trim().is_empty();
        let continues = is_alone && self.open == Some((mark, self.line - 1));
        match self.passages.last_mut().filter(|_| continues) {
            Some(passage) => {
                passage.text.push('\n');
                passage.text.push_str(text);
            }
            None => self.add(is_doc, text.to_string()),
        }
        self.open = Some((mark, self.line));
        self.skip(comment.len());
    }

    fn block_comment(&mut self) {
        let rest = self.rest();
        let mut depth = 0;
        let mut end = 0;
        while end < rest.len() {
            let step = match &rest.as_bytes()[end..] {
                [b'/', b'*', ..] => {
                    depth += 1;
                    2
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    2
                }
                _ => 1,
            };
            end += step;
            if depth == 0 {
                break;
            }
        }
        let comment = rest.get(..end).unwrap_or(rest);
        let is_doc = ["/**", "/*!"].iter().any(|mark| comment.starts_with(mark));
        let lines = comment.trim_end_matches("*/").lines();
        let lines: Vec<&str> =
            lines.map(|line| line.trim_start().trim_start_matches(['/', '*', '!'])).collect();
        self.add(is_doc, lines.join("\n"));
        self.skip(end);
    }

    /// Reads a literal whose escapes become blanks.
    fn literal(&mut self) {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        let mut end = self.rest().len();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => {
                    let is_line_end = characters.next().is_some_and(|(_, next)| next == '\n');
                    text.push_str(if is_line_end { " \n" } else { "  " });
                }
                other => text.push(other),
            }
        }
        self.add(false, text);
        self.skip(end);
    }

    /// Skips a character literal, or the quote of a lifetime.
    fn quote(&mut self) {
        let rest = self.rest();
        let mut characters = rest.char_indices().skip(1);
        let (first, second) = (characters.next(), characters.next());
        let end = match (first, second) {
            (Some((_, '\\')), Some((at, escaped))) => {
                let from = at + escaped.len_utf8();
                rest[from..].find('\'').map_or(1, |length| from + length + 1)
            }
            (Some(_), Some((at, '\''))) => at + 1,
            _ => 1,
        };
        self.skip(end);
    }

    /// Reads a word of code, which may be the prefix of a raw literal.
    fn word(&mut self) {
        let word: &str = self.rest().split(|c| !is_word(c)).next().unwrap_or("");
        self.skip(word.len());
        if !["r", "br", "cr"].contains(&word) {
            return;
        }
        let rest = self.rest();
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        if !rest[hashes..].starts_with('"') {
            return;
        }
        let close = format!("\"{}", &rest[..hashes]);
        let inside = &rest[hashes + 1..];
        let length = inside.find(&close).unwrap_or(inside.len());
        self.add(false, inside[..length].to_string());
        self.skip(hashes + 1 + length + close.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        of_rust(text).into_iter().map(|p| (p.line, p.text)).collect()
    }

    #[test]
    fn lines_of_one_comment_are_one_passage_and_other_marks_begin_another() {
        let text = "//! A\n//! b.\n\n/// C\n/// d.\nfn f() {} // e\n// f\n    // g\n//// h\n";
        let expected = [(true, 1, " A\n b."), (true, 4, " C\n d."), (false, 6, " e\n f\n g\n h")];
        let expected =
            expected.map(|(is_doc, line, text)| Passage { is_doc, line, text: text.to_string() });
        assert_eq!(of_rust(text), expected);
    }

    #[test]
    fn a_comment_at_the_end_of_a_line_of_code_continues_none() {
        assert_eq!(texts("a(); // one\nb(); // two\n"), [(1, " one".into()), (2, " two".into())]);
    }

    #[test]
    fn block_comments_end_where_they_do() {
        let text = "/* a /* b */\n * c */ x /** d */";
        assert_eq!(texts(text), [(1, " a /* b */\n c ".into()), (2, " d ".into())]);
        assert!(of_rust(text)[1].is_doc);
    }

    #[test]
    fn literals_are_found_with_blanks_for_escapes() {
        let text = "f(\"a\\nb\\\n  c\", r#\"d\"e\"#, b\"f\", r\"g\\\", c)";
        let expected = [(1, "a  b \n  c"), (2, "d\"e"), (2, "f"), (2, "g\\")];
        assert_eq!(texts(text), expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn characters_lifetimes_and_raw_names_open_no_literal() {
        let text = "fn f<'a>(r#type: &'a str) { g('\"', '\\'', b'\"', '\\u{22}', 'é') } // end";
        assert_eq!(texts(text), [(1, " end".into())]);
    }

    #[test]
    fn marks_inside_literals_open_no_comment() {
        assert_eq!(texts("f(\"// no\", r\"/* no\")"), [(1, "// no".into()), (1, "/* no".into())]);
    }
}
