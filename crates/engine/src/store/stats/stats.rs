//! Statistics as plain data: a snapshot of everything that the pool counts and times.
//!
//! The fields come from the list in [`counters`](crate::stats::counters). So a new counter is one
//! line there and appears in the struct, in JSON, in Prometheus' text and in the table. Tools read
//! snapshots (`millpond stat`, a metrics endpoint, a benchmark's rows); nothing here is on a hot
//! path.
//!
//! JSON is one flat object: `page_size`, `frames`, `uptime_s`, then each counter and gauge by name,
//! then each timing as an object, see [`Latency`]. Readers ignore unknown names and take 0 for
//! missing ones, so that versions can differ.

use std::fmt::{self, Write};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::stats::Statistics;
use crate::stats::counters::{Counter, Gauge, Timing, for_each_statistic};
use crate::store::stats::json::Object;
use crate::store::stats::latency::Latency;
use crate::store::stats::prometheus::Prometheus;

/// The sentence on sampling in the documentation of a latency.
macro_rules! sampling_doc {
    (each) => {
        ": each is timed"
    };
    (sampled) => {
        ": sampled, see [`Latency::sample_period`]"
    };
}

macro_rules! stats {
    (
        counters { $($counter:ident $count:ident $count_help:literal;)* }
        gauges { $($gauge:ident $level:ident $level_help:literal;)* }
        timings { $($timing:ident $time:ident $how:ident $time_help:literal;)* }
    ) => {
        /// Counters of a store since it was opened, and its present state.
        ///
        /// ```
        /// # use millpond::{Db, Error, Options};
        /// # fn main() -> Result<(), Error> {
        /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
        /// let before = db.stats();
        /// let birds = db.tree::<String, u32>("birds")?;
        /// birds.put("heron", &3)?;
        /// birds.get("heron")?;
        /// let stats = db.stats().since(&before);
        /// assert_eq!((stats.puts, stats.gets), (1, 1));
        /// println!("{stats}");
        /// # Ok(()) }
        /// ```
        #[derive(Clone, PartialEq, Debug, Default)]
        #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
        pub struct Stats {
            /// Bytes per page.
            pub page_size: u64,
            /// Number of frames of the pool.
            pub frames: u64,
            /// Seconds since the store was opened.
            pub uptime_s: f64,
            $(#[doc = $count_help] pub $count: u64,)*
            $(#[doc = $level_help] pub $level: u64,)*
            $(#[doc = $time_help] #[doc = sampling_doc!($how)] pub $time: Latency,)*
        }

        impl Stats {
            /// Reads all counters and latencies of `rooms`. Fields that no room counts
            /// (`page_size`, `frames`, `uptime_s`) are 0; the caller fills them in.
            #[doc(hidden)]
            pub fn collect(rooms: &[&Statistics]) -> Stats {
                let count = |counter| rooms.iter().map(|room| room.counters.get(counter)).sum();
                let level = |gauge| rooms.iter().map(|room| room.counters.level(gauge)).sum();
                Stats {
                    page_size: 0,
                    frames: 0,
                    uptime_s: 0.0,
                    $($count: count(Counter::$counter),)*
                    $($level: level(Gauge::$gauge),)*
                    $($time: Latency::of_all(rooms, Timing::$timing),)*
                }
            }

            /// Appends the snapshot to `json` as an object.
            pub(super) fn write_json(&self, json: &mut String) {
                let mut object = Object::begin(json);
                object.number("page_size", self.page_size);
                object.number("frames", self.frames);
                object.float("uptime_s", self.uptime_s);
                $(object.number(stringify!($count), self.$count);)*
                $(object.number(stringify!($level), self.$level);)*
                $(self.$time.write_json(object.value(stringify!($time)));)*
                object.end();
            }

            /// Returns a counter by its name in code.
            #[doc(hidden)]
            pub fn counter(&self, counter: Counter) -> u64 {
                match counter { $(Counter::$counter => self.$count,)* }
            }

            /// Returns a gauge by its name in code.
            #[doc(hidden)]
            pub fn gauge(&self, gauge: Gauge) -> u64 {
                match gauge { $(Gauge::$gauge => self.$level,)* }
            }

            /// Returns a latency by its name in code.
            #[doc(hidden)]
            pub fn latency(&self, timing: Timing) -> &Latency {
                match timing { $(Timing::$timing => &self.$time,)* }
            }

            /// Returns the difference to `earlier`, a snapshot of the same store: counters,
            /// latencies and `uptime_s` are differences, gauges keep their present values.
            ///
            /// ```
            /// # use millpond::{Db, Error, Options};
            /// # fn main() -> Result<(), Error> {
            /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
            /// let before = db.stats();
            /// let birds = db.tree::<String, u32>("birds")?;
            /// birds.put("heron", &3)?;
            /// birds.get("heron")?;
            /// let stats = db.stats().since(&before);
            /// assert_eq!(stats.puts, 1);
            /// # Ok(()) }
            /// ```
            pub fn since(&self, earlier: &Stats) -> Stats {
                Stats {
                    page_size: self.page_size,
                    frames: self.frames,
                    uptime_s: (self.uptime_s - earlier.uptime_s).max(0.0),
                    $($count: self.$count.saturating_sub(earlier.$count),)*
                    $($level: self.$level,)*
                    $($time: self.$time.since(&earlier.$time),)*
                }
            }
        }
    };
}
for_each_statistic!(stats);

impl Stats {
    /// Returns the number of references that found their page in memory.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let before = db.stats();
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// birds.get("heron")?;
    /// let stats = db.stats().since(&before);
    /// assert_eq!(stats.hits(), stats.references - stats.misses);
    /// # Ok(()) }
    /// ```
    pub fn hits(&self) -> u64 {
        self.references.saturating_sub(self.misses)
    }

    /// Returns hits per reference, including inner pages (leanstore VI-B); `None` before the first
    /// one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let before = db.stats();
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// birds.get("heron")?;
    /// let stats = db.stats().since(&before);
    /// assert!(stats.hit_ratio().is_some_and(|ratio| ratio > 0.5));
    /// # Ok(()) }
    /// ```
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.references > 0).then(|| self.hits() as f64 / self.references as f64)
    }

    /// Returns the number of pages written, for whatever reason.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let before = db.stats();
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// birds.get("heron")?;
    /// let stats = db.stats().since(&before);
    /// assert_eq!(stats.writes(), 0); // the page is in memory
    /// # Ok(()) }
    /// ```
    pub fn writes(&self) -> u64 {
        self.writes_synch.saturating_add(self.writes_replace).saturating_add(self.writes_recov)
    }

    /// Returns the snapshot as JSON on one line.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let before = db.stats();
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// birds.get("heron")?;
    /// let stats = db.stats().since(&before);
    /// assert!(stats.to_json().contains("\"puts\":1"));
    /// # Ok(()) }
    /// ```
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    /// Returns the snapshot in Prometheus' text format, with every name prefixed by `millpond_` and
    /// with `labels` on each sample. Label names must be valid in Prometheus; values are escaped.
    ///
    /// Counters end in `_total`. Latencies are histograms in seconds with one bucket per power of
    /// two; the help of sampled ones states the sampling period.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let before = db.stats();
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// birds.get("heron")?;
    /// let stats = db.stats().since(&before);
    /// let text = stats.to_prometheus(&[("pond", "mill")]);
    /// assert!(text.contains("millpond_puts_total{pond=\"mill\"} 1"));
    /// # Ok(()) }
    /// ```
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut out = Prometheus::new(labels);
        out.plain("page_size_bytes", "bytes of a page", "gauge", self.page_size as f64);
        out.plain("frames", "frames of the pool", "gauge", self.frames as f64);
        let uptime = "seconds since the store was opened";
        out.plain("uptime_seconds", uptime, "gauge", self.uptime_s);
        for counter in Counter::ALL {
            let name = format!("{counter}_total");
            out.plain(&name, counter.help(), "counter", self.counter(*counter) as f64);
        }
        for gauge in Gauge::ALL {
            out.plain(gauge.name(), gauge.help(), "gauge", self.gauge(*gauge) as f64);
        }
        for timing in Timing::ALL {
            out.histogram(*timing, self.latency(*timing));
        }
        out.end()
    }
}

/// The snapshot as a table for people: numbers grouped by thousands, latencies in µs.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(&str, String, &str)> = vec![
            ("uptime_s", format!("{:.1}", self.uptime_s), "seconds since the store was opened"),
            ("page_size", grouped(self.page_size), "bytes of a page"),
            ("frames", grouped(self.frames), "frames of the pool"),
        ];
        if let Some(ratio) = self.hit_ratio() {
            rows.push(("hit_ratio", format!("{:.3} %", ratio * 100.0), "hits per reference"));
        }
        let counters = Counter::ALL.iter();
        rows.extend(counters.map(|c| (c.name(), grouped(self.counter(*c)), c.help())));
        let gauges = Gauge::ALL.iter();
        rows.extend(gauges.map(|g| (g.name(), grouped(self.gauge(*g)), g.help())));
        let name_width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
        let width = rows.iter().map(|r| r.1.len()).max().unwrap_or(0);
        for (name, value, help) in rows {
            writeln!(f, "{name:name_width$}  {value:>width$}  {help}")?;
        }
        self.write_latencies(f)
    }
}

impl Stats {
    fn write_latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["latency, µs", "timed", "of", "mean", "p50", "p90", "p99", "p99.9", "max"];
        let mut rows: Vec<Vec<String>> = vec![head.map(str::to_string).to_vec()];
        for timing in Timing::ALL {
            let l = self.latency(*timing);
            let of = match l.sample_period {
                0 => "none".to_string(),
                1 => "all".to_string(),
                period => format!("1 in {period}"),
            };
            let mut row = vec![timing.name().to_string(), grouped(l.count), of];
            let times = [l.mean_ns, l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.max_ns];
            row.extend(times.iter().map(|ns| format!("{:.1}", *ns as f64 / 1000.0)));
            rows.push(row);
        }
        let width =
            |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for row in &rows {
            let mut line = format!("{:w$}", row[0], w = widths[0]);
            for (cell, w) in row.iter().zip(&widths).skip(1) {
                write!(line, "  {cell:>w$}")?;
            }
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// Formats `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Statistics {
        let statistics = Statistics::new(1);
        let (counters, latencies) = (&statistics.counters, &statistics.latencies);
        counters.add(Counter::References, 1_234_567);
        counters.add(Counter::Misses, 234_567);
        counters.add(Counter::WritesSynch, 1);
        counters.add(Counter::WritesReplace, 10);
        counters.add(Counter::WritesRecov, 100);
        counters.shift(Gauge::ResidentFrames, 42);
        (1..=1000).for_each(|i| latencies.record(Timing::ReadTime, i * 1000));
        statistics
    }

    fn near(value: u64, expected: u64) -> bool {
        value.abs_diff(expected) * 16 <= expected
    }

    #[test]
    fn a_snapshot_has_what_was_counted_and_timed() {
        let room = sample();
        let stats = Stats::collect(&[&room]);
        assert_eq!((stats.hits(), stats.writes()), (1_000_000, 111));
        assert_eq!(stats.resident_frames, 42);
        assert!((stats.hit_ratio().unwrap() - 1_000_000.0 / 1_234_567.0).abs() < 1e-12);
        assert_eq!(Stats::default().hit_ratio(), None);
        let read = &stats.read_time;
        assert_eq!((read.count, read.max_ns, read.mean_ns), (1000, 1_000_000, 500_500));
        assert!(near(read.p50_ns, 500_000), "{}", read.p50_ns);
        assert!(near(read.p99_ns, 990_000), "{}", read.p99_ns);
        assert!(read.p999_ns <= read.max_ns && near(read.p999_ns, 999_000));
        assert_eq!(stats.get_time, Latency { sample_period: 1, ..Latency::default() });
        assert_eq!(stats.get_time.histogram(), None);
    }

    #[test]
    fn json_comes_back_and_a_reader_of_another_version_copes() {
        let room = sample();
        let stats = Stats { uptime_s: 1.5, ..Stats::collect(&[&room]) };
        let json = stats.to_json();
        assert_eq!(json, serde_json::to_string(&stats).unwrap(), "every field, in this order");
        assert_eq!(serde_json::from_str::<Stats>(&json).unwrap(), stats);
        let other = r#"{"references": 7, "of_a_later_version": {"a": 1}}"#;
        assert_eq!(
            serde_json::from_str::<Stats>(other).unwrap(),
            Stats { references: 7, ..Stats::default() }
        );
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        for counter in Counter::ALL {
            assert_eq!(value[counter.name()], stats.counter(*counter), "{counter}");
        }
    }

    #[test]
    fn a_difference_has_only_what_happened_in_between() {
        let room = sample();
        let earlier = Stats::collect(&[&room]);
        let none = Latency { sample_period: 1, ..Latency::default() };
        assert_eq!(earlier.since(&earlier).read_time, none);
        room.counters.add(Counter::Misses, 5);
        room.latencies.record(Timing::ReadTime, 2_000);
        let between = Stats::collect(&[&room]).since(&earlier);
        assert_eq!((between.misses, between.references, between.resident_frames), (5, 0, 42));
        assert_eq!((between.read_time.count, between.read_time.sum_ns), (1, 2_000));
        assert!(near(between.read_time.max_ns, 2_000), "{}", between.read_time.max_ns);
    }

    #[test]
    fn prometheus_text_is_complete_cumulative_and_escaped() {
        let room = sample();
        let stats = Stats::collect(&[&room]);
        let text = stats.to_prometheus(&[("store", "a\"b\\c\nd")]);
        let label = r#"{store="a\"b\\c\nd"}"#;
        assert!(text.contains(&format!("millpond_misses_total{label} 234567\n")), "{text}");
        assert!(text.contains("# TYPE millpond_misses_total counter\n"));
        assert!(text.contains(&format!("millpond_resident_frames{label} 42\n")));
        assert!(text.contains(&format!("millpond_read_time_seconds_count{label} 1000\n")));
        let bare = stats.to_prometheus(&[]);
        assert!(bare.contains("millpond_misses_total 234567\n"));
        let prefix = "millpond_read_time_seconds_bucket{le=\"";
        let counts: Vec<u64> = bare
            .lines()
            .filter(|l| l.starts_with(prefix))
            .map(|l| l.rsplit_once(' ').unwrap().1.parse().unwrap())
            .collect();
        assert!(counts.is_sorted() && *counts.last().unwrap() == 1000, "{counts:?}");
        // The values are 1, 2, …, 1000 µs: 65 of them are below 65,536 ns.
        assert!(bare.contains("millpond_read_time_seconds_bucket{le=\"0.000065536\"} 65\n"));
        for line in bare.lines().filter(|l| !l.starts_with('#')) {
            assert!(line.rsplit_once(' ').unwrap().1.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn rooms_are_summed_and_a_sample_says_that_it_is_one() {
        let (pool, log) = (Statistics::new(64), Statistics::default());
        pool.counters.add(Counter::Gets, 3);
        log.counters.add(Counter::Gets, 4);
        pool.counters.shift(Gauge::WaitingForLog, 1);
        log.counters.shift(Gauge::WaitingForLog, 2);
        pool.latencies.record(Timing::LogTime, 5_000);
        log.latencies.record(Timing::LogTime, 9_000);
        pool.latencies.record(Timing::GetTime, 400);
        let stats = Stats::collect(&[&pool, &log]);
        assert_eq!((stats.gets, stats.waiting_for_log), (7, 3));
        let time = &stats.log_time;
        assert_eq!((time.count, time.sum_ns, time.max_ns), (2, 14_000, 9_000));
        assert_eq!((time.sample_period, stats.get_time.sample_period), (1, 64));
        let text = stats.to_prometheus(&[]);
        assert!(text.contains("# HELP millpond_get_time_seconds a lookup (a sample: one in 64)\n"));
        assert!(text.contains("# HELP millpond_log_time_seconds waiting until a record"));
        let table = stats.to_string();
        let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("get_time").contains("  1 in 64  "), "{}", row("get_time"));
        assert!(row("log_time").contains("  all  "), "{}", row("log_time"));
        let none = Stats::collect(&[&log]).to_string();
        assert!(none.lines().any(|line| line.starts_with("put_time") && line.contains("none")));
    }

    #[test]
    fn the_table_is_aligned_and_grouped() {
        let room = sample();
        let text = Stats::collect(&[&room]).to_string();
        assert!(text.contains("1,234,567  page references"), "{text}");
        let head = text.lines().find(|l| l.starts_with("latency")).unwrap();
        let read = text.lines().find(|l| l.starts_with("read_time")).unwrap();
        assert_eq!(head.chars().count(), read.chars().count());
        assert!(read.ends_with(" 1000.0"), "{read}");
        assert_eq!(
            (grouped(0), grouped(999), grouped(1000)),
            ("0".into(), "999".into(), "1,000".into())
        );
    }
}
