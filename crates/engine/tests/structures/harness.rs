//! Every memory that a structure can run on: twins, and pools so small that they thrash.

use std::marker::PhantomData;
use std::sync::Arc;

use millpond::pool::buffer::{Mode, Pool};
use millpond::pool::{Latched, Latching, Optimistic, Pages, Seated, Twin, Unlatched, Workers};
use millpond::{hash_index, heap};
use millpond_base::Reason;
use millpond_policies::config::Spec;
use millpond_policies::contract::{Rules, Shape, Touch};
use millpond_policies::policy::{LeanEvict, Lru, Random};

use crate::storage::{MemoryStorage, tiny};

/// Bytes of a page: so few that everything splits all the time.
pub const PAGE: usize = 512;

/// A test that runs on any memory.
pub trait Job {
    /// Runs it; `threads` says whether more than one thread may take part. All pages that were
    /// taken must be given back at the end.
    fn run<P: Pages>(&self, pages: &Arc<P>, threads: bool);
}

pub struct Made<L, T, const SWIZZLES: bool>(PhantomData<(L, T)>);

impl<L: Latching, T: Touch, const SWIZZLES: bool> Mode for Made<L, T, SWIZZLES> {
    type Latching = L;
    type Touch = T;
    const SWIZZLES: bool = SWIZZLES;
}

/// A pool of few frames that knows all structures' page types.
pub fn pool<M: Mode>(
    frames: u32,
    storage: &Arc<MemoryStorage>,
    seat: &dyn Fn(&Shape) -> Seated<M::Touch>,
) -> Arc<Pool<M>> {
    let shape = Shape { frames, pages_dense: None, seed: 3 };
    let pool = Pool::open(tiny(frames), storage.clone(), seat(&shape)).unwrap();
    for (page, kind) in hash_index::KINDS.into_iter().chain(heap::KINDS) {
        pool.register(page, kind);
    }
    Arc::new(pool)
}

fn thrash<M: Mode>(job: &impl Job, seat: &dyn Fn(&Shape) -> Seated<M::Touch>) {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let pool = pool::<M>(24, &storage, seat);
    let workers = Workers::start(pool.clone()).unwrap();
    job.run(&pool, M::Latching::THREADS);
    drop(workers);
    pool.check_policy().unwrap();
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0, "everything can be evicted");
    pool.return_ids().unwrap();
    assert_eq!(storage.taken(), 0, "all pages were given back");
}

fn spec(name: &str) -> Spec {
    Spec::parse(name).unwrap()
}

pub fn lean(shape: &Shape) -> Seated<<LeanEvict as Rules>::Touch> {
    Seated::exact::<LeanEvict>(&spec("lean-evict:cooling=30%"), shape).unwrap()
}

pub fn lru(shape: &Shape) -> Seated<<Lru as Rules>::Touch> {
    Seated::exact::<Lru>(&spec("lru"), shape).unwrap()
}

pub fn random(shape: &Shape) -> Seated<<Random as Rules>::Touch> {
    Seated::open::<Random>(&spec("random"), shape).unwrap()
}

/// The pool that most tests of one combination take.
pub type Swizzled = Made<Optimistic, <LeanEvict as Rules>::Touch, true>;

/// On pools of every combination of a strategy with another.
pub fn on_pools(job: &impl Job) {
    // Cooling needs swips: with a page table there is no lean eviction.
    thrash::<Made<Optimistic, <LeanEvict as Rules>::Touch, true>>(job, &lean);
    thrash::<Made<Latched, <LeanEvict as Rules>::Touch, true>>(job, &lean);
    thrash::<Made<Unlatched, <LeanEvict as Rules>::Touch, true>>(job, &lean);
    thrash::<Made<Optimistic, <Random as Rules>::Touch, false>>(job, &random);
    thrash::<Made<Unlatched, <Random as Rules>::Touch, true>>(job, &random);
    thrash::<Made<Optimistic, <Lru as Rules>::Touch, true>>(job, &lru);
    thrash::<Made<Latched, <Lru as Rules>::Touch, false>>(job, &lru);
    thrash::<Made<Unlatched, <Lru as Rules>::Touch, false>>(job, &lru);
}

/// On twins with each way of latching.
pub fn on_twins(job: &impl Job) {
    job.run(&Arc::new(Twin::<Optimistic>::new(PAGE).unwrap()), true);
    job.run(&Arc::new(Twin::<Latched>::new(PAGE).unwrap()), true);
    job.run(&Arc::new(Twin::<Unlatched>::new(PAGE).unwrap()), false);
}
