//! `dsyncs`, a figure of ours: the savings of write-aware policies if fewer writes become durable
//! before their pages are written again.
//!
//! His trace 300k_4000 has one dsync request for eight writes. A gap that gives our trace his
//! share of RECOV writes gives it one for nearly each write. A write with a dsync request before
//! the next write is unavoidable, so little is left to save.

use std::cell::RefCell;
use std::rc::Rc;

use super::io_claims::{TWINS, saves};
use super::places::{Place, Places};
use super::simulate::{Plan, Simulated};
use super::traces::Traces;
use crate::experiment::{About, Scale};
use millpond_lab::interval::Interval;
use millpond_lab::registry::PolicyError;
use millpond_lab::report::{Claim, Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::tier2::Model;
use millpond_lab::verdict::{Named, below, claim_named};

const ABOUT: About = About {
    id: "dsyncs",
    title: "What write-aware policies save, by dsync requests per write",
    asks: "Do they save what figure 5.6 says where dsync requests are as rare as in its trace?",
    says: "Up to 41 % (LRU), 26 % (ARC) and 59 % (TQ), with 0.12 dsync requests per write.",
};

/// From many dsync requests to none.
const TRACES: [&str; 4] = ["300k_4000", "gap-2/3", "gap-4/3", "gap-5"];
const RARE: [&str; 2] = [TRACES[2], TRACES[3]];
const POLICIES: [&str; 7] = ["pro-io", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"];

/// Returns the figure.
///
/// # Errors
/// A policy cannot be built.
pub(super) fn figure(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Result<Simulated, PolicyError> {
    let all = vec![100.0, 200.0, 300.0, 400.0, 500.0, 600.0];
    let sizes = scale.pick(vec![300.0], all.clone(), all);
    let plan = Plan {
        about: ABOUT,
        model: Model::Rw,
        traces: TRACES.iter().map(|name| (*name, sizes.clone())).collect(),
        policies: &POLICIES,
        draw,
    };
    Simulated::new(plan, scale, traces)
}

/// Returns the share that a policy saves of another one's total.
fn saved(ratio: Option<Interval>) -> Option<f64> {
    ratio.map(|ratio| 1.0 - ratio.mean)
}

fn draw(rows: &Table) -> Section {
    let (places, dsyncs) = (Places::of(rows, "total"), Places::of(rows, "dsyncs_per_write"));
    let mut columns = vec!["trace", "dsyncs per write", "size", "total of pro-io"];
    columns.extend(TWINS.map(|(aware, ..)| aware));
    let (mut table, mut plots) = (Table::new(columns), Vec::new());
    let mut lines: Vec<Vec<Line>> = vec![Vec::new(); TWINS.len()];
    for trace in places.traces() {
        for (of_twin, _) in lines.iter_mut().zip(TWINS) {
            of_twin.push(Line { label: trace.to_string(), ..Line::default() });
        }
        for size in places.sizes() {
            let Some(best) = places.value(Place::of(trace, size), "pro-io") else { continue };
            let per_write = dsyncs.value(Place::of(trace, size), "pro-io").map(|value| value.mean);
            let mut row: Vec<Value> =
                vec![trace.into(), per_write.into(), size.into(), best.mean.into()];
            for ((aware, blind, _), of_twin) in TWINS.iter().zip(&mut lines) {
                let ratio = places.ratio(Place::of(trace, size), aware, blind);
                row.push(saved(ratio).into());
                let point = size.parse().ok().zip(ratio).zip(of_twin.last_mut());
                let Some(((size, ratio), line)) = point else { continue };
                line.points.push((size, 1.0 - ratio.mean));
                line.band.push((1.0 - ratio.high, 1.0 - ratio.low));
            }
            table.rows.push(row);
        }
    }
    for ((aware, blind, _), lines) in TWINS.iter().zip(lines) {
        let plot = LinePlot {
            title: format!("What {aware} saves of {blind}'s total"),
            x: "second tier, thousand pages of his".to_string(),
            y: "share saved".to_string(),
            lines,
            is_cut: true,
            ..LinePlot::default()
        };
        plots.push(plot.into());
    }
    let note = "Ours, to explain figure 5.6: the same pool of 50 % of the data with LSN gaps of a \
                third, two thirds, four thirds and five times the log of the whole run. Below the \
                policies' names is what they save of their twins' totals.";
    Section { note: note.to_string(), table, plots, claims: claims(&places), ..Section::default() }
}

fn claims(places: &Places) -> Vec<Claim> {
    let sizes: Vec<&str> = places.sizes();
    let rare: Vec<Place<'_>> =
        RARE.iter().flat_map(|trace| sizes.iter().map(|size| Place::of(trace, size))).collect();
    let mut claims: Vec<Claim> = (0..TWINS.len())
        .map(|twin| {
            let says = "with few dsync requests, at some size saves";
            saves(places, says, &rare, twin, TWINS[twin].2[0])
        })
        .collect();
    claims.extend(TWINS.iter().map(|(aware, blind, _)| {
        let change: Named = RARE
            .iter()
            .map(|trace| {
                let [few, many] = [trace, TRACES[0]].map(|trace| Place::of(trace, "300"));
                let change = places.change(aware, blind, few, many);
                (format!("{aware}/{blind} at {trace} over {}", TRACES[0]), change)
            })
            .collect();
        let says = format!("at 300K {aware} saves more with few dsync requests than with many");
        claim_named(&says, &change, below(1.0))
    }));
    claims
}

#[cfg(test)]
mod tests {
    use super::super::places::made_up;
    use super::*;

    fn verdicts(many: f64, few: f64) -> Vec<&'static str> {
        let mut values = Vec::new();
        for trace in TRACES {
            let ratio = if RARE.contains(&trace) { few } else { many };
            for (aware, blind, _) in TWINS {
                values.push((Place::of(trace, "300"), aware, ratio * 100.0));
                values.push((Place::of(trace, "300"), blind, 100.0));
            }
            values.push((Place::of(trace, "300"), "pro-io", 30.0));
        }
        let rows = made_up("total", &values);
        let section = draw(&rows);
        assert_eq!((section.table.rows.len(), section.plots.len()), (4, 3));
        section.claims.iter().map(Claim::verdict).collect()
    }

    #[test]
    fn each_sentence_is_decided_on_both_sides() {
        assert_eq!(verdicts(0.9, 0.4), ["yes"; 6]);
        assert_eq!(verdicts(0.8, 0.9), ["no"; 6]);
        let none = claims(&Places::of(&made_up("total", &[]), "total"));
        assert!(none.iter().all(|claim| claim.holds.is_none()));
    }
}
