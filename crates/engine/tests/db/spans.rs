//! What a store reports to `tracing`: spans of what takes long, and events that took too long.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millpond::{Db, Options};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::place;

/// Spans and events as text.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Seen {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_string());
        span.record(&mut fields);
        let mut seen = self.0.lock().unwrap();
        seen.push(fields.0);
        Id::from_u64(seen.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields("event".to_string());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn what_takes_long_has_a_span_that_names_the_store() {
    let (dir, path) = place();
    let seen = Seen::default();
    tracing::subscriber::with_default(seen.clone(), || {
        let db = Db::open(&path, Options::new().memory(16 << 20)).unwrap();
        let tree = db.raw_tree("t").unwrap();
        tree.put(b"k", b"v").unwrap();
        db.checkpoint().unwrap();
        db.backup_to(dir.path().join("copy.mill")).unwrap();
        db.shrink().unwrap();
        drop(tree);
        db.close().unwrap();
    });
    let seen = seen.0.lock().unwrap();
    let name = path.display().to_string();
    for span in ["open", "checkpoint", "backup", "shrink"] {
        let found = seen.iter().any(|s| s.starts_with(&format!("{span} ")) && s.contains(&name));
        assert!(found, "{span}: {seen:?}");
    }
}

/// What a transaction reports that waits 150 ms for a lock in a store with these options.
fn waits_for_a_lock(options: Options) -> Vec<String> {
    let db = Db::in_memory(options.memory(16 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let holder = db.begin().unwrap();
    holder.raw_tree(&tree).put(b"k", b"v").unwrap();
    let seen = Seen::default();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            tracing::subscriber::with_default(seen.clone(), || {
                let patience = millpond::TxnOptions::default().wait_max(Duration::from_millis(150));
                let tx = db.begin_with(patience).unwrap();
                assert!(tx.raw_tree(&tree).get(b"k").unwrap_err().is_timeout());
            });
        });
        waiter.join().unwrap();
    });
    let seen = seen.0.lock().unwrap();
    seen.iter().filter(|event| event.contains("lock_time")).cloned().collect()
}

#[test]
fn what_takes_longer_than_users_said_is_reported() {
    let reported = waits_for_a_lock(Options::new().slow_after(Duration::from_millis(100)));
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("took_us"), "{reported:?}");
    let reported = waits_for_a_lock(Options::new().slow_after(Duration::from_secs(3600)));
    assert!(reported.is_empty(), "{reported:?}");
}
