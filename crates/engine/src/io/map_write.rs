//! Writes of the page map: a checkpoint of the places of pages.
//!
//! The map is copied node by node while others write pages, and no thread waits for it. So it
//! holds, for each page, the place at some moment between its beginning and its end. That is
//! enough. The page's version at the beginning of the map, or a later one, is in a place that no
//! later map has freed. Redo applies to a page the changes that its LSN shows to be missing
//! (`recovery/README.md`, rules 5 and 8).

use std::io::IoSlice;
use std::ops::Range;

use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_device::{AlignedBuffer, WriteRequest};

use super::allocation::Need;
use super::counts::Counters;
use super::placement::page_map::PageMap;
use super::store::PageStore;
use super::store_error::{SyncError, WriteError};
use crate::page::page_map::{nodes_by_level, per_node, write_node};
use crate::page::{MapEntry, PageSize, Spot};

/// Number of nodes written together.
const BATCH: usize = 32;

/// A page map that was written, and is durable with the next sync. It becomes valid once the
/// superblock names its root. If it is dropped before, the last map stays valid.
pub struct NewMap<'s> {
    store: &'s PageStore,
    pub(super) root: MapEntry,
    pub(super) ids: u64,
    superseded: Vec<Spot>,
}

impl Drop for NewMap<'_> {
    fn drop(&mut self) {
        let superseded = std::mem::take(&mut self.superseded);
        if let Some(mut map) = self.store.map() {
            map.abandon(superseded);
        }
    }
}

impl NewMap<'_> {
    /// Frees the places that the map superseded. The superblock that names the map must be durable,
    /// and the log must have recorded that.
    pub fn release(mut self) {
        self.free();
    }

    fn free(&mut self) {
        let superseded = std::mem::take(&mut self.superseded);
        let (device, size) = (&self.store.device, self.store.page_size);
        if let Some(mut map) = self.store.map() {
            // Before anybody may write there.
            if !map.has_backups() {
                device.discard(&ranges_of(&superseded, size));
            }
            map.release(superseded);
        }
    }
}

/// Returns the byte ranges of the file that `spots` take.
pub(super) fn ranges_of(spots: &[Spot], size: PageSize) -> Vec<Range<u64>> {
    let range = |spot: &Spot| spot.offset(size)..spot.offset(size) + spot.bytes(size) as u64;
    spots.iter().map(range).collect()
}

/// A node being written.
struct Written {
    index: u64,
    entry: MapEntry,
}

impl PageStore {
    /// Writes the changed nodes of the page map; `None` if pages are written in place. Earlier
    /// writes become durable with the same sync as the map. The caller ensures that one thread at a
    /// time does this.
    ///
    /// # Errors
    /// There is no room for it, or the device fails. The last map stays valid.
    pub fn write_map(&self) -> Result<Option<NewMap<'_>>, WriteError> {
        let _gate = self.usable()?;
        self.write_map_now()
    }

    pub(super) fn write_map_now(&self) -> Result<Option<NewMap<'_>>, WriteError> {
        let Some((superseded, ids)) = self.map().map(|mut map| (map.begin(), map.ids())) else {
            return Ok(None);
        };
        let mut new = NewMap { store: self, root: MapEntry::NONE, ids, superseded };
        let counts = nodes_by_level(self.page_size, ids);
        let mut buffer = AlignedBuffer::new(BATCH * self.page_size.bytes());
        for (level, count) in counts.iter().enumerate() {
            let mut next = 0;
            while next < *count {
                next = self.write_nodes(level, next..*count, &mut buffer, &mut new.superseded)?;
            }
            if level == 0 {
                // Ids may have been added since, and the last leaf has their pages.
                let most = count * per_node(self.page_size);
                new.ids = self.map().map_or(ids, |map| map.ids().min(most));
            }
        }
        new.root = self.map().map_or(MapEntry::NONE, |map| map.node(counts.len() - 1, 0));
        Ok(Some(new))
    }

    /// Writes some dirty nodes of a level; returns the index to continue from.
    fn write_nodes(
        &self,
        level: usize,
        range: Range<u64>,
        buffer: &mut AlignedBuffer,
        superseded: &mut Vec<Spot>,
    ) -> Result<u64, WriteError> {
        let Some(dirty) = self.map().map(|map| map.dirty_in(level, &range, BATCH)) else {
            return Ok(range.end);
        };
        let next = dirty.last().filter(|_| dirty.len() == BATCH).map_or(range.end, |last| last + 1);
        let spots = self.take_spots(&vec![None; dirty.len()], 0)?;
        let mut batch = Vec::with_capacity(dirty.len());
        if let Some(mut map) = self.map() {
            let mut pages = buffer.chunks_mut(self.page_size.bytes());
            for (index, spot) in dirty.into_iter().zip(spots) {
                let entries = map.clean(level, index);
                if entries.iter().all(|entry| *entry == MapEntry::NONE) {
                    superseded.extend(map.place_node(level, index, MapEntry::NONE));
                    map.give_back(spot);
                    continue;
                }
                let Some(page) = pages.next() else { break };
                let entry = write_node(level as u8, index, entries.into_iter(), spot, page);
                batch.push(Written { index, entry });
            }
        }
        self.write_batch_of_nodes(level, &batch, buffer, superseded)?;
        Ok(next)
    }

    fn write_batch_of_nodes(
        &self,
        level: usize,
        batch: &[Written],
        buffer: &AlignedBuffer,
        superseded: &mut Vec<Spot>,
    ) -> Result<(), WriteError> {
        let size = self.page_size.bytes();
        let parts: Vec<[IoSlice<'_>; 1]> =
            buffer.chunks(size).take(batch.len()).map(|page| [IoSlice::new(page)]).collect();
        let mut requests: Vec<WriteRequest<'_, '_>> = batch
            .iter()
            .zip(&parts)
            .map(|(written, parts)| {
                WriteRequest::new(
                    written.entry.spot().map_or(0, |spot| spot.offset(self.page_size)),
                    parts,
                )
            })
            .collect();
        if !requests.is_empty() {
            Counters::add(&self.counters.write_requests, requests.len());
            Counters::add(&self.counters.map_writes, requests.len());
            self.device.write_batch(&mut requests);
        }
        let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        let failed = results.iter().find_map(|result| result.clone().err());
        let Some(mut map) = self.map() else { return Ok(()) };
        for (written, result) in batch.iter().zip(results) {
            match result {
                Ok(()) => superseded.extend(map.place_node(level, written.index, written.entry)),
                Err(_) => {
                    map.soil(level, written.index);
                    // The bytes there are undefined, and nothing refers to them.
                    superseded.extend(written.entry.spot());
                }
            }
        }
        match failed {
            None => Ok(()),
            Some(error) => Err(WriteError::Map(error)),
        }
    }

    /// Makes the present page map durable without another checkpoint, so that the places it
    /// supersedes are free. A recovery uses this, and may restart at any time. `lsn` is that of a
    /// durable record logged for the map. `note` makes the log record that the superblock of a
    /// generation is durable.
    ///
    /// # Errors
    /// There is no room for it, or the device fails; or `note` fails.
    pub fn save_map<E: From<WriteError>>(
        &self,
        lsn: Lsn,
        note: impl FnOnce(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let _one = self.saving.lock().past_poison();
        let (position, root) = (self.log_position(), self.catalog_root());
        let Some(map) = self.write_map()? else { return Ok(()) };
        self.sync().map_err(not_synced)?;
        let named = self.name_checkpoint(position, lsn, root, Some(&map));
        let generation = named.map_err(not_synced)?;
        note(generation)?;
        map.release();
        Ok(())
    }

    /// Keeps the places of the next durable map, and of later ones, until the guard is dropped.
    pub(crate) fn pin_places(&self) -> PlacesPin<'_> {
        if let Some(mut map) = self.map() {
            map.pin();
        }
        PlacesPin(self)
    }

    /// Returns `true` if a map should be made durable soon: `most_bytes` of places wait for one, or
    /// a page found no free place.
    pub fn wants_map(&self, most_bytes: u64) -> bool {
        let most_bytes = most_bytes.min(self.device.superseded_max());
        self.map().is_some_and(|map| map.wants_map(most_bytes))
    }

    /// Returns the bytes of memory that the page map takes.
    pub fn map_bytes(&self) -> u64 {
        self.map().map_or(0, |map| map.bytes())
    }

    /// Returns the bytes of the file that become free with the next durable map.
    pub fn superseded_bytes(&self) -> u64 {
        self.map().map_or(0, |map| map.superseded_bytes())
    }

    /// Takes room for pages of these lengths ([`PageMap::take_spots`]) and leaves `reserve` places
    /// free. Makes the file longer if there are too few.
    pub(super) fn take_spots(
        &self,
        lengths: &[Option<u64>],
        reserve: u64,
    ) -> Result<Vec<Spot>, WriteError> {
        loop {
            let take = |map: &mut PageMap| map.take_spots(lengths, reserve).ok_or(map.places());
            let Some(taken) = self.map().map(|mut map| take(&mut map)) else {
                return Ok(Vec::new());
            };
            let places = match taken {
                Ok(taken) => return Ok(taken),
                Err(places) => places,
            };
            if let Err(error) = self.grow_places(places, lengths.len() as u64 + reserve, Need::Now)
            {
                if let Some(mut map) = self.map() {
                    map.starve();
                }
                return Err(WriteError::NoPlace(error));
            }
        }
    }
}

/// Keeps the places of durable maps until it is dropped.
pub(crate) struct PlacesPin<'s>(&'s PageStore);

impl Drop for PlacesPin<'_> {
    fn drop(&mut self) {
        if let Some(mut map) = self.0.map() {
            map.unpin();
        }
    }
}

fn not_synced(error: SyncError) -> WriteError {
    match error {
        SyncError::Device(error) => WriteError::Map(error),
        SyncError::FailedBefore { path } => WriteError::NotSynced { path },
        SyncError::ReadOnly => WriteError::ReadOnly,
        SyncError::Closed => WriteError::Closed,
    }
}
