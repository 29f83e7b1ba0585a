//! Threads with pages of their own, in a cache that has room for few of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond::internals::io::{Device, Faults, FaultyDevice, MemoryDevice};
use millpond_base::Reason;
use millpond_base::rounds::rounds;

use super::{PAGE, content, open, read, write};

const THREADS: u64 = 4;
const EACH: u64 = 50;

/// `amid` is called when the threads begin.
fn thrash(fast: Arc<dyn Device>, pages: u64, policy: &str, amid: impl FnOnce()) {
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; (THREADS * EACH * PAGE) as usize]));
    // A device that takes a while, so that requests overlap.
    let slow = Arc::new(FaultyDevice::new(below, 5));
    slow.set_faults(Faults { latency_us_max: 30, ..Faults::default() });
    let tier = open(slow, fast, pages, policy);
    let reads = AtomicU64::new(0);
    amid();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tier, reads) = (&tier, &reads);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let (mut versions, mut bytes) = ([0; EACH as usize], vec![0; PAGE as usize]);
                for _ in 0..rounds(1500, 20_000) {
                    let at = (random.f64().powi(2) * EACH as f64) as usize;
                    let page = thread + THREADS * at as u64;
                    if random.u8(..4) == 0 {
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
                        assert!(bytes == there, "page {page}, version {}", versions[at]);
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    tier.check().unwrap();
    let counts = tier.counts();
    assert!(counts.is_off || counts.reads == reads.load(Ordering::Relaxed));
    assert!(counts.is_off || counts.served > 0, "{counts:?}");
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
