//! First tiers whose requests are simulated: his traces, and the recipes of ours.
//!
//! His gaps are DB2's `softmax`, in per cent of a log file whose size he does not print. A second
//! tier sees only the gap's effect on the mix of requests, so our gaps are chosen by that mix. They
//! are shares of the log that the whole run writes, chosen so that a pool of half of the data sends
//! about the RECOV writes of his tables 3.2 and 5.4 at each `softmax`. The choice was made once,
//! before any second tier was simulated.

use crate::experiment::Scale;

/// Bytes of a page.
pub const PAGE_SIZE: u32 = 4096;

/// Approximate log of a TPC-C transaction, in bytes.
const LOG_PER_TRANSACTION: f64 = 1340.0;

/// Bytes of log, per page of the loaded data, of which gaps are shares: 300,000 transactions above
/// the 22,687 pages of one warehouse.
const LOG_PER_PAGE: f64 = 300_000.0 * LOG_PER_TRANSACTION / 22_687.0;

/// Extent of a recording: data, warm-up, length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Course {
    /// Warehouses of TPC-C.
    pub warehouses: u32,
    /// `true` for warehouses of a hundredth of the rows.
    pub is_tiny: bool,
    /// Transactions of the warm-up.
    pub warm_up: u64,
    /// Maximum length, in transactions, to which a warm-up is extended until the first tier's gap
    /// is full. With a full gap the recording has as many RECOV writes at its start as at its end.
    /// A page is written when its age is three eighths of the gap.
    pub fills_gap: u64,
    /// Transactions whose requests are recorded.
    pub transactions: u64,
    /// Bytes of log of which the gaps are shares.
    pub gap_log: f64,
    /// Page references of the MySQL-like family, the warm-up included.
    pub references: usize,
    /// Bytes of a page.
    pub page_size: u32,
}

impl Course {
    /// Returns the course of a scale. His DB2 has 25 warehouses in 606,317 pages, and his MySQL 10;
    /// 29 of ours have 600,000 pages.
    pub fn of(scale: Scale) -> Course {
        let warehouses = scale.pick(1, 1, 29);
        let each = u64::from(warehouses);
        let warm_up = scale.pick(1_000, 25_000, 10_000) * each;
        let transactions = scale.pick(2_000, 275_000, 40_000) * each;
        let all = (warm_up + transactions) as f64 * LOG_PER_TRANSACTION;
        Course {
            warehouses,
            is_tiny: scale == Scale::Quick,
            warm_up,
            fills_gap: scale.pick(0, 0, 45_600) * each,
            transactions,
            gap_log: scale.pick(all, all, 600_000.0 * LOG_PER_PAGE),
            references: scale.pick(100_000, 10_000_000, 100_000_000),
            page_size: PAGE_SIZE,
        }
    }

    /// Returns the course of chapter 4: page references of a MySQL with pages of 16 KiB, and 10
    /// warehouses.
    pub fn of_chapter_4(scale: Scale) -> Course {
        Course {
            warehouses: scale.pick(1, 4, 10),
            references: scale.pick(200_000, 16_000_000, 40_000_000),
            page_size: 16 << 10,
            ..Course::of(scale)
        }
    }
}

/// System that a first tier resembles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// A live pool: GCLOCK, page cleaners at half of the pool dirty (li table 3.1).
    Db2,
    /// A simulated pool: LRU, read-ahead, and dirty neighbours written with a page (li 5.6.1.3).
    Mysql,
}

/// Source of a trace's dsync requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dsyncs {
    /// Dsync requests are added afterwards, by his procedure (li 5.6.2.1).
    Added,
    /// The engine sent them.
    Sent,
}

/// One of his traces.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FirstTier {
    /// His name of the trace; that of chapter 5 if both chapters have it.
    pub name: &'static str,
    /// Source recording, which several traces may share.
    pub recording: &'static str,
    /// System that the first tier resembles.
    pub family: Family,
    /// Size of the pool, in per cent of the data as loaded.
    pub percent: f64,
    /// LSN gap as a share of the log that the run writes, or of the logical writes in the
    /// MySQL-like family.
    pub gap: f64,
    /// Part of the course's transactions that is recorded.
    pub part: f64,
    /// `true` if the engine writes in place, and syncs the pages of its sync list that the log is
    /// about to forget (li 4.3.2).
    pub has_sync_list: bool,
    /// Source of the trace's dsync requests.
    pub(super) dsyncs: Dsyncs,
}

impl FirstTier {
    /// Returns the LSN gap in bytes of log.
    pub fn gap_bytes(&self, course: &Course) -> u64 {
        (course.gap_log * self.gap).max(1.0) as u64
    }

    /// Transactions of the warm-up.
    pub fn warm_up(&self, course: &Course) -> u64 {
        let full = (self.gap_bytes(course) as f64 / LOG_PER_TRANSACTION).ceil() as u64;
        course.warm_up.max(full.min(course.fills_gap))
    }

    /// Returns the approximate seconds of recording.
    pub(super) fn seconds(&self, scale: Scale) -> f64 {
        let course = Course::of(scale);
        let all = (self.warm_up(&course) + self.transactions(&course)) as f64;
        match self.family {
            Family::Db2 => scale.pick(0.3, 10.0 * self.part, 30.0 + all * 40e-6),
            Family::Mysql => scale.pick(0.2, 5.0, 100.0),
        }
    }

    /// Returns the number of recorded transactions.
    pub fn transactions(&self, course: &Course) -> u64 {
        (course.transactions as f64 * self.part).ceil() as u64
    }
}

const fn db2(name: &'static str, percent: f64, gap: f64) -> FirstTier {
    FirstTier {
        name,
        recording: name,
        family: Family::Db2,
        percent,
        gap,
        part: 1.0,
        has_sync_list: false,
        dsyncs: Dsyncs::Added,
    }
}

const fn mysql(name: &'static str, percent: f64) -> FirstTier {
    FirstTier { family: Family::Mysql, ..db2(name, percent, MYSQL_GAP) }
}

/// Returns the first tier of an engine with a sync list.
const fn listed(name: &'static str, dsyncs: Dsyncs) -> FirstTier {
    let tier = db2(name, 50.0, GAP_LISTED);
    FirstTier { recording: "listed", has_sync_list: true, dsyncs, ..tier }
}

/// Returns a first tier whose recording ends before the data have grown much.
const fn short(name: &'static str, percent: f64, gap: f64) -> FirstTier {
    FirstTier { part: 1.0 / 6.0, ..db2(name, percent, gap) }
}

/// Shares for `softmax` 40, 50, 400 and 4000.
const GAP_40: f64 = 0.0033;
const GAP_50: f64 = 0.0041;
const GAP_400: f64 = 1.0 / 6.0;
const GAP_4000: f64 = 1.0 / 3.0;
/// Gap of the in-place store. Such a store logs each page that becomes dirty in full, 7 times the
/// log, so this gap holds about as many transactions as `softmax` 400.
const GAP_LISTED: f64 = 4.0 / 3.0;
/// LSN gap of all his MySQL traces, with 120 MB of log.
const MYSQL_GAP: f64 = 0.1;

/// His traces: chapter 3 has the five with `softmax` 50, 400 and 4000 (li table 3.2), chapter 5 has
/// those with 40 and 4000 and the middle one (5.4), and four of MySQL (5.2).
pub const TRACES: [FirstTier; 20] = [
    db2("300k_400", 50.0, GAP_400),
    db2("60k_400", 10.0, GAP_400),
    db2("540k_400", 90.0, GAP_400),
    db2("300k_4000", 50.0, GAP_4000),
    db2("300k_50", 50.0, GAP_50),
    db2("60k_4000", 10.0, GAP_4000),
    db2("540k_4000", 90.0, GAP_4000),
    db2("300k_40", 50.0, GAP_40),
    mysql("120mbuf", 12.0),
    mysql("240mbuf", 24.0),
    mysql("480mbuf", 48.0),
    mysql("960mbuf", 96.0),
    // Traces of ours with fewer dsync requests, down to none.
    db2("gap-2/3", 50.0, 2.0 / 3.0),
    db2("gap-4/3", 50.0, 4.0 / 3.0),
    db2("gap-5", 50.0, 5.0),
    // A trace of ours that ends before the data have doubled.
    short("60k_400-short", 10.0, GAP_400),
    short("300k_400-short", 50.0, GAP_400),
    short("540k_400-short", 90.0, GAP_400),
    // Traces of ours: one recording, with the dsync requests of the engine and with those of his
    // procedure.
    listed("listed-sent", Dsyncs::Sent),
    listed("listed-added", Dsyncs::Added),
];

/// Returns the pages of his data, in thousands, to which his second-tier sizes refer: 606,317 of 4
/// KiB (3.4.1), and about 1 GB in MySQL's pages of 16 KiB (5.6.1.1).
pub(super) fn thousands(family: Family) -> f64 {
    match family {
        Family::Db2 => 606.317,
        Family::Mysql => 65.536,
    }
}

/// Returns the first tier of a trace.
pub(super) fn first_tier(name: &str) -> Option<&'static FirstTier> {
    TRACES.iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_and_gaps_are_his_ratios_of_ours() {
        let course = Course::of(Scale::Standard);
        let gap = |name: &str| first_tier(name).unwrap().gap_bytes(&course);
        let mib = |name: &str| gap(name) as f64 / f64::from(1 << 20);
        assert!((60.0..68.0).contains(&mib("300k_400")), "{}", mib("300k_400"));
        assert_eq!(gap("60k_400"), gap("540k_400"));
        assert!(gap("300k_40") < gap("300k_50") && gap("300k_400") < gap("300k_4000"));
        assert!(first_tier("300k").is_none());
        let [short, whole] = ["540k_400-short", "540k_400"].map(|name| first_tier(name).unwrap());
        assert_eq!(short.gap_bytes(&course), whole.gap_bytes(&course));
        assert!(short.transactions(&course) * 5 < whole.transactions(&course));
        let mut names: Vec<_> = TRACES.iter().map(|trace| trace.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TRACES.len());
        let full = Course::of(Scale::Paper);
        for name in ["300k_40", "300k_400", "300k_4000"] {
            let tier = first_tier(name).unwrap();
            let per_page = |course: &Course, pages: f64| tier.gap_bytes(course) as f64 / pages;
            let ratio = per_page(&full, 600_000.0) / per_page(&course, 22_687.0);
            assert!((ratio - 1.0).abs() < 1e-3, "{name}: {ratio}");
            let log = tier.warm_up(&full) as f64 * LOG_PER_TRANSACTION;
            assert!(log > tier.gap_bytes(&full) as f64 * 0.45, "{name}: pages are old enough");
            assert_eq!(tier.warm_up(&course), course.warm_up);
        }
        let [sent, added] = ["listed-sent", "listed-added"].map(|name| first_tier(name).unwrap());
        assert_eq!(sent.recording, added.recording);
        for trace in TRACES {
            let small = trace.gap_bytes(&Course::of(Scale::Quick));
            assert!(small > 0 && small < trace.gap_bytes(&course), "{}", trace.name);
        }
    }
}
