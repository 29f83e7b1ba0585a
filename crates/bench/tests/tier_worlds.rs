//! A live second tier decides as the simulated one does on the same requests.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use millpond::{Db, Options};
use millpond_base::{Mark, PageId, Reason};
use millpond_device::{Device, MemoryDevice, ReadRequest, Tag, WriteRequest};
use millpond_lab::registry::Registry;
use millpond_lab::tier2::{Model, Tier2Counts, Tier2Options};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::config::Spec;
use millpond_policies::info::Tier;
use millpond_tier::{AnyTier, BackTier, SecondTier, TierOptions};
use millpond_workload::trace::Batch;

/// Every policy of a second tier that can run live.
const POLICIES: [&str; 11] = [
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
];

/// A tier above zeros, with a cache in memory, of about `pages` pages of `page_bytes` bytes.
fn tier_of(pages: u64, page_bytes: u32, policy: &str) -> SecondTier {
    let bytes = 8192 + pages * (u64::from(page_bytes) + 48);
    let (unit, writes_back) = (page_bytes, false);
    let options = TierOptions { bytes, page_bytes, unit, seed: SEED, writes_back };
    let (below, fast) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let policy = ChosenPolicy::parse(policy, Tier::Second).unwrap();
    SecondTier::open(below, fast, &options, |_| None, |shape| policy.erased_host(shape)).unwrap()
}

/// Write-back tier: writes stay in the cache.
fn back_tier_of(pages: u64, page_bytes: u32, policy: &str) -> BackTier {
    let bytes = 16_384 + 65_536 + pages * (u64::from(page_bytes) + 96);
    let (unit, writes_back) = (page_bytes, true);
    let options = TierOptions { bytes, page_bytes, unit, seed: SEED, writes_back };
    let (below, fast) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let policy = ChosenPolicy::parse(policy, Tier::Second).unwrap();
    BackTier::open(below, fast, &options, |shape| policy.erased_host(shape)).unwrap()
}

/// Has the tier read or write a page. The first place is no page's.
fn request(tier: &dyn Device, page: PageId, mark: Mark) {
    let (offset, tags) = (page.0 * 512 + 512, [Tag { page, reason: mark.reason() }]);
    let mut bytes = [0; 512];
    if mark.is_write() {
        let parts = [IoSlice::new(&bytes)];
        let mut requests = [WriteRequest::new(offset, &parts).tagged(&tags)];
        tier.write_batch(&mut requests);
        assert_eq!(requests[0].result, Ok(()));
    } else {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let mut requests = [ReadRequest::new(offset, &mut parts).tagged(&tags)];
        tier.read_batch(&mut requests);
        assert_eq!(requests[0].result, Ok(()));
    }
}

const SEED: u64 = 7;

/// Counts of the simulator for the requests.
fn simulated(requests: &[(PageId, Mark)], policy: &str, frames: u32, model: Model) -> Tier2Counts {
    let mut trace = Batch::default();
    requests.iter().for_each(|(page, mark)| trace.push(page.0, *mark));
    let options = Tier2Options { seed: SEED, ..Tier2Options::new(frames, None, model) };
    let (registry, spec) = (Registry::builtin(), Spec::parse(policy).unwrap());
    let entry = registry.find(&spec.id).unwrap();
    let mut cache = entry.tier2(&spec, &options).unwrap();
    cache.run(&trace, None).unwrap();
    cache.counts()
}

fn assert_same(tier: &AnyTier, requests: &[(PageId, Mark)], policy: &str) -> Tier2Counts {
    let live = tier.counts();
    let model = if matches!(tier, AnyTier::Back(_)) { Model::Rw } else { Model::Read };
    let other = simulated(requests, policy, live.frames as u32, model);
    let hits = (live.read_hits, live.read_hits + live.write_hits);
    assert_eq!(hits, (other.read_hits_cold, other.hits), "hits of {policy}");
    let misses = (live.bypasses, live.evictions);
    assert_eq!(misses, (other.bypasses, other.evictions), "bypasses and evictions of {policy}");
    assert_eq!(live.reads + live.writes, other.references);
    match tier {
        AnyTier::Through(tier) => tier.check().unwrap(),
        AnyTier::Back(tier) => tier.check().unwrap(),
    }
    other
}

/// Requests like a first tier's: what is read is in the pool for a while, then written or not.
fn requests(seed: u64, count: usize) -> Vec<(PageId, Mark)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let reasons = [Reason::Synch, Reason::Replace, Reason::Replace, Reason::Recov];
    let draw = |_| {
        let page = (random.f64().powi(3) * 400.0) as u64;
        let write = Mark::WRITE.with_reason(reasons[random.usize(..4)]);
        (PageId(page), if random.u8(..5) < 3 { Mark::READ } else { write })
    };
    (0..count).map(draw).collect()
}

#[test]
fn each_policy_decides_as_in_the_simulator() {
    for policy in POLICIES {
        for (seed, pages) in [(1, 12), (2, 60), (3, 300), (4, 1000)] {
            let tier = tier_of(pages, 512, policy);
            tier.grow(401 * 512).unwrap();
            tier.record();
            let requests = requests(seed, 6000);
            requests.iter().for_each(|(page, mark)| request(&tier, *page, *mark));
            assert_eq!(tier.recorded(), requests);
            let counts = tier.counts();
            // Each hit of a read was one: nothing else happened meanwhile.
            assert_eq!((counts.served, counts.mismatches), (counts.read_hits, 0), "{counts:?}");
            assert_same(&AnyTier::Through(Arc::new(tier)), &requests, policy);
        }
    }
}

/// Writes stay in the cache, like in the model `rw`: every requested page is kept, and a policy
/// that knows of writes is told which pages are dirty. The requests to storage are those that the
/// simulator counts, except for pages that came back before their turn to be written.
///
/// A thread that writes ahead of need changes none of this: it writes only evicted pages.
#[test]
fn so_it_does_where_writes_stay() {
    for (at, policy) in POLICIES.into_iter().enumerate() {
        for (seed, pages) in [(1, 16), (2, 60), (3, 300), (4, 1000)] {
            let tier = back_tier_of(pages, 512, policy);
            let tier =
                if (at as u64 + seed).is_multiple_of(2) { tier.destaging_ahead() } else { tier };
            tier.grow(401 * 512).unwrap();
            tier.record();
            let requests = requests(seed, 6000);
            requests.iter().for_each(|(page, mark)| request(&tier, *page, *mark));
            assert_eq!(tier.recorded(), requests);
            let counts = tier.counts();
            let other = assert_same(&AnyTier::Back(Arc::new(tier)), &requests, policy);
            assert!(counts.destaged <= other.evict_writes, "{policy} {pages}: {counts:?}");
            assert_eq!((counts.mismatches, other.bypasses), (0, 0));
        }
    }
}

/// A store, too, on what its pool asked for; its pages lie elsewhere after each write.
#[test]
fn so_it_does_below_a_store() {
    for policy in ["tq", "t2-lru", "mq-hints", "arc-io"] {
        let tier = Arc::new(tier_of(400, 4096, policy));
        tier.record();
        // The threads that evict write all dirty pages that go: on a busy machine the background
        // writer writes all of them, or none.
        let store =
            Options::new().lab(|lab| (lab.frames, lab.background_writer) = (Some(100), false));
        let log = Arc::new(MemoryDevice::new());
        let db = Db::open_on_devices(tier.clone(), log, store).unwrap();
        let tree = db.tree::<u64, String>("rows").unwrap();
        let mut random = fastrand::Rng::with_seed(9);
        for round in 0..30_000u64 {
            let key = (random.f64().powi(2) * 8000.0) as u64;
            if round < 8000 || random.u8(..3) == 0 {
                tree.put(&key, &format!("{round:0200}")).unwrap();
            } else {
                tree.get(&key).unwrap();
            }
        }
        db.checkpoint().unwrap();
        drop(tree);
        db.close().unwrap();
        let requests = tier.recorded();
        let reasons: Vec<Reason> = requests.iter().map(|(_, mark)| mark.reason()).collect();
        assert!([Reason::Synch, Reason::Recov].iter().all(|reason| reasons.contains(reason)));
        assert!(requests.len() > 5000, "{}", requests.len());
        assert_same(&AnyTier::Through(tier), &requests, policy);
    }
}
