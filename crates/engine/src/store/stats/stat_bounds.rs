//! Tests of the largest statistics file that a store writes, and of the largest one that is read.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::stat_file::{FILE_BYTES_MAX, StatFileError, stat_path};
use super::{Published, Publisher, Stats};
use crate::stats::counters::Timing;
use crate::stats::histogram::{BUCKETS, range_of};

/// Returns statistics in which each number has the most digits possible, and no bucket is empty.
fn largest() -> Stats {
    let Value::Object(mut stats) = serde_json::to_value(Stats::default()).unwrap() else {
        panic!("statistics are an object");
    };
    let buckets: Vec<(u64, u64)> =
        (0..BUCKETS).map(|bucket| (range_of(bucket).0, u64::MAX)).collect();
    let mut timings = 0;
    for (name, value) in &mut stats {
        match value {
            Value::Object(latency) => {
                timings += 1;
                for (name, value) in latency {
                    *value = match name.as_str() {
                        "buckets" => json!(buckets),
                        "sample_period" => json!(u32::MAX),
                        _ => json!(u64::MAX),
                    };
                }
            }
            _ if name == "uptime_s" => *value = json!(f64::MAX),
            _ => *value = json!(u64::MAX),
        }
    }
    assert_eq!(timings, Timing::ALL.len());
    serde_json::from_value(Value::Object(stats)).unwrap()
}

#[test]
fn the_largest_statistics_that_a_store_publishes_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s");
    let publisher = Publisher::new(&store, Duration::ZERO);
    assert!(publisher.maybe_publish(largest));
    let length = fs::metadata(stat_path(&store)).unwrap().len();
    assert!(length > 250_000 && 2 * length < FILE_BYTES_MAX, "{length} bytes");
    let mut read = Published::read(&store).unwrap().stats;
    read.uptime_s = f64::MAX;
    assert!(read == largest());
}

#[test]
fn a_file_of_one_mebibyte_is_read_and_one_of_a_byte_more_is_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s");
    assert!(Publisher::new(&store, Duration::ZERO).maybe_publish(largest));
    let mut text = fs::read(stat_path(&store)).unwrap();
    text.resize(FILE_BYTES_MAX as usize, b' ');
    fs::write(stat_path(&store), &text).unwrap();
    assert_eq!(Published::read(&store).unwrap().stats.misses, u64::MAX);
    text.push(b' ');
    fs::write(stat_path(&store), &text).unwrap();
    let error = Published::read(&store).unwrap_err();
    assert!(matches!(error, StatFileError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
}
