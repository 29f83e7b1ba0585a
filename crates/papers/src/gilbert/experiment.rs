//! Gilbert's thesis live: throughput and miss rate of every live policy over pool sizes, with
//! TPC-C (gilbert 1.3.4), his studies of parameters (1.2), and pointer swizzling (2.4.1).
//!
//! His engine is Zero, with Foster B-trees, latches and a log, on SATA flash drives and 12 cores.
//! His pools have 0.1 to 30 GB over 14.3 GiB of data that grow to twice that. Here the pool with
//! its trees runs alone, without log and locks. Pages are in memory that is slowed down to such a
//! drive, and data and pools are smaller at the same ratios. As in his runs, each run begins with
//! an empty pool. His runs last for ten minutes, which warms up all pools. Below that scale, the
//! memory is fast until enough transactions have run to warm the pools up.

use crate::experiment::{About, Experiment, Figure, Scale};
use millpond::internals::store::TranslationMode;
use millpond_lab::interval::Interval;
use millpond_lab::registry::Registry;
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::Table;
use millpond_policies::info::Tier;

use super::bounds::{GB_1, GB_4, GB_05, GB_6, GB_20, GB_25};
use super::claims::{misses, speed};
use super::course::{Course, UNAIDED, unaided};
use super::factors::{LEAN, LOOP, corrections};
use super::stated::{self, STATED};
use super::studies;
use crate::live::sizes::{RANDOM, Sizes};
use crate::live::stall::MEANS;
use crate::live::{Job, LiveFigure, Loaded};
use millpond_bench::run::client::Workload;
use millpond_lab::verdict::{below, claim, listed};

/// Gilbert's variants beside the defaults.
const MORE: [&str; 6] =
    ["lru-k(k=3)", "lru-k(k=4)", "sorting-lru-k(k=3)", "sorting-lru-k(k=4)", LEAN, LOOP];
const QUICK: [&str; 6] = [RANDOM, "lru", "mru", "sorting-lru", "lean-evict", "watt"];

const ALL: About = About {
    id: "1.29",
    title: "Every policy over pool sizes: throughput and miss rate (figs 1.29, 1.30)",
    asks: "How fast is TPC-C, and how often does it miss, under each policy in each pool?",
    says: "Lists behind one latch do not scale; MRU and the list of LRU-K stall in pools smaller \
           than the data, FILO fails in small ones; sorted time stamps are as good as lists by \
           misses and among the fastest.",
};

const SWIZZLING: About = About {
    id: "2.21",
    title: "Pointer swizzling on and off",
    asks: "What do swips change, under RANDOM, in pools of all sizes?",
    says: "With swizzling the hit rate is higher and the throughput lower for all sizes, which \
           the author cannot explain.",
};

/// Terms of the stated policies, for a page.
const TERMS: &str = "Policies that begin with “stated-” are his definitions, in a pool with a \
    page table that holds no page for an operation that does not get its path together, as are \
    those called “unaided”: after a thousand attempts such an operation fails, and its run is \
    stalled.";

/// Returns the sizes of the pool, in per cent of the loaded data.
fn percents(scale: Scale) -> &'static [f64] {
    scale.pick(
        &[5.0, 20.0, 200.0],
        &[1.0, 5.0, 20.0, 50.0, 100.0, 200.0],
        &[0.7, 3.5, 7.0, 17.0, 35.0, 70.0, 105.0, 140.0, 200.0],
    )
}

/// Policies about which he makes a statement in a pool that the others do not run in.
const SOME_POOLS: [(f64, &[&str]); 6] = [
    (GB_05, &[RANDOM, "fifo"]),
    (GB_1, &[RANDOM, "fifo"]),
    (GB_4, &BESIDE_CLOCK),
    (GB_6, &BESIDE_CLOCK),
    (GB_20, &[RANDOM, "filo"]),
    (GB_25, &[RANDOM, "filo"]),
];
const BESIDE_CLOCK: [&str; 6] = [RANDOM, "clock", "dgclock-v1", "dgclock-v2", "loop", LOOP];

/// Returns the policies that run in all pools, each with its family.
fn policies(scale: Scale) -> Vec<(String, &'static str)> {
    let registry = Registry::builtin();
    let live = registry.entries().iter();
    let live = live.filter(|e| e.info.live && e.info.tier == Tier::First && !e.needs_future);
    let mut all: Vec<_> = live.map(|e| (e.info.id.to_string(), e.info.family.name())).collect();
    for more in MORE {
        let id = more.split('(').next().unwrap_or(more);
        let family = all.iter().find(|(policy, _)| policy == id).map(|(_, family)| *family);
        all.extend(family.map(|family| (more.to_string(), family)));
    }
    all.retain(|(policy, _)| scale != Scale::Quick || QUICK.contains(&policy.as_str()));
    all
}

/// Returns the policies by family, RANDOM first in each.
fn families(sizes: &Sizes, scale: Scale) -> Vec<(String, Vec<&str>)> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let known = policies(scale);
    for policy in sizes.others(&[RANDOM]) {
        let family = known.iter().find(|(known, _)| known == policy);
        let name = family.map_or("other", |(_, family)| *family);
        let is_stated = policy.starts_with(stated::PREFIX) || policy.ends_with("unaided");
        let name = if is_stated { "as stated" } else { name };
        match groups.iter_mut().find(|(group, _)| group == name) {
            Some((_, group)) => group.push(policy),
            None => groups.push((name.to_string(), vec![RANDOM, policy])),
        }
    }
    groups
}

/// Returns the jobs of figure 1.29.
fn jobs(scale: Scale) -> Vec<Job> {
    let course = Course::new(scale);
    let mut jobs = Vec::new();
    for share in percents(scale) {
        jobs.extend(policies(scale).iter().map(|(policy, _)| course.job(*share, policy)));
        jobs.extend(course.stated(*share));
    }
    if scale == Scale::Standard {
        for (share, policies) in SOME_POOLS {
            jobs.extend(policies.iter().map(|policy| course.job(share, policy)));
        }
    }
    jobs
}

fn draw_all(rows: &Table) -> Section {
    let sizes = Sizes::of(rows);
    let mut section = sizes.section(&families(&sizes, Scale::Standard));
    section.note = format!(
        "{MEANS} {TERMS} Lists are behind a mutex that every hit takes, as gilbert's are. Pages \
         come from memory as slow as a SATA drive, except at the quick scale; at the standard \
         scale it is slow from the end of the warm-up on."
    );
    section.claims = claims_all(rows, &sizes);
    section
}

fn claims_all(rows: &Table, sizes: &Sizes) -> Vec<Claim> {
    let mut claims = vec![stalls(sizes)];
    claims.extend(speed(sizes));
    claims.extend(misses(sizes));
    claims.extend(corrections(rows).into_iter().map(|correction| {
        let says = format!("{}: {}", correction.about, correction.claim.says);
        Claim { says, ..correction.claim }
    }));
    claims
}

/// Judges that his definitions stall here, while their terms stall no other policy.
fn stalls(sizes: &Sizes) -> Claim {
    let shipped = ["mru", "lru-k", "filo"];
    let controls = UNAIDED.map(unaided);
    let said = |policy: &str| match sizes.stalled_at(policy).as_slice() {
        [] => format!("{policy} nowhere"),
        at => format!("{policy} at {} %", at.join(", ")),
    };
    let says = "MRU and the list of LRU-K stall in pools smaller than the data, FILO in small ones";
    let all = STATED.iter().copied().chain(controls.iter().map(String::as_str));
    let named: Vec<&str> = all.chain(shipped).collect();
    if !named.iter().all(|policy| sizes.policies().contains(policy)) {
        return Claim::open(says, "not all of them were run");
    }
    let here = named.iter().map(|policy| said(policy)).collect::<Vec<_>>().join("; ");
    let stalls = |policy: &str| !sizes.stalled_at(policy).is_empty();
    let holds = STATED.iter().all(|p| stalls(p)) && !controls.iter().any(|p| stalls(p));
    Claim::new(says, here, holds)
}

fn swizzling(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let course = Course::new(scale);
    let mut jobs = Vec::new();
    for share in percents(scale) {
        for translation in [TranslationMode::Swizzled, TranslationMode::Hashed] {
            let mut job = course.job(*share, RANDOM);
            job.setup.options.lab.translation = translation;
            let name = format!("{RANDOM}, {translation}");
            job.axes = vec![("percent", (*share).into()), ("policy", name.into())];
            jobs.push(job);
        }
    }
    LiveFigure::new(SWIZZLING, jobs, loaded, draw_swizzling)
}

fn draw_swizzling(rows: &Table) -> Section {
    let sizes = Sizes::of(rows);
    let group = [("Swips and a page table".to_string(), sizes.policies())];
    let mut section = sizes.section(&group);
    let [swips, table] = [TranslationMode::Swizzled, TranslationMode::Hashed]
        .map(|translation| format!("{RANDOM}, {translation}"));
    let over = |ratio: fn(&Sizes, &str, &str, &str) -> Option<Interval>| -> Vec<_> {
        let percents = sizes.percents().into_iter();
        percents.map(|percent| (percent, ratio(&sizes, percent, &swips, &table))).collect()
    };
    let (speed, misses) = (over(Sizes::faster), over(Sizes::misses));
    section.claims = vec![
        claim("with swips the throughput is lower, in each pool", &speed, below(1.0)),
        claim(
            "with swips there are fewer misses, in pools smaller than the data",
            &misses[..misses.len().saturating_sub(1)],
            below(1.0),
        ),
    ];
    section.note =
        format!("Throughput with swips over that with a page table: {}.", listed(&speed));
    section
}

/// Returns the live experiment for one scale.
pub fn experiment(scale: Scale) -> Experiment {
    let loaded = Loaded::default();
    let mut figures: Vec<Box<dyn Figure>> =
        vec![Box::new(LiveFigure::new(ALL, jobs(scale), &loaded, draw_all))];
    figures.extend(studies::figures(scale, &loaded));
    figures.push(Box::new(swizzling(scale, &loaded)));
    Experiment {
        paper: "gilbert",
        title: "Page replacement in a live engine (Gilbert, 2020), repeated".to_string(),
        note: format!(
            "TPC-C on the pool and its trees, without log and locks, on {} threads. Each run \
             begins with an empty pool over the same data, and ends with a check of TPC-C's \
             consistency. Sizes are of the data as loaded, which grow while they run.",
            match Course::new(scale).workload() {
                Workload::Tpcc(config) => config.threads,
                _ => 1,
            }
        ),
        scale,
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::super::studies::tests::made_up;
    use super::*;

    #[test]
    fn every_sentence_has_its_runs() {
        let section = draw_all(&made_up(&jobs(Scale::Standard)));
        for claim in &section.claims {
            assert!(!claim.here.contains("not run"), "{claim:?}");
        }
        assert!(section.claims.len() > 40);
        let few = draw_all(&made_up(&jobs(Scale::Quick)));
        let is_open = |says: &str| {
            let claim = few.claims.iter().find(|claim| claim.says.starts_with(says)).unwrap();
            claim.holds.is_none() && claim.here == "not run"
        };
        assert!(is_open("RANDOM, sorted LRU, CLOCK"), "a place among six says nothing");
    }
}
