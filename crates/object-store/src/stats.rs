//! Counters by class of requests.

use std::ops::Index;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_tier::TierCounts;

use crate::hints::Class;

const CLASSES: usize = Class::ALL.len();

#[derive(Debug, Default)]
struct Row {
    gets: AtomicU64,
    passed: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    shared: AtomicU64,
    bytes_served: AtomicU64,
    bytes_fetched: AtomicU64,
    requests: AtomicU64,
    puts: AtomicU64,
    bytes_put: AtomicU64,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    rows: [Row; CLASSES],
}

impl Counters {
    fn add(&self, class: Class, field: impl Fn(&Row) -> &AtomicU64, count: u64) {
        if let Some(row) = self.rows.get(class as usize) {
            field(row).fetch_add(count, Ordering::Relaxed);
        }
    }

    pub fn get(&self, class: Class) {
        self.add(class, |row| &row.gets, 1);
    }

    /// Counts a get that was passed to the object store.
    pub fn passed(&self, class: Class, bytes: u64) {
        self.add(class, |row| &row.passed, 1);
        self.fetched(class, bytes);
    }

    /// Counts a request to the object store for `bytes`.
    pub fn fetched(&self, class: Class, bytes: u64) {
        self.add(class, |row| &row.requests, 1);
        self.add(class, |row| &row.bytes_fetched, bytes);
    }

    pub fn hit(&self, class: Class, bytes: u64) {
        self.add(class, |row| &row.hits, 1);
        self.add(class, |row| &row.bytes_served, bytes);
    }

    pub fn missed(&self, class: Class, parts: u64) {
        self.add(class, |row| &row.misses, parts);
    }

    /// Counts a miss that another request's fetch served.
    pub fn shared(&self, class: Class) {
        self.add(class, |row| &row.shared, 1);
    }

    pub fn put(&self, class: Class, bytes: u64) {
        self.add(class, |row| &row.puts, 1);
        self.add(class, |row| &row.bytes_put, bytes);
    }

    pub fn snapshot(&self, tier: TierCounts, objects: u64) -> Stats {
        let mut stats = Stats { classes: Default::default(), objects, tier };
        for (row, to) in self.rows.iter().zip(&mut stats.classes) {
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            *to = ClassStats {
                gets: load(&row.gets),
                passed: load(&row.passed),
                hits: load(&row.hits),
                misses: load(&row.misses),
                shared: load(&row.shared),
                bytes_served: load(&row.bytes_served),
                bytes_fetched: load(&row.bytes_fetched),
                requests: load(&row.requests),
                puts: load(&row.puts),
                bytes_put: load(&row.bytes_put),
            };
        }
        stats
    }
}

/// Counters of one class of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassStats {
    /// Gets, including head requests.
    pub gets: u64,
    /// Gets that were passed to the object store without the cache.
    pub passed: u64,
    /// Parts that were served from the cache.
    pub hits: u64,
    /// Parts that were not in the cache.
    pub misses: u64,
    /// Misses on parts that another request was already fetching.
    pub shared: u64,
    /// Bytes served from the cache, in whole parts.
    pub bytes_served: u64,
    /// Bytes requested from the object store, including passed gets.
    pub bytes_fetched: u64,
    /// Read requests to the object store, including heads.
    pub requests: u64,
    /// Puts and uploads.
    pub puts: u64,
    /// Bytes of puts and uploads.
    pub bytes_put: u64,
}

impl ClassStats {
    /// Returns hits over requested parts, or `None` if there were no requests.
    pub fn hit_ratio(&self) -> Option<f64> {
        let parts = self.hits + self.misses;
        (parts > 0).then(|| self.hits as f64 / parts as f64)
    }
}

/// Counters since the cache was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    classes: [ClassStats; CLASSES],
    /// Objects that may have parts in the cache.
    pub objects: u64,
    /// Counters of the tier; its pages are parts.
    pub tier: TierCounts,
}

impl Index<Class> for Stats {
    type Output = ClassStats;
    fn index(&self, class: Class) -> &ClassStats {
        &self.classes[class as usize]
    }
}

impl Stats {
    /// Returns the sum over all classes.
    pub fn total(&self) -> ClassStats {
        let mut sum = ClassStats::default();
        for row in &self.classes {
            sum.gets += row.gets;
            sum.passed += row.passed;
            sum.hits += row.hits;
            sum.misses += row.misses;
            sum.shared += row.shared;
            sum.bytes_served += row.bytes_served;
            sum.bytes_fetched += row.bytes_fetched;
            sum.requests += row.requests;
            sum.puts += row.puts;
            sum.bytes_put += row.bytes_put;
        }
        sum
    }
}
