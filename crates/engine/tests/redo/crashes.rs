//! Crashes at any moment.

use std::sync::Arc;

use millpond::internals::io::PageStore;
use millpond::internals::log::Log;
use millpond::internals::recovery::{Recovered, RecoveryError, RedoOptions, recover};
use millpond::report::Progress;
use millpond_base::PageId;
use millpond_device::{Device, FaultyDevice, MemoryDevice};

use super::world::{SIZE, State, World, apply_note, log_options};

type Opened = (PageStore, Log, Result<Recovered, RecoveryError>);

fn recovered(data: Arc<dyn Device>, log: Arc<dyn Device>, options: &RedoOptions) -> Opened {
    let store = PageStore::open_to_recover(data, Some(SIZE)).unwrap();
    let position = store.log_position();
    let (log, _) = Log::open(log, store.uuid(), position, &log_options()).unwrap();
    let mut last: Option<Progress> = None;
    let result = recover(&store, &log, apply_note, options, &mut |now| {
        assert!(now.done <= now.total, "{now:?}");
        if let Some(last) = last.filter(|last| last.phase == now.phase) {
            assert!(last.done <= now.done && last.total == now.total, "{last:?} {now:?}");
        }
        last = Some(now);
    });
    (store, log, result)
}

fn drawn(random: &mut fastrand::Rng) -> RedoOptions {
    let memory_bytes = [1, 4 << 10, 20 << 10, 1 << 20][random.usize(0..4)];
    RedoOptions { threads: random.usize(1..4), memory_bytes }
}

/// Compares the recovered state with the true one.
fn check(store: &PageStore, found: &Recovered, state: &State, seed: u64) {
    let size = SIZE.bytes();
    for (&page, expected) in &state.pages {
        let mut bytes = vec![0; size];
        store.read(page, &mut bytes).unwrap_or_else(|e| panic!("seed {seed}, page {page}: {e}"));
        assert!(bytes[8..] == expected[8..], "seed {seed}, page {page}");
    }
    let analysis = &found.analysis;
    for page in (0..store.pages()).map(PageId) {
        let word = state.taken.get((page.0 / 64) as usize).copied().unwrap_or(0);
        let taken = word & (1 << (page.0 % 64)) != 0 || store.is_reserved(page);
        assert_eq!(store.is_allocated(page), taken, "seed {seed}, page {page}");
    }
    let orphans = analysis.space.orphans().iter().map(|(&page, &kind)| (page, kind)).collect();
    assert_eq!(state.orphans, orphans, "seed {seed}");
    let losers: Vec<_> = state.active.values().copied().collect();
    assert_eq!(analysis.losers, losers, "seed {seed}");
    assert!(losers.iter().all(|loser| loser.tx < analysis.next_tx), "seed {seed}");
    assert!(analysis.next_tx >= state.next_tx, "seed {seed}");
    assert_eq!(store.catalog_root(), Some(PageId(2)));
}

fn copy(device: &MemoryDevice) -> MemoryDevice {
    MemoryDevice::from_bytes(&device.to_bytes())
}

/// Recovers from all crashes of `world`; answers worlds that go on after the last of them.
fn outlive(world: &World, random: &mut fastrand::Rng, seed: u64) -> Option<World> {
    let mut next = None;
    for crash in &world.crashes {
        let (data, log) = (Arc::new(copy(&crash.data)), Arc::new(copy(&crash.log)));
        let (store, opened, found) = recovered(data.clone(), log.clone(), &drawn(random));
        let found = found.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let state = world.state_at(found.analysis.end);
        check(&store, &found, state, seed);
        let written = data.to_bytes();
        drop((store, opened));

        let (store, opened, again) = recovered(data.clone(), log, &drawn(random));
        check(&store, &again.unwrap(), state, seed);
        assert!(data.to_bytes() == written, "seed {seed}: the second time gives the same");
        drop((store, opened));

        next = Some(cut_off(state, crash, random, seed));
    }
    next
}

/// Recovery that fails, or is cut off, in its middle, and is done again.
fn cut_off(
    state: &State,
    crash: &super::world::Crash,
    random: &mut fastrand::Rng,
    seed: u64,
) -> World {
    let data = Arc::new(FaultyDevice::with_crashes(copy(&crash.data), random.u64(..)));
    let log = Arc::new(FaultyDevice::with_crashes(copy(&crash.log), random.u64(..)));
    let place = random.u64(0..data.length() + 20_000);
    data.fail_writes_at(place);
    if random.bool() {
        data.fail_next_sync();
    }
    let (store, opened, _) = recovered(data.clone(), log.clone(), &drawn(random));
    drop((store, opened));
    let data = data.crash(random.u64(..)).unwrap();
    let log = log.crash(random.u64(..)).unwrap();
    let data = Arc::new(FaultyDevice::with_crashes(data, random.u64(..)));
    let log = Arc::new(FaultyDevice::with_crashes(log, random.u64(..)));
    let (store, opened, found) = recovered(data.clone(), log.clone(), &drawn(random));
    check(&store, &found.unwrap(), state, seed);
    World::after(data, log, store, opened, state.clone(), random.u64(..))
}

#[test]
fn whatever_a_crash_leaves_is_recovered_to_the_end_of_the_log() {
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(seed);
        for _ in 0..3 {
            world.run(120);
            match outlive(&world, &mut random, seed) {
                Some(next) => world = next,
                None => break,
            }
        }
    }
}
