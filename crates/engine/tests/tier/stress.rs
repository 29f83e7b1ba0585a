//! Threads with pages of their own, in a cache that has room for few of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::Reason;
use millpond_base::rounds::rounds;
use millpond_device::{Device, Faults, FaultyDevice, MemoryDevice};

use super::{PAGE, back_options, content, open, open_back, read, write};

const THREADS: u64 = 4;
const EACH: u64 = 50;

/// A device that takes a while, so that requests overlap.
fn slow() -> Arc<FaultyDevice> {
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; (THREADS * EACH * PAGE) as usize]));
    let slow = Arc::new(FaultyDevice::new(below, 5));
    slow.set_faults(Faults { latency_us_max: 30, ..Faults::default() });
    slow
}

/// `amid` is called when the threads begin.
fn thrash(fast: Arc<dyn Device>, pages: u64, policy: &str, amid: impl FnOnce()) {
    let tier = open(slow(), fast, pages, policy);
    amid();
    let reads = threads_on(&tier);
    tier.check().unwrap();
    let counts = tier.counts();
    assert!(counts.is_off || counts.reads == reads);
    assert!(counts.is_off || counts.served > 0, "{counts:?}");
}

/// Each thread reads its own last writes; returns the number of reads.
fn threads_on(tier: &dyn Device) -> u64 {
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let reads = &reads;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let (mut versions, mut bytes) = ([0; EACH as usize], vec![0; PAGE as usize]);
                for _ in 0..rounds(1500, 20_000) {
                    let at = (random.f64().powi(2) * EACH as f64) as usize;
                    let page = thread + THREADS * at as u64;
                    if random.u8(..64) == 0 {
                        tier.sync().unwrap();
                    } else if random.u8(..4) == 0 {
                        // Anybody's, which may be written at this moment: any mixture is right.
                        let any = random.u64(..THREADS * EACH);
                        read(tier, any, &mut bytes).unwrap();
                        reads.fetch_add(1, Ordering::Relaxed);
                    } else if random.bool() {
                        versions[at] += 1;
                        let written = content(page, versions[at]);
                        // Some of them as bytes that are no page's.
                        if random.u8(..4) == 0 {
                            tier.write(page * PAGE, &written).unwrap();
                        } else {
                            write(tier, page, Reason::Replace, &written).unwrap();
                        }
                    } else {
                        read(tier, page, &mut bytes).unwrap();
                        let is_fresh = versions[at] == 0;
                        let there = if is_fresh {
                            vec![0; bytes.len()]
                        } else {
                            content(page, versions[at])
                        };
                        assert!(
                            bytes == there,
                            "page {page}, version {}, found {:?}",
                            versions[at],
                            &bytes[..20]
                        );
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    reads.into_inner()
}

#[test]
fn threads_read_what_they_wrote_and_did_not_write_back_yet() {
    for policy in ["tq-io", "t2-rand", "arc-io"] {
        for (slots, ahead) in [(12, false), (60, false), (400, false), (12, true), (60, true)] {
            let below = slow();
            let fast = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), slots));
            let tier =
                open_back(below.clone(), fast.clone(), &back_options(slots), policy).unwrap();
            let tier = if ahead { tier.destaging_ahead() } else { tier };
            fast.set_faults(Faults { latency_us_max: 30, ..Faults::default() });
            threads_on(&tier);
            tier.check().unwrap();
            let counts = tier.counts();
            assert!(counts.spared > 0 && (counts.destaged > 0 || slots == 400), "{counts:?}");
            let length = (THREADS * EACH * PAGE) as usize;
            let (mut before, mut after) = (vec![0; length], vec![0; length]);
            tier.read(0, &mut before).unwrap();
            tier.give_up().unwrap();
            below.read(0, &mut after).unwrap();
            assert!(before == after, "what was in the cache is on storage");
        }
    }
}

#[test]
fn threads_read_what_they_wrote() {
    for policy in ["tq", "t2-rand", "t2-arc"] {
        for pages in [9, 100, 400] {
            thrash(Arc::new(MemoryDevice::new()), pages, policy, || ());
        }
    }
}

#[test]
fn and_do_when_the_cache_goes_out_of_use_meanwhile() {
    for seed in 0..4 {
        let fast = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), seed));
        let often = if seed % 2 == 0 { 0.2 } else { 0.6 };
        let (read_error, write_error) = (often, often);
        let faults = Faults { read_error, write_error, latency_us_max: 30, ..Faults::default() };
        thrash(fast.clone(), 100, "tq", || fast.set_faults(faults));
    }
}
