//! Reads return the written data, through every layer. Several connections, each with its own part
//! of the volume, send any requests, checked against an array of bytes.

use std::io::{IoSlice, IoSliceMut};

use millpond_base::{PageId, Reason};
use millpond_device::{Device, ReadRequest, Tag, WriteRequest};
use millpond_server::client::NbdDevice;
use millpond_server::serve::ServeOptions;
use millpond_server::volume::{Volume, VolumeSpec};

use crate::support::{Served, folder, spec};

/// Bytes of each thread's part: not a multiple of a block, so that threads share blocks.
const PART: u64 = 300_001;
const THREADS: u64 = 4;

fn random_range(random: &mut fastrand::Rng, from: u64) -> (u64, usize) {
    let most = if random.u8(..4) == 0 { 100_000 } else { 6000 };
    let length = random.u64(1..most);
    (from + random.u64(..PART - length), length as usize)
}

/// Sends random requests to `from..from + PART`, and nothing else.
fn play(device: &NbdDevice, from: u64, seed: u64, steps: u32, model: &mut [u8]) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..steps {
        let (offset, length) = random_range(&mut random, from);
        let at = (offset - from) as usize..(offset - from) as usize + length;
        match random.u8(..10) {
            0..4 => {
                let mut bytes = vec![0xaa; length];
                device.read(offset, &mut bytes).unwrap();
                assert!(bytes == model[at], "{length} bytes at {offset}, seed {seed}");
            }
            4..7 => {
                let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                device.write(offset, &bytes).unwrap();
                model[at].copy_from_slice(&bytes);
            }
            7 => {
                device.write_zeros(offset, length as u64).unwrap();
                model[at].fill(0);
            }
            8 => several(device, &mut random, from, model),
            _ => {
                device.sync().unwrap();
                device.sync_ranges(&[offset..offset + length as u64]).unwrap();
            }
        }
    }
    let mut all = vec![0; PART as usize];
    device.read(from, &mut all).unwrap();
    assert!(all == model, "seed {seed}");
}

/// Sends batches of requests, with and without a reason.
fn several(device: &NbdDevice, random: &mut fastrand::Rng, from: u64, model: &mut [u8]) {
    let count = random.usize(1..100);
    let length = random.usize(1..2500);
    let mut starts: Vec<u64> = (0..PART / 3000).map(|at| at * 3000).collect();
    random.shuffle(&mut starts);
    starts.truncate(count);
    let bytes: Vec<Vec<u8>> =
        starts.iter().map(|_| (0..length).map(|_| random.u8(..)).collect()).collect();
    let reasons = [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov];
    let reason = reasons[random.usize(..4)];
    let tags = [Tag { page: PageId(0), reason }; 2];
    let cut = random.usize(..length);
    let parts: Vec<[IoSlice<'_>; 2]> =
        bytes.iter().map(|b| [IoSlice::new(&b[..cut]), IoSlice::new(&b[cut..])]).collect();
    let mut writes: Vec<WriteRequest<'_, '_>> = (starts.iter().zip(&parts))
        .map(|(at, parts)| WriteRequest::new(from + at, parts).tagged(&tags))
        .collect();
    device.write_batch(&mut writes);
    writes.iter().for_each(|write| assert_eq!(write.result, Ok(())));
    let mut found = vec![vec![0; length]; starts.len()];
    let mut parts: Vec<[IoSliceMut<'_>; 2]> = (found.iter_mut())
        .map(|bytes| {
            let (one, other) = bytes.split_at_mut(cut);
            [IoSliceMut::new(one), IoSliceMut::new(other)]
        })
        .collect();
    let mut reads: Vec<ReadRequest<'_, '_>> =
        (starts.iter().zip(&mut parts)).map(|(at, p)| ReadRequest::new(from + at, p)).collect();
    device.read_batch(&mut reads);
    reads.iter().for_each(|read| assert_eq!(read.result, Ok(())));
    assert_eq!(found, bytes);
    for (at, bytes) in starts.iter().zip(bytes) {
        model[*at as usize..*at as usize + length].copy_from_slice(&bytes);
    }
}

/// Runs the threads with a write-back cache.
fn several_connections_write_back(cache: u64, block: u32, steps: u32) {
    let length = (THREADS * PART).next_multiple_of(64 << 10);
    let mut random = fastrand::Rng::with_seed(11);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    let mut folder = folder(&bytes);
    let through = spec(&folder, cache, block);
    let mut back = through.clone();
    back.cache.iter_mut().for_each(|cache| cache.write_back = true);
    for round in 0..2 {
        let volume = Volume::open(&back).unwrap();
        let served = Served::of(folder, volume, ServeOptions::default());
        std::thread::scope(|scope| {
            let parts = bytes.chunks_mut(PART as usize).take(THREADS as usize);
            for (at, model) in (0..).zip(parts) {
                let served = &served;
                scope.spawn(move || {
                    let device = served.client("");
                    play(&device, at * PART, at + 100 * round, steps, model);
                });
            }
        });
        let tier = served.volume.tier_counts().unwrap();
        assert!(tier.served > 0 && tier.dirty > 0 && tier.errors == 0, "{tier:?}");
        folder = served.close();
    }
    // Refused without the cache; with it and without write-back, the file has all data.
    let alone = VolumeSpec { cache: None, ..back.clone() };
    assert!(Volume::open(&alone).err().unwrap().to_string().contains("is not whole"));
    Volume::open(&through).unwrap().close().unwrap();
    assert!(std::fs::read(&back.backing).unwrap() == bytes, "the backing file has it all");
    Volume::open(&alone).unwrap().close().unwrap();
}

#[test]
fn several_connections_with_a_cache_that_keeps_what_is_written() {
    several_connections_write_back(16 << 20, 4096, 100);
    several_connections_write_back(600 << 10, 4096, 100);
    several_connections_write_back(600 << 10, 512, 40);
}

fn several_connections(cache: u64, block: u32, steps: u32) {
    let length = (THREADS * PART).next_multiple_of(64 << 10);
    let mut random = fastrand::Rng::with_seed(9);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    let served = Served::new(&bytes, cache, block);
    let exports = ["", "disk/synch", "disk/replace", "disk/recov"];
    std::thread::scope(|scope| {
        let parts = bytes.chunks_mut(PART as usize).take(THREADS as usize);
        for ((at, model), export) in (0..).zip(parts).zip(exports) {
            let served = &served;
            scope.spawn(move || {
                let device = served.client(export);
                assert!(device.has_hints());
                play(&device, at * PART, at + 100, steps, model);
            });
        }
    });
    let counts = served.volume.counts();
    assert!(counts.partial_blocks > 0 && counts.syncs > 0, "{counts:?}");
    if let Some(tier) = served.volume.tier_counts() {
        assert!(tier.served > 0 && tier.errors == 0 && tier.mismatches == 0, "{tier:?}");
    }
    let backing = served.backing();
    let _folder = served.close();
    assert!(std::fs::read(backing).unwrap() == bytes, "the backing file has it all");
}

#[test]
fn several_connections_without_a_cache() {
    several_connections(0, 4096, 150);
}

#[test]
fn several_connections_with_a_cache_that_is_large_enough() {
    several_connections(8 << 20, 4096, 150);
}

#[test]
fn several_connections_with_a_cache_that_is_not() {
    several_connections(400 << 10, 4096, 200);
}

#[test]
fn several_connections_with_small_and_with_large_blocks() {
    several_connections(400 << 10, 512, 60);
    several_connections(2 << 20, 64 << 10, 60);
}
