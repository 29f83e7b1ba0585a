//! The page map while a store is open whose pages are written out of place: where each page is, and
//! which places of the file are free.
//!
//! # Rules
//! 1. A page is written to a free place. Only when the write has returned does its entry name that
//!    place, and only then is the old place *superseded*.
//! 2. A superseded place is free once a map is durable that was begun behind that: until then a
//!    recovery, which begins with the durable map, needs what lies there. As long as a backup reads
//!    the places of a map it is not used, either.
//! 3. Nodes of the map on storage are written like pages: to free places, and the old ones are
//!    superseded by the map that has the new ones.
//! 4. Some places are kept free for the next map (`reserve`): with none, nothing would ever be free
//!    again.
//! 5. Compressed pages take units of places, and these rules are those of the units (`units`).
//!
//! A store without a log has no checkpoints, and is whole only when it was closed: its superseded
//! places are free at once.

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
    /// By page id.
    entries: Vec<MapEntry>,
    /// Pages that are somewhere.
    placed: u64,
    /// Units that they take.
    stored_units: u64,
    /// By level, the leaves first; as many as `nodes_by_level` says.
    nodes: Vec<Vec<Node>>,
    /// Space taken by the superblock, pages, nodes, and superseded versions.
    space: Space,
    /// Superseded, and no map was begun since.
    superseded: Vec<Spot>,
    /// Superseded by a durable map, and a backup may read them still.
    held: Vec<Spot>,
    /// Backups under way.
    backups: u32,
    /// `true` if rule 2 holds.
    waits: bool,
    /// A page found no place: only the next map makes room.
    is_starved: bool,
}

impl PageMap {
    /// The map of a file of `places` places, all but the superblock's free, and of `ids` pages that
    /// are nowhere.
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

    /// Makes the map that of `ids` page ids; those that go are nowhere.
    pub(in crate::io) fn set_ids(&mut self, ids: u64) {
        for page in ids..self.entries.len() as u64 {
            self.set(PageId(page), MapEntry::NONE);
        }
        let is_shorter = ids < self.entries.len() as u64;
        // No more memory than is charged: ids come in steps of an eighth.
        self.entries.reserve_exact((ids as usize).saturating_sub(self.entries.len()));
        self.entries.resize(ids as usize, MapEntry::NONE);
        if is_shorter {
            self.entries.shrink_to_fit();
        }
        let counts = nodes_by_level(self.page_size, ids);
        for (level, count) in counts.iter().enumerate() {
            if level == self.nodes.len() {
                // What was the root is below it.
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

    /// Nodes that there are no more.
    fn give_up(&mut self, nodes: impl IntoIterator<Item = Node>) {
        for spot in nodes.into_iter().filter_map(|node| node.entry.spot()) {
            self.supersede(spot);
        }
    }

    /// Page ids that there are.
    pub(in crate::io) fn ids(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Places that there are.
    pub(in crate::io) fn places(&self) -> u64 {
        self.space.places()
    }

    /// Places that are free.
    pub(in crate::io) fn free_places(&self) -> u64 {
        self.space.free_places()
    }

    /// Pages that are somewhere.
    pub(in crate::io) fn placed(&self) -> u64 {
        self.placed
    }

    /// Bytes that pages take.
    pub(in crate::io) fn stored_bytes(&self) -> u64 {
        self.stored_units * self.page_size.unit() as u64
    }

    /// Bytes that become free with the next map, or when the last backup is over.
    pub(in crate::io) fn superseded_bytes(&self) -> u64 {
        self.bytes_of(&self.superseded) + self.bytes_of(&self.held)
    }

    fn bytes_of(&self, spots: &[Spot]) -> u64 {
        match &self.space {
            Space::Places(_) => spots.len() as u64 * self.page_size.bytes_u64(),
            Space::Units(..) => spots.iter().map(|spot| spot.bytes(self.page_size) as u64).sum(),
        }
    }

    /// Returns `true` if the next map would free more than `most_bytes`, or would free anything
    /// and a page has found no place since the last map was begun.
    pub(in crate::io) fn wants_map(&self, most_bytes: u64) -> bool {
        // If the next map would free nothing, it is of no use to a page either.
        let waiting = self.bytes_of(&self.superseded);
        waiting > most_bytes || self.is_starved && waiting > 0
    }

    /// Bytes of memory.
    pub(in crate::io) fn bytes(&self) -> u64 {
        (8 * self.entries.capacity()) as u64 + self.space.bytes()
    }

    /// Returns the entry of `page`.
    pub(in crate::io) fn entry(&self, page: PageId) -> MapEntry {
        self.entries.get(page.0 as usize).copied().unwrap_or(MapEntry::NONE)
    }

    /// Places that are kept free for the next map (rule 4).
    pub(in crate::io) fn reserve(&self) -> u64 {
        self.nodes.iter().map(|nodes| nodes.len() as u64).sum::<u64>() + 1
    }

    /// The file has `places` places now.
    pub(in crate::io) fn extend_places(&mut self, places: u64) {
        self.space.extend(places);
    }

    /// Takes room for pages that take these units each, `None` all of a place, and leaves `reserve`
    /// places free: for all of them, or none. In the order of the pages, not of the file.
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

    /// Takes room for a page below `bound`: these units, or `None`, all of a place.
    pub(in crate::io) fn take_below(&mut self, units: Option<u64>, bound: u64) -> Option<Spot> {
        self.space.take(units, 0, bound)
    }

    /// A page found no place.
    pub(in crate::io) fn starve(&mut self) {
        self.is_starved = true;
    }

    /// Gives room back that nothing refers to, and never did.
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

    /// `page` is at another place now, or nowhere; rule 1.
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

    /// The first pages from `page` on in places from `bound` on, with their entries, up to a
    /// maximum.
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

    /// Marks nodes in places from `bound` on, so that the next map has them elsewhere; returns
    /// whether there are any.
    pub(in crate::io) fn move_nodes_from(&mut self, bound: u64) -> bool {
        let mut any = false;
        for node in self.nodes.iter_mut().flatten() {
            let is_far = node.entry.place().is_some_and(|place| place >= bound);
            node.is_dirty |= is_far;
            any |= is_far;
        }
        any
    }

    /// Makes the file end behind the last place that is taken, and returns how many places it has
    /// then: a multiple of `unit`, and `least` or more.
    pub(in crate::io) fn cut_places(&mut self, least: u64, unit: u64) -> u64 {
        self.space.cut(least, unit)
    }

    /// Returns the end of the file if nothing free lay before it. Compressed pages do not all fit
    /// beside each other, so for them a little is added.
    pub(in crate::io) fn packed_places(&self) -> u64 {
        self.space.packed()
    }
}

/// Writing a map to storage.
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

    /// Frees the places that the map superseded: it is durable.
    pub(in crate::io) fn release(&mut self, superseded: Vec<Spot>) {
        if self.backups > 0 {
            self.held.extend(superseded);
            return;
        }
        for spot in superseded {
            self.give_back(spot);
        }
    }

    /// Returns `true` while backups are under way.
    pub(in crate::io) fn has_backups(&self) -> bool {
        self.backups > 0
    }

    /// Begins a backup: places that the next durable maps supersede stay.
    pub(in crate::io) fn pin(&mut self) {
        self.backups += 1;
    }

    /// A backup is over.
    pub(in crate::io) fn unpin(&mut self) {
        self.backups = self.backups.saturating_sub(1);
        if self.backups == 0 {
            let held = std::mem::take(&mut self.held);
            self.release(held);
        }
    }

    /// The first dirty nodes of a level in `range`, in order.
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

    /// The entries of a node, as it is to be written. It counts as clean from now on.
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

    /// A node could not be written.
    pub(in crate::io) fn soil(&mut self, level: usize, index: u64) {
        if let Some(node) = self.nodes.get_mut(level).and_then(|n| n.get_mut(index as usize)) {
            node.is_dirty = true;
        }
    }

    /// A node was written; returns where it was.
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

    /// Returns the entry that names a node's place on storage.
    pub(in crate::io) fn node(&self, level: usize, index: u64) -> MapEntry {
        let node = self.nodes.get(level).and_then(|nodes| nodes.get(index as usize));
        node.map_or(MapEntry::NONE, |node| node.entry)
    }

    /// While a map is read: a node is at `entry`. Returns `false` if its place is taken already, or
    /// there is none such.
    pub(in crate::io) fn load_node(&mut self, level: usize, index: u64, entry: MapEntry) -> bool {
        let Some(node) = self.nodes.get_mut(level).and_then(|n| n.get_mut(index as usize)) else {
            return entry == MapEntry::NONE;
        };
        *node = Node { entry, is_dirty: false };
        self.claim(entry)
    }

    /// While a map is read: `page` is at `entry`. Returns `false` if its place is taken already, or
    /// there is no such place or page.
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
