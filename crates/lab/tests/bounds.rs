//! Bounds: no policy has more hits than Bélády's, and Bélády's hits equal those of exhaustive
//! search.

use std::collections::{HashMap, HashSet};

use crate::common::{load, shared};
use millpond_base::Mark;
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Counts, Future, SimOptions};
use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

/// A skewed choice whose centre moves, loops and scans in turns, over `pages` dense pages.
fn synthetic(seed: u64, len: usize, pages: u64) -> Batch {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut batch = Batch::default();
    // Every page once, so that ids are dense.
    (0..pages).for_each(|page| batch.push(page, Mark::READ));
    while batch.len() < len {
        let (phase, start, span) = (random.u32(..3), random.u64(..pages), random.u64(2..30));
        for i in 0..random.u64(1..200) {
            let page = match phase {
                0 => (start + (random.f64().powi(4) * pages as f64) as u64) % pages,
                1 => (start + i % span) % pages,
                _ => (start + i) % pages,
            };
            batch.push(page, if random.u32(..10) < 3 { Mark::WRITE } else { Mark::READ });
        }
    }
    batch
}

fn run(registry: &Registry, policy: &str, frames: u32, trace: &Batch, future: &Future) -> Counts {
    let spec = Spec::parse(policy).unwrap();
    let distinct = trace.pages.iter().max().map_or(0, |page| page + 1);
    let options = SimOptions::new(frames, Some(distinct));
    let mut simulation = registry.find(&spec.id).unwrap().simulation(&spec, &options).unwrap();
    simulation.run(trace, Some(future)).unwrap();
    simulation.counts()
}

/// Checks every policy against the bound on one trace; returns those that beat it.
fn beaten(name: &str, trace: &Batch, sizes: &[u32]) -> Vec<String> {
    let registry = Registry::builtin();
    let distinct = trace.pages.iter().max().map_or(0, |page| page + 1);
    let future = Future::of(trace, distinct);
    let mut wrong = Vec::new();
    for &frames in sizes {
        let bound = run(&registry, "opt", frames, trace, &future).hits;
        let bypass_bound = run(&registry, "opt(bypass=true)", frames, trace, &future).hits;
        assert!(bound <= bypass_bound, "{name}@{frames}: passing pages by can only help");
        for entry in registry.entries() {
            let counts = run(&registry, entry.info.id, frames, trace, &future);
            let bound = if counts.bypasses > 0 { bypass_bound } else { bound };
            if counts.hits > bound {
                wrong.push(format!(
                    "{}: {} hits on {name}@{frames}, the most there can be are {bound}",
                    entry.info.id, counts.hits
                ));
            }
        }
    }
    wrong
}

#[test]
fn nothing_beats_opt_on_synthetic_traces() {
    let mut wrong = Vec::new();
    for seed in 0..3 {
        let trace = synthetic(seed, 6_000, 300);
        wrong.extend(beaten(&format!("synthetic {seed}"), &trace, &[1, 2, 7, 30, 100, 299]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_beats_opt_on_real_traces() {
    let mut wrong = Vec::new();
    for name in ["lirs_cs", "lirs_gli", "lirs_multi1", "lirs_ps"] {
        let Some((trace, _)) = load(name) else {
            return println!("skipped: {name} is not there ({:?})", shared());
        };
        wrong.extend(beaten(name, &trace, &[10, 100, 500, 1_000]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The most hits that any choice of victims gives: tries them all, remembering what it tried.
fn most_hits(
    trace: &[u64],
    frames: usize,
    may_bypass: bool,
    at: usize,
    pool: &mut Vec<u64>,
    tried: &mut HashMap<(usize, Vec<u64>), u64>,
) -> u64 {
    let Some(&page) = trace.get(at) else { return 0 };
    let mut key = pool.clone();
    key.sort_unstable();
    if let Some(known) = tried.get(&(at, key.clone())) {
        return *known;
    }
    let mut best = 0;
    if pool.contains(&page) {
        best = 1 + most_hits(trace, frames, may_bypass, at + 1, pool, tried);
    } else if pool.len() < frames {
        pool.push(page);
        best = most_hits(trace, frames, may_bypass, at + 1, pool, tried);
        pool.pop();
    } else {
        for slot in 0..frames {
            let victim = std::mem::replace(&mut pool[slot], page);
            best = best.max(most_hits(trace, frames, may_bypass, at + 1, pool, tried));
            pool[slot] = victim;
        }
        if may_bypass {
            best = best.max(most_hits(trace, frames, may_bypass, at + 1, pool, tried));
        }
    }
    tried.insert((at, key), best);
    best
}

#[test]
fn opt_has_as_many_hits_as_exhaustive_search_finds() {
    let (registry, mut random) = (Registry::builtin(), fastrand::Rng::with_seed(11));
    for _ in 0..60 {
        let pages = random.u64(3..7);
        let trace: Vec<u64> = (0..random.usize(10..28)).map(|_| random.u64(..pages)).collect();
        let mut batch = Batch::default();
        trace.iter().for_each(|page| batch.push(*page, Mark::READ));
        let future = Future::of(&batch, pages);
        for frames in 1..=4 {
            for (policy, may_bypass) in [("opt", false), ("opt(bypass=true)", true)] {
                let hits = run(&registry, policy, frames, &batch, &future).hits;
                let mut tried = HashMap::new();
                let most =
                    most_hits(&trace, frames as usize, may_bypass, 0, &mut Vec::new(), &mut tried);
                assert_eq!(hits, most, "{policy}, {frames} frames: {trace:?}");
            }
        }
    }
}

#[test]
fn a_pool_that_holds_every_page_misses_each_once() {
    let (registry, trace) = (Registry::builtin(), synthetic(5, 4_000, 120));
    let distinct: HashSet<u64> = trace.pages.iter().copied().collect();
    let future = Future::of(&trace, 120);
    for entry in registry.entries() {
        let counts = run(&registry, entry.info.id, 120, &trace, &future);
        let misses = counts.misses();
        if counts.bypasses == 0 {
            assert_eq!((misses, counts.evictions), (distinct.len() as u64, 0), "{}", entry.info.id);
        }
    }
}
