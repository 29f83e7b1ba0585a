//! Evictor threads under stress: many workers, a pool much smaller than the data, one to four
//! evictors, dirty pages throughout. The counts of each worker must be there at the end, and no
//! frame may be lost. The work must get done: each worker does the same number of operations,
//! however threads run.

use std::sync::Arc;

use crate::pool::forest::{FAN_OUT, Forest};
use crate::pool::storage::{MemoryStorage, tiny};
use millpond::internals::page::PageType;
use millpond::internals::pool::{
    EvictionMode, HostedPolicy, Kind, Optimistic, Pool, PoolOptions, PoolStrategy, State, Workers,
};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::Compiled;
use millpond_base::cleaning::Cleaning;
use millpond_base::{Reason, Share};
use millpond_policies::config::Spec;
use millpond_policies::contract::{HitHook, PolicySpec, Shape};
use millpond_policies::policy::{LeanEvict, Lru, Random, Watt};

const PAGE: usize = 512;
const LEAVES: usize = FAN_OUT * FAN_OUT;
const THREADS: usize = 6;
const OPERATIONS: usize = 400;

type Made<T> = Compiled<Optimistic, T, true>;

type TouchOf<P> = <P as PolicySpec>::Hook;

fn register<M: PoolStrategy>(pool: &Pool<M>, page: PageType, kind: &'static dyn Kind) {
    pool.register(page, kind);
}

fn spec(name: &str) -> Spec {
    Spec::parse(name).unwrap()
}

fn shape(frames: u32) -> Shape {
    Shape { frames, pages_dense: None, seed: 3 }
}

/// Each thread counts on leaves of its own and reads everybody's.
fn stress<M: PoolStrategy>(forest: &Forest<Pool<M>>) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                let mut counted = [0u64; LEAVES];
                for own in (thread..LEAVES).step_by(THREADS) {
                    counted[own] = forest.read(own).unwrap();
                }
                for _ in 0..OPERATIONS {
                    let own = random.usize(..LEAVES / THREADS) * THREADS + thread;
                    if random.bool() {
                        forest.count(own).unwrap();
                        counted[own] += 1;
                    } else {
                        let _ = forest.read_if_there(random.usize(..LEAVES)).unwrap();
                        assert_eq!(forest.read(own).unwrap(), counted[own]);
                    }
                }
                for own in (thread..LEAVES).step_by(THREADS) {
                    assert_eq!(forest.read(own).unwrap(), counted[own]);
                }
            });
        }
    });
}

fn run<T: HitHook>(options: PoolOptions, hosted: HostedPolicy<T>) {
    let (evictors, frames) = (options.evictors, options.frames);
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let pool = Arc::new(Pool::<Made<T>>::open(options, storage, hosted).unwrap());
    let workers = Workers::start(pool.clone()).unwrap();
    let forest = Forest::new(pool.clone(), register::<Made<T>>);
    stress(&forest);
    drop(workers);
    pool.check_policy().unwrap();
    let evictions = pool.counters().get(Counter::Evictions);
    assert!(evictions > u64::from(frames), "{evictions} evictions by {evictors:?}");
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0, "everything can be evicted");
    assert_eq!(pool.census().get(&State::Free), Some(&frames), "no frame is lost");
}

fn all_ways<T: HitHook>(policy_host: impl Fn(&Shape) -> HostedPolicy<T>) {
    let adaptive = (1..=4).map(EvictionMode::adaptive);
    for evictors in adaptive.chain([EvictionMode::threads(3), EvictionMode::Worker]) {
        for (frames, batch, background_writer) in [(20, 4, false), (32, 8, true)] {
            let options = PoolOptions { evictors, batch, background_writer, ..tiny(frames) };
            run(options, policy_host(&shape(frames)));
        }
    }
    for threads in 1..=4 {
        let cleaning = Some(Cleaning { dirty: Share(0.1), free: Share(0.2), neighbours: false });
        let evictors = EvictionMode::threads(threads);
        let options = PoolOptions { evictors, cleaning, ..tiny(24) };
        run(options, policy_host(&shape(24)));
    }
}

#[test]
fn open_policies_survive_any_number_of_evictors() {
    all_ways::<TouchOf<Random>>(|shape| {
        HostedPolicy::open::<Random>(&spec("random"), shape).unwrap()
    });
    all_ways::<TouchOf<Watt>>(|shape| HostedPolicy::open::<Watt>(&spec("watt"), shape).unwrap());
}

#[test]
fn policies_under_a_mutex_survive_any_number_of_evictors() {
    all_ways::<TouchOf<LeanEvict>>(|shape| {
        HostedPolicy::exact::<LeanEvict>(&spec("lean-evict:cooling=30%"), shape).unwrap()
    });
    all_ways::<TouchOf<Lru>>(|shape| HostedPolicy::exact::<Lru>(&spec("lru"), shape).unwrap());
}

type Simple = Pool<Made<TouchOf<Random>>>;

fn a_pool(options: PoolOptions) -> (Arc<Simple>, Forest<Simple>) {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let hosted = HostedPolicy::open::<Random>(&spec("random"), &shape(options.frames)).unwrap();
    let pool = Arc::new(Pool::open(options, storage, hosted).unwrap());
    let forest = Forest::new(pool.clone(), register);
    (pool, forest)
}

/// Evictors that work for ever, or wake each other, would never all be off duty.
#[test]
fn evictors_go_to_sleep_when_enough_frames_are_free_or_nothing_can_go() {
    for frames in [24, 200] {
        let evictors = EvictionMode::adaptive(3);
        let options = PoolOptions { evictors, batch: 4, background_writer: false, ..tiny(frames) };
        let (pool, forest) = a_pool(options);
        let workers = Workers::start(pool.clone()).unwrap();
        for _ in 0..3 {
            stress(&forest);
            while pool.evictors_awake() > 0 {
                std::thread::yield_now();
            }
        }
        drop(workers);
    }
}

/// More evictors are configured than run: a thread that needs a frame gets it all the same.
#[test]
fn workers_evict_where_no_evictor_comes() {
    let evictors = EvictionMode::adaptive(2);
    let options = PoolOptions { evictors, batch: 4, background_writer: false, ..tiny(20) };
    let (pool, forest) = a_pool(options);
    // No `Workers`: no thread takes the calls.
    stress(&forest);
    assert!(pool.counters().get(Counter::Evictions) > 20);
    pool.flush(Reason::Recov).unwrap();
    assert_eq!(pool.evict_all().unwrap(), 0);
}

#[test]
fn what_an_open_policy_wants_out_is_written_once_and_goes() {
    let evictors = EvictionMode::Worker;
    let options = PoolOptions { evictors, batch: 8, background_writer: false, ..tiny(200) };
    let (pool, forest) = a_pool(options);
    for leaf in 0..LEAVES {
        forest.count(leaf).unwrap();
    }
    pool.flush(Reason::Recov).unwrap();
    assert!(pool.make_dirty() as usize > LEAVES, "all leaves, and what is above them");
    let (before, free) = (pool.counters().get(Counter::Evictions), pool.frames_free());
    let out = pool.evict_until(free + 40).unwrap();
    assert_eq!(pool.counters().get(Counter::Evictions) - before, out.pages);
    assert!(out.pages >= 40 && out.looked >= out.pages, "{out:?}");
    // Inner pages are written and stay while they have children; each leaf that is written goes.
    assert!(out.written >= out.pages && out.written <= out.pages + 24, "{out:?}");
    for leaf in 0..LEAVES {
        assert_eq!(forest.read(leaf).unwrap(), 1);
    }
}
