//! Live logical reads (luan figures 16 and 19, tables 2 and 6), and their relation to hit ratios.

use super::parts::{AXES, READS, apart, correlation, others};
use crate::experiment::Grid;
use crate::luan::policies::NAMES;
use crate::luan::said::{At, over_sizes};
use crate::luan::score::{Scores, each_repetition};
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, claim};

/// Final scores on logical reads (table 6), by policy as in [`NAMES`].
const TABLE_6: [f64; 13] =
    [10.0, -3.0, 18.0, -1.5, -2.5, 10.0, -4.0, -5.0, -24.0, 10.5, 22.5, -17.5, -13.5];

/// Logical reads of table 2 in thousands, by policy as in [`NAMES`], at every second of his sizes.
const TABLE_2: [[u32; 10]; 13] = [
    [378, 586, 642, 719, 825, 882, 1020, 1209, 1446, 1774],
    [508, 608, 684, 742, 797, 864, 978, 1166, 1296, 1556],
    [518, 634, 707, 769, 866, 942, 1103, 1291, 1509, 1780],
    [317, 347, 725, 758, 849, 964, 1025, 1209, 1237, 1514],
    [409, 534, 719, 761, 791, 946, 1018, 1167, 1332, 1466],
    [524, 639, 674, 712, 797, 955, 1033, 1198, 1508, 1822],
    [449, 580, 632, 696, 746, 816, 1004, 1161, 1402, 1688],
    [389, 542, 545, 625, 710, 831, 1064, 1141, 1375, 1809],
    [310, 379, 437, 518, 547, 649, 757, 924, 1234, 1461],
    [316, 610, 652, 755, 827, 879, 1063, 1220, 1541, 1954],
    [327, 631, 726, 786, 957, 1037, 1141, 1369, 1597, 2081],
    [312, 439, 477, 611, 732, 851, 969, 1157, 1085, 1520],
    [390, 443, 496, 610, 682, 771, 959, 1136, 1362, 1708],
];
/// LRU's place in the tables.
const LRU: usize = 2;

/// Returns the widest gap between the policies at a size.
fn gap(grid: &Grid, size: &str) -> Option<f64> {
    let all: Option<Vec<f64>> = NAMES.iter().map(|p| grid.mean(&[p, size])).collect();
    let (least, most) = all?
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), value| (l.min(*value), m.max(*value)));
    Some(most - least)
}

/// Returns the change in logical reads per point of hit ratio between two sizes, over all
/// policies.
fn per_point(rows: &Table, from: &str, to: &str) -> Option<f64> {
    let gain = |column| -> Option<f64> {
        let grid = Grid::of(rows, &AXES, column);
        let each: Option<Vec<f64>> =
            NAMES.iter().map(|p| Some(grid.mean(&[p, to])? - grid.mean(&[p, from])?)).collect();
        Some(each?.iter().sum())
    };
    let hits = gain("hit_ratio")?;
    (hits > 0.0).then_some(gain(READS)? / hits)
}

/// Draws figure 16 with tables 2 and 6, and figure 19, from the columns `hit_ratio` and
/// `logical_reads_per_s`.
pub fn draw_reads(rows: &Table) -> Section {
    let grid = Grid::of(rows, &AXES, READS);
    let hits = Grid::of(rows, &AXES, "hit_ratio");
    let sizes = grid.labels(1);
    let mut columns =
        ["policy", "score", "place", "his score", "t-test", "sign test"].map(String::from).to_vec();
    columns.extend(sizes.iter().map(|size| format!("reads/s at {size}")));
    columns.push("over LRU (his)".to_string());
    let mut section = Section {
        note: "As many logical reads as there were in a second, over a device of limited speed. \
               Sizes are named as his; a pool is the same share of our data. The score (table 6) \
               and the marks are those of the joint method over these sizes, by means over the \
               repetitions. Over LRU: our ratio of logical reads at each size, and that of his \
               table 2. Figure 19 is the rank correlation of hit ratio and logical reads over the \
               policies, by size: 1 where the order is the same."
            .to_string(),
        table: Table::new(columns.iter().map(String::as_str)),
        ..Section::default()
    };
    let scores = Scores::of(&grid);
    for (at, policy) in NAMES.iter().enumerate() {
        let of = |number: &dyn Fn(&Scores) -> Option<f64>| scores.as_ref().and_then(number);
        let marks = |t: bool| {
            scores.as_ref().map(|s| Scores::marks(if t { &s.joint.t } else { &s.joint.sign }, at))
        };
        let mut row: Vec<Value> = vec![
            (*policy).into(),
            of(&|scores| scores.score(policy)).into(),
            of(&|scores| scores.place(policy).map(|place| place as f64)).into(),
            TABLE_6[at].into(),
            marks(true).into(),
            marks(false).into(),
        ];
        row.extend(sizes.iter().map(|size| Value::from(grid.mean(&[policy, size]))));
        row.push(beside_lru(&grid, &sizes, at).into());
        section.table.rows.push(row);
    }
    let halves = [NAMES.split_at(7).0, NAMES.split_at(7).1];
    let titles = ["Figure 16, half of the policies", "Figure 16, the others"];
    for (names, title) in halves.into_iter().zip(titles) {
        let mut plot = over_sizes(&grid, title, "logical reads per second", names);
        plot.x = "pool, as his in pages of 115,200".to_string();
        section.plots.push(plot.into());
    }
    section.claims = claims(rows, &grid, &hits);
    section
}

/// Formats our ratio to LRU at each size, and his where his table has it.
fn beside_lru(grid: &Grid, sizes: &[&str], at: usize) -> String {
    let each = sizes.iter().map(|size| {
        let ours = grid.ratio(&[NAMES[at], size], &[NAMES[LRU], size]);
        let ours = ours.map_or("–".to_string(), |ratio| format!("{:.2}", ratio.mean));
        let column = size.parse::<usize>().ok().filter(|s| *s >= 2560 && s % 2560 == 0);
        let column = column.map(|size| size / 2560 - 1).filter(|column| *column < 10);
        let his = column.map(|c| f64::from(TABLE_2[at][c]) / f64::from(TABLE_2[LRU][c]));
        his.map_or(ours.clone(), |his| format!("{ours} ({his:.2})"))
    });
    each.collect::<Vec<_>>().join(" ")
}

fn claims(rows: &Table, grid: &Grid, hits: &Grid) -> Vec<Claim> {
    let sizes = grid.labels(1);
    let agreement = each_repetition(rows, |of_it| {
        Scores::of(&Grid::of(of_it, &AXES, READS))?.agreement_with(&TABLE_6)
    });
    let small = At::new(hits, &["2560"]);
    let mut all = vec![
        claim(
            "the ranking by logical reads goes with his: rank correlation with table 6",
            &[("", agreement)],
            above(0.0),
        ),
        apart(grid, &sizes, "overall FBR has the most logical reads", &["FBR"], &others(&["FBR"])),
        apart(grid, &sizes, "LIRS has the fewest", &others(&["LIRS"]), &["LIRS"]),
        apart(
            grid,
            &sizes,
            "LRU, FBR, LRFU, ARC and GCLOCK have more than LRU-2, CLOCK-Pro and CART (table 6)",
            &["LRU", "FBR", "LRFU", "ARC", "GCLOCK"],
            &["LRU-2", "CLOCK-Pro", "CART"],
        ),
        claim(
            "2,560 of his pages: LRU hits more often than LRU-2 (17.2 points there)",
            &small.gaps("LRU", &["LRU-2"]),
            above(0.0),
        ),
    ];
    all.extend(relations(rows, &sizes));
    all
}

/// Claims about the relation of hit ratio and logical reads (5.7.1, 5.7.3).
fn relations(rows: &Table, sizes: &[&str]) -> Vec<Claim> {
    let (least, most) = (sizes.first().copied().unwrap_or(""), sizes.last().copied().unwrap_or(""));
    let before = sizes.len().checked_sub(2).map_or("", |at| sizes[at]);
    let second = sizes.get(1).copied().unwrap_or("");
    let correlated =
        |size: &str| each_repetition(rows, |r| correlation(r, size, ["hit_ratio", READS]));
    let by_size: Vec<_> = sizes.iter().map(|size| (*size, correlated(size))).collect();
    let falls = each_repetition(rows, |of_it| {
        let grid = Grid::of(of_it, &AXES, "hit_ratio");
        Some(gap(&grid, least)? - gap(&grid, most)?)
    });
    let grows = each_repetition(rows, |of_it| {
        let grid = Grid::of(of_it, &AXES, READS);
        Some(gap(&grid, most)? / gap(&grid, least)?)
    });
    let worth = each_repetition(rows, |of_it| {
        // With two sizes, both gains would be the same.
        if sizes.len() < 3 {
            return None;
        }
        Some(per_point(of_it, before, most)? / per_point(of_it, least, second)?)
    });
    vec![
        claim(
            "the gap between hit ratios is larger in the smallest pool than in the largest",
            &[("", falls)],
            above(0.0),
        ),
        claim(
            "that between logical reads is larger in the largest: its ratio to the smallest's",
            &[("", grows)],
            above(1.0),
        ),
        claim(
            "logical reads grow with hit ratio (figure 19): rank correlation at each size",
            &by_size,
            above(0.0),
        ),
        claim(
            "a gain of hit ratio brings more logical reads where it is high (conclusion 4): reads \
             per point between the two largest pools over those between the two smallest",
            &[("", worth)],
            above(1.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 5] = [2560, 5120, 10_240, 17_920, 25_600];

    /// Makes two repetitions of a hit ratio and logical reads by policy and size.
    fn rows(value: &dyn Fn(usize, usize) -> (f64, f64)) -> Table {
        let columns = ["policy", "size", "repetition", "hit_ratio", READS];
        let mut table = Table::new(columns);
        for (at, policy) in NAMES.iter().enumerate() {
            for (place, size) in SIZES.into_iter().enumerate() {
                let (hit, reads) = value(at, place);
                for repetition in 1u64..=2 {
                    let noise = 1.0 + repetition as f64 * 1e-9;
                    table.rows.push(vec![
                        (*policy).into(),
                        size.into(),
                        repetition.into(),
                        hit.into(),
                        (reads * noise).into(),
                    ]);
                }
            }
        }
        table
    }

    #[test]
    fn each_sentence_on_logical_reads_can_hold_and_fail() {
        let his = draw_reads(&rows(&|at, size| {
            let (score, size) = (TABLE_6[at], size as f64);
            let hit = 0.5 + 0.1 * size + score * 2e-3 * (1.0 - size * 0.15);
            (hit, (1000.0 + score * 5.0) * 2f64.powf(size))
        }));
        for claim in &his.claims {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        let reversed = draw_reads(&rows(&|at, size| {
            let (score, size) = (TABLE_6[at], size as f64);
            let hit = 0.5 + 0.1 * size + score * 1e-3 * (1.0 + size * 0.15);
            let hit = if at == LRU { hit - 0.05 } else { hit };
            (hit, 10_000.0 - score * (50.0 - 5.0 * size) + 1000.0 * (1.0 - 0.5f64.powf(size)))
        }));
        for claim in &reversed.claims {
            assert_eq!(claim.holds, Some(false), "{}: {}", claim.says, claim.here);
        }
        assert_eq!((his.table.rows.len(), his.plots.len()), (13, 2));
        let mut two = rows(&|at, size| (0.5 + size as f64, 1e3 + (at + 9 * size) as f64));
        two.rows.retain(|row| [Value::from(2560u32), 5120u32.into()].contains(&row[1]));
        assert_eq!(draw_reads(&two).claims[8].holds, None, "one gain alone");
        let one = rows(&|at, size| (TABLE_6[at], 1000.0 + (at + size) as f64));
        let one = draw_reads(&one.only("repetition", "1"));
        assert!(one.claims.iter().all(|claim| claim.holds.is_none()), "one decides nothing");
        assert!(draw_reads(&Table::new(["policy"])).claims.iter().all(|c| c.holds.is_none()));
    }

    #[test]
    fn his_tables_are_beside_ours() {
        let table = rows(&|at, size| (0.5, f64::from(TABLE_2[at][[0, 1, 3, 6, 9][size]])));
        let section = draw_reads(&table);
        let text = section.table.rows[8].last().map(ToString::to_string).unwrap();
        assert_eq!(text, "0.60 (0.60) 0.60 (0.60) 0.67 (0.67) 0.69 (0.69) 0.82 (0.82)");
        let scores = Scores::of(&Grid::of(&table, &AXES, READS)).unwrap();
        assert!(scores.agreement_with(&TABLE_6).unwrap() > 0.5, "his table 2 gives his table 6");
    }
}
