//! Work of one worker per transaction while nothing is evicted (watt 6.3, fig. 11), and the share
//! of a hit that is tracking (watt 5.1).
//!
//! Processor time is measured. With a counter, separate cells have the counts of a simulated
//! processor: instructions, cache misses, mispredicted branches, and cycles computed from these by
//! a formula. Repetitions of the counts differ only in the seed.

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Scale, Watch};
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};

use super::counted::{Counter, PerTransaction, WorkerRun};
use super::runs::{HYPERBOLIC_SHARED, LEAN, MIXED, POLICIES, READ_ONLY, Shape, TPCC, WATT, bars};
use crate::live::{LiveFigure, Loaded};
use millpond_bench::instance::setup::DeviceSpec;
use millpond_lab::verdict::{Bounds, below, between, claim};

const FIG_11: About = About {
    id: "11",
    title: "What one worker executes per transaction, in memory",
    asks: "What does tracking cost a worker where nothing is evicted?",
    says: "In instructions, cycles, L1 misses and branch misses per transaction the four policies \
           differ by no more than noise. (5.1) A hit takes 6 instructions to see that its epoch is \
           tracked, and 6 more if it is not.",
};

/// Axes of most figures.
const BY_POLICY: [&str; 2] = ["workload", "policy"];

/// Axis of the cells in which a counter counts.
const COUNTED: &str = "counted_by";

/// Counts per transaction, by column and name.
const COLUMNS: [(&str, &str); 5] = [
    (INSTRUCTIONS, "instructions"),
    ("estimated_cycles_per_tx", "cycles (estimated)"),
    ("l1_data_misses_per_tx", "L1 data misses"),
    ("ll_misses_per_tx", "last-level misses"),
    ("branch_misses_per_tx", "branch misses"),
];

const INSTRUCTIONS: &str = "callgrind_instructions_per_tx";
const REFERENCES: &str = "counted_references_per_tx";

fn fields(counted: &PerTransaction) -> Fields {
    let values = [
        (INSTRUCTIONS, counted.instructions),
        ("estimated_cycles_per_tx", counted.estimated_cycles()),
        ("l1_data_misses_per_tx", counted.l1_data_misses),
        ("l1_instruction_misses_per_tx", counted.l1_instruction_misses),
        ("ll_misses_per_tx", counted.ll_misses),
        ("branch_misses_per_tx", counted.branch_misses),
        (REFERENCES, counted.references),
    ];
    values.into_iter().map(|(name, value)| (name.to_string(), value.into())).collect()
}

/// Returns figure 11 with the counts of `counter`.
pub(super) fn figure_11(
    scale: Scale,
    loaded: &Loaded,
    counter: Option<Counter>,
) -> Box<dyn Figure> {
    let seconds = scale.pick(0.05, 1.5, 300.0);
    let mut jobs = Vec::new();
    for name in [MIXED, TPCC] {
        let shape = Shape { scale, pool: None, device: DeviceSpec::Memory, threads: 1, seconds };
        jobs.extend(
            POLICIES.map(|policy| shape.job(name, policy, vec![("policy", policy.into())])),
        );
    }
    let live = LiveFigure::new(FIG_11, jobs, loaded, draw_11);
    Box::new(Worker { live, scale, counter })
}

/// Figure of cells that run, and of cells in which a counter counts, if there is one.
struct Worker {
    live: LiveFigure,
    scale: Scale,
    counter: Option<Counter>,
}

impl Worker {
    /// Returns the counted cells, with their runs.
    fn counted(&self, repetition: u32) -> Vec<(Cell, WorkerRun)> {
        let need = Need { seconds: self.scale.pick(3.0, 12.0, 12.0), memory: 1 << 30, disk: 0 };
        let seed = u64::from(repetition);
        let mut all = Vec::new();
        for load in [READ_ONLY, MIXED, TPCC] {
            for policy in POLICIES {
                let cell = Cell::new(FIG_11.id, repetition, need);
                let cell = cell.with("workload", load).with("policy", policy);
                let run = WorkerRun::of(load, policy, self.scale, seed);
                all.push((cell.with(COUNTED, "callgrind"), run));
            }
        }
        all
    }
}

impl Figure for Worker {
    fn about(&self) -> About {
        self.live.about()
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let counted = self.counter.as_ref().map(|_| self.counted(repetition));
        let counted = counted.into_iter().flatten().map(|(cell, _)| cell);
        self.live.cells(repetition).into_iter().chain(counted).collect()
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = Vec::new();
        for cell in cells {
            let counted = self.counted(cell.repetition);
            let run = counted.into_iter().find(|(counted, _)| counted.axes == cell.axes);
            match (run, &self.counter) {
                (Some((_, run)), Some(counter)) => {
                    watch.detail("counting instructions");
                    all.push(vec![fields(&counter(&run)?)]);
                }
                _ => all.extend(self.live.run(&[cell], watch)?),
            }
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        self.live.section(rows)
    }
}

/// Bounds of the noise of this experiment: two per cent.
const ALIKE: Bounds = between(0.98, 1.02);

fn draw_11(rows: &Table) -> Section {
    let title = "processor time per transaction over RANDOM's";
    let mut section = bars(rows, BY_POLICY, "cpu_us_per_tx", title, "random");
    let over = |column| {
        let grid = Grid::of(rows, &BY_POLICY, column);
        [MIXED, TPCC].map(|w| (w, grid.ratio(&[w, WATT], &[w, "random"])))
    };
    let says = "WATT costs a worker no more than RANDOM does, within 2 %";
    section.claims.push(claim(says, &over("cpu_us_per_tx"), below(ALIKE.high)));
    if Grid::of(rows, &BY_POLICY, INSTRUCTIONS).labels(0).is_empty() {
        machine(rows, &mut section);
    } else {
        section.note = "Instructions, misses and branches are those of the worker's thread on a \
                        processor that valgrind simulates, with the paper's caches: L1 of 32 KiB, \
                        8 ways, and a last level of 32 MiB, 16 ways. No cycle is measured: \
                        they are instructions, 10 for each branch or L1 miss and 100 for each \
                        last-level miss, as KCachegrind estimates them. Read-only key-value \
                        operations are not in the paper's figure; a hit's cost is from them."
            .to_string();
        for (column, name) in COLUMNS {
            let title = format!("{name} per transaction over RANDOM's");
            section.plots.extend(bars(rows, BY_POLICY, column, &title, "random").plots);
        }
        section.table.append(counted(rows));
        section.claims.extend(claims(rows));
    }
    section
}

/// Draws the instructions of the machine's own counter, if nothing else counts.
fn machine(rows: &Table, section: &mut Section) {
    let grid = Grid::of(rows, &BY_POLICY, "instructions_per_tx");
    let instructions = [MIXED, TPCC].map(|w| (w, grid.ratio(&[w, WATT], &[w, "random"])));
    let says = "WATT executes at most 2 % more instructions than RANDOM";
    if instructions.iter().all(|(_, ratio)| ratio.is_none()) {
        section.claims.push(Claim::open(says, "not counted here"));
        section.note = "Instructions are not counted here: the machine has no hardware counter \
                        for them, or lets nobody read it. With --instructions, callgrind counts \
                        them, and misses, too (valgrind)."
            .to_string();
        return;
    }
    section.claims.push(claim(says, &instructions, below(ALIKE.high)));
    let title = "instructions per transaction over RANDOM's";
    let counted = bars(rows, BY_POLICY, "instructions_per_tx", title, "random");
    section.plots.extend(counted.plots);
    section.table.append(counted.table);
}

/// Returns a table of the counts, with their ratios to RANDOM's.
fn counted(rows: &Table) -> Table {
    let names = ["workload", "policy", "per transaction", "count", "ratio", "low", "high"];
    let mut table = Table::new(names);
    for (column, name) in COLUMNS {
        let grid = Grid::of(rows, &BY_POLICY, column);
        for workload in grid.labels(0) {
            for policy in grid.labels(1) {
                let place = [workload, policy];
                let ratio = grid.ratio(&place, &[workload, "random"]);
                let mut row: Vec<Value> = vec![workload.into(), policy.into(), name.into()];
                row.push(grid.mean(&place).into());
                row.extend([
                    ratio.map(|ratio| ratio.mean).into(),
                    ratio.map(|ratio| ratio.low).into(),
                    ratio.map(|ratio| ratio.high).into(),
                ]);
                table.rows.push(row);
            }
        }
    }
    let hits = per_hit(rows);
    for workload in hits.labels(0) {
        let Some(value) = hits.interval(&[workload]) else { continue };
        let name = "instructions of tracking per page reference";
        let mut row: Vec<Value> = vec![workload.into(), WATT.into(), name.into()];
        row.extend([value.mean.into(), Value::Empty, value.low.into(), value.high.into()]);
        table.rows.push(row);
    }
    table
}

/// Returns WATT's extra instructions over RANDOM per page reference, by workload. RANDOM does
/// nothing on a hit, and all references are hits here.
fn per_hit(rows: &Table) -> Grid {
    let mut table = Table::new(["workload", "repetition", "per_hit"]);
    let at = |row: usize, name: &str| rows.get(row, name).cloned().unwrap_or(Value::Empty);
    let of = |policy: &'static str| {
        let is_own = move |row: &usize| at(*row, "policy") == policy.into();
        (0..rows.rows.len()).filter(is_own)
    };
    for watt in of(WATT) {
        let is_same = |row: &usize| {
            ["workload", "repetition"].iter().all(|name| at(*row, name) == at(watt, name))
                && at(*row, INSTRUCTIONS).number().is_some()
        };
        let Some(random) = of("random").find(is_same) else { continue };
        let number = |row, name| at(row, name).number();
        let counts = number(watt, INSTRUCTIONS).zip(number(random, INSTRUCTIONS));
        let Some(((more, less), references)) = counts.zip(number(watt, REFERENCES)) else {
            continue;
        };
        let value = (more - less) / references.max(1e-9);
        table.rows.push(vec![at(watt, "workload"), at(watt, "repetition"), value.into()]);
    }
    Grid::of(&table, &["workload"], "per_hit")
}

fn claims(rows: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (column, name) in COLUMNS {
        // The paper prints no misses of the last level.
        if name == "last-level misses" {
            continue;
        }
        let grid = Grid::of(rows, &BY_POLICY, column);
        let mut values = Vec::new();
        for workload in [MIXED, TPCC] {
            for policy in [HYPERBOLIC_SHARED, LEAN, WATT] {
                let ratio = grid.ratio(&[workload, policy], &[workload, "random"]);
                values.push((format!("{workload} {policy}"), ratio));
            }
        }
        let values: Vec<_> = values.iter().map(|(name, ratio)| (name.as_str(), *ratio)).collect();
        let says = format!("{name} of the other three are within 2 % of RANDOM's");
        claims.push(claim(&says, &values, ALIKE));
    }
    let hit = [("", per_hit(rows).interval(&[READ_ONLY]))];
    let says = "a hit in an epoch that is tracked costs at most 6 instructions (5.1)";
    // The bound accepts a count that rounds to 6.
    claims.push(claim(says, &hit, below(6.5)));
    claims
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use crate::experiment::Unwatched;

    use super::*;

    /// Makes rows of three repetitions: counts multiplied by a factor for each policy, and a cost
    /// per hit.
    fn rows(factor: impl Fn(&str) -> f64, per_hit: f64) -> Table {
        let own = fields(&PerTransaction::default());
        let own = own.iter().map(|(name, _)| name.as_str());
        let axes = ["workload", "policy", "repetition", "cpu_us_per_tx"];
        let mut table = Table::new(axes.into_iter().chain(own));
        for workload in [READ_ONLY, MIXED, TPCC] {
            for policy in POLICIES {
                for repetition in 1..=3u64 {
                    let noise = 1.0 + repetition as f64 / 1e5;
                    let place = || vec![workload.into(), policy.into(), repetition.into()];
                    let mut timed: Vec<Value> = place();
                    timed.push((10.0 * noise).into());
                    timed.resize(table.columns.len(), Value::Empty);
                    table.rows.push(timed);
                    let references = 5.0;
                    let times = factor(policy) * noise;
                    let mut counted = PerTransaction {
                        instructions: 10_000.0 * times,
                        l1_data_misses: 100.0 * times,
                        l1_instruction_misses: 10.0 * times,
                        ll_misses: 20.0 * times,
                        branch_misses: 30.0 * times,
                        references,
                    };
                    if (workload, policy) == (READ_ONLY, WATT) {
                        counted.instructions = 10_000.0 * noise + per_hit * references;
                    }
                    let mut row: Vec<Value> = place();
                    row.push(Value::Empty);
                    row.extend(fields(&counted).into_iter().map(|(_, value)| value));
                    table.rows.push(row);
                }
            }
        }
        table
    }

    fn holds(table: &Table) -> Vec<Option<bool>> {
        draw_11(table).claims.iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn counts_are_alike_within_two_per_cent_on_either_side() {
        let [yes, no] = [Some(true), Some(false)];
        assert_eq!(holds(&rows(|_| 1.0, 6.0)), [yes; 6]);
        for (factor, hit) in [(1.03, 5.0), (0.97, 6.0)] {
            for odd in [WATT, LEAN, HYPERBOLIC_SHARED] {
                let table = rows(|policy| if policy == odd { factor } else { 1.0 }, hit);
                assert_eq!(holds(&table), [yes, no, no, no, no, yes], "{odd}: {factor}");
            }
        }
        assert_eq!(holds(&rows(|_| 1.0, 7.0)), [yes, yes, yes, yes, yes, no], "7 per hit");
        let section = draw_11(&rows(|_| 1.0, 6.0));
        assert_eq!(section.plots.len(), 6);
        let shown = section.claims.last().unwrap().here.clone();
        assert!(shown.starts_with("6.000"), "{shown}");
    }

    #[test]
    fn without_counts_the_figure_says_how_to_get_them() {
        let mut table = rows(|_| 1.0, 6.0);
        table.rows.retain(|row| row[3] != Value::Empty);
        assert_eq!(holds(&table), [Some(true), None]);
        assert!(draw_11(&table).note.contains("--instructions"));
    }

    #[test]
    fn each_repetition_counts_with_its_own_seed_if_there_is_a_counter() {
        let counter: Counter = Rc::new(|run| {
            Ok(PerTransaction { instructions: run.seed as f64, ..PerTransaction::default() })
        });
        let figure = |counter| figure_11(Scale::Quick, &Loaded::default(), counter);
        assert_eq!(figure(None).cells(1).len(), 8);
        let mut figure = figure(Some(counter));
        assert_eq!((figure.cells(1).len(), figure.cells(2).len()), (20, 20));
        let cells = figure.cells(2);
        let rows = figure.run(&[cells.last().unwrap()], &mut Unwatched).unwrap();
        assert_eq!(rows[0][0][0], (INSTRUCTIONS.to_string(), 2.0.into()));
    }
}
