//! The experiment of all simulated figures.

use std::cell::RefCell;
use std::rc::Rc;

use super::workloads::TRACES;
use super::{comparison, pairs, parameters, tables};
use crate::experiment::{Experiment, Figure, Scale};
use crate::simulated::{Library, Record, SimFigure};
use millpond_lab::registry::PolicyError;

/// Returns WATT's simulated figures and tables for one scale. `record` records the traces of the
/// engine.
///
/// # Errors
/// A policy cannot be built, which is a mistake of ours.
pub fn experiment(scale: Scale, record: Record) -> Result<Experiment, PolicyError> {
    let kinds: Vec<_> = TRACES.iter().map(|(name, kind, _, _)| (*name, *kind)).collect();
    let library = Rc::new(RefCell::new(Library::new(scale, &kinds, record)));
    let mut figures: Vec<SimFigure> =
        vec![comparison::figure_1(scale, &library)?, comparison::figure_2(scale, &library)?];
    figures.extend(parameters::figures(scale, &library)?);
    figures.push(tables::aggregation(scale, &library)?);
    figures.push(tables::logging(scale, &library)?);
    figures.push(pairs::figure(scale, &library)?);
    figures.push(tables::memory(scale, &library)?);
    let boxed = |figure: SimFigure| Box::new(figure) as Box<dyn Figure>;
    Ok(Experiment {
        paper: "watt",
        title: "WATT (Vöhringer and Leis, VLDB 2023), repeated".to_string(),
        note: "TPC-C and key-value traces are recorded from this engine, Zipf and dynamic Zipf \
               generated as the paper describes, TPC-E imitated: the paper's own traces are \
               unavailable. Each repetition has traces and draws of its own; intervals are over them, at \
               95 %."
            .to_string(),
        scale,
        figures: figures.into_iter().map(boxed).collect(),
    })
}
