//! The two second-tier models, under every registered policy.

use crate::tier2_util::{random_trace, run, trace};
use millpond_lab::registry::Registry;
use millpond_lab::sweep::charged_frames;
use millpond_lab::tier2::{Model, Tier2Cell, Tier2Future, Tier2Options, Tier2Simulation};
use millpond_policies::config::Spec;
use millpond_policies::contract::Policy;
use millpond_policies::info::Tier;
use millpond_policies::registry::{Visitor, visit_all};
use millpond_workload::trace::Batch;

const MIXED: &[u8] = b"rrrrwwwcsd";

fn ids() -> Vec<&'static str> {
    Registry::builtin().entries().iter().map(|e| e.info.id).collect()
}

#[test]
fn every_second_tier_row_of_the_catalog_is_registered() {
    let registry = Registry::builtin();
    let second = registry.entries().iter().filter(|e| e.info.tier == Tier::Second);
    let ids: Vec<&str> = second.map(|e| e.info.id).collect();
    let catalog = [
        "t2-lru",
        "t2-rand",
        "t2-mq",
        "t2-arc",
        "lru-hints",
        "mq-hints",
        "tq",
        "lru-io",
        "arc-io",
        "tq-io",
        "tide-io",
        "t2-opt",
        "min-rw",
        "pro-io",
    ];
    assert_eq!(ids, catalog);
}

#[test]
fn unavoidable_ios_are_the_same_for_every_policy() {
    for (seed, pages, frames) in [(1, 12, 1), (2, 12, 3), (3, 60, 10), (4, 300, 64)] {
        let rows = random_trace(seed, 4_000, pages, MIXED);
        let expected = run("t2-lru", &rows, pages, frames, Model::Rw).unavoidable();
        assert!(expected > 0);
        for id in ids() {
            let counts = run(id, &rows, pages, frames, Model::Rw);
            assert_eq!(counts.unavoidable(), expected, "{id}, seed {seed}, {frames} frames");
        }
    }
}

#[test]
fn avoidable_ios_are_the_sum_of_the_replacements_costs() {
    for (seed, pages, frames) in [(5, 12, 1), (6, 12, 3), (7, 60, 10), (8, 300, 64)] {
        let rows = random_trace(seed, 4_000, pages, MIXED);
        for id in ids() {
            let counts = run(id, &rows, pages, frames, Model::Rw);
            let cost = counts.replacement_cost.unwrap();
            assert_eq!(counts.avoidable(), cost, "{id}, seed {seed}, {frames} frames");
            assert_eq!(counts.bypasses, 0);
        }
    }
}

#[test]
fn no_policy_has_more_read_hits_than_the_second_tiers_optimum() {
    let offline = ["opt", "t2-opt", "min-rw", "pro-io"];
    for (seed, pages, frames) in [(11, 12, 1), (12, 30, 5), (13, 200, 20), (14, 200, 90)] {
        let rows = random_trace(seed, 6_000, pages, MIXED);
        let best = run("t2-opt(rule=exact)", &rows, pages, frames, Model::Read);
        let papers = run("t2-opt", &rows, pages, frames, Model::Read);
        for id in ids() {
            let counts = run(id, &rows, pages, frames, Model::Read);
            assert_eq!((counts.full_at, counts.reads), (best.full_at, best.reads), "{id}");
            assert!(counts.read_hits <= best.read_hits, "{id}, seed {seed}: {counts:?}");
            if !offline.contains(&id) {
                assert!(counts.read_hits < papers.read_hits, "{id}, seed {seed}: {counts:?}");
            }
        }
    }
}

#[test]
fn the_read_model_knows_neither_dirty_pages_nor_dsync() {
    let rows = random_trace(21, 3_000, 40, MIXED);
    let mut plain = Batch::default();
    for (page, mark) in rows.pages.iter().zip(&rows.marks) {
        if *mark != crate::tier2_util::mark(crate::tier2_util::DSYNC) {
            plain.push(*page, *mark);
        }
    }
    for id in ids() {
        let (with, without) =
            (run(id, &rows, 40, 8, Model::Read), run(id, &plain, 40, 8, Model::Read));
        assert_eq!((with.storage_writes(), with.dirty_at_end), (0, 0), "{id}");
        assert_eq!(with.dsyncs as usize, rows.len() - plain.len());
        assert_eq!(
            (with.read_hits, with.evictions),
            (without.read_hits, without.evictions),
            "{id}"
        );
    }
}

/// Runs each policy row by row, with tiny caches, and has it check itself after each.
struct Steps {
    rows: Batch,
    pages: u64,
}

impl Visitor for Steps {
    fn visit<P: Policy>(&mut self) {
        let future = Tier2Future::of(&self.rows, self.pages);
        for model in [Model::Read, Model::Rw] {
            for frames in [1, 2, 3, 7] {
                let options = Tier2Options::new(frames, Some(self.pages), model);
                let mut cell = Tier2Cell::new::<P>(&P::Config::default(), &options);
                for at in 0..self.rows.len() {
                    let mut row = Batch::default();
                    row.push(self.rows.pages[at], self.rows.marks[at]);
                    cell.run(&row, Some(&future)).unwrap();
                    let checked = cell.check();
                    assert_eq!(checked, Ok(()), "{} {frames} {model:?} row {at}", P::INFO.id);
                    assert!(cell.pages().len() <= frames as usize);
                }
            }
        }
    }
}

#[test]
fn tiny_caches_keep_every_policys_invariants() {
    visit_all(&mut Steps { rows: random_trace(31, 1_200, 14, MIXED), pages: 14 });
}

#[test]
fn dense_and_arbitrary_page_ids_give_the_same_counts() {
    let rows = random_trace(41, 3_000, 50, MIXED);
    let mut sparse = rows.clone();
    sparse.pages.iter_mut().for_each(|p| *p = *p * 1_000_003 + 17);
    let registry = Registry::builtin();
    for entry in registry.entries().iter().filter(|e| !e.needs_future) {
        let spec = Spec::parse(entry.info.id).unwrap();
        for model in [Model::Read, Model::Rw] {
            let mut counts = Vec::new();
            for (rows, dense) in [(&rows, Some(50)), (&rows, None), (&sparse, None)] {
                let options = Tier2Options::new(9, dense, model);
                let mut cell = entry.tier2(&spec, &options).unwrap();
                cell.run(rows, None).unwrap();
                let mut counted = cell.counts();
                counted.policy_bytes = 0;
                counts.push(counted);
            }
            assert_eq!(counts[0], counts[1], "{}", entry.info.id);
            // A sketch of hashed ids sees other collisions among other ids.
            if entry.info.id != "w-tinylfu" {
                assert_eq!(counts[0], counts[2], "{}", entry.info.id);
            }
        }
    }
}

#[test]
fn dirty_pages_left_at_the_end_are_not_counted_as_writes() {
    let counts = run("t2-lru", &trace("w0 w1 d0 r0 w1"), 2, 2, Model::Rw);
    assert_eq!((counts.total(), counts.unavoidable(), counts.dirty_at_end), (1, 1, 1));
    // Page 0 is pre-clean when it is evicted; page 1 is dirty, and its write could have been
    // avoided.
    let counts = run("t2-lru", &trace("w0 w1 w2 d0 w1 r1"), 3, 1, Model::Rw);
    assert_eq!((counts.evict_writes, counts.dsync_writes, counts.preclean_writes), (3, 0, 1));
    assert_eq!((counts.storage_reads, counts.avoidable()), (0, 2));
}

#[test]
fn pages_pass_by_only_when_the_cache_was_full() {
    for policy in ["lru-hints", "mq-hints", "tq"] {
        // The reads fill the cache; then a read passes by, and a write to make room does not.
        let counts = run(policy, &trace("r0 r1 r2 r3 w4 r4 c5"), 6, 3, Model::Read);
        assert_eq!((counts.full_at, counts.bypasses), (Some(2), 2), "{policy}");
        assert_eq!((counts.evictions, counts.read_hits), (1, 1), "{policy}");
    }
}

#[test]
fn an_unwanted_page_that_must_be_placed_is_the_next_victim() {
    for policy in ["lru-hints", "mq-hints", "tq", "tq-io"] {
        // Page 0 is evicted for 3; then 3, 4 and 5 replace each other, and 1 and 2 stay.
        let rows = trace("w0 w1 w2 r3 r4 r5 r1 r2");
        let rw = run(policy, &rows, 6, 3, Model::Rw);
        assert_eq!((rw.evictions, rw.hits), (3, 2), "{policy}: {rw:?}");
    }
}

#[test]
fn out_queues_are_charged_by_shrinking_the_cache() {
    let registry = Registry::builtin();
    let charged = |policy: &str, frames, bytes| {
        let spec = Spec::parse(policy).unwrap();
        charged_frames(registry.find(&spec.id).unwrap(), &spec, frames, bytes, 4096).unwrap()
    };
    for policy in ["t2-mq", "mq-hints", "tq"] {
        // n pages of 4096 bytes and n ghosts of 96: n = 120000 * 4096 / 4192.
        assert_eq!(charged(policy, 120_000, 96), 117_251, "{policy}");
        assert_eq!(charged(policy, 120_000, 0), 120_000);
        assert_eq!(charged(policy, 1, 1 << 40), 1);
    }
    assert_eq!(charged("tq(out=0)", 120_000, 96), 120_000);
    assert_eq!(charged("t2-arc", 120_000, 96), 120_000);
}
