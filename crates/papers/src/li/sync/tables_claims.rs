//! Claims of the thesis about tables 4.1 and 4.2, beside our results.

use super::systems::{ARRAY, DISK};
use crate::li::places::{Place, Places};
use millpond_lab::interval::Interval;
use millpond_lab::report::Claim;
use millpond_lab::table::Table;
use millpond_lab::verdict::{Bounds, Named, above, at_least, below, between, claim_named};

const RULES: [&str; 3] = ["org", "rec", "range"];

/// Tolerance, in points, of a ratio that should be his.
const NEAR: f64 = 0.05;

/// Columns that the sentences concern.
pub(super) struct Columns {
    per_second: Places,
    written_per_second: Places,
    service: Places,
    utilisation: Places,
    read: Places,
    written: Places,
}

impl Columns {
    pub fn of(rows: &Table) -> Columns {
        let of = |column| Places::of(rows, column);
        Columns {
            per_second: of("per_second"),
            written_per_second: of("written_per_second"),
            service: of("service_ms"),
            utilisation: of("utilisation"),
            read: of("read_sectors"),
            written: of("written_sectors"),
        }
    }
}

/// Returns bounds of some points around a ratio of his.
fn near(ratio: f64) -> Bounds {
    between(ratio - NEAR, ratio + NEAR)
}

/// Returns ratios of systems at a place.
fn ratios(places: &Places, at: Place<'_>, pairs: &[(&str, &str)]) -> Named {
    let of = |(above, below): &(&str, &str)| {
        (format!("{above}/{below}"), places.ratio(at, above, below))
    };
    pairs.iter().map(of).collect()
}

pub(super) fn claims(columns: &Columns) -> Vec<Claim> {
    let mut all = on_disk(columns);
    all.extend(on_array(columns));
    all
}

fn is_busy(columns: &Columns, says: &str, at: Place<'_>) -> Claim {
    let of = |rule: &str| (rule.to_string(), columns.utilisation.value(at, rule));
    claim_named(says, &RULES.map(of).to_vec(), above(0.9))
}

fn on_disk(columns: &Columns) -> Vec<Claim> {
    let c = columns;
    vec![
        claim_named(
            "t 4.1: rec and nio have over 60 % more transactions than org",
            &ratios(&c.per_second, DISK, &[("rec", "org"), ("range", "org")]),
            above(1.6),
        ),
        claim_named(
            "t 4.1: rec has more than nio",
            &ratios(&c.per_second, DISK, &[("rec", "range")]),
            above(1.0),
        ),
        claim_named(
            "t 4.1: by 6.3 % (here: within 5 points)",
            &ratios(&c.per_second, DISK, &[("rec", "range")]),
            near(1.063),
        ),
        is_busy(c, "t 4.1: in all three the disk is busy for over 90 % of the time", DISK),
        claim_named(
            "t 4.1: all three read alike for a transaction (here: within a tenth of org)",
            &ratios(&c.read, DISK, &[("rec", "org"), ("range", "org")]),
            between(0.9, 1.1),
        ),
        c.written.apart(
            "t 4.1: nio writes the fewest sectors for a transaction",
            DISK,
            &["range"],
            &["org", "rec"],
            below(1.0),
        ),
        claim_named(
            "t 4.1: 21 % fewer than org (here: within 5 points)",
            &ratios(&c.written, DISK, &[("range", "org")]),
            near(0.79),
        ),
        c.service.apart(
            "t 4.1: rec has the shortest service time",
            DISK,
            &["rec"],
            &["org", "range"],
            below(1.0),
        ),
        c.written_per_second.apart(
            "t 4.1: it writes many more sectors a second than the others (here: over a fifth more)",
            DISK,
            &["rec"],
            &["org", "range"],
            above(1.2),
        ),
    ]
}

/// Returns one system's service time on the array over that on the disk.
fn shorter(columns: &Columns, rule: &str) -> (String, Option<Interval>) {
    (format!("{rule} on the array over the disk"), columns.service.moved(rule, ARRAY, DISK))
}

fn on_array(columns: &Columns) -> Vec<Claim> {
    let c = columns;
    vec![
        is_busy(c, "t 4.2: in all three the array is busy for over 90 % of the time", ARRAY),
        claim_named(
            "t 4.2: service times are much shorter than on one disk (here: by over a quarter)",
            &RULES.map(|rule| shorter(c, rule)).to_vec(),
            below(0.75),
        ),
        claim_named(
            "t 4.2: that of rec is no longer shorter than that of nio",
            &ratios(&c.service, ARRAY, &[("rec", "range")]),
            at_least(1.0),
        ),
        c.written.apart(
            "t 4.2: nio writes the fewest sectors for a transaction",
            ARRAY,
            &["range"],
            &["org", "rec"],
            below(1.0),
        ),
        claim_named(
            "t 4.2: 23 % fewer than org (here: within 5 points)",
            &ratios(&c.written, ARRAY, &[("range", "org")]),
            near(0.77),
        ),
        claim_named(
            "t 4.2: nio has more transactions than rec",
            &ratios(&c.per_second, ARRAY, &[("range", "rec")]),
            above(1.0),
        ),
        claim_named(
            "t 4.2: by 18.3 % (here: within 5 points)",
            &ratios(&c.per_second, ARRAY, &[("range", "rec")]),
            near(1.183),
        ),
        claim_named(
            "t 4.2: and 27 % more than org (here: within 5 points)",
            &ratios(&c.per_second, ARRAY, &[("range", "org")]),
            near(1.27),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::li::places::made_up;

    /// Makes values of org, rec and range on the disk and on the array.
    fn places(disk: [f64; 3], array: [f64; 3]) -> Places {
        let mut values = Vec::new();
        for (at, of) in [(DISK, disk), (ARRAY, array)] {
            for (rule, value) in RULES.iter().zip(of) {
                values.push((at, *rule, value));
            }
        }
        Places::of(&made_up("v", &values), "v")
    }

    fn verdicts(columns: &Columns) -> Vec<&'static str> {
        claims(columns).iter().map(Claim::verdict).collect()
    }

    /// Returns his tables.
    fn his() -> Columns {
        Columns {
            per_second: places([1134.2, 1936.87, 1822.17], [2511.2, 2698.83, 3194.03]),
            written_per_second: places([2178.24, 3740.54, 2762.89], [4738.52, 5164.61, 4641.97]),
            service: places([3.57, 2.23, 2.41], [1.63, 1.60, 1.49]),
            utilisation: places([0.9677, 0.9835, 0.926], [0.9362, 0.9694, 0.9737]),
            read: places([145.8, 136.2, 137.0], [127.2, 125.6, 131.6]),
            written: places([115.2, 115.9, 91.0], [113.2, 114.8, 87.2]),
        }
    }

    #[test]
    fn his_own_tables_say_yes() {
        assert_eq!(verdicts(&his()), ["yes"; 17]);
    }

    #[test]
    fn each_sentence_can_be_contradicted() {
        let columns = Columns {
            per_second: places([100.0, 150.0, 160.0], [100.0, 120.0, 110.0]),
            written_per_second: places([100.0, 110.0, 105.0], [1.0, 1.0, 1.0]),
            service: places([2.0, 2.5, 2.4], [1.9, 2.0, 2.3]),
            utilisation: places([0.95, 0.85, 0.95], [0.8, 0.95, 0.95]),
            read: places([100.0, 115.0, 100.0], [1.0, 1.0, 1.0]),
            written: places([100.0, 90.0, 95.0], [100.0, 90.0, 95.0]),
        };
        assert_eq!(verdicts(&columns), ["no"; 17]);
        // Values slightly off his ratios, in the same direction.
        let beside = Columns {
            per_second: places([100.0, 190.0, 165.0], [100.0, 110.0, 120.0]),
            written: places([100.0, 100.0, 70.0], [100.0, 100.0, 70.0]),
            ..his()
        };
        let got = verdicts(&beside);
        assert_eq!([got[1], got[2], got[6]], ["yes", "no", "no"]);
        assert_eq!([got[13], got[14], got[15], got[16]], ["no", "yes", "no", "no"]);
        let empty = Columns::of(&made_up("v", &[]));
        assert!(claims(&empty).iter().all(|claim| claim.holds.is_none()));
    }
}
