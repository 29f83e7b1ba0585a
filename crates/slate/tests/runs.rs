//! Each kind of cache under a small run of SlateDB.

use std::time::Duration;

use millpond_slate::remote::Distance;
use millpond_slate::roster::{Cache, entrants};
use millpond_slate::workload::{Workload, run};

fn workload() -> Workload {
    Workload {
        rows: 6000,
        operations: 4000,
        tasks: 8,
        cache: 2 << 20,
        memory: 128 << 10,
        skew: 0.9,
        distance: Distance { latency: Duration::from_millis(1), bandwidth: 1e9 },
        seed: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_is_found_through_each_kind_of_cache_and_caches_spare_requests() {
    let named = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        entrants(16 << 10, &words)
    };
    let bare = run(&Cache::None, &workload()).await.unwrap();
    assert_eq!(bare.hit_ratio, None);
    let caches = ["slatedb 16K +flush", "t2-lru 16K hints", "tide-io 16K deaf", "tq 16K hints"];
    let found = named(&caches);
    assert!(found.len() >= 4, "{found:?}");
    for entrant in found {
        let outcome = run(&entrant.cache, &workload()).await.unwrap();
        let ratio = outcome.hit_ratio.unwrap();
        assert!((0.0..=1.0).contains(&ratio) && ratio > 0.2, "{}: {ratio}", entrant.name);
        let fewer = outcome.table.gets < bare.table.gets;
        assert!(fewer, "{}: {outcome:?}, without {bare:?}", entrant.name);
    }
}
