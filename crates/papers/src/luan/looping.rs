//! Figures 3 to 5: a table read repeatedly, larger and smaller than the pool (luan 5.3).

use super::figure::{Axes, Patterns, axes, shrunk};
use super::loop_claims::{draw_larger, draw_smaller};
use super::policies::{LAMBDA, thirteen, variants};
use super::rounds::ROUNDS;
use super::work::{Work, made, play, used};
use crate::experiment::{About, Cell, Fields, FigureError, Scale};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::table::Value;

const LARGER: About = About {
    id: "3",
    title: "Loops larger than the pool",
    asks: "What is the hit ratio of each of ten rounds over 11,113 pages in 11,000 frames, clean \
           or used?",
    says: "Only 2Q-Full, LIRS, LRFU, LRU-2 and CLOCK-Pro hit at all in a clean pool, LIRS and \
           CLOCK-Pro most; in a used one nothing does.",
};

const SMALLER: About = About {
    id: "4",
    title: "Loops smaller than the pool (figures 4 and 5)",
    asks: "How many rounds over 1,701 pages does it take until a used pool of 2,000 to 7,000 \
           frames holds all of them?",
    says: "One under LRU and the clocks, two under ARC, CAR, CART and CLOCK-Pro; the others need \
           4,000 frames, 2Q-Simple 7,000.",
};

/// His table A and his pool in fig. 3; his table B and his pools in figs 4 and 5.
const TABLE_A: u32 = 11_113;
const POOL_A: u32 = 11_000;
const TABLE_B: u32 = 1701;
const POOLS_B: [u32; 4] = [2000, 4000, 6000, 7000];
/// Zipf exponents of the workload before: the figure's, and two others for 2,000 frames.
const BEFORE: &str = "0.8";
const OTHERS_BEFORE: [&str; 2] = ["0", "1.2"];

/// Policies beside his: LRFU with other λ; LFU that breaks ties by most recent use; LRU-2 without
/// history; 2Q with other queues.
const OTHERS_A: [&str; 5] =
    ["lrfu(lambda=0.0001)", "lrfu(lambda=0)", "lfu(tie=mru)", "lru-k", "2q(kin=25%,kout=100%)"];
const OTHERS_B: [&str; 4] =
    ["lrfu(lambda=0.00001)", "lrfu(lambda=1)", "fbr(new=45%)", "lru-2-history(correlated=90%)"];

pub(super) fn larger(scale: Scale) -> Result<Patterns, PolicyError> {
    let mut policies = thirteen(LAMBDA);
    policies.extend(variants(&OTHERS_A));
    let of = |pool: &'static str| {
        policies.iter().map(move |p| axes(p).into_iter().chain([("pool", pool.into())]).collect())
    };
    let cells = of("clean").chain(of("used")).collect();
    let rounds = ROUNDS as u64 * u64::from(TABLE_A);
    let references = rounds + u64::from(POOL_A) * 25;
    Patterns::new(LARGER, scale, cells, references, simulate_larger, draw_larger)
}

pub(super) fn smaller(scale: Scale) -> Result<Patterns, PolicyError> {
    let mut policies = thirteen(LAMBDA);
    policies.extend(variants(&OTHERS_B));
    let cell = |p, size: u32, before: &str| -> Axes {
        // Label of the pool: the frames, and the exponent of another workload before.
        let pool = match before {
            BEFORE => size.to_string(),
            other => format!("{size} after Zipf {other}"),
        };
        axes(p).into_iter().chain([("pool", Value::from(pool))]).collect()
    };
    let his = POOLS_B.map(|size| (size, BEFORE));
    let pools = his.into_iter().chain(OTHERS_BEFORE.map(|before| (2000, before)));
    let cells =
        pools.flat_map(|(size, before)| policies.iter().map(move |p| cell(p, size, before)));
    let references = ROUNDS as u64 * u64::from(TABLE_B) + 5000 * 50;
    let (cells, draw) = (cells.collect(), draw_smaller);
    Patterns::new(SMALLER, scale, cells, references, simulate_smaller, draw)
}

/// Makes rounds over a table of `table` pages, in a pool of `pool` frames.
fn rounds(
    registry: &Registry,
    cell: &Cell,
    table: u32,
    pool: u32,
    before: Option<&str>,
) -> Result<Vec<Fields>, FigureError> {
    let seed = u64::from(cell.repetition);
    let round = || made("looping", &format!("pages={table},loops=1"), seed);
    let parts = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    let work = match before {
        Some(theta) => Work::after(used(pool, theta, seed)?, parts),
        None => Work::clean(parts),
    };
    let parts = play(registry, &cell.text("by"), pool, &work, seed)?;
    let row = |(at, part): (usize, &super::work::Part)| {
        let mut fields: Fields = vec![("round".to_string(), (at as u64 + 1).into())];
        fields.extend(part.fields(pool));
        fields
    };
    Ok(parts.iter().enumerate().map(row).collect())
}

fn simulate_larger(
    registry: &Registry,
    cell: &Cell,
    scale: Scale,
) -> Result<Vec<Fields>, FigureError> {
    let (table, pool) = (shrunk(TABLE_A, scale), shrunk(POOL_A, scale));
    rounds(registry, cell, table, pool, (cell.text("pool") == "used").then_some(BEFORE))
}

fn simulate_smaller(
    registry: &Registry,
    cell: &Cell,
    scale: Scale,
) -> Result<Vec<Fields>, FigureError> {
    let text = cell.text("pool");
    let (size, before) = text.split_once(" after Zipf ").unwrap_or((&text, BEFORE));
    let size: u32 = size.parse().map_err(FigureError::of)?;
    rounds(registry, cell, shrunk(TABLE_B, scale), shrunk(size, scale), Some(before))
}
