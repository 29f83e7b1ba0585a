//! Claims of chapter 3 about its figures, beside our results.

use super::places::{Place, Places};
use millpond_lab::report::Claim;
use millpond_lab::table::Table;
use millpond_lab::verdict::{Bounds, Named, above, below, between, claim_named, listed};

const BASE: Place<'static> = Place::of("300k_400", "120");
const LARGE: Place<'static> = Place::of("300k_400", "300");
const OBLIVIOUS: [&str; 3] = ["t2-rand", "t2-lru", "t2-mq"];
const AWARE: [&str; 3] = ["lru-hints", "mq-hints", "tq"];
const ONLINE: [&str; 6] = ["t2-rand", "t2-lru", "lru-hints", "t2-mq", "mq-hints", "tq"];

/// Bounds of ratios that count as alike: within a tenth of each other.
const ALIKE: Bounds = between(0.9, 1.0 / 0.9);

/// Returns the ratios of each policy over each later one.
fn pairs(places: &Places, place: Place<'_>, policies: &[&str]) -> Named {
    let mut pairs = Vec::new();
    for (at, policy) in policies.iter().enumerate() {
        pairs.extend(places.over(place, policy, &policies[at + 1..]));
    }
    pairs
}

/// Judges figure 3.2: trace 300_400, a second tier of 120K pages.
pub(super) fn at_one_size(places: &Places) -> Vec<Claim> {
    let apart = |says: &str, high: &[&str], low: &[&str], least: f64| {
        places.apart(says, BASE, high, low, above(least))
    };
    vec![
        apart(
            "3.2: LRU has the poorest read hit ratio",
            &["t2-rand", "lru-hints", "t2-mq", "mq-hints", "tq", "t2-opt"],
            &["t2-lru"],
            1.0,
        ),
        apart(
            "3.2: LRU + Hints has more than three times that of LRU",
            &["lru-hints"],
            &["t2-lru"],
            3.0,
        ),
        apart(
            "3.2: LRU + Hints is below all others, RAND among them",
            &["t2-rand", "t2-mq", "mq-hints", "tq"],
            &["lru-hints"],
            1.0,
        ),
        apart("3.2: MQ is better than LRU and RAND", &["t2-mq"], &["t2-lru", "t2-rand"], 1.0),
        apart("3.2: MQ + Hints is better than MQ", &["mq-hints"], &["t2-mq"], 1.0),
        apart(
            "3.2: TQ is the best that does not know the future",
            &["tq"],
            &["t2-rand", "t2-lru", "lru-hints", "t2-mq", "mq-hints"],
            1.0,
        ),
        places.apart(
            "3.2: TQ has nearly double the ratio of MQ (here: 1.7 to 2.05 times)",
            BASE,
            &["tq"],
            &["t2-mq"],
            between(1.7, 2.05),
        ),
        apart("3.2: TQ has more than half of OPT's ratio", &["tq"], &["t2-opt"], 0.5),
    ]
}

/// Judges figure 3.3: trace 300_400 over sizes.
pub(super) fn over_sizes(places: &Places) -> Vec<Claim> {
    let smaller = [60, 120, 180, 240].map(|size| size.to_string());
    let smaller: Vec<Place<'_>> =
        smaller.iter().map(|size| Place::of("300k_400", size.as_str())).collect();
    let fades = vec![
        ("at 300K over 240K".to_string(), {
            places.change("tq", "t2-mq", LARGE, Place::of("300k_400", "240"))
        }),
        ("over 120K".to_string(), places.change("tq", "t2-mq", LARGE, BASE)),
    ];
    let shown: Vec<Named> = [&smaller[..], &[LARGE]]
        .concat()
        .iter()
        .map(|place| places.ratios(&[*place], "tq", "t2-mq"))
        .collect();
    let shown: Vec<_> = shown.iter().flatten().map(|(name, v)| (name.as_str(), *v)).collect();
    let falls = |policy: &str| {
        let small = Place::of("300k_400", "60");
        (format!("{policy} beside tq"), places.change(policy, "tq", small, LARGE))
    };
    vec![
        claim_named(
            "3.3: TQ is ahead of MQ at all sizes below 300K pages",
            &places.ratios(&smaller, "tq", "t2-mq"),
            above(1.0),
        ),
        Claim {
            here: listed(&shown),
            ..claim_named("3.3: at 300K pages its lead over MQ is less", &fades, below(1.0))
        },
        places.apart(
            "3.3: at 300K pages hints gain MQ next to nothing (here: under 5 %)",
            LARGE,
            &["mq-hints"],
            &["t2-mq"],
            between(1.0 / 1.05, 1.05),
        ),
        places.apart(
            "3.3: at 300K pages LRU + Hints is much better than LRU and RAND (here: over 20 %)",
            LARGE,
            &["lru-hints"],
            &["t2-lru", "t2-rand"],
            above(1.2),
        ),
        places.apart(
            "3.3: and like TQ, MQ and MQ + Hints (here: within a tenth)",
            LARGE,
            &["lru-hints"],
            &["tq", "t2-mq", "mq-hints"],
            ALIKE,
        ),
        claim_named(
            "3.3: from 300K to 60K pages LRU + Hints and LRU lose more than TQ",
            &vec![falls("lru-hints"), falls("t2-lru")],
            below(1.0),
        ),
    ]
}

/// Judges figure 3.4: pools of 10, 50 and 90 %.
pub(super) fn over_pools(places: &Places, traces: [&str; 3]) -> Vec<Claim> {
    let [small, middle, large] = traces.map(|trace| Place::of(trace, "120"));
    let harder: Named = ONLINE
        .iter()
        .flat_map(|policy| {
            let step = |large: Place<'_>, small: Place<'_>| {
                let name = format!("{policy}, {} less {}", large.trace, small.trace);
                (name, places.more(policy, large, small))
            };
            [step(middle, small), step(large, middle)]
        })
        .collect();
    vec![
        claim_named(
            "3.4: the larger the pool, the lower is every policy's read hit ratio",
            &harder,
            below(0.0),
        ),
        places.apart(
            "3.4: below the pool of 540K TQ has more than five times the best ratio without hints",
            large,
            &["tq"],
            &OBLIVIOUS,
            above(5.0),
        ),
        places.apart(
            "3.4: there all are far below OPT (here: under half)",
            large,
            &ONLINE,
            &["t2-opt"],
            below(0.5),
        ),
        Claim {
            here: {
                let of = |policy: &&'static str| (*policy, places.value(small, policy));
                listed(&ONLINE.iter().map(of).collect::<Vec<_>>())
            },
            ..claim_named(
                "3.4: below the pool of 60K all are alike (here: each pair within a third)",
                &pairs(places, small, &ONLINE),
                between(0.75, 1.0 / 0.75),
            )
        },
    ]
}

/// Judges the mix of requests of the short trace below the large pool, beside table 3.2.
pub(super) fn short_mix(rows: &Table, trace: &str) -> Vec<Claim> {
    let near = |says: &str, column: &str, printed: f64| {
        let value = Places::of(rows, column).value(Place::of(trace, "120"), "t2-opt");
        claim_named(says, &vec![(trace.to_string(), value)], between(printed - 0.1, printed + 0.1))
    };
    vec![
        near("3.2: READs below the pool of 540K: 14 % (within 10 points)", "read_share", 0.143),
        near("3.2: REPLACE writes there: 36 %", "replace_share", 0.358),
        near("3.2: RECOV writes there: 50 %", "recov_share", 0.499),
    ]
}

/// Judges figure 3.5: softmax 50, 400, 4000.
pub(super) fn over_gaps(places: &Places) -> Vec<Claim> {
    let [tight, usual, wide] =
        ["300k_50", "300k_400", "300k_4000"].map(|trace| Place::of(trace, "120"));
    let same: Named = ONLINE
        .iter()
        .map(|policy| (policy.to_string(), places.moved(policy, wide, usual)))
        .collect();
    vec![
        claim_named(
            "3.5: from softmax 400 to 4000 no policy's ratio changes much (here: by a tenth)",
            &same,
            ALIKE,
        ),
        Claim {
            here: {
                let of = |policy: &&'static str| (*policy, places.value(tight, policy));
                listed(&AWARE.iter().map(of).collect::<Vec<_>>())
            },
            ..claim_named(
                "3.5: at softmax 50 all policies with hints are alike (here: within a tenth)",
                &pairs(places, tight, &AWARE),
                ALIKE,
            )
        },
        places.apart("3.5: there they are better than MQ", tight, &AWARE, &["t2-mq"], above(1.0)),
        places.apart(
            "3.5: and much better than LRU and RAND (here: over half as much again)",
            tight,
            &AWARE,
            &["t2-lru", "t2-rand"],
            above(1.5),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::places::made_up;
    use super::*;

    type Said = fn(&Places) -> Vec<Claim>;

    /// Returns values of all policies at a place, in the order of figure 3.2.
    fn at<'a>(place: Place<'a>, values: [f64; 7]) -> Vec<(Place<'a>, &'static str, f64)> {
        let all = ["t2-rand", "t2-lru", "lru-hints", "t2-mq", "mq-hints", "tq", "t2-opt"];
        all.into_iter().zip(values).map(|(policy, value)| (place, policy, value)).collect()
    }

    fn verdicts(said: Said, values: &[Vec<(Place<'_>, &str, f64)>]) -> Vec<&'static str> {
        let rows = made_up("read_hit_ratio", &values.concat());
        let claims = said(&Places::of(&rows, "read_hit_ratio"));
        claims.iter().map(Claim::verdict).collect()
    }

    #[test]
    fn each_sentence_of_3_2_is_decided_on_both_sides() {
        let his = at(BASE, [0.10, 0.02, 0.08, 0.15, 0.20, 0.29, 0.50]);
        assert_eq!(verdicts(at_one_size, &[his]), ["yes"; 8]);
        let other = at(BASE, [0.10, 0.11, 0.25, 0.09, 0.08, 0.20, 0.50]);
        assert_eq!(verdicts(at_one_size, &[other]), ["no"; 8]);
        assert_eq!(verdicts(at_one_size, &[]), ["open"; 8]);
    }

    #[test]
    fn each_sentence_of_3_3_is_decided_on_both_sides() {
        let place = |size| Place::of("300k_400", size);
        let early = |size| at(place(size), [0.10, 0.02, 0.03, 0.15, 0.20, 0.29, 0.50]);
        let sizes = ["60", "120", "180", "240"];
        let mut his: Vec<_> = sizes.map(early).to_vec();
        his.push(at(LARGE, [0.30, 0.30, 0.58, 0.58, 0.585, 0.6, 0.7]));
        assert_eq!(verdicts(over_sizes, &his), ["yes"; 6]);
        let low = |size| at(place(size), [0.1, 0.29, 0.29, 0.31, 0.2, 0.29, 0.5]);
        let mut other: Vec<_> = sizes.map(low).to_vec();
        other.push(at(LARGE, [0.30, 0.28, 0.3, 0.3, 0.4, 0.6, 0.7]));
        assert_eq!(verdicts(over_sizes, &other), ["no"; 6]);
        assert_eq!(verdicts(over_sizes, &[]), ["open"; 6]);
    }

    #[test]
    fn each_sentence_of_3_4_is_decided_on_both_sides() {
        let place = |trace| Place::of(trace, "120");
        let his = [
            at(place("60k_400"), [0.50, 0.48, 0.49, 0.52, 0.53, 0.55, 0.8]),
            at(place("300k_400"), [0.10, 0.02, 0.08, 0.15, 0.20, 0.29, 0.5]),
            at(place("540k_400"), [0.01, 0.01, 0.03, 0.01, 0.03, 0.08, 0.3]),
        ];
        assert_eq!(verdicts(his_pools, &his), ["yes"; 4]);
        let other = [
            at(place("60k_400"), [0.10, 0.48, 0.49, 0.52, 0.53, 0.55, 0.8]),
            at(place("300k_400"), [0.10, 0.02, 0.08, 0.15, 0.20, 0.29, 0.5]),
            at(place("540k_400"), [0.20, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3]),
        ];
        assert_eq!(verdicts(his_pools, &other), ["no"; 4]);
        assert_eq!(verdicts(his_pools, &[]), ["open"; 4]);
    }

    fn his_pools(places: &Places) -> Vec<Claim> {
        over_pools(places, ["60k_400", "300k_400", "540k_400"])
    }

    #[test]
    fn the_mix_of_a_short_trace_is_near_table_3_2_or_not() {
        let verdict = |share: f64, at: usize| {
            let column = ["read_share", "replace_share", "recov_share"][at];
            let rows = made_up(column, &[(Place::of("t", "120"), "t2-opt", share)]);
            short_mix(&rows, "t")[at].verdict()
        };
        let said = [verdict(0.15, 0), verdict(0.37, 1), verdict(0.45, 2)];
        assert_eq!(said, ["yes"; 3]);
        assert_eq!([verdict(0.40, 0), verdict(0.52, 1), verdict(0.30, 2)], ["no"; 3]);
        assert!(short_mix(&made_up("total", &[]), "t").iter().all(|c| c.holds.is_none()));
    }

    #[test]
    fn each_sentence_of_3_5_is_decided_on_both_sides() {
        let place = |trace| Place::of(trace, "120");
        let usual = [0.10, 0.02, 0.08, 0.15, 0.20, 0.29, 0.5];
        let his = [
            at(place("300k_50"), [0.10, 0.05, 0.3, 0.2, 0.3, 0.31, 0.5]),
            at(place("300k_400"), usual),
            at(place("300k_4000"), usual),
        ];
        assert_eq!(verdicts(over_gaps, &his), ["yes"; 4]);
        let other = [
            at(place("300k_50"), [0.10, 0.05, 0.05, 0.2, 0.1, 0.31, 0.5]),
            at(place("300k_400"), usual),
            at(place("300k_4000"), [0.10, 0.02, 0.08, 0.20, 0.20, 0.29, 0.5]),
        ];
        assert_eq!(verdicts(over_gaps, &other), ["no"; 4]);
        assert_eq!(verdicts(over_gaps, &[]), ["open"; 4]);
    }
}
