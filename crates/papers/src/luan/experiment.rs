//! The experiment of all simulated figures.

use std::cell::RefCell;
use std::rc::Rc;

use super::tpcc::{RecordTpcc, Traces};
use super::{correlated, fifteen, figure, looping, probabilistic, sequential, space, temporal};
use crate::experiment::{Experiment, Figure, Scale};
use millpond_lab::registry::PolicyError;

/// Returns Luan's simulated figures and tables for one scale. `record` records TPC-C from an
/// engine.
///
/// # Errors
/// A policy cannot be built, which is a mistake of ours.
pub fn experiment(scale: Scale, record: RecordTpcc) -> Result<Experiment, PolicyError> {
    let patterns = [
        sequential::figure(scale)?,
        correlated::figure(scale)?,
        looping::larger(scale)?,
        looping::smaller(scale)?,
        temporal::figure(scale)?,
        probabilistic::figure(scale)?,
        space::figure(scale)?,
    ];
    let traces = Rc::new(RefCell::new(Traces::new(scale, record)));
    let over_tpcc = [fifteen::figure(scale, &traces)?, fifteen::causes(scale, &traces)?];
    let boxed = |figure: figure::Patterns| Box::new(figure) as Box<dyn Figure>;
    let mut figures: Vec<Box<dyn Figure>> = patterns.into_iter().map(boxed).collect();
    figures.extend(over_tpcc.map(|figure| Box::new(figure) as Box<dyn Figure>));
    Ok(Experiment {
        paper: "luan",
        title: "Luan, Du, Feng and Wang (2008), repeated".to_string(),
        note: "Thirteen policies with the paper's parameters. Access patterns are made as it \
               describes them; what it does not print is ours, and named. Each repetition has \
               draws of its own; intervals are over them, at 95 %. Where nothing is drawn all \
               repetitions are equal. Figures 16 to 20 are runs of the engine, the others \
               are simulated. Not run here: TPC-H (figures 12 to 14), whose queries this engine \
               does not have."
            .to_string(),
        scale,
        figures,
    })
}
