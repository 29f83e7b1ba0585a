//! Deterministic parts of the table, and the verdicts from given numbers.

use std::time::Duration;

use crate::cost::Meters;
use crate::experiment::Scale;
use millpond::OwnPolicies;
use millpond_lab::interval::Interval;
use millpond_lab::registry::Registry;
use millpond_lab::table::Table;
use millpond_policies::config::Spec;
use millpond_policies::contract::Hit;

use super::corrections::{Correction, corrections, jobs};
use super::costs::{Cost, Costs, costs, victims_of};
use super::policy_factors::PolicyFactors;
use super::{LEAN, LOOP, table_policies};
use millpond_bench::error::{BenchError, BesideError};
use millpond_bench::run::runner::{Observer, Unwatched};

/// Rounds of runs with one throughput and one miss ratio each, `wobble` apart.
fn rows(runs: &[(f64, &str, f64, f64)], wobble: f64) -> Table {
    let columns = ["percent", "policy", "repetition", "end", "transactions", "throughput_per_s"];
    let columns = columns.into_iter().chain(["miss_ratio", "misses_per_tx"]);
    let mut table = Table::new(columns);
    for repetition in 1..=5u32 {
        for (percent, policy, speed, misses) in runs {
            // Only some policies wobble: a ratio of two that do would not.
            let is_steady = *policy == "clock" || *policy == "random" || *policy == "lfu";
            let up = if is_steady { 1.0 } else { 1.0 + wobble * (f64::from(repetition) - 3.0) };
            table.rows.push(vec![
                (*percent).into(),
                (*policy).into(),
                repetition.into(),
                "ran".into(),
                100u64.into(),
                (speed * up).into(),
                (misses * up).into(),
                (misses * 10.0).into(),
            ]);
        }
    }
    table
}

fn of<'c>(all: &'c [Correction], about: &str) -> Vec<&'c Correction> {
    all.iter().filter(|one| one.about.starts_with(about)).collect()
}

#[test]
fn loop_is_judged_by_the_counter_that_he_measured() {
    let judge = |speed, wobble| {
        let shared = (28.0, "loop", 900.0, 0.1);
        let runs = [(28.0, "clock", 100.0, 0.1), (28.0, LOOP, speed, 0.1), shared];
        of(&corrections(&rows(&runs, wobble)), "LOOP")[0].claim.holds
    };
    assert_eq!(judge(190.0, 0.0), Some(true));
    assert_eq!(judge(120.0, 0.0), Some(false), "although one counter for all is fast");
    assert_eq!(judge(150.0, 0.1), None, "an interval with 1.5 in it");
    assert_eq!(judge(149.0, 0.0), Some(false), "a little is not enough");
}

#[test]
fn lean_eviction_is_judged_below_two_gigabytes_by_fifo_and_above_by_lfu() {
    let at = |percent, lean| {
        [(percent, LEAN, lean, 0.1), (percent, "fifo", 100.0, 0.1), (percent, "lfu", 50.0, 0.1)]
    };
    let runs = [at(14.0, 100.0), at(28.0, 54.0)].concat();
    let all = corrections(&rows(&runs, 0.0));
    let lean = of(&all, "lean");
    assert_eq!([lean[0].claim.holds, lean[1].claim.holds], [Some(true), Some(true)]);
    assert_eq!(lean[0].ratios.len(), 1, "14 % only");
    assert_eq!(lean[1].ratios[0].0, format!("{LEAN} over lfu at 28 %"));
    let runs = [at(14.0, 130.0), at(28.0, 90.0)].concat();
    let all = corrections(&rows(&runs, 0.0));
    let lean = of(&all, "lean");
    assert_eq!([lean[0].claim.holds, lean[1].claim.holds], [Some(false), Some(false)]);
}

#[test]
fn fifo_is_judged_up_to_seventy_per_cent_and_not_beyond() {
    let at = |percent, fifo| {
        let others = [(percent, "random", 100.0, 0.1), (percent, "clock", 100.0, 0.09)];
        [others[0], others[1], (percent, "fifo", 100.0, fifo)]
    };
    let judge = |runs: &[_]| {
        let all = corrections(&rows(runs, 0.0));
        let fifo = of(&all, "quasi");
        (fifo[0].claim.holds, fifo[0].ratios.len(), fifo[1].claim.holds)
    };
    assert_eq!(judge(&[at(70.0, 0.12), at(105.0, 0.01)].concat()), (Some(true), 2, None));
    assert_eq!(judge(&[at(42.0, 0.12), at(70.0, 0.095)].concat()), (Some(false), 4, None));
}

#[test]
fn what_was_not_run_is_open_and_nothing_holds_of_nothing() {
    for runs in [&[][..], &[(105.0, "random", 100.0, 0.1)]] {
        let all = corrections(&rows(runs, 0.0));
        assert_eq!(all.len(), 6);
        for one in all {
            assert_eq!((one.claim.holds, one.claim.here.as_str()), (None, "not run"), "{one:?}");
        }
    }
    let half = corrections(&rows(&[(28.0, "clock", 100.0, 0.1), (28.0, LOOP, 190.0, 0.1)], 0.0));
    assert_eq!(of(&half, "LOOP")[0].claim.holds, Some(true), "by the size that was run");
    assert_eq!(of(&half, "LOOP")[1].claim.holds, None, "the shared counter was not run");
}

#[test]
fn every_sentence_has_its_runs() {
    for scale in Scale::ALL {
        let jobs = jobs(scale, &OwnPolicies::default());
        let runs: Vec<_> = jobs
            .iter()
            .map(|job| {
                let percent = job.axes[0].1.number().unwrap();
                (percent, job.axes[1].1.to_string())
            })
            .collect();
        let runs: Vec<_> = runs.iter().map(|(p, policy)| (*p, policy.as_str(), 1.0, 0.1)).collect();
        for one in corrections(&rows(&runs, 0.0)) {
            assert!(!one.ratios.is_empty(), "{scale}: {one:?}");
            assert!(one.ratios.iter().all(|(_, value)| value.is_some()), "{scale}: {one:?}");
        }
    }
}

fn small(policies: &str, frames: &[u32]) -> Costs {
    Costs {
        policies: Spec::parse_list(policies).unwrap(),
        frames: frames.to_vec(),
        rounds: 5,
        limit: Duration::ZERO,
        seed: 1,
    }
}

#[test]
fn costs_are_in_the_order_of_policies_and_sizes() {
    let what = small("random,lru,clock,fifo,lfu,sieve,s3-fifo,arc,watt", &[64, 16]);
    let all = costs(&what, &Meters::builtin(), &mut Unwatched).unwrap();
    assert_eq!(all.len(), 9, "more than take turns at once");
    for cost in all.iter().flatten() {
        assert!(cost.victims >= 5 && cost.victim_ns.mean > 0.0, "{cost:?}");
        assert!(cost.victim_ns.low <= cost.victim_ns.mean, "{cost:?}");
    }
    for costs in &all {
        assert_eq!(costs.iter().map(|cost| cost.frames).collect::<Vec<_>>(), [64, 16]);
    }
    assert_eq!(all[0][0].bytes, 0, "RANDOM keeps nothing");
    assert!(all[1][0].bytes >= 64 * 8, "LRU's links");
}

#[test]
fn what_is_stopped_or_unknown_ends_with_an_error() {
    struct Stop;
    impl Observer for Stop {
        fn stop(&self) -> bool {
            true
        }
    }
    let registry = Meters::builtin();
    let stopped = costs(&small("lru", &[16]), &registry, &mut Stop);
    assert!(matches!(stopped, Err(BesideError::Bench(BenchError::Stopped))));
    for wrong in ["lrv", "lru-k(k=99)", "opt"] {
        let error = costs(&small(wrong, &[16]), &registry, &mut Unwatched);
        assert!(matches!(error, Err(BesideError::Policy(_))), "{wrong}");
    }
}

#[test]
fn rounds_are_whole_turns_of_the_sort() {
    assert_eq!(victims_of(1_000_000), 1_500_000);
    assert_eq!(victims_of(10), 20_000);
}

#[test]
fn the_table_has_every_live_policy_and_what_he_ran() {
    let registry = Registry::builtin();
    let all = table_policies(&registry).unwrap();
    let names: Vec<String> = all.iter().map(Spec::to_string).collect();
    for live in registry.entries().iter().filter(|e| e.info.live && !e.needs_future) {
        let id = live.info.id;
        let is_there = names.iter().any(|name| name == id);
        assert_eq!(is_there, live.info.tier == millpond_policies::info::Tier::First, "{id}");
    }
    for his in [LOOP, LEAN, "lrd-v1(search=linear)", "lrd-v2(search=linear)"] {
        assert!(names.iter().any(|name| name == his), "{his}: {names:?}");
    }
    assert!(!names.iter().any(|name| name == "opt"));
}

#[test]
fn bytes_are_per_frame_and_growth_is_from_the_smallest_pool_to_the_largest() {
    let value = |mean| Interval::exact(mean);
    let cost = |frames, ns, bytes| {
        let (hit_ns, victim_ns) = (value(1.0), value(ns));
        Cost { frames, hit_ns, victim_ns, victims: 1, hits: 1, bytes }
    };
    let of = |costs| PolicyFactors {
        policy: "p".to_string(),
        hit: Hit::Central,
        hit_percent: None,
        costs,
        fixed_bytes: 100,
    };
    let two = of(vec![cost(1000, 50.0, 8100), cost(10, 10.0, 180)]);
    assert_eq!((two.bytes_per_frame(), two.growth()), (Some(8.0), Some(value(5.0))));
    let mut wide = two.clone();
    wide.costs[0].victim_ns = Interval { mean: 50.0, low: 40.0, high: 60.0, runs: 5 };
    wide.costs[1].victim_ns = Interval { mean: 10.0, low: 5.0, high: 20.0, runs: 5 };
    assert_eq!(wide.growth(), Some(Interval { mean: 5.0, low: 2.0, high: 12.0, runs: 0 }));
    let one = of(vec![cost(10, 10.0, 180)]);
    assert_eq!((one.bytes_per_frame(), one.growth()), (Some(8.0), None));
    let least = of(vec![cost(1, 10.0, 100)]);
    assert_eq!((least.bytes_per_frame(), of(Vec::new()).bytes_per_frame()), (Some(0.0), None));
}
