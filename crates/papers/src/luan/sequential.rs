//! Figure 1: the share of a used pool that a scan's pages take (luan 5.1).

use super::figure::{Axes, Patterns, axes, shrunk};
use super::policies::{LAMBDA, Named, thirteen, variants};
use super::said::{At, Values, about};
use super::work::{Work, made, play, used};
use crate::experiment::{About, Cell, Fields, FigureError, Grid, Scale};
use millpond_lab::interval::Interval;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, below, claim};

const ABOUT: About = About {
    id: "1",
    title: "Sequential references: pollution",
    asks: "Which part of a used pool of 12,000 frames do pages of a scan of 11,113 pages take?",
    says: "All of the scan under LRU and CLOCK (92.6 %), much under GCLOCK and FBR, a quarter \
           under 2Q and LRU-2, next to nothing under ARC, CAR, CART, LIRS and CLOCK-Pro.",
};

/// His pool, and his table A.
const POOL: u32 = 12_000;
const TABLE_A: u32 = 11_113;

/// Zipf exponents of the workload before; the first one is the figure's.
const BEFORE: [&str; 3] = ["0.8", "0.2", "1.2"];

/// Policies with other parameters, and the resulting share according to the paper, in percent.
const MOVED: [(&str, f64); 5] = [
    ("fbr(old=40%)", 60.0),
    ("2q(kin=10%)", 10.0),
    ("2q-simple(kin=40%)", 40.0),
    ("lru-2-history(correlated=10%)", 10.0),
    ("lirs(hirs=5%)", 5.0),
];
/// The paper's sentences about FBR are in [`MOVED`], except for its old section.
const SLOW: &str = "lrfu(lambda=0.00001)";
const ADDITIVE: &str = "gclock-v1(f=5,r=5)";
/// LRFU with several λ.
const OTHERS: [&str; 3] = [SLOW, "lrfu(lambda=0.0001)", "lrfu(lambda=0)"];

pub(super) fn figure(scale: Scale) -> Result<Patterns, PolicyError> {
    let before = |theta: &str| ("before", Value::from(theta));
    let of = |theta: &str, policies: &[Named]| -> Vec<Axes> {
        policies.iter().map(|p| axes(p).into_iter().chain([before(theta)]).collect()).collect()
    };
    let mut thirteen = thirteen(LAMBDA);
    thirteen.extend(variants(&[ADDITIVE]));
    let mut cells: Vec<Axes> = BEFORE.iter().flat_map(|theta| of(theta, &thirteen)).collect();
    let moved = MOVED.map(|(policy, _)| policy);
    cells.extend(of(BEFORE[0], &variants(&moved)));
    cells.extend(of(BEFORE[0], &variants(&OTHERS)));
    Patterns::new(ABOUT, scale, cells, 611_113, simulate, draw)
}

fn simulate(registry: &Registry, cell: &Cell, scale: Scale) -> Result<Vec<Fields>, FigureError> {
    let (pool, table) = (shrunk(POOL, scale), shrunk(TABLE_A, scale));
    let seed = u64::from(cell.repetition);
    let scan = made("sequential", &format!("pages={table}"), seed)?;
    let work = Work::after(used(pool, &cell.text("before"), seed)?, vec![scan]);
    let parts = play(registry, &cell.text("by"), pool, &work, seed)?;
    let row = |part: &super::work::Part| {
        let share = part.counts.pollution as f64 / f64::from(pool) * 100.0;
        let mut fields: Fields = vec![("pollution".to_string(), share.into())];
        fields.extend(part.fields(pool));
        fields
    };
    Ok(parts.iter().map(row).collect())
}

fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["policy", "before"], "pollution");
    let mut section = Section {
        note: "Pollution ratio (3.3.1) in percent of the frames. His earlier workload is not \
               described: ours is `probabilistic`, with five times as many pages as frames and \
               this Zipf exponent."
            .to_string(),
        table: Table::new(["policy", "before", "pollution", "low", "high"]),
        ..Section::default()
    };
    let mut bars = Vec::new();
    for policy in grid.labels(0) {
        for before in grid.labels(1) {
            let Some(value) = grid.interval(&[policy, before]) else { continue };
            let row = [policy.into(), before.into(), value.mean.into()];
            let ends = [value.low.into(), value.high.into()];
            section.table.rows.push(row.into_iter().chain(ends).collect());
            let series = format!("after Zipf {before}");
            bars.push(Bar { group: policy.to_string(), series, value });
        }
    }
    section.plots.push(
        BarPlot {
            title: "Pages of the scan in the pool".to_string(),
            y: "% of the frames".to_string(),
            bars,
            ..BarPlot::default()
        }
        .into(),
    );
    section.claims = claims(&grid);
    section
}

/// Returns the widest difference of a policy's pollution between two earlier workloads.
fn widest(grid: &Grid, policy: &str) -> Option<Interval> {
    let labels = grid.labels(1);
    let pairs = labels.iter().flat_map(|a| labels.iter().map(move |b| (a, b)));
    let differences = pairs.filter_map(|(a, b)| grid.difference(&[policy, a], &[policy, b]));
    differences.max_by(|a, b| a.mean.total_cmp(&b.mean))
}

fn claims(grid: &Grid) -> Vec<Claim> {
    let at = At::new(grid, &BEFORE[..1]);
    let high = ["GCLOCK", "CLOCK", "LRU", "FBR"];
    let middle = ["2Q-Simple", "2Q-Full", "LRFU", "LRU-2"];
    let low = ["ARC", "CAR", "CART", "LIRS", "CLOCK-Pro"];
    let less = |interval: Option<Interval>, by: f64| {
        interval.map(|i| Interval { mean: i.mean - by, low: i.low - by, high: i.high - by, ..i })
    };
    let moved: Values = MOVED.map(|(policy, share)| (policy, less(at.of(policy), share))).to_vec();
    let wide = |policies: &[&'static str]| -> Values {
        policies.iter().map(|policy| (*policy, widest(grid, policy))).collect()
    };
    vec![
        claim("LRU and CLOCK keep all of it: 92.6 %", &at.all(&["LRU", "CLOCK"]), about(92.6)),
        claim(
            "GCLOCK keeps less than LRU: LRU less GCLOCK",
            &at.gaps("LRU", &["GCLOCK"]),
            above(0.0),
        ),
        claim(
            "so does an additive GCLOCK (gclock-v1): LRU less it",
            &at.gaps("LRU", &[ADDITIVE]),
            above(0.0),
        ),
        at.apart(
            "GCLOCK, CLOCK, LRU and FBR are polluted more than 2Q, LRFU and LRU-2",
            &high,
            &middle,
        ),
        at.apart(
            "the same with gclock-v1 and with LRFU of λ 0.00001",
            &[ADDITIVE, "CLOCK", "LRU", "FBR"],
            &["2Q-Simple", "2Q-Full", SLOW, "LRU-2"],
        ),
        at.apart("those more than ARC, CAR, CART, LIRS and CLOCK-Pro", &middle, &low),
        claim(
            "2Q-Simple, 2Q-Full and LRU-2: 25 %",
            &at.all(&["2Q-Simple", "2Q-Full", "LRU-2"]),
            about(25.0),
        ),
        claim("LIRS: its parameter, 1 %", &at.all(&["LIRS"]), about(1.0)),
        claim("2Q, LRU-2, LIRS: always their parameter; more than it", &moved, about(0.0)),
        claim(
            "LRFU's changes with λ: λ 0.005 less λ 0.00001, and that less λ 0",
            &[("", at.gap("LRFU", SLOW)), ("", at.gap(SLOW, "lrfu(lambda=0)"))],
            above(0.0),
        ),
        claim(
            "CAR's, CART's and CLOCK-Pro's depend on what ran before: the widest difference",
            &wide(&["CAR", "CART", "CLOCK-Pro"]),
            above(0.05),
        ),
        claim("ARC's too", &wide(&["ARC"]), above(0.05)),
        claim("GCLOCK's too", &wide(&["GCLOCK"]), above(0.05)),
        claim("an additive GCLOCK's too", &wide(&[ADDITIVE]), above(0.05)),
        claim(
            "2Q-Simple's, LIRS', FBR's and LRU-2's do not",
            &wide(&["2Q-Simple", "LIRS", "FBR", "LRU-2"]),
            below(0.05),
        ),
        claim("2Q-Full's does not", &wide(&["2Q-Full"]), below(0.05)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::policies::NAMES;
    use super::super::said::twice;
    use super::*;

    fn all(pollution: &dyn Fn(&str, &str) -> f64) -> Vec<Claim> {
        let mut table = Table::new(["policy", "before", "pollution"]);
        let moved = MOVED.map(|(policy, _)| policy);
        for policy in NAMES.iter().chain(&moved).chain(&OTHERS).chain(&[ADDITIVE]) {
            for before in BEFORE {
                let share = pollution(policy, before).into();
                table.rows.push(vec![(*policy).into(), before.into(), share]);
            }
        }
        claims(&Grid::of(&twice(&table), &["policy", "before"], "pollution"))
    }

    #[test]
    fn each_sentence_can_hold_and_fail() {
        let his = all(&|policy, before| {
            let moves = if before == "1.2" { 0.5 } else { 0.0 };
            let moved = MOVED.iter().find(|(name, _)| *name == policy);
            match policy {
                "LRU" | "CLOCK" => 92.6,
                "GCLOCK" | ADDITIVE => 80.0 - moves,
                "FBR" => 60.0,
                "2Q-Simple" | "2Q-Full" | "LRU-2" => 25.0,
                "LRFU" => 30.0,
                SLOW => 20.0,
                "LIRS" => 1.0,
                _ => moved.map_or(moves, |moved| moved.1),
            }
        });
        for claim in &his {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        let other = all(&|policy, before| {
            let moves = if before == "1.2" { 2.0 } else { 0.0 };
            match policy {
                "LRU" | "CLOCK" | "LRFU" | SLOW => 50.0,
                "GCLOCK" | ADDITIVE | "CAR" | "CART" | "CLOCK-Pro" | "ARC" => 50.0,
                "2Q-Simple" | "2Q-Full" | "LIRS" | "LRU-2" | "FBR" => 49.0 + moves,
                "lrfu(lambda=0)" => 60.0,
                _ => 3.0,
            }
        });
        let open = "those more than";
        for claim in other.iter().filter(|claim| !claim.says.contains(open)) {
            assert_eq!(claim.holds, Some(false), "{}: {}", claim.says, claim.here);
        }
        assert!(other.iter().any(|claim| claim.says.contains(open) && claim.holds != Some(true)));
    }
}
