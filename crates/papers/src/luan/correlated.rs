//! Figure 2: the cost of correlated references (luan 5.2).

use super::figure::{Axes, Patterns, axes, shrunk};
use super::policies::{LAMBDA, thirteen, variants};
use super::said::At;
use super::work::{Work, made, play};
use crate::experiment::{About, Cell, Fields, FigureError, Grid, Scale};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::Table;
use millpond_lab::verdict::{above, between, claim};

const ABOUT: About = About {
    id: "2",
    title: "Correlated references: extra physical reads",
    asks: "How many more misses has a series of SELECTs if half of them are DELETEs, which refer to \
           their page again at once?",
    says: "254 more under ARC, 219 under CAR, at most 45 under 2Q-Simple and CART, none under the \
           others.",
};

/// Frames, operations and pages of the index, which the paper does not print. Pages that are used
/// once miss in any case, so the pool can only lose the path of an index.
const POOL: u32 = 1000;
const OPERATIONS: u32 = 20_000;

/// Pages of the index, in percent of the frames; 0 is a series of pages that are used once.
const INDEXES: [u32; 4] = [0, 20, 50, 80];
/// Number of concurrent operations; with 1, a DELETE references its page twice in a row.
const GAPS: [u32; 2] = [1, 4];

pub(super) fn figure(scale: Scale) -> Result<Patterns, PolicyError> {
    let mut policies = thirteen(LAMBDA);
    policies.extend(variants(&["lrfu(lambda=0)"]));
    let mut cells: Vec<Axes> = Vec::new();
    for index in INDEXES {
        for gap in GAPS {
            let of = |policy| {
                let more = [("index", index.into()), ("gap", gap.into())];
                axes(policy).into_iter().chain(more).collect()
            };
            cells.extend(policies.iter().map(of));
        }
    }
    let references = u64::from(OPERATIONS) * 5;
    Patterns::new(ABOUT, scale, cells, references, simulate, draw)
}

fn simulate(registry: &Registry, cell: &Cell, scale: Scale) -> Result<Vec<Fields>, FigureError> {
    let (pool, operations) = (shrunk(POOL, scale), shrunk(OPERATIONS, scale));
    let percent = cell.number("index").unwrap_or(0.0);
    let index = (f64::from(pool) * percent / 100.0) as u64;
    let (gap, seed) = (cell.text("gap"), u64::from(cell.repetition));
    let misses = |deletes: &str| -> Result<u64, FigureError> {
        let params =
            format!("operations={operations},index={index},gap={gap},deletes={deletes},repeats=2");
        let work = Work::clean(vec![made("correlated", &params, seed)?]);
        let parts = play(registry, &cell.text("by"), pool, &work, seed)?;
        Ok(parts.iter().map(super::work::Part::misses).sum())
    };
    let (selects, deletes) = (misses("0%")?, misses("50%")?);
    let extra = deletes as f64 - selects as f64;
    let fields = [
        ("frames", pool.into()),
        ("select_misses", selects.into()),
        ("delete_misses", deletes.into()),
        ("extra_reads", extra.into()),
    ];
    Ok(vec![fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()])
}

fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["policy", "index", "gap"], "extra_reads");
    let mut table = Table::new(["policy", "index", "gap", "extra_reads", "low", "high"]);
    let mut bars = Vec::new();
    for policy in grid.labels(0) {
        for index in grid.labels(1) {
            for gap in grid.labels(2) {
                let Some(value) = grid.interval(&[policy, index, gap]) else { continue };
                let row = [policy.into(), index.into(), gap.into(), value.mean.into()];
                table
                    .rows
                    .push(row.into_iter().chain([value.low.into(), value.high.into()]).collect());
                let series = format!("index {index} %, gap {gap}");
                bars.push(Bar { group: policy.to_string(), series, value });
            }
        }
    }
    let plot = BarPlot {
        title: "Misses with DELETEs less misses without".to_string(),
        y: "physical reads".to_string(),
        bars,
        ..BarPlot::default()
    };
    Section {
        note: format!(
            "{OPERATIONS} operations, each on a page of its own, in {POOL} frames; half of them, \
             drawn by the seed, refer to their page again: at once (gap 1) or three operations \
             later (gap 4). Each operation first reads a page of an index of this many percent of \
             the frames. The paper does not print its sizes, nor whether it has an index."
        ),
        table,
        plots: vec![plot.into()],
        claims: claims(&grid),
        ..Section::default()
    }
}

/// Settings in which sentences are judged: no index and repeats apart; an index and repeats at
/// once.
const JUDGED: [(&str, &str); 4] = [("0", "4"), ("20", "1"), ("50", "1"), ("80", "1")];

fn claims(grid: &Grid) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (index, gap) in JUDGED {
        let rest = [index, gap];
        let at = At::new(grid, &rest);
        let none = |who: &str, policies: &[&str]| {
            let says = format!("index {index} %, gap {gap}: no extra reads under {who}");
            claim(&says, &at.all(policies), between(-0.5, 0.5))
        };
        let some = |who: &str, policies: &[&str]| {
            let says = format!("index {index} %, gap {gap}: some under {who}");
            claim(&says, &at.all(policies), above(0.5))
        };
        let designed = ["2Q-Full", "FBR", "LRU-2"];
        claims.extend([
            none("GCLOCK, CLOCK and LRU", &["GCLOCK", "CLOCK", "LRU"]),
            none("2Q-Full, FBR and LRU-2", &designed),
            none("LRFU", &["LRFU"]),
            none("LIRS", &["LIRS"]),
            none("CLOCK-Pro", &["CLOCK-Pro"]),
            some("ARC and CAR", &["ARC", "CAR"]),
            some("2Q-Simple", &["2Q-Simple"]),
            some("CART", &["CART"]),
        ]);
        let fewer = |policy: &str| {
            let says =
                format!("index {index} %, gap {gap}: fewer under {policy} than under ARC, CAR");
            at.apart(&says, &["ARC", "CAR"], &[policy])
        };
        claims.extend([fewer("2Q-Simple"), fewer("CART")]);
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::super::said::twice;
    use super::*;
    use millpond_lab::table::Value;

    #[test]
    fn each_sentence_can_hold_and_fail() {
        let all = |extra: &dyn Fn(&str) -> f64| {
            let mut table = Table::new(["policy", "index", "gap", "extra_reads"]);
            for policy in super::super::policies::NAMES {
                for (index, gap) in JUDGED {
                    let row = [policy, index, gap].map(Value::from);
                    table.rows.push(row.into_iter().chain([extra(policy).into()]).collect());
                }
            }
            claims(&Grid::of(&twice(&table), &["policy", "index", "gap"], "extra_reads"))
        };
        let his = |policy: &str| match policy {
            "ARC" => 254.0,
            "CAR" => 219.0,
            "2Q-Simple" | "CART" => 45.0,
            _ => 0.0,
        };
        assert!(all(&his).iter().all(|claim| claim.holds == Some(true)));
        let other = |policy: &str| if his(policy) > 0.0 { 0.0 } else { -3.0 };
        assert!(all(&other).iter().all(|claim| claim.holds == Some(false)));
    }
}
