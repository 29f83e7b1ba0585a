//! Images of a device's writes that a crash may leave.
//!
//! The contract of a device is small: synced bytes are durable. Of each later write any part may
//! land, sector by sector of 512 bytes, and independently of all other writes. So a later write may
//! be there and an earlier one not. Writes to the same sector keep their order: a read returns the
//! last of those that landed. An unsynced length is either the old one or the new one. A sync that
//! fails makes nothing durable, and no later sync covers its writes. An operating system reports a
//! failed write-back once and then takes the pages for clean, so they must be written again. Every
//! image drawn here is one that the contract allows, and repeated draws reach all of them.

use std::ops::Range;

use crate::memory::MemoryDevice;

/// Bytes that a drive writes whole or not at all.
pub(crate) const SECTOR: usize = 512;

/// A write, or a part of one, that no sync has covered yet.
#[derive(Debug)]
struct Pending {
    offset: u64,
    bytes: Vec<u8>,
    /// Set if a sync has failed since: none will cover the write any more.
    is_given_up: bool,
}

impl Pending {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Returns the overlap with `range`, as offsets in the device and as offsets in this write.
    fn overlap(&self, range: &Range<u64>) -> (Range<u64>, Range<usize>) {
        let from = range.start.clamp(self.offset, self.end());
        let to = range.end.clamp(from, self.end());
        (from..to, (from - self.offset) as usize..(to - self.offset) as usize)
    }

    /// Returns the parts outside `range`.
    fn without(self, range: &Range<u64>) -> Vec<Pending> {
        let (inside, part) = self.overlap(range);
        if inside.is_empty() {
            return vec![self];
        }
        let rest =
            [(self.offset, &self.bytes[..part.start]), (inside.end, &self.bytes[part.end..])];
        let pending = |(offset, bytes): (u64, &[u8])| Pending {
            offset,
            bytes: bytes.to_vec(),
            is_given_up: self.is_given_up,
        };
        rest.into_iter().filter(|(_, bytes)| !bytes.is_empty()).map(pending).collect()
    }
}

/// Everything that happened to a device since a known state.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The durable bytes.
    durable: Vec<u8>,
    /// Later writes, in their order.
    pending: Vec<Pending>,
    /// Set if some of them may be given up.
    has_given_up: bool,
    /// Present length of the device.
    length: u64,
    /// The lowest length since the last sync, if that is less than the durable length. Durable
    /// bytes beyond it may be gone, or zeros.
    cut: Option<u64>,
}

impl Journal {
    /// Returns a journal that begins with the durable `content`.
    pub(crate) fn new(content: Vec<u8>) -> Journal {
        let length = content.len() as u64;
        Journal { durable: content, pending: Vec::new(), has_given_up: false, length, cut: None }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.pending.push(Pending { offset, bytes: bytes.to_vec(), is_given_up: false });
        }
    }

    pub(crate) fn grow(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    pub(crate) fn shrink(&mut self, length: u64) {
        self.length = self.length.min(length);
        self.cut = Some(self.cut.map_or(length, |cut| cut.min(length)));
        // Nobody reads them any more, whether they landed or not.
        for write in std::mem::take(&mut self.pending) {
            self.pending.extend(write.without(&(length..u64::MAX)));
        }
    }

    /// Makes the length durable.
    fn sync_length(&mut self) {
        if let Some(cut) = self.cut.take() {
            self.durable.truncate(cut as usize);
        }
        self.durable.resize(self.length as usize, 0);
    }

    /// Makes everything durable.
    pub(crate) fn sync(&mut self) {
        self.sync_length();
        for write in std::mem::take(&mut self.pending) {
            let whole = write.offset..write.end();
            self.split(write, &whole);
        }
        self.has_given_up = !self.pending.is_empty();
    }

    /// Records a failed sync.
    pub(crate) fn fail_sync(&mut self) {
        self.pending.iter_mut().for_each(|write| write.is_given_up = true);
        self.has_given_up = !self.pending.is_empty();
    }

    /// Makes the bytes written into `ranges` durable, and the length.
    pub(crate) fn sync_ranges(&mut self, ranges: &[Range<u64>]) {
        self.sync_length();
        for range in ranges {
            for write in std::mem::take(&mut self.pending) {
                self.split(write, range);
            }
        }
    }

    /// Applies the part of `write` inside `range` and keeps the parts outside; keeps all of it if
    /// it was given up. Earlier bytes in the same place are gone.
    fn split(&mut self, write: Pending, range: &Range<u64>) {
        if write.is_given_up {
            return self.pending.push(write);
        }
        let (inside, part) = write.overlap(range);
        if inside.is_empty() {
            return self.pending.push(write);
        }
        put(&mut self.durable, inside.start, &write.bytes[part]);
        // For other writes, the parts inside the range were applied before.
        let earlier = if self.has_given_up { std::mem::take(&mut self.pending) } else { vec![] };
        for earlier in earlier {
            earlier.without(&inside).into_iter().for_each(|rest| self.pending.push(rest));
        }
        write.without(&inside).into_iter().for_each(|rest| self.pending.push(rest));
    }

    /// Flips bits in the durable bytes.
    pub(crate) fn flip(&mut self, offset: u64, mask: u8) {
        if let Some(byte) = self.durable.get_mut(offset as usize) {
            *byte ^= mask;
        }
    }

    /// Returns one of the images that the contract allows, drawn by `random`; with `lean`, one of
    /// that kind.
    pub(crate) fn image(&self, lean: Option<Lean>, random: &mut fastrand::Rng) -> MemoryDevice {
        let mut image = self.durable.clone();
        if let Some(cut) = self.cut.filter(|_| random.bool()) {
            image.truncate(cut as usize);
        }
        if random.bool() && self.length > image.len() as u64 {
            image.resize(self.length as usize, 0);
        }
        if let Some(lean) = lean.filter(|_| !self.pending.is_empty()) {
            let kept = self.kept(lean, random);
            for (write, kept) in self.pending.iter().zip(kept) {
                land(&mut image, write, if kept { Fate::Kept } else { Fate::Lost }, random);
            }
            return MemoryDevice::from_bytes(&image);
        }
        // Most images are mixed; pure ones would hardly be drawn otherwise.
        let fate = random.u8(0..8);
        for write in &self.pending {
            let fate = match fate {
                0 => Fate::Kept,
                1 => Fate::Lost,
                _ => [Fate::Kept, Fate::Lost, Fate::Prefix, Fate::Scattered][random.usize(0..4)],
            };
            land(&mut image, write, fate, random);
        }
        MemoryDevice::from_bytes(&image)
    }

    /// Chooses the pending writes that land; there must be at least one.
    fn kept(&self, lean: Lean, random: &mut fastrand::Rng) -> Vec<bool> {
        let count = self.pending.len();
        let lowest = self.pending.iter().map(|write| write.offset).min();
        let drawn = random.usize(..count);
        let is_meant = |(at, write): (usize, &Pending)| match lean.what {
            Part::All => true,
            Part::Newest => at + 1 == count,
            Part::Lowest => Some(write.offset) == lowest,
            Part::One => at == drawn,
            Part::Beginning => at <= drawn,
        };
        self.pending.iter().enumerate().map(|each| is_meant(each) != lean.is_reversed).collect()
    }
}

/// A part of the pending writes.
#[derive(Clone, Copy, Debug)]
enum Part {
    All,
    Newest,
    /// The writes at the lowest offset: the superblock of a store, the header or the oldest segment
    /// of a log.
    Lowest,
    One,
    Beginning,
}

/// Crashes that chance would hardly produce: of many writes, just some part lands whole, or
/// everything else does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lean {
    what: Part,
    is_reversed: bool,
}

impl Lean {
    pub(crate) fn draw(random: &mut fastrand::Rng) -> Lean {
        let parts = [Part::All, Part::Newest, Part::Lowest, Part::One, Part::Beginning];
        Lean { what: parts[random.usize(..parts.len())], is_reversed: random.bool() }
    }
}

/// Effect of a crash on a write that was not synced.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Lost,
    /// Torn: the first sectors landed.
    Prefix,
    /// Torn: some sectors landed.
    Scattered,
}

fn land(image: &mut [u8], write: &Pending, fate: Fate, random: &mut fastrand::Rng) {
    let sectors = write.bytes.len().div_ceil(SECTOR);
    let prefix = match fate {
        Fate::Kept => sectors,
        Fate::Lost | Fate::Scattered => 0,
        Fate::Prefix => random.usize(0..sectors),
    };
    for (at, sector) in write.bytes.chunks(SECTOR).enumerate() {
        if at < prefix || (matches!(fate, Fate::Scattered) && random.bool()) {
            put(image, write.offset + (at * SECTOR) as u64, sector);
        }
    }
}

/// Copies `bytes` into `image` at `offset`; bytes beyond its end are dropped.
fn put(image: &mut [u8], offset: u64, bytes: &[u8]) {
    let Some(room) = image.get_mut(offset as usize..) else { return };
    let count = room.len().min(bytes.len());
    room[..count].copy_from_slice(&bytes[..count]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn images(journal: &Journal) -> BTreeSet<Vec<u8>> {
        let image = |seed| journal.image(None, &mut fastrand::Rng::with_seed(seed)).to_bytes();
        (0..400).map(image).collect()
    }

    #[test]
    fn what_was_synced_is_in_every_image() {
        let mut journal = Journal::new(vec![0; 1024]);
        journal.write(0, &[1; 1024]);
        journal.sync();
        assert_eq!(images(&journal), BTreeSet::from([vec![1; 1024]]));
        journal.write(512, &[2; 512]);
        journal.write(0, &[3; 512]);
        journal.sync_ranges(&[0..100, 100..512]);
        let expected = [[3, 1], [3, 2]].map(|[a, b]| [vec![a; 512], vec![b; 512]].concat());
        assert_eq!(images(&journal), BTreeSet::from(expected));
    }

    #[test]
    fn every_subset_of_unsynced_sectors_is_reached_and_nothing_else() {
        let mut journal = Journal::new(vec![0; 1536]);
        journal.write(0, &[[1; 512], [2; 512]].concat());
        journal.write(512, &[[3; 512], [4; 512]].concat());
        let images = images(&journal);
        for image in &images {
            assert!([0, 1].contains(&image[0]));
            assert!([0, 2, 3].contains(&image[512]));
            assert!([0, 4].contains(&image[1024]));
            assert!(image.chunks(512).all(|sector| sector.iter().all(|b| *b == sector[0])));
        }
        assert_eq!(images.len(), 2 * 3 * 2, "all of them are reached");
    }

    #[test]
    fn images_that_lean_have_a_part_of_the_writes_or_all_but_that() {
        let mut journal = Journal::new(vec![0; 1536]);
        [1024, 0, 512].into_iter().for_each(|at| journal.write(at, &[1; 512]));
        let draw = |what, is_reversed| -> BTreeSet<[u8; 3]> {
            let image = |seed| {
                let random = &mut fastrand::Rng::with_seed(seed);
                let image = journal.image(Some(Lean { what, is_reversed }), random).to_bytes();
                [image[0], image[512], image[1024]]
            };
            (0..60).map(image).collect()
        };
        let expected: [(Part, &[[u8; 3]]); 5] = [
            (Part::All, &[[1, 1, 1]]),
            (Part::Newest, &[[0, 1, 0]]),
            (Part::Lowest, &[[1, 0, 0]]),
            (Part::One, &[[0, 0, 1], [1, 0, 0], [0, 1, 0]]),
            (Part::Beginning, &[[0, 0, 1], [1, 0, 1], [1, 1, 1]]),
        ];
        for (what, images) in expected {
            assert_eq!(draw(what, false), images.iter().copied().collect(), "{what:?}");
            let others = images.iter().map(|image| image.map(|bit| 1 - bit)).collect();
            assert_eq!(draw(what, true), others, "all but {what:?}");
        }
    }

    #[test]
    fn a_range_that_cuts_a_write_makes_only_its_part_durable() {
        let mut journal = Journal::new(vec![0; 2048]);
        journal.write(0, &[7; 2048]);
        journal.sync_ranges(&[512..1024, 1536..1536, 900..1000]);
        for image in images(&journal) {
            assert!(image[512..1024].iter().all(|&b| b == 7));
        }
        assert_eq!(images(&journal).len(), 8);
    }

    #[test]
    fn what_a_failed_sync_was_to_cover_must_be_written_again() {
        let mut journal = Journal::new(vec![0; 1024]);
        journal.write(0, &[1; 1024]);
        journal.fail_sync();
        journal.sync();
        assert_eq!(images(&journal).len(), 4, "it is there or not, as before");
        journal.write(512, &[2; 512]);
        assert_eq!(images(&journal).len(), 2 * 3);
        journal.sync();
        let expected = [[0, 2], [1, 2]].map(|[a, b]| [vec![a; 512], vec![b; 512]].concat());
        assert_eq!(images(&journal), BTreeSet::from(expected));
        journal.write(0, &[3; 1024]);
        journal.sync_ranges(&[0..512, 512..1024]);
        assert_eq!(images(&journal), BTreeSet::from([vec![3; 1024]]));
    }

    #[test]
    fn a_length_that_was_not_synced_is_the_old_or_the_new_one() {
        let mut journal = Journal::new(vec![5; 512]);
        journal.grow(1024);
        journal.write(512, &[6; 512]);
        let lengths: BTreeSet<usize> = images(&journal).iter().map(Vec::len).collect();
        assert_eq!(lengths, BTreeSet::from([512, 1024]));
        journal.sync();
        assert_eq!(images(&journal).len(), 1);
    }
}
