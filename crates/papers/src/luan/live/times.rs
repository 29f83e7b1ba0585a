//! Live execution time of a logical read, and its part in throughput (luan figures 17, 19 and 20,
//! table 7).

use super::parts::{AXES, READS, apart, correlation, mean_over, others};
use crate::experiment::Grid;
use crate::luan::policies::NAMES;
use crate::luan::said::over_sizes;
use crate::luan::score::{Scores, each_repetition};
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, below, claim};

/// Value of `bound` for runs that wait for a device.
pub const IO: &str = "I/O";
/// Value of `bound` for runs over memory.
pub const CPU: &str = "CPU";

const TIME: &str = "execution_us";

/// Final scores on execution time (table 7), by policy as in [`NAMES`]; the longest time has the
/// highest score.
const TABLE_7: [f64; 13] =
    [-22.0, -22.0, -13.0, -2.0, -0.5, -0.5, -14.0, -5.5, 12.5, 20.0, 24.0, 15.5, 7.5];

/// Returns the sizes at which nearly everything is in memory (figure 20).
fn large<'a>(sizes: &[&'a str]) -> Vec<&'a str> {
    sizes.iter().filter(|s| s.parse().is_ok_and(|s: f64| s > 80_000.0)).copied().collect()
}

/// Draws figures 17 and 20 with table 7 from the columns `bound` ([`IO`] or [`CPU`]),
/// `hit_ratio`, `logical_reads_per_s`, `execution_us`, `evictions_per_read` and `read_share`.
pub fn draw_times(rows: &Table) -> Section {
    let cpu = rows.only("bound", CPU);
    let grid = Grid::of(&cpu, &AXES, TIME);
    let replaced = Grid::of(&cpu, &AXES, "evictions_per_read");
    let sizes = grid.labels(1);
    let mut columns = ["policy", "score", "place", "his score"].map(String::from).to_vec();
    columns.extend(sizes.iter().map(|size| format!("µs at {size}")));
    columns.extend(sizes.iter().map(|size| format!("replaced at {size}")));
    let mut section = Section {
        note:
            "Processor time of the process per logical read, over memory, all workers busy: from \
               the request to the page, latches and the policy's lock included while they are spun \
               for, and with it the transaction's own work on the page, which is the same for all \
               policies. Differences between policies, which are all that the joint method \
               compares, are therefore those of execution time. A score of table 7 is the higher \
               the longer it takes. Replaced: pages that left the pool per logical read. Figure 20 \
               is the rank correlation of hit ratio and logical reads at the two largest pools \
               over memory, beside the same where the runs wait for a device (figure 19). Workers that wait for \
               nothing do as many logical reads as their processor time allows: there the \
               correlation of the two is near -1 by arithmetic. Over a slow device processor time \
               includes putting threads to sleep, so that it is not judged there."
                .to_string(),
        table: Table::new(columns.iter().map(String::as_str)),
        ..Section::default()
    };
    let scores = Scores::of(&grid);
    for (at, policy) in NAMES.iter().enumerate() {
        let place = scores.as_ref().and_then(|s| s.place(policy)).map(|place| place as u64);
        let mut row: Vec<Value> = vec![
            (*policy).into(),
            scores.as_ref().and_then(|s| s.score(policy)).into(),
            place.into(),
            TABLE_7[at].into(),
        ];
        for grid in [&grid, &replaced] {
            row.extend(sizes.iter().map(|size| Value::from(grid.mean(&[policy, size]))));
        }
        section.table.rows.push(row);
    }
    let halves = [NAMES.split_at(7).0, NAMES.split_at(7).1];
    let titles = ["Figure 17, half of the policies", "Figure 17, the others"];
    for (names, title) in halves.into_iter().zip(titles) {
        let mut plot = over_sizes(&grid, title, "processor time per logical read, µs", names);
        plot.x = "pool, as his in pages of 115,200".to_string();
        section.plots.push(plot.into());
    }
    section.claims = claims(rows, &cpu, &grid);
    section
}

fn claims(rows: &Table, cpu: &Table, grid: &Grid) -> Vec<Claim> {
    let sizes = grid.labels(1);
    let large = large(&sizes);
    let io = rows.only("bound", IO);
    let io_grid = Grid::of(&io, &AXES, READS);
    let small = io_grid.labels(1);
    let agreement = each_repetition(cpu, |of_it| {
        Scores::of(&Grid::of(of_it, &AXES, TIME))?.agreement_with(&TABLE_7)
    });
    let of = |rows: &Table, bound, sizes: &[&str], column| {
        let rows = rows.only("bound", bound);
        if sizes.is_empty() {
            return None;
        }
        mean_over(sizes, |size| correlation(&rows, size, [column, READS]))
    };
    let at_io = each_repetition(rows, |r| of(r, IO, &small, "hit_ratio"));
    let less = each_repetition(rows, |r| {
        Some(of(r, IO, &small, "hit_ratio")? - of(r, CPU, &large, "hit_ratio")?)
    });
    let slows = each_repetition(rows, |r| of(r, CPU, &large, TIME));
    let clocks = ["GCLOCK", "CLOCK"];
    vec![
        claim(
            "the ranking by execution time goes with his: rank correlation with table 7",
            &[("", agreement)],
            above(0.0),
        ),
        apart(grid, &sizes, "FBR takes longest", &["FBR"], &others(&["FBR"])),
        apart(
            grid,
            &sizes,
            "CLOCK and GCLOCK take less than all others",
            &others(&clocks),
            &clocks,
        ),
        claim(
            "bound by I/O, logical reads grow with hit ratio (figure 19): rank correlation",
            &[("", at_io)],
            above(0.0),
        ),
        claim(
            "bound by the CPU, hit ratio tells less (figure 20): how much lower the correlation is",
            &[("", less)],
            above(0.0),
        ),
        claim(
            "there execution time has a part in it (conclusion 3): its rank correlation with \
             logical reads is below zero",
            &[("", slows)],
            below(0.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes two repetitions at sizes of both bounds; `value` gives hit ratio, reads and time.
    fn rows(value: &dyn Fn(usize, &str) -> [f64; 3]) -> Table {
        let columns = ["bound", "policy", "size", "repetition", "hit_ratio", READS, TIME];
        let mut table = Table::new(columns.into_iter().chain(["evictions_per_read"]));
        let places = [(IO, 2560u32), (IO, 10_240), (CPU, 2560), (CPU, 10_240), (CPU, 25_600)];
        let places = places.into_iter().chain([(CPU, 89_600), (CPU, 102_400)]);
        for (bound, size) in places {
            for (at, policy) in NAMES.iter().enumerate() {
                for repetition in 1u64..=2 {
                    let mut row: Vec<Value> =
                        vec![bound.into(), (*policy).into(), size.into(), repetition.into()];
                    let [hit, reads, time] = value(at, bound);
                    let noise = 1.0 + repetition as f64 * 1e-9 + f64::from(size) * 1e-10;
                    row.extend([hit, reads, time * noise, 0.1].map(Value::from));
                    table.rows.push(row);
                }
            }
        }
        table
    }

    #[test]
    fn each_sentence_on_execution_time_can_hold_and_fail() {
        let his = draw_times(&rows(&|at, bound| {
            let (hit, time) = (at as f64, 100.0 + TABLE_7[at] + at as f64 * 1e-3);
            [hit, if bound == IO { hit } else { 1e3 - time }, time]
        }));
        for claim in &his.claims {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        assert_eq!((his.table.rows.len(), his.plots.len()), (13, 2));
        // Execution time is reversed: I/O-bound runs order logical reads against it, and
        // CPU-bound runs in its order.
        let reversed = draw_times(&rows(&|at, bound| {
            let time = 100.0 - TABLE_7[at] + at as f64 * 1e-3;
            [at as f64, if bound == IO { 1e3 - time } else { time }, time]
        }));
        let verdicts: Vec<_> = reversed.claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(verdicts[..3], [Some(false); 3], "{verdicts:?}");
        assert_eq!(verdicts[5..], [Some(false)], "{verdicts:?}");
        // Hit ratio orders logical reads in reverse for I/O-bound runs.
        let against = draw_times(&rows(&|at, bound| {
            let hit = at as f64;
            [hit, if bound == IO { -hit } else { hit }, 100.0 + TABLE_7[at]]
        }));
        let verdicts: Vec<_> = against.claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(verdicts[3..5], [Some(false); 2], "{verdicts:?}");
        let one =
            draw_times(&rows(&|at, _| [at as f64, 1.0 + at as f64, 2.0]).only("repetition", "1"));
        assert!(one.claims.iter().all(|claim| claim.holds.is_none()));
    }
}
