//! Claims of the paper about loops (luan 5.3), beside our rounds.

use super::rounds::{drawn, peak};
use super::said::Values;
use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::Table;
use millpond_lab::verdict::{above, below, between, claim};

/// Bounds of almost nothing and almost everything, in percent.
const NONE: f64 = 0.005;
const ALL: f64 = 99.995;

/// Policies that hit nothing in fig. 3.
const MISS: [&str; 8] = ["GCLOCK", "CLOCK", "LRU", "2Q-Simple", "ARC", "CAR", "CART", "FBR"];

/// Returns a policy's peak.
fn top(grid: &Grid, policy: &str, label: &str) -> Option<Interval> {
    let round = peak(grid, policy, label)?;
    grid.interval(&[policy, label, &round])
}

fn tops<'a>(grid: &Grid, policies: &[&'a str], label: &str) -> Values<'a> {
    policies.iter().map(|policy| (*policy, top(grid, policy, label))).collect()
}

/// Returns the difference of two policies' peaks.
fn lead(grid: &Grid, of: &str, less: &str) -> Option<Interval> {
    let (of_round, less_round) = (peak(grid, of, "clean")?, peak(grid, less, "clean")?);
    grid.difference(&[of, "clean", &of_round], &[less, "clean", &less_round])
}

fn leads(grid: &Grid, says: &str, high: &[&str], low: &[&str]) -> Claim {
    let pairs = || high.iter().flat_map(|of| low.iter().map(move |less| (*of, *less)));
    let pairs: Values = pairs().map(|(of, less)| (less, lead(grid, of, less))).collect();
    let all: Vec<&str> = high.iter().chain(low).copied().collect();
    let here = millpond_lab::verdict::listed(&tops(grid, &all, "clean"));
    Claim { here, ..claim(says, &pairs, above(0.0)) }
}

pub(super) fn draw_larger(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["policy", "pool", "round"], "hit_ratio");
    let mut section = drawn(&grid, |pool| format!("A {pool} pool of 11,000 frames"));
    section.note = "Hit ratio of each round in percent. A used pool has run `probabilistic` with \
                    five times as many pages, Zipf 0.8: his earlier workload is not described."
        .to_string();
    section.claims = larger_claims(&grid);
    section
}

fn larger_claims(grid: &Grid) -> Vec<Claim> {
    let of = |policies: &[&'static str], pool| tops(grid, policies, pool);
    let learn = ["2Q-Full", "LIRS", "CLOCK-Pro"];
    let mut claims = vec![
        claim("eight policies hit nothing: their peaks", &of(&MISS, "clean"), below(NONE)),
        claim("2Q-Full, LIRS and CLOCK-Pro hit", &of(&learn, "clean"), above(NONE)),
        claim("LRFU hits", &of(&["LRFU"], "clean"), above(NONE)),
        claim("LRU-2 hits", &of(&["LRU-2"], "clean"), above(NONE)),
        leads(
            grid,
            "the peaks of LIRS and CLOCK-Pro are higher than those of 2Q-Full, LRFU and LRU-2",
            &["LIRS", "CLOCK-Pro"],
            &["2Q-Full", "LRFU", "LRU-2"],
        ),
        leads(
            grid,
            "that of 2Q-Full is higher than LRFU's and LRU-2's",
            &["2Q-Full"],
            &["LRFU", "LRU-2"],
        ),
    ];
    claims.extend(courses(grid));
    claims.push(claim(
        "in a used pool eight policies hit nothing",
        &of(&MISS, "used"),
        below(NONE),
    ));
    let four = ["2Q-Full", "LIRS", "LRFU", "LRU-2"];
    claims.push(claim("nor do 2Q-Full, LIRS, LRFU and LRU-2", &of(&four, "used"), below(NONE)));
    claims.push(claim("nor does CLOCK-Pro", &of(&["CLOCK-Pro"], "used"), below(NONE)));
    claims
}

/// Claims about the change of hit ratios from round to round.
fn courses(grid: &Grid) -> [Claim; 4] {
    let changes = |policy: &str, from: &str, to: &str| {
        grid.difference(&[policy, "clean", to], &[policy, "clean", from])
    };
    let round = |policy: &str, round: &str| grid.interval(&[policy, "clean", round]);
    let sum = round("LRU-2", "5").zip(round("LRU-2", "6")).map(|(a, b)| Interval {
        mean: a.mean + b.mean,
        low: a.low + b.low,
        high: a.high + b.high,
        runs: a.runs.min(b.runs),
    });
    let since: Values =
        ["2Q-Full", "LIRS", "CLOCK-Pro"].map(|p| (p, changes(p, "4", "10"))).to_vec();
    let size = |change: Interval| Interval {
        mean: change.mean.abs(),
        low: change.low.abs().min(change.high.abs()),
        high: change.low.abs().max(change.high.abs()),
        ..change
    };
    // Without any hit there is no peak, and only that can be judged.
    let lrfu = match top(grid, "LRFU", "clean") {
        Some(top) if top.high < NONE => ("its peak is", Some(top), Some(false)),
        _ => ("", changes("LRFU", "2", "10"), None),
    };
    let at_once = claim(
        "LRFU is at its peak from the second round on: round 10 less 2",
        &[(lrfu.0, lrfu.1)],
        between(-NONE, NONE),
    );
    [
        claim(
            "2Q-Full, LIRS and CLOCK-Pro change no more after the fourth round: round 10 less 4",
            &since,
            between(-NONE, NONE),
        ),
        Claim { holds: lrfu.2.or(at_once.holds), ..at_once },
        claim(
            "LRU-2 fluctuates: the change of the last round",
            &[("", changes("LRU-2", "9", "10").map(size))],
            above(NONE),
        ),
        claim("and two rounds of it have 100 % together", &[("", sum)], between(ALL, 200.0 - ALL)),
    ]
}

pub(super) fn draw_smaller(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["policy", "pool", "round"], "hit_ratio");
    let mut section = drawn(&grid, |size| format!("A used pool of {size} frames"));
    section.note = "Hit ratio of each round over 1,701 pages in percent, in a pool that has run \
                    `probabilistic` as before figure 3."
        .to_string();
    section.claims = smaller_claims(&grid);
    section
}

fn smaller_claims(grid: &Grid) -> Vec<Claim> {
    let in_round = |size: &'static str, round: &'static str, policies: &[&'static str]| -> Values {
        policies.iter().map(|policy| (*policy, grid.interval(&[policy, size, round]))).collect()
    };
    let adaptive = ["ARC", "CAR", "CART", "CLOCK-Pro"];
    let after = "2000 after Zipf 0";
    let third = |size, says: &str, policies: &[&'static str]| {
        claim(says, &in_round(size, "3", policies), above(ALL))
    };
    let zero = ["2Q-Simple", "2Q-Full", "LIRS", "LRFU", "FBR"];
    let rises = grid.difference(&["LRU-2", "2000", "10"], &["LRU-2", "2000", "2"]);
    let simple = |size| [("", grid.interval(&["2Q-Simple", size, "10"]))];
    let of = |policies: &[&'static str], size| tops(grid, policies, size);
    vec![
        claim(
            "2,000 frames: GCLOCK, CLOCK and LRU have 100 % in round 2",
            &in_round("2000", "2", &["GCLOCK", "CLOCK", "LRU"]),
            above(ALL),
        ),
        claim(
            "2,000: ARC, CAR, CART and CLOCK-Pro have not in round 2",
            &in_round("2000", "2", &adaptive),
            below(ALL),
        ),
        third("2000", "2,000: ARC has in round 3", &adaptive[..1]),
        third("2000", "2,000: so have CAR, CART and CLOCK-Pro", &adaptive[1..]),
        third(
            after,
            "2,000 used evenly (Zipf 0): ARC, CAR and CART have in round 3",
            &adaptive[..3],
        ),
        third(after, "2,000 used evenly (Zipf 0): CLOCK-Pro has", &adaptive[3..]),
        claim(
            "2,000: ARC, CAR, CART and CLOCK-Pro come to 100 % later: round 10",
            &in_round("2000", "10", &adaptive),
            above(ALL),
        ),
        claim("2,000: LRU-2 rises with the rounds: round 10 less 2", &[("", rises)], above(NONE)),
        claim(
            "2,000: and is much lower than LRU in all",
            &[("LRU-2", top(grid, "LRU-2", "2000"))],
            below(90.0),
        ),
        claim(
            "2,000: 2Q, LIRS and FBR have 0 %",
            &of(&["2Q-Simple", "2Q-Full", "LIRS", "FBR"], "2000"),
            below(NONE),
        ),
        claim("2,000: LRFU has 0 %", &of(&zero[3..4], "2000"), below(NONE)),
        claim(
            "4,000: 2Q-Full, LIRS, LRFU and LRU-2 have 100 % in the end",
            &of(&["2Q-Full", "LIRS", "LRFU", "LRU-2"], "4000"),
            above(ALL),
        ),
        claim("4,000: FBR has 100 % in the end", &of(&["FBR"], "4000"), above(ALL)),
        claim("4,000: 2Q-Simple does not", &simple("4000"), below(NONE)),
        claim("6,000: 2Q-Simple has 0 %", &simple("6000"), below(NONE)),
        claim("7,000: 2Q-Simple has 100 %", &simple("7000"), above(ALL)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::said::twice;
    use super::*;

    /// Policies that hit in loops.
    const HIT: [&str; 5] = ["2Q-Full", "LIRS", "LRFU", "LRU-2", "CLOCK-Pro"];

    fn grid(rows: &[(&str, &str, u64, f64)]) -> Grid {
        let mut table = Table::new(["policy", "pool", "round", "hit_ratio"]);
        for (policy, pool, round, hit) in rows {
            table.rows.push(vec![(*policy).into(), (*pool).into(), (*round).into(), (*hit).into()]);
        }
        Grid::of(&twice(&table), &["policy", "pool", "round"], "hit_ratio")
    }

    fn verdict(claims: &[Claim], says: &str) -> Option<bool> {
        let found: Vec<_> = claims.iter().filter(|claim| claim.says.contains(says)).collect();
        assert_eq!(found.len(), 1, "{says}");
        found[0].holds
    }

    #[test]
    fn each_sentence_on_large_loops_can_hold_and_fail() {
        let his = |lrfu: f64, lru_2: f64| {
            let mut rows = Vec::new();
            for round in 1..=10 {
                for policy in MISS.iter().chain(&HIT) {
                    rows.push((*policy, "used", round, 0.0));
                }
                rows.extend(MISS.map(|policy| (policy, "clean", round, 0.0)));
                rows.extend(["LIRS", "CLOCK-Pro"].map(|policy| (policy, "clean", round, 99.0)));
                rows.push(("2Q-Full", "clean", round, 95.0));
                rows.push(("LRFU", "clean", round, lrfu));
                let odd = if round % 2 == 0 { lru_2 } else { 100.0 - lru_2 };
                rows.push(("LRU-2", "clean", round, odd));
            }
            larger_claims(&grid(&rows))
        };
        assert!(his(80.0, 70.0).iter().all(|claim| claim.holds == Some(true)));
        let other = his(0.0, 50.0);
        assert_eq!(verdict(&other, "LRFU hits"), Some(false));
        assert_eq!(verdict(&other, "LRFU is at its peak"), Some(false));
        assert_eq!(verdict(&other, "LRU-2 fluctuates"), Some(false));
        assert_eq!(verdict(&other, "100 % together"), Some(true));
        let high = his(98.0, 99.5);
        assert_eq!(verdict(&high, "the peaks of LIRS"), Some(false));
        assert_eq!(verdict(&high, "that of 2Q-Full"), Some(false));
        // Every row is reversed.
        let rows: Vec<_> = (1..=10)
            .flat_map(|round| {
                let all = MISS.iter().chain(&HIT);
                all.flat_map(move |policy| {
                    let hit = if HIT.contains(policy) { 0.0 } else { 5.0 };
                    let moving = if *policy == "LIRS" { round as f64 * 1e-4 } else { hit };
                    [(*policy, "clean", round, moving.max(hit)), (*policy, "used", round, 1.0)]
                })
            })
            .collect();
        let none = larger_claims(&grid(&rows));
        for says in [
            "eight policies hit nothing: ",
            "2Q-Full, LIRS and CLOCK-Pro hit",
            "LRU-2 hits",
            "used pool",
            "100 %",
        ] {
            assert_eq!(verdict(&none, says), Some(false), "{says}");
        }
        assert!(larger_claims(&grid(&[])).iter().all(|claim| claim.holds.is_none()));
    }

    #[test]
    fn each_sentence_on_small_loops_can_hold_and_fail() {
        let all = [MISS.as_slice(), HIT.as_slice()].concat();
        let made = |hit: &dyn Fn(&str, &str, u64) -> f64| {
            let mut rows = Vec::new();
            for size in ["2000", "4000", "6000", "7000", "2000 after Zipf 0"] {
                for round in 1..=10 {
                    rows.extend(all.iter().map(|p| (*p, size, round, hit(p, size, round))));
                }
            }
            smaller_claims(&grid(&rows))
        };
        let his = made(&|policy, size, round| match (policy, size) {
            ("2Q-Simple", "7000") => 100.0,
            ("2Q-Simple", _) => 0.0,
            ("2Q-Full" | "LIRS" | "LRFU" | "FBR", "2000") => 0.0,
            ("LRU-2", "2000") => round as f64,
            ("ARC" | "CAR" | "CART" | "CLOCK-Pro", _) if round == 2 => 50.0,
            _ => 100.0,
        });
        assert!(his.iter().all(|claim| claim.holds == Some(true)), "{his:?}");
        let other = made(&|policy, size, round| match (policy, size) {
            ("2Q-Simple", "7000") => 0.0,
            ("2Q-Simple", _) | ("ARC" | "CAR" | "CART" | "CLOCK-Pro", "2000") if round == 2 => {
                100.0
            }
            ("ARC" | "CAR" | "CART" | "CLOCK-Pro", _) => 1.0,
            ("2Q-Simple", _) => 3.0,
            ("LRU-2", "2000") => 95.0,
            ("LRU-2" | "LRFU" | "LIRS" | "2Q-Full" | "FBR", "4000") => 0.0,
            ("LRU-2" | "LRFU" | "LIRS" | "2Q-Full" | "FBR", _) => 7.0,
            _ => 0.0,
        });
        assert!(other.iter().all(|claim| claim.holds == Some(false)), "{other:?}");
    }
}
