//! Every policy in a live pool under threads: hits, misses, writes, drops and evictions at once.

use millpond_base::sync::Mutex;
use millpond_policies::contract::{OpenPolicy, Policy, Shape};
use millpond_policies::erased::{Cold, OpenCold};
use millpond_policies::policy as p;
use millpond_policies::registry::{Visitor, visit_all};

use crate::mock_pool::{Load, PolicyHost, Setup, run};

fn shape(frames: u32, seed: u64) -> Shape {
    Shape { frames, pages_dense: None, seed }
}

fn load(seed: u64) -> Load {
    Load {
        threads: 3,
        references: 1500,
        pages: 100,
        skew: 3,
        drops: 1,
        evicts_ahead: seed % 2 == 1,
        seed,
    }
}

struct Live {
    failures: Vec<String>,
}

impl Visitor for Live {
    fn visit<P: Policy>(&mut self) {
        if P::NEEDS_FUTURE {
            return;
        }
        for (batched, frames, seed) in [(false, 9, 2), (true, 33, 3), (false, 33, 5)] {
            let policy = P::new(&P::Config::default(), &shape(frames, seed));
            let params = policy.params();
            let cold: Box<dyn Cold<P::Hook>> = Box::new(policy);
            let policy_host = if batched {
                PolicyHost::Batched(Mutex::new(cold))
            } else {
                PolicyHost::Exact(Mutex::new(cold))
            };
            if let Err(why) = run(Setup { frames, params, policy_host }, load(seed)) {
                self.failures.push(format!("{} (batched: {batched}): {why}", P::INFO.id));
            }
        }
    }
}

#[test]
fn every_policy_serves_a_pool_under_threads_exactly_and_in_batches() {
    let mut live = Live { failures: Vec::new() };
    visit_all(&mut live);
    assert!(live.failures.is_empty(), "{}", live.failures.join("\n"));
}

fn open<P: OpenPolicy>() {
    for (frames, seed) in [(9, 6), (33, 7), (64, 9)] {
        let policy = P::new(&P::Config::default(), &shape(frames, seed));
        let params = policy.params();
        let cold: Box<dyn OpenCold<P::Hook>> = Box::new(policy);
        run(Setup { frames, params, policy_host: PolicyHost::Open(cold) }, load(seed))
            .unwrap_or_else(|why| panic!("{}: {why}", P::INFO.id));
    }
}

#[test]
fn open_policies_serve_a_pool_without_any_latch() {
    open::<p::Random>();
    open::<p::Loop>();
    open::<p::Clock>();
    open::<p::Zclock>();
    open::<p::GclockV1>();
    open::<p::GclockV2>();
    open::<p::DgclockV1>();
    open::<p::DgclockV2>();
    open::<p::ClockSweep>();
    open::<p::Watt>();
    open::<p::Hyperbolic>();
    open::<p::SortingLru>();
    open::<p::SortingLruK>();
    open::<p::AgeScan>();
}
