//! The traces, and the extent of the figures at each scale.

use crate::experiment::Scale;
use crate::simulated::{SimPlan, TraceKind};

/// TPC-C on our engine, one warehouse (the paper's table 2: 1 M references, 16,128 pages).
pub const TPCC: &str = "tpcc";
/// Key-value operations on our engine, Zipf 0.9, one in ten a write (watt 6.2).
pub const YCSB: &str = "ycsb-90-10";

/// References of a recorded trace, at quick and at the other scales.
pub const RECORDED: [usize; 2] = [20_000, 1_000_000];

/// All traces: name, kind, references, and `true` for a trace with writes.
pub(super) const TRACES: [(&str, TraceKind, u64, bool); 6] = [
    (TPCC, TraceKind::Recorded, 1_000_000, true),
    (YCSB, TraceKind::Recorded, 1_000_000, true),
    ("tpce-like", TraceKind::Generated, 1_500_000, true),
    ("zipf-ro", TraceKind::Generated, 1_000_000, false),
    ("dynzipf-ro", TraceKind::Generated, 2_000_000, false),
    ("dynzipf-rw", TraceKind::Generated, 1_200_000, true),
];

/// Returns the traces of a figure; only those with writes if it is about writes. A smoke test
/// has three.
pub(super) fn traces(scale: Scale, with_writes: bool) -> Vec<(&'static str, u64)> {
    let quick = |name: &str| [TPCC, "zipf-ro", "dynzipf-rw"].contains(&name);
    let all = TRACES.iter().filter(|(name, _, _, has_writes)| {
        (*has_writes || !with_writes) && (scale != Scale::Quick || quick(name))
    });
    let length = |references: u64| scale.pick(20_000, references, references);
    all.map(|(name, _, references, _)| (*name, length(*references))).collect()
}

/// Returns the pool sizes of a figure over sizes, in percent of the pages.
pub(super) fn percents(scale: Scale) -> Vec<f64> {
    scale.pick(
        vec![5.0, 10.0, 20.0],
        vec![2.0, 5.0, 10.0, 20.0, 40.0],
        vec![1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0],
    )
}

/// Returns the pool sizes of a figure about a parameter: fewer, because it has many settings.
pub(super) fn few_percents(scale: Scale) -> Vec<f64> {
    scale.pick(vec![10.0], vec![2.0, 10.0, 40.0], percents(Scale::Standard))
}

/// Returns the plan of a figure without its settings.
pub(super) fn plan(scale: Scale, with_writes: bool) -> SimPlan {
    SimPlan {
        traces: traces(scale, with_writes),
        percents: few_percents(scale),
        settings: Vec::new(),
        repetitions: scale.repetitions(),
    }
}
