//! Reports of a store to `tracing`: spans of long operations, and events for those that took too
//! long.

use std::time::Duration;

use millpond::{Db, Options, TxnOptions};

use super::place;
use crate::traced::traced;

#[test]
fn what_takes_long_has_a_span_that_names_the_store() {
    let (dir, path) = place();
    let (seen, ()) = traced(|| {
        let db = Db::open(&path, Options::new().memory(16 << 20)).unwrap();
        let tree = db.raw_tree("t").unwrap();
        tree.put(b"k", b"v").unwrap();
        db.checkpoint().unwrap();
        db.backup_to(dir.path().join("copy.mill")).unwrap();
        db.shrink().unwrap();
        drop(tree);
        db.close().unwrap();
    });
    let seen: Vec<String> = seen.into_iter().map(|reported| reported.text).collect();
    let name = path.display().to_string();
    for span in ["open", "checkpoint", "backup", "shrink"] {
        let found = seen.iter().any(|s| s.starts_with(&format!("{span} ")) && s.contains(&name));
        assert!(found, "{span}: {seen:?}");
    }
}

/// Returns the reports of a transaction that waits 150 ms for a lock in a store with `options`.
fn waits_for_a_lock(options: Options) -> Vec<String> {
    let db = Db::in_memory(options.memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let holder = db.begin().unwrap();
    holder.tree(&tree).put(b"k", b"v").unwrap();
    let wait = || {
        let patience = TxnOptions::default().wait_max(Duration::from_millis(150));
        let tx = db.begin_with(patience).unwrap();
        assert!(tx.tree(&tree).get(b"k").unwrap_err().is_timeout());
    };
    let seen = std::thread::scope(|scope| scope.spawn(|| traced(wait).0).join().unwrap());
    let texts = seen.into_iter().map(|reported| reported.text);
    texts.filter(|text| text.contains("lock_time")).collect()
}

#[test]
fn what_takes_longer_than_users_said_is_reported() {
    let reported = waits_for_a_lock(Options::new().slow_after(Duration::from_millis(100)));
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("took_us"), "{reported:?}");
    let reported = waits_for_a_lock(Options::new().slow_after(Duration::from_secs(3600)));
    assert!(reported.is_empty(), "{reported:?}");
}
