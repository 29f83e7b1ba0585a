//! Tests of the sentences about variants of one policy.

use super::super::clocks::{self, TWICE, TWICE_TYPED};
use super::super::others::{self, AGEINGS, SEARCHED, STAGES, cooled, lrd, lrd_searched};
use super::sides::{Run, WIDE, judged, rows, run, sides};
use crate::live::sizes::Sizes;

fn events(policy: &str, percent: f64, of: &[(&str, f64, f64)]) -> Vec<Run> {
    let name = |(events, speed, misses): &(&str, f64, f64)| {
        run(percent, &format!("{policy}(variant={events})"), *speed, *misses)
    };
    of.iter().map(name).collect()
}

#[test]
fn clock_is_judged_by_each_of_its_sentences() {
    let of = |full: (f64, f64), both: (f64, f64)| {
        let (one, other) = (("fix", 100.0, 0.1), ("unfix", 100.0, 0.1));
        let more = [("full", full.0, full.1), ("fix-unfix", both.0, both.1)];
        events("clock", 20.0, &[one, other, more[0], more[1]])
    };
    let alike = of((100.0, 0.101), (100.0, 0.1));
    let far = of((80.0, 0.099), (80.0, 0.08));
    for says in [
        "the variants' throughput differs slightly",
        "setting the bit on fix and unfix costs nothing",
        "nor does it change misses",
        "the full variant misses more",
    ] {
        sides(clocks::clock, says, &alike, &far);
    }
    let slow = of((80.0, 0.1), (100.0, 0.1));
    sides(clocks::clock, "it is no slower than the others", &alike, &slow);
}

#[test]
fn zclock_is_judged_where_the_data_almost_fit() {
    let of = |percent, full: f64, miss: f64| {
        let rest = [("fix", 100.0, 0.1), ("unfix", 100.0, 0.1), ("fix-unfix", 90.0, miss)];
        let all = [rest[0], rest[1], rest[2], ("full", full, miss)];
        events("zclock", percent, &all)
    };
    let both = |near, far, miss| [of(5.0, far, miss), of(70.0, near, miss)].concat();
    let yes = both(70.0, 90.0, 0.1);
    let no = both(105.0, 90.0, 0.2);
    for says in [
        "fix and unfix are faster than both and full",
        "the full variant is slower than fix where the data almost fit",
        "there it loses more than elsewhere",
        "from 2.5 GB (17 %) on the misses",
        "in smaller pools they differ by chance",
    ] {
        sides(clocks::zclock, says, &yes, &no);
    }
    let without = of(5.0, 90.0, 0.1);
    let says = "the full variant is slower than fix where the data almost fit";
    let claim = judged(clocks::zclock, says, &without, 3, 0.0);
    assert_eq!((claim.holds, claim.here.as_str()), (None, "not run"), "5 % is not 70 %");
}

/// Makes runs of all variants of a counting clock in a pool, with the factors of counting
/// refusals, unfix and doubled weights on speed and misses.
fn counting(
    policy: &str,
    percent: f64,
    full: (f64, f64),
    unfix: (f64, f64),
    doubled: (f64, f64),
) -> Vec<Run> {
    let mut runs = Vec::new();
    for (params, of_doubled) in [(String::new(), (1.0, 1.0)), (format!(",{TWICE}"), doubled)] {
        for (events, of_unfix) in [("fix", (1.0, 1.0)), ("unfix", unfix)] {
            for (tail, of_full) in [("", (1.0, 1.0)), ("-full", full)] {
                let speed = 100.0 * of_full.0 * of_unfix.0 * of_doubled.0;
                let misses = 0.1 * of_full.1 * of_unfix.1 * of_doubled.1;
                let name = format!("{policy}(variant={events}{tail}{params})");
                runs.push(run(percent, &name, speed, misses));
            }
        }
    }
    runs
}

#[test]
fn gclock_v1_is_judged_in_his_pools() {
    let same = (1.0, 1.0);
    let of = |percent, full| counting("gclock-v1", percent, full, same, (1.0, 0.98));
    let yes = [
        of(0.7, (0.9, 1.0)),
        of(3.5, (1.05, 1.05)),
        of(20.0, (1.1, 0.95)),
        of(70.0, (1.15, 0.96)),
        counting("gclock-v1", 140.0, same, same, same),
    ]
    .concat();
    let of = |percent, full| counting("gclock-v1", percent, full, (1.1, 1.0), (0.8, 1.2));
    let no = [
        of(0.7, (1.1, 1.0)),
        of(3.5, (0.9, 0.9)),
        of(20.0, (0.95, 1.2)),
        of(70.0, (0.7, 1.1)),
        of(140.0, (0.9, 1.1)),
    ]
    .concat();
    for says in [
        "counting refusals is faster in most pools",
        "where the pool is a little smaller than the data",
        "the lead is smaller in smaller pools",
        "with 100 MB (0.7 %), counting them is slower",
        "where the data fit, throughput is the same",
        "fix and unfix differ by less than 2 %",
        "with 10 GB (70 %), counting refusals misses less",
        "there doubled weights are in between",
        "from 1 to 5 GB",
        "with 500 MB",
        "where the data fit, misses are the same",
    ] {
        sides(clocks::gclock_v1, says, &yes, &no);
    }
    let more = [of(70.0, (1.3, 0.96)), of(100.0, (1.0, 1.0))].concat();
    let claim = |says| judged(clocks::gclock_v1, says, &more, 3, 0.0);
    assert_eq!(claim("where the pool is a little smaller").holds, Some(false), "30 % is not 15 %");
    assert_eq!(claim("where the data fit, misses").here, "not run", "as loaded they do not yet");
}

#[test]
fn gclock_v2_is_judged_beside_v1() {
    let of = |full_1, full_2, unfix, twice| {
        let mut runs = Vec::new();
        for percent in [0.7, 20.0, 70.0, 140.0] {
            runs.extend(counting("gclock-v2", percent, full_2, unfix, twice));
        }
        let beside = counting("gclock-v1", 70.0, full_1, (1.0, 1.0), (1.0, 1.0));
        runs.extend(beside.into_iter().take(2));
        runs
    };
    let yes = of((1.15, 1.0), (1.001, 1.1), (1.005, 0.9), (1.0, 1.0));
    let no = of((1.0, 1.0), (1.2, 0.9), (0.9, 1.1), (0.8, 1.0));
    for says in [
        "variants differ less than those of V1",
        "in very small pools (100 MB, 0.7 %) and where the data fit",
        "unfix is faster than fix",
        "counting refusals misses more",
        "unfix misses less than fix",
    ] {
        sides(clocks::gclock_v2, says, &yes, &no);
    }
}

fn typed(policy: &str, percent: f64, of: [(f64, f64); 4]) -> Vec<Run> {
    let names = ["fix", "fix-full"].map(|events| format!("{policy}(variant={events})"));
    let twice = ["fix", "fix-full"];
    let twice = twice.map(|events| format!("{policy}(variant={events},{TWICE_TYPED})"));
    let named = names.iter().chain(&twice).zip(of);
    named.map(|(name, (speed, misses))| run(percent, name, speed, misses)).collect()
}

#[test]
fn the_typed_clocks_are_judged_in_small_pools_and_in_others() {
    let of =
        |policy, small, larger| [typed(policy, 0.7, small), typed(policy, 20.0, larger)].concat();
    let larger = [(100.0, 0.1), (110.0, 0.09), (95.0, 0.11), (99.0, 0.1)];
    let wrong = [(100.0, 0.1), (90.0, 0.11), (110.0, 0.09), (95.0, 0.1)];
    let small = [(100.0, 0.1), (90.0, 0.1), (90.0, 0.09), (85.0, 0.1)];
    let no_small = [(100.0, 0.1), (90.0, 0.1), (110.0, 0.11), (95.0, 0.1)];
    let yes = of("dgclock-v1", small, larger);
    let no = of("dgclock-v1", no_small, wrong);
    for says in [
        "from 500 MB (3.5 %) on doubled weights are slower",
        "there they miss more",
        "there fix-full is the fastest",
        "there it misses less than fix",
        "with 100 MB (0.7 %), fix with doubled weights misses least",
        "there doubled weights are slower all the same",
    ] {
        sides(clocks::dgclock_v1, says, &yes, &no);
    }
    let small = [(100.0, 0.09), (101.0, 0.1), (98.0, 0.09), (99.0, 0.1)];
    let larger = [(100.0, 0.1), (101.0, 0.1), (98.0, 0.1), (99.0, 0.1)];
    let no_small = [(120.0, 0.11), (100.0, 0.1), (130.0, 0.11), (110.0, 0.1)];
    let wrong = [(120.0, 0.1), (100.0, 0.11), (130.0, 0.1), (110.0, 0.1)];
    let yes = of("dgclock-v2", small, larger);
    let no = of("dgclock-v2", no_small, wrong);
    for says in [
        "but for very small pools (100 MB, 0.7 %) all variants miss alike",
        "with 100 MB (0.7 %), those that do not count refusals miss less",
        "there they are no faster for it",
        "in larger pools throughput differs little",
        "doubled weights are slower in each pool",
        "in larger pools fix-full is the fastest",
    ] {
        sides(clocks::dgclock_v2, says, &yes, &no);
    }
}

/// Makes runs of all ageings in a pool: speed and misses of short periods, and of long
/// ones, and the stronger ageing's factors on the speed of each.
fn aged(percent: f64, short: (f64, f64), long: (f64, f64), stronger: (f64, f64)) -> Vec<Run> {
    let of = |ageing: &str| {
        let is_short = ageing.starts_with("period=2,");
        let ((speed, misses), factor) =
            if is_short { (short, stronger.0) } else { (long, stronger.1) };
        (if ageing.ends_with("0.5") { speed * factor } else { speed }, misses)
    };
    let named = AGEINGS.iter().map(|ageing| (lrd(ageing), of(ageing)));
    let searched = SEARCHED.iter().map(|ageing| (lrd_searched(ageing), of(ageing)));
    let all = named.chain(searched);
    all.map(|(name, (speed, misses))| run(percent, &name, speed, misses)).collect()
}

#[test]
fn lrd_is_judged_by_the_most_striking_result_too() {
    let factors = (0.98, 1.02);
    let yes = [
        aged(0.7, (500.0, 0.20), (400.0, 0.22), factors),
        aged(3.5, (300.0, 0.16), (250.0, 0.17), factors),
        aged(7.0, (150.0, 0.10), (120.0, 0.11), factors),
        aged(17.0, (100.0, 0.09), (120.0, 0.08), factors),
        aged(35.0, (150.0, 0.05), (150.0, 0.05), (1.0, 1.0)),
        aged(100.0, (300.0, 0.02), (300.0, 0.02), (1.0, 1.0)),
    ]
    .concat();
    let factors = (1.05, 0.9);
    let no = [
        aged(0.7, (100.0, 0.21), (120.0, 0.20), factors),
        aged(3.5, (200.0, 0.16), (250.0, 0.17), factors),
        aged(7.0, (300.0, 0.10), (320.0, 0.11), factors),
        aged(17.0, (500.0, 0.06), (420.0, 0.08), factors),
        aged(35.0, (950.0, 0.04), (750.0, 0.05), factors),
        aged(100.0, (500.0, 0.01), (400.0, 0.02), factors),
    ]
    .concat();
    for says in [
        "most striking",
        "2 · 0.5 is faster with 100 MB",
        "from there on all are faster",
        "with 100 MB (0.7 %), periods of 2 are faster",
        "with 2.5 GB (17 %), periods of 10 are faster",
        "longer periods want stronger ageing",
        "from 5 GB (35 %) on all variants are equally fast",
        "there they miss alike",
    ] {
        sides(others::lrd_v2, says, &yes, &no);
    }
    // Two claims concern this, about 0.7 % and about 17 %.
    let both = |runs: &[Run], wobble| {
        let all = others::lrd_v2(&Sizes::of(&rows(runs, 2, wobble)));
        let of = all.into_iter().filter(|claim| claim.says == "there they also miss less");
        of.map(|claim| claim.holds).collect::<Vec<_>>()
    };
    assert_eq!(both(&yes, 0.0), [Some(true); 2]);
    assert_eq!(both(&no, 0.0), [Some(false); 2]);
    assert_eq!([both(&yes, WIDE), both(&[], 0.0)], [[None; 2]; 2]);
}

#[test]
fn the_faster_variant_misses_less_or_does_not() {
    let says = "in each pool the faster variants";
    let yes = aged(0.7, (200.0, 0.1), (100.0, 0.2), (1.0, 1.0));
    let no = aged(0.7, (200.0, 0.2), (100.0, 0.1), (1.0, 1.0));
    sides(others::lrd_v2, says, &yes, &no);
    let alike = aged(0.7, (100.0, 0.2), (100.0, 0.1), (1.0, 1.0));
    let claim = judged(others::lrd_v2, says, &alike, 3, 0.0);
    assert_eq!(claim.holds, None, "no variant is faster: {claim:?}");
}

#[test]
fn cooling_stages_are_alike_or_not() {
    let of = |speed, misses| {
        let at = |(at, stage): (usize, &&str)| {
            let (speed, misses) = if at == 4 { (speed, misses) } else { (100.0, 0.1) };
            run(20.0, &cooled(stage), speed, misses)
        };
        STAGES.iter().enumerate().map(at).collect::<Vec<_>>()
    };
    let (yes, no) = (of(97.0, 0.102), of(120.0, 0.06));
    for says in ["from 1 to 25 % of the pool", "nor misses"] {
        sides(others::lean, says, &yes, &no);
    }
}
