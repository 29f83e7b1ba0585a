//! Claims of the paper about TPC-C's hit ratios (luan 5.7), beside our results.

use super::policies::{NAMES, THIRTEEN};
use super::said::{At, over_sizes};
use super::score::{Scores, agreement, over_repetitions};
use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, claim};

/// Hit ratios of his table 1 in percent, by policy as in [`NAMES`], at every second of his sizes.
const TABLE_1: [[f64; 10]; 13] = [
    [67.17, 81.21, 82.42, 84.26, 86.31, 87.54, 89.22, 91.02, 92.64, 93.96],
    [77.42, 81.81, 83.54, 84.67, 85.97, 87.37, 89.10, 90.51, 91.66, 93.07],
    [77.46, 81.32, 83.36, 84.83, 86.59, 87.89, 89.41, 91.19, 92.48, 93.76],
    [59.07, 60.97, 83.83, 84.66, 86.39, 87.97, 88.52, 90.27, 90.63, 92.52],
    [70.57, 78.21, 84.28, 85.26, 85.81, 88.42, 89.06, 90.64, 91.90, 92.69],
    [77.93, 82.06, 82.54, 83.65, 85.13, 87.97, 88.80, 90.53, 92.61, 94.06],
    [74.66, 81.17, 82.41, 83.85, 84.88, 86.55, 88.95, 90.68, 92.41, 93.79],
    [68.30, 79.19, 78.12, 81.38, 83.55, 86.30, 89.34, 90.54, 92.13, 94.14],
    [56.23, 66.96, 70.63, 75.79, 76.92, 80.72, 83.51, 87.07, 90.47, 92.60],
    [59.58, 81.32, 82.54, 84.94, 86.00, 87.11, 89.30, 90.67, 92.44, 94.42],
    [58.38, 81.78, 83.74, 85.27, 87.53, 88.95, 89.76, 91.62, 93.06, 94.97],
    [60.22, 74.15, 78.68, 81.45, 84.90, 87.58, 89.05, 91.16, 91.78, 93.48],
    [68.26, 73.56, 75.81, 80.92, 82.46, 84.81, 87.90, 90.15, 91.89, 93.70],
];

const AXES: [&str; 2] = ["policy", "size"];

pub(super) fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &AXES, "hit_ratio");
    let mut section = Section {
        note: "TPC-C recorded from our engine with one client, in pages of 8 KiB, inner pages of \
               trees included, simulated from cold, every reference counted. Sizes are named as his; \
               a pool is the same share of our data as his of 900 MB. Marks are those of each policy \
               beside GCLOCK, CLOCK, LRU, 2Q-Simple, 2Q-Full, ARC, CAR, CART, LIRS, LRFU, FBR, \
               LRU-2 and CLOCK-Pro, over the sizes, by means over the repetitions (tables 3 and 4); \
               the score is the mean of both tests' (table 5)."
            .to_string(),
        table: Table::new(
            ["policy", "score", "place", "his score", "t-test", "sign test", "table 1 less ours"],
        ),
        ..Section::default()
    };
    if let Some(scores) = Scores::of(&grid) {
        for (at, (name, _, his, ..)) in THIRTEEN.iter().enumerate() {
            section.table.rows.push(vec![
                (*name).into(),
                scores.score(name).into(),
                scores.place(name).map(|place| place as u64).into(),
                (*his).into(),
                Scores::marks(&scores.joint.t, at).into(),
                Scores::marks(&scores.joint.sign, at).into(),
                less(&grid, name, &TABLE_1[at]).into(),
            ]);
        }
    }
    let halves = [NAMES.split_at(7).0, NAMES.split_at(7).1];
    let titles = ["Figure 15, half of the policies", "Figure 15, the others"];
    for (names, title) in halves.into_iter().zip(titles) {
        let mut plot = over_sizes(&grid, title, "hit ratio, %", names);
        plot.x = "pool, as his in pages of 115,200".to_string();
        section.plots.push(plot.into());
    }
    section.claims = claims(rows, &grid);
    section
}

/// Formats his hit ratios less ours in points, at each of table 1's sizes.
fn less(grid: &Grid, policy: &str, his: &[f64; 10]) -> String {
    let at = |(at, his): (usize, &f64)| {
        let size = (2560 + at * 2560).to_string();
        grid.mean(&[policy, &size]).map_or("–".to_string(), |ours| format!("{:+.1}", his - ours))
    };
    his.iter().enumerate().map(at).collect::<Vec<_>>().join(" ")
}

/// Returns tables of each policy's mean over the sizes, and of the widest gap between policies at
/// a size.
fn means(rows: &Table) -> (Table, Table) {
    let mut mean = Table::new(["policy", "of", "repetition", "hit_ratio"]);
    let mut spread = Table::new(["size", "repetition", "gap"]);
    let mut repetitions: Vec<String> = Vec::new();
    for row in 0..rows.rows.len() {
        let name = rows.get(row, "repetition").map(Value::to_string).unwrap_or_default();
        if !repetitions.contains(&name) {
            repetitions.push(name);
        }
    }
    for repetition in repetitions {
        let grid = Grid::of(&rows.only("repetition", &repetition), &AXES, "hit_ratio");
        let number = repetition.parse::<u64>().unwrap_or(1);
        for policy in NAMES {
            let values: Vec<f64> =
                grid.labels(1).iter().filter_map(|size| grid.mean(&[policy, size])).collect();
            let of_all = Interval::of(&values).map(|interval| interval.mean);
            mean.rows.push(vec![policy.into(), "all".into(), number.into(), of_all.into()]);
        }
        for size in grid.labels(1) {
            let at: Vec<f64> = NAMES.iter().filter_map(|p| grid.mean(&[p, size])).collect();
            let (least, most) = at
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(*v), m.max(*v)));
            spread.rows.push(vec![size.into(), number.into(), (most - least).into()]);
        }
    }
    (mean, spread)
}

/// Returns all names except these.
fn others(without: &[&str]) -> Vec<&'static str> {
    NAMES.iter().filter(|name| !without.contains(name)).copied().collect()
}

fn claims(rows: &Table, grid: &Grid) -> Vec<Claim> {
    let (mean, spread) = means(rows);
    let mean = Grid::of(&mean, &["policy", "of"], "hit_ratio");
    let spread = Grid::of(&spread, &["size"], "gap");
    let all = At::new(&mean, &["all"]);
    let small = At::new(grid, &["3840"]);
    let score =
        |policy: &'static str| (policy, over_repetitions(rows, |scores| scores.score(policy)));
    let falls = spread.difference(&["2560"], &["25600"]);
    vec![
        claim(
            "the ranking goes with his: rank correlation of the scores with table 5",
            &[("", agreement(rows))],
            above(0.0),
        ),
        all.apart(
            "LIRS is lower than all others, on average over the sizes",
            &others(&["LIRS"]),
            &["LIRS"],
        ),
        all.apart("FBR is higher than all others", &["FBR"], &others(&["FBR"])),
        all.apart(
            "CLOCK-Pro, LRU-2 and CART are lower than GCLOCK, LRU and FBR",
            &["GCLOCK", "LRU", "FBR"],
            &["CLOCK-Pro", "LRU-2", "CART"],
        ),
        claim(
            "LIRS', CLOCK-Pro's and LRU-2's scores are below zero: less them",
            &["LIRS", "CLOCK-Pro", "LRU-2"].map(|policy| {
                let (policy, score) = score(policy);
                (policy, score.map(|s| Interval { mean: -s.mean, low: -s.high, high: -s.low, ..s }))
            }),
            above(0.0),
        ),
        claim(
            "FBR's, LRU's and GCLOCK's are above zero",
            &["FBR", "LRU", "GCLOCK"].map(score),
            above(0.0),
        ),
        claim(
            "3,840 of his pages: LRU is far above LRU-2 (11.6 points there): more than 5",
            &small.gaps("LRU", &["LRU-2"]),
            above(5.0),
        ),
        claim(
            "the gap between the policies is larger in small pools: at 2,560 less at 25,600",
            &[("", falls)],
            above(0.0),
        ),
    ]
}

pub(super) fn draw_causes(rows: &Table) -> Section {
    let mut labels: Vec<String> = Vec::new();
    for row in 0..rows.rows.len() {
        let name = rows.get(row, "trace").map(Value::to_string).unwrap_or_default();
        if !labels.contains(&name) {
            labels.push(name);
        }
    }
    let mut columns = vec!["trace", "agreement", "low", "high"];
    columns.extend(NAMES);
    let mut section = Section {
        note: "The trace of figure 15 changed in one respect, at the ten sizes of table 1. Agreement \
               is Spearman's rank correlation of the scores with his table 5, mean and interval over \
               the repetitions; a policy's column is its score by means over them."
            .to_string(),
        table: Table::new(columns),
        ..Section::default()
    };
    let his = THIRTEEN.map(|policy| Value::from(policy.2));
    let first = ["his table 5".into(), 1.0.into(), Value::Empty, Value::Empty];
    section.table.rows.push(first.into_iter().chain(his).collect());
    for label in &labels {
        let of_trace = rows.only("trace", label);
        let grid = Grid::of(&of_trace, &AXES, "hit_ratio");
        let scores = Scores::of(&grid);
        let over = agreement(&of_trace);
        let mut row: Vec<Value> = vec![label.as_str().into()];
        row.push(over.map(|o| o.mean).into());
        row.extend([over.map(|o| o.low).into(), over.map(|o| o.high).into()]);
        let score = |name: &&str| Value::from(scores.as_ref().and_then(|s| s.score(name)));
        row.extend(NAMES.iter().map(score));
        section.table.rows.push(row);
        let mut plot = over_sizes(&grid, label, "hit ratio, %", &SHOWN);
        plot.x = "pool, as his in pages of 115,200".to_string();
        section.plots.push(plot.into());
    }
    section
}

/// Policies whose places differ most from his, and his best one.
const SHOWN: [&str; 7] = ["LRU", "CLOCK", "FBR", "LIRS", "CLOCK-Pro", "LRU-2", "ARC"];

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(hit: &dyn Fn(usize, usize) -> f64) -> Table {
        let mut table = Table::new(["trace", "policy", "size", "repetition", "hit_ratio"]);
        for (at, policy) in NAMES.iter().enumerate() {
            for size in 0..20usize {
                for repetition in 1u64..=2 {
                    table.rows.push(vec![
                        "as recorded".into(),
                        (*policy).into(),
                        (2560 + 1280 * size as u64).into(),
                        repetition.into(),
                        hit(at, size).into(),
                    ]);
                }
            }
        }
        table
    }

    fn judged(hit: &dyn Fn(usize, usize) -> f64) -> Vec<Claim> {
        let table = rows(hit);
        claims(&table, &Grid::of(&table, &AXES, "hit_ratio"))
    }

    #[test]
    fn each_sentence_can_hold_and_fail() {
        let grows = |size: usize| size as f64 - 10.0;
        let his =
            judged(&|at, size| THIRTEEN[at].2 * (1.0 - size as f64 / 40.0) + grows(size) + 60.0);
        for claim in &his {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        let reversed =
            judged(&|at, size| -THIRTEEN[at].2 * (1.0 + size as f64 / 40.0) + grows(size) + 60.0);
        for claim in &reversed {
            assert_eq!(claim.holds, Some(false), "{}: {}", claim.says, claim.here);
        }
    }

    #[test]
    fn the_tables_have_a_row_for_each_policy_and_each_change() {
        let table = rows(&|at, size| THIRTEEN[at].2 + size as f64);
        let section = draw(&table);
        assert_eq!((section.table.rows.len(), section.plots.len()), (13, 2));
        let text = section.table.to_text();
        assert!(text.contains("-24") && text.contains("<<"), "{text}");
        let section = draw_causes(&table);
        assert_eq!((section.table.rows.len(), section.plots.len()), (2, 1));
        assert!(draw(&Table::new(["policy"])).table.rows.is_empty());
        // His own table 1 at his sizes has no difference to itself.
        let exact = rows(&|at, size| TABLE_1[at].get(size / 2).copied().unwrap_or(90.0));
        let grid = Grid::of(&exact, &AXES, "hit_ratio");
        assert!(!less(&grid, "LIRS", &TABLE_1[8]).contains("+0.1"));
        assert!(less(&grid, "LIRS", &TABLE_1[8]).starts_with("+0.0 +0.0"));
    }
}
