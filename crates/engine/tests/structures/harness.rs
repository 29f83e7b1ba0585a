//! Every memory that a structure can run on: twins, and pools so small that they thrash.

use std::sync::Arc;

use millpond::internals::pool::{
    HostedPolicy, Latched, Latching, Optimistic, Pages, Twin, Unlatched, Workers,
};
use millpond::internals::pool::{Pool, PoolStrategy};
pub use millpond::internals::store::combinations::Compiled as Made;
use millpond::internals::{hash_index, heap};
use millpond_base::Reason;
use millpond_policies::config::Spec;
use millpond_policies::contract::{PolicySpec, Shape};
use millpond_policies::policy::{LeanEvict, Lru, Random};

use crate::pool::storage::{MemoryStorage, tiny};

/// Bytes of a page: few, so that pages split all the time.
pub const PAGE: usize = 512;

/// A test that runs on any memory.
pub trait Job {
    /// Runs it; `threads`: whether more than one thread may take part. All pages that were
    /// allocated must be freed at the end.
    fn run<P: Pages>(&self, pages: &Arc<P>, threads: bool);
}

/// Creates a pool of few frames with the page kinds of all structures.
pub fn pool<M: PoolStrategy>(
    frames: u32,
    storage: &Arc<MemoryStorage>,
    policy_host: &dyn Fn(&Shape) -> HostedPolicy<M::Hook>,
) -> Arc<Pool<M>> {
    let shape = Shape { frames, pages_dense: None, seed: 3 };
    let pool = Pool::open(tiny(frames), storage.clone(), policy_host(&shape)).unwrap();
    for (page, kind) in hash_index::KINDS.into_iter().chain(heap::KINDS) {
        pool.register(page, kind);
    }
    Arc::new(pool)
}

fn thrash<M: PoolStrategy>(job: &impl Job, policy_host: &dyn Fn(&Shape) -> HostedPolicy<M::Hook>) {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let pool = pool::<M>(24, &storage, policy_host);
    let workers = Workers::start(pool.clone()).unwrap();
    job.run(&pool, M::Latching::THREADS);
    drop(workers);
    pool.check_policy().unwrap();
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0, "everything can be evicted");
    pool.ids().return_all().unwrap();
    assert_eq!(storage.taken(), 0, "all pages were freed");
}

fn spec(name: &str) -> Spec {
    Spec::parse(name).unwrap()
}

pub fn lean(shape: &Shape) -> HostedPolicy<<LeanEvict as PolicySpec>::Hook> {
    HostedPolicy::exact::<LeanEvict>(&spec("lean-evict:cooling=30%"), shape).unwrap()
}

pub fn lru(shape: &Shape) -> HostedPolicy<<Lru as PolicySpec>::Hook> {
    HostedPolicy::exact::<Lru>(&spec("lru"), shape).unwrap()
}

pub fn random(shape: &Shape) -> HostedPolicy<<Random as PolicySpec>::Hook> {
    HostedPolicy::open::<Random>(&spec("random"), shape).unwrap()
}

/// The pool of most tests of one combination.
pub type Swizzled = Made<Optimistic, <LeanEvict as PolicySpec>::Hook, true>;

/// On pools of every combination of a strategy with another.
pub fn on_pools(job: &impl Job) {
    // Cooling needs swips: with a page table there is no lean eviction.
    thrash::<Made<Optimistic, <LeanEvict as PolicySpec>::Hook, true>>(job, &lean);
    thrash::<Made<Latched, <LeanEvict as PolicySpec>::Hook, true>>(job, &lean);
    thrash::<Made<Unlatched, <LeanEvict as PolicySpec>::Hook, true>>(job, &lean);
    thrash::<Made<Optimistic, <Random as PolicySpec>::Hook, false>>(job, &random);
    thrash::<Made<Unlatched, <Random as PolicySpec>::Hook, true>>(job, &random);
    thrash::<Made<Optimistic, <Lru as PolicySpec>::Hook, true>>(job, &lru);
    thrash::<Made<Latched, <Lru as PolicySpec>::Hook, false>>(job, &lru);
    thrash::<Made<Unlatched, <Lru as PolicySpec>::Hook, false>>(job, &lru);
}

/// On twins with each way of latching.
pub fn on_twins(job: &impl Job) {
    job.run(&Arc::new(Twin::<Optimistic>::new(PAGE).unwrap()), true);
    job.run(&Arc::new(Twin::<Latched>::new(PAGE).unwrap()), true);
    job.run(&Arc::new(Twin::<Unlatched>::new(PAGE).unwrap()), false);
}
