//! Tables 4.1 and 4.2: TPC-C on one disk and on an array (4.4.2).

use std::cell::RefCell;
use std::rc::Rc;

use super::setting::{PAGE_BYTES, Setting};
use super::systems::{ARRAY, DISK, Systems, table};
use super::tables_claims::{Columns, claims};
use crate::experiment::{About, Cell, FigureError, Scale, Watch};
use crate::li::places::Places;
use crate::li::traces::{Given, Recorded, Traces};
use crate::storage::SystemStat;
use millpond_lab::report::Section;
use millpond_lab::table::Table;
use millpond_lab::tier1::SyncRule;

const ABOUT: About = About {
    id: "tables-4",
    title: "TPC-C on one disk and on a RAID-5 array (tables 4.1 and 4.2)",
    asks: "What do deferred syncs save of a mixed workload, and does it show in its throughput?",
    says: "On one disk rec has 6.3 % more transactions than nio, both over 60 % more than org; on \
           the array nio has 18.3 % more than rec and 27 % more than org. In both nio writes the \
           fewest sectors for a transaction.",
};

/// Bytes of log per transaction.
const LOG: f64 = 2700.0;
/// His log, and his array's cache, as shares of his 1 GB of data.
const LOG_SHARE: f64 = 0.2;
const ARRAY_CACHE: f64 = 0.256;
/// Inverse of the warm-up's part of the transactions.
const WARM: u64 = 3;

/// Returns the figure.
pub(in super::super) fn figure(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Systems {
    Systems {
        about: ABOUT,
        scale,
        traces: traces.clone(),
        places: vec![DISK, ARRAY],
        rules: SyncRule::ALL.iter().map(|(name, _)| *name).collect(),
        seconds: scale.pick(0.3, 1.2, 6.0),
        run,
        draw,
    }
}

fn run(
    traces: &mut Traces,
    _: Scale,
    cell: &Cell,
    rule: SyncRule,
    watch: &mut dyn Watch,
) -> Result<SystemStat, FigureError> {
    tpcc(traces, cell, rule, watch, |_| {})
}

/// Runs TPC-C on the cell's disks, with the setting modified by `change`.
///
/// # Errors
/// [`FigureError`].
pub(super) fn tpcc(
    traces: &mut Traces,
    cell: &Cell,
    rule: SyncRule,
    watch: &mut dyn Watch,
    change: impl FnOnce(&mut Setting),
) -> Result<SystemStat, FigureError> {
    let recorded = traces.of_chapter_4(cell.repetition, watch)?;
    let mut setting = setting(&recorded, rule, cell.repetition);
    if cell.text("trace") == ARRAY.trace {
        setting.array = Some((recorded.data_pages as f64 * PAGE_BYTES as f64 * ARRAY_CACHE) as u64);
    }
    change(&mut setting);
    let transactions = recorded.transactions.max(1);
    let per = (recorded.batch.len() as u64 / transactions).max(1);
    setting.run(Box::new(Given::new(&recorded)), per, transactions / WARM, transactions)
}

/// Returns a setting with his ratios to the loaded data.
fn setting(recorded: &Recorded, rule: SyncRule, repetition: u32) -> Setting {
    let writes = recorded.batch.marks.iter().filter(|mark| mark.is_write()).count();
    let per_transaction = writes as f64 / recorded.transactions.max(1) as f64;
    let bytes = (recorded.data_pages * PAGE_BYTES) as f64;
    let gap = bytes * LOG_SHARE / LOG * per_transaction;
    Setting::new(rule, recorded.data_pages, gap.max(1.0) as u64, repetition.into())
}

/// Columns of the tables.
pub(super) const COLUMNS: [(&str, &str); 12] = [
    ("per_second", "transactions/s"),
    ("read_per_second", "sectors read/s"),
    ("written_per_second", "sectors written/s"),
    ("service_ms", "service time, ms"),
    ("utilisation", "utilisation"),
    ("read_sectors", "sectors read a transaction"),
    ("written_sectors", "written"),
    ("requests", "requests"),
    ("disk_ms", "ms of the device"),
    ("mb_per_sync", "MB a call"),
    ("syncs", "calls"),
    ("file_hits", "hit ratio of the file cache"),
];

fn draw(rows: &Table) -> Section {
    let of = |column| Places::of(rows, column);
    let plots = vec![
        of("per_second").by_trace("Throughput", "transactions a second").into(),
        of("written_sectors").by_trace("Sectors written", "sectors a transaction").into(),
        of("service_ms").by_trace("Service time", "milliseconds").into(),
    ];
    let note = "TPC-C's page references, recorded from our engine with pages of 16 KiB and one \
                client, are dealt out transaction by transaction to ten clients above a simulated \
                pool. Pool, file cache, log and the array's cache are of the data as loaded what \
                his are of 1 GB: 24, 24, 20 and 25.6 %. A transaction takes 5 ms beside its I/O. \
                That it writes 2,700 bytes of log and that a recovery frees a 32nd of the gap is \
                ours, chosen by his sizes of calls; all transactions count, his are new orders.";
    Section {
        note: note.to_string(),
        table: table(rows, &COLUMNS),
        plots,
        claims: claims(&Columns::of(rows)),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;
    use millpond_workload::trace::Batch;

    use super::*;
    use crate::experiment::Unwatched;

    /// Makes transactions of four references to 500 pages, every other one a write.
    fn recorded(seed: u64) -> Recorded {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut batch = Batch::default();
        for at in 0..40_000 {
            let page = rng.u64(0..500).min(rng.u64(0..500));
            batch.push(page, if at % 2 == 0 { Mark::WRITE } else { Mark::READ });
        }
        Recorded { batch, data_pages: 500, transactions: 10_000, ..Recorded::default() }
    }

    #[test]
    fn ratios_are_his() {
        let setting = setting(&recorded(1), SyncRule::Ranges, 1);
        let log = 500.0 * 16_384.0 * 0.2;
        assert_eq!(setting.gap, (log / 2700.0 * 2.0) as u64);
        assert_eq!((setting.data, setting.pool, setting.cache), (500, 0.24, 0.24));
    }

    #[test]
    fn each_system_runs_on_both_and_org_syncs_each_page() {
        let record = |_: Option<&_>, _: &_, seed, _: &mut dyn Watch| Ok(recorded(seed));
        let mut traces = Traces::new(Scale::Quick, Box::new(record));
        for place in [DISK.trace, ARRAY.trace] {
            let cell = Cell::new(ABOUT.id, 1, Default::default()).with("trace", place);
            let mut of =
                |rule| run(&mut traces, Scale::Quick, &cell, rule, &mut Unwatched).unwrap();
            let [org, rec, range] =
                [SyncRule::EachWrite, SyncRule::EachRecov, SyncRule::Ranges].map(&mut of);
            let sectors = |stat: SystemStat| stat.meter.sectors_written;
            assert_eq!(org.transactions, 10_000 - 3_333);
            let fewer = sectors(range) < sectors(rec) && sectors(rec) < sectors(org);
            let faster = range.time < org.time && rec.time < org.time;
            assert!(place == ARRAY.trace || fewer && faster, "{org:?} {rec:?} {range:?}");
            assert!(sectors(range) < sectors(org), "{place}");
            assert_eq!(org, of(SyncRule::EachWrite), "the same each time");
        }
    }
}
