//! A RAID-5 array behind a controller with a write-back cache.
//!
//! A write is done when the cache, which has a battery, holds it. The cache is flushed stripe by
//! stripe in ascending order, at regular intervals, and immediately if it is fuller than some
//! share. A read goes to the disks if the cache holds no part of it; read data are not kept
//! (*direct I/O*, the default of such controllers). On each disk, reads for the host go before
//! requests of the flush, by the rule of [`Elevator`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use super::device::Device;
use super::disk::DiskSpec;
use super::queue::Elevator;
use super::raid::{Part, Raid};
use super::request::{Nanos, Request, SECTOR};
use super::single::Single;

/// Specification of an array.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArraySpec {
    /// Layout of the array.
    pub raid: Raid,
    /// Disks of the array.
    pub disk: DiskSpec,
    /// Maximum number of requests that a drive holds.
    pub tags: usize,
    /// Sectors of a cache block; requests are multiples of it.
    pub block: u64,
    /// Bytes of the write-back cache.
    pub cache: u64,
    /// Share of the cache from which it is flushed immediately.
    pub high: f64,
    /// Time between two flushes.
    pub flush: Nanos,
    /// Number of stripes that are flushed at the same time.
    pub stripes: usize,
    /// Time of the controller and the bus per request.
    pub overhead: Nanos,
}

impl ArraySpec {
    /// Returns the thesis' array (li 4.4.2.2): four disks, units of 64 KiB, 256 MB of write-back
    /// cache. The flush parameters are ours: every four seconds, immediately from 80 % on, and
    /// eight stripes at a time.
    pub fn new(block: u64) -> ArraySpec {
        ArraySpec {
            raid: Raid { disks: 4, unit: 64 * 1024 / SECTOR },
            disk: DiskSpec::default(),
            tags: 1,
            block: block.max(1),
            cache: 256 << 20,
            high: 0.8,
            flush: 4_000_000_000,
            stripes: 8,
            overhead: 150_000,
        }
    }
}

/// Cause of a disk request.
#[derive(Clone, Copy)]
enum Cause {
    Read(u64),
    Flush(u64),
}

/// A stripe during its flush.
struct Flushing {
    blocks: Vec<u64>,
    writes: Vec<Part>,
    outstanding: usize,
}

/// An array with its state.
pub struct Array {
    spec: ArraySpec,
    disks: Vec<Single>,
    dirty: BTreeSet<u64>,
    /// Blocks on their way to the disks.
    leaving: HashSet<u64>,
    /// Remaining stripes of the current flush.
    to_flush: VecDeque<u64>,
    flushing: BTreeMap<u64, Flushing>,
    next_flush: Option<Nanos>,
    /// Writes for which the cache has no room.
    waiting: VecDeque<Request>,
    causes: HashMap<u64, Cause>,
    ids: u64,
    /// Number of pending parts of each host read.
    reads: HashMap<u64, usize>,
    done: BinaryHeap<Reverse<(Nanos, u64)>>,
    disk_reads: u64,
    disk_writes: u64,
}

impl Array {
    /// Creates an array with an empty cache.
    pub fn new(spec: ArraySpec) -> Array {
        let disk = || Single::new(spec.disk, Elevator::default(), spec.tags);
        Array {
            disks: (0..spec.raid.disks).map(|_| disk()).collect(),
            spec,
            dirty: BTreeSet::new(),
            leaving: HashSet::new(),
            to_flush: VecDeque::new(),
            flushing: BTreeMap::new(),
            next_flush: None,
            waiting: VecDeque::new(),
            causes: HashMap::new(),
            ids: 0,
            reads: HashMap::new(),
            done: BinaryHeap::new(),
            disk_reads: 0,
            disk_writes: 0,
        }
    }

    /// Returns the read and write requests of its disks so far.
    pub fn disk_requests(&self) -> (u64, u64) {
        (self.disk_reads, self.disk_writes)
    }

    fn blocks(&self, request: &Request) -> std::ops::Range<u64> {
        request.sector / self.spec.block
            ..(request.sector + request.sectors).div_ceil(self.spec.block)
    }

    fn has(&self, block: u64) -> bool {
        self.dirty.contains(&block) || self.leaving.contains(&block)
    }

    fn room(&self) -> u64 {
        self.spec.cache / (self.spec.block * SECTOR)
    }

    fn used(&self) -> u64 {
        (self.dirty.len() + self.leaving.len()) as u64
    }

    /// Takes a write into the cache, if there is room; returns `false` if not. An empty cache
    /// takes even a write that is larger than the cache.
    fn accept(&mut self, now: Nanos, request: &Request) -> bool {
        let new = self.blocks(request).filter(|block| !self.dirty.contains(block)).count() as u64;
        if self.used() + new > self.room() && self.used() > 0 {
            return false;
        }
        self.dirty.extend(self.blocks(request));
        self.done.push(Reverse((now + self.spec.overhead, request.id)));
        if self.next_flush.is_none_or(|at| at < now) {
            self.next_flush = Some(now + self.spec.flush);
        }
        true
    }

    fn ask_disk(&mut self, now: Nanos, part: &Part, is_write: bool, cause: Cause) {
        self.ids += 1;
        self.causes.insert(self.ids, cause);
        *(if is_write { &mut self.disk_writes } else { &mut self.disk_reads }) += 1;
        let Part { disk, sector, sectors } = *part;
        self.disks[disk].submit(now, Request { sector, sectors, is_write, id: self.ids });
    }

    fn stripe_of(&self, block: u64) -> u64 {
        block * self.spec.block / self.spec.raid.stripe_sectors()
    }

    /// Starts a flush of all dirty blocks, if none is running.
    fn begin_flush(&mut self, now: Nanos) {
        if !self.to_flush.is_empty() {
            return;
        }
        let mut stripes: Vec<u64> = self.dirty.iter().map(|block| self.stripe_of(*block)).collect();
        stripes.dedup();
        self.to_flush = stripes.into();
        self.flush_on(now);
    }

    /// Flushes further stripes, up to the number that may run at a time.
    fn flush_on(&mut self, now: Nanos) {
        while self.flushing.len() < self.spec.stripes.max(1)
            && let Some(stripe) = self.to_flush.pop_front()
        {
            if !self.flushing.contains_key(&stripe) {
                self.flush_stripe(now, stripe);
            }
        }
    }

    fn flush_stripe(&mut self, now: Nanos, stripe: u64) {
        let (block, sectors) = (self.spec.block, self.spec.raid.stripe_sectors());
        let first = (stripe * sectors).div_ceil(block);
        let end = ((stripe + 1) * sectors).div_ceil(block);
        let blocks: Vec<u64> = self.dirty.range(first..end).copied().collect();
        let ranges: Vec<_> = blocks
            .iter()
            .map(|at| at * block - stripe * sectors..(at + 1) * block - stripe * sectors)
            .collect();
        if ranges.is_empty() {
            return;
        }
        for at in &blocks {
            self.dirty.remove(at);
            self.leaving.insert(*at);
        }
        let plan = self.spec.raid.write(stripe, &ranges);
        let outstanding = plan.reads.len();
        self.flushing.insert(stripe, Flushing { blocks, writes: plan.writes, outstanding });
        for part in &plan.reads {
            self.ask_disk(now, part, false, Cause::Flush(stripe));
        }
        if plan.reads.is_empty() {
            self.flushed(now, stripe);
        }
    }

    /// Continues with a stripe whose pending reads or writes are done.
    fn flushed(&mut self, now: Nanos, stripe: u64) {
        let Some(flushing) = self.flushing.get_mut(&stripe) else { return };
        let writes = std::mem::take(&mut flushing.writes);
        flushing.outstanding = writes.len();
        if !writes.is_empty() {
            for part in &writes {
                self.ask_disk(now, part, true, Cause::Flush(stripe));
            }
            return;
        }
        if let Some(flushing) = self.flushing.remove(&stripe) {
            flushing.blocks.iter().for_each(|block| {
                self.leaving.remove(block);
            });
        }
        while let Some(request) = self.waiting.front().copied()
            && self.accept(now, &request)
        {
            self.waiting.pop_front();
        }
        self.flush_on(now);
        self.flush_if_full(now);
    }

    fn flush_if_full(&mut self, now: Nanos) {
        let full = self.used() as f64 > self.room() as f64 * self.spec.high;
        if full || !self.waiting.is_empty() {
            self.begin_flush(now);
        }
    }

    fn disk_done(&mut self, now: Nanos, id: u64) {
        match self.causes.remove(&id) {
            None => {}
            Some(Cause::Read(of)) => {
                let left = self.reads.get_mut(&of).map_or(0, |left| {
                    *left -= 1;
                    *left
                });
                if left == 0 {
                    self.reads.remove(&of);
                    self.done.push(Reverse((now, of)));
                }
            }
            Some(Cause::Flush(stripe)) => {
                let left = self.flushing.get_mut(&stripe).map_or(0, |flushing| {
                    flushing.outstanding -= 1;
                    flushing.outstanding
                });
                if left == 0 {
                    self.flushed(now, stripe);
                }
            }
        }
    }
}

impl Device for Array {
    fn submit(&mut self, now: Nanos, request: Request) {
        if request.is_write {
            if !self.waiting.is_empty() || !self.accept(now, &request) {
                self.waiting.push_back(request);
            }
            self.flush_if_full(now);
        } else if self.blocks(&request).all(|block| self.has(block)) {
            self.done.push(Reverse((now + self.spec.overhead, request.id)));
        } else {
            let parts = self.spec.raid.parts(request.sector, request.sectors);
            self.reads.insert(request.id, parts.len());
            for part in &parts {
                self.ask_disk(now + self.spec.overhead, part, false, Cause::Read(request.id));
            }
        }
    }

    fn next(&self) -> Option<Nanos> {
        let done = self.done.peek().map(|Reverse((at, _))| *at);
        let flush = self.next_flush.filter(|_| !self.dirty.is_empty());
        let disks = self.disks.iter().filter_map(Device::next);
        disks.chain(done).chain(flush).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<u64>) {
        if self.next_flush.is_some_and(|at| at <= now) {
            self.next_flush = Some(now + self.spec.flush);
            self.begin_flush(now);
        }
        let mut ids = Vec::new();
        for disk in &mut self.disks {
            disk.advance(now, &mut ids);
        }
        for id in ids {
            self.disk_done(now, id);
        }
        while let Some(Reverse((at, id))) = self.done.peek().copied()
            && at <= now
        {
            self.done.pop();
            done.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 32;

    fn write(page: u64, pages: u64) -> Request {
        let (sector, sectors) = (page * BLOCK, pages * BLOCK);
        Request { sector, sectors, is_write: true, id: page }
    }

    fn read(page: u64) -> Request {
        Request { is_write: false, id: 1_000_000 + page, ..write(page, 1) }
    }

    /// Runs until the array is idle; returns the time of the last request's completion, and the
    /// time of idleness.
    fn finish(array: &mut Array, requests: usize) -> (Nanos, Nanos) {
        let (mut done, mut last, mut now) = (Vec::new(), 0, 0);
        while let Some(next) = array.next() {
            now = next;
            array.advance(now, &mut done);
            if done.len() < requests {
                last = now;
            }
        }
        let ids: HashSet<u64> = done.iter().copied().collect();
        assert_eq!((done.len(), ids.len()), (requests, requests), "each once");
        assert!(array.dirty.is_empty() && array.leaving.is_empty() && array.waiting.is_empty());
        (last, now)
    }

    #[test]
    fn a_small_write_costs_two_reads_and_two_writes_after_a_flush_and_a_stripe_four_writes() {
        let mut array = Array::new(ArraySpec::new(BLOCK));
        array.submit(0, write(3, 1));
        let (_, end) = finish(&mut array, 1);
        assert_eq!(array.disk_requests(), (2, 2));
        assert!((4_000_000_000..4_050_000_000).contains(&end), "{end}");
        let mut array = Array::new(ArraySpec::new(BLOCK));
        array.submit(0, write(12, 12));
        finish(&mut array, 1);
        assert_eq!(array.disk_requests(), (0, 4));
    }

    #[test]
    fn rewritten_pages_are_flushed_once_and_are_read_from_the_cache() {
        let mut array = Array::new(ArraySpec::new(BLOCK));
        for at in 0..10 {
            array.submit(at, Request { id: at, ..write(7, 1) });
        }
        array.submit(10, read(7));
        finish(&mut array, 11);
        assert_eq!(array.disk_requests(), (2, 2));
        array.submit(5_000_000_000, read(7));
        let mut done = Vec::new();
        while let Some(next) = array.next() {
            array.advance(next, &mut done);
        }
        assert_eq!((done.len(), array.disk_requests()), (1, (3, 2)), "it is no longer there");
    }

    #[test]
    fn a_full_cache_makes_writes_wait_and_nothing_is_lost() {
        let cache = 64 * BLOCK * SECTOR;
        let small = ArraySpec { cache, ..ArraySpec::new(BLOCK) };
        let mut rng = fastrand::Rng::with_seed(3);
        let mut pages: Vec<u64> = (0..50_000).collect();
        rng.shuffle(&mut pages);
        pages.truncate(2000);
        let mut times = Vec::new();
        for spec in [small, ArraySpec::new(BLOCK)] {
            let mut array = Array::new(spec);
            for (at, page) in pages.iter().enumerate() {
                array.submit(at as u64, write(*page, 1));
                if at % 5 == 0 {
                    array.submit(at as u64, read(*page + 1_000_000));
                }
            }
            times.push(finish(&mut array, 2400));
            let (_, writes) = array.disk_requests();
            // Some of the 2,000 pages share one of 4,167 stripes, and so a parity.
            assert!((3_300..4_000).contains(&writes), "{writes}");
        }
        assert!(times[0].0 > times[1].0, "{times:?}");
        assert!(times[0].0 > 1_000_000_000, "they wait for disks: {times:?}");
    }
}
