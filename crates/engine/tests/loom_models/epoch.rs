//! Epochs under every order that their memory orderings allow: they alone must keep a frame from
//! being used again while somebody reads it, although readers of the pool validate as well.
//!
//! Seen to fail without the fence of `Epochs::enter`, without that of `Epochs::give_up` and without
//! that of `Epochs::oldest`. Loom never lets a load see a later store, so it cannot test the
//! release with which a thread leaves its epoch. That release pairs with the acquire in `oldest`,
//! after which the frame is written.
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use millpond::internals::pool::epoch::Epochs;
use millpond::internals::stats::thread_slot::SLOTS;

/// A frame, the swip that leads there, and the list that it goes to.
struct Store {
    epochs: Epochs,
    swip: AtomicU64,
    frame: AtomicU64,
    waiting: Mutex<Option<u64>>,
}

const HOT: u64 = 1;
const EVICTED: u64 = 0;
const PAGE: u64 = 7;
const ANOTHER: u64 = 8;

fn read(store: &Store, slot: usize) {
    store.epochs.enter(slot);
    if store.swip.load(Ordering::Acquire) == HOT {
        let seen = store.frame.load(Ordering::Relaxed);
        assert_eq!(seen, PAGE, "the frame was used again under a reader's eyes");
    }
    store.epochs.leave(slot);
}

fn evict(store: &Store) {
    store.swip.store(EVICTED, Ordering::Release);
    let (epoch, _) = store.epochs.give_up();
    *store.waiting.lock().unwrap() = Some(epoch);
}

/// Ends an epoch, as somebody does who waits for a frame, and takes the frame if it may be had.
fn take(store: &Store) {
    store.epochs.step();
    // Somebody else's frame: what this notes of those who share a slot is believed below.
    store.epochs.oldest();
    let mut waiting = store.waiting.lock().unwrap();
    if waiting.is_some_and(|epoch| epoch < store.epochs.oldest()) {
        *waiting = None;
        store.frame.store(ANOTHER, Ordering::Relaxed);
    }
}

fn in_all_orders(slot: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let store = Arc::new(Store {
            epochs: Epochs::new(),
            swip: AtomicU64::new(HOT),
            frame: AtomicU64::new(PAGE),
            waiting: Mutex::new(None),
        });
        let reader = {
            let store = store.clone();
            thread::spawn(move || read(&store, slot))
        };
        let evictor = {
            let store = store.clone();
            thread::spawn(move || evict(&store))
        };
        take(&store);
        reader.join().unwrap();
        evictor.join().unwrap();
        take(&store);
        assert!(store.waiting.lock().unwrap().is_none(), "nobody reads it, and nobody gets it");
    });
}

#[test]
fn a_frame_is_not_used_again_while_a_thread_is_in_an_epoch_that_may_know_it() {
    in_all_orders(0);
}

#[test]
fn nor_while_one_of_those_that_share_a_slot_is() {
    in_all_orders(SLOTS - 1);
}
