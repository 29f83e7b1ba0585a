//! Critical sections per transaction, by component (gilbert 2.3.2, after Pandis et al.).
//!
//! One client runs on the counting thread, so that the sections of its transactions are separate
//! from those of the engine's own threads. Only a build with the feature `critical-sections`
//! counts.

use std::collections::BTreeMap;

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Watch};
use millpond_base::sections::{
    ARE_COUNTED, Section as Kind, Sections, Tally, of_all_threads, of_this_thread,
};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_profile::Components;

use super::course::{ARMS, CONVENTIONAL, Course, MODERN, WORKLOADS};
use crate::live::{Job, LiveFigure, Loaded};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::Instance;
use millpond_bench::run::on_this_thread::Steps;
use millpond_bench::run::runner::{Length, Observer};
use millpond_lab::verdict::{below, claim};

const ABOUT: About = About {
    id: "sections",
    title: "Critical sections by component (2.3.2)",
    asks: "How many critical sections does a transaction enter, and in which component?",
    says: "It cites Pandis et al., who count critical sections per transaction by component: each \
           is a place where threads may have to wait for each other.",
};

const HOW: &str = "Critical sections are not counted in this build: `cargo build --release \
                   -p millpond-cli --features critical-sections` makes one that counts them.";

/// Name for code in no component.
const PROGRAM: &str = "program";

/// Returns the column of a kind.
fn column(kind: Kind) -> String {
    format!("{}_per_tx", kind.name().replace(' ', "_"))
}

/// Returns the number of sections of a tally that exclude other threads.
fn entered(tally: &Tally) -> u64 {
    tally.iter().sum::<u64>() - tally[Kind::Optimistic as usize]
}

/// Sums sections by component.
fn by_component(sections: &Sections, components: &Components) -> BTreeMap<String, Tally> {
    let mut all: BTreeMap<String, Tally> = BTreeMap::new();
    for (file, tally) in sections.files() {
        let name = components.of_file(file).map_or(PROGRAM, |component| component.name.as_str());
        let sum = all.entry(name.to_string()).or_default();
        sum.iter_mut().zip(tally).for_each(|(sum, count)| *sum += count);
    }
    all
}

/// Returns a row for each component.
fn rows_of(
    own: &BTreeMap<String, Tally>,
    everybody: &BTreeMap<String, Tally>,
    transactions: u64,
) -> Vec<Row> {
    let per_tx = |count: u64| count as f64 / transactions.max(1) as f64;
    let row = |(component, all): (&String, &Tally)| {
        let own = own.get(component).copied().unwrap_or_default();
        let row = Row::default().with("component", component.as_str());
        let row = Kind::ALL
            .iter()
            .fold(row, |row, kind| row.with(&column(*kind), per_tx(own[*kind as usize])));
        row.with("sections_per_tx", per_tx(entered(&own)))
            .with("others_per_tx", per_tx(entered(all).saturating_sub(entered(&own))))
            .with("transactions", transactions)
    };
    everybody.iter().map(row).collect()
}

fn run(
    job: &Job,
    instance: &mut dyn Instance,
    _: &mut dyn Observer,
) -> Result<Vec<Row>, BenchError> {
    let count = |length| match length {
        Length::Operations(count) => count,
        Length::Time(_) => 0,
    };
    let steps = Steps { warm_up: count(job.warm_up), measure: count(job.measure) };
    let mut before = (Sections::default(), Sections::default());
    let snapshot = || (of_this_thread(), of_all_threads());
    let executed = instance.run_on_this_thread(steps, &mut || before = snapshot())?;
    let (own, all) = snapshot();
    let components = Components::shipped()?;
    let [own, all] = [own.since(&before.0), all.since(&before.1)]
        .map(|sections| by_component(&sections, &components));
    Ok(rows_of(&own, &all, executed.transactions))
}

struct Counted {
    live: LiveFigure,
}

pub(super) fn figure(course: Course, loaded: &Loaded) -> Box<dyn Figure> {
    let mut jobs = Vec::new();
    for workload in WORKLOADS {
        let measure = match workload {
            "tpcc" => course.scale.pick(100, 20_000, 200_000),
            _ => course.scale.pick(1000, 200_000, 2_000_000),
        };
        for arm in ARMS {
            let job = course.arm(arm, workload, 1, 1.0);
            let (warm_up, measure) = (measure / 2, Length::Operations(measure));
            jobs.push(Job { warm_up: Length::Operations(warm_up), measure, ..job });
        }
    }
    Box::new(Counted { live: LiveFigure::new(ABOUT, jobs, loaded, draw).with_course(run) })
}

impl Figure for Counted {
    fn about(&self) -> About {
        ABOUT
    }

    /// Returns cells for one repetition only, since counts hardly depend on chance.
    fn cells(&self, repetition: u32) -> Vec<Cell> {
        match (repetition, ARE_COUNTED) {
            (1, true) => self.live.cells(repetition),
            (1, false) => vec![Cell::new(ABOUT.id, repetition, Need::default())],
            _ => Vec::new(),
        }
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        if ARE_COUNTED {
            return self.live.run(cells, watch);
        }
        watch.say(HOW);
        let row = vec![("counted".to_string(), Value::from("no"))];
        Ok(cells.iter().map(|_| vec![row.clone()]).collect())
    }

    fn section(&self, rows: &Table) -> Section {
        draw(rows)
    }
}

const NOTE: &str = "With one client, on one thread. A critical section is a mutex, a lock for readers and writers \
     or a latch that was acquired, charged to the component that asked for it; page latches are \
     the pool's, which takes them for structures, as in the other figures. Optimistic reads exclude \
     nobody and are counted apart; what is done by atomics alone (space in the log, epochs, \
     counters) is none. “Others” are the engine's own threads meanwhile: the log's writer, \
     checkpoints, evictors. Components with fewer than one in 200 transactions are not shown.";

/// Sections per transaction below which a component is not shown: one in 200 transactions.
const RARE: f64 = 0.005;

fn draw(rows: &Table) -> Section {
    let axes = ["workload", "arm", "component"];
    let grid = |column: &str| Grid::of(rows, &axes, column);
    let sections = grid("sections_per_tx");
    if sections.labels(0).is_empty() {
        return Section { note: HOW.to_string(), ..Section::default() };
    }
    let kinds = Kind::ALL.map(|kind| grid(&column(kind)));
    let others = grid("others_per_tx");
    let head = axes.into_iter().chain(Kind::ALL.map(Kind::name)).chain(["sections", "others"]);
    let mut section =
        Section { note: NOTE.to_string(), table: Table::new(head), ..Section::default() };
    for workload in sections.labels(0) {
        let mut plot = BarPlot {
            title: format!("{workload}: critical sections"),
            y: "critical sections per transaction".to_string(),
            ..BarPlot::default()
        };
        for arm in sections.labels(1) {
            for component in sections.labels(2) {
                let place = [workload, arm, component];
                let Some(value) = sections.interval(&place) else { continue };
                let each = kinds.iter().chain([&sections, &others]).map(|grid| grid.mean(&place));
                let each: Vec<_> = each.collect();
                if each.iter().flatten().all(|mean| *mean < RARE) {
                    continue;
                }
                let names = place.map(Value::from).into_iter();
                section.table.rows.push(names.chain(each.into_iter().map(Value::from)).collect());
                let (group, series) = (component.to_string(), arm.to_string());
                plot.bars.push(Bar { group, series, value });
            }
        }
        section.plots.push(plot.into());
        section.claims.push(fewer(&sections, workload));
    }
    section
}

/// Compares all sections of the modern arm with those of the conventional one.
fn fewer(sections: &Grid, workload: &str) -> Claim {
    let of = |arm: &str| -> f64 {
        let components = sections.labels(2).into_iter();
        components.filter_map(|component| sections.mean(&[workload, arm, component])).sum()
    };
    let ratio = Interval::of_ratios(&[of(MODERN)], &[of(CONVENTIONAL)]);
    let says = format!("{workload}: the engine that ships enters fewer (ours)");
    claim(&says, &[("modern over conventional", ratio)], below(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(all: &[(&str, Tally)]) -> BTreeMap<String, Tally> {
        all.iter().map(|(name, tally)| ((*name).to_string(), *tally)).collect()
    }

    #[test]
    fn rows_are_per_transaction_and_tell_other_threads_apart() {
        let own = tallies(&[("pool", [2, 0, 0, 4, 6, 100])]);
        let all = tallies(&[("pool", [2, 0, 0, 8, 6, 150]), ("logging", [10, 0, 0, 0, 0, 0])]);
        let rows: Vec<_> = rows_of(&own, &all, 2).into_iter().map(Row::into_fields).collect();
        let number = |row: usize, name: &str| {
            rows[row].iter().find(|(column, _)| column == name).unwrap().1.number().unwrap()
        };
        assert_eq!((number(0, "sections_per_tx"), number(0, "others_per_tx")), (0.0, 5.0));
        assert_eq!((number(1, "sections_per_tx"), number(1, "others_per_tx")), (6.0, 2.0));
        assert_eq!((number(1, "optimistic_read_per_tx"), number(1, "mutex_per_tx")), (50.0, 1.0));
    }

    #[test]
    fn without_counts_the_figure_says_how_to_build_them() {
        let mut rows = Table::new(["figure", "repetition", "counted"]);
        rows.rows.push(vec!["sections".into(), 1u64.into(), "no".into()]);
        let section = draw(&rows);
        assert!(section.note.contains("--features critical-sections"));
        assert!(section.table.rows.is_empty() && section.claims.is_empty());
    }
}
