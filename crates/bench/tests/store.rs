//! The trees keep the promises that the drivers rely on, in every combination, also while the
//! pool thrashes.

use std::sync::Arc;

use millpond::internals::btree;
use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond::internals::pool::{Optimistic, Pool, PoolOptions, PoolStrategy, Twin, Workers};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::HitDelivery;
use millpond::internals::store::combinations::{Combination, Visit, host_for};
use millpond::internals::store::options::policy_choice::PolicyChoice;
use millpond::{Durability, Options, TxnOptions};
use millpond_base::Seed;
use millpond_bench::stores::db_store::{DbStore, DbStoreError, Transactions};
use millpond_bench::stores::tree_store::{TABLES_MAX, TreeStore, TreeStoreError};
use millpond_device::MemoryDevice;
use millpond_policies::contract::Shape;
use millpond_workload::live::{Access, Scan, Session, Store, TableId, check_contract};

#[test]
fn the_twin_keeps_the_contract() {
    for page_size in [512, 4096] {
        let store = TreeStore::new(Arc::new(Twin::<Optimistic>::new(page_size).unwrap()));
        check_contract(&store, Seed(7), 4000).unwrap();
    }
}

/// Checks a combination on so few frames that it evicts all the time.
struct Thrash {
    frames: u32,
    policy: &'static str,
}

impl Visit for Thrash {
    type Output = ();

    fn visit<M: PoolStrategy>(self) {
        let device = Arc::new(MemoryDevice::new());
        let pages = Arc::new(PageStore::create_on(device, PageSize::TINY).unwrap());
        let policy = PolicyChoice::parse(self.policy).unwrap();
        let shape = Shape { frames: self.frames, pages_dense: None, seed: 3 };
        let delivered = host_for::<M::Hook>(&policy, &shape, HitDelivery::Auto).unwrap();
        let options = PoolOptions { batch: 2, ..PoolOptions::new(self.frames) };
        let pool = Arc::new(Pool::<M>::open(options, pages, delivered).unwrap());
        for (page_type, kind) in btree::KINDS {
            pool.register(page_type, kind);
        }
        let workers = Workers::start(pool.clone()).unwrap();
        let store = TreeStore::new(pool.clone());
        check_contract(&store, Seed(11), 1500).unwrap();
        drop(workers);
        assert!(pool.counters().get(Counter::Evictions) > 100, "it never thrashed");
    }
}

#[test]
fn every_combination_for_threads_keeps_the_contract_while_it_thrashes() {
    let combinations = [
        (Combination::SwizzledAny, "lean-evict"),
        (Combination::SwizzledAny, "random"),
        (Combination::SwizzledAny, "arc"),
        (Combination::SwizzledAny, "watt"),
        (Combination::HashedLatchedAny, "lru"),
        (Combination::SwizzledLatchedAny, "lru"),
        (Combination::SwizzledLatchedAny, "lean-evict"),
        (Combination::HashedAny, "random"),
        (Combination::SwizzledAnyRecording, "lean-evict"),
    ];
    for (combination, policy) in combinations {
        combination.visit(Thrash { frames: 48, policy });
    }
    // Its inner pages, which are small here, are never evicted: 48 frames are full of them.
    for policy in ["random", "lru"] {
        Combination::TableLatchedAny.visit(Thrash { frames: 160, policy });
    }
}

#[test]
fn a_store_as_users_open_it_keeps_the_contract_and_finds_its_tables_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.mp");
    let options = Options::new().page_size(512).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(48);
    });
    let store = DbStore::open(&path, options.clone()).unwrap();
    check_contract(&store, Seed(11), 1500).unwrap();
    assert!(store.counts().reads > 0, "it never thrashed");
    assert_eq!(store.table("nobody's").unwrap(), None);
    store.close().unwrap();
    let again = DbStore::open(&path, options).unwrap();
    let table = again.table("contract_sorted").unwrap().unwrap();
    let mut rows = 0;
    let count = |_: &[u8], _: &[u8]| {
        rows += 1;
        true
    };
    again.session().unwrap().scan(table, Scan::whole(), count).unwrap();
    assert!(rows > 0);
    let error = again.session().unwrap().get(TableId(9), b"k", |_| ()).unwrap_err();
    assert!(matches!(error, DbStoreError::NoTable { table: 9 }), "{error}");
}

#[test]
fn a_store_as_users_open_it_keeps_the_contract_in_its_transactions_and_undoes_them() {
    let folder = tempfile::tempdir().unwrap();
    let txn = TxnOptions::default().durability(Durability::Async);
    for (at, transactions) in
        [Transactions::Writes(txn), Transactions::All(txn)].into_iter().enumerate()
    {
        let path = folder.path().join(format!("store-{at}.mp"));
        let store = DbStore::open(&path, Options::new().memory(16 << 20)).unwrap();
        let store = store.with_transactions(transactions);
        check_contract(&store, Seed(11), 1500).unwrap();
        let table = store.create_table("undone").unwrap();
        let mut session = store.session().unwrap();
        assert_eq!(session.is_isolated(), transactions == Transactions::All(txn));
        session.begin(Access::Write).unwrap();
        session.put(table, b"k", b"v").unwrap();
        assert!(session.undoes() && session.get(table, b"k", |_| ()).unwrap().is_some());
        session.rollback().unwrap();
        assert!(session.get(table, b"k", |_| ()).unwrap().is_none());
        drop(session);
        store.close().unwrap();
    }
}

#[test]
fn tables_are_found_by_name_and_again_by_their_roots() {
    let twin = Arc::new(Twin::<Optimistic>::new(512).unwrap());
    let store = TreeStore::new(twin);
    let names: Vec<String> = (0..TABLES_MAX).map(|i| format!("t{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        assert_eq!(store.create_table(name).unwrap(), TableId(i as u32));
    }
    assert_eq!(store.create_table("t5").unwrap(), TableId(5));
    let error = store.create_table("more").unwrap_err();
    assert!(matches!(error, TreeStoreError::TooManyTables { .. }), "{error}");
    assert_eq!(store.roots().len(), TABLES_MAX);
    assert_eq!(store.roots()[3].0, "t3");
}

#[test]
fn a_table_that_a_session_does_not_know_is_an_error_and_no_panic() {
    let store = TreeStore::new(Arc::new(Twin::<Optimistic>::new(512).unwrap()));
    let mut session = store.session().unwrap();
    let late = store.create_table("late").unwrap();
    let error = session.get(late, b"k", |_| ()).unwrap_err();
    assert!(matches!(error, TreeStoreError::NoTable { table: 0 }), "{error}");
    assert!(session.insert(TableId(9), b"k", b"v").is_err());
}
