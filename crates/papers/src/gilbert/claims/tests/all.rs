//! The sentences about all policies.

use super::super::super::factors::LEAN;
use super::super::ranking::HIS;
use super::super::{misses, speed};
use super::sides::{Run, judged, pool, rows, run, sides};
use crate::live::sizes::{RANDOM, Sizes};

/// Makes runs of all his policies in a pool. Those in `named` have the given speed and miss
/// ratio, the others values between 90 and 110 and between 0.09 and 0.11.
fn all_in(percent: f64, named: &[(&str, f64, f64)]) -> Vec<Run> {
    let of = |(at, policy): (usize, &&str)| {
        let found = named.iter().find(|(name, ..)| name == policy);
        let step = at as f64 / HIS.len() as f64;
        let (speed, misses) =
            found.map_or((90.0 + 20.0 * step, 0.09 + 0.02 * step), |(_, s, m)| (*s, *m));
        run(percent, policy, speed, misses)
    };
    HIS.iter().enumerate().map(of).collect()
}

#[test]
fn lists_are_judged_by_what_they_lose_and_where() {
    let of = |percent, lists: f64, ks: [f64; 3]| {
        let lists = ["lru", "slru", "mru"].map(|list| (list, lists, 0.1));
        let ks = [("lru-k", ks[0]), ("lru-k(k=3)", ks[1]), ("lru-k(k=4)", ks[2])];
        let ks = ks.map(|(list, speed)| (list, speed, 0.1));
        all_in(percent, &[&lists[..], &ks, &[(RANDOM, 100.0, 0.1)]].concat())
    };
    let at = [60.0, 60.0, 60.0];
    let lasts = [12.0, 11.0, 11.0];
    let yes = [of(20.0, 60.0, at), of(100.0, 6.0, at), of(200.0, 6.0, lasts)].concat();
    let last = [140.0, 150.0, 150.0];
    let no = [of(20.0, 120.0, at), of(100.0, 60.0, at), of(200.0, 130.0, last)].concat();
    for says in [
        "in the largest pool, lists behind one latch",
        "there the lists of LRU and SLRU",
        "above 10 GB (70 %)",
        "up to there they are slower than most",
        "in the largest pool, the lists of LRU-K",
        "there that of LRU-2",
        "and yet almost 90 % slower",
    ] {
        sides(speed, says, &yes, &no);
    }
    let no = [of(20.0, 60.0, at), of(200.0, 90.0, at)].concat();
    sides(speed, "but what they lose is less there", &yes, &no);
}

#[test]
fn queues_and_counts_have_their_places() {
    let of = |fifo: f64, filo: f64, lfu: f64, lfuda: f64, lrd: f64| {
        [("fifo", fifo), ("filo", filo), ("lfu", lfu), ("lfuda", lfuda), ("lrd-v1", lrd)]
            .into_iter()
            .chain([("lrd-v2", lrd)])
            .map(|(policy, speed)| (policy, speed, 0.1))
            .collect::<Vec<_>>()
    };
    let drop = |fifo, filo| {
        let fifos = [run(3.5, "fifo", 100.0, 0.1), run(7.0, "fifo", fifo, 0.1)];
        [fifos, [run(140.0, "filo", 100.0, 0.1), run(175.0, "filo", filo, 0.1)]].concat()
    };
    let yes = [
        all_in(5.0, &of(98.0, 98.0, 50.0, 98.0, 49.0)),
        all_in(20.0, &of(98.0, 98.0, 50.0, 51.0, 49.0)),
        all_in(200.0, &of(200.0, 200.0, 200.0, 201.0, 199.0)),
        drop(50.0, 50.0),
    ]
    .concat();
    let no = [
        all_in(5.0, &of(200.0, 20.0, 200.0, 20.0, 30.0)),
        all_in(20.0, &of(200.0, 20.0, 200.0, 100.0, 130.0)),
        all_in(200.0, &of(20.0, 20.0, 20.0, 19.0, 30.0)),
        drop(150.0, 150.0),
    ]
    .concat();
    for says in [
        "FIFO and FILO are in the middle",
        "where (almost) nothing is evicted",
        "FIFO's throughput drops",
        "up to 1 GB (7 %) LFU",
        "LFUDA is in the middle there",
        "from 2 to 20 GB",
        "above, both are among the fastest",
        "LFUDA is always faster than LFU",
        "LRD is much like LFU",
        "it is slower than LFUDA",
    ] {
        sides(speed, says, &yes, &no);
    }
}

#[test]
fn stamps_and_clocks_have_their_places() {
    let of = |top: f64, ks: [f64; 3], dg: f64, lru: f64, gclock: f64| {
        let tops = [RANDOM, "sorting-lru", "clock", "zclock"].map(|one| (one, top));
        let ks = ["sorting-lru-k", "sorting-lru-k(k=3)", "sorting-lru-k(k=4)"]
            .into_iter()
            .zip(ks)
            .collect::<Vec<_>>();
        let rest = [("gclock-v1", gclock), ("gclock-v2", top - 1.0), ("lru", lru)];
        let dgs = [("dgclock-v1", dg), ("dgclock-v2", dg)];
        [&tops[..], &ks, &rest, &dgs]
            .concat()
            .into_iter()
            .map(|(policy, speed)| (policy, speed, 0.1))
            .collect::<Vec<_>>()
    };
    let mut yes = Vec::new();
    let mut no = Vec::new();
    for percent in [5.0, 20.0, 200.0] {
        yes.extend(all_in(percent, &of(130.0, [125.0, 120.0, 120.0], 125.0, 30.0, 128.0)));
        no.extend(all_in(percent, &of(70.0, [60.0, 65.0, 65.0], 200.0, 80.0, 90.0)));
    }
    let middle = |speed| {
        let at = |percent| {
            pool(percent, &[("clock", 100.0, 0.1), ("dgclock-v1", speed, 0.1)])
                .into_iter()
                .chain([run(percent, "dgclock-v2", speed, 0.1)])
        };
        at(28.0).chain(at(42.0)).collect::<Vec<_>>()
    };
    yes.extend(middle(180.0));
    no.extend(middle(120.0));
    for says in [
        "sorted time stamps are faster than the list",
        "sorted LRU-K is almost among the fastest",
        "but for the smallest pools",
        "RANDOM, sorted LRU, CLOCK",
        "with 4 and 6 GB",
        "in very small pools (1 GB, 7 %) all clocks",
        "where the data fit, CLOCK and ZCLOCK",
        "GCLOCK-V1 is slower than V2",
    ] {
        sides(speed, says, &yes, &no);
    }
    let apart = pool(
        20.0,
        &[
            ("zclock", 1.0, 0.1),
            ("gclock-v1", 1.0, 0.1),
            ("gclock-v2", 1.0, 0.1),
            ("dgclock-v1", 2.0, 0.1),
            ("dgclock-v2", 1.0, 0.1),
        ],
    );
    sides(speed, "both DGCLOCKs are equally fast", &yes, &apart);
}

#[test]
fn misses_have_their_places() {
    let few = ["lru", "sorting-lru-k", "sorting-lru-k(k=3)", "sorting-lru-k(k=4)", "gclock-v1"];
    let few = few.into_iter().chain(["lrd-v1", "lrd-v2"]);
    let low: Vec<_> = few.map(|one| (one, 100.0, 0.05)).collect();
    let high: Vec<_> = low.iter().map(|(one, speed, _)| (*one, *speed, 0.2)).collect();
    let filo =
        |misses: f64, of: &[(&'static str, f64, f64)]| [of, &[("filo", 100.0, misses)]].concat();
    let says = "in small pools (up to 1 GB, 7 %), the list of LRU";
    sides(misses, says, &all_in(5.0, &low), &all_in(5.0, &high));
    let says = "below 4 GB (28 %) FILO";
    sides(misses, says, &all_in(20.0, &filo(0.2, &[])), &all_in(20.0, &filo(0.01, &[])));
    let all: Vec<_> = HIS.iter().map(|one| (*one, 100.0, 0.1)).collect();
    let [near, far] = [0.104, 0.2].map(|filo| {
        let mut all = all.clone();
        all[3].2 = filo;
        all_in(20.0, &all)
    });
    sides(misses, "by some 4 %", &near, &far);
    let ends = |all: f64, lists: f64, queues: f64| {
        let of = |policy: &&'static str| match *policy {
            "lru" | "slru" | "mru" | "lru-k" | "lru-k(k=3)" | "lru-k(k=4)" => {
                (*policy, 100.0, lists)
            }
            "fifo" | "filo" => (*policy, 100.0, queues),
            other => (other, 100.0, all),
        };
        all_in(200.0, &HIS.iter().map(of).collect::<Vec<_>>())
    };
    let (yes, no) = (ends(0.001, 0.009, 0.0005), ends(0.003, 0.003, 0.02));
    for says in [
        "where the data fit, FIFO and FILO",
        "there most miss less than 0.2 %",
        "there lists behind one latch miss some 0.9 %",
    ] {
        sides(misses, says, &yes, &no);
    }
}

#[test]
fn policies_are_compared_by_misses() {
    let of = |ks: f64, stamps: f64, random: f64, lfuda: f64| {
        let named = [("sorting-lru-k", ks), ("sorting-lru-k(k=3)", 0.2)];
        let more = [("sorting-lru-k(k=4)", 0.2), ("sorting-lru", stamps)];
        let rest = [(RANDOM, random), ("lfu", 0.1), ("lfuda", lfuda)];
        [&named[..], &more, &rest]
            .concat()
            .into_iter()
            .map(|(policy, misses)| (policy, 100.0, misses))
            .collect::<Vec<_>>()
    };
    let both = |of: &[(&str, f64, f64)], loops: f64, lfuda: f64| {
        let mut runs = Vec::new();
        for percent in [5.0, 50.0] {
            let mut all = all_in(percent, of);
            all.push(run(percent, "loop", 100.0, loops));
            let lfuda = if percent == 5.0 { lfuda } else { 0.2 - lfuda };
            let at = all.iter().position(|run| run.1 == "lfuda").unwrap();
            all[at].3 = lfuda;
            runs.extend(all);
        }
        runs
    };
    let yes = both(&of(0.05, 0.052, 0.2, 0.1), 0.2, 0.09);
    let no = both(&of(0.2, 0.1, 0.05, 0.1), 0.05, 0.11);
    for says in [
        "in most pools sorted LRU-K",
        "in larger pools (from 4 GB, 28 %) sorted LRU",
        "RANDOM and LOOP miss more",
        "in small pools (up to 1 GB, 7 %) LFUDA",
        "in larger ones (from 4 GB, 28 %)",
    ] {
        sides(misses, says, &yes, &no);
    }
}

#[test]
fn a_place_among_few_says_nothing_and_a_stalled_policy_is_behind() {
    let says = "up to 1 GB (7 %) LFU is among";
    let few = all_in(5.0, &[("lfu", 1.0, 0.1)]);
    let some: Vec<Run> = few
        .iter()
        .filter(|run| ["lfu", "lfuda", RANDOM, LEAN].contains(&&*run.1))
        .cloned()
        .collect();
    assert_eq!(judged(speed, says, &few, 3, 0.0).holds, Some(true));
    assert_eq!(judged(speed, says, &some, 3, 0.0).here, "not run");
    let mut table = rows(&all_in(5.0, &[("lfu", 500.0, 0.1)]), 3, 0.0);
    for row in 0..table.rows.len() {
        let end = if table.rows[row][1] == "lfu".into() { "full" } else { "ran" };
        table.rows[row][3] = end.into();
    }
    let all = speed(&Sizes::of(&table));
    let claim = all.iter().find(|claim| claim.says.starts_with(says)).unwrap();
    assert_eq!(claim.holds, Some(true), "{claim:?}");
    assert!(claim.here.contains("24 of 24 ahead"), "{claim:?}");
}
