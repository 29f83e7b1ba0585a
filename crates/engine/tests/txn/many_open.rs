//! Many transactions, snapshots and rollbacks: counts that programs reach.

use millpond::{Db, Error, Options};

fn store() -> Db {
    Db::in_memory(Options::new().memory(64 << 20)).unwrap()
}

#[test]
fn two_thousand_open_transactions_that_read_a_key_leave_others_room_for_locks() {
    for count in [128, 2000] {
        let db = store();
        let tree = db.tree::<u32, u32>("t").unwrap();
        for key in 0..count {
            tree.put(&key, &key).unwrap();
        }
        let mut open = Vec::new();
        for key in 0..count {
            let tx = db.begin().unwrap();
            assert_eq!(tx.tree(&tree).get(&key).unwrap(), Some(key));
            open.push(tx);
        }
        for key in count..count + 100 {
            tree.put(&key, &key).unwrap();
            db.transact(|tx| tx.tree(&tree).put(&(key + 100), &key)).unwrap();
        }
        // Each may go on, too.
        for (key, tx) in (1000..).zip(open) {
            tx.tree(&tree).put(&(key * 1000), &key).unwrap();
            tx.commit().unwrap();
        }
        assert_eq!(tree.len().unwrap(), u64::from(2 * count) + 200);
    }
}

#[test]
fn thirty_two_thousand_open_snapshots_see_each_what_was_there_when_it_began() {
    const SNAPSHOTS: u32 = 32_000;
    let db = store();
    let tree = db.tree::<u32, u32>("t").unwrap();
    let mut open = Vec::new();
    for round in 0..SNAPSHOTS {
        tree.put(&(round % 100), &round).unwrap();
        open.push(db.snapshot().unwrap());
    }
    for (round, snapshot) in (0..SNAPSHOTS).zip(&open).step_by(97) {
        assert_eq!(snapshot.tree(&tree).get(&(round % 100)).unwrap(), Some(round));
    }
    // The oldest goes first, and the newest, and those between.
    drop(open.drain(..1000));
    open.truncate(20_000);
    open.retain(|snapshot| snapshot.tree(&tree).get(&1).is_ok_and(|seen| seen.is_some()));
    assert_eq!(open.len(), 20_000);
    drop(open);
    assert_eq!(tree.get(&99).unwrap(), Some(SNAPSHOTS - 1));
}

#[test]
fn ten_thousand_rollbacks_to_one_savepoint_leave_what_was_before_it() -> Result<(), Error> {
    let db = store();
    let tree = db.tree::<u32, u32>("t")?;
    let mut tx = db.begin()?;
    for key in 0..1000 {
        tx.tree(&tree).put(&key, &key)?;
    }
    let savepoint = tx.savepoint().unwrap();
    for round in 0..10_000 {
        tx.tree(&tree).put(&(round % 1000), &7)?;
        tx.tree(&tree).put(&(1000 + round), &7)?;
        tx.rollback_to(&savepoint)?;
    }
    assert_eq!(tx.tree(&tree).len()?, 1000);
    tx.tree(&tree).put(&1000, &1000)?;
    tx.commit()?;
    let rows: Vec<_> = tree.iter().collect::<Result<_, _>>()?;
    assert!(rows.into_iter().eq((0..=1000).map(|key| (key, key))));
    Ok(())
}
