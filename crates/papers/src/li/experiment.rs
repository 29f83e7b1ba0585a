//! The experiment of chapters 3 to 5.

use std::cell::RefCell;
use std::rc::Rc;

use super::tables::Tables;
use super::traces::{RecordLi, Traces};
use super::{dsyncs, hints, io, listed, sync};
use crate::experiment::{Experiment, Figure, Scale};
use millpond_lab::registry::PolicyError;

fn add<F: Figure + 'static>(to: &mut Vec<Box<dyn Figure>>, figures: impl IntoIterator<Item = F>) {
    to.extend(figures.into_iter().map(|figure| Box::new(figure) as Box<dyn Figure>));
}

/// Returns the figures of chapters 3 to 5 for one scale. `record` records the traces of the
/// engine.
///
/// # Errors
/// A policy cannot be built, which is a mistake of ours.
pub fn experiment(scale: Scale, record: RecordLi) -> Result<Experiment, PolicyError> {
    let traces = Rc::new(RefCell::new(Traces::new(scale, record)));
    let mut figures: Vec<Box<dyn Figure>> = vec![Box::new(Tables::new(scale, &traces))];
    add(&mut figures, hints::figures(scale, &traces)?);
    figures.push(Box::new(sync::Writes { scale }));
    add(
        &mut figures,
        [
            sync::updates(scale, &traces),
            sync::tables(scale, &traces),
            sync::variants(scale, &traces),
        ],
    );
    add(&mut figures, io::figures(scale, &traces)?);
    if scale != Scale::Paper {
        // Their logs are several times as large as the data, and in memory.
        figures.push(Box::new(dsyncs::figure(scale, &traces)?));
        figures.push(Box::new(listed::figure(scale, &traces)?));
    }
    let gaps = match scale {
        Scale::Paper => {
            "Gaps are in bytes of log for each page of the data those of the standard \
                         scale: softmax 4000 is 1.4 times the data's bytes, 400 half of that, 50 \
                         and 40 are 1.8 and 1.4 % of them; a warm-up goes on until pages are \
                         written for the gap's sake."
        }
        _ => {
            "Gaps are chosen by the mix of requests: softmax 4000 is a third of the log that a \
              run writes, 400 a sixth, 50 and 40 are 0.41 and 0.33 %."
        }
    };
    Ok(Experiment {
        paper: "li",
        title: "Li's thesis on second-tier caches (2011), chapters 3 to 5, repeated".to_string(),
        note: format!(
            "TPC-C on a live pool that works as his DB2 does (GCLOCK, page cleaners at half of \
               the pool dirty), recorded anew in each repetition with a seed of its own, after a \
               warm-up; dsync requests are put in by his procedure (5.6.2.1). The MySQL-like \
               traces are those of a simulated pool (LRU, read-ahead, dirty neighbours written \
               with a page) above page references of our engine, since the live pool does not \
               read ahead for point queries. Pools and second tiers are of the data as loaded \
               what his were of his; second tiers are given in thousands of his pages. {gaps} Intervals are over \
               repetitions, at 95 %. Chapter 4's systems are simulated in virtual time: a pool, a \
               file cache, one disk or an array; they do not depend on the machine."
        ),
        scale,
        figures,
    })
}
