//! Intervals between the versions of its statistics that a store publishes.
//!
//! A store publishes once a second while it is used ([`PUBLISH_PERIOD`]), and not while it is
//! idle. So an interval ends with a version. Its length is the difference of the two versions' own
//! clocks, and its events are the difference of their counters. Rates are therefore right however
//! late a version is read. If no version arrives, the store was idle, apart from events not
//! published yet: the time up to [`LAG`] ago was idle, and later events are charged to the time
//! after it.
//!
//! Each version is also a sample of the threads' wait states: a gauge per wait counts the waiting
//! threads.

use std::collections::VecDeque;
use std::time::Duration;

use millpond::internals::stats::Wait;
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::stats::stat_file::PUBLISH_PERIOD;
use millpond::{Published, Stats};

/// Events older than this are published: a store checks once per period if it was used, and
/// publishes then.
const LAG: Duration = PUBLISH_PERIOD.saturating_mul(2);

/// Minimum length of an interval without events, in seconds.
const IDLE_S_MIN: f64 = 0.1;

/// Samples in the moving mean of threads that wait.
pub(super) const RECENT: usize = 10;

/// A number for each kind of wait, in the order of [`Wait::ALL`].
pub(super) type PerWait = [f64; Wait::ALL.len()];

/// Activity of the store between two published versions.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    /// Counters and latencies of the interval, gauges at its end.
    pub(super) stats: Stats,
    /// Length of the interval in seconds, by the store's clock; above 0.
    pub(super) seconds: f64,
    /// Versions read during the interval; 0 if it is idle.
    pub(super) samples: usize,
    /// Waiting threads: the mean of the interval's samples, or the last sample if it has none.
    pub(super) waiting: PerWait,
    /// The mean of the last [`RECENT`] samples.
    pub(super) waiting_recently: PerWait,
    /// Number of samples in `waiting_recently`.
    pub(super) recent_samples: usize,
    /// Reason that the counters restarted, which leaves the time before unknown; `None` if they
    /// did not.
    pub(super) restart: Option<String>,
}

impl Interval {
    /// Returns events per second.
    pub(super) fn rate(&self, events: u64) -> f64 {
        events as f64 / self.seconds
    }

    /// Returns the seconds of wait per second, over all threads. A wait counts when it is over.
    pub(super) fn waiting_share(&self, what: Wait) -> f64 {
        self.stats.latency(what.timing()).sum_ns as f64 / 1e9 / self.seconds
    }
}

/// Turns versions into intervals.
pub(super) struct Sampler {
    /// Counters at the interval's start; `base_s` is the store's clock in seconds.
    base: Stats,
    base_s: f64,
    newest: Published,
    /// Time when the newest version was seen, by the caller's clock.
    seen: Duration,
    /// Time when the last interval ended, by the caller's clock.
    ended: Duration,
    samples: usize,
    sums: PerWait,
    recent: VecDeque<PerWait>,
    restart: Option<String>,
}

fn gauges(stats: &Stats) -> PerWait {
    Wait::ALL.map(|what| stats.gauge(what.gauge()) as f64)
}

/// Returns the reason that `new` does not continue `old`, if there is one.
fn restart(old: &Published, new: &Published) -> Option<String> {
    if (&old.process, old.started_ms) != (&new.process, new.started_ms) {
        let pid = new.process.pid;
        return Some(format!("the store was opened again, by process {pid}"));
    }
    let is_less = |counter: &Counter| new.stats.counter(*counter) < old.stats.counter(*counter);
    let backward = Counter::ALL.iter().find(|counter| is_less(counter));
    match backward {
        Some(counter) => Some(format!("the store's counters went backward ({counter})")),
        None if new.stats.uptime_s < old.stats.uptime_s => {
            Some("the store's clock went backward".to_string())
        }
        None => None,
    }
}

impl Sampler {
    /// Starts with a version that was read `now`.
    pub(super) fn new(first: Published, now: Duration) -> Sampler {
        Sampler {
            base: first.stats.clone(),
            base_s: first.stats.uptime_s,
            recent: VecDeque::from([gauges(&first.stats)]),
            newest: first,
            seen: now,
            ended: now,
            samples: 0,
            sums: PerWait::default(),
            restart: None,
        }
    }

    /// Returns the newest version.
    pub(super) fn newest(&self) -> &Published {
        &self.newest
    }

    /// Returns the reason that the current interval does not continue the last one, if there is
    /// one.
    pub(super) fn restart(&self) -> Option<&str> {
        self.restart.as_deref()
    }

    /// Takes a version read `now`, which may be one that was read before.
    pub(super) fn see(&mut self, read: Published, now: Duration) {
        if read == self.newest {
            return;
        }
        if let Some(reason) = restart(&self.newest, &read) {
            let ended = self.ended;
            *self = Sampler { ended, restart: Some(reason), ..Sampler::new(read, now) };
            return;
        }
        let sample = gauges(&read.stats);
        self.samples += 1;
        self.sums.iter_mut().zip(sample).for_each(|(sum, threads)| *sum += threads);
        self.recent.push_back(sample);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        (self.newest, self.seen) = (read, now);
    }

    /// Returns the interval that ends `now`, if the last one ended at least `length` ago and the
    /// events in between are known.
    pub(super) fn end(&mut self, now: Duration, length: Duration) -> Option<Interval> {
        if now.saturating_sub(self.ended) < length {
            return None;
        }
        let interval = self.published().or_else(|| self.idle(now))?;
        self.ended = now;
        Some(interval)
    }

    /// Returns an interval of everything published since the last one ended, if anything was.
    pub(super) fn published(&mut self) -> Option<Interval> {
        let seconds = self.newest.stats.uptime_s - self.base_s;
        if self.samples == 0 || seconds <= 0.0 {
            return None;
        }
        let stats = self.newest.stats.since(&self.base);
        let samples = std::mem::take(&mut self.samples);
        let sums = std::mem::take(&mut self.sums);
        self.base = self.newest.stats.clone();
        self.base_s = self.newest.stats.uptime_s;
        Some(self.interval(stats, seconds, samples, sums.map(|sum| sum / samples as f64)))
    }

    fn idle(&mut self, now: Duration) -> Option<Interval> {
        let since = now.saturating_sub(self.seen).as_secs_f64();
        let idle_s = self.newest.stats.uptime_s + since - LAG.as_secs_f64();
        let seconds = idle_s - self.base_s;
        if self.samples > 0 || seconds < IDLE_S_MIN {
            return None;
        }
        self.base_s = idle_s;
        let newest = &self.newest.stats;
        let (stats, waiting) = (newest.since(newest), gauges(newest));
        Some(self.interval(stats, seconds, 0, waiting))
    }

    fn interval(
        &mut self,
        stats: Stats,
        seconds: f64,
        samples: usize,
        waiting: PerWait,
    ) -> Interval {
        let mut waiting_recently = PerWait::default();
        for sample in &self.recent {
            waiting_recently.iter_mut().zip(sample).for_each(|(sum, threads)| *sum += threads);
        }
        let recent_samples = self.recent.len();
        let waiting_recently = waiting_recently.map(|sum| sum / recent_samples as f64);
        let restart = self.restart.take();
        Interval { stats, seconds, samples, waiting, waiting_recently, recent_samples, restart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Makes a version after `uptime_s`, with `gets` lookups and `waiting` threads waiting for a
    /// lock.
    fn version(uptime_s: f64, gets: u64, waiting: u64) -> Published {
        let stats = Stats { uptime_s, gets, waiting_for_lock: waiting, ..Stats::default() };
        Published { started_ms: 5, stats, ..Published::default() }
    }

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    const LOCK: usize = 1;

    #[test]
    fn a_rate_is_that_between_two_versions_however_late_the_second_one_is_seen() {
        let mut sampler = Sampler::new(version(10.0, 100, 0), secs(0.0));
        sampler.see(version(12.5, 600, 0), secs(7.0));
        let interval = sampler.end(secs(7.0), SECOND).unwrap();
        assert_eq!((interval.seconds, interval.samples), (2.5, 1));
        assert_eq!(interval.rate(interval.stats.gets), 200.0);
        assert!(interval.restart.is_none() && sampler.published().is_none());
    }

    #[test]
    fn an_interval_waits_for_its_length_and_for_a_version() {
        let mut sampler = Sampler::new(version(10.0, 0, 0), secs(0.0));
        sampler.see(version(10.5, 10, 0), secs(0.5));
        assert!(sampler.end(secs(0.9), SECOND).is_none());
        assert_eq!(sampler.end(secs(1.0), SECOND).unwrap().stats.gets, 10);
        sampler.see(version(10.5, 10, 0), secs(2.0));
        assert!(sampler.end(secs(2.0), SECOND).is_none(), "the same version is none");
        sampler.see(version(12.0, 40, 0), secs(2.1));
        let interval = sampler.end(secs(2.1), SECOND).unwrap();
        assert_eq!((interval.stats.gets, interval.seconds), (30, 1.5));
    }

    #[test]
    fn a_store_that_rests_is_idle_up_to_what_may_be_unpublished() {
        let mut sampler = Sampler::new(version(10.0, 5, 3), secs(0.0));
        assert!(sampler.end(secs(2.0), SECOND).is_none(), "what happened may come yet");
        let idle = sampler.end(secs(3.0), SECOND).unwrap();
        assert_eq!((idle.seconds, idle.samples, idle.stats.gets), (1.0, 0, 0));
        assert_eq!(idle.waiting[LOCK], 3.0, "the last gauges stand");
        assert_eq!(sampler.end(secs(5.0), SECOND).unwrap().seconds, 2.0);
        // A burst is charged to the time that was not shown yet.
        sampler.see(version(15.5, 505, 0), secs(5.6));
        let interval = sampler.end(secs(6.0), SECOND).unwrap();
        assert_eq!((interval.seconds, interval.rate(interval.stats.gets)), (2.5, 200.0));
    }

    #[test]
    fn every_version_is_a_sample_of_who_waits() {
        let mut sampler = Sampler::new(version(0.0, 0, 0), secs(0.0));
        for second in 1..=4u32 {
            sampler.see(version(f64::from(second), 0, u64::from(second)), secs(second.into()));
        }
        let interval = sampler.end(secs(4.0), SECOND).unwrap();
        assert_eq!((interval.samples, interval.waiting[LOCK]), (4, 2.5));
        assert_eq!((interval.recent_samples, interval.waiting_recently[LOCK]), (5, 2.0));
        assert_eq!(interval.waiting.iter().sum::<f64>(), 2.5, "for nothing else");
        for second in 5..30u32 {
            sampler.see(version(f64::from(second), 0, 7), secs(second.into()));
        }
        let interval = sampler.end(secs(30.0), SECOND).unwrap();
        assert_eq!((interval.recent_samples, interval.waiting_recently[LOCK]), (RECENT, 7.0));
    }

    #[test]
    fn waiting_time_per_second_may_be_that_of_several_threads() {
        let mut later = version(12.0, 0, 0);
        later.stats.lock_time.sum_ns = 7_000_000_000;
        later.stats.lock_time.buckets = vec![(1 << 32, 2)];
        let mut sampler = Sampler::new(version(10.0, 0, 0), secs(0.0));
        sampler.see(later, secs(2.0));
        let interval = sampler.end(secs(2.0), SECOND).unwrap();
        assert_eq!(interval.waiting_share(Wait::Lock), 3.5);
        assert_eq!(interval.waiting_share(Wait::Latch), 0.0);
    }

    #[test]
    fn a_store_that_was_opened_again_is_counted_from_there() {
        let mut again = version(0.5, 20, 1);
        again.started_ms = 6;
        let mut wrapped = version(11.0, 99, 0);
        wrapped.stats.puts = 7;
        for (second, says) in [
            (again, "opened again"),
            (wrapped, "counters went backward (gets)"),
            (version(9.0, 100, 0), "clock"),
        ] {
            let mut sampler = Sampler::new(version(10.0, 100, 0), secs(0.0));
            let (mut third, uptime_s) = (second.clone(), second.stats.uptime_s);
            sampler.see(second, secs(1.0));
            assert!(sampler.restart().is_some_and(|reason| reason.contains(says)));
            assert!(sampler.end(secs(1.0), SECOND).is_none(), "{says}: nothing to compare with");
            third.stats.gets += 30;
            third.stats.uptime_s = uptime_s + 2.0;
            sampler.see(third, secs(3.0));
            let interval = sampler.end(secs(3.0), SECOND).unwrap();
            assert_eq!((interval.stats.gets, interval.seconds), (30, 2.0), "{says}");
            assert!(interval.restart.as_ref().unwrap().contains(says), "{interval:?}");
            assert!(sampler.end(secs(9.0), SECOND).unwrap().restart.is_none());
        }
    }
}
