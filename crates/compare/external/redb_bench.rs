//! Millpond in redb's own benchmark: its trait of a benchmarked database over [`millpond::Db`].
//!
//! Tried against `github:cberner/redb` at commit 599626be21ad8f58f9b737c9caaba7d6454e8333.
//! README.md beside this file says where it is copied to and how it is run. It is no part of
//! Millpond's workspaces.
//!
//! * A write transaction is a transaction of the store; its commit is durable when it returns, and
//!   asynchronous where the benchmark asks for writes without a sync.
//! * A read transaction is a snapshot, as redb's is.
//! * Compaction is `Db::shrink`.

use std::error::Error;
use std::ops::Bound;
use std::path::Path;
use std::{fs, process};

use millpond::{
    Db, Durability, ExtractIf, Options, Range, RawTree, Snapshot, Txn, TxnOptions,
};
use redb_bench::{
    BenchDatabase, BenchDatabaseConnection, BenchExtractIfResult, BenchInserter, BenchIterator,
    BenchPopResult, BenchReadTransaction, BenchReader, BenchWriteTransaction, CACHE_SIZE,
    RedbBenchDatabase, benchmark, benchmark_dir, print_results_table,
};

/// A store with the benchmark's one tree.
struct Pond {
    db: Db,
    tree: RawTree,
}

impl Pond {
    fn open(path: &Path, memory: u64) -> Result<Pond, millpond::Error> {
        let db = Db::open(path, Options::new().memory(memory))?;
        let tree = db.raw_tree("x")?;
        Ok(Pond { db, tree })
    }
}

impl BenchDatabase for Pond {
    type C<'db> = Connection<'db>;

    fn db_type_name() -> &'static str {
        "millpond"
    }

    fn connect(&self) -> Connection<'_> {
        Connection { pond: self, durability: Durability::Sync }
    }

    fn compact(&mut self) -> bool {
        must(self.db.shrink());
        true
    }
}

/// One user of the store.
struct Connection<'db> {
    pond: &'db Pond,
    durability: Durability,
}

impl BenchDatabaseConnection for Connection<'_> {
    type W<'db>
        = Write<'db>
    where
        Self: 'db;
    type R<'db>
        = Read<'db>
    where
        Self: 'db;

    fn set_sync(&mut self, sync: bool) -> bool {
        self.durability = if sync { Durability::Sync } else { Durability::Async };
        true
    }

    fn write_transaction(&self) -> Write<'_> {
        let options = TxnOptions::default().durability(self.durability);
        Write { txn: must(self.pond.db.begin_with(options)), tree: &self.pond.tree }
    }

    fn read_transaction(&self) -> Read<'_> {
        Read { snapshot: must(self.pond.db.snapshot()), tree: &self.pond.tree }
    }
}

/// A transaction.
struct Write<'db> {
    txn: Txn,
    tree: &'db RawTree,
}

impl BenchWriteTransaction for Write<'_> {
    type W<'txn>
        = Inserter<'txn>
    where
        Self: 'txn;

    fn get_inserter(&mut self) -> Inserter<'_> {
        Inserter(self.txn.tree(self.tree))
    }

    fn commit(self) -> Result<(), ()> {
        self.txn.commit().map_err(report)
    }
}

/// The tree inside a transaction.
struct Inserter<'txn>(RawTree<&'txn Txn>);

impl BenchInserter for Inserter<'_> {
    type Output<'out>
        = Vec<u8>
    where
        Self: 'out;
    type ExtractIfIterator<'out, F>
        = Extracted<'out>
    where
        Self: 'out,
        F: for<'f> FnMut(&'f [u8], &'f [u8]) -> bool + 'out;

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), ()> {
        self.0.put(key, value).map(|_| ()).map_err(report)
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), ()> {
        self.0.delete(key).map(|_| ()).map_err(report)
    }

    fn pop_first(&mut self) -> BenchPopResult<'_, Self> {
        self.0.pop_first().map_err(report)
    }

    fn pop_last(&mut self) -> BenchPopResult<'_, Self> {
        self.0.pop_last().map_err(report)
    }

    fn retain<F: FnMut(&[u8], &[u8]) -> bool>(&mut self, mut predicate: F) -> Result<u64, ()> {
        self.0.retain(|key, value| predicate(key, value)).map_err(report)
    }

    fn extract_if<'a, F>(
        &'a mut self,
        (from, to): (Bound<&[u8]>, Bound<&[u8]>),
        mut predicate: F,
    ) -> BenchExtractIfResult<'a, Self, F>
    where
        F: for<'f> FnMut(&'f [u8], &'f [u8]) -> bool + 'a,
    {
        let range = (from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec));
        let predicate: Predicate<'a> = Box::new(move |key, value| predicate(key, value));
        Ok(Extracted(self.0.extract_if(range, predicate)))
    }
}

/// The benchmark's predicates take key and value of one lifetime, the store's of two.
type Predicate<'txn> = Box<dyn FnMut(&Vec<u8>, &Vec<u8>) -> bool + 'txn>;

/// Entries that a predicate removes.
struct Extracted<'txn>(ExtractIf<'txn, Vec<u8>, Vec<u8>, Predicate<'txn>, &'txn Txn>);

impl BenchIterator for Extracted<'_> {
    type Output<'out>
        = Vec<u8>
    where
        Self: 'out;

    fn next(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.0.next().map(must)
    }
}

/// A snapshot.
struct Read<'db> {
    snapshot: Snapshot,
    tree: &'db RawTree,
}

impl BenchReadTransaction for Read<'_> {
    type T<'txn>
        = Reader<'txn>
    where
        Self: 'txn;

    fn get_reader(&self) -> Reader<'_> {
        Reader { tree: self.snapshot.tree(self.tree), value: Vec::new() }
    }
}

/// The tree in a snapshot.
struct Reader<'txn> {
    tree: RawTree<&'txn Snapshot>,
    /// The value looked up last.
    value: Vec<u8>,
}

impl BenchReader for Reader<'_> {
    type Output<'out>
        = &'out [u8]
    where
        Self: 'out;
    type Iterator<'out>
        = Entries<'out>
    where
        Self: 'out;

    fn get<'a>(&'a mut self, key: &[u8]) -> Option<&'a [u8]> {
        let is_there = must(self.tree.get_into(key, &mut self.value));
        is_there.then_some(&self.value[..])
    }

    fn range_from<'a>(&'a mut self, start: &'a [u8]) -> Entries<'a> {
        Entries(self.tree.range(start..))
    }

    fn len(&mut self) -> u64 {
        must(self.tree.len())
    }
}

/// Entries in order.
struct Entries<'txn>(Range<'txn, Vec<u8>, Vec<u8>>);

impl BenchIterator for Entries<'_> {
    type Output<'out>
        = &'out [u8]
    where
        Self: 'out;

    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        must(self.0.next_entry())
    }
}

/// Where the benchmark passes on that something failed, but not what.
fn report(error: millpond::Error) {
    eprintln!("millpond: {error}");
}

/// Where the benchmark knows no failure: says what it was, and ends.
fn must<T>(result: Result<T, millpond::Error>) -> T {
    result.unwrap_or_else(|error| {
        report(error);
        process::exit(1)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = benchmark_dir().join(".benchmark");
    fs::create_dir(&folder)?;
    let interrupted = folder.clone();
    ctrlc::set_handler(move || {
        let _ = fs::remove_dir_all(&interrupted);
        process::exit(1);
    })?;
    let redb = {
        let folder = tempfile::tempdir_in(&folder)?;
        let file = folder.path().join("redb");
        let mut db = redb::Database::builder().set_cache_size(CACHE_SIZE).create(file)?;
        benchmark(RedbBenchDatabase::new(&mut db), folder.path())
    };
    let millpond = {
        let folder = tempfile::tempdir_in(&folder)?;
        let pond = Pond::open(&folder.path().join("pond"), CACHE_SIZE as u64)?;
        benchmark(pond, folder.path())
    };
    fs::remove_dir_all(&folder)?;
    print_results_table(&[("redb", redb), ("millpond", millpond)]);
    Ok(())
}
