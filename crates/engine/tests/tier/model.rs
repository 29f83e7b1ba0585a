//! Random requests beside an array of bytes, while the cache's device fails in every way.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use fastrand::Rng;
use millpond_base::{PageId, Reason};
use millpond_device::{
    Device, Faults, FaultyDevice, MemoryDevice, ReadFault, ReadFaultDevice, ReadFaults,
    ReadRequest, Tag, WriteRequest,
};
use millpond_tier::{SecondTier, TierOptions};

use super::{PAGE, POLICIES, open_as, options, read};

const UNIT: u64 = 128;
const LENGTH: u64 = 24 * PAGE;

/// Pages of any length that lie anywhere, as compressed ones do, and bytes that are no pages.
struct World {
    tier: SecondTier,
    below: Arc<MemoryDevice>,
    bytes: Vec<u8>,
    random: Rng,
}

fn reason(random: &mut Rng) -> Reason {
    [Reason::Synch, Reason::Replace, Reason::Recov, Reason::None][random.usize(..4)]
}

impl World {
    fn range(&mut self) -> std::ops::Range<usize> {
        let units = self.random.u64(1..=PAGE / UNIT);
        let begin = self.random.u64(..(LENGTH - PAGE) / UNIT) * UNIT;
        begin as usize..(begin + units * UNIT) as usize
    }

    fn step(&mut self, is_disturbed: bool) {
        match self.random.u8(..20) {
            0..8 => self.read_some(),
            8..16 => self.write_some(),
            16 => {
                let range = self.range();
                let bytes: Vec<u8> = range.clone().map(|_| self.random.u8(..)).collect();
                self.tier.write(range.start as u64, &bytes).unwrap();
                self.bytes[range].copy_from_slice(&bytes);
            }
            17 => {
                let range = self.range();
                let mut bytes = vec![0; range.len()];
                self.tier.read(range.start as u64, &mut bytes).unwrap();
                assert_eq!(bytes, self.bytes[range]);
            }
            18 => {
                let bytes = [self.random.u8(..); 700];
                let at = self.random.usize(..self.bytes.len() - 700);
                self.tier.write(at as u64, &bytes).unwrap();
                self.bytes[at..at + 700].copy_from_slice(&bytes);
            }
            _ => {
                let range = self.range();
                self.tier.distrust(range.start as u64..range.end as u64);
            }
        }
        if !is_disturbed {
            self.tier.check().unwrap();
        }
    }

    /// Some pages that lie in a row, as one request; and others.
    fn read_some(&mut self) {
        let ranges: Vec<_> = (0..self.random.usize(1..4)).map(|_| self.range()).collect();
        let mut buffers: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut tags = Vec::new();
        for range in &ranges {
            let cut = self.random.usize(..=range.len() / UNIT as usize) * UNIT as usize;
            buffers.push(vec![vec![0; cut], vec![0; range.len() - cut]]);
            let places = [range.start, range.start + cut];
            tags.push(places.map(|at| Tag { page: PageId(at as u64), reason: Reason::None }));
        }
        let mut parts: Vec<Vec<IoSliceMut<'_>>> = (buffers.iter_mut())
            .map(|parts| parts.iter_mut().map(|part| IoSliceMut::new(part)).collect())
            .collect();
        let mut requests: Vec<ReadRequest<'_, '_>> = (parts.iter_mut().zip(&ranges).zip(&tags))
            .map(|((parts, range), tags)| ReadRequest::new(range.start as u64, parts).tagged(tags))
            .collect();
        self.tier.read_batch(&mut requests);
        assert!(requests.iter().all(|request| request.result.is_ok()));
        for (parts, range) in buffers.iter().zip(ranges) {
            assert_eq!(parts.concat(), self.bytes[range]);
        }
    }

    fn write_some(&mut self) {
        let range = self.range();
        let bytes: Vec<u8> = range.clone().map(|_| self.random.u8(..)).collect();
        let cut = self.random.usize(..=range.len() / UNIT as usize) * UNIT as usize;
        let reason = reason(&mut self.random);
        let tags = [0, cut].map(|at| Tag { page: PageId((range.start + at) as u64), reason });
        let tags = if self.random.u8(..8) == 0 { &tags[..1] } else { &tags[..] };
        let (one, other) = bytes.split_at(cut);
        let parts = [IoSlice::new(one), IoSlice::new(other)];
        let mut requests = [WriteRequest::new(range.start as u64, &parts).tagged(tags)];
        self.tier.write_batch(&mut requests);
        assert!(requests[0].result.is_ok());
        self.bytes[range].copy_from_slice(&bytes);
    }
}

fn world(fast: Arc<dyn Device>, seed: u64) -> World {
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; LENGTH as usize]));
    let mut random = Rng::with_seed(seed);
    let pages = [9, 20, 100, 1000][random.usize(..4)];
    let options = TierOptions { unit: UNIT as u32, ..options(pages) };
    let policy = POLICIES[random.usize(..POLICIES.len())];
    let tier = open_as(below.clone(), fast, &options, policy, None).unwrap();
    World { tier, below, bytes: vec![0; LENGTH as usize], random }
}

#[test]
fn what_is_read_is_what_was_written_last() {
    for seed in 0..60 {
        let mut world = world(Arc::new(MemoryDevice::new()), seed);
        (0..1500).for_each(|_| world.step(false));
        assert_eq!(world.below.to_bytes(), world.bytes, "storage is whole without the cache");
        let counts = world.tier.counts();
        assert_eq!((counts.errors, counts.is_off), (0, false));
        assert!(counts.served > 10 && counts.fills > 50, "{counts:?}");
    }
}

#[test]
fn a_cache_that_errs_loses_writes_flips_bits_or_is_full_changes_no_answer() {
    let (mut served, mut mismatches, mut errors, mut off) = (0, 0, 0, 0);
    for seed in 0..60 {
        let fast = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), seed));
        let mut world = world(fast.clone(), seed);
        if seed % 7 == 0 {
            fast.limit_room(16384);
        }
        let often = if seed % 5 == 0 { 0.9 } else { 0.02 };
        fast.set_faults(Faults {
            read_error: often,
            write_error: often,
            torn_write: 0.05,
            lost_write: 0.05,
            bit_flip: 0.05,
            ..Faults::default()
        });
        (0..1500).for_each(|_| world.step(false));
        assert_eq!(world.below.to_bytes(), world.bytes);
        let counts = world.tier.counts();
        (served, mismatches) = (served + counts.served, mismatches + counts.mismatches);
        (errors, off) = (errors + counts.errors, off + u64::from(counts.is_off));
    }
    assert!(served > 800 && mismatches > 500 && errors > 500, "{served} {mismatches} {errors}");
    assert!((5..40).contains(&off), "{off} tiers are out of use");
}

#[test]
fn copies_that_are_another_pages_or_older_are_noticed() {
    for seed in 0..30 {
        let fast = ReadFaultDevice::new(Arc::new(MemoryDevice::new()), PAGE as usize);
        let fast = Arc::new(fast);
        let mut world = world(fast.clone(), seed);
        let (kinds, pages) = (ReadFault::ALL.to_vec(), None);
        fast.set_faults(ReadFaults { share: 0.3, kinds, pages, persists: seed % 2 == 0 }, seed);
        (0..1500).for_each(|_| world.step(false));
        let counts = world.tier.counts();
        assert!(counts.mismatches > 0 || counts.is_off, "{counts:?}");
        assert!(fast.struck() > 0);
    }
}

#[test]
fn a_cache_whose_device_is_full_has_the_copies_that_it_has_room_for() {
    let fast = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 1));
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; LENGTH as usize]));
    let tier = open_as(below.clone(), fast.clone(), &options(600), "t2-lru", None).unwrap();
    // Of 24 pages, ten.
    fast.limit_room(10 * PAGE);
    let mut bytes = vec![0; PAGE as usize];
    for page in (0..24).chain(0..24) {
        read(&tier, page, &mut bytes).unwrap();
        tier.check().unwrap();
    }
    let counts = tier.counts();
    assert_eq!((counts.served, counts.read_hits, counts.is_off), (10, 24, false), "{counts:?}");
}
