//! Parameter correlations (watt 4.3): the dependence of one parameter's best value on another's.
//!
//! Both parameters of a pair are changed alone and together. If they are independent, the joint
//! effect is the product of the single effects; the remainder is their interaction.

use std::cell::RefCell;
use std::rc::Rc;

use super::ratios::Ratios;
use super::workloads::plan;
use crate::experiment::{About, Grid, Scale};
use crate::simulated::{Library, Setting, SimFigure};
use millpond_lab::interval::Interval;
use millpond_lab::registry::PolicyError;
use millpond_lab::report::{Claim, HeatMap, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{between, claim_of, shown};

/// Parameters, and their values beside the default.
const PARAMS: [(&str, &[&str]); 7] = [
    ("sample", &["4", "16", "64"]),
    ("accesses", &["2", "4", "11"]),
    ("epochs", &["1", "16", "max"]),
    ("dampening", &["1", "0.4", "0.02"]),
    ("aggregate", &["mean", "median"]),
    ("writes", &["1", "2", "6"]),
    ("write_weight", &["0", "1", "16"]),
];

const ABOUT: About = About {
    id: "pairs",
    title: "Parameter correlations",
    asks: "Does the effect of one parameter depend on the value of another?",
    says: "The differences were small, with no meaningful correlation.",
};

/// Formats settings as `a=1` or `a=1,b=2`; empty for the defaults.
fn named(settings: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
    pairs.join(",")
}

/// Returns `true` if a page's stamps fit a cache line, which excludes some combinations.
fn fits(settings: &[(&str, &str)]) -> bool {
    let of = |name: &str, default: u32| {
        let given = settings.iter().find(|(n, _)| *n == name);
        given.and_then(|(_, value)| value.parse().ok()).unwrap_or(default)
    };
    of("accesses", 8) + of("writes", 4) <= 15
}

/// Returns all settings that differ from the defaults in one or two parameters.
fn settings(scale: Scale) -> Vec<Vec<(&'static str, &'static str)>> {
    let take = scale.pick(1, 2, 3);
    let values = |at: usize| {
        let (name, values) = PARAMS[at];
        values.iter().take(take).map(move |value| (name, *value))
    };
    let mut all = vec![Vec::new()];
    let params = scale.pick(3, PARAMS.len(), PARAMS.len());
    for a in 0..params {
        all.extend(values(a).map(|one| vec![one]));
        for b in a + 1..params {
            let both = values(a).flat_map(|one| values(b).map(move |other| vec![one, other]));
            all.extend(both.filter(|both| fits(both)));
        }
    }
    all
}

const DEFAULTS: &str = "defaults";

pub(super) fn figure(
    scale: Scale,
    library: &Rc<RefCell<Library>>,
) -> Result<SimFigure, PolicyError> {
    let setting = |changed: Vec<(&str, &str)>| match named(&changed) {
        name if name.is_empty() => Setting::at(DEFAULTS, "watt".to_string()),
        name => Setting::at(&name, format!("watt({name})")),
    };
    let mut plan = plan(scale, false);
    plan.settings = settings(scale).into_iter().map(setting).collect();
    plan.percents = vec![10.0];
    // One repetition is enough: the draws of two settings are the same, and there are many
    // traces.
    plan.repetitions = 1;
    SimFigure::new(ABOUT, plan, library, draw)
}

fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["trace", "percent", "value"], "io");
    let ratios = Ratios(&grid);
    let effect = |name: &str| Some(ratios.all(name, DEFAULTS)?.mean);
    let mut table = Table::new(["a", "b", "a alone", "b alone", "both", "interaction"]);
    let mut largest = vec![vec![None::<f64>; PARAMS.len()]; PARAMS.len()];
    for name in grid.labels(2) {
        let Some((a, b)) = name.split_once(',') else { continue };
        let effects = (effect(a), effect(b), effect(name));
        let (Some(of_a), Some(of_b), Some(of_both)) = effects else { continue };
        let interaction = of_both / (of_a * of_b);
        let numbers = [of_a, of_b, of_both, interaction].map(Value::from);
        table.rows.push([Value::from(a), b.into()].into_iter().chain(numbers).collect());
        let at = |text: &str| PARAMS.iter().position(|(n, _)| text.split('=').next() == Some(n));
        if let (Some(a), Some(b)) = (at(a), at(b)) {
            let is_larger =
                largest[a][b].is_none_or(|known| interaction.ln().abs() > known.ln().abs());
            if is_larger {
                largest[a][b] = Some(interaction);
                largest[b][a] = Some(interaction);
            }
        }
    }
    let rows = PARAMS.iter().zip(&largest).map(|((name, _), row)| ((*name).into(), row.clone()));
    let map = HeatMap {
        title: "The largest interaction of each pair, as a factor of reads and writes".to_string(),
        across: "parameter".to_string(),
        columns: PARAMS.iter().map(|(name, _)| (*name).to_string()).collect(),
        rows: rows.collect(),
        ..HeatMap::default()
    };
    Section {
        note: "I/O over that of the defaults, the geometric mean over all traces; 1 is no \
               interaction. One repetition: the interval of an interaction is over the traces."
            .to_string(),
        table,
        plots: vec![map.into()],
        claims: vec![correlation(&grid)],
        ..Section::default()
    }
}

/// Judges the interactions of all pairs, each with its interval over the traces.
fn correlation(grid: &Grid) -> Claim {
    let percents = grid.labels(1);
    let ones = vec![1.0; grid.labels(0).len()];
    let interaction = |name: &str| -> Option<Interval> {
        let (a, b) = name.split_once(',')?;
        let on = |trace: &str| {
            let percent = percents.first()?;
            let io = |value: &str| grid.mean(&[trace, percent, value]);
            Some(io(name)? * io(DEFAULTS)? / (io(a)? * io(b)?))
        };
        let each: Option<Vec<f64>> = grid.labels(0).into_iter().map(on).collect();
        Interval::of_ratios(&each?, &ones)
    };
    let pairs = grid.labels(2).into_iter().filter(|name| name.contains(','));
    let all: Vec<(&str, Option<Interval>)> = pairs.map(|name| (name, interaction(name))).collect();
    let size = |of: &Option<Interval>| of.map_or(0.0, |interval| interval.mean.ln().abs());
    let largest = all.iter().max_by(|a, b| size(&a.1).total_cmp(&size(&b.1)));
    let here = match largest {
        Some((name, value)) => format!("the largest interaction, {name}: {}", shown(*value)),
        None => "not run".to_string(),
    };
    let tests: Vec<_> = all.iter().map(|(_, value)| (*value, between(0.98, 1.02))).collect();
    claim_of("no meaningful correlation between parameters (here: under 2 %)", here, &tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interactions_are_judged_by_their_intervals_over_the_traces() {
        let judged = |both: [f64; 4]| {
            let mut table = Table::new(["trace", "percent", "value", "io"]);
            for (trace, both) in both.iter().enumerate() {
                let each = [(DEFAULTS, 100.0), ("a=1", 110.0), ("b=1", 120.0), ("a=1,b=1", *both)];
                for (value, io) in each {
                    let trace = Value::from(format!("t{trace}"));
                    table.rows.push(vec![trace, 10u64.into(), value.into(), io.into()]);
                }
            }
            correlation(&Grid::of(&table, &["trace", "percent", "value"], "io")).holds
        };
        assert_eq!(judged([132.0, 132.1, 131.9, 132.0]), Some(true));
        assert_eq!(judged([140.0, 140.1, 139.9, 140.0]), Some(false));
        assert_eq!(judged([132.0, 150.0, 120.0, 132.0]), None);
    }

    #[test]
    fn every_pair_of_parameters_is_there_and_no_setting_twice() {
        let all = settings(Scale::Paper);
        for (at, (a, _)) in PARAMS.iter().enumerate() {
            for (b, _) in &PARAMS[at + 1..] {
                let is_pair = |s: &Vec<(&str, &str)>| s.len() == 2 && (s[0].0, s[1].0) == (*a, *b);
                assert!(all.iter().any(is_pair), "{a} {b}");
            }
        }
        let mut names: Vec<String> = all.iter().map(|s| named(s)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
