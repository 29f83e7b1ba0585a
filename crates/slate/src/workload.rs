//! Rows are loaded, then read and updated by many tasks at once, skewed; flushes and compactions
//! run meanwhile.

use std::path::Path as Folder;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use millpond_object_store::{CacheOptions, CachedStore, Class, Freshness};
use object_store::ObjectStore;
use slatedb::Db;
use slatedb::cached_object_store_stats::{PART_ACCESS_COUNT, PART_HIT_COUNT};
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, ObjectStoreCacheOptions, Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

use crate::hints::Deaf;
use crate::remote::{Distance, Purpose, Reads, Remote};
use crate::roster::Cache;

/// Parameters of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Workload {
    /// Rows of 16 and 400 bytes.
    pub rows: u64,
    /// Operations after loading, half of them reads.
    pub operations: u64,
    /// Tasks that do them.
    pub tasks: u64,
    /// Bytes of the cache on the local device.
    pub cache: u64,
    /// Bytes of SlateDB's cache of blocks, in memory.
    pub memory: u64,
    /// The exponent of Zipf's distribution.
    pub skew: f64,
    /// The object store's distance.
    pub distance: Distance,
    /// Seed of keys and of the policy.
    pub seed: u64,
}

/// Counters after loading.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// Parts of foreground reads that came from the cache, over those that were asked for.
    pub hit_ratio: Option<f64>,
    /// Reads of tables for the foreground.
    pub table: Reads,
    /// Reads of tables for compactions.
    pub compaction: Reads,
    /// Reads of all else.
    pub other: Reads,
    /// Duration of the run.
    pub seconds: f64,
}

impl Outcome {
    /// Bytes of all reads.
    pub fn bytes(&self) -> u64 {
        self.table.bytes + self.compaction.bytes + self.other.bytes
    }

    /// All reads.
    pub fn gets(&self) -> u64 {
        self.table.gets + self.compaction.gets + self.other.gets
    }
}

const VALUE_BYTES: usize = 400;

fn key(row: u64) -> [u8; 16] {
    let mut key = [0; 16];
    // Neighbours in popularity are none in the order of keys.
    let hashed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key[..8].copy_from_slice(&hashed.to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut value = vec![0; VALUE_BYTES];
    random.fill(&mut value);
    value
}

/// Zipf's distribution over `0..rows`, by its table.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new(rows: u64, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let weigh = |rank: u64| {
            sum += (rank as f64).powf(-skew);
            sum
        };
        Zipf { sums: (1..=rows).map(weigh).collect() }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> u64 {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let point = random.f64() * all;
        self.sums.partition_point(|sum| *sum < point) as u64
    }
}

fn settings(cache: &Cache, workload: &Workload, folder: &Folder) -> Settings {
    let soon = |min_age| {
        let interval = Some(Duration::from_secs(1));
        Some(GarbageCollectorDirectoryOptions { interval, min_age, dry_run: false })
    };
    let age = soon(Duration::from_secs(3));
    let mut settings = Settings {
        flush_interval: Some(Duration::from_millis(50)),
        l0_sst_size_bytes: 512 << 10,
        max_unflushed_bytes: 8 << 20,
        compactor_options: Some(CompactorOptions {
            poll_interval: Duration::from_millis(200),
            commit_compacted_interval: Duration::from_millis(200),
            checkpoint_lifetime: Duration::from_secs(5),
            worker: Some(CompactionWorkerOptions {
                compactions_poll_interval: Duration::from_millis(200),
                max_sst_size: 8 << 20,
                ..CompactionWorkerOptions::default()
            }),
            ..CompactorOptions::default()
        }),
        garbage_collector_options: Some(GarbageCollectorOptions {
            manifest_options: age,
            wal_options: age,
            compacted_options: age,
            compactions_options: age,
            ..GarbageCollectorOptions::default()
        }),
        ..Settings::default()
    };
    if let Cache::Slate { part, on_flush, on_compaction } = cache {
        settings.object_store_cache_options = ObjectStoreCacheOptions {
            root_folder: Some(folder.join("slate-cache")),
            max_cache_size_bytes: Some(workload.cache as usize),
            part_size_bytes: *part,
            cache_on_flush: *on_flush,
            cache_on_compaction: *on_compaction,
            ..ObjectStoreCacheOptions::default()
        };
    }
    settings
}

/// Returns the counters of a cache so far: hits and accesses of foreground parts.
fn counted(tier: Option<&CachedStore>, metrics: &DefaultMetricsRecorder) -> (u64, u64) {
    if let Some(tier) = tier {
        let data = tier.stats()[Class::Data];
        return (data.hits, data.hits + data.misses);
    }
    let snapshot = metrics.snapshot();
    let sum = |name: &str| {
        let found = snapshot.all().iter().filter(|metric| metric.name == name);
        let value = found.map(|metric| match metric.value {
            MetricValue::Counter(count) => count,
            _ => 0,
        });
        value.sum()
    };
    (sum(PART_HIT_COUNT), sum(PART_ACCESS_COUNT))
}

fn tier_of(
    cache: &Cache,
    workload: &Workload,
    folder: &Folder,
    remote: &Arc<Remote>,
) -> Result<Option<CachedStore>> {
    let Cache::Tier { part, policy, hints } = cache else { return Ok(None) };
    let path = folder.join("tier");
    let options = CacheOptions {
        part_bytes: *part,
        seed: workload.seed,
        hints: match hints {
            Some(hints) => Arc::new(*hints),
            None => Arc::new(Deaf),
        },
        ..CacheOptions::new(path, workload.cache, policy, Freshness::Immutable)
    };
    Ok(Some(CachedStore::open(remote.clone(), options)?))
}

async fn load(db: &Db, workload: &Workload) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(workload.seed);
    let mut rows: Vec<u64> = (0..workload.rows).collect();
    random.shuffle(&mut rows);
    for row in rows {
        let value = value(&mut random);
        db.put(key(row), value).await?;
    }
    db.flush().await?;
    Ok(())
}

async fn operate(db: &Db, workload: &Workload) -> Result<()> {
    let zipf = Arc::new(Zipf::new(workload.rows, workload.skew));
    let tasks: Vec<_> = (0..workload.tasks)
        .map(|task| {
            let (db, zipf, workload) = (db.clone(), zipf.clone(), *workload);
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(workload.seed << 16 | (task + 1));
                for _ in 0..workload.operations / workload.tasks {
                    let key = key(zipf.draw(&mut random));
                    if random.bool() {
                        let value = value(&mut random);
                        db.put(key, value).await?;
                    } else {
                        let found = db.get(key).await?;
                        anyhow::ensure!(found.is_some_and(|found| found.len() == VALUE_BYTES));
                    }
                }
                Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// One run.
///
/// # Errors
/// SlateDB fails, or does not find a row.
pub async fn run(cache: &Cache, workload: &Workload) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let bucket = folder.path().join("bucket");
    std::fs::create_dir(&bucket)?;
    let remote = Arc::new(Remote::new(&bucket, workload.distance)?);
    let tier = tier_of(cache, workload, folder.path(), &remote)?;
    let store: Arc<dyn ObjectStore> = match &tier {
        Some(tier) => Arc::new(tier.clone()),
        None => remote.clone(),
    };
    let metrics = Arc::new(DefaultMetricsRecorder::new());
    let memory = MokaCacheOptions { max_capacity: workload.memory, ..Default::default() };
    let db = Db::builder("db", store)
        .with_settings(settings(cache, workload, folder.path()))
        .with_db_cache(Arc::new(MokaCache::new_with_opts(memory)), 0)
        .with_metrics_recorder(metrics.clone())
        .with_seed(workload.seed)
        .build()
        .await?;
    load(&db, workload).await?;
    // What loading has left to compact.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let reads = || {
        let all = [Purpose::Table, Purpose::Compaction, Purpose::Wal, Purpose::Other];
        all.map(|purpose| remote.reads(purpose))
    };
    let (before, counted_before) = (reads(), counted(tier.as_ref(), &metrics));
    let start = std::time::Instant::now();
    operate(&db, workload).await?;
    let seconds = start.elapsed().as_secs_f64();
    let (after, counted_after) = (reads(), counted(tier.as_ref(), &metrics));
    db.close().await?;
    let since = |at: usize| Reads {
        gets: after[at].gets - before[at].gets,
        bytes: after[at].bytes - before[at].bytes,
    };
    let (hits, parts) = (counted_after.0 - counted_before.0, counted_after.1 - counted_before.1);
    let (wal, other) = (since(2), since(3));
    Ok(Outcome {
        hit_ratio: (parts > 0).then(|| hits as f64 / parts as f64),
        table: since(0),
        compaction: since(1),
        other: Reads { gets: wal.gets + other.gets, bytes: wal.bytes + other.bytes },
        seconds,
    })
}
