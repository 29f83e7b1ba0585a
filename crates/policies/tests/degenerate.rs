//! Degenerate parameters give the simpler policy, page by page; stack algorithms obey inclusion.

use std::collections::HashSet;

use millpond_base::Mark;
use millpond_policies::config::Spec;
use millpond_policies::contract::Shape;

use crate::model::{Outcome, kinds, mixed_trace, run_plain};

const SIZES: [u32; 8] = [1, 2, 3, 5, 8, 17, 32, 60];

fn outcomes(policy: &str, frames: u32, pages: u64, trace: &[(u64, Mark)]) -> Vec<Outcome> {
    let spec = Spec::parse(policy).unwrap();
    let kinds = kinds();
    let kind = kinds.iter().find(|k| k.info.id == spec.id).expect("a registered policy");
    let shape = Shape { frames, pages_dense: Some(pages), seed: 1 };
    run_plain(kind, kind.make(&spec, &shape).as_mut(), frames, trace)
}

fn read_only(trace: &mut [(u64, Mark)]) {
    trace.iter_mut().for_each(|(_, mark)| *mark = Mark::READ);
}

/// The first place at which two policies differ, over several sizes and traces.
fn difference(one: &str, other: &str, writes: bool) -> Option<String> {
    for frames in SIZES {
        for seed in 0..4 {
            let pages = u64::from(frames) * (2 + seed) + 3;
            let mut trace = mixed_trace(77 * seed + u64::from(frames), 2000, pages);
            if !writes {
                read_only(&mut trace);
            }
            let (a, b) =
                (outcomes(one, frames, pages, &trace), outcomes(other, frames, pages, &trace));
            if let Some(at) = (0..trace.len()).find(|at| a[*at] != b[*at]) {
                let (page, here, there) = (trace[at].0, a[at], b[at]);
                return Some(format!(
                    "{one} is not {other} with {frames} frames, seed {seed}: reference {at} to \
                     page {page}: {here:?} against {there:?}"
                ));
            }
        }
    }
    None
}

/// Pairs that are equal on any trace.
const EQUAL: &[(&str, &str)] = &[
    ("lru-k(k=1)", "lru"),
    ("lru-k(k=1,history=all)", "lru"),
    ("sorting-lru", "lru"),
    ("sorting-lru-k(k=1)", "lru"),
    ("cflru(window=0)", "lru"),
    ("lru-partitioned(parts=1)", "lru"),
    ("slru(protected=0)", "lru"),
    ("mq(queues=1)", "lru"),
    ("lrfu(lambda=1,correlated=0)", "lru"),
    ("lrfu(lambda=0,correlated=0)", "lfu"),
    ("lfu-aging(a_max=4294967295)", "lfu"),
    ("lru-2-history(correlated=0,history=0)", "lru-k(k=2,below=lru)"),
    ("loop", "fifo"),
    ("gclock-v2(f=1,r=1,s=1,variant=fix-full)", "clock"),
    ("gclock-v2(f=0,r=1,s=1,variant=fix)", "clock(variant=fix)"),
    ("gclock-v1(f=1,r=1,s=1,max=1,variant=fix)", "clock"),
    ("clock-sweep(max=1,init=1)", "clock"),
    ("clock-sweep(max=1,init=0)", "clock(variant=fix)"),
    ("clock-sweep(max=7,init=3)", "gclock-v1(f=3,r=1,s=1,max=7,variant=fix)"),
    ("t2-lru", "lru"),
    ("t2-arc", "arc"),
    ("t2-mq", "mq"),
    ("t2-rand", "random"),
];

/// Pairs that are equal where no page is written.
const EQUAL_READ_ONLY: &[(&str, &str)] =
    &[("lru-wsr", "lru"), ("cflru", "lru"), ("cflru(window=100%)", "lru")];

#[test]
fn degenerate_parameters_give_the_simpler_policy() {
    let pairs = EQUAL.iter().map(|(a, b)| difference(a, b, true));
    let read_only = EQUAL_READ_ONLY.iter().map(|(a, b)| difference(a, b, false));
    let wrong: Vec<String> = pairs.chain(read_only).flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pages in the pool after each reference.
fn contents(trace: &[(u64, Mark)], outcomes: &[Outcome]) -> Vec<HashSet<u64>> {
    let mut now = HashSet::new();
    let step = |((page, _), outcome): (&(u64, Mark), &Outcome)| {
        if let Outcome::Replaced(victim) = outcome {
            assert!(now.remove(victim), "page {victim} went though it was not there");
        }
        assert_eq!(now.insert(*page), *outcome != Outcome::Hit);
        now.clone()
    };
    trace.iter().zip(outcomes).map(step).collect()
}

#[test]
fn a_larger_pool_under_a_stack_algorithm_holds_all_that_a_smaller_one_holds() {
    let stack_algorithms =
        ["lru", "mru", "opt", "lfu(count=perfect)", "lru-k(k=2,history=all,below=lru)"];
    for policy in stack_algorithms {
        for seed in 0..4 {
            let mut trace = mixed_trace(500 + seed, 1500, 40);
            read_only(&mut trace);
            let mut smaller: Option<Vec<HashSet<u64>>> = None;
            for frames in [1, 2, 3, 4, 6, 9, 14, 25, 39] {
                let larger = contents(&trace, &outcomes(policy, frames, 40, &trace));
                if let Some(smaller) = &smaller {
                    for (at, (few, many)) in smaller.iter().zip(&larger).enumerate() {
                        assert!(
                            few.is_subset(many),
                            "{policy}, {frames} frames, seed {seed}, reference {at}: {few:?} is \
                             not within {many:?}"
                        );
                    }
                }
                smaller = Some(larger);
            }
        }
    }
}

#[test]
fn fifo_is_no_stack_algorithm_and_beladys_anomaly_shows_it() {
    let trace: Vec<(u64, Mark)> =
        [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5].map(|page| (page, Mark::READ)).to_vec();
    let misses =
        |frames| outcomes("fifo", frames, 6, &trace).iter().filter(|o| **o != Outcome::Hit).count();
    assert_eq!((misses(3), misses(4)), (9, 10));
}
