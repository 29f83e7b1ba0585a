//! The classic anomalies: none of them under `Serializable`, and under `ReadCommitted` those that
//! it permits.
//!
//! One thread drives the transactions of a scene, call by call, so that every interleaving is the
//! one that is written down. A call that has to wait for a lock fails, since it would wait for a
//! transaction of its own thread: that it does is how a scene tells a wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use millpond::{Db, Error, Isolation, Options, RawTree, Txn, TxnOptions};
use millpond_device::MemoryDevice;

use Isolation::{ReadCommitted, Serializable};

use crate::byte_calls::TxnCalls;

const BOTH: [Isolation; 2] = [Serializable, ReadCommitted];

/// A store with two trees, and transactions of one isolation.
struct Scene {
    db: Db,
    x: RawTree,
    y: RawTree,
    isolation: Isolation,
}

impl Scene {
    /// Both trees hold `key` with 50.
    fn of(db: Db, isolation: Isolation) -> Scene {
        let (x, y) = (db.raw_tree("x").unwrap(), db.raw_tree("y").unwrap());
        for tree in [&x, &y] {
            tree.clear().unwrap();
            tree.put(b"key", &[50]).unwrap();
        }
        Scene { db, x, y, isolation }
    }

    fn begin(&self) -> Tx<'_> {
        let options = TxnOptions::default().isolation(self.isolation);
        let tx = self.db.begin_with(options.wait_max(Duration::from_millis(5))).unwrap();
        Tx { scene: self, tx }
    }

    fn x(&self) -> u8 {
        self.x.get(b"key").unwrap().unwrap()[0]
    }

    fn y(&self) -> u8 {
        self.y.get(b"key").unwrap().unwrap()[0]
    }
}

struct Tx<'a> {
    scene: &'a Scene,
    tx: Txn,
}

/// A call that somebody else's lock kept waiting.
#[derive(PartialEq, Eq, Debug)]
struct Waits;

fn told<T>(result: Result<T, Error>) -> Result<T, Waits> {
    result.map_err(|error| {
        assert!(error.is_retriable() || error.is_own_transaction(), "{error}");
        Waits
    })
}

impl Tx<'_> {
    fn read_x(&mut self) -> Result<u8, Waits> {
        told(self.tx.get(&self.scene.x, b"key")).map(|value| value.unwrap()[0])
    }

    fn read_y(&mut self) -> Result<u8, Waits> {
        told(self.tx.get(&self.scene.y, b"key")).map(|value| value.unwrap()[0])
    }

    fn write_x(&mut self, value: u8) -> Result<(), Waits> {
        told(self.tx.put(&self.scene.x, b"key", &[value])).map(drop)
    }

    fn write_y(&mut self, value: u8) -> Result<(), Waits> {
        told(self.tx.put(&self.scene.y, b"key", &[value])).map(drop)
    }

    /// Returns `true` if there is such a key.
    fn has(&mut self, key: &[u8]) -> Result<bool, Waits> {
        told(self.tx.tree(&self.scene.x).contains(key))
    }

    fn insert(&mut self, key: &[u8]) -> Result<(), Waits> {
        told(self.tx.put(&self.scene.x, key, b"new")).map(drop)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Waits> {
        told(self.tx.delete(&self.scene.x, key))
    }

    /// Entries between `a` and `m`, counted in both directions.
    fn count(&mut self) -> Result<usize, Waits> {
        let (x, range) = (&self.scene.x, &b"a"[..]..&b"m"[..]);
        let there = told(self.tx.range(x, range.clone()))?.len();
        let mut back = 0;
        let each = |_: &[u8], _: &[u8]| {
            back += 1;
            true
        };
        told(self.tx.scan_back(x, range, each))?;
        if self.scene.isolation == Serializable {
            assert_eq!(there, back);
        }
        Ok(back)
    }

    fn commit(self) {
        self.tx.commit().unwrap();
    }

    fn abort(self) {
        self.tx.abort().unwrap();
    }
}

/// Plays a scene in a store with a log and in one without.
fn play(isolations: &[Isolation], scene: impl Fn(&Scene)) {
    let options = || Options::new().memory(16 << 20);
    let device = || Arc::new(MemoryDevice::new());
    let logged = Db::open_on_devices(device(), device(), options()).unwrap();
    for db in [logged, Db::in_memory(options()).unwrap()] {
        for isolation in isolations {
            scene(&Scene::of(db.clone(), *isolation));
        }
    }
}

#[test]
fn no_dirty_write_two_transactions_never_leave_one_value_of_each() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        one.write_x(1).unwrap();
        assert_eq!(two.write_x(2), Err(Waits));
        one.write_y(1).unwrap();
        one.commit();
        // The failed call left the transaction whole.
        two.write_x(2).unwrap();
        two.write_y(2).unwrap();
        two.commit();
        assert_eq!((scene.x(), scene.y()), (2, 2));
    });
}

#[test]
fn no_dirty_write_an_abort_takes_back_nothing_of_others() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        one.write_x(1).unwrap();
        assert_eq!(two.write_x(2), Err(Waits));
        one.abort();
        two.write_x(2).unwrap();
        two.commit();
        assert_eq!(scene.x(), 2);
    });
}

#[test]
fn no_aborted_read() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        one.write_x(1).unwrap();
        assert_eq!(two.read_x(), Err(Waits));
        one.abort();
        assert_eq!(two.read_x(), Ok(50));
    });
}

#[test]
fn no_read_of_what_a_savepoint_took_back() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        let savepoint = one.tx.savepoint().unwrap();
        one.write_x(1).unwrap();
        assert_eq!(two.read_x(), Err(Waits));
        one.tx.rollback_to(&savepoint).unwrap();
        assert!(matches!(two.read_x(), Err(Waits) | Ok(50)));
        one.write_y(1).unwrap();
        one.commit();
        assert_eq!((two.read_x(), two.read_y()), (Ok(50), Ok(1)));
    });
}

#[test]
fn no_intermediate_read() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        one.write_x(1).unwrap();
        assert_eq!(two.read_x(), Err(Waits));
        one.write_x(2).unwrap();
        assert_eq!(two.read_x(), Err(Waits));
        one.commit();
        assert_eq!(two.read_x(), Ok(2));
    });
}

#[test]
fn no_circular_flow_of_information() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        one.write_x(1).unwrap();
        two.write_y(2).unwrap();
        assert_eq!(one.read_y(), Err(Waits));
        assert_eq!(two.read_x(), Err(Waits));
        one.abort();
        assert_eq!(two.read_x(), Ok(50));
        two.commit();
        assert_eq!((scene.x(), scene.y()), (50, 2));
    });
}

#[test]
fn no_dirty_read_by_calls_outside_transactions() {
    play(&[Serializable], |scene| {
        for commits in [false, true] {
            let before = scene.x();
            let (is_ending, begun) = (AtomicBool::new(false), Barrier::new(3));
            let mut one = scene.begin();
            one.write_x(99).unwrap();
            one.write_x(1).unwrap();
            one.insert(b"fresh").unwrap();
            let waits = scene.db.stats().lock_waits;
            std::thread::scope(|scope| {
                let look = |key: &'static [u8]| {
                    let (is_ending, begun) = (&is_ending, &begun);
                    scope.spawn(move || {
                        begun.wait();
                        let seen = scene.x.get(key).unwrap();
                        (seen, scene.x.contains(key).unwrap(), is_ending.load(Ordering::SeqCst))
                    })
                };
                let (old, fresh) = (look(b"key"), look(b"fresh"));
                begun.wait();
                // Until both wait, or one that does not is done.
                let is_done = || old.is_finished() || fresh.is_finished();
                while scene.db.stats().lock_waits < waits + 2 && !is_done() {
                    std::thread::yield_now();
                }
                is_ending.store(true, Ordering::SeqCst);
                if commits {
                    one.commit()
                } else {
                    one.abort()
                }
                let (old, fresh) = (old.join().unwrap(), fresh.join().unwrap());
                let is_new = old.0 == Some(vec![1]) && old.2 && commits;
                assert!(is_new || old.0 == Some(vec![before]), "{old:?}");
                assert!(fresh.0.is_none() || commits && fresh.2, "{fresh:?}");
                assert!(!fresh.1 || commits && fresh.2, "{fresh:?}");
            });
        }
    });
}

/// Both read, then both write what they read plus something.
fn lose_an_update(scene: &Scene) -> (Result<(), Waits>, u8) {
    let (mut one, mut two) = (scene.begin(), scene.begin());
    let (a, b) = (one.read_x().unwrap(), two.read_x().unwrap());
    let written = one.write_x(a + 10);
    if written.is_ok() {
        one.commit();
        two.write_x(b + 20).unwrap();
        two.commit();
    } else {
        assert_eq!(two.write_x(b + 20), Err(Waits));
        one.abort();
        two.write_x(b + 20).unwrap();
        two.commit();
    }
    (written, scene.x())
}

#[test]
fn a_lost_update_only_where_reads_need_not_be_repeatable() {
    play(&[Serializable], |scene| assert_eq!(lose_an_update(scene), (Err(Waits), 70)));
    play(&[ReadCommitted], |scene| assert_eq!(lose_an_update(scene), (Ok(()), 70)));
}

#[test]
fn no_lost_update_of_what_was_read_to_be_changed() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        let a = told(one.tx.get_for_update(&scene.x, b"key")).unwrap().unwrap()[0];
        assert_eq!(told(two.tx.get_for_update(&scene.x, b"key")), Err(Waits));
        one.write_x(a + 10).unwrap();
        one.commit();
        let b = told(two.tx.get_for_update(&scene.x, b"key")).unwrap().unwrap()[0];
        two.write_x(b + 20).unwrap();
        two.commit();
        assert_eq!(scene.x(), 80);
    });
}

#[test]
fn of_two_lost_updates_that_wait_for_each_other_one_is_told() {
    play(&[Serializable], |scene| {
        let (one, two) = (scene.db.begin().unwrap(), scene.db.begin().unwrap());
        let barrier = std::sync::Barrier::new(2);
        let add = |tx: Txn, more: u8| {
            let value = tx.get(&scene.x, b"key").unwrap().unwrap()[0];
            barrier.wait();
            match told(tx.put(&scene.x, b"key", &[value + more])) {
                Ok(_) => tx.commit().map(|()| more).unwrap(),
                Err(Waits) => tx.abort().map(|()| 0).unwrap(),
            }
        };
        let sum = std::thread::scope(|scope| {
            let one = scope.spawn(|| add(one, 10));
            let two = add(two, 20);
            one.join().unwrap() + two
        });
        assert_eq!(scene.x(), 50 + sum);
        assert!(sum == 10 || sum == 20, "{sum}");
    });
}

#[test]
fn a_read_that_does_not_repeat_only_where_it_need_not() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        assert_eq!(one.read_x(), Ok(50));
        let written = two.write_x(60);
        assert_eq!(written.is_err(), scene.isolation == Serializable);
        two.commit();
        assert_eq!(one.read_x(), Ok(if written.is_ok() { 60 } else { 50 }));
    });
}

#[test]
fn read_skew_only_where_reads_need_not_be_repeatable() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        let x = one.read_x().unwrap();
        // Moves 20 from x to y.
        let moved = two.write_x(30).and_then(|()| two.write_y(70));
        if moved.is_ok() {
            two.commit()
        } else {
            two.abort()
        }
        let sum = x + one.read_y().unwrap();
        let is_skewed = scene.isolation == ReadCommitted;
        assert_eq!((moved.is_ok(), sum), (is_skewed, if is_skewed { 120 } else { 100 }));
    });
}

#[test]
fn write_skew_only_where_reads_need_not_be_repeatable() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        // Each may take 80 from its account while both together have it.
        for tx in [&mut one, &mut two] {
            assert_eq!((tx.read_x(), tx.read_y()), (Ok(50), Ok(50)));
        }
        let is_skewed = scene.isolation == ReadCommitted;
        assert_eq!(one.write_x(0).is_ok(), is_skewed);
        one.commit();
        // A transaction that did not get to write holds no lock any more, and nothing has changed.
        two.write_y(0).unwrap();
        two.commit();
        assert_eq!((scene.x(), scene.y()), (if is_skewed { 0 } else { 50 }, 0));
    });
}

#[test]
fn write_skew_over_ranges_only_where_phantoms_are_let_in() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        // Each adds an entry if there are fewer than two.
        assert_eq!((one.count(), two.count()), (Ok(1), Ok(1)));
        let is_skewed = scene.isolation == ReadCommitted;
        assert_eq!(one.insert(b"b").is_ok(), is_skewed);
        one.commit();
        two.insert(b"c").unwrap();
        two.commit();
        assert_eq!(scene.begin().count(), Ok(if is_skewed { 3 } else { 2 }));
    });
}

#[test]
fn a_phantom_comes_or_goes_only_where_it_may() {
    play(&BOTH, |scene| {
        let is_let_in = scene.isolation == ReadCommitted;
        for (key, is_insert) in [(&b"a"[..], true), (b"lzz", true), (b"key", false)] {
            let (mut one, mut two) = (scene.begin(), scene.begin());
            let before = one.count().unwrap();
            let done = if is_insert { two.insert(key) } else { two.delete(key).map(drop) };
            assert_eq!(done.is_ok(), is_let_in, "{key:?}");
            two.commit();
            assert_eq!(one.count().unwrap() == before, !is_let_in, "{key:?}");
            // What lies beside the range is free.
            let mut three = scene.begin();
            three.insert(b"m").unwrap();
            three.insert(b"Z").unwrap();
            three.abort();
        }
    });
}

#[test]
fn a_key_that_was_not_there_does_not_come_unless_it_may() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        assert_eq!(one.has(b"none"), Ok(false));
        let is_let_in = scene.isolation == ReadCommitted;
        assert_eq!(two.insert(b"none").is_ok(), is_let_in);
        two.commit();
        assert_eq!(one.has(b"none"), Ok(is_let_in));
    });
}

#[test]
fn a_key_that_was_deleted_is_not_missed_before_the_delete_is_committed() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        assert_eq!(one.delete(b"key"), Ok(true));
        assert_eq!(two.has(b"key"), Err(Waits));
        assert_eq!(two.count(), Err(Waits));
        one.abort();
        assert_eq!((two.has(b"key"), two.count()), (Ok(true), Ok(1)));
    });
}

#[test]
fn a_phantom_that_is_not_committed_is_seen_by_nobody() {
    play(&BOTH, |scene| {
        let (mut one, mut two) = (scene.begin(), scene.begin());
        one.insert(b"c").unwrap();
        assert_eq!(two.count(), Err(Waits));
        one.abort();
        assert_eq!(two.count(), Ok(1));
    });
}

#[test]
fn the_anomaly_of_the_reader_only_where_reads_need_not_be_repeatable() {
    play(&BOTH, |scene| {
        // One draws from x, and pays a fee if both together do not have it. Two pays into y. Three
        // only reads, and is not to see two's money without the fee if one did not see it.
        let (mut one, mut two, mut three) = (scene.begin(), scene.begin(), scene.begin());
        assert_eq!((one.read_x(), one.read_y()), (Ok(50), Ok(50)));
        let paid = two.read_y().and_then(|y| two.write_y(y + 100));
        let is_anomalous = scene.isolation == ReadCommitted;
        assert_eq!(paid.is_ok(), is_anomalous);
        two.commit();
        let seen = (three.read_x().unwrap(), three.read_y().unwrap());
        three.commit();
        one.write_x(9).unwrap();
        one.commit();
        assert_eq!(seen, (50, if is_anomalous { 150 } else { 50 }));
        assert_eq!(scene.x(), 9);
    });
}
