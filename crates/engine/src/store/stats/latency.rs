//! Latencies as plain data.

use hdrhistogram::Histogram;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::stats::Statistics;
use crate::stats::counters::Timing;
use crate::stats::histogram::{Recorded, bucket_of, range_of};
use crate::store::stats::json::Object;

/// Distribution of a latency, over all threads. Values are exact to within 1/16.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let options = Options::new().memory(16 << 20).lab(|lab| lab.latency_sample_period = 1);
/// # let db = Db::in_memory(options)?;
/// let birds = db.tree::<String, u32>("birds")?;
/// birds.put("heron", &3)?;
/// let before = db.stats();
/// birds.get("heron")?;
/// let gets = &db.stats().get_time;
/// assert!(gets.count == 1 && gets.p50_ns <= gets.max_ns);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
pub struct Latency {
    /// Number of timed events.
    pub count: u64,
    /// Sampling period: one event in this many was timed, at random; 1 if each was, 0 if none is.
    pub sample_period: u32,
    /// Sum of the latencies, in ns: exact.
    pub sum_ns: u64,
    /// Mean latency, in ns.
    pub mean_ns: u64,
    /// Median, in ns.
    pub p50_ns: u64,
    /// 90th percentile, in ns.
    pub p90_ns: u64,
    /// 99th percentile, in ns.
    pub p99_ns: u64,
    /// 99.9th percentile, in ns.
    pub p999_ns: u64,
    /// Maximum, in ns. It is exact, except in a difference of two snapshots.
    pub max_ns: u64,
    /// Non-empty buckets: the smallest value in ns, and the number of values.
    pub buckets: Vec<(u64, u64)>,
}

impl Latency {
    pub(super) fn write_json(&self, json: &mut String) {
        let mut object = Object::begin(json);
        object.number("count", self.count);
        object.number("sample_period", u64::from(self.sample_period));
        object.number("sum_ns", self.sum_ns);
        object.number("mean_ns", self.mean_ns);
        object.number("p50_ns", self.p50_ns);
        object.number("p90_ns", self.p90_ns);
        object.number("p99_ns", self.p99_ns);
        object.number("p999_ns", self.p999_ns);
        object.number("max_ns", self.max_ns);
        object.pairs("buckets", &self.buckets);
        object.end();
    }

    /// Returns the latency that `rooms` have recorded.
    #[doc(hidden)]
    pub fn of_all(rooms: &[&Statistics], timing: Timing) -> Latency {
        let mut all = Recorded::default();
        rooms.iter().for_each(|room| all.add(&room.latencies.merged(timing)));
        let periods = rooms.iter().map(|room| room.latencies.sample_period(timing));
        let buckets = all.buckets.iter().enumerate();
        let buckets = buckets.filter(|(_, n)| **n > 0).map(|(at, n)| (range_of(at).0, *n));
        let period = periods.max().unwrap_or(0);
        Latency::from_buckets(period, buckets.collect(), all.sum_ns, all.max_ns)
    }

    fn from_buckets(
        sample_period: u32,
        buckets: Vec<(u64, u64)>,
        sum_ns: u64,
        max_ns: u64,
    ) -> Latency {
        let count = buckets.iter().fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
        if count == 0 {
            return Latency { sample_period, ..Latency::default() };
        }
        let mut latency = Latency {
            count,
            sample_period,
            sum_ns,
            mean_ns: sum_ns / count,
            max_ns,
            buckets,
            ..Latency::default()
        };
        if let Some(histogram) = latency.histogram() {
            let at = |quantile| histogram.value_at_quantile(quantile).min(max_ns);
            latency.p50_ns = at(0.5);
            latency.p90_ns = at(0.9);
            latency.p99_ns = at(0.99);
            latency.p999_ns = at(0.999);
        }
        latency
    }

    /// Returns the distribution as a histogram, with each value in the middle of its bucket. `None`
    /// if nothing was timed.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let options = Options::new().memory(16 << 20).lab(|lab| lab.latency_sample_period = 1);
    /// # let db = Db::in_memory(options)?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// let before = db.stats();
    /// birds.get("heron")?;
    /// let gets = db.stats().get_time.histogram();
    /// assert!(gets.is_some_and(|gets| gets.value_at_quantile(0.75) > 0));
    /// # Ok(()) }
    /// ```
    pub fn histogram(&self) -> Option<Histogram<u64>> {
        if self.count == 0 {
            return None;
        }
        // Two digits are finer than our buckets.
        let mut histogram = Histogram::new_with_bounds(1, 1 << 42, 2).ok()?;
        for (low, count) in &self.buckets {
            let (low, high) = range_of(bucket_of(*low));
            histogram.saturating_record_n(low.midpoint(high).max(1), *count);
        }
        Some(histogram)
    }

    /// Returns the latency of the events since `earlier`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let options = Options::new().memory(16 << 20).lab(|lab| lab.latency_sample_period = 1);
    /// # let db = Db::in_memory(options)?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// let before = db.stats();
    /// birds.get("heron")?;
    /// assert_eq!(db.stats().get_time.since(&before.get_time).count, 1);
    /// # Ok(()) }
    /// ```
    pub fn since(&self, earlier: &Latency) -> Latency {
        let before = |low: u64| {
            let found = earlier.buckets.binary_search_by_key(&low, |(low, _)| *low);
            found.map_or(0, |at| earlier.buckets[at].1)
        };
        let left = self.buckets.iter().map(|(low, n)| (*low, n.saturating_sub(before(*low))));
        let buckets: Vec<(u64, u64)> = left.filter(|(_, n)| *n > 0).collect();
        let highest = buckets.last().map_or(0, |(low, _)| range_of(bucket_of(*low)).1);
        // Beyond the last bucket's nominal end only the overall maximum is known.
        let is_last = highest == range_of(usize::MAX).1;
        let max_ns = if is_last { self.max_ns } else { highest.min(self.max_ns) };
        let sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        Latency::from_buckets(self.sample_period, buckets, sum_ns, max_ns)
    }
}
