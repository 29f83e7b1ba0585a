//! Definition of a stalled policy.
//!
//! Gilbert found that MRU and the list of LRU-K stall his engine in pools smaller than the data,
//! and that FILO does not work in small ones (gilbert 1.3.4). In these policies a page that was
//! just loaded is the next victim, so operations load their own path again and again. Here no
//! operation starves: after some attempts the engine's starvation guard holds its pages. A stall
//! is therefore a crawl, and only numbers distinguish it from a run. Its misses distinguish it
//! from a policy that is only slow, such as one with a contended lock.

use millpond_lab::table::{Table, Value};

/// Misses per transaction, over RANDOM's in the same pool, above which a policy fails to keep the
/// pages that operations need.
pub const MISSES_OVER_RANDOM: f64 = 10.0;
/// Transactions per second, over RANDOM's in the same pool, below which a policy is stalled that
/// also has twice RANDOM's misses.
pub const PACE_OF_RANDOM: f64 = 0.1;
/// Minimum misses per transaction of a stall.
pub const MISSES_LEAST: f64 = 1.0;

/// Definition of a stalled policy, for a page.
pub const MEANS: &str = "Stalled means: no transaction ended in the cell's time, or the pool \
     had no frame to give, or an operation did not have its pages together in a thousand \
     attempts, or a transaction had more than ten times RANDOM's misses in the same pool and \
     repetition (and one at least), or there were fewer than a tenth of RANDOM's transactions per \
     second with more than twice its misses. The pool holds pages for an operation that cannot get its path \
     together, so that what would stand still crawls, except where policies run as stated: there \
     nothing is held.";

/// Speed and misses of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Pace {
    /// `true` if the run was broken off, because the pool had no free frame or an operation
    /// starved.
    pub was_broken_off: bool,
    /// Number of completed transactions.
    pub transactions: f64,
    /// Transactions per second.
    pub throughput_per_s: f64,
    /// Misses per transaction.
    pub misses_per_tx: f64,
}

impl Pace {
    /// Returns `true` if the run counts as stalled beside RANDOM in the same pool, if RANDOM ran.
    pub fn is_stalled(&self, random: Option<&Pace>) -> bool {
        if self.was_broken_off || self.transactions == 0.0 {
            return true;
        }
        let Some(random) = random.filter(|random| random.transactions > 0.0) else {
            return false;
        };
        if self.misses_per_tx < MISSES_LEAST {
            return false;
        }
        let is_slow = self.throughput_per_s < PACE_OF_RANDOM * random.throughput_per_s;
        self.misses_per_tx > MISSES_OVER_RANDOM * random.misses_per_tx
            || (is_slow && self.misses_per_tx > 2.0 * random.misses_per_tx)
    }

    fn of(table: &Table, row: usize) -> Pace {
        let number = |name| table.get(row, name).and_then(Value::number).unwrap_or(0.0);
        Pace {
            was_broken_off: ["full", "starved"]
                .iter()
                .any(|end| table.get(row, "end") == Some(&(*end).into())),
            transactions: number("transactions"),
            throughput_per_s: number("throughput_per_s"),
            misses_per_tx: number("misses_per_tx"),
        }
    }
}

/// Returns, for each row of a table, `true` if it is stalled. A row is compared with the row of
/// equal values in `same` that has `random` in the column `policy`.
pub fn stalled_rows(table: &Table, same: &[&str], policy: &str, random: &str) -> Vec<bool> {
    let place = |row: usize| -> Vec<String> {
        let text = |name: &&str| table.get(row, name).map(Value::to_string).unwrap_or_default();
        same.iter().map(text).collect()
    };
    let all = 0..table.rows.len();
    let randoms: Vec<(Vec<String>, Pace)> = all
        .clone()
        .filter(|row| table.get(*row, policy) == Some(&random.into()))
        .map(|row| (place(row), Pace::of(table, row)))
        .collect();
    let is_stalled = |row| {
        let here = place(row);
        let beside = randoms.iter().find(|(there, _)| *there == here).map(|(_, pace)| pace);
        Pace::of(table, row).is_stalled(beside)
    };
    all.map(is_stalled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(throughput_per_s: f64, misses_per_tx: f64) -> Pace {
        Pace { was_broken_off: false, transactions: 100.0, throughput_per_s, misses_per_tx }
    }

    #[test]
    fn a_crawl_is_told_from_a_run_and_from_waiting_for_a_lock() {
        let random = pace(1000.0, 4.0);
        let is_stalled = |pace: Pace| pace.is_stalled(Some(&random));
        assert!(!is_stalled(random), "RANDOM itself");
        assert!(is_stalled(pace(900.0, 41.0)) && !is_stalled(pace(900.0, 39.0)), "misses alone");
        assert!(is_stalled(pace(99.0, 9.0)) && !is_stalled(pace(101.0, 9.0)), "pace and misses");
        assert!(!is_stalled(pace(50.0, 4.0)), "slow without misses: a lock");
        let none = Pace { transactions: 0.0, ..pace(0.0, 0.0) };
        assert!(is_stalled(none) && none.is_stalled(None), "nothing ended");
        assert!(is_stalled(Pace { was_broken_off: true, ..random }), "no frame");
    }

    #[test]
    fn hardly_any_misses_are_no_stall_and_nothing_is_said_without_random() {
        assert!(!pace(1.0, 0.9).is_stalled(Some(&pace(1000.0, 0.01))));
        assert!(pace(1.0, 1.1).is_stalled(Some(&pace(1000.0, 0.01))));
        assert!(!pace(0.001, 1e6).is_stalled(None));
        let broken = Pace { was_broken_off: true, ..Pace::default() };
        assert!(!pace(1.0, 1e6).is_stalled(Some(&broken)), "RANDOM failed as well");
    }

    #[test]
    fn rows_are_compared_with_random_in_the_same_pool_and_repetition() {
        let columns = [
            "percent",
            "repetition",
            "policy",
            "end",
            "transactions",
            "throughput_per_s",
            "misses_per_tx",
        ];
        let mut table = Table::new(columns);
        let rows = [
            (1.0, 1u64, "mru", "ran", 90.0),
            (1.0, 1, "random", "ran", 5.0),
            (5.0, 1, "random", "ran", 20.0),
            (5.0, 1, "mru", "ran", 90.0),
            (1.0, 2, "mru", "full", 0.0),
            (5.0, 1, "filo", "starved", 0.0),
            (1.0, 2, "random", "ran", 5.0),
        ];
        for (percent, repetition, policy, end, misses) in rows {
            let row = [percent.into(), repetition.into(), policy.into(), end.into()];
            let measured = [10.0.into(), 100.0.into(), misses.into()];
            table.rows.push(row.into_iter().chain(measured).collect());
        }
        let stalled = stalled_rows(&table, &["percent", "repetition"], "policy", "random");
        assert_eq!(stalled, [true, false, false, false, true, true, false]);
    }
}
