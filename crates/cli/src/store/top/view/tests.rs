//! The view at every width, without a terminal.

use std::time::Duration;

use millpond::{Latency, Published, Stats};

use super::super::sampler::Sampler;
use super::*;

fn published(uptime_s: f64, times: u64) -> Published {
    let latency = |count, sum_ns: u64| Latency {
        count,
        sample_period: 1,
        sum_ns,
        mean_ns: sum_ns / count,
        max_ns: sum_ns,
        buckets: vec![(1 << 20, count)],
        ..Latency::default()
    };
    let mut stats = Stats {
        page_size: 4096,
        frames: 65_536,
        uptime_s,
        gets: 246_912 * times,
        puts: 2 * times,
        commits: 2_468 * times,
        aborts: 30 * times,
        aborts_deadlock: 10 * times,
        aborts_timeout: 6 * times,
        references: 10_000 * times,
        misses: 7 * times,
        writes_recov: 44 * times,
        lock_waits: 40 * times,
        log_bytes: 6 << (20 + times),
        free_frames: 321,
        dirty_frames: 1234,
        version_bytes: 3 << 20,
        waiting_for_lock: 3,
        ..Stats::default()
    };
    stats.lock_time = latency(40 * times, 5_000_000_000 * times);
    stats.log_time = latency(10 * times, 1_250_000_000 * times);
    Published { stats, ..Published::default() }
}

fn interval() -> (Published, Interval) {
    let mut sampler = Sampler::new(published(10.0, 1), Duration::ZERO);
    sampler.see(published(12.0, 2), Duration::from_secs(2));
    let interval = sampler.published().unwrap();
    (sampler.newest().clone(), interval)
}

fn at(width: usize, height: Option<usize>) -> Vec<Line> {
    let (newest, interval) = interval();
    let status = about(Some(&interval), 0.25);
    let file = "/srv/shops/of/the/world/shop.db";
    let interval = Some(&interval);
    let shown = Shown { file, newest: &newest, interval, status: &status, is_notice: false };
    lines(&shown, width, height)
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text.clone() + "\n").collect()
}

/// Returns the number in a group's cell: the text after its label.
#[track_caller]
fn cell(text: &str, group: &str, label: &str) -> String {
    let from = text.find(group).unwrap_or_else(|| panic!("no {group} in {text}"));
    let from = from + text[from..].find(label).unwrap_or_else(|| panic!("no {label}:\n{text}"));
    let words = text[from + label.len()..].trim_start();
    words.split("  ").next().unwrap().lines().next().unwrap().to_string()
}

#[test]
fn no_line_is_wider_than_the_terminal_and_none_is_missing() {
    for width in 20..=200 {
        let lines = at(width, None);
        for line in &lines {
            assert!(line.text.chars().count() <= width, "{width}: {:?}", line.text);
        }
        let text = text(&lines);
        for name in ["CALLS", "TXNS", "WAITS", "READS", "WRITES", "FRAMES", "LOG", "MEAN", "KEPT"] {
            assert!(text.contains(name), "{width}: no {name}:\n{text}");
        }
        for wait in ["latch", "lock", "log flush", "log space", "page read", "frame"] {
            assert!(text.lines().any(|line| line.contains(wait)), "{width}: {wait}\n{text}");
        }
        // A narrow column truncates the label, never the number.
        for number in ["123 k", "1,234", "99.93 %", "2.50"] {
            assert!(text.contains(number), "{width}: no {number}:\n{text}");
        }
    }
}

#[test]
fn a_second_tier_has_a_line_of_its_own_where_there_is_one() {
    let shown = |off| {
        let (mut newest, mut interval) = interval();
        for stats in [&mut newest.stats, &mut interval.stats] {
            (stats.tier_frames, stats.tier_resident) = (5000, 4321);
            (stats.tier_reads, stats.tier_served, stats.tier_off) = (400, 300, off);
        }
        let interval = Some(&interval);
        let shown = Shown { file: "f", newest: &newest, interval, status: "", is_notice: false };
        text(&lines(&shown, 100, None))
    };
    let on = shown(0);
    let cells = ["state", "served", "pages"].map(|label| cell(&on, "TIER", label));
    assert_eq!(cells, ["on", "75.00 %", "4,321"]);
    assert_eq!(cell(&shown(1), "TIER", "state"), "off");
    assert!(!text(&at(100, None)).contains("TIER"));
    assert!(!on.contains("destaged"), "writes go through");
}

#[test]
fn a_second_tier_that_writes_back_tells_what_storage_has_not_and_what_it_was_spared() {
    let (mut newest, mut interval) = interval();
    for stats in [&mut newest.stats, &mut interval.stats] {
        (stats.tier_frames, stats.tier_dirty) = (5000, 1234);
    }
    (interval.stats.tier_destaged, interval.stats.tier_spared) = (400, 3000);
    let rates = [400, 3000].map(|events| count(interval.rate(events)));
    let interval = Some(&interval);
    let shown = Shown { file: "f", newest: &newest, interval, status: "", is_notice: false };
    let text = text(&lines(&shown, 200, None));
    let cells = ["dirty", "destaged", "spared"].map(|label| cell(&text, "TIER", label));
    assert_eq!(cells, ["1,234", &rates[0], &rates[1]]);
}

#[test]
fn no_more_lines_than_the_terminal_has_rows_and_the_last_one_counts_the_rest() {
    for width in [20, 40, 80, 200] {
        let all = at(width, None);
        for height in 3..=all.len() + 2 {
            let lines = at(width, Some(height));
            assert!(lines.len() <= height);
            if height >= all.len() {
                assert_eq!(lines, all);
            } else {
                let shown = lines.len() - 1;
                assert_eq!(lines[..shown], all[..shown]);
                let says = format!("… {} more", all.len() - shown);
                assert!(lines[shown].text.starts_with(&says), "{:?}", lines[shown]);
            }
        }
    }
    assert_eq!(at(5, Some(0)).len(), 3, "less than the least is the least");
    assert!(at(80, None).len() <= 24, "a usual terminal shows everything");
}

#[test]
fn numbers_are_those_of_the_interval() {
    for width in [60, 80, 132] {
        let text = text(&at(width, None));
        let expected = [
            ("CALLS", "gets", "123 k"),
            ("CALLS", "puts", "1.0"),
            ("TXNS", "commits", "1,234"),
            ("TXNS", "aborts", "15"),
            ("TXNS", "deadlock", "5.0"),
            ("TXNS", "timeout", "3.0"),
            ("TXNS", "error", "0"),
            ("TXNS", "asked for", "7.0"),
            ("READS", "hit rate", "99.93 %"),
            ("READS", "misses", "3.5"),
            ("WRITES", "recovery", "22"),
            ("FRAMES", "free", "321"),
            ("FRAMES", "dirty", "1,234"),
            ("LOG", "bytes", "6.0 MiB"),
            ("LOG", "sync mean", "–"),
            ("KEPT", "versions", "3.0 MiB"),
        ];
        for (group, label, number) in expected {
            assert_eq!(cell(&text, group, label), number, "{group} {label}:\n{text}");
        }
    }
}

#[test]
fn waits_have_their_threads_rate_length_and_share_and_bars_in_proportion() {
    let text = text(&at(100, None));
    let row = |name: &str| text.lines().find(|l| l.trim_start().starts_with(name)).unwrap();
    let words: Vec<&str> = row("lock").split_whitespace().collect();
    assert_eq!(words[..7], ["lock", "3.0", "3.0", "20", "125", "ms", "2.50"]);
    let blocks = |name: &str| row(name).chars().filter(|c| *c == '█').count();
    // 53 columns are left for bars, and the longest one takes them.
    let full = 100 - 8 - 9 - (7 + 7 + 8 + 9 + 7) - 1;
    assert_eq!((blocks("lock"), blocks("log flush"), blocks("latch")), (full, full / 4, 0));
    assert!(text.contains("2.5 s/s|"), "{text}");
}

#[test]
fn before_the_first_interval_there_are_gauges_and_no_rates() {
    let newest = published(10.0, 1);
    let status = about(None, 0.0);
    let shown = Shown {
        file: "a\x1b[2J.db",
        newest: &newest,
        interval: None,
        status: &status,
        is_notice: false,
    };
    let text = text(&lines(&shown, 80, None));
    assert!(text.starts_with("a?[2J.db  process 0, open for 0:00:10, 65536 frames of 4.0 KiB\n"));
    assert_eq!(
        (cell(&text, "CALLS", "gets"), cell(&text, "FRAMES", "free")),
        ("–".into(), "321".into())
    );
    assert!(text.contains("waiting for the store to publish"), "{text}");
}

#[test]
fn a_long_name_keeps_its_end_and_a_notice_is_bold() {
    let newest = published(10.0, 1);
    let shown = Shown {
        file: "/a/rather/long/way/to/the/shop.db",
        newest: &newest,
        interval: None,
        status: "the store was closed: these are its last numbers",
        is_notice: true,
    };
    let lines = lines(&shown, 20, None);
    assert_eq!(lines[0].text, "…/way/to/the/shop.db");
    assert_eq!(lines[1], Line { text: "the store was close…".to_string(), is_bold: true });
}
