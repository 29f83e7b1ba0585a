//! Evictor threads under schedules that shuttle draws: no work is left while all of them sleep, and
//! there are never more at work than were asked for.

use std::sync::Arc;
use std::time::Duration;

use crate::schedules::check;
use millpond::internals::pool::replacement::evictor_threads::EvictorThreads;
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const LONG: Duration = Duration::from_secs(3600);
const ITEMS: u32 = 4;
const SCHEDULES: usize = 2_000;

#[derive(Default)]
struct Yard {
    evictor_threads: EvictorThreads,
    items: AtomicU32,
    done: AtomicU32,
    at_work: AtomicU32,
    is_over: AtomicBool,
}

impl Yard {
    fn take(&self) -> bool {
        let less = |items: u32| items.checked_sub(1);
        self.items.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    fn member(&self, enough: u32) {
        while !self.is_over.load(Ordering::SeqCst) {
            if !self.evictor_threads.wait(LONG, || self.is_over.load(Ordering::SeqCst)) {
                continue;
            }
            assert!(self.at_work.fetch_add(1, Ordering::SeqCst) < enough, "too many at work");
            while self.take() {
                self.done.fetch_add(1, Ordering::SeqCst);
            }
            self.at_work.fetch_sub(1, Ordering::SeqCst);
            self.evictor_threads.rest();
            if self.items.load(Ordering::SeqCst) > 0 {
                self.evictor_threads.call(enough);
            }
        }
    }
}

fn work(members: u32, enough: u32) {
    let yard = Arc::new(Yard::default());
    let threads: Vec<_> = (0..members)
        .map(|_| {
            let yard = yard.clone();
            shuttle::thread::spawn(move || yard.member(enough))
        })
        .collect();
    for _ in 0..ITEMS {
        yard.items.fetch_add(1, Ordering::SeqCst);
        yard.evictor_threads.call(enough);
    }
    // Nobody calls any more: who sleeps now while there is work sleeps for ever.
    while yard.done.load(Ordering::SeqCst) < ITEMS {
        shuttle::thread::yield_now();
    }
    yard.is_over.store(true, Ordering::SeqCst);
    yard.evictor_threads.dismiss();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn no_work_is_left_while_all_members_sleep() {
    check(SCHEDULES, || work(1, 1));
    check(SCHEDULES, || work(2, 2));
}

#[test]
fn no_more_are_at_work_than_are_enough() {
    check(SCHEDULES, || work(2, 1));
}
