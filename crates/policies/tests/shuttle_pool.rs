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
