//! Many threads on one heap.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond::internals::heap::{Heap, RecordId};
use millpond::internals::pool::Pages;

use crate::structures::harness::{Job, on_pools, on_twins};

const STABLE: usize = 50;

/// Each thread appends, grows and removes records of its own, and all add to shared ones; others
/// are always there, and change their length but not their first byte.
struct Threads {
    rounds: usize,
}

fn work<P: Pages>(
    heap: &Heap<P>,
    stable: &[RecordId],
    thread: u8,
    rounds: usize,
    added: &AtomicU64,
) {
    let mut random = fastrand::Rng::with_seed(u64::from(thread) + 5);
    let mut mine: HashMap<RecordId, Vec<u8>> = HashMap::new();
    for _ in 0..rounds {
        let record = vec![thread; random.usize(1..80)];
        let own = mine.keys().next().copied();
        match (random.u8(..8), own) {
            (0..3, _) | (_, None) => {
                assert_eq!(mine.insert(heap.append(&record).unwrap(), record), None);
            }
            (3, Some(own)) => {
                assert!(heap.update(own, &record).unwrap());
                mine.insert(own, record);
            }
            (4, Some(own)) => {
                assert_eq!(heap.remove_returning(own).unwrap(), mine.remove(&own));
            }
            (5, Some(own)) => assert_eq!(heap.get_owned(own).unwrap().as_ref(), mine.get(&own)),
            (6, _) => {
                let i = random.usize(1..STABLE);
                let new = vec![i as u8; random.usize(1..200)];
                assert!(heap.update(stable[i], &new).unwrap());
                let seen = heap.get_owned(stable[random.usize(1..STABLE)]).unwrap().unwrap();
                assert!(seen.iter().all(|&b| b == seen[0]), "half of a record");
            }
            _ => {
                let add = |v: &mut [u8]| {
                    let sum = u64::from_le_bytes(v.try_into().unwrap()) + 1;
                    v.copy_from_slice(&sum.to_le_bytes());
                };
                heap.update_in_place(stable[0], add).unwrap().unwrap();
                added.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    for (own, record) in mine {
        assert_eq!(heap.remove_returning(own).unwrap(), Some(record));
    }
}

/// Every stable record is returned once by each scan, whatever other threads do.
fn watch<P: Pages>(heap: &Heap<P>, stable: &[RecordId], stop: &AtomicBool) {
    loop {
        let ends = stop.load(Ordering::Relaxed);
        let mut seen = Vec::new();
        for record in heap.records().unwrap() {
            let (id, bytes) = record.unwrap();
            if let Some(i) = stable.iter().position(|s| *s == id) {
                assert!(i == 0 || bytes.iter().all(|&b| b == i as u8), "record {i}: {bytes:?}");
                seen.push(id);
            }
        }
        assert_eq!(seen, stable);
        if ends {
            return;
        }
    }
}

impl Job for Threads {
    fn run<P: Pages>(&self, pages: &Arc<P>, threads: bool) {
        let heap = Heap::create(pages.clone(), 3).unwrap();
        let mut stable = vec![heap.append(&[0; 8]).unwrap()];
        stable.extend((1..STABLE).map(|i| heap.append(&[i as u8; 9]).unwrap()));
        let (added, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        if threads {
            std::thread::scope(|scope| {
                let (heap, stable, added, stop) = (&heap, &stable, &added, &stop);
                let watcher = scope.spawn(|| watch(heap, stable, stop));
                let workers: Vec<_> = (0..3)
                    .map(|t| scope.spawn(move || work(heap, stable, 200 + t, self.rounds, added)))
                    .collect();
                let ended: Vec<_> = workers.into_iter().map(|w| w.join()).collect();
                stop.store(true, Ordering::Relaxed);
                watcher.join().unwrap();
                ended.into_iter().for_each(|end| end.unwrap());
            });
        } else {
            work(&heap, &stable, 200, self.rounds, &added);
        }
        let sum = heap.get_owned(stable[0]).unwrap().unwrap();
        assert_eq!(u64::from_le_bytes(sum[..].try_into().unwrap()), added.into_inner());
        let report = heap.check().unwrap();
        assert_eq!(report.violations, []);
        assert_eq!(report.records, STABLE as u64);
        heap.destroy().unwrap();
    }
}

#[test]
fn threads_lose_nothing_on_the_twin() {
    on_twins(&Threads { rounds: 5000 });
}

#[test]
fn threads_lose_nothing_on_thrashing_pools() {
    on_pools(&Threads { rounds: 400 });
}
