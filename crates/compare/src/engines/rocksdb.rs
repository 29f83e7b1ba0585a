//! RocksDB 7.8, the system's library.
//!
//! * A block cache of the given size, that holds index and filter blocks too; direct reads, and
//!   direct I/O for flushes and compactions; blocks of 4 KiB; Bloom filters of 10 bits a key.
//!   Where memory is tight, two memtables of an eighth of the cache each.
//! * Bare: no log; memtables are flushed when the store is closed. Asynchronous as it is by
//!   default: a log that is not synced by commits. Durable: `sync` in the options of each write. No
//!   compression.
//! * Sorted rows are written to a table file, which is then made part of the store.
//! * A table is a column family. Each operation is one of RocksDB's; updates, inserts and removes
//!   read and write under a lock that the key chooses, which is cheaper than its transactions. Its
//!   sessions are thus no more isolated than Millpond's. An insert reads first, since the drivers'
//!   `insert` returns whether the row existed.

use std::path::Path;
use std::sync::Arc;

use ::rocksdb::{
    BlockBasedOptions, BoundColumnFamily, Cache, DBCompressionType, DBWithThreadMode, FlushOptions,
    IngestExternalFileOptions, MultiThreaded, Options, ReadOptions, SstFileWriter, WriteOptions,
};
use millpond_workload::live::{Direction, Scan, Session, Store, TableId};

use crate::engine::{Commits, Engine, Settings};
use crate::stripes::Stripes;
use millpond_bench::stores::names::Names;

type Db = DBWithThreadMode<MultiThreaded>;

/// Error of RocksDB.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RocksError {
    /// The engine.
    #[error("RocksDB: {0}")]
    Engine(::rocksdb::Error),
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

millpond_base::from_variants! { RocksError {
    Engine(::rocksdb::Error),
} }

/// RocksDB.
pub struct Rocks {
    db: Db,
    options: Options,
    tables: Names<()>,
    stripes: Stripes,
    commits: Commits,
}

/// One thread's way into RocksDB.
pub struct RocksSession<'s> {
    store: &'s Rocks,
    tables: Vec<Arc<BoundColumnFamily<'s>>>,
    reading: ReadOptions,
    writing: WriteOptions,
    scratch: Vec<u8>,
}

impl Store for Rocks {
    type Error = RocksError;
    type Session<'s> = RocksSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, RocksError> {
        self.tables.find_or(name, |_| Ok(self.db.create_cf(name, &self.options)?))
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, RocksError> {
        Ok(self.tables.find(name))
    }

    fn session(&self) -> Result<RocksSession<'_>, RocksError> {
        // Every name in the list has its family.
        let names = self.tables.names();
        let tables = names.iter().filter_map(|name| self.db.cf_handle(name)).collect();
        let mut writing = WriteOptions::default();
        writing.set_sync(self.commits == Commits::Sync);
        writing.disable_wal(self.commits == Commits::Bare);
        Ok(RocksSession {
            store: self,
            tables,
            reading: ReadOptions::default(),
            writing,
            scratch: Vec::new(),
        })
    }
}

impl<'s> RocksSession<'s> {
    #[inline]
    fn at(&self, table: TableId) -> Result<&Arc<BoundColumnFamily<'s>>, RocksError> {
        self.tables.get(table.0 as usize).ok_or(RocksError::UnknownTable { table })
    }
}

impl Session for RocksSession<'_> {
    type Error = RocksError;

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, RocksError> {
        let found = self.store.db.get_pinned_cf_opt(self.at(table)?, key, &self.reading)?;
        Ok(found.map(|value| read(&value)))
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, RocksError> {
        let (db, family) = (&self.store.db, self.at(table)?);
        let _row = self.store.stripes.lock(table, key);
        if db.get_pinned_cf_opt(family, key, &self.reading)?.is_some() {
            return Ok(false);
        }
        db.put_cf_opt(family, key, value, &self.writing)?;
        Ok(true)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), RocksError> {
        Ok(self.store.db.put_cf_opt(self.at(table)?, key, value, &self.writing)?)
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, RocksError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (db, family) = (&self.store.db, self.at(table)?);
        let _row = self.store.stripes.lock(table, key);
        let Some(value) = db.get_pinned_cf_opt(family, key, &self.reading)? else {
            return Ok(None);
        };
        scratch.clear();
        scratch.extend_from_slice(&value);
        let answer = change(&mut scratch);
        db.put_cf_opt(family, key, &scratch, &self.writing)?;
        self.scratch = scratch;
        Ok(Some(answer))
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, RocksError> {
        let (db, family) = (&self.store.db, self.at(table)?);
        let _row = self.store.stripes.lock(table, key);
        if db.get_pinned_cf_opt(family, key, &self.reading)?.is_none() {
            return Ok(false);
        }
        db.delete_cf_opt(family, key, &self.writing)?;
        Ok(true)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), RocksError> {
        let reading = ReadOptions::default();
        let mut rows = self.store.db.raw_iterator_cf_opt(self.at(table)?, reading);
        let upwards = scan.direction == Direction::Ascending;
        if upwards {
            rows.seek(scan.start)
        } else {
            rows.seek_for_prev(scan.start)
        }
        while let Some((key, value)) = rows.item() {
            if !visit(key, value) {
                return Ok(());
            }
            if upwards { rows.next() } else { rows.prev() }
        }
        Ok(rows.status()?)
    }

    /// A table file, which is ingested.
    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, RocksError> {
        let family = self.at(table)?;
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0u64);
        let path = self.store.db.path().join(format!("load-{}", table.0));
        let mut writer = SstFileWriter::create(&self.store.options);
        writer.open(&path)?;
        while next(&mut key, &mut value) {
            writer.put(&key, &value)?;
            rows += 1;
        }
        if rows == 0 {
            // A file without rows is an error.
            return Ok(0);
        }
        writer.finish()?;
        let mut ingesting = IngestExternalFileOptions::default();
        ingesting.set_move_files(true);
        self.store.db.ingest_external_file_cf_opts(family, &ingesting, vec![path])?;
        Ok(rows)
    }
}

fn options(settings: &Settings) -> anyhow::Result<Options> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(settings.cache as usize)?);
    blocks.set_block_size(4096);
    blocks.set_bloom_filter(10.0, false);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_format_version(5);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.increase_parallelism(settings.threads.max(2) as i32);
    options.set_max_open_files(-1);
    if settings.is_tight {
        options.set_write_buffer_size((settings.cache / 8) as usize);
    }
    Ok(options)
}

impl Engine for Rocks {
    const NAME: &'static str = "rocksdb";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Rocks> {
        let options = options(settings)?;
        // An error means that there is nothing yet.
        let families = Db::list_cf(&options, folder).unwrap_or_else(|_| vec!["default".into()]);
        let with_options = families.iter().map(|name| (name.as_str(), options.clone()));
        let db = Db::open_cf_with_opts(&options, folder, with_options)?;
        let tables = Names::new();
        for name in families.iter().filter(|name| *name != "default") {
            tables.find_or(name, |_| anyhow::Ok(()))?;
        }
        Ok(Rocks { db, options, tables, stripes: Stripes::new(), commits: settings.commits })
    }

    fn settle(&self) -> anyhow::Result<()> {
        let mut waiting = FlushOptions::default();
        waiting.set_wait(true);
        for name in self.tables.names() {
            if let Some(family) = self.db.cf_handle(&name) {
                self.db.flush_cf_opt(&family, &waiting)?;
            }
        }
        // Compactions that are due continue by themselves until none is left.
        loop {
            let mut busy = 0;
            for name in self.tables.names() {
                let Some(family) = self.db.cf_handle(&name) else { continue };
                for property in ["rocksdb.compaction-pending", "rocksdb.num-running-compactions"] {
                    busy += self.db.property_int_value_cf(&family, property)?.unwrap_or(0);
                }
            }
            if busy == 0 {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn close(self) -> anyhow::Result<()> {
        self.settle()
    }
}
