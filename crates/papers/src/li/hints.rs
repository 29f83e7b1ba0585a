//! Figures 3.2 to 3.5: read hit ratios with and without hints.

use std::cell::RefCell;
use std::rc::Rc;

use super::hints_claims::{at_one_size, over_gaps, over_pools, over_sizes, short_mix};
use super::places::Places;
use super::simulate::{Plan, Simulated};
use super::traces::Traces;
use crate::experiment::{About, Scale};
use millpond_lab::registry::PolicyError;
use millpond_lab::report::Section;
use millpond_lab::table::Table;
use millpond_lab::tier2::Model;

/// His policies, in the order of figure 3.2.
const POLICIES: [&str; 7] = ["t2-rand", "t2-lru", "lru-hints", "t2-mq", "mq-hints", "tq", "t2-opt"];

const OVER_SIZES: About = About {
    id: "3.3",
    title: "Read hit ratios over sizes of the second tier (figures 3.2 and 3.3)",
    asks: "What do hints gain at 120K pages, and at other sizes?",
    says: "TQ has nearly twice the read hit ratio of MQ and more than half of OPT's; its lead \
           begins to fade at 300K pages.",
};

const OVER_POOLS: About = About {
    id: "3.4",
    title: "Read hit ratios over pool sizes",
    asks: "What do hints gain below a small, a middle and a large pool?",
    says: "The larger the pool, the less a second tier can do; TQ has more than five times the \
           best ratio without hints below the large one, and below the small one all are alike.",
};

const OVER_GAPS: About = About {
    id: "3.5",
    title: "Read hit ratios over LSN gaps",
    asks: "What do hints gain at each softmax?",
    says: "400 and 4000 hardly differ; at 50 all policies with hints are alike, and better than \
           MQ, LRU and RAND.",
};

const SHORT: About = About {
    id: "3.4-short",
    title: "Read hit ratios over pool sizes, before the data have grown",
    asks: "Do the sentences on figure 3.4 hold in traces that end before the data double?",
    says: "As of 3.4; his data grow slowly.",
};

/// Returns the three figures, and one of ours.
///
/// # Errors
/// A policy cannot be built.
pub(super) fn figures(
    scale: Scale,
    traces: &Rc<RefCell<Traces>>,
) -> Result<Vec<Simulated>, PolicyError> {
    let of = |about, traces_of: &[&'static str], sizes: &[f64], draw: fn(&Table) -> Section| {
        let traces_of = traces_of.iter().map(|name| (*name, sizes.to_vec())).collect();
        let plan = Plan { about, model: Model::Read, traces: traces_of, policies: &POLICIES, draw };
        Simulated::new(plan, scale, traces)
    };
    let all: &[f64] = &[60.0, 120.0, 180.0, 240.0, 300.0];
    let few: &[f64] = &[60.0, 120.0, 300.0];
    let sizes = scale.pick(few, all, all);
    let mut figures = vec![
        of(OVER_SIZES, &["300k_400"], sizes, draw_sizes)?,
        of(OVER_POOLS, &["60k_400", "300k_400", "540k_400"], &[120.0], draw_pools)?,
    ];
    if scale != Scale::Paper {
        // In these traces the data do not double.
        figures.push(of(SHORT, &SHORT_TRACES, &[120.0], draw_short)?);
    }
    figures.push(of(OVER_GAPS, &["300k_50", "300k_400", "300k_4000"], &[120.0], draw_gaps)?);
    Ok(figures)
}

const SHORT_TRACES: [&str; 3] = ["60k_400-short", "300k_400-short", "540k_400-short"];
const Y: &str = "read hits over reads";
/// Remarks about all three figures.
const NOTE: &str = "Reads count from the request on with which the second tier was first full. Out \
    queues of MQ, MQ + Hints and TQ take 96 bytes a page from its space.";

fn section(places: &Places, note: &str) -> Section {
    Section { note: format!("{note} {NOTE}"), table: places.table(), ..Section::default() }
}

fn draw_sizes(rows: &Table) -> Section {
    let places = Places::of(rows, "read_hit_ratio");
    let mut section = section(
        &places,
        "Pool of 50 % of the data, softmax 400; second tiers of 10 to 50 % of the data.",
    );
    section.plots = vec![places.over_sizes("300k_400", "Read hit ratios, trace 300_400", Y).into()];
    section.claims = at_one_size(&places);
    section.claims.extend(over_sizes(&places));
    section
}

fn draw_pools(rows: &Table) -> Section {
    let places = Places::of(rows, "read_hit_ratio");
    let note = "Pools of 10, 50 and 90 % of the data, softmax 400; second tier of 120K pages, \
                20 % of the data.";
    let mut section = section(&places, note);
    section.plots = vec![places.by_trace("Read hit ratios by pool", Y).into()];
    section.claims = over_pools(&places, ["60k_400", "300k_400", "540k_400"]);
    section
}

fn draw_short(rows: &Table) -> Section {
    let places = Places::of(rows, "read_hit_ratio");
    let note = "Ours, to explain figure 3.4: its traces, a sixth as long, so that the data have \
                not doubled. Pools of 10, 50 and 90 % of the data, softmax 400; second tier of \
                120K pages, 20 % of the data.";
    let mut section = section(&places, note);
    section.plots = vec![places.by_trace("Read hit ratios by pool", Y).into()];
    section.claims = over_pools(&places, SHORT_TRACES);
    section.claims.extend(short_mix(rows, SHORT_TRACES[2]));
    section
}

fn draw_gaps(rows: &Table) -> Section {
    let places = Places::of(rows, "read_hit_ratio");
    let note = "Pool of 50 % of the data, softmax 50, 400 and 4000; second tier of 120K pages, \
                20 % of the data.";
    let mut section = section(&places, note);
    section.plots = vec![places.by_trace("Read hit ratios by gap", Y).into()];
    section.claims = over_gaps(&places);
    section
}
