//! Added cost of a logical read when several workers share the pool (luan figure 18).

use super::parts::others;
use crate::experiment::Grid;
use crate::luan::policies::NAMES;
use crate::luan::said::At;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, claim};

/// Policy without hit hooks or lists, whose cost of sharing is the engine's own.
pub const RANDOM: &str = "RANDOM";

const TIME: &str = "worker_us";
const CLOCKS: [&str; 4] = ["GCLOCK", "CLOCK", "CAR", "CART"];
/// Policies about which he only states that they cost more than the four.
const REST: [&str; 6] = ["2Q-Simple", "2Q-Full", "ARC", "LRFU", "FBR", "LRU-2"];

/// Returns the cost of a logical read with all workers less its cost with one, by policy and
/// repetition.
fn shared(rows: &Table) -> Option<Table> {
    let grid = Grid::of(rows, &["workers", "policy"], TIME);
    let workers = grid.labels(0);
    let (alone, all) = (workers.first()?, workers.last().filter(|_| workers.len() > 1)?);
    let mut table = Table::new(["policy", "repetition", "sharing"]);
    let repetitions = Grid::of(rows, &["repetition"], TIME);
    for repetition in repetitions.labels(0) {
        let of_it = Grid::of(&rows.only("repetition", repetition), &["workers", "policy"], TIME);
        for policy in of_it.labels(1) {
            let cost = of_it.mean(&[all, policy]).zip(of_it.mean(&[alone, policy]));
            let number = repetition.parse::<f64>().ok();
            table.rows.push(vec![
                policy.into(),
                number.into(),
                cost.map(|(all, alone)| all - alone).into(),
            ]);
        }
    }
    Some(table)
}

/// Draws figure 18 from the columns `workers`, `policy` (including [`RANDOM`]), `worker_us`,
/// `latch_ns_per_read` and `latch_conflicts_per_read`.
pub fn draw_sharing(rows: &Table) -> Section {
    let mut section = Section {
        note: "Each worker's time per logical read with all workers less the same with one, in a \
               pool that holds everything, over memory: what waiting for the policy's lock and for \
               latches takes, and the transfer of cache lines that both write. How long a lock alone \
               is waited for cannot be told apart: the engine times no acquisition on its hit path, \
               and policies that hits reach through a line of the frame's own take none there. \
               RANDOM, which hits do not reach at all, is what sharing costs the engine itself. \
               Latches: nanoseconds of waiting that spinning did not end, and latches found held, \
               per logical read, with all workers."
            .to_string(),
        table: Table::new([
            "policy",
            "µs with one worker",
            "µs with all",
            "cost of sharing, µs",
            "low",
            "high",
            "less RANDOM's, µs",
            "latch wait, ns",
            "latch conflicts",
        ]),
        ..Section::default()
    };
    let Some(cost) = shared(rows) else { return section };
    let cost = Grid::of(&cost, &["policy"], "sharing");
    let of = |column| Grid::of(rows, &["workers", "policy"], column);
    let (time, latch, conflicts) =
        (of(TIME), of("latch_ns_per_read"), of("latch_conflicts_per_read"));
    let workers = time.labels(0);
    let (alone, all) = (workers[0], workers[workers.len() - 1]);
    let y = "µs per logical read".to_string();
    let title = "Figure 18: what sharing the pool costs".to_string();
    let mut plot = BarPlot { title, y, ..BarPlot::default() };
    for policy in NAMES.iter().copied().chain([RANDOM]) {
        let value = cost.interval(&[policy]);
        let row: [Value; 9] = [
            policy.into(),
            time.mean(&[alone, policy]).into(),
            time.mean(&[all, policy]).into(),
            value.map(|v| v.mean).into(),
            value.map(|v| v.low).into(),
            value.map(|v| v.high).into(),
            cost.difference(&[policy], &[RANDOM]).map(|v| v.mean).into(),
            latch.mean(&[all, policy]).into(),
            conflicts.mean(&[all, policy]).into(),
        ];
        section.table.rows.push(row.to_vec());
        let bar = |value| Bar { group: policy.to_string(), series: "sharing".to_string(), value };
        plot.bars.extend(value.map(bar));
    }
    section.plots.push(plot.into());
    section.claims = claims(&cost);
    section
}

fn claims(cost: &Grid) -> Vec<Claim> {
    let at = At::new(cost, &[]);
    let lru: Vec<(&str, Option<Interval>)> = at.gaps("LRU", &REST);
    vec![
        at.apart(
            "GCLOCK, CLOCK, CAR and CART cost less than all others",
            &others(&CLOCKS),
            &CLOCKS,
        ),
        claim(
            "LRU's cost is very high: what it has more than 2Q, ARC, LRFU, FBR and LRU-2",
            &lru,
            above(0.0),
        ),
        at.apart(
            "LIRS and CLOCK-Pro cost more than 2Q, ARC, LRFU, FBR and LRU-2",
            &["LIRS", "CLOCK-Pro"],
            &REST,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cost: &dyn Fn(&str) -> f64) -> Table {
        let columns = ["workers", "policy", "repetition", TIME, "latch_ns_per_read"];
        let mut table = Table::new(columns.into_iter().chain(["latch_conflicts_per_read"]));
        for workers in [1u64, 2] {
            for policy in NAMES.iter().copied().chain([RANDOM]) {
                for repetition in 1u64..=2 {
                    // A disturbance of a repetition affects both of its runs.
                    let base = 1.0 + repetition as f64 / 10.0;
                    let more = if workers == 2 { cost(policy) } else { 0.0 };
                    table.rows.push(vec![
                        workers.into(),
                        policy.into(),
                        repetition.into(),
                        (base + more).into(),
                        1.0.into(),
                        0.1.into(),
                    ]);
                }
            }
        }
        table
    }

    #[test]
    fn each_sentence_on_locks_can_hold_and_fail() {
        let cost = |policy: &str| match policy {
            RANDOM => 0.05,
            "LRU" => 2.0,
            "LIRS" | "CLOCK-Pro" => 1.5,
            policy if CLOCKS.contains(&policy) => 0.1,
            _ => 1.0,
        };
        let his = draw_sharing(&rows(&cost));
        for claim in &his.claims {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        let less = his.table.get(2, "less RANDOM's, µs").and_then(Value::number).unwrap();
        assert!((less - 1.95).abs() < 1e-9, "LRU's less RANDOM's: {less}");
        assert_eq!(his.table.rows.len(), 14);
        for claim in &draw_sharing(&rows(&|policy| 3.0 - cost(policy))).claims {
            assert_eq!(claim.holds, Some(false), "{}: {}", claim.says, claim.here);
        }
        let one = draw_sharing(&rows(&cost).only("repetition", "1"));
        assert!(one.claims.iter().all(|claim| claim.holds.is_none()));
        assert!(draw_sharing(&rows(&cost).only("workers", "1")).claims.is_empty());
    }
}
