//! The settling policies in the mock pool, under schedules that shuttle draws.
//!
//! `cargo test -p millpond-policies --features shuttle --test shuttle_pool`

mod mock_pool;

use millpond_base::sync::Mutex;
use millpond_policies::contract::{OpenPolicy, Policy, Shape};
use millpond_policies::erased::{Cold, OpenCold};
use millpond_policies::policy as p;

use mock_pool::{Load, PolicyHost, Setup, run};

/// Schedules of each policy in each kind of policy host.
const SCHEDULES: usize = 300;

const LOAD: Load =
    Load { threads: 2, references: 20, pages: 7, skew: 1, drops: 4, evicts_ahead: true, seed: 1 };
const FRAMES: u32 = 4;

fn shape() -> Shape {
    Shape { frames: FRAMES, pages_dense: None, seed: 1 }
}

fn latched<P: Policy>() {
    for batched in [false, true] {
        let body = move || {
            let policy = P::new(&P::Config::default(), &shape());
            let params = policy.params();
            let cold: Box<dyn Cold<P::Hook>> = Box::new(policy);
            let policy_host = if batched {
                PolicyHost::Batched(Mutex::new(cold))
            } else {
                PolicyHost::Exact(Mutex::new(cold))
            };
            run(Setup { frames: FRAMES, params, policy_host }, LOAD).unwrap();
        };
        shuttle::check_random(body, SCHEDULES);
        shuttle::check_pct(body, SCHEDULES / 3, 3);
    }
}

fn open<P: OpenPolicy>() {
    let body = || {
        let policy = P::new(&P::Config::default(), &shape());
        let params = policy.params();
        let cold: Box<dyn OpenCold<P::Hook>> = Box::new(policy);
        run(Setup { frames: FRAMES, params, policy_host: PolicyHost::Open(cold) }, LOAD).unwrap();
    };
    shuttle::check_random(body, SCHEDULES);
    shuttle::check_pct(body, SCHEDULES / 3, 3);
}

#[test]
fn random_survives_every_schedule_drawn() {
    latched::<p::Random>();
    open::<p::Random>();
}

#[test]
fn clock_survives_every_schedule_drawn() {
    latched::<p::Clock>();
    open::<p::Clock>();
}

#[test]
fn lru_survives_every_schedule_drawn() {
    latched::<p::Lru>();
}

#[test]
fn arc_survives_every_schedule_drawn() {
    latched::<p::Arc>();
}

#[test]
fn lirs_survives_every_schedule_drawn() {
    latched::<p::Lirs>();
}

#[test]
fn lean_evict_survives_every_schedule_drawn() {
    latched::<p::LeanEvict>();
}

/// Evictors that share one sorted list, one of them re-sorting it.
#[test]
fn policies_that_sort_survive_every_schedule_drawn() {
    open::<p::SortingLru>();
    open::<p::SortingLruK>();
    open::<p::AgeScan>();
}

#[test]
fn loop_survives_every_schedule_drawn() {
    open::<p::Loop>();
}

#[test]
fn watt_survives_every_schedule_drawn() {
    latched::<p::Watt>();
    open::<p::Watt>();
}

/// The tracker takes no latch (watt 5.3): hits at different ticks race for the head of a ring, and
/// with the evictor that values the page. One of them may be lost, no stamp that nobody logged may
/// come up, and a page that was hit is never one that nobody knows.
#[test]
fn watt_stamps_that_race_are_lost_at_worst() {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use millpond_base::Mark;
    use millpond_policies::parts::stamps::Stamps;
    use millpond_policies::parts::worth::{Aggregate, StampLog, Tracking, Worth, stamp};

    const TICKS: u32 = 6;
    for log in [StampLog::Both, StampLog::Strict, StampLog::Bit] {
        // Rings that are shorter than what is logged, so that slots are written again.
        let tracking = Tracking::new(log, 3, 2);
        let body = move || {
            let stamps = Arc::new(Stamps::default());
            let worth = Arc::new(Worth::new(tracking, Aggregate::Max, 0.1, 4.0, 0));
            let hit = |mark: Mark, first: u32| {
                let (stamps, worth) = (stamps.clone(), worth.clone());
                shuttle::thread::spawn(move || {
                    for tick in (first..TICKS).step_by(2) {
                        tracking.track(&stamps, tick, mark);
                        let value = worth.value(&stamps, TICKS);
                        assert!(value >= 0.0, "{log:?}: worth {value} in mid-race");
                    }
                })
            };
            let hits = [hit(Mark::READ, 0), hit(Mark::WRITE, 1), hit(Mark::WRITE, 0)];
            hits.into_iter().for_each(|thread| thread.join().unwrap());
            let plain = (0..TICKS).map(stamp);
            let with_bit = (0..TICKS).flat_map(|tick| [stamp(tick) << 1, stamp(tick) << 1 | 1]);
            let logged: BTreeSet<u32> =
                if log == StampLog::Bit { with_bit.collect() } else { plain.collect() };
            let copy = stamps.copy();
            for ring in tracking.rings().into_iter().filter(|ring| !ring.is_empty()) {
                let left: Vec<u32> = copy.iter(ring).collect();
                assert!(!left.is_empty() && left.len() <= ring.len(), "{log:?}: {left:?}");
                assert!(left.iter().all(|stamp| logged.contains(stamp)), "{log:?}: {left:?}");
                assert!(copy.head(ring) < ring.len(), "{log:?}: head {}", copy.head(ring));
            }
            assert!(
                worth.value(&stamps, TICKS) > 0.0,
                "{log:?}: a page that was hit is worth some"
            );
        };
        shuttle::check_random(body, SCHEDULES);
        shuttle::check_pct(body, SCHEDULES / 3, 3);
    }
}
