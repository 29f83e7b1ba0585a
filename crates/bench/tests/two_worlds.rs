//! Each policy does in the live pool what it does in the simulator.

use millpond::internals::store::{Combination, HitDelivery, LatchingMode, TranslationMode};
use millpond_base::rounds::rounds;
use millpond_base::{FrameId, Size};
use millpond_bench::experiments::two_worlds::diary::Event;
use millpond_bench::experiments::two_worlds::distortions::{Distortion, distorted};
use millpond_bench::experiments::two_worlds::lawful::judge;
use millpond_bench::experiments::two_worlds::worlds::{Plan, Spied, spied};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::Unwatched;
use millpond_lab::registry::Registry;
use millpond_policies::contract::{OfferOutcome, RefusalReason};
use millpond_workload::keys::{Distribution, Scramble};
use millpond_workload::tpcc;
use millpond_workload::ycsb::{self};

const SEED: u64 = 5;

/// Operations of a run; it misses more than a quarter as often.
fn operations() -> u64 {
    rounds(1500, 4000)
}

/// Skewed look-ups with a scan now and then; of pages of 512 bytes, which make deep trees.
fn plan(update_percent: u32) -> Plan {
    let mut config = ycsb::Config::watt(1500, update_percent);
    config.distribution = Distribution::Zipf { theta: 0.9 };
    config.scramble = Scramble::Permute;
    config.shape = ycsb::Shape::LEANSTORE;
    Plan {
        workload: Workload::Ycsb(config),
        page_size: 512,
        pool: Size::Frames(60),
        operations: (0, operations()),
        seed: SEED,
    }
}

/// Every policy that runs live, and some with other parameters: both ends of an access, a fast
/// clock, a batch of offers.
fn policies() -> Vec<&'static str> {
    let mut all: Vec<&str> = Combination::ALL
        .iter()
        .filter(|c| c.translation() == TranslationMode::Hashed)
        .filter(|c| c.latching() == LatchingMode::Optimistic)
        .flat_map(|c| c.policies())
        .collect();
    assert_eq!(all.len(), 47);
    all.extend([
        "clock(variant=unfix)",
        "clock(variant=fix)",
        "gclock-v1(variant=unfix-full)",
        "watt(epochs=max)",
        "watt(log=bit)",
        "lean-evict(cooling=50%)",
        "lean-evict(second_chance=true,refill=half)",
        "lru-k(k=3)",
    ]);
    all
}

/// Returns `true` if the starvation guard held pages for an operation: the simulator knows nothing
/// of that.
fn held(spied: &Spied) -> bool {
    let pinned = Event::Offered(FrameId(0), OfferOutcome::Refused(RefusalReason::Pinned));
    let kind = |event: &Event| match event {
        Event::Offered(_, verdict) => Event::Offered(FrameId(0), *verdict),
        other => *other,
    };
    spied.events.iter().any(|event| kind(event) == pinned)
}

/// Policies that may evict the page that was just loaded, so that operations starve in a pool of a
/// few dozen frames: FILO, MRU and list LRU-K, of which gilbert 1.3.4 saw it, and some that count
/// frequencies.
const STALLING: [&str; 7] = ["filo", "mru", "lru-k", "lfu", "lfu-aging", "mq", "w-tinylfu"];

#[test]
fn with_a_page_table_and_reads_the_very_same_references_miss_in_both_worlds() {
    let registry = Registry::builtin();
    let plan = plan(0);
    let (mut wrong, mut stalled) = (Vec::new(), Vec::new());
    for policy in policies() {
        let spied = spied(&plan, plan.exact(policy), &mut Unwatched).unwrap();
        if let Err(parted) = spied.fed(policy, SEED).unwrap() {
            wrong.push(format!("{policy}, fed: {parted}"));
        }
        if held(&spied) {
            stalled.push(policy.split('(').next().unwrap_or_default());
            continue;
        }
        let live = spied.misses();
        let simulated = spied.simulated_misses(policy, &registry, SEED).unwrap();
        let parts = live.iter().zip(&simulated).position(|(a, b)| a != b);
        if parts.is_some() || live.len() != simulated.len() {
            let at = parts.map(|at| (live[at], simulated[at]));
            wrong.push(format!("{policy}: {} and {}, {at:?}", live.len(), simulated.len()));
        }
        let misses = live.len() as u64;
        assert!(misses > operations() / 4, "{policy}: {misses} misses");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(stalled.iter().all(|policy| STALLING.contains(policy)), "{stalled:?}");
}

fn agree_when_fed(translation: TranslationMode) {
    let plan = plan(30);
    let (mut refusals, mut children, mut wrong) = (0, 0, Vec::new());
    for policy in policies() {
        let mut setup = plan.exact(policy);
        setup.options = setup.options.lab(|lab| lab.translation = translation);
        let spied = spied(&plan, setup, &mut Unwatched).unwrap();
        match spied.fed(policy, SEED).unwrap() {
            Err(parted) => wrong.push(format!("{policy}: {parted}")),
            Ok(agreed) => {
                let enough = operations() / 4;
                let is_busy = agreed.misses > enough && agreed.evictions > enough;
                assert!(is_busy, "{policy}: {agreed:?}");
                refusals += agreed.refusals;
            }
        }
        let instead =
            |event: &&Event| matches!(event, Event::Offered(_, OfferOutcome::EvictChildFirst(_)));
        children += spied.events.iter().filter(instead).count();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refusals > rounds(3_000, 10_000), "{refusals} refusals");
    assert_eq!(children > 0, translation == TranslationMode::Swizzled);
}

#[test]
fn with_updates_both_choose_the_same_victims_once_the_simulator_is_fed_with_refusals() {
    agree_when_fed(TranslationMode::Hashed);
}

#[test]
fn with_swips_both_choose_the_same_victims_once_the_simulator_is_fed_with_refusals() {
    agree_when_fed(TranslationMode::Swizzled);
}

/// Threads, swips, updates, inserts, evictors of their own, write-back: all that a live pool has.
#[test]
fn a_pool_that_threads_share_keeps_the_rules_of_the_contract_under_every_policy() {
    let mut plan = plan(30);
    if let Workload::Ycsb(config) = &mut plan.workload {
        config.threads = 3;
        config.mix.insert = 20;
        config.mix.read -= 20;
    }
    plan.operations = (0, rounds(600, 1500));
    let (mut children_first, mut refused) = (0, 0);
    for (i, policy) in policies().into_iter().enumerate() {
        let mut setup = plan.exact(policy);
        setup.options = setup.options.lab(|lab| {
            lab.translation = TranslationMode::Swizzled;
            lab.batch = None;
            lab.background_writer = true;
            lab.hit_delivery = if i % 2 == 0 { HitDelivery::Exact } else { HitDelivery::Batched };
        });
        if i % 3 == 0 {
            setup.options.lab.eviction = "threads(2)".parse().unwrap();
        }
        let spied = spied(&plan, setup, &mut Unwatched).unwrap();
        let lawful = judge(&spied.events).unwrap_or_else(|broken| panic!("{policy}: {broken}"));
        let enough = rounds(100, 300);
        assert!(lawful.evicted > enough && lawful.hits > enough, "{policy}: {lawful:?}");
        children_first += lawful.children_first;
        refused += lawful.refused;
    }
    let enough = rounds(300, 1000);
    assert!(children_first > enough && refused > enough, "{children_first} and {refused}");
}

#[test]
fn each_distortion_is_measured_beside_the_pool_without_it() {
    let plan = plan(10);
    for distortion in Distortion::all(2) {
        for policy in ["sorting-lru", "arc"] {
            let run = distorted(&plan, policy, distortion, &mut Unwatched).unwrap();
            let is_between = run.misses > operations() / 8 && run.misses < run.references;
            assert!(is_between, "{distortion:?}: {run:?}");
            let again = distorted(&plan, policy, distortion, &mut Unwatched).unwrap();
            let repeats = matches!(
                distortion,
                Distortion::None | Distortion::Swizzling | Distortion::CoarseTicks(_)
            );
            assert!(!repeats || run == again, "{policy}, {distortion:?}: {run:?} and {again:?}");
        }
    }
}

#[test]
fn scans_that_say_so_miss_the_very_same_references_in_both_worlds() {
    let registry = Registry::builtin();
    let data = tpcc::Config::standard(tpcc::Scale::tiny(2), 1);
    let workload = Workload::Scan(data);
    let plan = Plan { workload, pool: Size::Frames(40), operations: (0, 30), ..plan(0) };
    for policy in ["random", "lru", "filo", "lirs", "arc", "lean-evict", "watt", "2q"] {
        let mut setup = plan.exact(policy);
        setup.scan_hints = true;
        let spied = spied(&plan, setup, &mut Unwatched).unwrap();
        let forgotten = spied.events.iter().filter(|e| matches!(e, Event::Forgotten(_))).count();
        assert!(forgotten > 100, "{policy}: {forgotten} scanned pages went first");
        spied.fed(policy, SEED).unwrap().unwrap();
        let simulated = spied.simulated_misses(policy, &registry, SEED).unwrap();
        assert_eq!(spied.misses(), simulated, "{policy}");
    }
}
