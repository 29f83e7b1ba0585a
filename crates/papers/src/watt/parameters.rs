//! Figures 3 to 8: WATT's parameters, one after the other, each based on the previous
//! choice.

use std::cell::RefCell;
use std::rc::Rc;

use super::ratios::Ratios;
use super::workloads::plan;
use crate::experiment::{About, Grid, Scale};
use crate::simulated::{Library, Setting, SimFigure};
use millpond_lab::registry::PolicyError;
use millpond_lab::report::{Claim, Line, LinePlot, Section};
use millpond_lab::table::Table;
use millpond_lab::verdict::{above, claim};

/// One of the figures: a parameter, its values, the chosen value, and the other settings.
struct Study {
    about: About,
    param: &'static str,
    values: &'static [&'static str],
    /// Value that the paper chose.
    chosen: &'static str,
    /// Parameters chosen so far.
    beside: &'static str,
    is_about_writes: bool,
    /// Value that is worse than the chosen one, according to the paper.
    worse: &'static str,
    claim: &'static str,
}

const STUDIES: [Study; 6] = [
    Study {
        about: About {
            id: "3",
            title: "Sampling size",
            asks: "How many random pages should be compared? Everything else is untuned: one \
                   access, an epoch per eviction, no dampening, no writes.",
            says: "More is not always better; eight are chosen.",
        },
        param: "sample",
        values: &["1", "2", "4", "8", "16", "32", "64"],
        chosen: "8",
        beside: "accesses=1,epochs=max,dampening=1,writes=0,write_weight=0",
        is_about_writes: false,
        worse: "1",
        claim: "a sample of eight has fewer misses than one of one",
    },
    Study {
        about: About {
            id: "4",
            title: "Access log size",
            asks: "How many accesses should be remembered?",
            says: "It is memory and time against quality; eight are chosen.",
        },
        param: "accesses",
        values: &["1", "2", "3", "4", "6", "8", "12", "15"],
        chosen: "8",
        beside: "sample=8,epochs=max,dampening=1,writes=0,write_weight=0",
        is_about_writes: false,
        worse: "1",
        claim: "eight accesses are better than one",
    },
    Study {
        about: About {
            id: "5",
            title: "Epochs",
            asks: "How often should time advance, per replacement of the whole pool?",
            says: "Four times is chosen, from once to at every eviction (max).",
        },
        param: "epochs",
        values: &["1", "2", "4", "8", "16", "32", "64", "max"],
        chosen: "4",
        beside: "sample=8,accesses=8,dampening=1,writes=0,write_weight=0",
        is_about_writes: false,
        worse: "1",
        claim: "four epochs per replacement are better than one",
    },
    Study {
        about: About {
            id: "6",
            title: "Dampening of the most recent access",
            asks: "What should the first subfrequency be multiplied by?",
            says: "Less than 1 improves it substantially; 0.1 is chosen.",
        },
        param: "dampening",
        values: &["1", "0.8", "0.6", "0.4", "0.2", "0.1", "0.05", "0"],
        chosen: "0.1",
        beside: "sample=8,accesses=8,epochs=4,writes=0,write_weight=0",
        is_about_writes: false,
        worse: "1",
        claim: "dampening by 0.1 is better than none",
    },
    Study {
        about: About {
            id: "7",
            title: "Write log size",
            asks: "How many writes should be remembered, at a write weight of 1?",
            says: "Four have the best results over all workloads.",
        },
        param: "writes",
        values: &["0", "1", "2", "3", "4", "6", "7"],
        chosen: "4",
        beside: "sample=8,accesses=8,epochs=4,dampening=0.1,write_weight=1",
        is_about_writes: true,
        worse: "0",
        claim: "four writes make less I/O than none",
    },
    Study {
        about: About {
            id: "8",
            title: "Write weight",
            asks: "How much should a write weigh, in reads?",
            says: "It trades writes for reads; four is chosen.",
        },
        param: "write_weight",
        values: &["0", "0.5", "1", "2", "4", "8", "16", "32"],
        chosen: "4",
        beside: "sample=8,accesses=8,epochs=4,dampening=0.1,writes=4",
        is_about_writes: true,
        worse: "0",
        claim: "a weight of four makes less I/O in all than none",
    },
];

pub(super) fn figures(
    scale: Scale,
    library: &Rc<RefCell<Library>>,
) -> Result<Vec<SimFigure>, PolicyError> {
    STUDIES.iter().map(|study| figure(study, scale, library)).collect()
}

fn figure(
    study: &'static Study,
    scale: Scale,
    library: &Rc<RefCell<Library>>,
) -> Result<SimFigure, PolicyError> {
    let quick =
        |value: &&&str| scale != Scale::Quick || **value == study.chosen || **value == study.worse;
    let setting = |value: &&str| {
        Setting::at(value, format!("watt({}={value},{})", study.param, study.beside))
    };
    let mut plan = plan(scale, study.is_about_writes);
    plan.settings = study.values.iter().filter(quick).map(setting).collect();
    SimFigure::new(study.about, plan, library, move |rows| draw(study, rows))
}

fn draw(study: &Study, rows: &Table) -> Section {
    let axes = ["trace", "percent", "value"];
    let counted = if study.is_about_writes { "io" } else { "misses" };
    let grid = Grid::of(rows, &axes, counted);
    let mut section = Section {
        note: format!("Beside it: {}. {counted} over those at {}.", study.beside, study.chosen),
        claims: claims(study, &grid),
        ..Section::default()
    };
    let counts =
        if study.param == "write_weight" { vec!["misses", "writes", "io"] } else { vec![counted] };
    section.table = Table::new(["counted", "trace", study.param, "ratio", "low", "high"]);
    for column in counts {
        let grid = Grid::of(rows, &axes, column);
        let lines = lines(study, &grid, column, &mut section.table);
        let plot = LinePlot {
            title: format!("{column} over those at {} = {}", study.param, study.chosen),
            x: format!("{} (number of the setting: {})", study.param, grid.labels(2).join(", ")),
            y: "ratio".to_string(),
            lines,
            is_cut: true,
            ..LinePlot::default()
        };
        section.plots.push(plot.into());
    }
    section
}

/// Returns a line for each trace. Values are equally spaced, since `max` is no number.
fn lines(study: &Study, grid: &Grid, column: &str, table: &mut Table) -> Vec<Line> {
    let ratios = Ratios(grid);
    let mut lines = Vec::new();
    for trace in grid.labels(0) {
        let mut line = Line { label: trace.to_string(), ..Line::default() };
        for (at, value) in grid.labels(2).into_iter().enumerate() {
            let Some(ratio) = ratios.on(trace, value, study.chosen) else { continue };
            line.points.push(((at + 1) as f64, ratio.mean));
            line.band.push((ratio.low, ratio.high));
            let row = [column.into(), trace.into(), value.into()];
            let numbers = [ratio.mean.into(), ratio.low.into(), ratio.high.into()];
            table.rows.push(row.into_iter().chain(numbers).collect());
        }
        lines.push(line);
    }
    lines
}

fn claims(study: &Study, grid: &Grid) -> Vec<Claim> {
    let ratios = Ratios(grid);
    let worse = ratios.all(study.worse, study.chosen);
    let over = format!("{} over {}:", study.worse, study.chosen);
    let others = grid.labels(2).into_iter().filter(|value| *value != study.chosen);
    let others: Vec<_> = others.map(|value| (value, ratios.all(value, study.chosen))).collect();
    vec![
        claim(study.claim, &[(over.as_str(), worse)], above(1.0)),
        // A value within half a percent is an equally good choice.
        claim(
            "the chosen value is the best, or within 0.5 % of the best, over all workloads",
            &others,
            above(0.995),
        ),
    ]
}
