//! Millpond in SurrealDB's `crud-bench`: its traits of a benchmarked database over
//! [`millpond::Db`].
//!
//! Tried against `github:surrealdb/crud-bench` at commit
//! a0e0b455e3cb216c223d7885d7f21a9e5593ee76. README.md beside this file says where it is copied to,
//! how it is run and how far it was tried. It is no part of Millpond's workspaces.
//!
//! * Each request is a transaction, each batch one: durable when it returns with `--sync`, else a
//!   moment later. Single reads are calls on the tree; batches of reads and scans are of one
//!   snapshot.
//! * Commits that wait for storage do so on the benchmark's pool of blocking threads; everything
//!   else is done where it is asked for.
//! * Scans with conditions and indexes are not supported, as with the other key-value stores.
#![cfg(feature = "millpond")]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use millpond::{Db, Durability, Options, RawTree, TxnOptions};

use crate::benchmark::NOT_SUPPORTED_ERROR;
use crate::engine::{BenchmarkClient, BenchmarkEngine, ScanContext};
use crate::memory::Config;
use crate::value::BenchValue;
use crate::valueprovider::Columns;
use crate::{Benchmark, KeyType, Projection, Scan};

/// The folder of the store and its log, in the current one.
const FOLDER: &str = "millpond";

/// A store with one tree.
struct Pond {
    db: Db,
    tree: RawTree,
    durability: Durability,
}

pub(crate) struct MillpondClientProvider(Arc<Pond>);

impl BenchmarkEngine<MillpondClient> for MillpondClientProvider {
    fn wait_timeout(&self) -> Option<Duration> {
        None
    }

    async fn setup(_: KeyType, _: Columns, options: &Benchmark) -> Result<Self> {
        std::fs::remove_dir_all(FOLDER).ok();
        std::fs::create_dir(FOLDER)?;
        let memory = Config::new().cache_gb << 30;
        let db = Db::open(PathBuf::from(FOLDER).join("pond"), Options::new().memory(memory))?;
        let tree = db.raw_tree("test")?;
        let durability = if options.sync { Durability::Sync } else { Durability::Async };
        Ok(Self(Arc::new(Pond { db, tree, durability })))
    }

    async fn create_client(&self) -> Result<MillpondClient> {
        Ok(MillpondClient(self.0.clone()))
    }
}

pub(crate) struct MillpondClient(Arc<Pond>);

/// Integers in their order, as bytes.
fn bytes(key: u32) -> [u8; 4] {
    key.to_be_bytes()
}

impl BenchmarkClient for MillpondClient {
    type ReadRow = BenchValue;

    async fn shutdown(&self) -> Result<()> {
        std::fs::remove_dir_all(FOLDER).ok();
        Ok(())
    }

    async fn create_u32(&self, key: u32, val: BenchValue) -> Result<()> {
        self.put(&bytes(key), val).await
    }

    async fn create_string(&self, key: String, val: BenchValue) -> Result<()> {
        self.put(key.as_bytes(), val).await
    }

    async fn read_u32(&self, key: u32) -> Result<BenchValue> {
        self.get(&bytes(key))
    }

    async fn read_string(&self, key: String) -> Result<BenchValue> {
        self.get(key.as_bytes())
    }

    async fn update_u32(&self, key: u32, val: BenchValue) -> Result<()> {
        self.put(&bytes(key), val).await
    }

    async fn update_string(&self, key: String, val: BenchValue) -> Result<()> {
        self.put(key.as_bytes(), val).await
    }

    async fn delete_u32(&self, key: u32) -> Result<()> {
        self.delete(vec![bytes(key)]).await
    }

    async fn delete_string(&self, key: String) -> Result<()> {
        self.delete(vec![key]).await
    }

    async fn scan_u32(&self, scan: &Scan, _: ScanContext) -> Result<usize> {
        self.scan(scan)
    }

    async fn scan_string(&self, scan: &Scan, _: ScanContext) -> Result<usize> {
        self.scan(scan)
    }

    async fn batch_create_u32(
        &self,
        rows: impl Iterator<Item = (u32, BenchValue)> + Send,
    ) -> Result<()> {
        self.put_all(rows.map(|(key, val)| (bytes(key), val)).collect()).await
    }

    async fn batch_create_string(
        &self,
        rows: impl Iterator<Item = (String, BenchValue)> + Send,
    ) -> Result<()> {
        self.put_all(rows.collect()).await
    }

    async fn batch_read_u32(&self, keys: impl Iterator<Item = u32> + Send) -> Result<()> {
        self.get_all(keys.map(bytes))
    }

    async fn batch_read_string(&self, keys: impl Iterator<Item = String> + Send) -> Result<()> {
        self.get_all(keys)
    }

    async fn batch_update_u32(
        &self,
        rows: impl Iterator<Item = (u32, BenchValue)> + Send,
    ) -> Result<()> {
        self.put_all(rows.map(|(key, val)| (bytes(key), val)).collect()).await
    }

    async fn batch_update_string(
        &self,
        rows: impl Iterator<Item = (String, BenchValue)> + Send,
    ) -> Result<()> {
        self.put_all(rows.collect()).await
    }

    async fn batch_delete_u32(&self, keys: impl Iterator<Item = u32> + Send) -> Result<()> {
        self.delete(keys.map(bytes).collect()).await
    }

    async fn batch_delete_string(&self, keys: impl Iterator<Item = String> + Send) -> Result<()> {
        self.delete(keys.collect()).await
    }
}

/// The row that was read.
fn decode(value: Option<Result<BenchValue>>) -> Result<BenchValue> {
    Ok(black_box(value.context("a row that was created is not there")??))
}

impl MillpondClient {
    /// Runs `f` in a transaction and commits it.
    async fn write(&self, f: impl FnOnce(RawTree<&Txn>) -> Result<()> + Send) -> Result<()> {
        let pond = &*self.0;
        let transaction = move || {
            let txn = pond.db.begin_with(TxnOptions::default().durability(pond.durability))?;
            f(txn.tree(&pond.tree))?;
            Ok(txn.commit()?)
        };
        match pond.durability {
            Durability::Sync => affinitypool::spawn_local(transaction).await,
            _ => transaction(),
        }
    }

    async fn put(&self, key: &[u8], val: BenchValue) -> Result<()> {
        self.write(|tree| {
            tree.put(key, &val.encode()?)?;
            Ok(())
        })
        .await
    }

    async fn put_all<K: AsRef<[u8]> + Send>(&self, rows: Vec<(K, BenchValue)>) -> Result<()> {
        self.write(move |tree| {
            for (key, val) in rows {
                tree.put(key.as_ref(), &val.encode()?)?;
            }
            Ok(())
        })
        .await
    }

    async fn delete<K: AsRef<[u8]> + Send>(&self, keys: Vec<K>) -> Result<()> {
        self.write(move |tree| {
            for key in keys {
                tree.delete(key.as_ref())?;
            }
            Ok(())
        })
        .await
    }

    fn get(&self, key: &[u8]) -> Result<BenchValue> {
        decode(self.0.tree.get_with(key, BenchValue::decode)?)
    }

    fn get_all<K: AsRef<[u8]>>(&self, keys: impl Iterator<Item = K>) -> Result<()> {
        let snapshot = self.0.db.snapshot()?;
        let tree = snapshot.tree(&self.0.tree);
        for key in keys {
            decode(tree.get_with(key.as_ref(), BenchValue::decode)?)?;
        }
        Ok(())
    }

    /// Passes over `start` rows and looks at `limit`; says how many there were.
    fn scan(&self, scan: &Scan) -> Result<usize> {
        if scan.condition.is_some() {
            bail!(NOT_SUPPORTED_ERROR);
        }
        let (start, limit) = (scan.start.unwrap_or(0), scan.limit.unwrap_or(usize::MAX));
        let snapshot = self.0.db.snapshot()?;
        let rows = snapshot.tree(&self.0.tree).iter();
        let projection = scan.projection()?;
        let mut rows = match projection {
            Projection::Full => rows,
            Projection::Id | Projection::Count => rows.keys_only(),
        };
        if start > 0 && rows.nth(start - 1).transpose()?.is_none() {
            return Ok(0);
        }
        let mut count = 0;
        while count < limit
            && let Some((key, value)) = rows.next_entry()?
        {
            match projection {
                Projection::Id => _ = black_box(key),
                Projection::Full => _ = black_box(value),
                Projection::Count => {}
            }
            count += 1;
        }
        Ok(count)
    }
}
