//! Each engine keeps the contract that the drivers rely on, and its data where it says that it
//! does.

use millpond_base::Seed;
use millpond_compare::engine::{Commits, Engine, Settings};
use millpond_compare::engines;
use millpond_workload::live::{Access, Scan, Session, check_contract};

const SETTINGS: Settings = Settings {
    cache: 32 << 20,
    threads: 2,
    disk_max: 1 << 30,
    is_tight: false,
    commits: Commits::Bare,
    many_calls: false,
};

fn keeps_the_contract<E: Engine>(settings: &Settings) {
    let folder = tempfile::tempdir().unwrap();
    let store = E::open(folder.path(), settings).unwrap();
    check_contract(&store, Seed(7), 3000).unwrap();
    store.settle().unwrap();
    store.close().unwrap();
}

fn keeps_its_data<E: Engine>() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 5000u32;
    {
        let store = E::open(folder.path(), &SETTINGS).unwrap();
        store.create_table("other").unwrap();
        let table = store.create_table("kept").unwrap();
        let mut session = store.session().unwrap();
        session.begin(Access::Write).unwrap();
        for row in 0..rows {
            session.insert(table, &row.to_be_bytes(), &row.to_le_bytes()).unwrap();
        }
        session.commit().unwrap();
        drop(session);
        store.close().unwrap();
    }
    let tight = Settings { cache: 8 << 20, is_tight: true, ..SETTINGS };
    let store = E::open(folder.path(), &tight).unwrap();
    let table = store.table("kept").unwrap().unwrap();
    let mut session = store.session().unwrap();
    let mut seen = 0u32;
    session.begin(Access::Read).unwrap();
    session
        .scan(table, Scan::whole(), |key, value| {
            assert_eq!((key, value), (&seen.to_be_bytes()[..], &seen.to_le_bytes()[..]));
            seen += 1;
            true
        })
        .unwrap();
    session.commit().unwrap();
    assert_eq!(seen, rows);
    assert_eq!(store.table("none").unwrap(), None);
    drop(session);
    store.close().unwrap();
}

macro_rules! engines {
    ($($(#[$when:meta])* $name:ident: $engine:ty;)*) => {$(
        $(#[$when])*
        mod $name {
            use millpond_compare::engine::{Commits, Settings};

            #[test]
            fn keeps_the_drivers_contract() {
                super::keeps_the_contract::<$engine>(&super::SETTINGS);
            }

            #[test]
            fn keeps_the_drivers_contract_with_its_log() {
                let settings = Settings { commits: Commits::Async, ..super::SETTINGS };
                super::keeps_the_contract::<$engine>(&settings);
            }

            #[test]
            fn keeps_its_data_when_closed() {
                super::keeps_its_data::<$engine>();
            }
        }
    )*};
}

engines! {
    millpond: super::engines::Millpond<false>;
    #[cfg(feature = "lmdb")]
    lmdb: super::engines::Lmdb;
    #[cfg(feature = "redb")]
    redb: super::engines::Redb;
    #[cfg(feature = "sqlite")]
    sqlite: super::engines::Sqlite;
    #[cfg(feature = "fjall")]
    fjall: super::engines::Fjall;
    #[cfg(feature = "rocksdb")]
    rocksdb: super::engines::Rocks;
    #[cfg(feature = "wiredtiger")]
    wiredtiger: super::engines::WiredTiger;
    #[cfg(feature = "berkeleydb")]
    berkeleydb: super::engines::BerkeleyDb;
}

#[test]
fn millpond_keeps_the_drivers_contract_in_transactions_of_many_calls() {
    let settings = Settings { many_calls: true, ..SETTINGS };
    keeps_the_contract::<engines::Millpond<false>>(&settings);
}

#[test]
fn millpond_s_trees_keep_the_drivers_contract_and_their_data() {
    keeps_the_contract::<engines::MillpondTree>(&SETTINGS);
    keeps_its_data::<engines::MillpondTree>();
}

#[test]
fn the_twin_keeps_the_drivers_contract() {
    keeps_the_contract::<engines::InMemoryTwin>(&SETTINGS);
}
