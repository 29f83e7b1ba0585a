//! The sweep over the whole file: pages that the walk did not reach, compared with the maps of free
//! pages.

use millpond_base::PageId;

use crate::admin::check::fault::Fault;
use crate::admin::check::reader::BATCH;
use crate::admin::check::report::PageCounts;
use crate::admin::check::walk::Walk;
use crate::page::superblock::Placement;
use crate::page::{PAGE_HEADER, PageHeader, PageType, free_map};

/// Pages that cannot be reached, since a page above them is damaged.
#[derive(Clone, Copy)]
struct CutOff {
    first: PageId,
    pages: u64,
}

/// The state of the sweep.
pub(super) struct Sweep<'w, 's> {
    walk: &'w mut Walk<'s>,
    /// Set if the maps on storage are right about free pages, as they are after a clean shutdown.
    trusted: bool,
    group: u64,
    /// Map of the group, if it is sound.
    map: Option<Vec<u8>>,
    next: u64,
    counts: PageCounts,
    /// Cut-off pages by structure; the last is for pages of no known structure.
    cut_off: Vec<Option<CutOff>>,
    /// Set if a page may be unreachable because of damage elsewhere.
    damaged: bool,
}

impl<'w, 's> Sweep<'w, 's> {
    pub(super) fn new(walk: &'w mut Walk<'s>, trusted: bool, no_catalog: bool) -> Sweep<'w, 's> {
        let damaged = no_catalog || walk.structures.iter().any(|found| found.damaged);
        let cut_off = vec![None; walk.structures.len() + 1];
        let counts = PageCounts { used: walk.reached_count, ..PageCounts::default() };
        Sweep { walk, trusted, group: 0, map: None, next: 0, counts, cut_off, damaged }
    }

    /// Examines some more pages; `false` when there are none.
    pub(super) fn step(&mut self) -> bool {
        let size = self.walk.store.page_size();
        let per_map = free_map::pages_per_map(size);
        if self.next >= self.walk.pages {
            return false;
        }
        if self.next == self.group * per_map {
            self.read_map();
        }
        let group_end = (self.group + 1) * per_map;
        let end = group_end.min(self.walk.pages);
        let mut pages = Vec::with_capacity(BATCH);
        // A bounded number of pages per step, so that progress is reported even where all are in
        // use.
        let stop = end.min(self.next + 64 * BATCH as u64);
        while self.next < stop && pages.len() < BATCH {
            let page = PageId(self.next);
            self.next += 1;
            if self.pass(page) {
                pages.push(page);
            }
        }
        self.look_at(&pages);
        if self.next == end && end == self.walk.pages {
            self.look_beyond();
        }
        if self.next == group_end {
            self.group += 1;
        }
        self.next < self.walk.pages
    }

    /// Returns the number of pages done.
    pub(super) fn done(&self) -> u64 {
        self.next.max(self.counts.used)
    }

    /// Reports the remaining problems after the last step.
    pub(super) fn finish(mut self) -> PageCounts {
        for (i, cut_off) in std::mem::take(&mut self.cut_off).into_iter().enumerate() {
            let Some(CutOff { first, pages }) = cut_off else { continue };
            let name = self.walk.structures.get(i).map(|found| found.name.as_str());
            self.walk.findings.add(first, name, Fault::CutOff { pages });
        }
        self.counts.unreadable += self.walk.unreadable;
        self.counts
    }

    fn read_map(&mut self) {
        let page = free_map::map_page(self.walk.store.page_size(), self.group);
        self.map = None;
        let is_in_place = self.walk.store.placement() == Placement::InPlace;
        if page.0 >= self.walk.pages || !is_in_place {
            return;
        }
        let result = self.walk.reader.read(self.walk.store, &[page]).pop();
        match result {
            Some(Err(error)) => {
                self.counts.unreadable += 1;
                self.walk.findings.add(page, None, error.into());
            }
            _ => {
                let bytes = self.walk.reader.bytes(0);
                let (found, expected) = (PageHeader::read(bytes).kind.0, PageType::FREE_MAP.0);
                if found != expected {
                    let fault = Fault::OwnType { found, expected };
                    return self.walk.findings.add(page, None, fault);
                }
                self.map = Some(bytes.to_vec());
            }
        }
    }

    /// Returns `true` if the map marks `page`, of this group, as used; `None` if no map can be
    /// trusted.
    fn taken(&self, page: u64) -> Option<bool> {
        let store = self.walk.store;
        if store.placement() == Placement::OutOfPlace {
            // A page that has a place is in use.
            let is_known = self.trusted && store.map_damage().is_none();
            return is_known.then(|| page < self.walk.pages && store.is_allocated(PageId(page)));
        }
        let map = self.map.as_ref().filter(|_| self.trusted)?;
        let bit = page.checked_sub(self.group * free_map::pages_per_map(self.size()))?;
        let byte = map.get(PAGE_HEADER + usize::try_from(bit / 8).ok()?)?;
        Some(byte >> (bit % 8) & 1 != 0)
    }

    fn size(&self) -> crate::page::PageSize {
        self.walk.store.page_size()
    }

    /// Checks `page` without reading it; returns `true` if it has to be read.
    fn pass(&mut self, page: PageId) -> bool {
        let taken = self.taken(page.0);
        let map = free_map::map_page(self.size(), self.group);
        if self.walk.store.is_reserved(page) {
            self.counts.own += 1;
            if taken == Some(false) {
                let fault = Fault::FreeMap { map, said: "free, though it is the store's own" };
                self.walk.findings.add(page, None, fault);
            }
            return false;
        }
        if !self.walk.reached.has(page) {
            return true;
        }
        if taken == Some(false) {
            self.walk.findings.add(page, None, Fault::Free);
        }
        false
    }

    /// Reads pages that the walk did not reach.
    fn look_at(&mut self, pages: &[PageId]) {
        let results = self.walk.reader.read(self.walk.store, pages);
        for (i, (&page, result)) in pages.iter().zip(results).enumerate() {
            let header = PageHeader::read(self.walk.reader.bytes(i));
            let taken = self.taken(page.0);
            match (taken, result) {
                // The content of a free page is arbitrary, but it should be readable.
                (Some(false), Err(error @ crate::io::ReadError::Device { .. })) => {
                    self.counts.unreadable += 1;
                    self.walk.findings.add(page, None, error.into());
                    self.counts.free += 1;
                }
                (Some(false), _) => self.counts.free += 1,
                // Without a map, a page that was never sealed counts as free.
                (None, Err(_)) => self.counts.free += 1,
                (_, Ok(())) if self.damaged || taken.is_none() => {
                    self.counts.lost += 1;
                    self.cut_off(page, header.owner);
                }
                (_, Err(error)) if self.damaged => {
                    self.counts.lost += 1;
                    self.counts.unreadable += 1;
                    self.walk.findings.add(page, None, error.into());
                }
                _ => {
                    self.counts.lost += 1;
                    let name = self.owner_name(header.owner);
                    self.walk.findings.add(page, name.as_deref(), Fault::Leaked);
                }
            }
        }
    }

    fn owner_name(&self, owner: u32) -> Option<String> {
        let found = self.walk.structures.iter().find(|found| found.owner == owner);
        found.map(|found| found.name.clone())
    }

    /// Counts a sound page that is neither free nor reached.
    fn cut_off(&mut self, page: PageId, owner: u32) {
        let structures = &self.walk.structures;
        let found = structures.iter().position(|found| found.owner == owner);
        let found = found.unwrap_or(structures.len());
        let hurt = structures.get(found).is_none_or(|found| found.damaged);
        if !hurt && self.trusted {
            let name = self.owner_name(owner);
            return self.walk.findings.add(page, name.as_deref(), Fault::Leaked);
        }
        if self.damaged
            && hurt
            && let Some(place) = self.cut_off.get_mut(found)
        {
            place.get_or_insert(CutOff { first: page, pages: 0 }).pages += 1;
        }
    }

    /// Checks that the bits beyond the store's end are not set.
    fn look_beyond(&mut self) {
        let end = (self.group + 1) * free_map::pages_per_map(self.size());
        let map = free_map::map_page(self.size(), self.group);
        let taken = (self.walk.pages..end).find(|page| self.taken(*page) == Some(true));
        if let Some(page) = taken {
            let fault = Fault::FreeMap { map, said: "used, though the store ends before it" };
            self.walk.findings.add(PageId(page), None, fault);
        }
    }
}
