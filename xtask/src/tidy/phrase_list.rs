//! The list of phrases that the project avoids, each with its replacement.

use super::paragraphs::Word;

/// A phrase in its variants.
#[derive(Debug)]
pub struct Entry {
    pub variants: Vec<Pattern>,
    pub instead: String,
}

/// One spelling of a phrase.
#[derive(Debug)]
pub struct Pattern {
    /// Text as written in the list.
    pub text: String,
    words: Vec<String>,
    /// Word that makes the phrase harmless when it follows.
    but_not: Option<String>,
    /// Set if the phrase counts only where a sentence of a doc comment starts.
    at_start: bool,
}

/// Files in which a phrase is a term of the field.
#[derive(Debug)]
pub struct Exemption {
    /// Line of the list.
    pub line: usize,
    pub path: String,
    pub phrase: String,
}

/// The parsed list.
#[derive(Debug, Default)]
pub struct PhraseList {
    pub entries: Vec<Entry>,
    pub exemptions: Vec<Exemption>,
    /// Lines that are neither an entry nor an exemption.
    pub unread: Vec<usize>,
}

impl PhraseList {
    pub fn parse(text: &str) -> Self {
        let mut list = PhraseList::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if let Some((variants, instead)) = line.split_once("=>") {
                let variants = variants.split('/').map(Pattern::parse).collect();
                list.entries.push(Entry { variants, instead: instead.trim().to_string() });
            } else if let Some((path, phrase)) = line.split_once(": ") {
                let (path, phrase) = (path.trim().to_string(), phrase.trim().to_string());
                list.exemptions.push(Exemption { line: at + 1, path, phrase });
            } else if !line.is_empty() {
                list.unread.push(at + 1);
            }
        }
        let is_sound =
            |entry: &Entry| entry.variants.iter().all(|variant| !variant.words.is_empty());
        list.entries.retain(is_sound);
        list
    }
}

impl Pattern {
    fn parse(text: &str) -> Self {
        let text = text.trim().to_lowercase();
        let plain = text.trim_start_matches('^');
        let but_not = plain.split_whitespace().find_map(|word| word.strip_prefix('!'));
        let words = plain.split_whitespace().filter(|word| !word.starts_with('!'));
        Pattern {
            words: words.map(str::to_string).collect(),
            but_not: but_not.map(str::to_string),
            at_start: text.starts_with('^'),
            text,
        }
    }

    /// Returns the number of words that the pattern covers at the start of `words`, if it
    /// matches.
    pub fn matches(&self, words: &[Word], is_doc: bool) -> Option<usize> {
        let count = self.words.len();
        let covered = words.get(..count)?;
        let fits = |(at, word): (usize, &Word)| {
            let pattern = &self.words[at];
            let is_same = match pattern.strip_suffix('*') {
                Some(stem) => word.text.starts_with(stem),
                None => word.text == *pattern,
            };
            is_same && (at == 0 || word.follows)
        };
        let is_harmless = words.get(count).is_some_and(|next| {
            next.follows && self.but_not.as_ref().is_some_and(|word| *word == next.text)
        });
        let starts = covered.first().is_some_and(|word| is_doc && word.starts_sentence);
        let is_there = covered.iter().enumerate().all(fits);
        (is_there && !is_harmless && (starts || !self.at_start)).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_exemptions_and_what_is_neither_are_told_apart() {
        let list = PhraseList::parse("# why\na b / C => d, e\n\nsrc/x.rs: a b\nnonsense\n => f\n");
        let variants: Vec<_> = list.entries[0].variants.iter().map(|v| v.text.as_str()).collect();
        assert_eq!((variants, list.entries[0].instead.as_str()), (vec!["a b", "c"], "d, e"));
        let exemption = &list.exemptions[0];
        assert_eq!((&*exemption.path, &*exemption.phrase, exemption.line), ("src/x.rs", "a b", 4));
        assert_eq!((list.entries.len(), list.unread), (1, vec![5]));
    }
}
