//! Many threads on several trees of one small store.

use millpond::{Db, Tree};

use super::{place, tiny};

#[test]
fn threads_on_several_trees_lose_nothing() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 1500;
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(64)).unwrap();
    let sum = db.tree::<u64, u64>("sums").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, sum) = (db.clone(), sum.clone());
            scope.spawn(move || {
                let own: Tree<u64, u64> = db.tree(&format!("own {}", thread % 3)).unwrap();
                let mut random = fastrand::Rng::with_seed(thread);
                for i in 0..ROUNDS {
                    own.put(&(i * THREADS + thread), &i).unwrap();
                    let add = |old: Option<u64>| Some(old.unwrap_or(0) + 1);
                    sum.update(&random.u64(..50), add).unwrap();
                    if i % 16 == 0 {
                        let rows = own.range(random.u64(..1000)..).take(20);
                        let keys: Vec<u64> = rows.map(|row| row.unwrap().0).collect();
                        assert!(keys.is_sorted());
                    }
                }
            });
        }
    });
    let total: u64 = sum.iter().map(|row| row.unwrap().1).sum();
    assert_eq!(total, THREADS * ROUNDS);
    drop(sum);
    db.close().unwrap();
    let db = Db::open(&path, tiny(64)).unwrap();
    let own = (0..3).map(|i| db.tree::<u64, u64>(&format!("own {i}")).unwrap());
    let rows: u64 = own.map(|tree| tree.len().unwrap()).sum();
    assert_eq!(rows, THREADS * ROUNDS);
}

#[test]
fn threads_that_open_and_drop_the_same_name_get_a_tree_or_an_error() {
    let db = Db::in_memory(tiny(64)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u8 {
            let db = db.clone();
            scope.spawn(move || {
                for _ in 0..100 {
                    let tree = db.raw_tree("shared").unwrap();
                    tree.put(&[thread], &[thread]).unwrap();
                    assert_eq!(tree.get(&[thread]).unwrap(), Some(vec![thread]));
                    drop(tree);
                    let _ = db.drop_tree("shared");
                }
            });
        }
    });
    let _ = db.drop_tree("shared");
    assert!(db.trees().unwrap().is_empty());
}

#[test]
fn a_check_ends_without_an_error_while_others_change_the_tree_and_is_right_when_only_merges_do() {
    let db = Db::in_memory(tiny(200)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let rows =
        |thread: u64| (0..600u64).map(move |i| [(i * 7919 % 600) as u8, i as u8, thread as u8]);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|thread| {
                let tree = &tree;
                scope.spawn(move || {
                    for round in 0..8 {
                        for key in rows(thread) {
                            // Some values go into pages of their own.
                            let len = if key[1] == 7 { 900 } else { usize::from(key[1]) / 8 };
                            tree.put(&key, &vec![round; len]).unwrap();
                        }
                        for key in rows(thread).filter(|key| key[1] % 5 != 0) {
                            tree.delete(&key).unwrap();
                        }
                    }
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            tree.check().unwrap();
        }
    });
    assert_eq!(tree.check().unwrap().violations, []);
}
