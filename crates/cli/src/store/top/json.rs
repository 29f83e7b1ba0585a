//! An interval as one JSON object.

use millpond::Published;
use millpond::internals::stats::Wait;
use millpond::internals::stats::counters::{Counter, Gauge, Timing};
use serde_json::{Map, Value as Json, json};

use super::sampler::Interval;

/// Returns one line without a line end: the rates of all counters, all gauges, all latencies,
/// and the waits.
///
/// `seconds` is the interval's length. `restart` is the reason that rates restarted, or null. A
/// latency is null if nothing was timed.
pub(super) fn line(file: &str, newest: &Published, interval: &Interval) -> String {
    let stats = &interval.stats;
    let rates = Counter::ALL
        .iter()
        .map(|counter| (counter.name().to_string(), json!(interval.rate(stats.counter(*counter)))));
    let gauges = Gauge::ALL.iter();
    let gauges = gauges.map(|gauge| (gauge.name().to_string(), json!(stats.gauge(*gauge))));
    let object = json!({
        "file": file,
        "pid": newest.process.pid,
        "uptime_s": newest.stats.uptime_s,
        "written_ms": newest.written_ms,
        "seconds": interval.seconds,
        "samples": interval.samples,
        "recent_samples": interval.recent_samples,
        "restart": interval.restart,
        "hit_ratio": stats.hit_ratio(),
        "per_second": rates.collect::<Map<String, Json>>(),
        "gauges": gauges.collect::<Map<String, Json>>(),
        "latency_us": Timing::ALL.iter().map(|timing| latency(interval, *timing))
            .collect::<Map<String, Json>>(),
        "waits": Wait::ALL.into_iter().enumerate().map(|(at, what)| wait(interval, at, what))
            .collect::<Map<String, Json>>(),
    });
    object.to_string()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn latency(interval: &Interval, timing: Timing) -> (String, Json) {
    let latency = interval.stats.latency(timing);
    let timed = (latency.count > 0).then(|| {
        json!({
            "timed": latency.count,
            "sample_period": latency.sample_period,
            "mean": us(latency.mean_ns),
            "p50": us(latency.p50_ns),
            "p99": us(latency.p99_ns),
            "max": us(latency.max_ns),
        })
    });
    (timing.name().to_string(), timed.unwrap_or(Json::Null))
}

fn wait(interval: &Interval, at: usize, what: Wait) -> (String, Json) {
    let name = match what {
        Wait::Latch => "latch",
        Wait::Lock => "lock",
        Wait::Log => "log",
        Wait::LogSpace => "log_space",
        Wait::Page => "page",
        Wait::Frame => "frame",
    };
    let numbers = json!({
        "threads": interval.waiting[at],
        "threads_recently": interval.waiting_recently[at],
        "per_second": interval.rate(interval.stats.counter(what.counter())),
        "seconds_per_second": interval.waiting_share(what),
    });
    (name.to_string(), numbers)
}
