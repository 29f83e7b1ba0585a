//! The free map of an open store: one bit per page, and one bit per word of those.
//!
//! The lowest free page is handed out first, so that a store that shrank fills from the front and
//! its tail stays free. The search reads the summary: 64 words, or 4096 pages, per step.

use millpond_base::PageId;

/// Bits per word.
const WORD: u64 = 64;

/// Bitmap of free pages.
#[derive(Debug, Default)]
pub(in crate::io) struct Bitmap {
    /// Bit p % 64 of word p / 64 is 0 if page p is free. Bits beyond `pages` are 1.
    taken: Vec<u64>,
    /// Bit w % 64 of word w / 64 is 1 if `taken[w]` has a free page.
    open: Vec<u64>,
    /// No word of `open` below this one has a bit set.
    first_open: usize,
    /// Number of pages.
    pages: u64,
    /// Number of free pages.
    free: u64,
}

/// Reason that a page cannot be freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::io) enum Refusal {
    OutOfRange,
    AlreadyFree,
}

impl Bitmap {
    /// Returns a map of `pages` pages, none of them free.
    pub(in crate::io) fn all_taken(pages: u64) -> Bitmap {
        let mut map = Bitmap::default();
        map.extend(pages, |_| true);
        map
    }

    /// Returns the number of pages.
    pub(in crate::io) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of free pages.
    pub(in crate::io) fn free_pages(&self) -> u64 {
        self.free
    }

    /// Extends the map to `pages` pages; new pages are free unless `is_reserved`.
    pub(in crate::io) fn extend(&mut self, pages: u64, is_reserved: impl Fn(PageId) -> bool) {
        let old = self.pages;
        if pages <= old {
            return;
        }
        let words = pages.div_ceil(WORD) as usize;
        self.taken.resize(words, u64::MAX);
        self.open.resize(words.div_ceil(WORD as usize), 0);
        self.pages = pages;
        for page in old..pages {
            if !is_reserved(PageId(page)) {
                self.set_free(page);
            }
        }
        debug_assert!(self.free <= self.pages, "{} free pages of {}", self.free, self.pages);
        debug_assert!(self.is_summed_up(), "each word of the map has its bit in the summary");
    }

    /// Ends the map behind the last page that is taken and not `is_reserved`, at a multiple of
    /// `unit` pages and not before `least`. Returns the new number of pages.
    pub(in crate::io) fn cut(
        &mut self,
        least: u64,
        unit: u64,
        is_reserved: impl Fn(PageId) -> bool,
    ) -> u64 {
        let mut pages = self.pages;
        while pages > 0 && (!self.is_taken(pages - 1) || is_reserved(PageId(pages - 1))) {
            pages -= 1;
        }
        let pages = pages.max(least).next_multiple_of(unit.max(1));
        if pages < self.pages {
            let free = (pages..self.pages).filter(|&page| !self.is_taken(page)).count() as u64;
            self.free -= free;
            let words = pages.div_ceil(WORD) as usize;
            self.taken.truncate(words);
            self.open.truncate(words.div_ceil(WORD as usize));
            // Bits beyond the end are 1, and words beyond it have no 0.
            if let Some(last) = self.taken.last_mut().filter(|_| !pages.is_multiple_of(WORD)) {
                *last |= u64::MAX << (pages % WORD);
            }
            for at in words.saturating_sub(1)..words.next_multiple_of(WORD as usize) {
                let is_open = self.taken.get(at).is_some_and(|word| *word != u64::MAX);
                if let Some(summary) = self.open.get_mut(at / WORD as usize).filter(|_| !is_open) {
                    *summary &= !(1 << (at as u64 % WORD));
                }
            }
            self.first_open = self.first_open.min(self.open.len());
            self.pages = pages;
            debug_assert!(self.free <= self.pages, "{} free pages of {}", self.free, self.pages);
            debug_assert!(self.is_summed_up(), "each word of the map has its bit in the summary");
        }
        self.pages
    }

    /// Sets the words from `first` on to those of a map page, for existing pages. Pages that are
    /// `is_reserved` stay taken.
    pub(in crate::io) fn load(
        &mut self,
        first: usize,
        words: impl Iterator<Item = u64>,
        is_reserved: impl Fn(PageId) -> bool,
    ) {
        for (at, taken) in (first..self.taken.len()).zip(words) {
            for bit in 0..WORD {
                let page = at as u64 * WORD + bit;
                let free =
                    page < self.pages && taken & (1 << bit) == 0 && !is_reserved(PageId(page));
                match (free, self.is_taken(page)) {
                    (true, true) => self.set_free(page),
                    (false, false) => self.set_taken(page),
                    _ => {}
                }
            }
        }
    }

    /// Returns the words from `first` on in the form of a map page: bits beyond the pages are 0.
    pub(in crate::io) fn words(&self, first: usize) -> impl Iterator<Item = u64> + '_ {
        let taken = self.taken.get(first..).unwrap_or(&[]).iter();
        taken.enumerate().map(move |(at, &word)| {
            let begin = (first + at) as u64 * WORD;
            match self.pages.saturating_sub(begin) {
                there if there >= WORD => word,
                there => word & ((1 << there) - 1),
            }
        })
    }

    /// Takes the lowest free page.
    pub(in crate::io) fn take(&mut self) -> Option<PageId> {
        let page = self.lowest()?;
        self.set_taken(page);
        Some(PageId(page))
    }

    /// Takes the lowest free page, if it is below `bound`.
    pub(in crate::io) fn take_below(&mut self, bound: u64) -> Option<PageId> {
        let page = self.lowest_below(bound)?;
        self.set_taken(page);
        Some(PageId(page))
    }

    /// Returns the lowest free page, if it is below `bound`.
    pub(in crate::io) fn lowest_below(&mut self, bound: u64) -> Option<u64> {
        self.lowest().filter(|page| *page < bound)
    }

    /// Takes this page. Returns `false` if it is taken already, or does not exist.
    pub(in crate::io) fn take_this(&mut self, page: u64) -> bool {
        let is_free = page < self.pages && !self.is_taken(page);
        if is_free {
            self.set_taken(page);
        }
        is_free
    }

    /// Returns the taken pages from `first` on, in order.
    pub(in crate::io) fn taken_from(&self, first: u64) -> impl Iterator<Item = u64> + '_ {
        let words = self.taken.iter().enumerate().skip((first / WORD) as usize);
        let pages = words.filter(|(_, word)| **word != 0).flat_map(|(at, &word)| {
            (0..WORD)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| at as u64 * WORD + bit)
        });
        pages.filter(move |&page| (first..self.pages).contains(&page))
    }

    fn lowest(&mut self) -> Option<u64> {
        while self.open.get(self.first_open) == Some(&0) {
            self.first_open += 1;
        }
        let summary = *self.open.get(self.first_open)?;
        let at = self.first_open as u64 * WORD + u64::from(summary.trailing_zeros());
        let word = *self.taken.get(at as usize)?;
        let page = at * WORD + u64::from((!word).trailing_zeros());
        debug_assert!(page < self.pages, "page {page} of {} is free", self.pages);
        debug_assert!(!self.is_taken(page), "the summary says that page {page} is free");
        Some(page)
    }

    /// Frees `page`.
    pub(in crate::io) fn give(&mut self, page: PageId) -> Result<(), Refusal> {
        if page.0 >= self.pages {
            return Err(Refusal::OutOfRange);
        }
        if !self.is_taken(page.0) {
            return Err(Refusal::AlreadyFree);
        }
        self.set_free(page.0);
        Ok(())
    }

    /// Returns `true` if the page is handed out or does not exist.
    pub(in crate::io) fn is_taken(&self, page: u64) -> bool {
        self.taken.get((page / WORD) as usize).is_none_or(|word| word & (1 << (page % WORD)) != 0)
    }

    /// Returns `true` if the two levels have the length for `pages`.
    fn is_summed_up(&self) -> bool {
        self.taken.len() as u64 == self.pages.div_ceil(WORD)
            && self.open.len() == self.taken.len().div_ceil(WORD as usize)
    }

    fn set_free(&mut self, page: u64) {
        debug_assert!(page < self.pages, "page {page} is one of {}", self.pages);
        debug_assert!(self.is_taken(page), "page {page} is freed once");
        let at = (page / WORD) as usize;
        let group = at / WORD as usize;
        let (Some(word), Some(summary)) = (self.taken.get_mut(at), self.open.get_mut(group)) else {
            return;
        };
        *word &= !(1 << (page % WORD));
        *summary |= 1 << (at as u64 % WORD);
        self.first_open = self.first_open.min(group);
        self.free += 1;
    }

    fn set_taken(&mut self, page: u64) {
        debug_assert!(page < self.pages, "page {page} is one of {}", self.pages);
        debug_assert!(!self.is_taken(page), "page {page} is taken once");
        debug_assert!(self.free > 0, "a page is free, so the count is not 0");
        let at = (page / WORD) as usize;
        let group = at / WORD as usize;
        let (Some(word), Some(summary)) = (self.taken.get_mut(at), self.open.get_mut(group)) else {
            return;
        };
        *word |= 1 << (page % WORD);
        if *word == u64::MAX {
            *summary &= !(1 << (at as u64 % WORD));
        }
        self.free -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Take,
        TakeBelow(u64),
        TakeThis(u64),
        Give(u64),
        Extend(u64),
        Cut(u64, u64),
        Reload,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => Just(Step::Take),
            2 => (0..9000u64).prop_map(Step::TakeBelow),
            2 => (0..9000u64).prop_map(Step::TakeThis),
            4 => (0..9000u64).prop_map(Step::Give),
            1 => (0..1500u64).prop_map(Step::Extend),
            1 => (0..300u64, 1..9u64).prop_map(|(least, unit)| Step::Cut(least, unit)),
            1 => Just(Step::Reload),
        ];
        proptest::collection::vec(step, 0..400)
    }

    fn reserved(page: PageId) -> bool {
        page.0 == 1 || page.0.is_multiple_of(1024)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn the_map_is_a_set_of_free_pages(steps in steps(), first in 0..200u64) {
            let mut map = Bitmap::default();
            let mut model = BTreeSet::new();
            map.extend(first, reserved);
            model.extend((0..first).filter(|&p| !reserved(PageId(p))));
            let mut pages = first;
            for step in steps {
                match step {
                    Step::Take => prop_assert_eq!(map.take().map(|p| p.0), model.pop_first()),
                    Step::TakeBelow(bound) => {
                        let lowest = model.first().copied().filter(|page| *page < bound);
                        prop_assert_eq!(map.take_below(bound).map(|p| p.0), lowest);
                        lowest.map(|page| model.remove(&page));
                        let taken = (bound..pages).filter(|page| !model.contains(page));
                        prop_assert!(map.taken_from(bound).eq(taken));
                    }
                    Step::TakeThis(page) => {
                        prop_assert_eq!(map.take_this(page), model.remove(&page));
                    }
                    Step::Give(page) if page >= pages => {
                        prop_assert_eq!(map.give(PageId(page)), Err(Refusal::OutOfRange));
                    }
                    Step::Give(page) if !model.contains(&page) => {
                        if !reserved(PageId(page)) {
                            prop_assert_eq!(map.give(PageId(page)), Ok(()));
                            model.insert(page);
                        }
                    }
                    Step::Give(page) => {
                        prop_assert_eq!(map.give(PageId(page)), Err(Refusal::AlreadyFree));
                    }
                    Step::Extend(more) => {
                        map.extend(pages + more, reserved);
                        model.extend((pages..pages + more).filter(|&p| !reserved(PageId(p))));
                        pages += more;
                    }
                    Step::Cut(least, unit) => {
                        let is_used = |p: &u64| !model.contains(p) && !reserved(PageId(*p));
                        let used = (0..pages).rfind(is_used).map_or(0, |page| page + 1);
                        pages = pages.min(used.max(least).next_multiple_of(unit));
                        prop_assert_eq!(map.cut(least, unit, reserved), pages);
                        model.retain(|page| *page < pages);
                    }
                    Step::Reload => {
                        let words: Vec<u64> = map.words(0).collect();
                        map = Bitmap::default();
                        map.extend(pages, reserved);
                        map.load(0, words.into_iter(), reserved);
                    }
                }
                prop_assert_eq!(map.pages(), pages);
                prop_assert_eq!(map.free_pages(), model.len() as u64);
            }
            for page in 0..pages + 70 {
                prop_assert_eq!(map.is_taken(page), !model.contains(&page));
            }
        }
    }
}
