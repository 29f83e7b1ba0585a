//! Counts of entries: what a checkpoint says of one place of the log, and the records behind it,
//! come to what there is; and no reader finds what was committed at no moment.
//!
//! It finds counts that are changed after the slot of the thread was given back: a checkpoint
//! misses a record that is before its place in the log. It also finds sums over slots that are not
//! held all at once: a removal without the insertion before it.

use millpond::internals::pool::mini_transaction::RowCounts;
use shuttle::sync::mpsc::channel;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use crate::schedules::check;

const SCHEDULES: usize = 2000;

const TREE: u32 = 1;

/// Logs a change, and counts it, as a mini-transaction does.
fn change(counts: &RowCounts, log: &Mutex<Vec<i64>>, rows: i64) {
    let mut slot = counts.hold();
    log.lock().unwrap().push(rows);
    slot.add(TREE, rows, true);
}

#[test]
fn a_checkpoint_and_the_log_behind_it_count_what_there_is() {
    check(SCHEDULES, || {
        let (counts, log) = (Arc::new(RowCounts::default()), Arc::new(Mutex::new(Vec::new())));
        counts.begin(TREE);
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (counts, log) = (counts.clone(), log.clone());
                thread::spawn(move || {
                    change(&counts, &log, 1);
                    counts.commit(&[(TREE, 1)]);
                    // It ends without a commit.
                    change(&counts, &log, 1);
                    change(&counts, &log, -1);
                })
            })
            .collect();
        let taker = {
            let (counts, log) = (counts.clone(), log.clone());
            thread::spawn(move || counts.at_rest(|| log.lock().unwrap().len()))
        };
        let (begin, rows) = taker.join().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        let behind: i64 = log.lock().unwrap()[begin..].iter().sum();
        let (count, _) = counts.of(TREE).unwrap();
        assert_eq!((count.all, count.committed), (2, 2));
        assert_eq!(rows[0].1 as i64 + behind, 2);
    });
}

#[test]
fn a_reader_finds_what_was_committed_at_one_moment() {
    check(SCHEDULES, || {
        let counts = Arc::new(RowCounts::default());
        // So that no sum that is wrong is less than none.
        counts.learn(TREE, 5, counts.state(TREE));
        let (insert, inserted) = channel();
        let inserter = {
            let counts = counts.clone();
            move || {
                counts.hold().add(TREE, 3, true);
                counts.commit(&[(TREE, 3)]);
                insert.send(()).unwrap();
            }
        };
        // What has committed is removed by another thread, whose slot may have been used before.
        let remover = {
            let counts = counts.clone();
            move || {
                counts.hold().add(TREE, 0, true);
                inserted.recv().unwrap();
                counts.hold().add(TREE, -1, true);
                counts.commit(&[(TREE, -1)]);
            }
        };
        let threads = [thread::spawn(inserter), thread::spawn(remover)];
        let mut last = 5;
        for _ in 0..3 {
            let (count, _) = counts.of(TREE).unwrap();
            assert!([5, 7, 8].contains(&count.committed), "{count:?}");
            assert!(last <= count.committed || (last, count.committed) == (8, 7), "{count:?}");
            last = count.committed;
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
