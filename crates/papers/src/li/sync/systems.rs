//! A figure whose cells are systems, by storage, variant and sync rule.

use std::cell::RefCell;
use std::rc::Rc;

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Scale, Watch};
use crate::li::places::Place;
use crate::li::traces::Traces;
use crate::storage::SystemStat;
use millpond_lab::report::Section;
use millpond_lab::table::{Table, Value};
use millpond_lab::tier1::SyncRule;

use super::setting::{PAGE, PAGE_BYTES};

/// Storage of TPC-C, and the variant of its set-up.
pub(super) const DISK: Place<'static> = Place::of("disk", "as his");
pub(super) const ARRAY: Place<'static> = Place::of("array", "as his");

/// Runs one cell. The arguments are the recordings, the cell and its rule.
pub(in crate::li) type Run =
    fn(&mut Traces, Scale, &Cell, SyncRule, &mut dyn Watch) -> Result<SystemStat, FigureError>;

/// A figure of systems with the axes of `Places`: `trace` is the storage, `size` the variant,
/// `policy` the sync rule.
pub(in crate::li) struct Systems {
    pub about: About,
    pub scale: Scale,
    pub traces: Rc<RefCell<Traces>>,
    /// Storage of the figure, each with the variant of its set-up.
    pub places: Vec<Place<'static>>,
    /// Names of the sync rules.
    pub rules: Vec<&'static str>,
    /// Seconds of a cell at a scale.
    pub seconds: f64,
    pub run: Run,
    pub draw: fn(&Table) -> Section,
}

/// Returns the columns of `iostat`, per second and per transaction, and counts of the calls.
pub(super) fn fields(stat: &SystemStat) -> Fields {
    let transactions = stat.transactions.max(1) as f64;
    let seconds = (stat.time as f64 / 1e9).max(1e-9);
    let meter = &stat.meter;
    let [read, written] = [meter.sectors_read, meter.sectors_written].map(|sectors| sectors as f64);
    let mb = |pages: u64| (pages * PAGE_BYTES) as f64 / 1e6;
    let all: [(&str, Value); 17] = [
        ("transactions", stat.transactions.into()),
        ("seconds", seconds.into()),
        ("per_second", (transactions / seconds).into()),
        ("read_per_second", (read / seconds).into()),
        ("written_per_second", (written / seconds).into()),
        ("read_sectors", (read / transactions).into()),
        ("written_sectors", (written / transactions).into()),
        ("all_written", (written + (stat.left_dirty * PAGE) as f64).into()),
        ("requests", ((meter.reads + meter.writes) as f64 / transactions).into()),
        ("service_ms", meter.service_ms().into()),
        ("utilisation", (meter.busy as f64 / 1e9 / seconds).into()),
        ("disk_ms", (meter.busy as f64 / 1e6 / transactions).into()),
        ("file_hits", (stat.read_hits as f64 / stat.reads.max(1) as f64).into()),
        ("syncs", stat.syncs.into()),
        ("mb_per_sync", (mb(stat.synced) / stat.syncs.max(1) as f64).into()),
        ("background_mb", mb(stat.background).into()),
        ("page_writes", stat.writes.into()),
    ];
    all.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

impl Figure for Systems {
    fn about(&self) -> About {
        self.about
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let need = Need { seconds: self.seconds, memory: 1 << 30, disk: 1 << 20 };
        let of = |place: &Place<'static>| {
            let cell = Cell::new(self.about.id, repetition, need);
            let cell = cell.with("trace", place.trace).with("size", place.size);
            self.rules.iter().map(|rule| cell.clone().with("policy", *rule)).collect::<Vec<_>>()
        };
        self.places.iter().flat_map(of).collect()
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = Vec::new();
        for cell in cells {
            let name = cell.text("policy");
            let unknown = || FigureError::Failed(format!("no rule is called '{name}'").into());
            let known = SyncRule::ALL.into_iter().find(|(known, _)| *known == name);
            let (_, rule) = known.ok_or_else(unknown)?;
            let mut traces = self.traces.borrow_mut();
            let stat = (self.run)(&mut traces, self.scale, cell, rule, watch)?;
            all.push(vec![fields(&stat)]);
            if watch.stop() {
                return Err(FigureError::Stopped);
            }
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        (self.draw)(rows)
    }
}

/// Columns of a table, with their headings.
pub(super) type Columns = [(&'static str, &'static str)];

/// Returns a table of means: a row for each place, variant and rule.
pub(super) fn table(rows: &Table, columns: &Columns) -> Table {
    const AXES: [&str; 3] = ["trace", "size", "policy"];
    let head = ["on", "with", "system"].into_iter().chain(columns.iter().map(|(_, name)| *name));
    let mut table = Table::new(head);
    let grids: Vec<Grid> =
        columns.iter().map(|(column, _)| Grid::of(rows, &AXES, column)).collect();
    let Some(first) = grids.first() else { return table };
    for place in first.labels(0) {
        for variant in first.labels(1) {
            for rule in first.labels(2) {
                let at = [place, variant, rule];
                if first.mean(&at).is_none() {
                    continue;
                }
                let mut row: Vec<Value> = at.iter().map(|label| (*label).into()).collect();
                row.extend(grids.iter().map(|grid| grid.mean(&at).into()));
                table.rows.push(row);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Meter;

    #[test]
    fn rates_are_per_second_and_per_transaction() {
        let mut meter = Meter::default();
        (meter.reads, meter.writes, meter.busy) = (30, 10, 100_000_000);
        (meter.sectors_read, meter.sectors_written) = (960, 640);
        let stat = SystemStat {
            transactions: 20,
            time: 200_000_000,
            meter,
            reads: 60,
            read_hits: 30,
            syncs: 2,
            synced: 20,
            left_dirty: 5,
            ..SystemStat::default()
        };
        let fields = fields(&stat);
        let of = |name: &str| {
            let field = fields.iter().find(|(field, _)| field == name);
            field.and_then(|(_, value)| value.number()).unwrap()
        };
        assert_eq!((of("per_second"), of("written_per_second")), (100.0, 3200.0));
        assert_eq!((of("written_sectors"), of("all_written")), (32.0, 800.0));
        assert_eq!((of("service_ms"), of("utilisation"), of("disk_ms")), (2.5, 0.5, 5.0));
        assert_eq!((of("file_hits"), of("requests")), (0.5, 2.0));
        assert!((of("mb_per_sync") - 0.16384).abs() < 1e-12);
    }
}
