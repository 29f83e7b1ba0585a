//! Claims of the thesis about its traces, beside our results.

use super::printed::{COLUMNS, PRINTED};
use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::Claim;
use millpond_lab::table::Table;
use millpond_lab::verdict::{
    Bounds, Named, above, at_least, below, between, claim_named, claim_of, listed,
};

/// Tolerance, in points, of a share that should be about his.
const NEAR: f64 = 0.10;

const DB2_OF_5: [&str; 5] = ["60k_4000", "300k_4000", "540k_4000", "300k_40", "300k_400"];
const OF_3: [&str; 5] = ["60k_400", "300k_400", "540k_400", "300k_50", "300k_4000"];
const MYSQL: [&str; 4] = ["120mbuf", "240mbuf", "480mbuf", "960mbuf"];

struct Shares<'a>(&'a Table);

impl Shares<'_> {
    fn of(&self, trace: &str, column: &str) -> Option<Interval> {
        Grid::of(self.0, &["trace"], column).interval(&[trace])
    }

    /// Returns the differences between each trace and the next one.
    fn steps(&self, column: &str, traces: &[&str]) -> Named {
        let grid = Grid::of(self.0, &["trace"], column);
        let step = |pair: &[&str]| {
            let [more, less] = [pair[0], pair[1]];
            (format!("{more} over {less}"), grid.difference(&[more], &[less]))
        };
        traces.windows(2).map(step).collect()
    }

    fn falls(&self, says: &str, column: &str, traces: &[&str]) -> Claim {
        let values: Vec<_> = traces.iter().map(|trace| (*trace, self.of(trace, column))).collect();
        Claim {
            here: listed(&values),
            ..claim_named(says, &self.steps(column, traces), above(0.0))
        }
    }

    fn within(&self, says: &str, column: &str, traces: &[&str], bounds: Bounds) -> Claim {
        let of = |trace: &&str| ((*trace).to_string(), self.of(trace, column));
        claim_named(says, &traces.iter().map(of).collect(), bounds)
    }

    /// Claims that each trace's value is near the printed one.
    fn near(&self, says: &str, column: &str, traces: &[&str]) -> Claim {
        let at = COLUMNS.iter().position(|known| *known == column).unwrap_or_default();
        let printed = |trace: &str| {
            let row = PRINTED.iter().find(|(name, _)| *name == trace)?;
            row.1[at].map(|percent| percent / 100.0)
        };
        let mut tests = Vec::new();
        let mut values = Vec::new();
        for trace in traces {
            let Some(printed) = printed(trace) else { continue };
            let here = self.of(trace, column);
            tests.push((here, between(printed - NEAR, printed + NEAR)));
            values.push((*trace, here));
        }
        claim_of(says, listed(&values), &tests)
    }
}

pub(super) fn claims(rows: &Table) -> Vec<Claim> {
    let shares = Shares(rows);
    let mut all = mixes(&shares);
    all.extend(nexts(&shares));
    all
}

/// Judges tables 3.2 and 5.4.
fn mixes(shares: &Shares<'_>) -> Vec<Claim> {
    vec![
        shares.falls(
            "3.2: a larger pool sends a smaller share of READs",
            "read_share",
            &["60k_400", "300k_400", "540k_400"],
        ),
        shares.falls(
            "3.2: it sends a larger share of RECOV writes",
            "recov_share",
            &["540k_400", "300k_400", "60k_400"],
        ),
        shares.falls(
            "3.2: a smaller softmax sends more RECOV writes",
            "recov_share",
            &["300k_50", "300k_400", "300k_4000"],
        ),
        shares.within(
            "3.2: at softmax 4000 there are almost no RECOV writes (here: under 1 %)",
            "recov_share",
            &["300k_4000"],
            below(0.01),
        ),
        shares.within(
            "3.2: at softmax 50 almost three quarters are RECOV writes (here: 65 to 80 %)",
            "recov_share",
            &["300k_50"],
            between(0.65, 0.80),
        ),
        shares.within(
            "3.2: and there are no REPLACE writes (here: under 1 %)",
            "replace_share",
            &["300k_50"],
            below(0.01),
        ),
        shares.within(
            "3.2: SYNCH writes are rare: 0.08 % at most (here: under 0.1 %)",
            "synch_share",
            &OF_3,
            below(0.001),
        ),
        shares.near("3.2: the shares of READs, each within 10 points", "read_share", &OF_3),
        shares.near(
            "3.2: the shares of REPLACE writes, each within 10 points",
            "replace_share",
            &OF_3,
        ),
        shares.within(
            "5.4: at softmax 40 REPLACE writes are less than 1 %",
            "replace_share",
            &["300k_40"],
            below(0.01),
        ),
    ]
}

/// Judges tables 5.3 and 5.5.
fn nexts(shares: &Shares<'_>) -> Vec<Claim> {
    vec![
        shares.within(
            "5.5: in all five traces a write follows at least 63 % of the READs",
            "read_then_write",
            &DB2_OF_5,
            at_least(0.63),
        ),
        shares.near(
            "5.5: a write follows 83, 82, 63, 83 and 82 % of the READs, each within 10 points",
            "read_then_write",
            &DB2_OF_5,
        ),
        shares.near(
            "5.5: a READ follows 87, 45, 17 and 45 % of the REPLACE writes, each within 10 points",
            "replace_then_read",
            &DB2_OF_5,
        ),
        shares.falls(
            "5.5: the larger the pool, the fewer REPLACE writes a READ follows",
            "replace_then_read",
            &["60k_4000", "300k_4000", "540k_4000"],
        ),
        shares.within(
            "5.3: in MySQL's small pool a write seldom follows a READ (2.35 %; here: under 10 %)",
            "read_then_write",
            &["120mbuf"],
            below(0.10),
        ),
        shares.within(
            "5.3: in its pool of 24 % a READ seldom follows a REPLACE write (20.78 %; here: under \
             31 %)",
            "replace_then_read",
            &["240mbuf"],
            below(0.31),
        ),
        shares.falls(
            "5.3: the larger MySQL's pool, the more READs a write follows",
            "read_then_write",
            &MYSQL.iter().rev().copied().collect::<Vec<_>>(),
        ),
        shares.falls(
            "5.5: the predictions are better than in MySQL's traces of a like pool: a write \
             follows more READs",
            "read_then_write",
            &["300k_4000", "480mbuf"],
        ),
        shares.falls(
            "5.5: and a READ more REPLACE writes",
            "replace_then_read",
            &["300k_4000", "480mbuf"],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_lab::table::Value;

    /// Made-up traces, columns and shares.
    type Made = Vec<(&'static str, &'static str, f64)>;

    /// Makes rows of three slightly different repetitions.
    fn rows(shares: &[(&str, &str, f64)]) -> Table {
        let mut table = Table::new(["trace", "repetition"]);
        table.columns.extend(COLUMNS.iter().map(|name| (*name).to_string()));
        table.columns.push("synch_share".to_string());
        for (trace, column, share) in shares {
            for repetition in 1..=3u64 {
                let mut row = vec![Value::Empty; table.columns.len()];
                (row[0], row[1]) = ((*trace).into(), repetition.into());
                let at = table.columns.iter().position(|name| name == column).unwrap();
                row[at] = (share + repetition as f64 * 1e-5).into();
                table.rows.push(row);
            }
        }
        table
    }

    fn holds(table: &Table, begins: &str) -> Option<bool> {
        let claims = claims(table);
        claims.iter().find(|claim| claim.says.starts_with(begins)).unwrap().holds
    }

    #[test]
    fn each_sentence_is_decided_on_both_sides() {
        let sides: [(&str, Made, Made); 5] = [
            (
                "3.2: a larger pool sends a smaller",
                vec![
                    ("60k_400", "read_share", 0.5),
                    ("300k_400", "read_share", 0.4),
                    ("540k_400", "read_share", 0.2),
                ],
                vec![
                    ("60k_400", "read_share", 0.5),
                    ("300k_400", "read_share", 0.4),
                    ("540k_400", "read_share", 0.45),
                ],
            ),
            (
                "3.2: at softmax 50 almost",
                vec![("300k_50", "recov_share", 0.74)],
                vec![("300k_50", "recov_share", 0.6)],
            ),
            (
                "3.2: SYNCH",
                OF_3.iter().map(|trace| (*trace, "synch_share", 0.0002)).collect(),
                OF_3.iter().map(|trace| (*trace, "synch_share", 0.02)).collect(),
            ),
            (
                "5.5: in all five",
                DB2_OF_5.iter().map(|trace| (*trace, "read_then_write", 0.64)).collect(),
                DB2_OF_5.iter().map(|trace| (*trace, "read_then_write", 0.62)).collect(),
            ),
            (
                "5.5: and a READ more",
                vec![
                    ("300k_4000", "replace_then_read", 0.45),
                    ("480mbuf", "replace_then_read", 0.36),
                ],
                vec![
                    ("300k_4000", "replace_then_read", 0.3),
                    ("480mbuf", "replace_then_read", 0.36),
                ],
            ),
        ];
        for (begins, yes, no) in sides {
            assert_eq!(holds(&rows(&yes), begins), Some(true), "{begins}");
            assert_eq!(holds(&rows(&no), begins), Some(false), "{begins}");
            assert_eq!(holds(&rows(&[]), begins), None, "{begins}");
        }
    }

    #[test]
    fn what_he_prints_is_near_itself_and_not_near_something_else() {
        let mut printed = Vec::new();
        for (trace, of) in PRINTED {
            for (column, percent) in COLUMNS.iter().zip(of) {
                printed.extend(percent.map(|percent| (trace, *column, percent / 100.0)));
            }
        }
        let table = rows(&printed);
        for begins in ["3.2: the shares of READs", "5.5: a write follows 83", "5.5: a READ follows"]
        {
            assert_eq!(holds(&table, begins), Some(true), "{begins}");
        }
        // His own numbers confirm his sentences.
        let claims = claims(&table);
        let no: Vec<_> = claims.iter().filter(|claim| claim.holds == Some(false)).collect();
        assert!(no.is_empty(), "{no:?}");
        printed.iter_mut().for_each(|(_, _, share)| *share += 0.12);
        assert_eq!(holds(&rows(&printed), "5.5: a READ follows"), Some(false));
    }
}
