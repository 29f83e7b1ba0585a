//! Figures 4.6 to 4.8: single-row updates (4.4.1.2).

use std::cell::RefCell;
use std::rc::Rc;

use millpond_base::Seed;
use millpond_workload::generate::generate;
use millpond_workload::trace::{Batch, Source, TraceError};

use super::setting::Setting;
use super::systems::{Systems, table};
use crate::experiment::{About, Cell, FigureError, Scale, Watch};
use crate::li::places::{Place, Places};
use crate::li::traces::Traces;
use crate::storage::SystemStat;
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::Table;
use millpond_lab::tier1::SyncRule;
use millpond_lab::verdict::{at_most, below, between, claim_named};

const ABOUT: About = About {
    id: "4.6",
    title: "Single-row updates: sectors written, time and service time (figures 4.6 to 4.8)",
    asks: "What do deferred syncs save where all transactions are updates?",
    says: "nio writes 30 % fewer sectors than org, rec a little fewer. rec is a little faster than \
           nio, for its requests are served in less time; org's take longest.",
};

/// Rows of about 4 KB, four to a page of 16 KiB.
const PAGES: u64 = 60_000;
const UPDATES: u64 = 2_400_000;
/// 200 MB of log at 250 bytes an update.
const GAP: u64 = 838_861;
/// Length of the table in units of the exponential distribution.
const SPAN: &str = "8";
/// One program issues the updates.
const THINK: u64 = 1_000_000;

const AT: Place<'static> = Place::of("updates", "as his");

/// Returns the figure.
pub(in super::super) fn figure(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Systems {
    Systems {
        about: ABOUT,
        scale,
        traces: traces.clone(),
        places: vec![AT],
        rules: SyncRule::ALL.iter().map(|(name, _)| *name).collect(),
        seconds: scale.pick(0.1, 1.0, 1.0),
        run,
        draw,
    }
}

/// Writes without the generator's own dsync requests, which the first tier sends.
struct Plain(Box<dyn Source>);

impl Source for Plain {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        while self.0.fill(batch, limit)? > 0 {
            batch.drop_dsyncs();
            if batch.len() > before {
                break;
            }
        }
        Ok(batch.len() - before)
    }
}

fn run(
    _: &mut Traces,
    scale: Scale,
    cell: &Cell,
    rule: SyncRule,
    _: &mut dyn Watch,
) -> Result<SystemStat, FigureError> {
    let part = scale.pick(100, 1, 1);
    let (pages, updates) = (PAGES / part, UPDATES / part);
    let seed = u64::from(cell.repetition);
    let given = [("pages", pages.to_string()), ("writes", updates.to_string())];
    let fixed = [("span", SPAN.to_string()), ("sync", "1".to_string())];
    let params: Vec<(String, String)> =
        given.into_iter().chain(fixed).map(|(name, value)| (name.to_string(), value)).collect();
    let source = generate("exponential", &params, Seed(seed)).map_err(FigureError::of)?;
    let mut setting = Setting::new(rule, pages, GAP / part, seed);
    (setting.clients, setting.think) = (1, THINK);
    // Pool and file cache of 240 MB each, beside 983 MB.
    let share = 15_360.0 / PAGES as f64;
    (setting.pool, setting.cache) = (share, share);
    setting.run(Box::new(Plain(source)), 1, 0, updates)
}

fn draw(rows: &Table) -> Section {
    let columns = [
        ("all_written", "sectors written"),
        ("seconds", "seconds"),
        ("service_ms", "service time, ms"),
        ("utilisation", "utilisation"),
        ("mb_per_sync", "MB a call"),
        ("syncs", "calls"),
        ("background_mb", "MB by the kernel"),
    ];
    let of = |column| Places::of(rows, column);
    let plots = vec![
        of("all_written").by_trace("Sectors written (figure 4.6)", "sectors").into(),
        of("seconds").by_trace("Time of the run (figure 4.7)", "seconds").into(),
        of("service_ms").by_trace("Service time (figure 4.8)", "milliseconds").into(),
    ];
    let note = "2.4 million updates of 240,000 rows, four to a page of 16 KiB, one program, pool and \
                file cache of 240 MB. Dirty pages of the file cache at the end count as written. \
                That the table is 8 units of the distribution long, that an update has 250 bytes \
                of log and that a recovery frees a 32nd of the gap is ours, chosen by his sizes of \
                calls: over 100 MB an fsync, under 10 MB a dsync. Calls are those for the log's \
                sake: for org each is one page.";
    let claims = claims(&of("all_written"), &of("seconds"), &of("service_ms"));
    Section {
        note: note.to_string(),
        table: table(rows, &columns),
        plots,
        claims,
        ..Section::default()
    }
}

fn claims(written: &Places, seconds: &Places, service: &Places) -> Vec<Claim> {
    let apart = |places: &Places, says: &str, of: &[&str], others: &[&str]| {
        places.apart(says, AT, of, others, below(1.0))
    };
    vec![
        claim_named(
            "4.6: nio writes 30 % fewer sectors than org, or fewer still",
            &written.over(AT, "range", &["org"]),
            at_most(0.70),
        ),
        apart(written, "4.6: rec writes fewer than org", &["rec"], &["org"]),
        apart(written, "4.6: nio writes the fewest", &["range"], &["rec", "org"]),
        claim_named(
            "4.7: rec takes a little less time than nio (here: up to 10 % less)",
            &seconds.over(AT, "rec", &["range"]),
            between(0.90, 1.0),
        ),
        apart(
            seconds,
            "4.7: deferring syncs saves time: rec and nio are faster than org",
            &["rec", "range"],
            &["org"],
        ),
        apart(service, "4.8: rec has a shorter service time than nio", &["rec"], &["range"]),
        apart(service, "4.8: org has the longest", &["rec", "range"], &["org"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::setting::PAGE;
    use super::*;
    use crate::li::places::made_up;

    /// Makes values of org, rec and range.
    fn places(values: [f64; 3]) -> Places {
        let named = [("org", values[0]), ("rec", values[1]), ("range", values[2])];
        let rows: Vec<_> = named.iter().map(|(rule, value)| (AT, *rule, *value)).collect();
        Places::of(&made_up("v", &rows), "v")
    }

    fn verdicts(written: [f64; 3], seconds: [f64; 3], service: [f64; 3]) -> Vec<&'static str> {
        let claims = claims(&places(written), &places(seconds), &places(service));
        claims.iter().map(Claim::verdict).collect()
    }

    #[test]
    fn each_sentence_is_decided_on_both_sides() {
        let his = verdicts([100.0, 95.0, 69.0], [100.0, 60.0, 63.0], [3.5, 2.2, 2.4]);
        assert_eq!(his, ["yes"; 7]);
        let none = verdicts([100.0, 101.0, 102.0], [60.0, 64.0, 63.0], [2.2, 2.5, 2.4]);
        assert_eq!(none, ["no"; 7]);
        let close = verdicts([100.0, 95.0, 71.0], [100.0, 50.0, 63.0], [3.5, 2.2, 2.4]);
        assert_eq!(close[0], "no", "29 % are not 30");
        assert_eq!(close[3], "no", "a fifth is not a little");
        let empty = Places::of(&made_up("v", &[]), "v");
        assert!(claims(&empty, &empty, &empty).iter().all(|claim| claim.holds.is_none()));
    }

    #[test]
    fn a_run_is_the_same_each_time_and_org_writes_each_page_write() {
        let mut traces = Traces::new(Scale::Quick, Box::new(|_, _, _, _| unreachable!()));
        let cell = Cell::new("4.6", 1, Default::default());
        let mut of = |rule| {
            let watch = &mut crate::experiment::Unwatched;
            run(&mut traces, Scale::Quick, &cell, rule, watch).unwrap()
        };
        let org = of(SyncRule::EachWrite);
        assert_eq!(org, of(SyncRule::EachWrite));
        assert_eq!(org.transactions, 24_000);
        // Calls that the end of the run cut off are not on the disk.
        let written = org.meter.sectors_written / PAGE + org.left_dirty;
        assert_eq!(written, org.writes);
        let [rec, range] = [SyncRule::EachRecov, SyncRule::Ranges].map(&mut of);
        assert!(range.meter.sectors_written < rec.meter.sectors_written);
        assert!(rec.meter.sectors_written < org.meter.sectors_written);
    }
}
