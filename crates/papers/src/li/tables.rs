//! Tables 3.2 and 5.2 to 5.5: the requests of the first tiers, and their successors.

use std::cell::RefCell;
use std::rc::Rc;

use millpond_workload::stat::{NextRequest, RequestType, StorageStat};

use super::first_tier::{FirstTier, first_tier};
use super::printed::{COLUMNS, PRINTED};
use super::tables_claims::claims;
use super::traces::Traces;
use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Scale, Watch};
use millpond_lab::report::Section;
use millpond_lab::table::{Table, Value};

const ABOUT: About = About {
    id: "tables",
    title: "Requests of the first tiers, and what follows them (tables 3.2, 5.2 to 5.5)",
    asks: "Which requests does each first tier send, and does a request's type predict the next \
           one to its page?",
    says: "A larger pool sends fewer READ and more RECOV, a smaller gap more RECOV; READ is \
           mostly followed by a write and REPLACE, in small pools, by a READ. In MySQL's traces \
           neither is so.",
};

/// Columns that explain our differences.
const WHY: [&str; 7] = [
    "read_then_none",
    "read_then_write_known",
    "replace_then_read_known",
    "unwritten_share",
    "read_then_write_written",
    "read_then_write_early",
    "replace_then_read_early",
];

/// Figure of the requests of all traces.
pub(super) struct Tables {
    scale: Scale,
    traces: Rc<RefCell<Traces>>,
}

impl Tables {
    pub fn new(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Tables {
        Tables { scale, traces: traces.clone() }
    }

    /// Returns the resources for recording a trace.
    fn need(&self, first_tier: &FirstTier) -> Need {
        let seconds = first_tier.seconds(self.scale);
        Need { seconds, memory: self.scale.pick(256 << 20, 2 << 30, 14 << 30), disk: 1 << 20 }
    }
}

/// Returns `part` as a share of `of`; empty if `of` is 0.
fn share(part: u64, of: u64) -> Value {
    if of == 0 { Value::Empty } else { (part as f64 / of as f64).into() }
}

fn described(stat: &StorageStat) -> Fields {
    let none = |request| NextRequest {
        request,
        requests: 0,
        share: 0.0,
        then_read: 0,
        then_synch: 0,
        then_replace: 0,
        then_recov: 0,
        then_write: 0,
        then_none: 0,
    };
    let of = |request: RequestType| {
        stat.types.iter().find(|row| row.request == request).copied().unwrap_or(none(request))
    };
    let [read, synch, replace, recov] = [
        of(RequestType::Read),
        of(RequestType::Synch),
        of(RequestType::Replace),
        of(RequestType::Recov),
    ];
    let known = |row: &NextRequest, part: u64| share(part, row.requests - row.then_none);
    let fields: [(&str, Value); 17] = [
        ("requests", stat.requests.into()),
        ("dsyncs", stat.dsyncs.into()),
        ("read_share", read.share.into()),
        ("synch_share", synch.share.into()),
        ("replace_share", replace.share.into()),
        ("recov_share", recov.share.into()),
        ("read_then_read", share(read.then_read, read.requests)),
        ("read_then_recov", share(read.then_recov, read.requests)),
        ("read_then_replace", share(read.then_replace, read.requests)),
        ("read_then_write", share(read.then_any_write(), read.requests)),
        ("read_then_none", share(read.then_none, read.requests)),
        ("read_then_write_known", known(&read, read.then_any_write())),
        ("replace_then_read_known", known(&replace, replace.then_read)),
        ("replace_then_read", share(replace.then_read, replace.requests)),
        ("replace_then_recov", share(replace.then_recov, replace.requests)),
        ("replace_then_replace", share(replace.then_replace, replace.requests)),
        ("replace_then_none", share(replace.then_none, replace.requests)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

impl Figure for Tables {
    fn about(&self) -> About {
        ABOUT
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let cell = |tier: &FirstTier| {
            let cell = Cell::new(ABOUT.id, repetition, self.need(tier));
            cell.with("trace", tier.name)
        };
        PRINTED.iter().filter_map(|(name, _)| first_tier(name)).map(cell).collect()
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = Vec::new();
        for cell in cells {
            let trace =
                self.traces.borrow_mut().get(&cell.text("trace"), cell.repetition, watch)?;
            let stat = trace.stat().map_err(FigureError::of)?;
            let mut fields = vec![
                ("data_pages".to_string(), trace.data_pages.into()),
                ("pages".to_string(), trace.distinct.into()),
            ];
            fields.extend(stat.as_ref().map(described).unwrap_or_default());
            let why = trace.unwritten().into_iter().chain(trace.early());
            fields.extend(why.map(|(name, value)| (name.to_string(), value.into())));
            all.push(vec![fields]);
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        draw(rows)
    }
}

pub(super) fn draw(rows: &Table) -> Section {
    let mut columns = vec!["trace".to_string(), "requests".to_string(), "dsyncs".to_string()];
    columns.extend(COLUMNS.iter().flat_map(|name| [(*name).to_string(), format!("{name}, his")]));
    columns.extend(WHY.iter().map(|name| (*name).to_string()));
    let mut table = Table::new(columns.iter().map(String::as_str));
    let mean = |trace: &str, column: &str| Grid::of(rows, &["trace"], column).mean(&[trace]);
    for (trace, printed) in PRINTED {
        if mean(trace, "requests").is_none() {
            continue;
        }
        let mut row: Vec<Value> =
            vec![trace.into(), mean(trace, "requests").into(), mean(trace, "dsyncs").into()];
        for (column, printed) in COLUMNS.iter().zip(printed) {
            row.push(mean(trace, column).into());
            row.push(printed.map(|percent| percent / 100.0).into());
        }
        row.extend(WHY.map(|column| mean(trace, column).into()));
        table.rows.push(row);
    }
    Section {
        note: "Shares are of reads and writes; dsync requests are apart. Traces of chapter 3 that \
               chapter 5 has, too, stand once, with its names and the shares of table 3.2. The \
               last columns explain: READs and REPLACE writes that no other request of their page \
               follows say nothing of the next one, and pages that are never written in a trace \
               have READs that no write can follow. *early* is of the requests in a trace's first \
               third."
            .to_string(),
        table,
        claims: claims(rows),
        ..Section::default()
    }
}
