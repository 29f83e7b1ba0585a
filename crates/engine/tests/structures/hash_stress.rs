//! Many threads on one hash index.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond::internals::hash_index::HashIndex;
use millpond::internals::pool::Pages;

use crate::structures::harness::{Job, on_pools, on_twins};

const COUNTERS: u64 = 8;
const STABLE: u64 = 60;

/// Keys of three sorts: `c` counters that all threads add to, `s` entries that are always there,
/// and others that each thread inserts and removes for itself.
struct Threads {
    rounds: usize,
}

fn name(sort: u8, thread: u64, n: u64) -> Vec<u8> {
    [&[sort, thread as u8][..], &n.to_be_bytes()].concat()
}

fn work<P: Pages>(index: &HashIndex<P>, thread: u64, rounds: usize, added: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(thread + 7);
    let mut mine = HashSet::new();
    for _ in 0..rounds {
        let n = random.u64(..200);
        let own = name(b'o', thread, n);
        match random.u8(..8) {
            0 | 1 => {
                let len = random.usize(..40);
                assert_eq!(index.insert(&own, &vec![n as u8; len]).unwrap(), mine.insert(n));
            }
            2 | 3 => assert_eq!(index.remove(&own).unwrap(), mine.remove(&n)),
            4 => assert_eq!(index.contains(&own).unwrap(), mine.contains(&n)),
            5 => {
                let stable = name(b's', 0, random.u64(..STABLE));
                assert_eq!(index.get_owned(&stable).unwrap(), Some(stable.clone()));
            }
            6 => {
                let add = |v: &mut [u8]| {
                    let sum = u64::from_le_bytes(v.try_into().unwrap()) + 1;
                    v.copy_from_slice(&sum.to_le_bytes());
                };
                let counter = name(b'c', 0, random.u64(..COUNTERS));
                index.update_in_place(&counter, add).unwrap().unwrap();
                added.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                let counter = name(b'c', 0, random.u64(..COUNTERS));
                let old = index.get_owned(&counter).unwrap().unwrap();
                let sum = u64::from_le_bytes(old[..].try_into().unwrap()) + 1;
                let new = sum.to_le_bytes();
                if index.compare_and_swap(&counter, Some(&old), Some(&new)).unwrap() {
                    added.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
    for n in 0..200 {
        assert_eq!(index.remove(&name(b'o', thread, n)).unwrap(), mine.remove(&n));
    }
}

/// Every stable entry is returned once by each iteration, whatever other threads do.
fn watch<P: Pages>(index: &HashIndex<P>, stop: &AtomicBool) {
    loop {
        let ends = stop.load(Ordering::Relaxed);
        let mut seen = HashSet::new();
        for entry in index.entries() {
            let (key, value) = entry.unwrap();
            if key[0] == b's' {
                assert_eq!(key, value);
                assert!(seen.insert(key), "an entry came twice");
            }
        }
        assert_eq!(seen.len() as u64, STABLE);
        if ends {
            return;
        }
    }
}

impl Job for Threads {
    fn run<P: Pages>(&self, pages: &Arc<P>, threads: bool) {
        let index = HashIndex::create(pages.clone(), 3, 8).unwrap();
        for n in 0..STABLE {
            let key = name(b's', 0, n);
            index.insert(&key, &key).unwrap();
        }
        for n in 0..COUNTERS {
            index.insert(&name(b'c', 0, n), &[0; 8]).unwrap();
        }
        let (added, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        if threads {
            std::thread::scope(|scope| {
                let watcher = scope.spawn(|| watch(&index, &stop));
                let workers: Vec<_> = (0..3)
                    .map(|t| (t, &index, &added))
                    .map(|(t, index, added)| {
                        scope.spawn(move || work(index, t, self.rounds, added))
                    })
                    .collect();
                let ended = workers.into_iter().map(|w| w.join()).collect::<Vec<_>>();
                stop.store(true, Ordering::Relaxed);
                watcher.join().unwrap();
                ended.into_iter().for_each(|end| end.unwrap());
            });
        } else {
            work(&index, 0, self.rounds, &added);
        }
        let sum: u64 = (0..COUNTERS)
            .map(|n| index.get_owned(&name(b'c', 0, n)).unwrap().unwrap())
            .map(|v| u64::from_le_bytes(v[..].try_into().unwrap()))
            .sum();
        assert_eq!(sum, added.load(Ordering::Relaxed), "no addition is lost");
        let report = index.check().unwrap();
        assert_eq!(report.violations, []);
        assert_eq!(report.entries, STABLE + COUNTERS);
        index.destroy().unwrap();
    }
}

#[test]
fn threads_lose_nothing_on_the_twin() {
    on_twins(&Threads { rounds: 10_000 });
}

#[test]
fn threads_lose_nothing_on_thrashing_pools() {
    on_pools(&Threads { rounds: 500 });
}
