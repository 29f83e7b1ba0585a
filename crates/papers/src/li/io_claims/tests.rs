//! Tests of each sentence on made-up rows, on both sides of its bound.

use super::super::places::made_up;
use super::*;

const ALL: [&str; 8] = ["pro-io", "min-rw", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"];

type Values<'a> = Vec<(Place<'a>, &'static str, f64)>;

/// Returns values of all policies at a place, in the order of table 5.6.
fn at(place: Place<'_>, values: [f64; 8]) -> Values<'_> {
    ALL.into_iter().zip(values).map(|(policy, value)| (place, policy, value)).collect()
}

fn of(values: &[Values<'_>]) -> Places {
    Places::of(&made_up("total", &values.concat()), "total")
}

fn verdicts(claims: Vec<Claim>) -> Vec<&'static str> {
    claims.iter().map(Claim::verdict).collect()
}

/// Returns values at each place, `factor` times the values at the place before.
fn falling<'a>(places: &[Place<'a>], values: [f64; 8], factor: f64) -> Vec<Values<'a>> {
    let times = |step: usize| values.map(|value| value * factor.powi(step as i32));
    places.iter().enumerate().map(|(step, place)| at(*place, times(step))).collect()
}

#[test]
fn mysql_over_sizes() {
    let all = MYSQL_STEPS.map(|size| Place::of("480mbuf", size));
    let mut his = falling(&all, [60.0, 80.0, 95.0, 99.0, 94.0, 98.0, 97.0, 99.0], 0.8);
    for (place, values) in [(3, 0.8f64.powi(3)), (4, 0.8f64.powi(4))] {
        his[place] = at(
            all[place],
            [60.0, 80.0, 95.0, 99.0, 98.5, 98.0, 97.0, 99.0].map(|value| value * values),
        );
    }
    assert_eq!(verdicts(mysql_sizes(&of(&his))), ["yes"; 5]);
    let other = falling(&all, [60.0, 50.0, 99.5, 99.0, 80.0, 98.0, 99.5, 99.0], 1.1);
    assert_eq!(verdicts(mysql_sizes(&of(&other))), ["no"; 5]);
    assert_eq!(verdicts(mysql_sizes(&of(&[]))), ["open"; 5]);
}

#[test]
fn mysql_over_pools() {
    let mut his = falling(&MYSQL, [60.0, 80.0, 99.5, 99.0, 98.5, 98.0, 97.0, 99.0], 0.8);
    his[3] = at(MYSQL[3], [30.0, 30.5, 31.0, 30.8, 30.9, 30.7, 30.6, 30.9]);
    assert_eq!(verdicts(mysql_pools(&of(&his))), ["yes"; 5]);
    let other = falling(&MYSQL, [60.0, 50.0, 80.0, 99.0, 80.0, 98.0, 99.5, 99.0], 1.1);
    assert_eq!(verdicts(mysql_pools(&of(&other))), ["no"; 5]);
    assert_eq!(verdicts(mysql_pools(&of(&[]))), ["open"; 5]);
}

#[test]
fn db2_over_sizes() {
    let all = STEPS.map(|size| Place::of("300k_4000", size));
    let mut his = falling(&all, [30.0, 60.0, 58.0, 100.0, 73.0, 100.0, 40.0, 100.0], 0.8);
    his[0] = at(all[0], [90.0, 95.0, 97.0, 100.0, 98.0, 100.0, 99.0, 101.0]);
    his[5] = at(all[5], [5.0, 5.5, 6.0, 6.1, 5.9, 6.0, 6.1, 7.0]);
    assert_eq!(verdicts(sizes(&of(&his))), ["yes"; 9]);
    let mut other = falling(&all, [30.0, 20.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0], 1.1);
    other[0] = at(all[0], [30.0, 20.0, 80.0, 100.0, 101.0, 100.0, 101.0, 100.0]);
    other[5] = at(all[5], [50.0, 40.0, 101.0, 200.0, 201.0, 200.0, 201.0, 200.0]);
    // LRU-IO saves half at the largest size.
    let said = verdicts(sizes(&of(&other)));
    assert_eq!(said[0], "yes");
    assert_eq!(said[1..], ["no"; 8]);
    other[5] = at(all[5], [50.0, 40.0, 201.0, 200.0, 201.0, 200.0, 201.0, 200.0]);
    assert_eq!(verdicts(sizes(&of(&other)))[0], "no");
    assert_eq!(verdicts(sizes(&of(&[]))), ["open"; 9]);
}

#[test]
fn db2_eviction_writes() {
    let place = |size| Place::of("300k_4000", size);
    let said = |at_400, tq_io| {
        let late = |size| at(place(size), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, tq_io, 10.0]);
        let early = at(place("400"), [1.0, 1.0, 10.0, 10.0, 10.0, 10.0, at_400, 30.0]);
        verdicts(eviction_writes(&of(&[early, late("500"), late("600")])))
    };
    assert_eq!(said(16.0, 4.0), ["yes"; 2]);
    assert_eq!(said(14.0, 6.0), ["no"; 2]);
    assert_eq!(verdicts(eviction_writes(&of(&[]))), ["open"; 2]);
}

#[test]
fn db2_over_pools() {
    let his = [
        at(POOLS[0], [50.0, 80.0, 95.0, 100.0, 80.0, 100.0, 90.0, 100.0]),
        at(POOLS[1], [50.0, 80.0, 80.0, 100.0, 82.0, 100.0, 88.0, 100.0]),
        at(POOLS[2], [50.0, 80.0, 70.0, 100.0, 78.0, 100.0, 92.0, 100.0]),
    ];
    assert_eq!(verdicts(pools(&of(&his))), ["yes"; 3]);
    let other = [
        at(POOLS[0], [50.0, 80.0, 70.0, 100.0, 80.0, 100.0, 90.0, 100.0]),
        at(POOLS[1], [50.0, 40.0, 80.0, 100.0, 60.0, 100.0, 88.0, 100.0]),
        at(POOLS[2], [50.0, 80.0, 90.0, 100.0, 78.0, 100.0, 92.0, 100.0]),
    ];
    assert_eq!(verdicts(pools(&of(&other))), ["no"; 3]);
    assert_eq!(verdicts(pools(&of(&[]))), ["open"; 3]);
}

#[test]
fn reads_and_writes_apart() {
    // Table 5.6 itself, in thousands.
    let total = [15848.0, 36139.0, 25553.0, 36950.0, 23228.0, 26639.0, 24507.0, 26552.0];
    let read = [5412.0, 3046.0, 9287.0, 11087.0, 8269.0, 9104.0, 7745.0, 7419.0];
    let written = [10436.0, 33093.0, 16267.0, 25862.0, 14959.0, 17535.0, 16762.0, 19132.0];
    let table = |total, read, written| {
        let [total, read, written] = [total, read, written].map(|v| of(&[at(POOLS[2], v)]));
        verdicts(parts(&total, &read, &written))
    };
    assert_eq!(table(total, read, written), ["yes"; 7]);
    let all_same = [10.0, 9.0, 10.0, 10.0, 10.5, 10.0, 10.5, 10.0];
    let reversed = [1.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 4.0];
    assert_eq!(table(all_same, reversed, [9.0; 8].map(|v| v - 1.0)), {
        ["no", "no", "no", "no", "no", "no", "no"]
    });
    let none = of(&[]);
    assert_eq!(verdicts(parts(&none, &none, &none)), ["open"; 7]);
}

#[test]
fn db2_over_gaps() {
    let his = [
        at(GAPS[0], [90.0, 95.0, 99.0, 100.0, 101.0, 100.0, 99.0, 100.0]),
        at(GAPS[1], [50.0, 80.0, 70.0, 90.0, 75.0, 90.0, 80.0, 85.0]),
        at(GAPS[2], [40.0, 70.0, 50.0, 80.0, 55.0, 80.0, 65.0, 80.0]),
    ];
    assert_eq!(verdicts(gaps(&of(&his))), ["yes"; 8]);
    let other = [
        at(GAPS[0], [90.0, 95.0, 80.0, 100.0, 90.0, 100.0, 90.0, 100.0]),
        at(GAPS[1], [95.0, 90.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0]),
        at(GAPS[2], [99.0, 105.0, 111.0, 110.0, 111.0, 110.0, 111.0, 110.0]),
    ];
    assert_eq!(verdicts(gaps(&of(&other))), ["no"; 8]);
    assert_eq!(verdicts(gaps(&of(&[]))), ["open"; 8]);
}
