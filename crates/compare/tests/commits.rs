//! Each engine's commits last, and where they are to be durable each of them is seen to flush.
//!
//! Flushes are counted for the whole process, so one test runs at a time.

use std::sync::{Mutex};

use millpond_base::PastPoison;
use millpond_base::Seed;
use millpond_compare::engine::{Commits, Engine, Settings};
use millpond_compare::stand::{Contestant, Stand};
use millpond_compare::timed::Timing;
use millpond_compare::workload::{Data, Workload};
use millpond_compare::{engines, flushes};
use millpond_workload::live::{Access, Session, TableId};
use millpond_workload::ycsb::{Shape, UpdateStyle};

static ALONE: Mutex<()> = Mutex::new(());

const fn settings(commits: Commits) -> Settings {
    Settings {
        cache: 32 << 20,
        threads: 3,
        disk_max: 1 << 30,
        is_tight: false,
        commits,
        many_calls: false,
    }
}

/// Puts `rows` rows, each in a transaction of its own.
fn put_rows<E: Engine>(store: &E, table: TableId, rows: u32) {
    let mut session = store.session().unwrap();
    for row in 0..rows {
        session.begin(Access::Write).unwrap();
        session.put(table, &row.to_be_bytes(), &row.to_le_bytes()).unwrap();
        session.commit().unwrap();
    }
}

fn commits_last<E: Engine>(commits: Commits, rows: u32) {
    let folder = tempfile::tempdir().unwrap();
    let store = E::open(folder.path(), &settings(commits)).unwrap();
    let table = store.create_table("rows").unwrap();
    let before = flushes::calls();
    put_rows(&store, table, rows);
    let flushed = flushes::calls() - before;
    store.close().unwrap();
    let is_each = flushed >= u64::from(rows);
    assert_eq!(is_each, commits == Commits::Sync, "{flushed} flushes in {rows} commits");
    let store = E::open(folder.path(), &settings(commits)).unwrap();
    let table = store.table("rows").unwrap().unwrap();
    let mut session = store.session().unwrap();
    for row in 0..rows {
        session.begin(Access::Read).unwrap();
        let found = session.get(table, &row.to_be_bytes(), |value| value.to_vec()).unwrap();
        session.commit().unwrap();
        assert_eq!(found.as_deref(), Some(&row.to_le_bytes()[..]));
    }
    drop(session);
    store.close().unwrap();
}

/// The two workloads, as a run does them.
fn runs_the_workloads<E: Engine>() {
    for workload in [Workload::Updates, Workload::Commits] {
        let folder = tempfile::tempdir().unwrap();
        let commits = workload.logged().unwrap();
        let mut stand = Stand::<E>::new(folder.path(), &settings(commits));
        let data = Data { rows: 2000, shape: Shape::LEANSTORE, update: UpdateStyle::Put };
        stand.load(&data, workload, Seed(1)).unwrap();
        let [warm, time] = [1, 200].map(std::time::Duration::from_millis);
        for threads in [1, 3] {
            let timing = Timing { threads, warm, time, device: None, period: 1 };
            let measured = stand.slice(&data, workload, &timing, Seed(2)).unwrap();
            assert!(measured.rate > 0.0);
            if workload == Workload::Commits {
                // Threads end at different moments, so this is less than exact.
                let flushes = measured.flushes_per_op.unwrap() * f64::from(threads);
                assert!(flushes > 0.1, "{measured:?}");
            }
        }
        stand.close().unwrap();
    }
}

macro_rules! engines {
    ($($(#[$when:meta])* $name:ident: $engine:ty;)*) => {$(
        $(#[$when])*
        #[test]
        fn $name() {
            let _alone = ALONE.lock().past_poison();
            commits_last::<$engine>(Commits::Async, 2000);
            commits_last::<$engine>(Commits::Sync, 40);
            runs_the_workloads::<$engine>();
        }
    )*};
}

engines! {
    millpond_commits_last_and_are_seen_to_flush: engines::Millpond<false>;
    millpond_group_commits_last_and_are_seen_to_flush: engines::Millpond<true>;
    #[cfg(feature = "lmdb")]
    lmdb_commits_last_and_are_seen_to_flush: engines::Lmdb;
    #[cfg(feature = "redb")]
    redb_commits_last_and_are_seen_to_flush: engines::Redb;
    #[cfg(feature = "sqlite")]
    sqlite_commits_last_and_are_seen_to_flush: engines::Sqlite;
    #[cfg(feature = "fjall")]
    fjall_commits_last_and_are_seen_to_flush: engines::Fjall;
    #[cfg(feature = "rocksdb")]
    rocksdb_commits_last_and_are_seen_to_flush: engines::Rocks;
    #[cfg(feature = "wiredtiger")]
    wiredtiger_commits_last_and_are_seen_to_flush: engines::WiredTiger;
    #[cfg(feature = "berkeleydb")]
    berkeleydb_commits_last_and_are_seen_to_flush: engines::BerkeleyDb;
}
