//! TPC-C stays consistent under every policy: data several times as large as the pool, threads that
//! meet in the same rows and pages, and a check of what reached the devices.

use millpond::internals::store::HitDelivery;
use millpond_base::Size;
use millpond_base::rounds::is_deep;
use millpond_bench::instance::setup::Setup;
use millpond_bench::instance::{Instance, prepare, prepare_on};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, RunSpec, Unwatched};
use millpond_lab::registry::Registry;
use millpond_policies::contract::Hit;
use millpond_policies::info::Tier;
use millpond_workload::tpcc::{Config, Kind, Report, Scale};

const THREADS: u32 = 3;
const TRANSACTIONS: u64 = 100;

fn workload() -> Workload {
    Workload::Tpcc(Config::standard(Scale::tiny(1), THREADS))
}

/// Every live policy with its default hit delivery. One that receives each hit under a mutex gets
/// them exactly and batched in a deep run, and in a quick one the policies take turns.
fn delivered() -> Vec<(String, HitDelivery)> {
    let registry = Registry::builtin();
    let live = registry
        .entries()
        .iter()
        .filter(|entry| entry.info.live && entry.info.tier == Tier::First && !entry.needs_future);
    let central = [HitDelivery::Exact, HitDelivery::Batched];
    let hit_deliveries = |i: usize, hit| match hit {
        Hit::Central if is_deep() => central.to_vec(),
        Hit::Central => vec![central[i % 2]],
        Hit::Nothing | Hit::Meta => vec![HitDelivery::Auto],
    };
    live.enumerate()
        .flat_map(|(i, entry)| {
            hit_deliveries(i, entry.hit)
                .into_iter()
                .map(|hit_delivery| (entry.info.id.into(), hit_delivery))
        })
        .collect()
}

fn report(found: Option<Report>, policy: &str) -> Report {
    let report = found.unwrap();
    assert!(report.is_consistent(), "{policy}: {report}");
    report
}

/// Runs transactions in a pool that thrashes; how many orders were placed.
fn thrash(instance: &mut dyn Instance, transactions: u64, policy: &str) -> u64 {
    let measure = RunSpec::of(Length::Operations(transactions));
    let spec = RunSpec { warm_up: Length::NONE, ..measure };
    let outcome = instance.run(&spec, &mut |_| Ok(()), &mut Unwatched).unwrap();
    assert_eq!(outcome.transactions, transactions, "{policy}");
    let counts = outcome.counts.unwrap();
    let moved = counts.reads > transactions && counts.writes > transactions / 2;
    assert!(moved, "{policy}: {counts:?}");
    let classes = workload().classes();
    let class = classes.iter().position(|class| *class == Kind::NewOrder.name()).unwrap();
    outcome.by_class[class]
}

/// The set-up of the papers' live figures: the pool and its trees alone.
#[test]
fn without_transactions_what_reached_the_device_is_consistent_under_every_policy_in_every_seat() {
    let mut loaded = prepare(&Setup::new(), &workload(), &mut Unwatched).unwrap();
    let before = report(loaded.check().unwrap(), "loading");
    let image = loaded.image().unwrap();
    for (policy, hit_delivery) in delivered() {
        let mut setup = Setup { pool: Some(Size::Share(0.1)), ..Setup::new() };
        setup.options = setup.options.policy(&*policy).lab(|lab| lab.hit_delivery = hit_delivery);
        let mut instance = prepare_on(&image, &setup, &workload()).unwrap();
        let orders = thrash(instance.as_mut(), TRANSACTIONS, &policy);
        let after = report(instance.check_at_rest().unwrap(), &policy);
        assert_eq!(after.orders - before.orders, orders, "{policy}, {hit_delivery}");
    }
}

/// Transactions that are logged, lock what they touch, and roll back.
#[test]
fn with_transactions_what_reached_the_devices_is_consistent_under_every_policy() {
    let mut before = None;
    for (i, (policy, hit_delivery)) in delivered().into_iter().enumerate() {
        let mut setup = Setup { pool: Some(Size::Share(0.1)), ..Setup::new() };
        let eviction = ["worker", "threads(1)", "adaptive(2)"][i % 3].parse().unwrap();
        setup.options = setup
            .options
            .lab(|lab| lab.log = true)
            .lab(|lab| lab.locks = true)
            .policy(&*policy)
            .lab(|lab| lab.eviction = eviction);
        setup.options = setup.options.lab(|lab| lab.hit_delivery = hit_delivery);
        let mut instance = prepare(&setup, &workload(), &mut Unwatched).unwrap();
        let loaded =
            *before.get_or_insert_with(|| report(instance.check().unwrap(), "loading").orders);
        let orders = thrash(instance.as_mut(), TRANSACTIONS, &policy);
        // Closed, and opened again with room for everything.
        instance.reopen(None).unwrap();
        let after = report(instance.check().unwrap(), &policy);
        assert_eq!(after.orders - loaded, orders, "{policy}, {hit_delivery}");
    }
}
