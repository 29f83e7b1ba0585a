//! Paragraphs of Markdown and of comments, and their words.
//!
//! A phrase may continue in the next line, but not in the next paragraph, item, cell or piece of
//! code.

use super::prose::Passage;

/// Replaces each character of inline code, which holds no words.
pub const CODE: char = '\u{1}';

/// A word of a paragraph.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// Text of the word in lower case.
    pub text: String,
    /// Line of the file.
    pub line: usize,
    /// Set if only blanks separate the word from the one before.
    pub follows: bool,
    pub starts_sentence: bool,
}

/// Returns the paragraphs, list items, headings and rows of a passage. A block of code is one
/// paragraph.
pub fn split(passage: &Passage) -> Vec<Passage> {
    let mut done = Vec::new();
    let mut open: Option<Passage> = None;
    let mut is_fenced = false;
    for (at, line) in passage.text.split('\n').enumerate() {
        let number = passage.line + at;
        let content = line.trim();
        if content.starts_with("```") || content.starts_with("~~~") {
            finish(open.take(), is_fenced, &mut done);
            is_fenced = !is_fenced;
            continue;
        }
        let item = item(content).filter(|_| !is_fenced);
        let is_row = content.starts_with(['#', '|']);
        if content.is_empty() || item.is_some() || (is_row && !is_fenced) {
            finish(open.take(), is_fenced, &mut done);
        }
        let text = item.unwrap_or(content);
        if !text.is_empty() {
            match &mut open {
                Some(paragraph) => {
                    paragraph.text.push('\n');
                    paragraph.text.push_str(text);
                }
                None => {
                    let is_doc = passage.is_doc && !is_fenced;
                    open = Some(Passage { is_doc, line: number, text: text.to_string() });
                }
            }
        }
        if is_row && !is_fenced {
            finish(open.take(), is_fenced, &mut done);
        }
    }
    finish(open, is_fenced, &mut done);
    done
}

/// Returns the text after the mark of a list item, if the line is one.
fn item(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    bullet.or_else(|| {
        let (number, text) = line.split_once(". ")?;
        (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit())).then_some(text)
    })
}

fn finish(open: Option<Passage>, is_code: bool, done: &mut Vec<Passage>) {
    if let Some(mut paragraph) = open {
        if !is_code {
            paragraph.text = without_code(&paragraph.text);
        }
        done.push(paragraph);
    }
}

/// Returns the text with a mark for each character of `code`. A last tick without partner opens
/// no code.
fn without_code(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    let mut plain = String::with_capacity(text.len());
    for (at, piece) in pieces.iter().enumerate() {
        let is_code = at % 2 == 1 && at + 1 < pieces.len();
        if at > 0 {
            plain.push(CODE);
        }
        plain.extend(piece.chars().map(|c| if is_code && c != '\n' { CODE } else { c }));
    }
    plain
}

/// Returns the words of a paragraph, in order.
pub fn words(paragraph: &Passage) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut line = paragraph.line;
    let mut gap = String::new();
    let mut text = String::new();
    for c in paragraph.text.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            text.extend(c.to_lowercase());
            continue;
        }
        if !text.is_empty() {
            let is_first = words.is_empty();
            words.push(Word {
                text: std::mem::take(&mut text),
                line,
                follows: !is_first && gap.chars().all(char::is_whitespace),
                starts_sentence: starts_sentence(&gap, is_first),
            });
            gap.clear();
        }
        gap.push(c);
        line += usize::from(c == '\n');
    }
    words
}

/// Returns `true` if a sentence starts after this gap.
fn starts_sentence(gap: &str, is_first: bool) -> bool {
    let ends = gap.contains(['.', '?', '!']) && gap.contains(char::is_whitespace);
    (is_first || ends) && !gap.contains(CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paragraphs(text: &str) -> Vec<(usize, String)> {
        let passage = Passage { is_doc: true, line: 1, text: text.to_string() };
        split(&passage).into_iter().map(|p| (p.line, p.text)).collect()
    }

    #[test]
    fn paragraphs_end_at_empty_lines_items_rows_headings_and_code() {
        let text = "# A\nb\n c\n\n- d\n  e\n2. f\n| g |\n| h |\n```\ni\nj\n```\nk";
        let expected = [
            (1, "# A"),
            (2, "b\nc"),
            (5, "d\ne"),
            (7, "f"),
            (8, "| g |"),
            (9, "| h |"),
            (11, "i\nj"),
            (14, "k"),
        ];
        assert_eq!(paragraphs(text), expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn words_know_their_line_and_what_is_before_them() {
        let passage = Passage { is_doc: false, line: 7, text: "One `two`\nthree. Four".into() };
        let words = words(&split(&passage)[0]);
        let brief: Vec<_> =
            words.iter().map(|w| (&*w.text, w.line, w.follows, w.starts_sentence)).collect();
        let expected =
            [("one", 7, false, true), ("three", 8, false, false), ("four", 8, false, true)];
        assert_eq!(brief, expected);
    }

    #[test]
    fn a_tick_without_partner_hides_nothing() {
        let passage = Passage { is_doc: false, line: 1, text: "a ` b".into() };
        assert_eq!(words(&split(&passage)[0]).len(), 2);
    }
}
