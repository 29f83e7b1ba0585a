//! The page map of an open out-of-place store: the place of each page, and the free places of the
//! file.
//!
//! # Rules
//! 1. A page is written to a free place. Only after the write has returned does its entry name that
//!    place, and only then is the old place *superseded*.
//! 2. A superseded place is free once a map that was begun later is durable. Until then a recovery,
//!    which begins with the durable map, needs its contents. While a backup reads the places of a
//!    map, the place is not reused, either.
//! 3. Nodes of the map on storage are written like pages: to free places. The map with the new
//!    nodes supersedes the old ones.
//! 4. Some places are kept free for the next map (`reserve`): without any, no place would ever
//!    become free again.
//! 5. Compressed pages take units of places, and these rules apply to units (`units`).
//!
//! A store without a log has no checkpoints, and is consistent only after it was closed: its
//! superseded places are free at once.

use std::ops::Range;

use millpond_base::PageId;

use super::space::Space;
use crate::page::page_map::{nodes_by_level, per_node};
use crate::page::{MapEntry, PageSize, Spot};

/// A node of the map.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Place of the node on storage; [`MapEntry::NONE`] if all of its entries are.
    entry: MapEntry,
    /// `true` if the node has changed since it was written.
    is_dirty: bool,
}

/// Map from page ids to places in the file.
#[derive(Debug)]
pub(in crate::io) struct PageMap {
    page_size: PageSize,
    /// Places by page id.
    entries: Vec<MapEntry>,
    /// Number of pages with a place.
    placed: u64,
    /// Number of units that they take.
    stored_units: u64,
    /// Nodes by level, the leaves first; `nodes_by_level` has their number.
    nodes: Vec<Vec<Node>>,
    /// Space taken by the superblock, pages, nodes, and superseded versions.
    space: Space,
    /// Places superseded since the last map was begun.
    superseded: Vec<Spot>,
    /// Places superseded by a durable map that a backup may still read.
    held: Vec<Spot>,
    /// Number of backups in progress.
    backups: u32,
    /// `true` if rule 2 holds.
    waits: bool,
    /// Set once a page found no place: only the next map makes room.
    is_starved: bool,
}

impl PageMap {
    /// Returns the map of a file of `places` places, all but the superblock's free, and of `ids`
    /// pages without a place.
    pub(in crate::io) fn new(
        page_size: PageSize,
        compresses: bool,
        places: u64,
        ids: u64,
        waits: bool,
    ) -> PageMap {
        let space = Space::new(page_size, places, compresses);
        let mut map = PageMap {
            page_size,
            entries: Vec::new(),
            placed: 0,
            stored_units: 0,
            nodes: Vec::new(),
            space,
            superseded: Vec::new(),
            held: Vec::new(),
            backups: 0,
            waits,
            is_starved: false,
        };
        map.set_ids(ids);
        map
    }

    /// Sets the number of page ids to `ids`; removed ids lose their places.
    pub(in crate::io) fn set_ids(&mut self, ids: u64) {
        for page in ids..self.entries.len() as u64 {
            self.set(PageId(page), MapEntry::NONE);
        }
        let is_shorter = ids < self.entries.len() as u64;
        // No more memory than is charged: ids are added in steps of an eighth.
        self.entries.reserve_exact((ids as usize).saturating_sub(self.entries.len()));
        self.entries.resize(ids as usize, MapEntry::NONE);
        if is_shorter {
            self.entries.shrink_to_fit();
        }
        let counts = nodes_by_level(self.page_size, ids);
        for (level, count) in counts.iter().enumerate() {
            if level == self.nodes.len() {
                // The old root is below the new one.
                self.nodes.push(vec![Node { entry: MapEntry::NONE, is_dirty: true }]);
            }
            let Some(nodes) = self.nodes.get_mut(level) else { break };
            let gone = nodes.split_off(nodes.len().min(*count as usize));
            nodes.resize(*count as usize, Node { entry: MapEntry::NONE, is_dirty: false });
            if is_shorter && level > 0 {
                nodes.iter_mut().for_each(|node| node.is_dirty = true);
            }
            self.give_up(gone);
        }
        let gone = self.nodes.split_off(counts.len());
        self.give_up(gone.into_iter().flatten());
    }

    /// Supersedes the places of nodes that no longer exist.
    fn give_up(&mut self, nodes: impl IntoIterator<Item = Node>) {
        for spot in nodes.into_iter().filter_map(|node| node.entry.spot()) {
            self.supersede(spot);
        }
    }

    /// Returns the number of page ids.
    pub(in crate::io) fn ids(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns the number of places.
    pub(in crate::io) fn places(&self) -> u64 {
        self.space.places()
    }

    /// Returns the number of free places.
    pub(in crate::io) fn free_places(&self) -> u64 {
        self.space.free_places()
    }

    /// Returns the number of pages with a place.
    pub(in crate::io) fn placed(&self) -> u64 {
        self.placed
    }

    /// Returns the bytes that pages take.
    pub(in crate::io) fn stored_bytes(&self) -> u64 {
        self.stored_units * self.page_size.unit() as u64
    }

    /// Returns the bytes that become free with the next map, or with the end of the last backup.
    pub(in crate::io) fn superseded_bytes(&self) -> u64 {
        self.bytes_of(&self.superseded) + self.bytes_of(&self.held)
    }

    fn bytes_of(&self, spots: &[Spot]) -> u64 {
        match &self.space {
            Space::Places(_) => spots.len() as u64 * self.page_size.bytes_u64(),
            Space::Units(..) => spots.iter().map(|spot| spot.bytes(self.page_size) as u64).sum(),
        }
    }

    /// Returns `true` if the next map would free more than `most_bytes`. Also returns `true` if it
    /// would free anything and a page has found no place since the last map was begun.
    pub(in crate::io) fn wants_map(&self, most_bytes: u64) -> bool {
        // A map that frees nothing does not help a page either.
        let waiting = self.bytes_of(&self.superseded);
        waiting > most_bytes || self.is_starved && waiting > 0
    }

    /// Returns the bytes of memory.
    pub(in crate::io) fn bytes(&self) -> u64 {
        (8 * self.entries.capacity()) as u64 + self.space.bytes()
    }

    /// Returns the entry of `page`.
    pub(in crate::io) fn entry(&self, page: PageId) -> MapEntry {
        self.entries.get(page.0 as usize).copied().unwrap_or(MapEntry::NONE)
    }

    /// Returns the number of places kept free for the next map (rule 4).
    pub(in crate::io) fn reserve(&self) -> u64 {
        self.nodes.iter().map(|nodes| nodes.len() as u64).sum::<u64>() + 1
    }

    /// Records that the file has `places` places now.
    pub(in crate::io) fn extend_places(&mut self, places: u64) {
        self.space.extend(places);
    }

    /// Takes room for pages that take these units each, `None` for a whole place, and leaves
    /// `reserve` places free: for all of them, or none. The spots are in the order of the pages,
    /// not of the file.
    pub(in crate::io) fn take_spots(
        &mut self,
        lengths: &[Option<u64>],
        reserve: u64,
    ) -> Option<Vec<Spot>> {
        let mut spots = Vec::with_capacity(lengths.len());
        for units in lengths {
            let Some(spot) = self.space.take(*units, reserve, u64::MAX) else {
                spots.into_iter().for_each(|spot| self.give_back(spot));
                return None;
            };
            spots.push(spot);
        }
        Some(spots)
    }

    /// Takes room for a page below `bound`: these units, or with `None` a whole place.
    pub(in crate::io) fn take_below(&mut self, units: Option<u64>, bound: u64) -> Option<Spot> {
        self.space.take(units, 0, bound)
    }

    /// Records that a page found no place.
    pub(in crate::io) fn starve(&mut self) {
        self.is_starved = true;
    }

    /// Frees room that nothing refers to, and never did.
    pub(in crate::io) fn give_back(&mut self, spot: Spot) {
        self.space.give(spot);
    }

    /// Marks `spot` as superseded: only a recovery may still need its contents (rule 2).
    pub(in crate::io) fn supersede(&mut self, spot: Spot) {
        if self.waits {
            self.superseded.push(spot);
        } else {
            self.give_back(spot);
        }
    }

    /// Records the new place of `page`, or that it has none (rule 1).
    pub(in crate::io) fn set(&mut self, page: PageId, entry: MapEntry) {
        let Some(here) = self.entries.get_mut(page.0 as usize) else {
            debug_assert_eq!(entry, MapEntry::NONE, "{page:?} has an entry");
            return;
        };
        let old = std::mem::replace(here, entry);
        if old == entry {
            return;
        }
        let units = |of: MapEntry| of.spot().map_or(0, |spot| spot.length(self.page_size));
        self.stored_units = self.stored_units + units(entry) - units(old);
        self.placed += u64::from(entry != MapEntry::NONE);
        self.placed -= u64::from(old != MapEntry::NONE);
        let leaf = page.0 / per_node(self.page_size);
        if let Some(node) = self.nodes.first_mut().and_then(|nodes| nodes.get_mut(leaf as usize)) {
            node.is_dirty = true;
        }
        if let Some(spot) = old.spot() {
            self.supersede(spot);
        }
    }

    /// Drops the contents of pages that are not `taken`: one bit per page.
    pub(in crate::io) fn keep_only(&mut self, taken: impl Fn(u64) -> bool) {
        for page in 0..self.ids() {
            if self.entry(PageId(page)) != MapEntry::NONE && !taken(page) {
                self.set(PageId(page), MapEntry::NONE);
            }
        }
    }

    /// Returns the first pages from `page` on in places from `bound` on, with their entries, up to
    /// a maximum.
    pub(in crate::io) fn placed_from(
        &self,
        bound: u64,
        page: PageId,
        most: usize,
    ) -> Vec<(PageId, MapEntry)> {
        let entries = (page.0..).zip(self.entries.iter().skip(page.0 as usize));
        let far = entries.filter(|(_, entry)| entry.place().is_some_and(|place| place >= bound));
        far.map(|(page, entry)| (PageId(page), *entry)).take(most).collect()
    }

    /// Counts the pages in places from `bound` on.
    pub(in crate::io) fn count_placed_from(&self, bound: u64) -> u64 {
        let is_far = |entry: &&MapEntry| entry.place().is_some_and(|place| place >= bound);
        self.entries.iter().filter(is_far).count() as u64
    }

    /// Returns the grains in use, one bit for each, as words; and the number of places per grain.
    /// Nothing stored crosses from one grain into another.
    pub(in crate::io) fn used_grains(&self) -> (Vec<u64>, u64) {
        self.space.used_grains()
    }

    /// Marks nodes in places from `bound` on, so that the next map moves them. Returns `true` if
    /// there are any.
    pub(in crate::io) fn move_nodes_from(&mut self, bound: u64) -> bool {
        let mut any = false;
        for node in self.nodes.iter_mut().flatten() {
            let is_far = node.entry.place().is_some_and(|place| place >= bound);
            node.is_dirty |= is_far;
            any |= is_far;
        }
        any
    }

    /// Ends the file behind the last taken place. Returns the new number of places: a multiple of
    /// `unit`, and `least` or more.
    pub(in crate::io) fn cut_places(&mut self, least: u64, unit: u64) -> u64 {
        self.space.cut(least, unit)
    }

    /// Returns the end that the file would have with no free space before it. Compressed pages do
    /// not all fit side by side, so a little is added for them.
    pub(in crate::io) fn packed_places(&self) -> u64 {
        self.space.packed()
    }
}

/// Writes of a map to storage.
impl PageMap {
    /// Begins a map; returns the places that it supersedes so far.
    pub(in crate::io) fn begin(&mut self) -> Vec<Spot> {
        self.is_starved = false;
        std::mem::take(&mut self.superseded)
    }

    /// Abandons a map that was not made durable: its places wait for the next map again.
    pub(in crate::io) fn abandon(&mut self, superseded: Vec<Spot>) {
        self.superseded.extend(superseded);
    }

    /// Frees the places that the map superseded, since it is durable.
    pub(in crate::io) fn release(&mut self, superseded: Vec<Spot>) {
        if self.backups > 0 {
            self.held.extend(superseded);
            return;
        }
        for spot in superseded {
            self.give_back(spot);
        }
    }

    /// Returns `true` while backups are in progress.
    pub(in crate::io) fn has_backups(&self) -> bool {
        self.backups > 0
    }

    /// Begins a backup: places that the next durable maps supersede stay.
    pub(in crate::io) fn pin(&mut self) {
        self.backups += 1;
    }

    /// Ends a backup.
    pub(in crate::io) fn unpin(&mut self) {
        self.backups = self.backups.saturating_sub(1);
        if self.backups == 0 {
            let held = std::mem::take(&mut self.held);
            self.release(held);
        }
    }

    /// Returns the first dirty nodes of a level in `range`, in order.
    pub(in crate::io) fn dirty_in(
        &self,
        level: usize,
        range: &Range<u64>,
        most: usize,
    ) -> Vec<u64> {
        let nodes = self.nodes.get(level).map_or(&[][..], Vec::as_slice);
        let of = range.clone().zip(nodes.iter().skip(range.start as usize));
        of.filter(|(_, node)| node.is_dirty).map(|(index, _)| index).take(most).collect()
    }

    /// Returns the entries of a node to be written, and marks it as clean.
    pub(in crate::io) fn clean(&mut self, level: usize, index: u64) -> Vec<MapEntry> {
        if let Some(node) = self.nodes.get_mut(level).and_then(|n| n.get_mut(index as usize)) {
            node.is_dirty = false;
        }
        let n = per_node(self.page_size);
        let range = |length: usize| {
            ((index * n) as usize).min(length)..((index + 1) * n).min(length as u64) as usize
        };
        match level.checked_sub(1).map(|below| self.nodes.get(below)) {
            None => self.entries[range(self.entries.len())].to_vec(),
            Some(Some(below)) => below[range(below.len())].iter().map(|node| node.entry).collect(),
            Some(None) => Vec::new(),
        }
    }

    /// Marks a node as dirty again, since it could not be written.
    pub(in crate::io) fn soil(&mut self, level: usize, index: u64) {
        if let Some(node) = self.nodes.get_mut(level).and_then(|n| n.get_mut(index as usize)) {
            node.is_dirty = true;
        }
    }

    /// Records the new place of a node; returns its old one.
    pub(in crate::io) fn place_node(
        &mut self,
        level: usize,
        index: u64,
        entry: MapEntry,
    ) -> Option<Spot> {
        let n = per_node(self.page_size);
        let node = self.nodes.get_mut(level)?.get_mut(index as usize)?;
        let old = std::mem::replace(&mut node.entry, entry);
        if old != entry {
            self.soil(level + 1, index / n);
        }
        old.spot()
    }

    /// Returns the entry with a node's place on storage.
    pub(in crate::io) fn node(&self, level: usize, index: u64) -> MapEntry {
        let node = self.nodes.get(level).and_then(|nodes| nodes.get(index as usize));
        node.map_or(MapEntry::NONE, |node| node.entry)
    }

    /// Sets the place of a node while a map is read. Returns `false` if the place is taken already,
    /// or does not exist.
    pub(in crate::io) fn load_node(&mut self, level: usize, index: u64, entry: MapEntry) -> bool {
        let Some(node) = self.nodes.get_mut(level).and_then(|n| n.get_mut(index as usize)) else {
            return entry == MapEntry::NONE;
        };
        *node = Node { entry, is_dirty: false };
        self.claim(entry)
    }

    /// Sets the place of `page` while a map is read. Returns `false` if the place is taken already,
    /// or if the place or the page does not exist.
    pub(in crate::io) fn load_page(&mut self, page: PageId, entry: MapEntry) -> bool {
        if entry == MapEntry::NONE {
            return true;
        }
        let Some(here) = self.entries.get_mut(page.0 as usize) else { return false };
        *here = entry;
        self.placed += 1;
        self.stored_units += entry.spot().map_or(0, |spot| spot.length(self.page_size));
        self.claim(entry)
    }

    fn claim(&mut self, entry: MapEntry) -> bool {
        entry.spot().is_none_or(|spot| self.space.claim(spot))
    }
}
