//! The simulator itself: its counters, under any policy.

use millpond_base::{Mark, PageId};
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Cell, Counts, Future, SimOptions};
use millpond_policies::config::{NoConfig, Spec};
use millpond_policies::policy::Lru;
use millpond_workload::trace::Batch;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn run(policy: &str, options: &SimOptions, references: &[(u64, Mark)]) -> Counts {
    let spec = Spec::parse(policy).unwrap();
    let registry = Registry::builtin();
    let mut batch = Batch::default();
    references.iter().for_each(|(page, mark)| batch.push(*page, *mark));
    let future = Future::of(&batch, 1000);
    let mut simulation = registry.find(&spec.id).unwrap().simulation(&spec, options).unwrap();
    simulation.run(&batch, Some(&future)).unwrap();
    simulation.counts()
}

const R: Mark = Mark::READ;
const W: Mark = Mark::WRITE;

#[test]
fn writes_are_dirty_evictions_and_what_is_dirty_at_the_end() {
    let counts = run("lru", &SimOptions::new(2, None), &[(1, W), (1, W), (2, R), (3, R), (4, W)]);
    // 1 leaves dirty, 2 leaves clean, 4 stays dirty.
    assert_eq!((counts.hits, counts.misses()), (1, 4));
    assert_eq!((counts.dirty_evictions, counts.dirty_at_end, counts.writes()), (1, 1, 2));
}

#[test]
fn a_write_that_passes_the_cache_by_is_a_write_all_the_same() {
    // Page 9 is never used again: with bypass it is not cached, and goes to storage at once.
    let trace = [(1, R), (2, R), (9, W), (1, R), (2, R)];
    let counts = run("opt(bypass=true)", &SimOptions::new(2, Some(10)), &trace);
    assert_eq!((counts.hits, counts.bypasses, counts.writes()), (2, 1, 1));
}

#[test]
fn a_warm_up_is_simulated_and_not_counted() {
    let mut options = SimOptions::new(2, None);
    options.warmup = 3;
    let counts = run("lru", &options, &[(1, W), (2, R), (1, R), (1, R), (3, R), (2, R)]);
    assert_eq!((counts.references, counts.hits), (3, 1));
    assert_eq!((counts.evictions, counts.writes()), (2, 1), "what was dirty before still counts");
}

#[test]
fn pollution_is_what_only_the_scan_touched_when_it_ends() {
    let scan = R.with_scan(true);
    let trace = [(1, R), (2, R), (3, scan), (4, scan), (3, R), (1, R)];
    let counts = run("lru", &SimOptions::new(4, None), &trace);
    assert_eq!((counts.scans, counts.pollution), (1, 2));
    let all_scan: Vec<(u64, Mark)> = (0..10).map(|page| (page, scan)).collect();
    let counts = run("lru", &SimOptions::new(4, None), &all_scan);
    assert_eq!((counts.scans, counts.pollution), (1, 4), "the end of the trace ends the scan");
}

#[test]
fn dense_and_hashed_tables_count_alike_and_batches_may_be_of_any_length() {
    let mut rng = fastrand::Rng::with_seed(5);
    let references: Vec<(u64, Mark)> = (0..20_000)
        .map(|_| {
            let page = (rng.f64() * rng.f64() * 900.0) as u64;
            (page, if rng.u8(0..4) == 0 { W } else { R })
        })
        .collect();
    for policy in ["lru", "clock", "arc", "cflru", "lean-evict", "watt", "opt"] {
        let dense = run(policy, &SimOptions::new(100, Some(900)), &references);
        let hashed = run(policy, &SimOptions::new(100, None), &references);
        let without_bytes = |c: Counts| Counts { policy_bytes: 0, ..c };
        assert_eq!(without_bytes(dense), without_bytes(hashed), "{policy}");
        let mut ahead = SimOptions::new(100, Some(900));
        ahead.batch = 16;
        let ahead = run(policy, &ahead, &references);
        assert!(ahead.hits <= dense.hits + 200 && ahead.evictions > 0, "{policy}");
    }
}

/// References: a page, written or read, by a scan or not.
fn references() -> impl Strategy<Value = Vec<(u64, Mark)>> {
    // Half of them to a tenth of the pages, so that there are hits, ghosts' among them.
    let page = prop_oneof![0u64..30, 0u64..300];
    let reference = (page, any::<bool>(), prop::bool::weighted(0.05));
    let marked = reference.prop_map(|(page, is_write, is_scan)| {
        (page, if is_write { W } else { R }.with_scan(is_scan))
    });
    prop::collection::vec(marked, 1..2000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None,
        rng_seed: RngSeed::Fixed(4), ..ProptestConfig::default() })]

    /// Hashed tables, dense ones that grow, dense ones that fit, and dense ones so large that pages
    /// are asked for ahead, their ghosts too.
    #[test]
    fn every_kind_of_table_counts_alike_under_every_policy(
        trace in references(),
        frames in 1u32..80,
        batch in 1u32..9,
        scan_hints in any::<bool>(),
        warmup in 0u64..200,
    ) {
        for entry in Registry::builtin().entries() {
            let with = |pages_dense| {
                let options = SimOptions {
                    warmup, batch, scan_hints, ..SimOptions::new(frames, pages_dense)
                };
                Counts { policy_bytes: 0, ..run(entry.info.id, &options, &trace) }
            };
            let hashed = with(None);
            for pages in [0, 300, 1 << 19] {
                prop_assert_eq!(with(Some(pages)), hashed, "{}: {} pages", entry.info.id, pages);
            }
        }
    }
}

#[test]
fn a_cell_can_be_driven_step_by_step() {
    let mut cell = Cell::<Lru>::new(&NoConfig::default(), &SimOptions::new(2, None));
    let hits: Vec<bool> = [1, 2, 1, 3, 2].map(|page| cell.step(PageId(page), R).unwrap()).to_vec();
    assert_eq!(hits, [false, false, true, false, false]);
    let mut pages = cell.pages();
    pages.sort_unstable();
    assert_eq!(pages, [PageId(2), PageId(3)]);
    cell.check().unwrap();
}

#[test]
fn a_resident_page_costs_the_host_at_most_32_bytes() {
    for frames in [1000u32, 1793, 3585, 14_337, 100_000] {
        let mut cell = Cell::<Lru>::new(&NoConfig::default(), &SimOptions::new(frames, None));
        let mut rng = fastrand::Rng::with_seed(u64::from(frames));
        for _ in 0..frames * 5 {
            cell.step(PageId(rng.u64(..) >> 40), R).unwrap();
        }
        let bytes = cell.host_bytes() as f64 / f64::from(frames);
        assert!(bytes <= 32.0, "{bytes} bytes per page of {frames}");
    }
    // Dense tables cost 4 bytes per page of the trace instead.
    let options = SimOptions::new(1000, Some(50_000));
    let cell = Cell::<Lru>::new(&NoConfig::default(), &options);
    assert!(cell.host_bytes() <= 4 * 50_000 + 12 * 1000, "{}", cell.host_bytes());
}

#[test]
fn with_hints_what_only_scans_referenced_goes_first_whichever_policy_decides() {
    let (hot, scanned) = (40u64, 2000u64);
    let mut trace = Batch::default();
    for round in 0..4 {
        (0..hot).for_each(|page| trace.push(page, R));
        if round == 2 {
            (0..scanned).for_each(|page| trace.push(1000 + page, R.with_scan(true)));
        }
    }
    let registry = Registry::builtin();
    for entry in registry.entries().iter().filter(|e| e.info.live) {
        let spec = Spec::parse(entry.info.id).unwrap();
        let mut options = SimOptions::new(60, None);
        options.scan_hints = true;
        let mut simulation = entry.simulation(&spec, &options).unwrap();
        simulation.run(&trace, None).unwrap();
        let counts = simulation.counts();
        assert_eq!(counts.misses(), hot + scanned, "{}: no hot page left", entry.info.id);
        assert_eq!(counts.pollution, 20, "{}", entry.info.id);
    }
}
