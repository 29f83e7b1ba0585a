//! Hits and writes of independent simulators, cell by cell.
//!
//! Each gate names one of our policies, one oracle's rows, and how far apart they may be. Traces
//! of more than a million references run only with `MILLPOND_GOLDEN=all` (`cargo xtask golden`),
//! those of more than 200,000 in a deep run, too.

#![allow(clippy::print_stdout)] // skipped traces are named

mod common;

use std::collections::HashMap;
use std::io::Write;

use common::{Golden, goldens, load, shared};
use millpond_base::rounds::rounds;
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Counts, Future, SimOptions};
use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

/// Our policy; the oracle's start, its name of the policy, the start of its parameters; how many
/// hits per thousand references may differ.
type Gate = (&'static str, &'static str, &'static str, &'static str, f64);

const WATT_WC1: &str = "watt_kr8_kw4_e4_rsi8_rsa1_war_wc1_fv0.1_max_Z0";
const WATT_WC4: &str = "watt_kr8_kw4_e4_rsi8_rsa1_war_wc4_fv0.1_max_Z0";

const HITS: &[Gate] = &[
    ("2q", "libCacheSim", "2q", "Ain-size-ratio=0.25", 0.0),
    ("2q", "caffeine", "two-queue.TwoQueue", "percent-in=0.25", 0.0),
    ("2q(kin=20%)", "libCacheSim", "2q", "Ain-size-ratio=0.20", 0.0),
    ("2q(kin=20%)", "caffeine", "two-queue.TwoQueue", "percent-in=0.20", 0.0),
    ("arc", "libCacheSim", "arc", "", 0.0),
    ("arc(adaptation=integer)", "caffeine", "adaptive.Arc", "", 0.0),
    ("arc(adaptation=integer)", "WATT-simulate", "arc", "", 0.0),
    ("car", "caffeine", "adaptive.Car", "", 0.0),
    ("cart", "caffeine", "adaptive.Cart", "", 0.0),
    ("cflru(window=10%)", "WATT-simulate", "cf_lru10", "", 0.0),
    ("cflru(window=50%)", "WATT-simulate", "cf_lru50", "", 0.0),
    ("clock", "libCacheSim", "clock", "init-freq=1", 0.0),
    ("clock(variant=fix)", "libCacheSim", "clock", "init-freq=0", 0.0),
    // Two sizes each of backf and zigzag; 26 would do for the rest.
    ("clock-pro", "LIRS-authors-C", "clock-pro.c", "ADAPTIVE", 140.0),
    (
        "clock-pro(adaptive=false,cold_min=5%)",
        "LIRS-authors-C",
        "clock-pro.c",
        "MIN=MAX_COLD_ALLOC=5%",
        22.0,
    ),
    ("clock-pro(nonresident=2x)", "caffeine", "irr.ClockPro", "min-cold=0.01;max-cold=0.99", 0.0),
    ("clock-pro-plus", "caffeine", "irr.ClockProPlus", "", 0.0),
    ("clock-sweep(max=3,init=0)", "libCacheSim", "clock", "n-bit-counter=2", 0.0),
    ("fifo", "libCacheSim", "fifo", "", 0.0),
    ("fifo", "reference-model", "fifo", "", 0.0),
    ("filo", "reference-model", "filo", "", 0.0),
    ("gclock-v1(f=0,r=1,s=1,max=3,variant=fix)", "libCacheSim", "clock", "n-bit-counter=2", 0.0),
    ("gclock-v1(f=0,r=1,s=1,max=3,variant=fix)", "reference-model", "gclock(init0,max3)", "", 0.0),
    // Sets to R = 1: the plain clock.
    ("gclock-v2(f=0,r=1,s=1,variant=fix)", "libCacheSim", "clock", "init-freq=0", 0.0),
    ("gclock-v2(f=1,r=1,s=1,variant=fix)", "libCacheSim", "clock", "init-freq=1", 0.0),
    // Random draws from different generators, on traces of a few thousand references; the mean
    // over all cells is within 1 per thousand.
    ("lean-evict(cooling=10%)", "WATT-simulate", "lean_evict10", "", 8.0),
    ("lean-evict(cooling=30%)", "WATT-simulate", "lean_evict30", "", 17.0),
    ("lean-evict(cooling=30%,second_chance=true)", "WATT-simulate", "lean_evict30_v2", "", 14.0),
    ("lfu", "libCacheSim", "lfu", "", 0.0),
    ("lfu", "caffeine", "linked.Lfu", "", 0.0),
    ("lfu", "reference-model", "lfu(in-cache,tie LRU)", "", 0.0),
    ("lfu(count=perfect)", "reference-model", "lfu(perfect,tie LRU)", "", 0.0),
    ("lfu(tie=mru)", "reference-model", "lfu(in-cache,tie MRU)", "", 0.0),
    // Its search for the least key passes over some pages: see the policy's header.
    ("lfuda(age_on=add)", "libCacheSim", "lfuda", "", 3.0),
    ("lirs(stack=2500x)", "LIRS-authors-C", "lirs.c", "HIR=1% (min 2) stack<=2500x", 0.0),
    ("lirs(stack=2x)", "LIRS-authors-C", "lirs.c", "HIR=1% (min 2) stack<=2x", 0.0),
    ("lirs(stack=3x)", "LIRS-authors-C", "lirs.c", "HIR=1% (min 2) stack<=3x", 0.0),
    ("loop", "libCacheSim", "fifo", "", 0.0),
    // Samples: the worst cells of many seeds. On lirs_loop a few lucky draws decide; elsewhere the
    // second is within 4 per mille, too. Caffeine's differs by far more, up to a third on loops;
    // the cause is not known to us, hence no gate.
    ("hyperbolic", "WATT-simulate", "hyperbolic10", "", 6.0),
    ("hyperbolic(sample=64)", "libCacheSim", "hyperbolic", "", 25.0),
    ("lfu", "libCacheSim", "lfu", "", 0.0),
    ("lfu", "caffeine", "linked.Lfu", "", 0.0),
    ("lfu", "reference-model", "lfu(in-cache,tie LRU)", "", 0.0),
    ("lfu(tie=mru)", "reference-model", "lfu(in-cache,tie MRU)", "", 0.0),
    ("lfu(count=perfect)", "reference-model", "lfu(perfect,tie LRU)", "", 0.0),
    // Its search for the least key passes over some pages: see the policy's header.
    ("lfuda(age_on=add)", "libCacheSim", "lfuda", "", 3.0),
    // The two ends of its scale.
    ("lrfu(lambda=0,correlated=0)", "libCacheSim", "lfu", "", 0.0),
    ("lrfu(lambda=1,correlated=0)", "libCacheSim", "lru", "", 0.0),
    ("lru", "libCacheSim", "lru", "", 0.0),
    ("lru", "reference-model", "lru", "", 0.0),
    ("lru-k", "libCacheSim", "lru-k", "k=2", 0.0),
    ("lru-k", "WATT-simulate", "lru_k2_z0", "", 0.0),
    ("lru-k", "reference-model", "lru-2(no history kept)", "", 0.0),
    ("lru-k(history=all)", "WATT-simulate", "lru_k2_zinf", "", 0.0),
    ("lru-k(history=all)", "reference-model", "lru-2(all history kept)", "", 0.0),
    ("lru-k(k=3)", "libCacheSim", "lru-k", "k=3", 0.0),
    ("lru-k(k=3,below=lru)", "reference-model", "lru-3(no history)", "", 0.0),
    // Eight parts with victims in turn stay close to one list.
    ("lru-partitioned", "libCacheSim", "lru", "", 6.0),
    ("lru-partitioned(parts=1)", "libCacheSim", "lru", "", 0.0),
    ("lru-wsr", "WATT-simulate", "lru_wsr", "", 0.0),
    (
        "mq(queues=8,rank=log2,life=10000,out=4)",
        "libCacheSim",
        "mq",
        "n-queue=8,lifetime=10000",
        0.0,
    ),
    (
        "mq(queues=8,rank=log2,life=10000,out=4)",
        "caffeine",
        "linked.MultiQueue",
        "lifetime=10000",
        0.4,
    ),
    ("mq(queues=8,rank=log2,life=75,out=0.5)", "libCacheSim", "mq", "n-queue=8,lifetime=75", 0.0),
    (
        "mq(queues=8,rank=log2,life=75,out=0.5)",
        "caffeine",
        "linked.MultiQueue",
        "lifetime=75",
        18.0,
    ),
    ("mru", "caffeine", "linked.Mru", "", 0.0),
    ("mru", "reference-model", "mru", "", 0.0),
    ("opt", "WATT-simulate", "opt", "", 0.0),
    ("opt", "libCacheSim", "belady", "", 0.0),
    ("opt", "reference-model", "MIN", "", 0.0),
    ("opt(bypass=true)", "caffeine", "opt.Clairvoyant", "", 0.0),
    ("opt(bypass=true)", "reference-model", "MIN+bypass", "", 0.0),
    (
        "s3-fifo",
        "libCacheSim",
        "s3fifo",
        "small-size-ratio=0.10,ghost-size-ratio=0.90,move-to-main-threshold=2",
        0.0,
    ),
    (
        "s3-fifo(fill=small)",
        "caffeine",
        "two-queue.S3Fifo",
        "small=0.10;ghost=0.90;threshold=1",
        8.0,
    ),
    (
        "s3-fifo(threshold=1)",
        "libCacheSim",
        "s3fifo",
        "small-size-ratio=0.10,ghost-size-ratio=0.90,move-to-main-threshold=1",
        0.0,
    ),
    ("sieve", "libCacheSim", "sieve", "", 0.0),
    ("sieve", "WATT-simulate", "sieve", "", 0.0),
    ("slru", "caffeine", "linked.SegmentedLru", "percent-protected=0.80", 0.0),
    ("slru(protected=50%)", "caffeine", "linked.SegmentedLru", "percent-protected=0.50", 0.0),
    ("sorting-lru", "libCacheSim", "lru", "", 0.0),
    ("sorting-lru-k(k=1)", "libCacheSim", "lru", "", 0.0),
    // The rest is what other hashes do to a sketch.
    ("w-tinylfu", "caffeine", "sketch.WindowTinyLfu (1%)", "", 40.0),
    ("watt(write_weight=1)", "WATT-simulate", WATT_WC1, "", 31.0),
    // Random samples, and that simulator ticks while the pool fills, too. It lets ages begin at 1;
    // the second pair shows what it means that a page of the current epoch is worth +∞ instead.
    ("watt(write_weight=1,age_from=1)", "WATT-simulate", WATT_WC1, "", 5.5),
    ("watt(write_weight=4)", "WATT-simulate", WATT_WC4, "", 31.0),
    ("watt(write_weight=4,age_from=1)", "WATT-simulate", WATT_WC4, "", 5.5),
];

/// Oracles that do not work, or follow another rule, in pools smaller than this many frames:
/// libCacheSim's small queue of a tenth then holds less than one page and admits nothing.
const TOO_SMALL: &[(&str, &str, u32)] =
    &[("libCacheSim", "s3fifo", 20), ("caffeine", "two-queue.S3Fifo", 20)];

const WRITES: &[Gate] = &[
    ("cflru(window=10%)", "WATT-simulate", "cf_lru10", "", 0.0),
    ("cflru(window=50%)", "WATT-simulate", "cf_lru50", "", 0.0),
    ("clock", "WATT-simulate", "clock", "", 0.0),
    ("lean-evict(cooling=10%)", "WATT-simulate", "lean_evict10", "", 1.5),
    ("lean-evict(cooling=30%)", "WATT-simulate", "lean_evict30", "", 1.5),
    ("lean-evict(cooling=30%,second_chance=true)", "WATT-simulate", "lean_evict30_v2", "", 1.5),
    ("lru", "WATT-simulate", "lru", "", 0.0),
    ("lru-wsr", "WATT-simulate", "lru_wsr", "", 0.0),
    ("opt", "WATT-simulate", "opt", "", 0.0),
    ("watt(write_weight=1)", "WATT-simulate", WATT_WC1, "", 26.0),
    // As above.
    ("watt(write_weight=1,age_from=1)", "WATT-simulate", WATT_WC1, "", 3.5),
    ("watt(write_weight=4)", "WATT-simulate", WATT_WC4, "", 26.0),
    ("watt(write_weight=4,age_from=1)", "WATT-simulate", WATT_WC4, "", 3.5),
];

/// Each trace is decoded once, and its future found once, only if a policy needs it.
#[derive(Default)]
struct Traces {
    loaded: HashMap<String, (Batch, u64, Option<Future>)>,
}

impl Traces {
    fn run(&mut self, registry: &Registry, policy: &str, golden: &Golden) -> Counts {
        let spec = Spec::parse(policy).unwrap();
        let entry = registry.find(&spec.id).unwrap();
        let (batch, distinct, future) =
            self.loaded.entry(golden.trace.clone()).or_insert_with(|| {
                let (batch, distinct) = load(&golden.trace).expect("a trace of the goldens");
                (batch, distinct, None)
            });
        if entry.needs_future && future.is_none() {
            *future = Some(Future::of(batch, *distinct));
        }
        let options = SimOptions::new(golden.size, Some(*distinct));
        let mut simulation = entry.simulation(&spec, &options).unwrap();
        simulation.run(batch, future.as_ref()).unwrap();
        simulation.counts()
    }
}

/// How one gate fared.
#[derive(Default)]
struct Tally {
    cells: u32,
    exact: u32,
    /// The largest difference, per thousand references.
    worst: f64,
}

impl Tally {
    /// Adds a cell; false if it differs by more than the gate allows.
    fn add(&mut self, ours: u64, theirs: u64, references: u64, per_mille: f64) -> bool {
        let difference = ours.abs_diff(theirs) as f64;
        self.cells += 1;
        self.exact += u32::from(ours == theirs);
        self.worst = self.worst.max(difference * 1000.0 / references as f64);
        difference <= per_mille * references as f64 / 1000.0
    }

    /// Adds a line to the file that `MILLPOND_GOLDEN_SUMMARY` names, if it names one: what
    /// `docs/reports/fidelity/golden.md` shows.
    fn report(&self, what: &str, (policy, oracle, name, params, per_mille): &Gate) {
        println!("{policy}: {} cells of {oracle} {name}({params})", self.cells);
        let Some(path) = std::env::var_os("MILLPOND_GOLDEN_SUMMARY") else { return };
        let line = serde_json::json!({
            "what": what, "policy": policy, "oracle": oracle, "name": name, "params": params,
            "cells": self.cells, "exact": self.exact, "worst": self.worst, "gate": per_mille,
        });
        let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
        // In one write: the tests of this program run side by side.
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

fn compare(
    what: &str,
    file: &str,
    gates: &[Gate],
    numbers: impl Fn(&Golden, &Counts) -> (u64, u64),
) {
    let Some(rows) = goldens(file) else {
        return println!("skipped: {file} is not there ({:?})", shared());
    };
    let everything = std::env::var("MILLPOND_GOLDEN").is_ok_and(|v| v == "all");
    let (registry, mut traces) = (Registry::builtin(), Traces::default());
    let mut wrong = Vec::new();
    for gate in gates {
        let (policy, oracle, name, params, per_mille) = gate;
        let mut tally = Tally::default();
        for golden in rows.iter().filter(|g| {
            let too_small =
                |(o, n, least): &(&str, &str, u32)| o == oracle && n == name && g.size < *least;
            g.oracle.starts_with(oracle)
                && g.name == *name
                && g.params.starts_with(params)
                && !TOO_SMALL.iter().any(too_small)
        }) {
            let references = golden.numbers["requests"];
            if references > rounds(200_000, 1_000_000) && !everything {
                continue;
            }
            let counts = traces.run(&registry, policy, golden);
            assert_eq!(counts.references, references, "{}", golden.trace);
            let (ours, theirs) = numbers(golden, &counts);
            if !tally.add(ours, theirs, references, *per_mille) {
                wrong.push(format!(
                    "{policy} on {}@{}: {ours}, {oracle} has {theirs}",
                    golden.trace, golden.size
                ));
            }
        }
        assert!(tally.cells > 0, "no golden row for {policy}: {oracle} {name} {params}");
        tally.report(what, gate);
    }
    assert!(wrong.is_empty(), "{} cells differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn hits_are_those_of_independent_simulators() {
    compare("hits", "golden.csv", HITS, |golden, counts| (counts.hits, golden.numbers["hits"]));
}

#[test]
fn writes_are_those_of_independent_simulators() {
    compare("writes", "golden_writes.csv", WRITES, |golden, counts| {
        let theirs = golden.numbers["page_writes_incl_final_flush"];
        let read_error = counts.misses().abs_diff(golden.numbers["misses"]);
        (counts.writes() + read_error, theirs)
    });
}
