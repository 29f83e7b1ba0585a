//! What all measurements share: settings, keys, the machine's load.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use millpond::Options;
use millpond::internals::btree::BTree;
use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond::internals::pool::{Pages, Pool};
use millpond::internals::store::Builder;
use millpond::internals::store::combinations::SwizzledAny;
use millpond::internals::store::options::Lab;
use millpond::internals::store::options::memory_limit::SystemRoots;

/// Bytes of a value; keys have 8.
pub const VALUE: usize = 120;

/// `name=value` words.
pub struct Settings(HashMap<String, String>);

impl Settings {
    /// Takes what has a `=` in it.
    pub fn of(arguments: &[String]) -> Settings {
        let pairs = arguments.iter().filter_map(|a| a.split_once('='));
        Settings(pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    /// A number, or `default`.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.0.get(name).and_then(|v| v.parse().ok()).unwrap_or(default)
    }

    /// Numbers with commas between them.
    pub fn numbers(&self, name: &str, default: &[u64]) -> Vec<u64> {
        match self.0.get(name) {
            Some(list) => list.split(',').filter_map(|v| v.parse().ok()).collect(),
            None => default.to_vec(),
        }
    }

    /// A word, or `default`.
    pub fn word<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.0.get(name).map_or(default, String::as_str)
    }
}

/// The combination that is measured: what users run.
pub type Measured = SwizzledAny;

/// Returns a pool of `frames` frames over `pages`, built as a store's is; `change` sets the rest.
pub fn pool(
    frames: u32,
    pages: Arc<PageStore>,
    change: impl FnOnce(&mut Lab),
) -> Result<Arc<Pool<Measured>>, Box<dyn Error>> {
    let page_size = pages.page_size().bytes() as u32;
    let options = Options::new().policy("lean-evict").page_size(page_size);
    let options = options.lab(|lab| {
        lab.frames = Some(frames);
        lab.seed = 3;
        change(lab);
    });
    let plan = options.plan(&SystemRoots::default(), Some(page_size))?;
    Ok(Arc::new(Builder::pool(&options, &plan, pages)?))
}

/// Page sizes are powers of two from 4096.
pub fn page_size(bytes: u64) -> Result<PageSize, Box<dyn Error>> {
    Ok(PageSize::new(bytes)?)
}

/// Key number `n`, in order.
pub fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Inserts keys `0..rows`, in order.
pub fn fill<P: Pages>(tree: &BTree<P>, rows: u64) -> Result<(), Box<dyn Error>> {
    let mut value = [0u8; VALUE];
    for n in 0..rows {
        value[..8].copy_from_slice(&n.to_le_bytes());
        tree.insert(&key(n), &value)?;
    }
    Ok(())
}

/// Looks `count` random keys up and says how many were there.
pub fn lookups<P: Pages>(tree: &BTree<P>, rows: u64, count: u64, seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut found = 0;
    for _ in 0..count {
        let n = random.u64(..rows);
        let value = tree.get(&key(n), |v| u64::from(v[0] == n as u8));
        found += value.ok().flatten().unwrap_or(0);
    }
    found
}

/// Nanoseconds of processor time that this thread has had.
pub fn own_time() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// The middle one.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How busy the machine is, for the record.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_string()
}
