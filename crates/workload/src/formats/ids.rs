//! Page ids from tokens: numbers as they are, everything else numbered by first appearance.

use hashbrown::HashMap;

use super::number::{shown, whole};
use super::parameters::{COLUMNS, MAP_IDS};

/// Turns id tokens into page numbers.
///
/// The first id of a trace decides: if it is a number, all must be, and a later one that is not is
/// damage, not a name. If it is none (or the caller requests it), *all* ids go through a dictionary
/// and are numbered from 0 by first appearance, so that names and numbers in one file never meet on
/// one page. A first id that is none before a second one that is a number may be a header, and is
/// refused: it would be one reference too many. A missing id is an error. The dictionary is as
/// large as the trace's distinct ids.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    mode: Mode,
    /// The first id, while it is the only one and is no number.
    first: Option<Box<[u8]>>,
    negatives: u64,
}

#[derive(Debug, Default)]
enum Mode {
    #[default]
    Undecided,
    Numbers,
    Names(HashMap<Box<[u8]>, u64>),
}

impl Ids {
    /// A reader of ids; `map` numbers all of them, whatever the first looks like.
    pub(crate) fn new(map: bool) -> Ids {
        let mode = if map { Mode::Names(HashMap::new()) } else { Mode::Undecided };
        Ids { mode, first: None, negatives: 0 }
    }

    /// Returns `true` if ids are plain numbers, so that a caller may read them without this type.
    #[inline]
    pub(crate) fn are_numbers(&self) -> bool {
        matches!(self.mode, Mode::Numbers)
    }

    /// The page of `token`.
    pub(crate) fn page(&mut self, token: &[u8]) -> Result<u64, String> {
        if token.is_empty() {
            return Err("the page id is missing".into());
        }
        if let Some(first) = self.first.take()
            && whole(token).is_some()
        {
            return Err(format!(
                "page id {} is a number, and {} before it is none: if that is a header, name the \
                 column by it ({}); if it is an id, {MAP_IDS} numbers all of them",
                shown(token),
                shown(&first),
                COLUMNS.set_to(format_args!("page={}", shown(&first).trim_matches('\'')))
            ));
        }
        match &mut self.mode {
            Mode::Numbers => match whole(token) {
                Some(n) => Ok(n),
                None => self.negative(token).ok_or_else(|| {
                    let what = shown(token);
                    format!("page id {what} is no 64-bit number, but ids before it are")
                }),
            },
            Mode::Names(names) => Ok(number_of(names, token)),
            Mode::Undecided => {
                let number = whole(token).or_else(|| self.negative(token));
                if let Some(n) = number {
                    self.mode = Mode::Numbers;
                    return Ok(n);
                }
                let mut names = HashMap::new();
                let page = number_of(&mut names, token);
                self.mode = Mode::Names(names);
                self.first = Some(token.into());
                Ok(page)
            }
        }
    }

    /// The page of an id that is a number already.
    pub(crate) fn number(&mut self, id: u64) -> Result<u64, String> {
        match self.mode {
            Mode::Names(_) => self.page(id.to_string().as_bytes()),
            _ => Ok(id),
        }
    }

    /// `-n` as a 64-bit two's complement: distinct from every id below 2⁶³.
    fn negative(&mut self, token: &[u8]) -> Option<u64> {
        let n = whole(token.strip_prefix(b"-")?).filter(|n| *n <= 1 << 63)?;
        self.negatives += 1;
        Some(n.wrapping_neg())
    }

    /// Appends remarks for the user about the ids read so far.
    pub(crate) fn notes(&self, notes: &mut Vec<String>) {
        if let Mode::Names(names) = &self.mode {
            let n = names.len();
            notes.push(format!("{n} distinct non-numeric ids were numbered by first appearance"));
        }
        if self.negatives > 0 {
            let n = self.negatives;
            notes.push(format!("{n} negative ids were taken as 64-bit two's complement"));
        }
    }
}

fn number_of(names: &mut HashMap<Box<[u8]>, u64>, token: &[u8]) -> u64 {
    if let Some(page) = names.get(token) {
        return *page;
    }
    let page = names.len() as u64;
    names.insert(token.into(), page);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_decides_between_numbers_and_names() {
        let mut ids = Ids::new(false);
        assert_eq!(ids.page(b"17"), Ok(17));
        assert_eq!(ids.page(b"-1"), Ok(u64::MAX));
        assert!(ids.page(b"1x").is_err());
        assert!(ids.page(b"").is_err());
        let mut ids = Ids::new(false);
        assert_eq!(ids.page(b"abc"), Ok(0));
        assert_eq!(ids.page(b"x"), Ok(1));
        assert_eq!(ids.page(b"17"), Ok(2));
        assert_eq!(ids.page(b"abc"), Ok(0));
        assert!(ids.page(b"").is_err(), "a missing id is no page");
        let mut notes = Vec::new();
        ids.notes(&mut notes);
        assert!(notes[0].starts_with("3 distinct"));
        let mut ids = Ids::new(true);
        assert_eq!(ids.page(b"x"), Ok(0));
        assert_eq!(ids.page(b"17"), Ok(1));
        assert_eq!(ids.number(17), Ok(1));
        let mut ids = Ids::new(false);
        assert_eq!(ids.page(b"uid"), Ok(0));
        assert!(ids.page(b"17").unwrap_err().contains("columns=page=uid"));
    }
}
